/*
 * The verb `bench`: what locks cost against this server, in its round trips.
 * Three measurements take turns, so that what else goes on meets them all: a
 * PING, a pair of acquire and release by one thread, and the hand-over of a lock
 * between two threads with a client each, as between two processes.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "look.h"
#include "os.h"

#define TURN_US 100000
#define WAIT_MS 2500 /* who cannot be rung looks every two seconds */

enum { PING, PAIR, HANDOVER, KINDS, TURNS_MAX = 10000 };

typedef struct bench bench;

/* A thread that wants the lock again and again. */
typedef struct rival {
    bench *b;
    cli_server s;
    rlock *lk;
    pthread_t thread;
    rlock_error failed; /* status RLOCK_OK: it did not */
    int number;
} rival;

struct bench {
    cli_options *o;
    int64_t for_ms;
    rival rivals[2];
    int64_t end_us;   /* of a turn */
    atomic_int last;  /* whose the lock was */
    atomic_long done; /* in this turn: how often it was another's */
    double *us[KINDS];
    size_t turns;
};

static const cli_option options[] = {
    {'t', "time", "SECONDS", "how long, in all; 10"},
    {0},
};

static int take(void *arg, int letter)
{
    bench *b = arg;
    char shown[60];
    (void)letter;
    if (cli_seconds(optarg, &b->for_ms) && b->for_ms >= 300 &&
        b->for_ms <= 1000000)
        return 0;
    return cli_misused(&cli_bench, "-t is 0.3 to 1000 seconds, and not '%s'",
                       cli_printable_word(shown, sizeof shown, optarg));
}

/* --- A turn --------------------------------------------------------------- */

static bool succeeded(rival *r, rlock_status status)
{
    if (status != RLOCK_OK)
        r->failed = *rlock_last_error();
    return status == RLOCK_OK;
}

static bool lock_and_unlock(rival *r)
{
    if (!succeeded(r, rlock_acquire(r->lk, WAIT_MS, RLOCK_WATCHDOG)))
        return false;
    if (atomic_exchange(&r->b->last, r->number) != r->number)
        atomic_fetch_add(&r->b->done, 1);
    return succeeded(r, rlock_unlock(r->lk));
}

static bool ping(rival *r)
{
    return succeeded(r, rlock_client_ping(r->s.client[0]));
}

/* Microseconds for each time that it was done by one thread. */
static double take_alone(rival *r, bool (*act)(rival *r))
{
    int64_t began_us = cli_now_us(), now_us = began_us;
    long n = 0;
    for (; now_us - began_us < TURN_US && act(r); now_us = cli_now_us())
        n++;
    return n > 0 ? (double)(now_us - began_us) / (double)n : 0;
}

static void *compete(void *arg)
{
    rival *r = arg;
    while (cli_now_us() < r->b->end_us && lock_and_unlock(r))
        ;
    return NULL;
}

static double hand_over(bench *b)
{
    int64_t began_us = cli_now_us();
    b->end_us = began_us + TURN_US;
    atomic_store(&b->done, 0);
    size_t n = 0;
    while (n < 2 && pthread_create(&b->rivals[n].thread, NULL, compete,
                                   &b->rivals[n]) == 0)
        n++;
    for (size_t i = 0; i < n; i++)
        pthread_join(b->rivals[i].thread, NULL);
    long done = atomic_load(&b->done);
    return done > 0 ? (double)(cli_now_us() - began_us) / (double)done : 0;
}

/* --- All of them ---------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void tell_json(const char *what, double us, double pings)
{
    char number[40];
    cli_json j = {0};
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "what", what);
    snprintf(number, sizeof number, "%.1f", us);
    cli_json_word(&j, "median_us", number);
    snprintf(number, sizeof number, "%.2f", pings);
    cli_json_word(&j, "pings", number);
    cli_json_shut(&j, '}');
    putchar('\n');
}

static void tell(const bench *b)
{
    static const char *const names[] = {"ping", "pair", "hand-over"};
    static const char *const heads[] = {"WHAT", "MEDIAN us", "PINGS",
                                        "A SECOND"};
    cli_table t = {.heads = heads, .columns = 4};
    double of_ping = b->us[PING][b->turns / 2];
    for (int k = 0; k < KINDS; k++) {
        double us = b->us[k][b->turns / 2];
        if (b->o->json) {
            tell_json(names[k], us, us / of_ping);
            continue;
        }
        cli_table_put(&t, names[k]);
        cli_table_putf(&t, "%.0f", us);
        cli_table_putf(&t, "%.2f", us / of_ping);
        cli_table_putf(&t, "%.0f", 1000000 / us);
    }
    if (!b->o->json)
        cli_table_print(&t);
}

static bool failed(const bench *b)
{
    const rlock_error *e = &b->rivals[0].failed;
    if (e->status == RLOCK_OK)
        e = &b->rivals[1].failed;
    if (e->status != RLOCK_OK)
        cli_say("%s", e->message);
    return e->status != RLOCK_OK;
}

static int measure(bench *b)
{
    static bool (*const alone[])(rival *) = {ping, lock_and_unlock};
    int64_t end_us = cli_now_us() + b->for_ms * 1000;
    while (b->turns < TURNS_MAX && (b->turns == 0 || cli_now_us() < end_us)) {
        for (int k = 0; k < KINDS; k++) {
            b->us[k][b->turns] = k == HANDOVER
                                     ? hand_over(b)
                                     : take_alone(&b->rivals[0], alone[k]);
            if (failed(b))
                return CLI_FAILED;
        }
        b->turns++;
    }
    for (int k = 0; k < KINDS; k++)
        qsort(b->us[k], b->turns, sizeof(double), compare);
    tell(b);
    return cli_printed(0);
}

static bool open_rivals(bench *b)
{
    char name[100], host[60] = "";
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "rlock-bench:%s:%ld", host, (long)getpid());
    for (int i = 0; i < 2; i++) {
        rival *r = &b->rivals[i];
        r->b = b;
        r->number = i;
        if (!look_open(&r->s, b->o))
            return false;
        if (cli_lock(&r->s, name, &r->lk) != RLOCK_OK) {
            look_failed();
            return false;
        }
    }
    return true;
}

static int run(cli_options *o, int argc, char **argv)
{
    bench b = {.o = o, .for_ms = 10000};
    int status = CLI_FAILED;
    double *all = calloc(KINDS * TURNS_MAX, sizeof *all);
    for (size_t k = 0; k < KINDS && all; k++)
        b.us[k] = all + k * TURNS_MAX;
    if (!all)
        cli_say("out of memory");
    else if (cli_take_options(&cli_bench, o, argc, argv, take, &b, &status))
        status = cli_words(&cli_bench, argc, 0, 0) && open_rivals(&b)
                     ? measure(&b)
                     : CLI_FAILED;
    for (int i = 0; i < 2; i++) {
        rlock_free(b.rivals[i].lk);
        cli_close(&b.rivals[i].s);
    }
    free(all);
    return status;
}

const cli_verb cli_bench = {
    .name = "bench",
    .usage = "[-t SECONDS] [--json]",
    .options = options,
    .help = "What a lock costs against this server: a pair of acquire and "
            "release by one\nthread, and the hand-over between two that both "
            "want it, beside a PING. The name\nis its own; the key of its "
            "token is gone after five minutes.\nExit status: 0; 125 it "
            "failed.\n",
    .run = run,
    .prints = true,
};
