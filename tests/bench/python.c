/*
 * What a lock and its unlock cost in Python, by a thread and by a task of
 * asyncio, against the calls of C. Short blocks of each take turns, in a changing
 * order; those of Python are done by an interpreter that waits to be asked.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench.h"

#define CYCLES        500
#define BLOCK         20 /* of one subject, between two readings of the clock */
#define TO_STRING_(x) #x
#define TO_STRING(x)  TO_STRING_(x)

enum { C, THREAD, TASK, SUBJECTS };

typedef struct sides {
    rlock *lk;
    int ask;      /* what is written there an interpreter reads, */
    FILE *answer; /* and answers here */
} sides;

static void run_python(const char *uri, int in, int out)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && dup2(in, 0) == 0 &&
        dup2(out, 1) == 1) {
        setenv("RLOCK_LIBRARY", BENCH_LIBRARY, 1);
        setenv("PYTHONPATH", RLOCK_SOURCE_DIR "/src/python", 1);
        setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
        execlp("python3", "python3", RLOCK_SOURCE_DIR "/tests/python/pairs.py",
               uri, TO_STRING(BLOCK), (char *)NULL);
    }
    _exit(127);
}

static void meet(const char *uri, sides *s)
{
    int to[2], from[2];
    bench_check(pipe(to) == 0 && pipe(from) == 0, "no pipe");
    pid_t pid = fork();
    bench_check(pid >= 0, "cannot fork");
    if (pid == 0) {
        close(to[1]);
        close(from[0]);
        run_python(uri, to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    s->ask = to[1];
    s->answer = fdopen(from[0], "r");
    bench_check(s->answer != NULL, "no stream");
    s->lk = bench_lock(bench_client(uri), "bench:c");
}

static int64_t block_of_c(rlock *lk)
{
    int64_t began = bench_now_ns();
    for (int i = 0; i < BLOCK; i++) {
        bench_ok(rlock_lock(lk));
        bench_ok(rlock_unlock(lk));
    }
    return bench_now_ns() - began;
}

/* Microseconds for one pair. */
static double block(sides *s, int subject)
{
    long ns = 0;
    if (subject == C) {
        ns = (long)block_of_c(s->lk);
    } else {
        bench_check(write(s->ask, subject == TASK ? "t" : "p", 1) == 1 &&
                        fscanf(s->answer, "%ld", &ns) == 1,
                    "python3 does not answer");
    }
    return (double)ns / 1000 / BLOCK;
}

int main(int argc, char **argv)
{
    static double us[SUBJECTS][CYCLES];
    const char *uri = bench_uri(argc, argv);
    double median[SUBJECTS];
    sides s;
    bool placed = bench_place(uri, true);
    meet(uri, &s);
    for (int i = 0; i < SUBJECTS; i++)
        block(&s, i); /* connects, loads scripts */
    bench_begin();
    for (int cycle = 0; cycle < CYCLES; cycle++)
        for (int i = 0; i < SUBJECTS; i++)
            us[(cycle + i) % SUBJECTS][cycle] =
                block(&s, (cycle + i) % SUBJECTS);
    for (int i = 0; i < SUBJECTS; i++)
        median[i] = bench_median(us[i], CYCLES);
    bench_row("`with lock` in Python, as a multiple of `rlock_lock` + "
              "`rlock_unlock`",
              3.0, median[THREAD] / median[C], "", "%.1f µs against %.1f µs%s",
              median[THREAD], median[C],
              placed ? "" : "; where the kernel puts them");
    bench_row("- what that adds", 60, median[THREAD] - median[C], " µs",
              "two calls by `ctypes`");
    bench_note("- `async with lock` in a task of asyncio", "%.1f µs",
               median[TASK]);
    return 0;
}
