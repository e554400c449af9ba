#include "base/map.h"

#include <stdlib.h>

/* Most clients hold little, and a process may have a thousand of them. */
#define FIRST_SIZE 4

bool rl_map_init(rl_map *m, rl_map_equal *equal)
{
    *m = (rl_map){.size = FIRST_SIZE, .equal = equal};
    m->buckets = calloc(m->size, sizeof *m->buckets);
    return m->buckets != NULL;
}

void rl_map_fini(rl_map *m)
{
    free(m->buckets);
    *m = (rl_map){0};
}

static rl_map_node **bucket(const rl_map *m, uint64_t hash)
{
    return &m->buckets[hash & (m->size - 1)];
}

rl_map_node *rl_map_find(const rl_map *m, uint64_t hash, const void *key)
{
    rl_map_node *n = *bucket(m, hash);
    while (n && !(n->hash == hash && m->equal(n, key)))
        n = n->next;
    return n;
}

static void link_node(rl_map *m, rl_map_node *n)
{
    rl_map_node **head = bucket(m, n->hash);
    n->next = *head;
    *head = n;
}

static void grow(rl_map *m)
{
    rl_map bigger = *m;
    bigger.size = m->size * 2;
    bigger.buckets = calloc(bigger.size, sizeof *bigger.buckets);
    if (!bigger.buckets)
        return;
    for (size_t i = 0; i < m->size; i++) {
        rl_map_node *next;
        for (rl_map_node *n = m->buckets[i]; n; n = next) {
            next = n->next;
            link_node(&bigger, n);
        }
    }
    free(m->buckets);
    *m = bigger;
}

void rl_map_add(rl_map *m, rl_map_node *n, uint64_t hash)
{
    if (m->count >= m->size)
        grow(m);
    n->hash = hash;
    link_node(m, n);
    m->count++;
}

void rl_map_remove(rl_map *m, rl_map_node *n)
{
    rl_map_node **at = bucket(m, n->hash);
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    m->count--;
}

void rl_map_each(rl_map *m, void (*fn)(rl_map_node *n, void *arg), void *arg)
{
    for (size_t i = 0; i < m->size; i++) {
        rl_map_node *next;
        for (rl_map_node *n = m->buckets[i]; n; n = next) {
            next = n->next;
            fn(n, arg);
        }
    }
}

void rl_map_each_of(rl_map *m, uint64_t hash,
                    void (*fn)(rl_map_node *n, void *arg), void *arg)
{
    rl_map_node *next;
    for (rl_map_node *n = *bucket(m, hash); n; n = next) {
        next = n->next;
        if (n->hash == hash)
            fn(n, arg);
    }
}
