#include "harm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "locks.h"

enum {
    RULE_MS = 4000,   /* that a rule of the proxy waits for its call */
    AT_A_TIME_MS = 25 /* within which the servers of one call are asked */
};

/* --- processes ----------------------------------------------------------- */

bool worker_killed(nemesis *n, fault *f)
{
    n->kill_worker(f->proc);
    return true;
}

static bool worker_stops(nemesis *n, fault *f, int64_t ms)
{
    pid_t pid = n->pid_of(f->proc);
    bool done = kill(pid, SIGSTOP) == 0;
    last(f, ms);
    return kill(pid, SIGCONT) == 0 && done;
}

bool worker_stops_shortly(nemesis *n, fault *f)
{
    return worker_stops(n, f, some_ms(n, SHORT_MS));
}

bool worker_stops_long(nemesis *n, fault *f)
{
    return worker_stops(n, f, LONG_MS);
}

bool worker_signalled(nemesis *n, fault *f)
{
    for (int i = 0; i < 200; i++) {
        kill(n->pid_of(f->proc), SIGUSR1);
        pause_ms(1);
    }
    return true;
}

/* As after a suspend: boot time goes on, other clocks do not. */
bool worker_suspended(nemesis *n, fault *f)
{
    shim_panel *p = &n->a->panels[f->proc];
    shim_clock(p, CLOCK_BOOTTIME,
               (int64_t)atomic_load(&p->ahead_ms[2]) + LONG_MS);
    last(f, 0);
    return true;
}

bool wall_clock_jumps(nemesis *n, fault *f)
{
    int64_t hour = 3600000;
    shim_clock(&n->a->panels[f->proc], CLOCK_REALTIME,
               attack_pick(&n->rng, 2) ? hour : -hour);
    pause_ms(SHORT_MS);
    shim_clock(&n->a->panels[f->proc], CLOCK_REALTIME, 0);
    return true;
}

/* A few calls of a kind fail, from one among the next ones on. */
bool calls_fail(nemesis *n, fault *f)
{
    const nemesis_kind *k = &nemesis_kinds[f->kind];
    shim_panel *p = &n->a->panels[f->proc];
    long first = 1 + attack_pick(&n->rng, k->among);
    shim_fail(p, k->call, first, first + attack_pick(&n->rng, 4), k->err);
    int64_t until_ms = test_now_ms() + SHORT_MS;
    while (test_now_ms() < until_ms && shim_failed(p, k->call) == 0)
        pause_ms(1);
    pause_ms(20);
    bool fired = shim_failed(p, k->call) > 0;
    shim_fail(p, k->call, 0, 0, 0);
    return fired;
}

/* With its connections cut it needs new ones. */
bool connecting_fails(nemesis *n, fault *f)
{
    for (int i = 0; i < SERVERS; i++)
        proxy_cut_all(n->px[f->proc][i]);
    return calls_fail(n, f);
}

/* --- ways --------------------------------------------------------------- */

/* The one between the worker and the server that the fault is about. */
static proxy *the_way(const nemesis *n, const fault *f)
{
    return n->px[f->proc][servers_first(f->servers)];
}

bool connections_cut(nemesis *n, fault *f)
{
    proxy_cut_all(the_way(n, f));
    return true;
}

bool connections_refused(nemesis *n, fault *f)
{
    proxy_refuse(the_way(n, f), true);
    proxy_cut_all(the_way(n, f));
    pause_ms(some_ms(n, SHORT_MS));
    proxy_refuse(the_way(n, f), false);
    return true;
}

static bool way_frozen(nemesis *n, fault *f, int64_t ms)
{
    proxy_freeze(the_way(n, f), true);
    last(f, ms);
    proxy_freeze(the_way(n, f), false);
    return true;
}

bool way_frozen_shortly(nemesis *n, fault *f)
{
    return way_frozen(n, f, some_ms(n, SHORT_MS));
}

bool way_frozen_long(nemesis *n, fault *f)
{
    return way_frozen(n, f, LONG_MS);
}

enum { WAYS = PROCS * SERVERS };

/* Between the fault's worker, or if it is about none in particular all of them,
   and its servers. */
static int ways_of(const nemesis *n, const fault *f, proxy *ways[WAYS])
{
    int count = 0;
    for (int i = 0; i < WAYS; i++) {
        int proc = i / SERVERS, server = i % SERVERS;
        if ((f->proc < 0 || f->proc == proc) && f->servers & 1U << server)
            ways[count++] = n->px[proc][server];
    }
    return count;
}

/*
 * Renewals go one by one or together, as they fall due; what is done with the
 * members of a Multi lock does so, too.
 */
static const char *script_of(nemesis *n, const char *call)
{
    static const char *const many[][2] = {{"renew", "renew_many"},
                                          {"acquire", "take_many"},
                                          {"release", "free_many"}};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        if (strcmp(call, many[i][0]) == 0 && attack_pick(&n->rng, 4) == 0)
            return many[i][1];
    return call;
}

static bool is_one_of(const char *script, const char *const names[])
{
    while (*names && strcmp(script, *names) != 0)
        names++;
    return *names != NULL;
}

/* Scripts of locks that are granted in lines have folders of their own; a fair one
   is a lock in a hash but for its order. */
static const char *sha_in_line(nemesis *n, const char *script)
{
    static const char *const folders[] = {"fair", "read", "write", "permit"};
    static const char *const of_all[] = {"acquire", "release", NULL};
    static const char *const of_most[] = {"renew", "renew_many", "extend",
                                          NULL};
    char path[32];
    int folder = attack_pick(&n->rng, 4);
    if (!is_one_of(script, of_all) && !(folder && is_one_of(script, of_most)))
        return proxy_sha(script);
    snprintf(path, sizeof path, "%s/%s", folders[folder], script);
    return proxy_sha(path);
}

static const char *needle(nemesis *n, const nemesis_kind *k)
{
    if (!k->script)
        return "";
    const char *script = script_of(n, k->script);
    bool in_line = attack_pick(&n->rng, 100) < n->a->kinds_percent;
    return in_line ? sha_in_line(n, script) : proxy_sha(script);
}

static void set_rules(nemesis *n, const fault *f)
{
    const nemesis_kind *k = &nemesis_kinds[f->kind];
    const char *what = needle(n, k);
    proxy *ways[WAYS];
    for (int i = ways_of(n, f, ways); i-- > 0;)
        proxy_rule(ways[i], what, 1 + attack_pick(&n->rng, k->among), k->action,
                   k->answer);
}

/* What has been held back stays so. */
static void end_rules(nemesis *n, const fault *f)
{
    proxy *ways[WAYS];
    for (int i = ways_of(n, f, ways); i-- > 0;)
        proxy_rule(ways[i], NULL, 0, nemesis_kinds[f->kind].action, NULL);
}

static bool any_fired(nemesis *n, const fault *f)
{
    proxy *ways[WAYS];
    bool fired = false;
    for (int i = ways_of(n, f, ways); i-- > 0;)
        fired = fired || proxy_fired(ways[i]);
    return fired;
}

static void let_go(nemesis *n, const fault *f)
{
    proxy *ways[WAYS];
    for (int i = ways_of(n, f, ways); i-- > 0;)
        proxy_let_go(ways[i]);
}

/*
 * A rule for one among the next calls of a script, at each of the servers: what
 * is asked of several is asked at a time. What it holds back is let go of after
 * some time, mostly when the caller has given up.
 */
bool call_hit(nemesis *n, fault *f)
{
    proxy_action action = nemesis_kinds[f->kind].action;
    set_rules(n, f);
    int64_t until_ms = test_now_ms() + RULE_MS;
    while (!any_fired(n, f) && test_now_ms() < until_ms)
        pause_ms(1);
    bool fired = any_fired(n, f);
    pause_ms(fired ? AT_A_TIME_MS : 0);
    end_rules(n, f);
    if (action == PROXY_HOLD_REQUEST || action == PROXY_HOLD_REPLY) {
        pause_ms(fired ? some_ms(n, 3 * COMMAND_MS) : 0);
        let_go(n, f);
    }
    return fired;
}
