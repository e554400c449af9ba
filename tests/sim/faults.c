/*
 * What goes wrong at a server. Owners come by here between two acts of theirs
 * (owners.c); each fault has its own probability, which a seed draws or leaves
 * at zero. Who makes one lose data has to tell the judges (judge_shake()).
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "sentinel.h"
#include "world.h"

static void go_on(event *e)
{
    server *s = OWNER_OF(e, server, resume);
    s->is_paused = false;
    trace("server %d goes on", s->index);
    for (conn *c = conns; c; c = c->next)
        if (c->s == s && c->run == s->run && !c->server_closed)
            server_take(c);
}

static void pause_server(server *s)
{
    if (s->is_paused)
        return;
    int64_t ns = chance_skewed(&w.dice, cfg.pause_us * US);
    trace("server %d stands still for %lld us", s->index, (long long)(ns / US));
    s->is_paused = true;
    s->resume.fire = go_on;
    event_set(&s->resume, w.now + ns);
}

static int64_t down_ns(void)
{
    return chance_skewed(&w.dice, cfg.down_us * US);
}

static void restart_server(server *s)
{
    trace("server %d restarts, with its data", s->index);
    server_restart(s, down_ns());
    if (cfg.loading_us > 0)
        s->loading_until =
            s->down_until + chance_skewed(&w.dice, cfg.loading_us * US);
}

static void power_is_back(event *e)
{
    server *s = OWNER_OF(e, server, power_is_back);
    if (s->is_dark && s->down_until != NEVER)
        server_start(s);
}

/* Its host is there again with what it had on its disk, and the same address. */
static void cut_power(server *s)
{
    if (s->is_dark)
        return;
    int64_t ns = chance_skewed(&w.dice, cfg.dark_us * US);
    trace("server %d loses its power for %lld us", s->index,
          (long long)(ns / US));
    s->is_dark = true;
    s->down_until = w.now + ns;
    s->power_is_back.fire = power_is_back;
    event_set(&s->power_is_back, s->down_until);
}

static void wipe_server(server *s)
{
    trace("server %d restarts, without its data", s->index);
    store_clear(&s->store);
    server_restart(s, down_ns());
    if (!s->master)
        judge_shake_server(s->index);
}

static int64_t for_a_while(void)
{
    int64_t until = w.now + chance_skewed(&w.dice, cfg.pause_us * US);
    judge_trouble_until(until);
    return until;
}

static void fill_server(server *s)
{
    s->full_until = for_a_while();
    trace("server %d is full until %.6f", s->index, seconds(s->full_until));
}

static void keep_server_busy(server *s)
{
    s->busy_until = for_a_while();
    trace("server %d is busy until %.6f", s->index, seconds(s->busy_until));
}

static void flush_scripts(server *s)
{
    trace("server %d forgets its scripts", s->index);
    s->scripts = 0;
}

/* Servers that hand deadlines on to each other have one clock. In all not by
   more than what somebody may wait for at the end: loops that turn without rest
   meet thousands of faults. */
static void step_clocks(server *of)
{
    static int64_t all;
    int64_t ns = chance_skewed(&w.dice, cfg.step_us * US);
    if ((all += ns) > 5 * S)
        return;
    trace("the clock of server %d is put back by %lld us", of->index,
          (long long)(ns / US));
    for (int i = 0; i < servers_n; i++)
        if (&servers[i] == of || cfg.cluster || cfg.sentinel)
            server_step_clock(&servers[i], ns);
}

#define FOREIGN "other:1:1:x"

/* --- somebody else takes a lock for a while ------------------------------- */

static word foreign_key(const server *s)
{
    return (word){s->foreign, strlen(s->foreign)};
}

/* As Redisson's unlock does: whoever listens to its channel is told. */
static void release_foreign(server *s)
{
    static text out;
    char channel[40];
    int n = key_beside(channel, sizeof channel, "redisson_lock__channel",
                       s->foreign);
    word key = foreign_key(s);
    const word del[] = {{"DEL", 3}, key};
    const char *how = cfg.cluster ? "SPUBLISH" : "PUBLISH";
    const word publish[] = {{how, strlen(how)}, {channel, (size_t)n}, {"0", 1}};
    server_set_clock(s);
    const entry *e = store_find(&s->store, &key);
    if (!e || e->kind != KIND_HASH ||
        !entry_item(e, &(word){FOREIGN, strlen(FOREIGN)}))
        return;
    trace("server %d: somebody else gives %s back", s->index, s->foreign);
    store_command(&s->store, del, 2, &out);
    store_command(&s->store, publish, 3, &out);
    judge_foreign(s->index, s->foreign, false);
}

static void foreign_ends(event *e)
{
    server *s = OWNER_OF(e, server, foreign_ends);
    if (cfg.redisson)
        release_foreign(s);
    s->foreign = NULL;
}

/* Until when, for those who compare times. */
static void put_time(const server *s, int64_t us, char *at, size_t room)
{
    snprintf(at, room, "%lld",
             (long long)((server_now_us(s) + us + 999999) / 1000000));
}

/* What is left of its lease when he goes. Who gives it back does so long before
   the end, and a waiter who has not heard of it looks too late; where he may not
   find it, as a replica has it now, it has to end by itself. */
static int64_t rest_ms(void)
{
    return cfg.layout == RLOCK_LAYOUT_TIMESTAMP ? 60000
           : cfg.redisson && cfg.calm           ? 30000
                                                : 1;
}

static void take_foreign(server *s)
{
    static text out;
    static const char *const names[] = {"a", "b", "c"};
    bool says_time = cfg.layout == RLOCK_LAYOUT_TIMESTAMP;
    char ms[20], at[20];
    if (s->foreign || cfg.singles == 0)
        return;
    const char *name = names[chance_below(&w.dice, cfg.singles)];
    word key = {name, 1};
    if (s->kind->in_office)
        s = s->kind->in_office(&key);
    server_set_clock(s);
    if (s->foreign || store_find(&s->store, &key))
        return;
    int64_t us = chance_skewed(&w.dice, cfg.foreign_us);
    put_time(s, us, at, sizeof at);
    snprintf(ms, sizeof ms, "%lld", (long long)(us / 1000 + rest_ms()));
    const char *value = says_time ? at : FOREIGN;
    word hset[] = {{"HSET", 4}, key, {FOREIGN, strlen(FOREIGN)}, {"1", 1}};
    word set[] = {{"SET", 3}, key, {value, strlen(value)}};
    word expire[] = {{"PEXPIRE", 7}, key, {ms, strlen(ms)}};
    if (cfg.layout)
        store_command(&s->store, set, 3, &out);
    else
        store_command(&s->store, hset, 4, &out);
    store_command(&s->store, expire, 3, &out);
    s->foreign = name;
    s->foreign_ends.fire = foreign_ends;
    judge_foreign(s->index, name, true);
    event_set(&s->foreign_ends,
              w.now + (cfg.redisson ? chance_below(&w.dice, us + 1) : us) * US);
    trace("server %d: somebody else has %s for %s ms", s->index, name, ms);
}

/* --- all of them ---------------------------------------------------------- */

static const fault faults[] = {
    {"pause", &cfg.pause_ppm, pause_server},
    {"restart", &cfg.restart_ppm, restart_server},
    {"wipe", &cfg.wipe_ppm, wipe_server},
    {"power", &cfg.power_ppm, cut_power},
    {"flush", &cfg.flush_ppm, flush_scripts},
    {"full", &cfg.full_ppm, fill_server},
    {"busy", &cfg.busy_ppm, keep_server_busy},
    {"step", &cfg.step_ppm, step_clocks},
    {"foreign", &cfg.foreign_ppm, take_foreign},
    {"rotate", &cfg.rotate_ppm, login_rotate},
};

/* While not all are there, they are asked every two seconds. */
static bool is_sentinel(const server *s)
{
    return cfg.sentinel && s->index >= servers_n - SENTINELS;
}

bool fault_is_due(int64_t ppm)
{
    if (!chance_ppm(&w.dice, ppm))
        return false;
    w.faults++;
    judge_trouble();
    return true;
}

void faults_strike(void)
{
    server *s = &servers[chance_below(&w.dice, servers_n)];
    if (!w.is_quiet && cfg.cluster)
        cluster_strike();
    if (!w.is_quiet && cfg.sentinel)
        sentinel_strike();
    if (s->down_until == NEVER)
        return; /* it is dead already */
    for (size_t i = 0; !w.is_quiet && i < sizeof faults / sizeof *faults; i++)
        if (fault_is_due(*faults[i].ppm)) {
            faults[i].strike(s);
            judge_trouble_until(s->down_until +
                                (is_sentinel(s) ? 2500 * MS : 0));
        }
    /* Where all is calm somebody else may have a lock, too. */
    if (cfg.calm && chance_ppm(&w.dice, cfg.foreign_ppm))
        take_foreign(s);
}
