/* The world: how it begins, goes on step by step, and ends. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "owner.h"

/* When all is quiet, everybody has come to an end within this. */
#define LONGEST_END_US (1000 * S)
#define LONGEST_END    4000000 /* steps */

/* --- history -------------------------------------------------------------- */

void history_add(world *w, uint64_t what)
{
    w->history = (w->history ^ what) * UINT64_C(1099511628211);
}

void trace(world *w, const char *fmt, ...)
{
    va_list args;
    if (!w->traces)
        return;
    printf("%12.6f  ", (double)w->now_us / 1e6);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
}

/* --- begin ---------------------------------------------------------------- */

/* Of which two share side keys, as lua/README.md says. */
static const char *const names[NAMES_MAX] = {"a", "{a}", "b", "c"};

/* The same in the order in which Multi locks take them. */
static const char *const ordered[NAMES_MAX] = {"a", "b", "c", "{a}"};

static void name_lock(world *w, size_t i, const char *name, size_t server)
{
    lock_truth *truth = &w->lock[i];
    size_t len = strlen(name);
    size_t layout = chance_ppm(&w->chance, 600000)
                        ? RLOCK_LAYOUT_HASH
                        : (size_t)chance_below(&w->chance, 3);
    snprintf(truth->name, sizeof truth->name, "%s", name);
    truth->server = server;
    truth->what = (rl_target){.name = truth->name,
                              .len = len,
                              .scope = layout,
                              .layout = &rl_layouts[layout]};
    truth->red = truth->what;
    truth->red.scope = RL_SINGLE_SCOPES + 1;
    truth->red.layout = &rl_layouts[layout % 2];
}

static bool share_token(const lock_truth *a, const lock_truth *b)
{
    return a->server == b->server &&
           (strchr(a->name, 'a') != NULL) == (strchr(b->name, 'a') != NULL) &&
           strchr(a->name, 'a') != NULL;
}

/* Twins have one name, on two servers. */
static void name_locks(world *w)
{
    bool twins =
        w->set.multi && w->set.servers > 1 && chance_ppm(&w->chance, 300000);
    for (size_t i = 0; i < w->set.names; i++) {
        if (twins)
            name_lock(w, i, ordered[i / 2], i % 2);
        else
            name_lock(w, i, w->set.multi ? ordered[i] : names[i],
                      i % w->set.servers);
        for (size_t k = 0; k < i; k++)
            if (share_token(&w->lock[i], &w->lock[k]))
                w->lock[i].shares_token = w->lock[k].shares_token = true;
    }
}

void world_open(world *w, uint64_t seed, const config *set, bool traces)
{
    *w = (world){.seed = seed, .set = *set, .traces = traces};
    w->history = UINT64_C(14695981039346656037);
    w->now_us = 1;
    chance_init(&w->chance, seed);
    chance_seed_library(~seed);
    rl_list_init(&w->conns);
    name_locks(w);
    for (size_t i = 0; i < set->servers; i++)
        server_open(w, &w->server[i], (unsigned)i);
    for (size_t i = 0; i < set->processes; i++) {
        w->process[i] = process_open(w, (unsigned)i);
        w->processes++;
    }
    if (!set->calm && chance_ppm(&w->chance, 200000))
        w->process[0]->is_victim = set->stall_us > 0;
}

/* --- step ----------------------------------------------------------------- */

static bool all_is_done(const world *w)
{
    for (size_t p = 0; p < w->processes; p++) {
        const process *x = w->process[p];
        for (size_t i = 0; i < x->owners; i++)
            if (!x->owner[i]->is_done)
                return false;
        for (size_t i = 0; i < w->set.servers; i++)
            if (x->client[i].stage != CLIENT_CLOSED &&
                (!client_is_open(&x->client[i]) ||
                 !keeper_is_idle(&x->client[i]) ||
                 x->client[i].e.core.holds.first_report ||
                 x->client[i].doorbell.runner.op))
                return false;
    }
    return true;
}

static void end_if_due(world *w)
{
    if (!w->is_quiet && (int64_t)w->figures.steps >= w->set.steps)
        fate_end(w);
    if (w->is_quiet && (w->now_us > w->quiet_us + LONGEST_END_US ||
                        w->figures.steps > LONGEST_END))
        judge_fail(w, "judge 5: not everybody comes to an end");
}

bool world_step(world *w)
{
    rl_heap_node *n = rl_heap_first(&w->heap);
    if (!n || w->failed || (w->is_quiet && all_is_done(w)))
        return false;
    timer *a = RL_CONTAINER(n, timer, node);
    w->now_us = rl_max(w->now_us, n->due_us);
    rl_heap_remove(&w->heap, n);
    history_add(w, (uint64_t)w->now_us);
    a->ring(a);
    w->figures.steps++;
    if (!w->is_quiet)
        fate_look(w);
    judge_step(w);
    end_if_due(w);
    return true;
}

/* --- end ------------------------------------------------------------------ */

void world_close(world *w)
{
    w->figures.simulated_us = w->now_us;
    judge_end(w);
    for (size_t i = 0; i < w->processes; i++)
        process_close(w->process[i]);
    conn_end_all(w);
    for (size_t i = 0; i < w->set.servers; i++)
        server_close(&w->server[i]);
    rl_heap_fini(&w->heap);
}
