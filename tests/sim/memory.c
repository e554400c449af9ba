/*
 * Memory: the library's own allocations fail while the process whose task runs
 * has hardly any. What plays the world always has enough.
 */
#include "world.h"

#define REFUSED_PPM 300000

static process *whose;

void memory_is_of(process *p)
{
    whose = p;
}

static bool is_refused(void)
{
    return whose && !memory_for_world && whose->w->now_us < whose->scarce_us &&
           !whose->w->is_quiet && chance_ppm(&whose->w->chance, REFUSED_PPM);
}

void *__real_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    return is_refused() ? NULL : __real_calloc(n, size);
}

void *__wrap_malloc(size_t size)
{
    return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return is_refused() ? NULL : __real_realloc(p, size);
}
