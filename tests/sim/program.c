/*
 * A world from its begin to its end: processes with their clients and handles,
 * the owners that use them, and that all is given back. Each process has a
 * client for each server, which is used for locks of all kinds.
 *
 * No faults are there while the program is built, unless it begins badly
 * (early), but that memory may be scarce; and none from the time on at which
 * all owners have ended, or 20 s have passed: so what is still to come has to
 * come.
 */
#include "program.h"

#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "outcome.h"

thing things[THINGS_MAX];
lock locks[LOCKS_MAX];
int things_n, locks_n;
program programs[PROCESSES_MAX];

/* --- what there is to be locked ------------------------------------------- */

static void add_thing(const char *name, bool is_red)
{
    lock *l = &locks[things_n];
    things[things_n] = (thing){.name = name, .is_red = is_red};
    if (!is_red)
        things[things_n].home = (int)chance_below(&w.dice, cfg.servers);
    snprintf(l->name, sizeof l->name, "%s", name);
    l->member[0] = things_n++;
    l->n = 1;
    l->has_red = is_red;
}

/* Of two things at least, in any order. */
static void add_multi(void)
{
    lock *l = &locks[locks_n++];
    unsigned left = (1u << things_n) - 1;
    int n = (int)chance_between(&w.dice, 2, things_n);
    size_t len = (size_t)snprintf(l->name, sizeof l->name, "multi");
    l->is_multi = true;
    while (l->n < n) {
        int t = (int)chance_below(&w.dice, things_n);
        if (!(left >> t & 1))
            continue;
        left &= ~(1u << t);
        l->member[l->n++] = t;
        l->has_red = l->has_red || things[t].is_red;
        len += (size_t)snprintf(l->name + len, sizeof l->name - len, " %s",
                                things[t].name);
    }
}

/* Two names whose keys differ by little, and whose channel is one. */
static void put_into_braces(int t, int of)
{
    snprintf(locks[t].name, sizeof locks[t].name, "{%s}", things[of].name);
    things[t].name = locks[t].name;
    things[t].home = things[of].home;
}

static void name_things(void)
{
    static const char *const singles[] = {"a", "b", "c"};
    static const char *const reds[] = {"r", "s"};
    for (int i = 0; i < cfg.singles; i++)
        add_thing(singles[i], false);
    if (cfg.braced && cfg.singles > 1)
        put_into_braces(1, 0);
    for (int i = 0; i < cfg.reds; i++)
        add_thing(reds[i], true);
    locks_n = things_n;
    for (int i = 0; i < cfg.multis && things_n > 1; i++)
        add_multi();
}

int key_beside(char *at, size_t room, const char *prefix, const char *name)
{
    const char *as = strchr(name, '{') ? "%s:%s" : "%s:{%s}";
    return snprintf(at, room, as, prefix, name);
}

int thing_of(const char *name)
{
    for (int i = 0; i < things_n; i++)
        if (strcmp(things[i].name, name) == 0)
            return i;
    return -1;
}

/* --- handles ------------------------------------------------------------- */

/* What has no options of its own. */
static bool is_plain(void)
{
    return !cfg.layout && !cfg.local_levels && !cfg.fair && !cfg.no_tokens &&
           cfg.plain;
}

/* What verbs ask for, at most. */
static int64_t longest_lease_ms(void)
{
    int64_t own = 2000 + cfg.lease_ms;
    return cfg.watchdog_ms > own ? cfg.watchdog_ms : own;
}

/* All who use a Red lock say the longest lease that any of them uses; they have
   to, where a node may forget one that another process has asked for. */
static rlock_status make_red(program *g, const thing *t, rlock **out)
{
    rlock_red_options o = RLOCK_RED_OPTIONS_INIT;
    if (is_plain() && (cfg.lease_pct + cfg.extend == 0 || cfg.wipe_ppm == 0))
        return rlock_red_new(g->client, (size_t)cfg.servers, t->name, out);
    o.longest_lease_ms = longest_lease_ms();
    o.check_uptime = cfg.uptime;
    if (cfg.layout == RLOCK_LAYOUT_STRING)
        o.layout = RLOCK_LAYOUT_STRING;
    return rlock_red_new_ex(g->client, (size_t)cfg.servers, t->name,
                            strlen(t->name), &o, out);
}

static rlock_status make_single(program *g, const thing *t, rlock **out)
{
    if (is_plain() && *t->name % 2)
        return rlock_new(g->client[t->home], t->name, out);
    if (is_plain())
        return rlock_new_n(g->client[t->home], t->name, strlen(t->name), out);
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    o.local_levels = cfg.local_levels;
    o.layout = (rlock_layout)cfg.layout;
    o.fair = cfg.fair == 1 || (cfg.fair == 2 && chance_below(&w.dice, 2));
    bool is_one = cfg.no_tokens == 2 && chance_below(&w.dice, 2);
    o.no_tokens = cfg.no_tokens == 1 || is_one;
    o.min_replicas = cfg.spelled ? (int)cfg.min_replicas : 0;
    return rlock_new_ex(g->client[t->home], t->name, strlen(t->name), &o, out);
}

static rlock_status make_multi(program *g, const lock *l, rlock **out)
{
    rlock *member[THINGS_MAX];
    for (int i = 0; i < l->n; i++)
        member[i] = g->handle[l->member[i]];
    return rlock_multi_new(member, (size_t)l->n, out);
}

static rlock_status make_handle(program *g, int lock, rlock **out)
{
    const thing *t = &things[lock];
    if (lock >= things_n)
        return make_multi(g, &locks[lock], out);
    return t->is_red ? make_red(g, t, out) : make_single(g, t, out);
}

rlock *program_make_handle(program *g, int lock)
{
    rlock *lk;
    rlock_status s;
    int64_t since = w.now;
    for (; (s = make_handle(g, lock, &lk)) != RLOCK_OK; since = w.now) {
        if (!judge_excuses(g, s, since))
            break;
        sleep_for(MS);
    }
    if (s)
        finding("no handle of %s: %s (%s)", locks[lock].name,
                rlock_status_str(s), rlock_last_error()->message);
    return lk;
}

static void name_process(int i)
{
    process *p = &programs[i].p;
    p->index = i;
    p->pid = 100 + i;
    p->base = chance_below(&w.dice, 100000 * S);
    p->drift_ppm = chance_between(&w.dice, -cfg.drift_ppm, cfg.drift_ppm);
    snprintf(p->host, sizeof p->host, "host%d", i);
}

/* Some servers come a little later. */
static void begin_badly(void)
{
    w.is_quiet = false;
    for (int i = 0; i < servers_n; i++)
        if (chance_below(&w.dice, 2))
            servers[i].down_until = w.now + chance_skewed(&w.dice, 3 * S);
}

static void build(void)
{
    for (int i = 0; i < cfg.processes; i++) {
        program *g = &programs[i];
        running->p = &g->p;
        for (int k = 0; k < cfg.servers; k++)
            client_make(g, k);
        if (cfg.used)
            use_clients(g);
        for (int k = 0; k < locks_n; k++)
            g->handle[k] = program_make_handle(g, k);
        if (cfg.latch)
            latch_make(g);
        if (cfg.rw)
            rw_make(g);
        if (cfg.permits)
            semaphore_make(g);
    }
}

/* --- the end -------------------------------------------------------------- */

static void close_clients(program *g)
{
    running->p = &g->p;
    g->closing_at = w.now;
    trace("-- the clients of process %d are closed", g->p.index);
    loops_stop(g);
    for (int k = 0; k < cfg.servers; k++) {
        unsigned flags = cfg.release_held ? RLOCK_CLOSE_RELEASE_HELD : 0;
        rlock_status s = RLOCK_OK;
        if (flags == 0 && cfg.plain)
            rlock_client_free(g->client[k]);
        else
            s = rlock_client_close(g->client[k], flags);
        trace("client of server %d: %s", k, rlock_status_str(s));
        judge_closed(g, k, s);
    }
    loops_closed(g);
    g->is_closed = true;
    wake_waiters(g, true);
}

static void free_handles(program *g)
{
    running->p = &g->p;
    for (int i = locks_n; i > 0; i--)
        rlock_free(g->handle[i - 1]);
    rlock_latch_free(g->gate);
    rlock_free(g->shared[0]);
    rlock_free(g->shared[1]);
    rlock_semaphore_free(g->pool);
}

/* In the middle of it all. */
static void *close_early(void *arg)
{
    program *g = arg;
    pthread_setname_np(pthread_self(), "closer");
    running->is_library = false;
    sleep_for(cfg.close_at_ms * MS);
    close_clients(g);
    return NULL;
}

static void be_quiet(event *e)
{
    (void)e;
    if (!w.is_quiet)
        trace("-- no faults from now on");
    w.is_quiet = true;
    w.is_scarce = false;
}

static bool have_replicas(void)
{
    for (int t = 0; t < things_n; t++)
        if (!things[t].is_red &&
            replicas_backing(server_in_office(things[t].home, things[t].name)) <
                cfg.min_replicas)
            return false;
    return true;
}

/* A master that has died is back as a replica after up to 15 seconds. */
static void await_replicas(void)
{
    for (int i = 0; i < 20 && !have_replicas(); i++)
        sleep_for(S);
}

/*
 * Judge 15: all is well again, and nothing is held: so each lock can be had, by
 * whoever has a client. (Nodes of a Red lock that have restarted may give no
 * vote for a lease yet, from when that is noticed.)
 */
static void check_health(program *g)
{
    int64_t lease_ms = 2 * longest_lease_ms();
    int64_t wait_ms = lease_ms > 20000 ? lease_ms : 20000;
    running->p = &g->p;
    for (int i = 0; i < locks_n && !g->closing_at; i++) {
        if (locks[i].has_red)
            continue;
        rlock_status s = rlock_acquire(g->handle[i], wait_ms, 1000);
        if (s != RLOCK_OK)
            finding("judge 15: all is well, but process %d cannot have %s: %s "
                    "(%s)",
                    g->p.index, locks[i].name, rlock_status_str(s),
                    rlock_last_error()->message);
        s = rlock_unlock(g->handle[i]);
        if (s != RLOCK_OK)
            finding("judge 15: all is well, but process %d cannot unlock %s: "
                    "%s (%s)",
                    g->p.index, locks[i].name, rlock_status_str(s),
                    rlock_last_error()->message);
    }
}

static void give_all_back(void)
{
    for (int i = 0; i < cfg.processes; i++) {
        program *g = &programs[i];
        if (g->is_dead)
            continue;
        if (!g->is_closed)
            close_clients(g);
        free_handles(g);
    }
    running->p = &programs[0].p;
    sleep_for(3700 * S); /* longer than tokens are kept */
    w.is_on = false;
    judge_ended();
}

void program_run(void)
{
    pthread_t closer = 0;
    static event quiet = {.fire = be_quiet};
    chance_init(&w.dice, (uint64_t)cfg.dice);
    w.until = BEGIN + 6000 * S;
    w.is_quiet = true;
    w.is_scarce = cfg.scarce_ppm > 0;
    for (int i = 0; i < cfg.processes; i++)
        name_process(i);
    servers_begin();
    name_things();
    threads_begin(&programs[0].p);
    if (cfg.early)
        begin_badly();
    build();
    w.is_quiet = cfg.calm;
    event_set(&quiet, w.now + 20 * S);
    owners_start();
    loops_start();
    running->p = &programs[0].p;
    death_begin();
    if (cfg.close_at_ms > 0)
        closer = program_thread(close_early, &programs[0]);
    owners_join();
    loops_join();
    trace("-- all owners have ended");
    be_quiet(NULL);
    outcome->simulated_ns = w.now - BEGIN;
    if (cfg.close_at_ms > 0)
        pthread_join(closer, NULL);
    sleep_for(10 * S); /* losses are told */
    await_replicas();
    for (int i = 0; i < cfg.processes; i++)
        check_health(&programs[i]);
    give_all_back();
}
