/*
 * A cluster of three nodes, a third of the slots each; what they say is put
 * together by hand. A node's id is a letter, and so is its address.
 */
#ifndef TEST_UNIT_SLOTMAP_H
#define TEST_UNIT_SLOTMAP_H

#include "route/slotmap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/test.h"

typedef struct land {
    rl_cluster c;
    rl_uri uri;
    rl_slotmap_reply said;
    rl_change ch;
    atomic_uint_fast64_t refreshes, redirects, nodes;
    int made[16], count;
    char name[100]; /* of the last one */
    bool lacks_memory;
    int nudges; /* so often a turn was asked for */
} land;

static inline void note_nudge(void *arg)
{
    ((land *)arg)->nudges++;
}

static inline void *add_server(void *arg, rl_server *s, const char *name)
{
    land *l = arg;
    (void)s;
    snprintf(l->name, sizeof l->name, "%s", name);
    return l->lacks_memory ? NULL : &l->made[l->count++];
}

/* A node is listed; from 1. */
static inline uint16_t list(rl_slotmap_reply *said, const char *id,
                            const char *host, int64_t epoch)
{
    rl_slot_owner *n = &said->node[said->count++];
    *n = (rl_slot_owner){.port = 6379, .epoch = epoch, .master = true};
    strcpy(n->id, id);
    strcpy(n->host, host);
    return (uint16_t)said->count;
}

/* It has the slots from first to last, by this epoch. */
static inline void claim_at(rl_slotmap_reply *said, const char *id,
                            const char *host, int64_t epoch, int first,
                            int last)
{
    uint16_t n = list(said, id, host, epoch);
    for (int i = first; i <= last; i++)
        said->owner[i] = n;
    said->claimed += (size_t)(last - first + 1);
}

/* The same where its name says. */
static inline void claim(land *l, const char *id, int64_t epoch, int first,
                         int last)
{
    claim_at(&l->said, id, id, epoch, first, last);
}

/* That says the node itself. */
static inline void by(rl_slotmap_reply *said, const char *id)
{
    for (size_t i = 0; i < said->count; i++)
        if (strcmp(said->node[i].id, id) == 0)
            said->self = i + 1;
    EXPECT(said->self);
}

/* Answers whether anything has changed; what was said is forgotten. */
static inline bool judge(land *l)
{
    rl_mutex_lock(&l->c.mutex);
    bool changed = rl_slotmap_judge(&l->c, &l->said, &l->ch);
    rl_slotmap_publish(&l->c, &l->ch);
    rl_mutex_unlock(&l->c.mutex);
    rl_slotmap_reply_init(&l->said);
    return changed;
}

static inline land *begin(void)
{
    land *l = calloc(1, sizeof *l);
    EXPECT(l);
    l->c.o = (rl_cluster_options){.uri = &l->uri,
                                  .add = add_server,
                                  .nudge = note_nudge,
                                  .arg = l,
                                  .refreshes = &l->refreshes,
                                  .redirects = &l->redirects,
                                  .nodes = &l->nodes};
    rl_mutex_init(&l->c.mutex, RL_RANK_CLUSTER);
    rl_slotmap_init(&l->c);
    rl_slotmap_reply_init(&l->said);
    claim(l, "a", 1, 0, 5460);
    claim(l, "b", 2, 5461, 10922);
    claim(l, "c", 3, 10923, 16383);
    EXPECT(judge(l));
    return l;
}

static inline void end(land *l)
{
    for (unsigned i = 0; i < l->c.count; i++)
        free(l->c.server[i]);
    free(l->c.replica);
    rl_mutex_fini(&l->c.mutex);
    free(l);
}

/* Where a slot is asked about, and at which node. */
static inline const rl_server *asked(land *l, unsigned slot)
{
    unsigned number = l->c.owner[slot];
    return number ? l->c.server[number - 1] : NULL;
}

static inline const char *owner(land *l, unsigned slot)
{
    const rl_server *s = asked(l, slot);
    return s ? s->place.host : "";
}

static inline const char *node(land *l, unsigned slot)
{
    const rl_server *s = asked(l, slot);
    return s ? s->id : "";
}

static inline void moved(land *l, unsigned slot, const char *host, int port)
{
    l->c.redirects.moved(&l->c.redirects, slot, host, port);
}

static inline rl_server *server(land *l, const char *host)
{
    rl_mutex_lock(&l->c.mutex);
    rl_server *s = rl_slotmap_find(&l->c, host, 6379);
    rl_mutex_unlock(&l->c.mutex);
    return s;
}

#endif
