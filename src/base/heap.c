#include "base/heap.h"

#include <stdlib.h>

#define FIRST_ROOM 16

void rl_heap_fini(rl_heap *h)
{
    free(h->nodes);
    *h = (rl_heap){0};
}

/* Invariant: reserved >= count, room >= reserved. */
bool rl_heap_reserve(rl_heap *h)
{
    if (h->reserved == UINT32_MAX)
        return false;
    if (h->reserved == h->room) {
        size_t room = h->room ? h->room * 2 : FIRST_ROOM;
        rl_heap_node **nodes = realloc(h->nodes, room * sizeof *nodes);
        if (!nodes)
            return false;
        h->nodes = nodes;
        h->room = room;
    }
    h->reserved++;
    return true;
}

void rl_heap_unreserve(rl_heap *h)
{
    h->reserved--;
}

void rl_heap_trim(rl_heap *h)
{
    size_t room = FIRST_ROOM;
    while (room < 2 * h->reserved)
        room *= 2;
    if (h->room <= 4 * room)
        return;
    rl_heap_node **nodes = realloc(h->nodes, room * sizeof *nodes);
    if (!nodes)
        return;
    h->nodes = nodes;
    h->room = room;
}

static void put(rl_heap *h, size_t i, rl_heap_node *n)
{
    h->nodes[i] = n;
    n->at = (uint32_t)(i + 1);
}

static size_t sift_up(rl_heap *h, size_t i, int64_t due_us)
{
    while (i > 0 && h->nodes[(i - 1) / 2]->due_us > due_us) {
        put(h, i, h->nodes[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    return i;
}

static size_t sift_down(rl_heap *h, size_t i, int64_t due_us)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->count)
            return i;
        if (child + 1 < h->count &&
            h->nodes[child + 1]->due_us < h->nodes[child]->due_us)
            child++;
        if (h->nodes[child]->due_us >= due_us)
            return i;
        put(h, i, h->nodes[child]);
        i = child;
    }
}

static void place(rl_heap *h, size_t i, rl_heap_node *n)
{
    i = sift_up(h, i, n->due_us);
    put(h, sift_down(h, i, n->due_us), n);
}

void rl_heap_set(rl_heap *h, rl_heap_node *n, int64_t due_us)
{
    size_t i = n->at ? n->at - 1 : h->count++;
    n->due_us = due_us;
    place(h, i, n);
}

void rl_heap_remove(rl_heap *h, rl_heap_node *n)
{
    if (!n->at)
        return;
    size_t i = n->at - 1;
    n->at = 0;
    rl_heap_node *last = h->nodes[--h->count];
    if (last != n)
        place(h, i, last);
}
