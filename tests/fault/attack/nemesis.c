#include "nemesis.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SHORT_MS = 600,           /* a hold survives it */
    LONG_MS = LEASE_MS + 700, /* no hold does */
    RULE_MS = 4000,           /* that a rule of the proxy waits for its call */
    LOCK_TRIES = 300
};

static void pause_ms(int64_t ms)
{
    test_pause_ms((int)ms);
}

/* For some time, and the repair is about to begin. */
static void last(fault *f, int64_t ms)
{
    pause_ms(ms);
    f->mended_us = attack_now_us();
}

static int64_t some_ms(nemesis *n, int most)
{
    return 50 + attack_pick(&n->rng, most - 50);
}

static const char *key_of(const fault *f)
{
    static char key[24];
    snprintf(key, sizeof key, "attack:%d", f->lock);
    return key;
}

/* The server's process. */

static bool server_stops(nemesis *n, fault *f, int64_t ms)
{
    server_pause(n->sv);
    last(f, ms);
    server_resume(n->sv);
    return true;
}

static bool server_stops_shortly(nemesis *n, fault *f)
{
    return server_stops(n, f, some_ms(n, SHORT_MS));
}

static bool server_stops_long(nemesis *n, fault *f)
{
    return server_stops(n, f, LONG_MS);
}

/*
 * The server writes its append-only file before it answers, so nothing that
 * was promised is lost when its process is killed.
 */
static bool server_killed(nemesis *n, fault *f)
{
    (void)f;
    server_kill(n->sv);
    pause_ms(some_ms(n, SHORT_MS));
    server_restart(n->sv);
    return true;
}

static bool server_killed_long(nemesis *n, fault *f)
{
    server_kill(n->sv);
    last(f, LONG_MS);
    server_restart(n->sv);
    return true;
}

static bool server_restarted(nemesis *n, fault *f)
{
    (void)f;
    server_restart(n->sv);
    return true;
}

static bool server_emptied(nemesis *n, fault *f)
{
    (void)f;
    server_kill(n->sv);
    server_forget(n->sv);
    pause_ms(some_ms(n, SHORT_MS));
    server_restart(n->sv);
    return true;
}

/* What was written last, and promised, is missing when it comes back. */
static bool power_cut(nemesis *n, fault *f)
{
    (void)f;
    server_kill(n->sv);
    bool done = server_cut_log(n->sv, 2000);
    server_restart(n->sv);
    return done;
}

static bool server_sleeps(nemesis *n, fault *f)
{
    (void)f;
    int64_t ms = some_ms(n, SHORT_MS);
    return server_cmd(n->sv, "DEBUG SLEEP %d.%03d", (int)(ms / 1000),
                      (int)(ms % 1000))
               ->type != REDIS_REPLY_ERROR;
}

static bool obeys(nemesis *n, const char *command)
{
    return server_cmd(n->sv, command)->type != REDIS_REPLY_ERROR;
}

/* What takes only a command, and perhaps another one for the repair. */
static bool commanded(nemesis *n, fault *f)
{
    const nemesis_kind *k = &nemesis_kinds[f->kind];
    bool done = obeys(n, k->harm);
    if (k->repair) {
        pause_ms(some_ms(n, SHORT_MS));
        done = obeys(n, k->repair) && done;
    }
    return done;
}

static bool server_busy(nemesis *n, fault *f)
{
    (void)f;
    server_cmd(n->sv, "EVAL %s 0 %d",
               "local from = os.clock() "
               "while (os.clock() - from) * 1000 < tonumber(ARGV[1]) do end",
               (int)some_ms(n, SHORT_MS));
    return true;
}

static bool server_paused(nemesis *n, const char *what)
{
    int ms = (int)some_ms(n, SHORT_MS);
    bool done = server_cmd(n->sv, "CLIENT PAUSE %d %s", ms, what)->type !=
                REDIS_REPLY_ERROR;
    pause_ms(ms);
    return done;
}

static bool server_pauses_writes(nemesis *n, fault *f)
{
    (void)f;
    return server_paused(n, "WRITE");
}

static bool server_pauses_all(nemesis *n, fault *f)
{
    (void)f;
    return server_paused(n, "ALL");
}

static bool server_crowded(nemesis *n, fault *f)
{
    (void)f;
    bool done = obeys(n, "CONFIG SET maxclients 1") &&
                obeys(n, "CLIENT KILL TYPE normal SKIPME yes");
    pause_ms(some_ms(n, SHORT_MS));
    return obeys(n, "CONFIG SET maxclients 10000") && done;
}

static bool bells_forged(nemesis *n, fault *f)
{
    (void)f;
    const redisReply *all = server_cmd(n->sv, "PUBSUB CHANNELS *");
    char channel[8][128];
    size_t count = 0;
    for (; count < all->elements && count < 8; count++)
        snprintf(channel[count], sizeof channel[count], "%s",
                 all->element[count]->str);
    for (size_t i = 0; i < count; i++) {
        server_cmd(n->sv, "PUBLISH %s %s", channel[i], "garbage \r\n$9$9");
        for (int lock = 0; lock < LOCKS; lock++)
            server_cmd(n->sv, "PUBLISH %s attack:%d", channel[i], lock);
    }
    return count > 0;
}

/* Data. */

static bool lock_deleted(nemesis *n, fault *f)
{
    return server_int(n->sv, "DEL %s", key_of(f)) == 1;
}

static bool lock_renamed(nemesis *n, fault *f)
{
    /* To a name that ends by itself: the key keeps its TTL. */
    const redisReply *r =
        server_cmd(n->sv, "RENAME %s attack-renamed", key_of(f));
    bool done = r->type != REDIS_REPLY_ERROR;
    server_cmd(n->sv, "DEL attack-renamed");
    return done;
}

static bool lock_forced(nemesis *n, fault *f)
{
    rlock *lk = NULL;
    if (f->lock >= LOCKS - 2 || rlock_new(n->cl, key_of(f), &lk))
        return false;
    bool done = rlock_force_unlock(lk) == RLOCK_OK;
    rlock_free(lk);
    return done;
}

static bool lock_of_another_type(nemesis *n, fault *f)
{
    server_cmd(n->sv, "DEL %s", key_of(f));
    server_cmd(n->sv, "SADD %s x", key_of(f));
    pause_ms(some_ms(n, SHORT_MS));
    server_cmd(n->sv, "DEL %s", key_of(f));
    return true;
}

static bool lease_cut_short(nemesis *n, fault *f)
{
    return server_int(n->sv, "PEXPIRE %s 5", key_of(f)) == 1;
}

/* A holder that renews sets it right; otherwise nobody else would ever. */
static bool lease_without_end(nemesis *n, fault *f)
{
    if (server_int(n->sv, "PERSIST %s", key_of(f)) != 1)
        return false;
    pause_ms(SHORT_MS);
    if (server_int(n->sv, "PTTL %s", key_of(f)) == -1)
        server_int(n->sv, "PEXPIRE %s %d", key_of(f), LEASE_MS);
    return true;
}

/* Processes. */

static bool worker_killed(nemesis *n, fault *f)
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

static bool worker_stops_shortly(nemesis *n, fault *f)
{
    return worker_stops(n, f, some_ms(n, SHORT_MS));
}

static bool worker_stops_long(nemesis *n, fault *f)
{
    return worker_stops(n, f, LONG_MS);
}

static bool worker_signalled(nemesis *n, fault *f)
{
    for (int i = 0; i < 200; i++) {
        kill(n->pid_of(f->proc), SIGUSR1);
        pause_ms(1);
    }
    return true;
}

/* As after a suspend: boot time goes on, other clocks do not. */
static bool worker_suspended(nemesis *n, fault *f)
{
    shim_panel *p = &n->a->panels[f->proc];
    shim_clock(p, CLOCK_BOOTTIME,
               (int64_t)atomic_load(&p->ahead_ms[2]) + LONG_MS);
    last(f, 0);
    return true;
}

static bool wall_clock_jumps(nemesis *n, fault *f)
{
    int64_t hour = 3600000;
    shim_clock(&n->a->panels[f->proc], CLOCK_REALTIME,
               attack_pick(&n->rng, 2) ? hour : -hour);
    pause_ms(SHORT_MS);
    shim_clock(&n->a->panels[f->proc], CLOCK_REALTIME, 0);
    return true;
}

/* A few calls of a kind fail, from one among the next ones on. */
static bool calls_fail(nemesis *n, fault *f)
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
static bool connecting_fails(nemesis *n, fault *f)
{
    proxy_cut_all(n->px[f->proc]);
    return calls_fail(n, f);
}

/* The way between a worker and the server. */

static bool connections_cut(nemesis *n, fault *f)
{
    proxy_cut_all(n->px[f->proc]);
    return true;
}

static bool connections_refused(nemesis *n, fault *f)
{
    proxy_refuse(n->px[f->proc], true);
    proxy_cut_all(n->px[f->proc]);
    pause_ms(some_ms(n, SHORT_MS));
    proxy_refuse(n->px[f->proc], false);
    return true;
}

static bool way_frozen(nemesis *n, fault *f, int64_t ms)
{
    proxy_freeze(n->px[f->proc], true);
    last(f, ms);
    proxy_freeze(n->px[f->proc], false);
    return true;
}

static bool way_frozen_shortly(nemesis *n, fault *f)
{
    return way_frozen(n, f, some_ms(n, SHORT_MS));
}

static bool way_frozen_long(nemesis *n, fault *f)
{
    return way_frozen(n, f, LONG_MS);
}

/*
 * A rule for one among the next calls of a script. What it holds back is let go
 * of after some time, mostly when the caller has given up.
 */
static bool call_hit(nemesis *n, fault *f)
{
    const nemesis_kind *k = &nemesis_kinds[f->kind];
    proxy *px = n->px[f->proc];
    proxy_rule(px, k->script ? proxy_sha(k->script) : "",
               1 + attack_pick(&n->rng, k->among), k->action, k->answer);
    int64_t until_ms = test_now_ms() + RULE_MS;
    while (!proxy_fired(px) && test_now_ms() < until_ms)
        pause_ms(1);
    bool fired = proxy_fired(px);
    bool held =
        k->action == PROXY_HOLD_REQUEST || k->action == PROXY_HOLD_REPLY;
    if (fired && held) {
        pause_ms(some_ms(n, 2 * COMMAND_MS));
        proxy_let_go(px);
    }
    proxy_rule(px, NULL, 0, k->action, NULL);
    return fired;
}

#define COMMANDS(first, then) .inject = commanded, .harm = first, .repair = then
#define FAILS(how, of, which, with)                                            \
    .inject = how, .among = of, .call = which, .err = with
#define HITS(which, of, how)                                                   \
    .of_a_process = true, .harmless = true, .inject = call_hit,                \
    .script = which, .among = of, .action = how
#define OF_A_PROCESS .of_a_process = true
#define OF_A_LOCK    .of_a_lock = true
#define HARMLESS     .harmless = true
#define LOSES_DATA   .loses_data = true
#define OUTLIVES     .outlives_leases = true

const nemesis_kind nemesis_kinds[] = {
    {"server stopped shortly", 5, .inject = server_stops_shortly},
    {"server stopped for longer than a lease", 6, OUTLIVES,
     .inject = server_stops_long},
    {"server killed, back with its data", 1, .inject = server_killed},
    {"server down for longer than a lease", 1, OUTLIVES,
     .inject = server_killed_long},
    {"server restarted", 4, .inject = server_restarted},
    {"server killed, back empty", 2, LOSES_DATA, .inject = server_emptied},
    {"server sleeps", 7, .inject = server_sleeps},
    {"server busy with a script", 8, .inject = server_busy},
    {"server pauses writes", 20, .inject = server_pauses_writes},
    {"server pauses all", 20, .inject = server_pauses_all},
    {"server out of memory", 16,
     COMMANDS("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")},
    /* Of a master that does not exist: nothing is replaced. */
    {"server is a replica", 29,
     COMMANDS("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")},
    {"server misses replicas", 31,
     COMMANDS("CONFIG SET min-replicas-to-write 1",
              "CONFIG SET min-replicas-to-write 0")},
    {"server has no room for clients", 19, .inject = server_crowded},
    {"scripts flushed", 22, HARMLESS, COMMANDS("SCRIPT FLUSH", NULL)},
    {"connections killed", 21,
     COMMANDS("CLIENT KILL TYPE normal SKIPME yes", NULL)},
    {"bells killed", 71, HARMLESS, COMMANDS("CLIENT KILL TYPE pubsub", NULL)},
    {"bells forged", 75, HARMLESS, .inject = bells_forged},
    {"all data flushed", 11, LOSES_DATA, COMMANDS("FLUSHALL", NULL)},
    {"lock deleted", 12, LOSES_DATA, OF_A_LOCK, .inject = lock_deleted},
    {"lock renamed", 13, LOSES_DATA, OF_A_LOCK, .inject = lock_renamed},
    {"lock forced open", 12, LOSES_DATA, OF_A_LOCK, .inject = lock_forced},
    {"lock replaced", 14, LOSES_DATA, OF_A_LOCK,
     .inject = lock_of_another_type},
    {"lease cut short", 13, LOSES_DATA, OF_A_LOCK, .inject = lease_cut_short},
    {"lease without end", 13, OF_A_LOCK, .inject = lease_without_end},
    {"worker killed", 78, OF_A_PROCESS, .inject = worker_killed},
    {"worker stopped shortly", 79, OF_A_PROCESS,
     .inject = worker_stops_shortly},
    {"worker stopped for longer than a lease", 79, OF_A_PROCESS, OUTLIVES,
     .inject = worker_stops_long},
    {"signals", 63, OF_A_PROCESS, HARMLESS, .inject = worker_signalled},
    {"worker suspended", 80, OF_A_PROCESS, OUTLIVES,
     .inject = worker_suspended},
    {"wall clock jumps", 93, OF_A_PROCESS, HARMLESS,
     .inject = wall_clock_jumps},
    {"allocations fail", 92, OF_A_PROCESS,
     FAILS(calls_fail, 8, SHIM_ALLOC, ENOMEM)},
    {"sends fail", 61, OF_A_PROCESS, FAILS(calls_fail, 8, SHIM_SEND, EPIPE)},
    {"sends are short", 64, OF_A_PROCESS,
     FAILS(calls_fail, 8, SHIM_SEND, SHIM_SHORT)},
    {"receives fail", 49, OF_A_PROCESS,
     FAILS(calls_fail, 8, SHIM_RECV, ECONNRESET)},
    {"receives are short", 51, OF_A_PROCESS,
     FAILS(calls_fail, 8, SHIM_RECV, SHIM_SHORT)},
    {"polls are interrupted", 63, OF_A_PROCESS, HARMLESS,
     FAILS(calls_fail, 8, SHIM_POLL, EINTR)},
    {"no more descriptors", 66, OF_A_PROCESS,
     FAILS(connecting_fails, 2, SHIM_SOCKET, EMFILE)},
    {"connects fail", 46, OF_A_PROCESS,
     FAILS(connecting_fails, 2, SHIM_CONNECT, ECONNREFUSED)},
    {"connections cut", 21, OF_A_PROCESS, .inject = connections_cut},
    {"connections refused", 46, OF_A_PROCESS, .inject = connections_refused},
    {"way frozen shortly", 48, OF_A_PROCESS, .inject = way_frozen_shortly},
    {"way frozen for longer than a lease", 48, OF_A_PROCESS, OUTLIVES,
     .inject = way_frozen_long},
    {"acquire cut before", 53, HITS("acquire", 20, PROXY_CUT_BEFORE)},
    {"acquire cut after", 53, HITS("acquire", 20, PROXY_CUT_AFTER)},
    {"acquire cut in its reply", 49, HITS("acquire", 20, PROXY_CUT_IN_REPLY)},
    {"acquire unanswered", 53, HITS("acquire", 20, PROXY_SWALLOW_REPLY)},
    {"acquire executed late", 56, HITS("acquire", 20, PROXY_HOLD_REQUEST)},
    {"acquire answered late", 52, HITS("acquire", 20, PROXY_HOLD_REPLY)},
    {"acquire answered slowly", 51, HITS("acquire", 20, PROXY_DRIP_REPLY)},
    {"release cut before", 54, HITS("release", 20, PROXY_CUT_BEFORE)},
    {"release cut after", 54, HITS("release", 20, PROXY_CUT_AFTER)},
    {"release cut in its reply", 49, HITS("release", 20, PROXY_CUT_IN_REPLY)},
    {"release unanswered", 54, HITS("release", 20, PROXY_SWALLOW_REPLY)},
    {"release executed late", 57, HITS("release", 20, PROXY_HOLD_REQUEST)},
    {"release answered late", 52, HITS("release", 20, PROXY_HOLD_REPLY)},
    {"leave cut before", 53, HITS("leave", 2, PROXY_CUT_BEFORE)},
    {"leave cut after", 53, HITS("leave", 2, PROXY_CUT_AFTER)},
    {"renewal cut before", 55, HITS("renew", 2, PROXY_CUT_BEFORE)},
    {"renewal cut after", 55, HITS("renew", 2, PROXY_CUT_AFTER)},
    {"renewal executed late", 57, HITS("renew", 2, PROXY_HOLD_REQUEST)},
    {"renewal answered late", 52, HITS("renew", 2, PROXY_HOLD_REPLY)},
    {"garbage answered", 62, HITS(NULL, 20, PROXY_ANSWER),
     .answer = "*3\r\n:1\r\n$-7\r\n?!\r\n"},
    {"errors answered", 10, HITS(NULL, 20, PROXY_ANSWER),
     .answer = "-LOADING Redis is loading the dataset in memory\r\n"},
    {"power cut", 3, LOSES_DATA, .inject = power_cut},
};
const int nemesis_n_kinds = sizeof nemesis_kinds / sizeof *nemesis_kinds;

bool nemesis_choose(nemesis *n, const char *name)
{
    int kind = 0;
    while (kind < nemesis_n_kinds && strcmp(nemesis_kinds[kind].name, name))
        kind++;
    if (kind < nemesis_n_kinds)
        n->kinds[n->n_kinds++] = kind;
    return kind < nemesis_n_kinds;
}

void nemesis_choose_all(nemesis *n)
{
    while (n->n_kinds < nemesis_n_kinds) {
        n->kinds[n->n_kinds] = n->n_kinds;
        n->n_kinds++;
    }
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
        f->lock = attack_pick(&n->rng, LOCKS);
        f->began_us = attack_now_us();
        if (atomic_load(&n->a->locks[f->lock].inside) && k->inject(n, f))
            return true;
        pause_ms(1);
    }
    return false;
}

void nemesis_strike(nemesis *n)
{
    fault f = {.kind = deal(n), .proc = -1, .lock = -1};
    const nemesis_kind *k = &nemesis_kinds[f.kind];
    /* From the deck, not from what the last fault has left: how often that had
       to try is not in the seed. */
    n->rng = attack_random(&n->deck_rng);
    if (k->of_a_process)
        f.proc = attack_pick(&n->rng, PROCS);
    f.began_us = attack_now_us();
    f.done = k->of_a_lock ? inject_into_a_lock(n, k, &f) : k->inject(n, &f);
    f.ended_us = attack_now_us();
    n->a->faults[n->a->n_faults++] = f;
}
