#include "nemesis.h"

#include <stdio.h>
#include <string.h>

#include "harm.h"
#include "locks.h"

enum { LOCK_TRIES = 300, STRIKES = 5 };

void fault_label(const fault *f, char label[FAULT_LABEL_MAX])
{
    const char *name = nemesis_kinds[f->kind].name;
    char lock[LOCK_LABEL_MAX];
    size_t n = (size_t)snprintf(label, FAULT_LABEL_MAX, "%s", name);
    if (f->proc >= 0)
        n += (size_t)snprintf(label + n, FAULT_LABEL_MAX - n, " (worker %d)",
                              f->proc);
    if (f->lock >= 0) {
        lock_label(f->lock, lock);
        snprintf(label + n, FAULT_LABEL_MAX - n, " (%s)", lock);
        return;
    }
    if (nemesis_kinds[f->kind].where == EVERYWHERE)
        return;
    for (int i = 1; i < SERVERS; i++)
        if (f->servers & 1U << i)
            n += (size_t)snprintf(label + n, FAULT_LABEL_MAX - n, " (node %d)",
                                  i);
}

bool nemesis_choose(nemesis *n, const char *name)
{
    int kind = 0;
    while (kind < nemesis_n_kinds && strcmp(nemesis_kinds[kind].name, name))
        kind++;
    if (kind < nemesis_n_kinds)
        n->kinds[n->n_kinds++] = kind;
    return kind < nemesis_n_kinds;
}

bool nemesis_fits(int kind, home_kind home)
{
    unsigned homes = nemesis_kinds[kind].homes;
    return (homes ? homes : 1U << ALONE) & 1U << home;
}

void nemesis_choose_all(nemesis *n, home_kind home)
{
    for (int kind = 0; kind < nemesis_n_kinds; kind++)
        if (nemesis_fits(kind, home))
            n->kinds[n->n_kinds++] = kind;
}

static int deal(nemesis *n)
{
    if (n->left == 0) {
        memcpy(n->deck, n->kinds, sizeof n->deck);
        n->left = n->n_kinds;
    }
    int at = attack_pick(&n->deck_rng, n->left), kind = n->deck[at];
    n->deck[at] = n->deck[--n->left];
    return kind;
}

/* One lock after another, until it is one that is held. */
static bool inject_into_a_lock(nemesis *n, const nemesis_kind *k, fault *f)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        f->lock = attack_pick(&n->rng, FIRST_RED);
        f->servers = lock_servers(f->lock);
        f->emptied = k->loses_data ? f->servers : 0;
        f->began_us = attack_now_us();
        if (atomic_load(&n->a->locks[f->lock].inside) && k->inject(n, f))
            return true;
        pause_ms(1);
    }
    return false;
}

/* Different nodes of the first so many. */
static unsigned some_nodes(nemesis *n, int wanted, int of)
{
    unsigned nodes = 0;
    while (servers_count(nodes) < wanted)
        nodes |= 1U << (1 + attack_pick(&n->rng, of));
    return nodes;
}

static unsigned servers_at(nemesis *n, nemesis_where where)
{
    switch (where) {
    case AT_A_NODE:
        return some_nodes(n, 1, NODES);
    case AT_TWO_NODES:
        return some_nodes(n, 2, 3);
    case AT_MOST_NODES:
        return some_nodes(n, NODES / 2 + 1, NODES);
    case EVERYWHERE:
        return (1U << SERVERS) - 1;
    default:
        return 1U << HOME;
    }
}

/* One of them, if there are several. */
static server *some_master(nemesis *n)
{
    server *masters[MASTERS_MAX];
    int count = home_masters(n->home, masters);
    return masters[attack_pick(&n->rng, count)];
}

/*
 * Whatever was done may have made another server the master. It is over when
 * that one can go, too; and without acknowledgement by replicas what had been
 * granted last may be lost.
 */
static bool inject(nemesis *n, const nemesis_kind *k, fault *f)
{
    int64_t term = home_term(n->home);
    bool done = k->of_a_lock ? inject_into_a_lock(n, k, f) : k->inject(n, f);
    home_await_health(n->home);
    if (home_term(n->home) != term && n->a->min_replicas == 0)
        f->emptied |= 1U << HOME;
    return done;
}

static bool strike(nemesis *n, int kind)
{
    fault f = {.kind = kind, .proc = -1, .lock = -1};
    const nemesis_kind *k = &nemesis_kinds[f.kind];
    if (k->of_a_process)
        f.proc = attack_pick(&n->rng, PROCS);
    f.servers = servers_at(n, k->where);
    f.emptied = k->loses_data ? f.servers : 0;
    home_await_health(n->home);
    n->sv[HOME] = some_master(n);
    f.began_us = attack_now_us();
    f.done = inject(n, k, &f);
    f.ended_us = attack_now_us();
    n->a->faults[n->a->n_faults++] = f;
    return f.done;
}

/* It may have found nothing to harm, such as a call of that kind. */
void nemesis_strike(nemesis *n)
{
    int kind = deal(n);
    /* From the deck, not from what the last fault has left: how often that had
       to try is not in the seed. */
    n->rng = attack_random(&n->deck_rng);
    for (int i = 0; i < STRIKES && n->a->n_faults < FAULTS_MAX; i++)
        if (strike(n, kind))
            return;
}
