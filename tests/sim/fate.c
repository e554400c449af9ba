/*
 * What a seed draws. A third of the worlds are calm: nothing goes wrong there,
 * and what is bounded is bounded tightly. The others are drawn as a swarm
 * (Groce et al. 2012): each leaves out most faults and most verbs, so what is
 * left comes often, and what hides it does not come at all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"
#include "world.h"

config cfg;

#define KEY(name, least) {#name, least},
const key keys[] = {CONFIG_KEYS(KEY)};
#undef KEY

const int keys_n = sizeof keys / sizeof *keys;

int64_t *key_value(config *c, int i)
{
    return (int64_t *)(void *)c + i; /* they have one type, and an order */
}

static int64_t pick(chance *dice, const int64_t *of, size_t n)
{
    return of[chance_below(dice, (int64_t)n)];
}

#define PICK(...)                                                              \
    pick(dice, (const int64_t[]){__VA_ARGS__},                                 \
         sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static bool one_in(chance *dice, int64_t n)
{
    return chance_below(dice, n) == 0;
}

static bool is_group(const config *c)
{
    return c->cluster || c->sentinel;
}

static void draw_size(config *c, chance *dice)
{
    int64_t kind = chance_below(dice, 10);
    c->processes = chance_between(dice, 1, 3);
    c->owners = chance_between(dice, 2, 7);
    c->steps = chance_between(dice, 10, 60);
    c->servers = 1;
    if (kind < 4) {
        c->singles = chance_between(dice, 1, 3);
    } else if (kind < 6) {
        c->servers = one_in(dice, 5) ? 5 : 3;
        c->reds = chance_between(dice, 1, 2);
    } else if (kind < 8) {
        c->servers = chance_between(dice, 1, 3);
        c->singles = chance_between(dice, 2, 3);
        c->multis = chance_between(dice, 1, 2);
    } else { /* clients that are used for locks of all kinds */
        c->servers = 3;
        c->singles = chance_between(dice, 1, 2);
        c->reds = 1;
        c->multis = chance_below(dice, 3);
    }
}

static int64_t perhaps(chance *dice, int64_t n, int64_t weight)
{
    return one_in(dice, n) ? weight : 0;
}

/* In the place of one server. */
static void draw_cluster(config *c, chance *dice)
{
    c->cluster = 1;
    c->servers = 1;
    c->reds = 0;
    c->singles = chance_between(dice, 1, 3);
    c->multis = c->singles > 1 ? chance_below(dice, 3) : 0;
    c->replicas = !one_in(dice, 4);
    c->min_replicas = c->replicas > 0 && one_in(dice, 3);
    c->lag_us = PICK(50, 5000, 500000);
    c->gossip_us = PICK(1000, 50000, 1000000);
    if (c->calm)
        c->lag_us = c->gossip_us = 50;
}

static void draw_sentinels(config *c, chance *dice)
{
    draw_cluster(c, dice);
    c->cluster = 0;
    c->sentinel = 1;
    c->replicas = chance_between(dice, 1, 2);
    c->min_replicas = one_in(dice, 3) ? c->replicas : 0;
}

/* A grant has to be confirmed within a third of its lease. */
static void hasten_replicas(config *c)
{
    if (c->min_replicas > 0 && c->lag_us > 5000)
        c->lag_us = 5000;
}

static void draw_cluster_faults(config *c, chance *dice, int64_t n)
{
    c->move_ppm = perhaps(dice, n, PICK(3000, 30000, 100000));
    c->migrate_ppm = perhaps(dice, n, PICK(3000, 30000));
    c->unserved_ppm = perhaps(dice, 2 * n, PICK(3000, 30000));
    c->unserved_us = PICK(50000, 500000, 3000000);
    c->failover_us = PICK(50000, 1000000);
    c->death_ppm = perhaps(dice, n, PICK(2000, 10000));
    c->takeover_ppm = perhaps(dice, n, PICK(2000, 10000));
    c->places_ppm = perhaps(dice, n, PICK(2000, 10000));
    c->anew_ppm = perhaps(dice, 3 * n, PICK(1000, 5000));
    c->swap_ppm = perhaps(dice, 3 * n, PICK(1000, 5000));
}

static void draw_threads(config *c, chance *dice)
{
    c->mode = chance_below(dice, 2);
    c->call_ns = PICK(50, 200, 500);
    c->latency_us = PICK(5, 20, 60, 200);
    c->preempt_ppm = PICK(0, 1000, 20000, 200000);
    c->drift_ppm = PICK(0, 100, 2000);
    c->delay_us = PICK(50, 300, 2000);
    c->short_ppm = PICK(0, 10000, 300000);
    if (c->calm && c->latency_us > 60)
        c->latency_us = 60;
    if (c->calm && c->mode == 1)
        c->latency_us = 5;
    /* A node of a Red lock has 15 ms to answer, its connection included. */
    if (c->calm && c->reds > 0 && c->delay_us > 300)
        c->delay_us = 300;
}

static void draw_clients(config *c, chance *dice)
{
    c->eager = one_in(dice, 2);
    c->watchdog_ms = PICK(300, 1000, 3000);
    c->timeout_ms = c->calm ? 3000 : PICK(100, 500, 3000);
    c->connect_ms = c->calm ? 1000 : PICK(100, 1000);
    c->turn_ms = one_in(dice, 5) ? PICK(1, 20, 200) : 0;
    c->layout = one_in(dice, 6);
    c->local_levels = one_in(dice, 3);
    c->callback_us = one_in(dice, 3) ? PICK(100, 20000) : 0;
}

static void draw_program(config *c, chance *dice)
{
    c->hold_ms = PICK(2, 30, 300, 1500);
    c->think_ms = PICK(1, 20, 200);
    c->lease_pct = PICK(0, 0, 20, 60);
    c->lease_ms = 2000;
    c->forever_pct = PICK(0, 20, 100);
    c->idle_pct = PICK(0, 30, 100);
    c->end_pct = PICK(0, 0, 50);
    c->nest = perhaps(dice, 2, PICK(3, 10));
    c->extend = perhaps(dice, 2, PICK(3, 10));
    c->more = perhaps(dice, 2, PICK(2, 5));
    c->remake = perhaps(dice, 3, 3);
    c->cancel = perhaps(dice, 6, 3);
    c->force = perhaps(dice, 10, 2);
    c->close_at_ms = one_in(dice, 8) ? chance_between(dice, 10, 3000) : 0;
    c->release_held = one_in(dice, 2);
}

static void draw_faults(config *c, chance *dice)
{
    int64_t n = chance_between(dice, 1, 6); /* one in so many is there */
    c->spurious_ppm = perhaps(dice, n, PICK(1000, 50000));
    c->stall_ppm = perhaps(dice, n, PICK(100, 2000));
    c->stall_us = PICK(1000, 100000, 2000000);
    c->changes = perhaps(dice, n, PICK(1, 3, 10));
    c->change_ppm = c->changes ? PICK(100, 1000) : 0;
    c->tail_ppm = perhaps(dice, n, PICK(1000, 30000));
    c->tail_us = PICK(10000, 1000000);
    c->cut_ppm = perhaps(dice, n, PICK(1000, 20000));
    c->freeze_ppm = perhaps(dice, n, PICK(1000, 10000, 50000));
    c->freeze_us = PICK(100000, 1000000, 8000000);
    c->silence_ppm = perhaps(dice, n, PICK(100, 3000));
    c->refuse_ppm = perhaps(dice, n, PICK(10000, 200000));
    c->names_ppm = perhaps(dice, 2 * n, PICK(10000, 200000));
    c->pause_ppm = perhaps(dice, n, PICK(3000, 30000));
    c->pause_us = PICK(10000, 500000, 5000000);
    c->restart_ppm = perhaps(dice, n, PICK(1000, 10000));
    c->down_us = PICK(10000, 500000);
    c->flush_ppm = perhaps(dice, n, PICK(1000, 30000));
    c->wipe_ppm = perhaps(dice, c->reds ? n : 3 * n, PICK(1000, 10000));
    c->foreign_ppm = perhaps(dice, n, PICK(10000, 100000));
    c->foreign_us = PICK(500000, 3000000);
    c->loading_us = perhaps(dice, 2, PICK(10000, 1000000));
    if (c->sentinel)
        c->contradict_ppm = perhaps(dice, n, PICK(2000, 10000));
    if (is_group(c))
        draw_cluster_faults(c, dice, n);
}

/* Some messages may be late all the same. */
static void make_sound(config *c)
{
    c->stall_ppm = c->changes = c->change_ppm = 0;
    c->cut_ppm = c->freeze_ppm = c->silence_ppm = c->refuse_ppm = 0;
    c->names_ppm = c->pause_ppm = c->unserved_ppm = c->loading_us = 0;
    c->rotate_ppm = c->trickle_ppm = c->scarce_ppm = c->power_ppm = 0;
    c->force = 0;
}

/* Connections are sound, servers are not, and who holds does nothing. */
static void draw_idle(config *c, chance *dice)
{
    c->sound = 1;
    make_sound(c);
    c->tail_ppm = 0;
    c->idle_pct = 100;
    c->hold_ms = PICK(1500, 6000);
    c->watchdog_ms = PICK(3000, 10000);
    c->wipe_ppm = c->reds ? c->wipe_ppm : perhaps(dice, 2, 20000);
    if (!is_group(c))
        return;
    c->death_ppm = perhaps(dice, 2, 20000);
    c->takeover_ppm = perhaps(dice, 2, 20000);
    c->anew_ppm = perhaps(dice, 4, 10000);
}

/* Behind all else: so what seeds drew before there was this is as it was. */
static void draw_rest(config *c, chance *dice)
{
    c->max_hold_ms = perhaps(dice, 8, c->watchdog_ms * PICK(1, 2, 3));
    if (one_in(dice, 4)) {
        c->loops = chance_between(dice, 1, 2);
        c->tasks = chance_between(dice, 1, 8);
        c->dispatch_events = one_in(dice, 3);
    }
    c->ask = perhaps(dice, 4, PICK(2, 5));
    c->guard = perhaps(dice, 4, PICK(3, 10));
    c->burst = perhaps(dice, 8, PICK(1, 5));
    if (one_in(dice, 6))
        c->lease_ms = 12000;
    c->plain = one_in(dice, 3);
    c->silence = perhaps(dice, 8, 2);
    c->mind = perhaps(dice, 4, PICK(3, 10));
    c->trickle_us = PICK(1000, 20000, 100000);
    c->step_us = PICK(100, 5000, 50000);
    if (c->calm)
        return;
    c->trickle_ppm = c->sound ? 0 : perhaps(dice, 3, PICK(1000, 20000));
    c->step_ppm = perhaps(dice, 5, PICK(2000, 20000));
    c->scarce_us = PICK(1, 1000, 20000);
    if (!c->sound)
        c->scarce_ppm = perhaps(dice, 8, PICK(100, 2000, 20000));
}

/* How connections are made. With TLS there are more ways to go for that, and a
   world takes four times as long. */
static void draw_connections(config *c, chance *dice)
{
    c->tls = perhaps(dice, 30, PICK(12, 13));
    c->contexts = one_in(dice, 8) && !c->tls && !is_group(c);
    if (c->tls && c->calm && c->reds > 0)
        c->delay_us = 50;
}

static void draw_logins(config *c, chance *dice)
{
    c->login = perhaps(dice, 4, PICK(1, 2, 3, 3));
    c->rotate_ppm = perhaps(dice, 2, PICK(2000, 20000));
    c->valid_ms = perhaps(dice, 2, PICK(1500, 10000));
    c->db = perhaps(dice, 6, 3);
}

static void draw_options(config *c, chance *dice)
{
    c->redisson = perhaps(dice, 8, 1);
    c->pool = perhaps(dice, 6, PICK(1, 2));
    c->blind = perhaps(dice, 12, 1);
    c->spelled = perhaps(dice, 4, 1);
    c->early = perhaps(dice, 6, 1);
    c->local = perhaps(dice, 10, 1);
    c->uptime = perhaps(dice, 3, 1);
    if (perhaps(dice, 10, 1) && c->layout == 0)
        c->layout = 2;
    if (c->calm && c->redisson) {
        c->foreign_ppm = PICK(0, 3000, 30000);
        c->foreign_us = PICK(50000, 500000);
    }
}

/* Not where somebody has to be quick (config_reconcile()). */
static void draw_order(config *c, chance *dice)
{
    bool is_strict = one_in(dice, 8);
    c->depth = PICK(1, 2, 3, 5);
    if (is_strict)
        c->mode = 2;
}

/* Nothing goes wrong: clocks drift, threads are preempted, and messages come in
   parts, as everywhere; and Redisson may have a lock for a while. */
static void calm_down(config *c)
{
    bool hears = c->redisson && !is_group(c) && c->layout == 0 && c->force == 0;
    for (int i = 0; i < keys_n; i++) {
        const char *end = strstr(keys[i].name, "_ppm");
        int64_t *at = key_value(c, i);
        if (end && at != &c->drift_ppm && at != &c->preempt_ppm &&
            at != &c->short_ppm && !(hears && at == &c->foreign_ppm))
            *at = 0;
    }
    c->changes = c->loading_us = 0;
    c->timeout_ms = 3000;
    c->connect_ms = 1000;
    if (c->latency_us > 60)
        c->latency_us = 60;
    if (c->delay_us > 300)
        c->delay_us = 300;
    if (is_group(c) && c->lag_us > 50)
        c->lag_us = 50;
}

void config_reconcile(config *c)
{
    if (c->calm || c->sound) {
        c->early = 0;
        c->mode = c->mode > 1 ? 0 : c->mode;
    }
    if (c->calm)
        calm_down(c);
    if (c->sound)
        make_sound(c);
    if (is_group(c)) {
        c->servers = 1;
        c->reds = 0;
    }
    if (c->cluster)
        c->sentinel = 0;
    if (c->sentinel && c->replicas == 0)
        c->replicas = 1;
    if (c->cluster && c->replicas > 1)
        c->replicas = 1;
    c->tls = c->tls ? (c->tls > 12 ? 13 : 12) : 0;
    c->contexts = c->contexts && !c->tls && !is_group(c);
    c->local = c->local && !c->tls && !is_group(c) && !c->contexts;
    if (c->login != 3 || c->contexts)
        c->rotate_ppm = c->valid_ms = 0;
    if (c->cluster)
        c->db = 0;
    c->layout = c->layout > 2 ? 2 : c->layout;
    c->fair = c->layout == 0 ? c->fair : 0;
    if (c->layout != 0 || c->fair || is_group(c))
        c->no_tokens = 0;
    if (c->singles + c->reds == 0)
        c->singles = 1;
    if (c->min_replicas > 0) /* any of them may take over */
        c->min_replicas = is_group(c) ? c->replicas : 0;
    hasten_replicas(c);
}

/* From the seed itself, so that what it draws is as it was. */
static void derive(config *c, uint64_t seed)
{
    c->unheard = seed % 7 == 3 ? (int64_t)(1 + seed / 7 % 2) : 0;
    if (c->calm && seed % 61 == 11) { /* longer than a token's key lives */
        c->hold_ms = 400000;
        c->watchdog_ms = 10000;
        c->owners = 3;
        c->steps = 12;
        c->tasks = c->tasks > 0;
        c->valid_ms = c->valid_ms > 0 ? 10000 : 0; /* else: 4,000 threads */
    }
    if (seed % 5 == 2 && c->layout == 0)
        c->fair = (int64_t)(1 + seed / 5 % 2);
    if (seed % 4 == 2 && c->layout == 0 && !c->fair && !is_group(c))
        c->no_tokens = (int64_t)(1 + seed / 4 % 2);
    c->braced = seed % 9 == 4;
    c->kill_at_ms = seed % 12 == 7 ? (int64_t)(100 + seed / 12 % 3000) : 0;
    c->dark_us = (int64_t[]){10000, 1000000, 8000000}[seed / 11 % 3];
    if (seed % 11 == 5 && !c->calm && !c->sound)
        c->power_ppm = (int64_t[]){300, 3000, 10000}[seed / 33 % 3];
    c->latch = seed % 8 == 5 ? (int64_t)(5 + seed / 8 % 3 * 10) : 0;
    c->rw = seed % 6 == 1 ? (int64_t)(5 + seed / 6 % 3 * 10) : 0;
    c->grants = seed % 5 == 4 ? (int64_t)(1 + seed / 5 % 3 / 2) : 0;
    c->permits = seed % 8 == 3 ? (int64_t)(5 + seed / 8 % 3 * 10) : 0;
    if (!c->calm && seed % 9 == 7)
        c->full_ppm = (int64_t[]){1000, 10000}[seed / 9 % 2];
    if (!c->calm && seed % 10 == 3)
        c->busy_ppm = (int64_t[]){1000, 10000}[seed / 10 % 2];
    if (seed % 7 == 5 && c->reds > 0 && !c->early)
        c->used = (int64_t)(1 + seed / 7 % 4);
    c->lend = seed % 10 == 6 ? (int64_t)(5 + seed / 10 % 3 * 10) : 0;
    c->dice = (int64_t)(seed & INT64_MAX);
}

void config_draw(config *c, uint64_t seed)
{
    chance all, *dice = &all;
    chance_init(dice, seed);
    *c = (config){.stall_us = 1,
                  .tail_us = 1,
                  .freeze_us = 1,
                  .pause_us = 1,
                  .down_us = 1,
                  .foreign_us = 1,
                  .lag_us = 1,
                  .trickle_us = 1,
                  .step_us = 1,
                  .scarce_us = 1,
                  .gossip_us = 1,
                  .unserved_us = 1,
                  .failover_us = 1};
    c->calm = one_in(dice, 3);
    draw_size(c, dice);
    int64_t group = chance_below(dice, 8);
    if (group < 2)
        draw_cluster(c, dice);
    else if (group == 2)
        draw_sentinels(c, dice);
    hasten_replicas(c);
    draw_threads(c, dice);
    draw_clients(c, dice);
    draw_program(c, dice);
    if (!c->calm)
        draw_faults(c, dice);
    if (!c->calm && one_in(dice, 5))
        draw_idle(c, dice);
    draw_rest(c, dice);
    draw_connections(c, dice);
    draw_order(c, dice);
    draw_logins(c, dice);
    draw_options(c, dice);
    config_reconcile(c);
    derive(c, seed);
}

static int key_of(const char *name)
{
    for (int i = 0; i < keys_n; i++)
        if (strcmp(keys[i].name, name) == 0)
            return i;
    return -1;
}

static bool has_room(const config *c)
{
    return c->servers <= SERVERS_MAX && c->processes <= PROCESSES_MAX &&
           c->owners <= OWNERS_MAX && c->singles <= SINGLES_MAX &&
           c->reds <= REDS_MAX && c->multis <= MULTIS_MAX && c->replicas <= 2 &&
           c->login <= 3;
}

bool config_set(config *c, const char *list)
{
    char copy[2000], *rest = copy, name[32], end;
    long long value;
    snprintf(copy, sizeof copy, "%s", list);
    for (char *at; (at = strtok_r(rest, ",", &rest)) != NULL;) {
        if (sscanf(at, "%31[^=]=%lld%c", name, &value, &end) != 2)
            return false;
        int i = key_of(name);
        if (i < 0 || value < keys[i].least)
            return false;
        *key_value(c, i) = value;
    }
    config_reconcile(c);
    return has_room(c);
}
