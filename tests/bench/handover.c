/*
 * From the beginning of an unlock to the moment when the next owner, who has
 * been waiting in another process, goes on. Two processes pass one lock back
 * and forth; before each pass, and after the same pause, one PING is timed.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#define ROUNDS   3000
#define WARM_UP  20
#define PAUSE_US 300

#define QUEUE "rlock_queue:{bench}"

typedef struct shared {
    atomic_bool begun;
    atomic_int taken; /* rounds that are over */
    _Atomic int64_t began_ns;
    double pass_us[ROUNDS], ping_us[ROUNDS];
} shared;

typedef struct player {
    shared *sh;
    redisContext *raw;
    rlock *lk;
} player;

static void pass_on(player *p, int round)
{
    while (bench_ask(p->raw, "ZCARD " QUEUE) == 0)
        bench_pause_us(PAUSE_US);
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

/* In every round the one who has the lock passes it on. */
static void play(shared *sh, const char *uri, int me)
{
    rlock_client *cl = bench_client(uri);
    player p = {sh, bench_connect(uri), bench_lock(cl, "bench")};
    if (me == 0) {
        bench_ok(rlock_lock(p.lk));
        atomic_store(&sh->begun, true);
    }
    while (!atomic_load(&sh->begun))
        bench_pause_us(PAUSE_US);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2 == me)
            pass_on(&p, round);
        else
            wait_for_it(&p, round);
    }
    if (ROUNDS % 2 == me)
        bench_ok(rlock_unlock(p.lk));
    rlock_free(p.lk);
    rlock_client_free(cl);
    redisFree(p.raw);
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    shared *sh = bench_share(sizeof *sh);
    bool placed = bench_place(uri, true);
    for (int me = 0; me < 2; me++) {
        if (bench_fork()) {
            play(sh, uri, me);
            exit(0);
        }
    }
    bench_join();
    bench_join();
    double pass = bench_median(sh->pass_us + WARM_UP, ROUNDS - WARM_UP);
    double ping = bench_median(sh->ping_us + WARM_UP, ROUNDS - WARM_UP);
    bench_row("hand-over to a waiter in another process, in PINGs", 2.5,
              pass / ping, "", "%.1f µs against %.1f µs; %s", pass, ping,
              placed ? "the server has a processor of its own"
                     : "wherever the kernel put them");
    return 0;
}
