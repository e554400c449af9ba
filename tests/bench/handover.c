/*
 * From the beginning of an unlock to the moment when the next owner, who has
 * been waiting in another process, goes on. Two processes pass one lock back
 * and forth; before each pass, and after the same pause, one PING is timed. The
 * same over a way that is 250 us long, for a plain lock and for a fair one; and for a
 * plain one that is granted.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "servers.h"

#define ROUNDS   3000
#define FAR      600 /* rounds, far away */
#define AWAY_US  500 /* both ways */
#define WARM_UP  20
#define PAUSE_US 300

typedef struct shared {
    atomic_bool begun;
    atomic_int taken; /* rounds that are over */
    _Atomic int64_t began_ns;
    double pass_us[ROUNDS], ping_us[ROUNDS];
} shared;

typedef struct game {
    shared *sh;
    const char *uri, *near; /* of the clients; of who looks whether one waits */
    bool fair, grants;
    int rounds;
} game;

typedef struct player {
    const game *g;
    shared *sh;
    redisContext *raw, *near;
    rlock *lk;
} player;

static void pass_on(player *p, int round)
{
    const char *who =
        p->g->fair ? "ZCARD rlock_line:{bench}" : "ZCARD rlock_queue:{bench}";
    while (bench_ask(p->near, who) == 0)
        bench_pause_us(PAUSE_US);
    /* Its answer is on the way. */
    if (p->raw != p->near)
        bench_pause_us(AWAY_US);
    bench_pause_us(PAUSE_US);
    p->sh->ping_us[round] = (double)bench_ping_ns(p->raw) / 1000;
    bench_pause_us(PAUSE_US);
    atomic_store(&p->sh->began_ns, bench_now_ns());
    bench_ok(rlock_unlock(p->lk));
    /* Who asks at the moment of a release may be first. */
    while (atomic_load(&p->sh->taken) <= round)
        bench_pause_us(PAUSE_US);
}

static void wait_for_it(player *p, int round)
{
    bench_ok(rlock_lock(p->lk));
    int64_t now = bench_now_ns();
    p->sh->pass_us[round] =
        (double)(now - atomic_load(&p->sh->began_ns)) / 1000;
    atomic_store(&p->sh->taken, round + 1);
}

static rlock *lock_of(rlock_client *cl, bool fair)
{
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk;
    o.fair = fair;
    bench_ok(rlock_new_ex(cl, "bench", 5, &o, &lk));
    return lk;
}

/* In every round the one who has the lock passes it on. */
static void play(const game *g, int me)
{
    shared *sh = g->sh;
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    o.uri = g->uri;
    o.grants = g->grants;
    bench_ok(rlock_client_new(&o, &cl));
    player p = {g, sh, bench_connect(g->uri), NULL, lock_of(cl, g->fair)};
    p.near = g->near ? bench_connect(g->near) : p.raw;
    if (me == 0) {
        bench_ok(rlock_lock(p.lk));
        atomic_store(&sh->begun, true);
    }
    while (!atomic_load(&sh->begun))
        bench_pause_us(PAUSE_US);
    for (int round = 0; round < g->rounds; round++) {
        if (round % 2 == me)
            pass_on(&p, round);
        else
            wait_for_it(&p, round);
    }
    if (g->rounds % 2 == me)
        bench_ok(rlock_unlock(p.lk));
    rlock_free(p.lk);
    rlock_client_free(cl);
    if (p.near != p.raw)
        redisFree(p.near);
    redisFree(p.raw);
}

static void compare(game g, const char *what, double limit, const char *remark)
{
    g.sh = bench_share(sizeof *g.sh);
    for (int me = 0; me < 2; me++) {
        if (bench_fork()) {
            play(&g, me);
            exit(0);
        }
    }
    bench_join();
    bench_join();
    size_t n = (size_t)(g.rounds - WARM_UP);
    double pass = bench_median(g.sh->pass_us + WARM_UP, n);
    double ping = bench_median(g.sh->ping_us + WARM_UP, n);
    if (limit > 0)
        bench_row(what, limit, pass / ping, "", "%.1f µs against %.1f µs%s",
                  pass, ping, remark);
    else
        bench_note(what, "%.2f; %.1f µs against %.1f µs%s", pass / ping, pass,
                   ping, remark);
}

int main(int argc, char **argv)
{
    bench_round_trip_us *away_us = bench_share(sizeof *away_us);
    const char *uri = bench_uri(argc, argv);
    char far[128];
    const char *where = bench_place(uri, true)
                            ? "; the server has a processor of its own"
                            : "; wherever the kernel put them";
    compare((game){.uri = uri, .rounds = ROUNDS},
            "hand-over to a waiter in another process, in PINGs", 2.5, where);
    compare((game){.uri = uri, .rounds = ROUNDS, .fair = true},
            "- of a fair lock", 0, where);
    atomic_store(away_us, AWAY_US);
    bench_start_relay(uri, away_us, far);
    compare((game){.uri = far, .near = uri, .rounds = FAR},
            "- 250 µs away, of a plain lock", 0, "");
    compare((game){.uri = far, .near = uri, .rounds = FAR, .fair = true},
            "- 250 µs away, of a fair lock", 1.4, "");
    compare((game){.uri = uri, .rounds = ROUNDS, .grants = true},
            "- of a plain lock, with `grants`", 2.0, where);
    compare((game){.uri = far, .near = uri, .rounds = FAR, .grants = true},
            "- 250 µs away, of a plain lock, with `grants`", 1.4, "");
    return 0;
}
