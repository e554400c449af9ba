/*
 * Processes and their clients: an engine of the library's each, with its real
 * core, around which the threads are played; and the pool, which plays
 * route/pool.c without a limit.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "judge.h"
#include "owner.h"
#include "world.h"

#define TRUSTED_IDLE_US (1 * S)
#define MOST_OWED       64

int64_t process_now(const process *p)
{
    return clock_at(&p->clock, p->w->now_us);
}

int64_t client_now(const client *c)
{
    return process_now(c->p);
}

/* --- the pool ------------------------------------------------------------- */

static bool is_good(conn *k)
{
    client *c = k->of;
    bool trusted = k->c.rested_us > c->last_trouble_us &&
                   client_now(c) - k->c.rested_us < TRUSTED_IDLE_US;
    return trusted || !conn_is_stale(k);
}

static bool may_use(const conn *k, bool owing)
{
    if (!owing)
        return k->c.line.pending == 0;
    return !k->c.line.retired && k->c.line.pending < MOST_OWED &&
           (k->c.known || !atomic_load(&k->of->e.core.identity.wanted));
}

static conn *find(client *c, const void *behind, bool owing)
{
    conn *first = NULL;
    for (rl_link *l = rl_list_first(&c->idle); l;
         l = rl_list_next(&c->idle, l)) {
        conn *k = conn_of(RL_CONTAINER(l, rl_conn, idle));
        if (!may_use(k, owing))
            continue;
        if (&k->c.line == behind)
            return k;
        if (!first)
            first = k;
    }
    return first;
}

/* One that is idle, and, unless owing, owes nothing; or NULL. */
conn *pool_take(client *c, const void *behind, bool owing)
{
    conn *k;
    while ((k = find(c, behind, owing)) != NULL) {
        rl_list_remove(&k->c.idle);
        if (is_good(k) && (k->c.line.pending == 0 || conn_receive(k)))
            return k;
        pool_give_back(c, k);
    }
    return NULL;
}

void pool_give_back(client *c, conn *k)
{
    k->user = NULL;
    if (rl_line_is_spent(&k->c.line)) {
        if (conn_is_broken(k))
            c->last_trouble_us = client_now(c);
        conn_close(k);
        return;
    }
    k->c.rested_us = client_now(c);
    rl_list_add_first(&c->idle, &k->c.idle);
}

void pool_close(client *c)
{
    rl_link *l;
    while ((l = rl_list_first(&c->idle)) != NULL) {
        rl_list_remove(l);
        conn_close(conn_of(RL_CONTAINER(l, rl_conn, idle)));
    }
}

/* --- clients -------------------------------------------------------------- */

static void on_event(const rlock_event *ev, void *arg)
{
    client *c = arg;
    if (ev->type != RLOCK_EVENT_CONTENDED)
        return;
    trace(c->w, "process %u waits for %s", c->p->index, ev->name);
    owner_contends(c);
}

static void ref_home(rl_home *home)
{
    RL_CONTAINER(home, client, handle.home)->homes++;
}

static void unref_home(rl_home *home)
{
    RL_CONTAINER(home, client, handle.home)->homes--;
}

static bool tell_home(rl_home *home, const rlock_event *ev)
{
    client *c = RL_CONTAINER(home, client, handle.home);
    rl_tell(&c->e.core, ev);
    return true;
}

static void fill_settings(client *c)
{
    rl_settings *set = &c->e.core.set;
    const config *from = &c->w->set;
    *set = (rl_settings){.connect_timeout_ms = from->timeout_ms,
                         .command_timeout_ms = from->timeout_ms,
                         .watchdog_lease_ms = from->watchdog_ms,
                         .turn_us = from->turn_ms * MS,
                         .redisson_channel = from->redisson,
                         .on_event = on_event,
                         .event_arg = c};
    snprintf(set->process, sizeof set->process, "p%u:%u", c->p->index,
             c->p->index);
}

/* What rlock_client_new() learns from its probe. */
static void meet_server(client *c)
{
    server *s = c->s;
    int64_t uptime_s = (server_now(s) - s->store.started_us) / S;
    rl_item told[2] = {{.type = REDIS_REPLY_STRING,
                        .str = s->store.run_id,
                        .len = strlen(s->store.run_id)},
                       {.type = REDIS_REPLY_INTEGER, .integer = uptime_s}};
    rl_identity_note(&c->e.core.identity, told, client_now(c));
    if (c->w->set.red)
        atomic_store(&c->e.core.identity.wanted, true);
}

static void fill_core(client *c)
{
    rl_core *core = &c->e.core;
    rl_uuid id;
    fill_settings(c);
    core->server = "a server";
    rl_uuid_new(&id);
    strcpy(core->bell, RL_BELL_PREFIX);
    rl_uuid_write(&id, core->bell + strlen(RL_BELL_PREFIX));
    rl_identity_init(&core->identity);
    if (!rl_holds_init(&core->holds, &core->stats, core->set.process,
                       core->set.watchdog_lease_ms, c->w->set.max_hold_ms,
                       true) ||
        !rl_rooms_init(&core->rooms) || !rl_longest_init(&core->longest))
        die("out of memory");
    c->handle.home = (rl_home){.ref = ref_home,
                               .unref = unref_home,
                               .tell = tell_home,
                               .has_on_event = true,
                               .stats = &core->stats};
}

/* The handle itself is never freed, and its threads are always there. */
static void fill_handle(client *c)
{
    c->handle.pid = getpid();
    atomic_init(&c->handle.refs, 1);
    atomic_store(&c->e.started, true);
    rl_mutex_init(&c->handle.mutex);
    rl_cond_init(&c->handle.idle);
}

void client_open(process *p, server *s, client *c)
{
    memset(c, 0, sizeof *c);
    c->w = p->w;
    c->p = p;
    c->s = s;
    rl_list_init(&c->idle);
    fill_core(c);
    fill_handle(c);
    meet_server(c);
    keeper_open(c);
    notifier_open(c);
    doorbell_open(c);
    closer_open(c);
}

/* What goes on ends; holds of one lock refer to several clients. */
void client_end(client *c)
{
    keeper_close(c);
    notifier_close(c);
    doorbell_close(c);
    conn_close(c->trial);
    pool_close(c);
}

void client_fini(client *c)
{
    rl_core *core = &c->e.core;
    rl_rooms_fini(&core->rooms, false);
    rl_longest_fini(&core->longest, false);
    rl_holds_fini(&core->holds, false);
    rl_identity_fini(&core->identity);
}

static void client_close(client *c)
{
    if (c->stage != CLIENT_CLOSED) {
        judge_client(c);
        client_fini(c);
    }
    closer_close(c);
    rl_cond_fini(&c->handle.idle);
    rl_mutex_fini(&c->handle.mutex);
}

/* --- processes ------------------------------------------------------------ */

process *process_open(world *w, unsigned index)
{
    process *p = need_memory(sizeof *p);
    p->w = w;
    p->index = index;
    p->clock.base_us = chance_between(&w->chance, 1000 * S, 100000 * S);
    p->clock.since_us = w->now_us;
    p->clock.drift_ppm =
        chance_between(&w->chance, -w->set.drift_ppm, w->set.drift_ppm);
    if (w->set.wild_ppm > 0 && chance_ppm(&w->chance, 400000)) {
        p->clock.drift_ppm =
            chance_ppm(&w->chance, 700000) ? -w->set.wild_ppm : w->set.wild_ppm;
        p->clock_broke = true;
        trace(w, "process %u: its clock drifts by %lld in a million", index,
              (long long)p->clock.drift_ppm);
    }
    for (size_t i = 0; i < w->set.servers; i++)
        client_open(p, &w->server[i], &p->client[i]);
    for (size_t i = 0; i < w->set.owners; i++)
        p->owner[p->owners++] = owner_open(p, (unsigned)i);
    return p;
}

/* Its owners are gone, from rooms where some of them still waited. */
static void cut_short(client *c)
{
    rl_rooms *rooms = &c->e.core.rooms;
    rl_rooms_fini(rooms, false);
    rl_rooms_init(rooms);
    client_end(c);
}

void process_close(process *p)
{
    for (size_t i = 0; i < p->owners; i++)
        owner_close(p->owner[i]);
    for (size_t i = 0; i < p->w->set.servers; i++)
        if (p->client[i].stage != CLIENT_CLOSED)
            cut_short(&p->client[i]);
    for (size_t i = 0; i < p->w->set.servers; i++)
        client_close(&p->client[i]);
    free(p);
}

void process_stop(process *p, int64_t us)
{
    trace(p->w, "process %u stands still for %lld us", p->index, (long long)us);
    p->paused_us = p->w->now_us + us;
    p->resumed_us = p->paused_us;
}

/*
 * It is cut off, for good, from everybody, and lives on for itself: so it winds
 * down all it has, as nothing else would free it. What it said before may still
 * arrive. Its host may be gone with it, or close its connections.
 */
void process_die(process *p)
{
    world *w = p->w;
    bool quietly = chance_ppm(&w->chance, 300000);
    trace(w, "process %u dies%s", p->index, quietly ? ", and its host" : "");
    for (rl_link *k = rl_list_first(&w->conns); k;
         k = rl_list_next(&w->conns, k)) {
        conn *c = RL_CONTAINER(k, conn, all);
        if (c->of->p != p)
            continue;
        if (!quietly)
            conn_cut(c);
        c->silent = true;
    }
    p->is_dead = true;
    for (size_t i = 0; i < p->owners; i++)
        owner_dies(p->owner[i]);
}
