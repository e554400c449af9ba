/*
 * What happens to a cluster: slots that move, at once or key by key, and nodes
 * that say that it is down.
 */
#include <string.h>

#include "cluster.h"
#include "judge.h"

migration moving = {.slot = -1};
int64_t keys_came[NODES_MAX];

/* --- slots that move ------------------------------------------------------ */

static void take_key(server *from, server *to, entry *e)
{
    word key = {e->key.at, e->key.len};
    entry *there = store_find(&to->store, &key);
    if (there)
        store_remove(&to->store, there);
    entry *copy = store_add(&to->store, &key, e->kind);
    copy->expires_ms = e->expires_ms;
    text_add(&copy->value, e->value.at, e->value.len);
    for (size_t i = 0; i < e->count; i++) {
        word name = {e->items[i].name.at, e->items[i].name.len};
        item *x = entry_add(copy, &name, e->items[i].score);
        text_add(&x->value, e->items[i].value.at, e->items[i].value.len);
    }
    store_remove(&from->store, e);
    from->store.changes++;
    to->store.changes++;
}

/* Up to so many keys; how many were moved. */
static int take_keys(server *from, server *to, int slot, int most)
{
    int n = 0;
    server_set_clock(from);
    server_set_clock(to);
    for (size_t b = 0; b < STORE_BUCKETS; b++)
        for (entry *e = from->store.bucket[b], *next; e && n < most; e = next) {
            next = e->next;
            word key = {e->key.at, e->key.len};
            if (slot_of(&key) != slot || !store_find(&from->store, &key))
                continue;
            take_key(from, to, e);
            n++;
        }
    if (n > 0) {
        keys_came[to->index] = w.now;
        replicas_send(to);
        replicas_send(from);
    }
    return n;
}

static void give(int slot, int from, int to)
{
    truth.owner[slot] = (unsigned char)to;
    truth.node[to].epoch = map_new_epoch();
    map_tell(to);
    map_tell(from);
    map_gossip();
}

static bool can_move(int from, int to)
{
    return from != to && truth.node[to].master < 0 && !servers[to].master &&
           server_is_up(&servers[to]) && server_is_up(&servers[from]) &&
           !servers[from].master;
}

/* A slot that is used, and where it could go. */
static bool draw_move(int *slot, int *from, int *to)
{
    const char *name = things[chance_below(&w.dice, things_n)].name;
    word key = {name, strlen(name)};
    *slot = slot_of(&key);
    *from = truth.owner[*slot];
    *to = (int)chance_below(&w.dice, servers_n);
    return moving.slot < 0 && !cluster_is_changing() && can_move(*from, *to);
}

static void move_slot(void)
{
    int slot, from, to;
    if (!draw_move(&slot, &from, &to))
        return;
    int n = take_keys(&servers[from], &servers[to], slot, 1000);
    trace("slot %d moves with %d keys from server %d to %d", slot, n, from, to);
    give(slot, from, to);
}

static void move_on(event *e)
{
    int from = moving.from, to = moving.to;
    server *s = &servers[from], *t = &servers[to];
    (void)e;
    event_set(&moving.next, w.now + MS + chance_skewed(&w.dice, 20 * MS));
    if (!can_move(from, to))
        return; /* goes on when both are there again */
    int n = take_keys(s, t, moving.slot, 1);
    if (n > 0) {
        trace("a key of slot %d moves from server %d to %d", moving.slot, from,
              to);
        return;
    }
    trace("slot %d is moved from server %d to %d", moving.slot, from, to);
    event_clear(&moving.next);
    give(moving.slot, from, to);
    moving.slot = -1;
}

static void migrate_slot(void)
{
    int slot, from, to;
    if (!draw_move(&slot, &from, &to))
        return;
    trace("slot %d begins to move from server %d to %d", slot, from, to);
    moving.slot = slot;
    moving.from = from;
    moving.to = to;
    moving.next.fire = move_on;
    event_set(&moving.next, w.now + chance_skewed(&w.dice, 500 * MS));
}

/* --- nodes that serve nothing --------------------------------------------- */

static void refuse_all(void)
{
    int64_t ns = chance_skewed(&w.dice, cfg.unserved_us * US);
    int one = (int)chance_below(&w.dice, 2 * servers_n);
    trace("the cluster is down for %lld us", (long long)(ns / US));
    for (int i = 0; i < servers_n; i++)
        if (one >= servers_n || i == one)
            cluster_refuse_until(i, w.now + ns);
}

/* --- all of them ---------------------------------------------------------- */

static const struct {
    const int64_t *ppm;
    void (*strike)(void);
} faults[] = {
    {&cfg.move_ppm, move_slot},
    {&cfg.migrate_ppm, migrate_slot},
    {&cfg.unserved_ppm, refuse_all},
    {&cfg.death_ppm, cluster_kill},
    {&cfg.takeover_ppm, cluster_take_over},
    {&cfg.places_ppm, cluster_change_places},
    {&cfg.anew_ppm, cluster_make_anew},
    {&cfg.swap_ppm, cluster_swap},
};

void cluster_strike(void)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (fault_is_due(*faults[i].ppm))
            faults[i].strike();
}
