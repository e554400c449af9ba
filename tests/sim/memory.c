/*
 * The memory of librlock.a and libhiredis.a, in which malloc() and the others
 * have these names (CMakeLists.txt): counted, and overwritten when it is freed,
 * so that who uses it then stumbles. It may be scarce: then what a process asks
 * for is refused, once or for a while.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

static int64_t blocks;

void *world_malloc(size_t n);
void *world_calloc(size_t n, size_t size);
void *world_realloc(void *p, size_t n);
void world_free(void *p);
char *world_strdup(const char *s);

int64_t memory_blocks(void)
{
    return blocks;
}

/* --- what is refused ------------------------------------------------------ */

#define SHORTAGES_MAX 65536

/* The first and the last refusal of each. */
static struct {
    int process;
    int64_t from, to;
} shortages[SHORTAGES_MAX];
static int shortages_n;

static int64_t short_until[PROCESSES_MAX];
static int last_of[PROCESSES_MAX];

bool memory_was_short(const process *p, int64_t from, int64_t to)
{
    for (int i = shortages_n; i > 0; i--)
        if (shortages[i - 1].process == p->index &&
            shortages[i - 1].from <= to && shortages[i - 1].to >= from)
            return true;
    return false;
}

/* Who is refused something tries again, or undoes what he has begun, and mostly
   needs memory for that as well: so it is short for a while. */
static bool is_short(int process)
{
    if (w.now <= short_until[process])
        return true;
    if (!fault_is_due(cfg.scarce_ppm))
        return false;
    if (shortages_n == SHORTAGES_MAX)
        finding("the world has too little memory");
    last_of[process] = shortages_n;
    shortages[shortages_n].process = process;
    shortages[shortages_n++].from = w.now;
    short_until[process] = w.now + chance_skewed(&w.dice, cfg.scarce_us * US);
    return true;
}

bool memory_refuses(size_t n)
{
    if (!w.is_on || !w.is_scarce || running->is_spared)
        return false;
    int process = running->p->index;
    if (!is_short(process))
        return false;
    shortages[last_of[process]].to = w.now;
    if (w.traces > 1)
        trace("    %zu bytes are refused to process %d", n, process);
    errno = ENOMEM;
    return true;
}

/* --- what is given -------------------------------------------------------- */

static void *counted(void *p)
{
    blocks += p != NULL;
    return p;
}

/* What it holds at first is nobody's business either. */
void *world_malloc(size_t n)
{
    void *p = memory_refuses(n) ? NULL : counted(malloc(n));
    if (p)
        memset(p, 0xcc, n);
    return p;
}

void *world_calloc(size_t n, size_t size)
{
    return memory_refuses(n * size) ? NULL : counted(calloc(n, size));
}

void *world_realloc(void *p, size_t n)
{
    if (memory_refuses(n))
        return NULL;
    return p ? realloc(p, n) : counted(realloc(p, n));
}

void world_free(void *p)
{
    if (!p)
        return;
    blocks--;
    memset(p, 0xdd, malloc_usable_size(p));
    free(p);
}

char *world_strdup(const char *s)
{
    return memory_refuses(strlen(s) + 1) ? NULL : counted(strdup(s));
}
