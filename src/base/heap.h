/*
 * A binary heap of due times, intrusive: what is due embeds an rl_heap_node.
 * The first node is the earliest.
 *
 * Room is reserved before it is needed, so that pushing cannot fail: a hold
 * that the server has granted must never be without its timer.
 */
#ifndef RL_BASE_HEAP_H
#define RL_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of 12 bytes, not 16: a hold has two of them. */
typedef struct rl_heap_node {
    int64_t due_us;
    uint32_t at; /* index + 1 in the heap; 0: not in it */
} __attribute__((packed, aligned(4))) rl_heap_node;

typedef struct rl_heap {
    rl_heap_node **nodes;
    size_t count, room, reserved;
} rl_heap;

void rl_heap_fini(rl_heap *h);
bool rl_heap_reserve(rl_heap *h);   /* for one more node; false: no memory, or
                                     `at` would not do */
void rl_heap_unreserve(rl_heap *h); /* that node will not come any more */
void rl_heap_trim(rl_heap *h); /* room for far more than is reserved goes */

/* Adds the node, or moves it when it is in the heap already. */
void rl_heap_set(rl_heap *h, rl_heap_node *n, int64_t due_us);
void rl_heap_remove(rl_heap *h, rl_heap_node *n); /* no effect when not in it */

static inline rl_heap_node *rl_heap_first(const rl_heap *h)
{
    return h->count ? h->nodes[0] : NULL;
}

#endif
