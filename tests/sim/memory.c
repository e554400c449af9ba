/*
 * The memory of librlock.a and libhiredis.a, in which malloc() and the others
 * have these names (CMakeLists.txt): counted, and overwritten when it is freed,
 * so that who uses it then stumbles.
 */
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

static void *counted(void *p)
{
    blocks += p != NULL;
    return p;
}

/* What it holds at first is nobody's business either. */
void *world_malloc(size_t n)
{
    void *p = counted(malloc(n));
    if (p)
        memset(p, 0xcc, n);
    return p;
}

void *world_calloc(size_t n, size_t size)
{
    return counted(calloc(n, size));
}

void *world_realloc(void *p, size_t n)
{
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
    return counted(strdup(s));
}
