/*
 * A doubly linked list, intrusive: what is in a list embeds an rl_link, one for
 * each list it can be in. The list is a ring through its own head, so adding
 * and removing know no special cases. A link that is zero is in no list.
 *
 *     for (rl_link *k = rl_list_first(&all); k; k = rl_list_next(&all, k))
 *         use(RL_CONTAINER(k, thing, link));
 *
 * A loop that removes what it looks at takes the next link first.
 */
#ifndef RL_BASE_LIST_H
#define RL_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* The object that embeds a link, or a node of another container. */
#define RL_CONTAINER(ptr, type, member)                                        \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

typedef struct rl_link {
    struct rl_link *prev, *next;
} rl_link;

/* Stays where it was made: its links point at it. */
typedef struct rl_list {
    rl_link head;
} rl_list;

static inline void rl_list_init(rl_list *l)
{
    l->head.prev = l->head.next = &l->head;
}

static inline bool rl_list_is_empty(const rl_list *l)
{
    return l->head.next == &l->head;
}

static inline bool rl_link_is_in(const rl_link *k)
{
    return k->next != NULL;
}

/* Into the list, before a link that is in it. */
static inline void rl_list_add_before(rl_link *at, rl_link *k)
{
    k->prev = at->prev;
    k->next = at;
    at->prev->next = k;
    at->prev = k;
}

static inline void rl_list_add_first(rl_list *l, rl_link *k)
{
    rl_list_add_before(l->head.next, k);
}

static inline void rl_list_add_last(rl_list *l, rl_link *k)
{
    rl_list_add_before(&l->head, k);
}

/* Out of the list it is in; no effect when it is in none. */
static inline void rl_list_remove(rl_link *k)
{
    if (!rl_link_is_in(k))
        return;
    k->prev->next = k->next;
    k->next->prev = k->prev;
    *k = (rl_link){NULL, NULL};
}

/* These three answer NULL when there is none. */
static inline rl_link *rl_list_first(const rl_list *l)
{
    return rl_list_is_empty(l) ? NULL : l->head.next;
}

static inline rl_link *rl_list_last(const rl_list *l)
{
    return rl_list_is_empty(l) ? NULL : l->head.prev;
}

static inline rl_link *rl_list_next(const rl_list *l, const rl_link *k)
{
    return k->next == &l->head ? NULL : k->next;
}

#endif
