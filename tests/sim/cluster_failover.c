/*
 * Masters of a cluster that are replaced: one that dies, and whose replica is
 * promoted when the others have noticed; one that lives, and whose replica is
 * told to take over, or to change places with it once it has all. A cluster
 * that is made anew at its addresses, and two masters that change theirs.
 *
 * What a replica did not have is lost. Only one of these happens at a time.
 */
#include <string.h>

#include "change.h"
#include "cluster.h"
#include "judge.h"

bool cluster_is_changing(void)
{
    return change.is_on;
}

/* A master that is there, and its replica that is as well. */
static bool draw_heir(void)
{
    int old = (int)chance_below(&w.dice, servers_n);
    if (change.is_on || moving.slot >= 0 || truth.node[old].master >= 0 ||
        !server_is_up(&servers[old]) || servers[old].master)
        return false;
    for (int i = 0; i < servers_n; i++)
        if (truth.node[i].master == old && server_is_up(&servers[i]) &&
            replica_is_synced(&servers[i])) {
            change_begin(old, i);
            return true;
        }
    return false;
}

/* What a slot has brought no replica may have yet, of whatever was granted. */
static bool keys_have_just_come(void)
{
    int64_t came = keys_came[change.old];
    return came > 0 && change.began - came <= cfg.lag_us * US + S / 10;
}

/* What it is granted, if that has to be with a replica, is there; unless that
   one has lost it meanwhile. */
static void note_loss(int64_t until)
{
    unsigned which = judge_things_at(change.old);
    int64_t took = w.now - change.began;
    if (cfg.min_replicas == 0 || keys_have_just_come() ||
        !replica_is_synced(&servers[change.heir]))
        judge_shake(which, change.began, until);
    judge_replaced(which, until, took / 20);
}

static void promote(void)
{
    int old = change.old, heir = change.heir;
    trace("server %d is the master in place of %d", heir, old);
    for (int k = 0; k < SLOTS; k++)
        if (truth.owner[k] == old)
            truth.owner[k] = (unsigned char)heir;
    truth.node[heir].master = -1;
    truth.node[heir].epoch = map_new_epoch();
    truth.node[old].master = heir;
    for (int i = 0; i < servers_n; i++)
        if (truth.node[i].master == old)
            truth.node[i].master = heir;
    map_tell(heir);
    map_gossip();
}

/* --- one that dies -------------------------------------------------------- */

static void rejoin(event *e)
{
    (void)e;
    truth.node[change.old].has_failed = false;
    map_tell(change.old);
    map_gossip();
    change_then(change_settled, S);
}

/* It believes what it did when it died, but serves nothing for a while. */
static void come_back(event *e)
{
    int64_t ns = 50 * MS + chance_skewed(&w.dice, cfg.gossip_us * US);
    (void)e;
    server_start(&servers[change.old]);
    cluster_refuse_until(change.old, w.now + ns + MS);
    change_then(rejoin, ns);
}

static void replace(event *e)
{
    (void)e;
    note_loss(w.now);
    truth.node[change.old].has_failed = true;
    promote();
    change_then(come_back, 50 * MS + chance_skewed(&w.dice, 4 * S));
}

/* The others know that it is dead; who insists on all slots serves none. */
static void notice(event *e)
{
    int64_t ns = 20 * MS + chance_skewed(&w.dice, 500 * MS);
    bool serves = chance_below(&w.dice, 2);
    (void)e;
    trace("server %d is known to be dead", change.old);
    for (int i = 0; i < servers_n; i++) {
        if (i == change.old)
            continue;
        views[i].node[change.old].has_failed = true;
        if (!serves)
            cluster_refuse_until(i, w.now + ns);
    }
    change_then(replace, ns);
}

void cluster_kill(void)
{
    if (!draw_heir())
        return;
    judge_trouble();
    server_kill(&servers[change.old], chance_below(&w.dice, 2));
    change_then(notice, 20 * MS + chance_skewed(&w.dice, cfg.failover_us * US));
}

/* --- one that lives ------------------------------------------------------- */

static void step_down(event *e)
{
    (void)e;
    map_tell(change.old);
    change_then(change_settled, S);
}

/* It grants on until it hears of it. */
void cluster_take_over(void)
{
    if (!draw_heir())
        return;
    int64_t ns = MS + chance_skewed(&w.dice, cfg.gossip_us * US);
    judge_trouble();
    trace("server %d takes over", change.heir);
    note_loss(w.now + ns);
    promote();
    change_then(step_down, ns);
}

void cluster_change_places(void)
{
    if (!draw_heir())
        return;
    judge_trouble();
    replica_catch_up(&servers[change.heir]);
    judge_replaced(judge_things_at(change.old), w.now, 0);
    promote();
    map_tell(change.old);
    change_then(change_settled, S);
}

/* --- all of them ---------------------------------------------------------- */

static bool all_are_up(void)
{
    for (int i = 0; i < servers_n; i++)
        if (!server_is_up(&servers[i]))
            return false;
    return !change.is_on && moving.slot < 0;
}

void cluster_make_anew(void)
{
    int turn = 1 + (int)chance_below(&w.dice, MASTERS - 1);
    if (!all_are_up())
        return;
    judge_trouble();
    trace("the cluster is made anew");
    for (int k = 0; k < SLOTS; k++)
        truth.owner[k] =
            (unsigned char)((k * MASTERS / SLOTS + turn) % MASTERS);
    for (int i = 0; i < servers_n; i++)
        truth.node[i].master = i < MASTERS ? -1 : i % MASTERS;
    map_name_nodes();
    judge_shake(~0u, w.now, w.now);
    for (int i = 0; i < servers_n; i++) {
        store_clear(&servers[i].store);
        server_restart(&servers[i], 50 * MS);
        map_tell(i);
    }
    /* It is believed at the third asking; they are up to 2 s apart. */
    judge_replaced(~0u, w.now + 50 * MS, 10 * S);
    change.is_on = true;
    change_then(change_settled, 5 * S);
}

void cluster_swap(void)
{
    int a = (int)chance_below(&w.dice, servers_n);
    int b = (int)chance_below(&w.dice, servers_n);
    if (!all_are_up() || a == b || truth.node[a].master >= 0 ||
        truth.node[b].master >= 0)
        return;
    judge_trouble();
    trace("servers %d and %d change their addresses", a, b);
    int port = servers[a].port;
    servers[a].port = truth.node[a].port = servers[b].port;
    servers[b].port = truth.node[b].port = port;
    for (int i = 0; i < servers_n; i++) {
        views[i].node[a].port = i == a ? servers[a].port : 0;
        views[i].node[b].port = i == b ? servers[b].port : 0;
    }
    server_restart(&servers[a], chance_skewed(&w.dice, 500 * MS));
    server_restart(&servers[b], chance_skewed(&w.dice, 500 * MS));
    map_gossip();
    change.is_on = true;
    change_then(change_settled, 5 * S);
}
