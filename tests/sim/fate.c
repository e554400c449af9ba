/*
 * What a seed is about, and what goes wrong in its world. A third of the seeds
 * are calm: nothing goes wrong there, and what is bounded is bounded tightly.
 * The others draw which faults there are, and how often each comes.
 */
#include <stdio.h>
#include <string.h>

#include "owner.h"
#include "world.h"

const char *const fault_names[FAULTS] = {
    "cut",     "freeze", "silence", "pause",  "restart",  "rollback",
    "wipe",    "flush",  "memory",  "step",   "delete",   "deaf",
    "refusal", "oddity", "foreign", "stop",   "scarcity", "death",
    "cancel",  "force",  "ending",  "closing"};

/* --- the seed ------------------------------------------------------------- */

static void draw_size(config *c, chance *dice)
{
    c->processes = (size_t)chance_between(dice, 2, 6);
    c->owners = (size_t)chance_between(dice, 1, 3);
    if (chance_ppm(dice, 20000)) { /* a crowd */
        c->processes = (size_t)chance_between(dice, 20, 60);
        c->owners = 1;
    }
    c->names = (size_t)chance_between(dice, 1, 3);
    c->servers = chance_ppm(dice, 800000) ? 1 : 2;
    if (chance_ppm(dice, 250000)) {
        c->red = true;
        c->servers = chance_ppm(dice, 700000) ? 3 : 5;
        c->names = (size_t)chance_between(dice, 1, 2);
    } else if (chance_ppm(dice, 350000)) {
        c->multi = true;
        c->servers = (size_t)chance_between(dice, 1, 3);
        c->names = (size_t)chance_between(dice, 2, NAMES_MAX);
    }
    c->steps = chance_between(dice, 250, 2000) * (int64_t)c->processes;
}

static void draw_times(config *c, chance *dice)
{
    static const int64_t leases_ms[] = {100, 300, 1000, 3000, 30000};
    c->watchdog_ms = leases_ms[chance_below(dice, 5)];
    c->timeout_ms = chance_between(dice, 30, 3000);
    c->delay_us = 20 + chance_skewed(dice, c->calm ? 2 * MS : 10 * MS);
    c->latency_us = 10 + chance_skewed(dice, c->calm ? 500 : 5 * MS);
    c->think_us = 100 + chance_skewed(dice, c->watchdog_ms * MS / 2);
    if (chance_ppm(dice, 200000))
        c->max_hold_ms = c->watchdog_ms * chance_between(dice, 1, 5);
    c->redisson = chance_ppm(dice, 150000);
    c->pieces = chance_ppm(dice, 300000);
    c->drift_ppm = chance_ppm(dice, 500000) ? 4000 : 0;
}

static void draw_faults(config *c, chance *dice)
{
    int64_t mood = chance_between(dice, 1, 6);
    if (chance_ppm(dice, 500000)) {
        c->tail_ppm = chance_skewed(dice, 50000);
        /* A tombstone stops what was under way for 60 s, and no longer. */
        c->tail_us =
            chance_skewed(dice, rl_min(c->watchdog_ms * 3 * MS, 50 * S)) + 1;
    }
    if (chance_ppm(dice, 400000)) {
        c->stall_ppm = chance_skewed(dice, 20000);
        c->stall_us = chance_skewed(dice, c->watchdog_ms * 2 * MS) + 1;
    }
    for (int i = 0; i < FAULTS; i++)
        if (chance_below(dice, 10) < mood)
            c->fault_ppm[i] = 1 + chance_skewed(dice, 4000);
    /* Whose client is closed can do nothing any more. */
    c->fault_ppm[FAULT_CLOSING] /= 8;
    if (chance_ppm(dice, 80000))
        c->wild_ppm = chance_between(dice, 12000, 300000);
}

/* Threads of some seeds' processes pass their locks on. */
static void draw_turns(config *c, uint64_t seed)
{
    static const int64_t turns_ms[] = {1, 20, 200, 1000};
    chance dice;
    chance_init(&dice, seed ^ UINT64_C(0x74726e));
    if (chance_ppm(&dice, 250000))
        c->turn_ms = turns_ms[chance_below(&dice, 4)];
}

/* In some, the program's on_event holds its notifiers up. */
static void draw_events(config *c, uint64_t seed)
{
    chance dice;
    chance_init(&dice, seed ^ UINT64_C(0x65766e74));
    if (c->calm || !chance_ppm(&dice, c->red ? 500000 : 100000))
        return;
    c->event_ppm = chance_between(&dice, 1, 300000);
    c->event_us = chance_between(&dice, 1, c->watchdog_ms * 6 * MS);
}

/*
 * Some seeds are about threads of one process that want one lock all the time,
 * and about what becomes of a hand-over between them.
 */
static void draw_family(config *c, uint64_t seed)
{
    chance dice;
    chance_init(&dice, seed ^ UINT64_C(0xfa313));
    if (!chance_ppm(&dice, 120000))
        return;
    c->processes = (size_t)chance_between(&dice, 1, 2);
    c->owners = OWNERS_MAX;
    c->servers = c->names = 1;
    c->red = c->multi = false;
    c->steps = chance_between(&dice, 1000, 4000);
    c->timeout_ms = chance_between(&dice, 30, 200);
    c->think_us = 100 + chance_skewed(&dice, 5 * MS);
    /* So that many have it in a row. But no turns: their tokens are ahead of
       the clock, for longer than it takes to lose data and to go on. */
    if (chance_ppm(&dice, 200000)) {
        c->is_quick = true;
        c->delay_us = c->latency_us = 5;
        c->think_us = 10;
        c->turn_ms = 0;
    }
    if (c->calm)
        return;
    c->fault_ppm[FAULT_CUT] = chance_skewed(&dice, 8000);
    c->fault_ppm[FAULT_FREEZE] = chance_skewed(&dice, 8000);
    c->fault_ppm[FAULT_CANCEL] = chance_skewed(&dice, 20000);
}

/*
 * In some worlds nothing goes wrong but that servers restart, mostly without
 * their data: there it is known how soon that has to be noticed.
 */
static void draw_wiped(config *c, uint64_t seed)
{
    chance dice;
    chance_init(&dice, seed ^ UINT64_C(0x317ed));
    if (c->calm || !chance_ppm(&dice, 60000))
        return;
    c->wiped = true;
    memset(c->fault_ppm, 0, sizeof c->fault_ppm);
    c->tail_ppm = c->stall_ppm = c->stall_us = c->wild_ppm = 0;
    c->fault_ppm[FAULT_WIPE] = 1 + chance_skewed(&dice, 2000);
    c->fault_ppm[FAULT_RESTART] = chance_skewed(&dice, 1000);
    c->watchdog_ms = chance_ppm(&dice, 500000) ? 30000 : 3000;
    c->timeout_ms = chance_between(&dice, 1000, 3000);
    c->delay_us = 20 + chance_skewed(&dice, 2 * MS);
    c->latency_us = 10 + chance_skewed(&dice, 500);
    c->think_us = 100 + chance_skewed(&dice, c->watchdog_ms * MS / 2);
}

void config_draw(config *c, uint64_t seed)
{
    chance dice;
    chance_init(&dice, seed ^ UINT64_C(0x5eed));
    *c = (config){.calm = chance_ppm(&dice, 333333)};
    draw_size(c, &dice);
    draw_times(c, &dice);
    if (!c->calm)
        draw_faults(c, &dice);
    draw_turns(c, seed);
    draw_events(c, seed);
    draw_family(c, seed);
    draw_wiped(c, seed);
    c->steps_back_us = c->fault_ppm[FAULT_STEP] > 0 ? 100 * S : 0;
    /* A cancel is no fault: who waits behind it must not feel it. */
    if (c->calm && chance_ppm(&dice, 700000))
        c->fault_ppm[FAULT_CANCEL] = 1 + chance_skewed(&dice, 8000);
    /* Nor is the end of a thread. */
    if (c->calm && chance_ppm(&dice, 300000))
        c->fault_ppm[FAULT_ENDING] = 1 + chance_skewed(&dice, 3000);
}

/* --- whom it hits --------------------------------------------------------- */

static server *some_server(world *w)
{
    return &w->server[chance_below(&w->chance, (int64_t)w->set.servers)];
}

static process *some_process(world *w)
{
    return w->process[chance_below(&w->chance, (int64_t)w->processes)];
}

/* Mostly one with something under way. */
static conn *some_conn(world *w)
{
    conn *found = NULL;
    int64_t n = 0;
    for (rl_link *k = rl_list_first(&w->conns); k;
         k = rl_list_next(&w->conns, k)) {
        conn *c = RL_CONTAINER(k, conn, all);
        if (c->client_open && c->server_open && !c->silent &&
            chance_below(&w->chance, ++n) == 0)
            found = c;
    }
    return found;
}

/* Around a lease: some are over before it is, some are not. */
static int64_t some_time(world *w)
{
    return 1 + chance_skewed(&w->chance, w->set.watchdog_ms * 3 * MS);
}

/* --- the faults ----------------------------------------------------------- */

static void freeze(world *w, conn *c)
{
    /* A tombstone is good for a minute; so late nothing may be. */
    int64_t until_us = w->now_us + rl_min(some_time(w), 20 * S);
    trace(w, "connection %u freezes", c->number);
    if (chance_ppm(&w->chance, 500000))
        c->up.frozen_us = until_us;
    else
        c->down.frozen_us = until_us;
}

static void hit_conn(world *w, fault what)
{
    conn *c = some_conn(w);
    if (!c)
        return;
    if (what == FAULT_CUT) {
        conn_cut(c);
    } else if (what == FAULT_FREEZE) {
        freeze(w, c);
    } else {
        trace(w, "connection %u falls silent", c->number);
        c->silent = true;
    }
}

static void step_clock(world *w, server *s)
{
    bool back = chance_ppm(&w->chance, 500000);
    int64_t us = back ? -chance_skewed(&w->chance, 100 * S)
                      : chance_skewed(&w->chance, 20 * S);
    if (back && s->clock_went_back)
        return;
    trace(w, "server %u: its clock jumps by %lld us", s->index, (long long)us);
    clock_step(&s->clock, w->now_us, us);
    s->clock_went_back = s->clock_went_back || back;
    s->clock_broke = s->clock_broke || !back;
    if (!back)
        server_is_misused(s);
}

static void delete_keys(world *w, server *s)
{
    for (size_t i = 0; i < w->set.names; i++) {
        word key = {w->lock[i].name, strlen(w->lock[i].name)};
        s->store.now_us = server_now(s);
        entry *e = store_find(&s->store, &key);
        if (!e || chance_ppm(&w->chance, 500000))
            continue;
        trace(w, "server %u: somebody deletes %s", s->index, w->lock[i].name);
        store_remove(&s->store, e);
        server_is_misused(s);
    }
}

static void command(server *s, const char *const *words, size_t n)
{
    static text ignored;
    word argv[6];
    for (size_t i = 0; i < n; i++)
        argv[i] = (word){words[i], strlen(words[i])};
    ignored.len = 0;
    s->store.now_us = server_now(s);
    store_command(&s->store, argv, n, &ignored);
}

/*
 * Who uses another library holds a lock that is free, in the layout that is
 * asked for or in another, and rings nobody when it ends.
 */
static void take_keys(world *w, server *s)
{
    static const char *const fields[] = {
        "0f3a5c1e-8a2b-4c6d-9e7f-112233445566:41", "host:12", "host:12:13", "x",
        "host:ab:cd:0f3a5c1e-8a2b-4c6d-9e7f-112233445566"};
    char ms[24];
    const char *key =
        w->lock[chance_below(&w->chance, (int64_t)w->set.names)].name;
    const char *field = fields[chance_below(&w->chance, 5)];
    word k = {key, strlen(key)};
    s->store.now_us = server_now(s);
    if (store_find(&s->store, &k))
        return;
    snprintf(ms, sizeof ms, "%lld", (long long)(some_time(w) / MS + 1));
    trace(w, "server %u: %s takes %s for %s ms", s->index, field, key, ms);
    if (chance_ppm(&w->chance, 700000)) {
        command(s, (const char *const[]){"HINCRBY", key, field, "1"}, 4);
        command(s, (const char *const[]){"PEXPIRE", key, ms}, 3);
    } else {
        command(s, (const char *const[]){"SET", key, field, "PX", ms}, 5);
    }
}

static void hit_server(world *w, fault what)
{
    server *s = some_server(w);
    if (what == FAULT_PAUSE) {
        if (!s->is_paused)
            server_pause(s, some_time(w));
    } else if (what == FAULT_FLUSH) {
        trace(w, "server %u forgets its scripts", s->index);
        s->scripts = 0;
    } else if (what == FAULT_MEMORY) {
        trace(w, "server %u has no memory", s->index);
        s->store.lacks_memory = s->lacked_memory = true;
        timer_set(w, &s->remember, w->now_us + some_time(w));
    } else if (what == FAULT_STEP) {
        step_clock(w, s);
    } else if (what == FAULT_DELETE) {
        delete_keys(w, s);
    } else if (what == FAULT_REFUSAL) {
        server_refuse(s, some_time(w));
    } else if (what == FAULT_ODDITY) {
        server_garble(s);
    } else if (what == FAULT_FOREIGN) {
        take_keys(w, s);
    } else if (what == FAULT_DEAF) {
        trace(w, "server %u loses messages", s->index);
        s->is_deaf = true;
        timer_set(w, &s->hear, w->now_us + some_time(w));
    } else {
        server_restart(s, what);
    }
}

/* Somebody takes its place. */
static void kill_one(world *w)
{
    process *p = some_process(w);
    if (p->is_dead || w->processes == PROCS_MAX)
        return;
    process_die(p);
    w->process[w->processes] = process_open(w, (unsigned)w->processes);
    w->processes++;
}

/* All of a process, which another one follows, or one. */
static void free_clients(process *p)
{
    world *w = p->w;
    size_t n = w->set.servers;
    bool one = n > 1 && chance_ppm(&w->chance, 500000);
    size_t i = one ? (size_t)chance_below(&w->chance, (int64_t)n) : 0;
    if (p->is_dead || !process_is_open(p) || w->processes == PROCS_MAX)
        return;
    client_free(&p->client[i]);
    for (size_t k = 0; k < n && !one; k++)
        client_free(&p->client[k]);
    if (one)
        return;
    w->process[w->processes] = process_open(w, (unsigned)w->processes);
    w->processes++;
}

/* It ends as soon as it holds something. */
static void end_thread(process *p)
{
    owner *o = p->owner[chance_below(&p->w->chance, (int64_t)p->owners)];
    o->ends = !p->is_dead;
}

static void hit_process(world *w, fault what)
{
    process *p = some_process(w);
    if (what == FAULT_STOP) {
        if (!p->is_dead && w->now_us >= p->paused_us)
            process_stop(p, some_time(w));
    } else if (what == FAULT_SCARCITY) {
        trace(w, "process %u has hardly any memory", p->index);
        p->scarce_us = w->now_us + some_time(w);
    } else if (what == FAULT_DEATH) {
        kill_one(w);
    } else if (what == FAULT_CANCEL) {
        owner *o = p->owner[chance_below(&w->chance, (int64_t)p->owners)];
        size_t name = (size_t)chance_below(&w->chance, (int64_t)w->set.names);
        trace(w, "owner %u is canceled for %s", o->number, w->lock[name].name);
        owner_cancel(o, name);
    } else if (what == FAULT_ENDING) {
        end_thread(p);
    } else if (what == FAULT_CLOSING) {
        free_clients(p);
    }
}

static void strike(world *w, fault what)
{
    w->figures.faults[what]++;
    if (what <= FAULT_SILENCE)
        hit_conn(w, what);
    else if (what <= FAULT_FOREIGN)
        hit_server(w, what);
    else
        hit_process(w, what);
}

/* After each step, a look at what is to go wrong. */
void fate_look(world *w)
{
    for (int i = 0; i < FAULTS; i++)
        if (w->set.fault_ppm[i] > 0 &&
            chance_ppm(&w->chance, w->set.fault_ppm[i]))
            strike(w, (fault)i);
}

/* Threads that were to end go on: what each left would cost a lease in a row.
 */
static void spare_threads(world *w)
{
    for (size_t p = 0; p < w->processes; p++)
        for (size_t i = 0; i < w->process[p]->owners; i++)
            w->process[p]->owner[i]->ends = false;
}

/* All that is wrong is put right, at once or soon. */
void fate_end(world *w)
{
    w->is_quiet = w->is_ending = true;
    w->quiet_us = w->now_us;
    w->settled_us = w->now_us + w->set.stall_us + w->set.latency_us +
                    w->set.tail_us + w->set.event_us +
                    (w->set.calm ? 0 : 21 * S);
    trace(w, "all is quiet from here on");
    spare_threads(w);
    for (size_t i = 0; i < w->set.servers; i++) {
        server *s = &w->server[i];
        s->is_deaf = s->store.lacks_memory = s->garbles = false;
        s->refusal = NULL;
        if (s->is_paused)
            timer_set(w, &s->resume, w->now_us);
    }
    for (rl_link *k = rl_list_first(&w->conns); k;
         k = rl_list_next(&w->conns, k)) {
        conn *c = RL_CONTAINER(k, conn, all);
        c->up.frozen_us = c->down.frozen_us = 0;
    }
}
