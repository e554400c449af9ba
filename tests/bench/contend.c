/*
 * How much the server has to do for each critical section when 32 processes
 * want one lock: without a pause between a process's sections, and with a
 * short one, so that nearly every release hands over to another process.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "servers.h"

#define CLIENTS  32
#define RUN_NS   INT64_C(4000000000)
#define THINK_US 1000

typedef struct shared {
    atomic_int ready;
    _Atomic int64_t end_ns; /* 0: not begun */
    atomic_int inside;
    long long sections[CLIENTS];
} shared;

typedef struct result {
    long long sections, least, most;
    double calls, per_second;
} result;

static void section(shared *sh, rlock *lk)
{
    bench_ok(rlock_lock(lk));
    bench_check(atomic_fetch_add(&sh->inside, 1) == 0, "two owners at a time");
    atomic_fetch_sub(&sh->inside, 1);
    bench_ok(rlock_unlock(lk));
}

static void contender(shared *sh, int me, const char *uri, int64_t think_us)
{
    rlock_client *cl = bench_client(uri);
    rlock *lk = bench_lock(cl, "bench");
    int64_t end;
    atomic_fetch_add(&sh->ready, 1);
    while ((end = atomic_load(&sh->end_ns)) == 0)
        bench_pause_us(1000);
    while (bench_now_ns() < end) {
        section(sh, lk);
        sh->sections[me]++;
        if (think_us)
            bench_pause_us(think_us);
    }
    rlock_free(lk);
    rlock_client_free(cl);
}

static void fork_contenders(shared *sh, const char *uri, int64_t think_us)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (bench_fork()) {
            contender(sh, i, uri, think_us);
            exit(0);
        }
    }
    while (atomic_load(&sh->ready) < CLIENTS)
        bench_pause_us(1000);
}

static result run(const char *uri, int64_t think_us)
{
    shared *sh = bench_share(sizeof *sh);
    fork_contenders(sh, uri, think_us);
    long long before = bench_script_calls(uri);
    int64_t began = bench_now_ns();
    atomic_store(&sh->end_ns, began + RUN_NS);
    for (int i = 0; i < CLIENTS; i++)
        bench_join();
    double seconds = (double)(bench_now_ns() - began) / 1e9;

    result r = {.least = sh->sections[0]};
    for (int i = 0; i < CLIENTS; i++) {
        long long n = sh->sections[i];
        r.sections += n;
        r.least = n < r.least ? n : r.least;
        r.most = n > r.most ? n : r.most;
    }
    r.calls = (double)(bench_script_calls(uri) - before) / (double)r.sections;
    r.per_second = (double)r.sections / seconds;
    return r;
}

static void note(const char *what, const result *r)
{
    bench_note(what, "%.2f; %.0f sections a second, %lld to %lld a client",
               r->calls, r->per_second, r->least, r->most);
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    result tight = run(uri, 0), thinking = run(uri, THINK_US);
    double worse = tight.calls > thinking.calls ? tight.calls : thinking.calls;
    bench_row("script calls per critical section, 32 processes contending for "
              "one lock",
              4.0, worse, "", "the worse of the next two");
    note("- in a tight loop", &tight);
    note("- with 1 ms between a process's sections", &thinking);
    return 0;
}
