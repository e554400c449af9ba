/*
 * What the library makes and has to free, as a program that links rlock_shim sees
 * it: memory, mutexes, conditions, descriptors. New memory is full of rubbish,
 * and so it is again when it is freed; what is written behind its end ends the
 * program. Where a sanitizer looks for all that by itself, it is plain memory,
 * and nothing is counted. Blocks of somebody else's may be freed here, too.
 */
#ifndef TEST_SUPPORT_REMAINS_H
#define TEST_SUPPORT_REMAINS_H

#include <stddef.h>

void *blocks_malloc(size_t size);
void *blocks_calloc(size_t n, size_t size);
/* Always somewhere else: what still points to the old place is found out. */
void *blocks_realloc(void *p, size_t size);
void blocks_free(void *p);

typedef struct remains {
    long blocks, objects, descriptors; /* objects: mutexes and conditions */
    size_t last;                       /* the latest block's size */
} remains;

/* Only where the shim is linked, too: elsewhere it is NULL. */
__attribute__((weak)) remains remains_now(void);

#endif
