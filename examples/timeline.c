/*
 * timeline [OPTION]... [URI [STEP]...]: what threads do with a lock, written down.
 *
 * Each thread does the steps, one after the other: `lock`, `unlock`, `look` (who
 * has it, and what is left of the lease at the server), or a number: so many
 * milliseconds of work. The events go to stdout as timeline.h writes them, and
 * rlock-timeline makes a picture of them:
 *
 *     timeline redis://127.0.0.1 lock 500 lock 500 unlock unlock | rlock-timeline
 *
 *   -w WHO       what its threads are called; with -n also "WHO 1", ...
 *   -n THREADS   1          -k ROUNDS    of the steps; 1
 *   -l LEASE_MS  3000       -t TURN_MS, -r MIN_REPLICAS: options.h
 *   -o MS        each thread has a lock of its own, and begins so much after the
 *                one before it
 */
#include "timeline.h"
#include "example.h"

#include <pthread.h>
#include <string.h>

static rlock_options opts = RLOCK_OPTIONS_INIT;
static rlock_client *client;
static const char *who = "thread";
static char **steps;
static long threads = 1, rounds = 1, own_ms = -1;

static void look(rlock *lock)
{
    rlock_holder h;
    if (rlock_holder_info(lock, &h, sizeof h) == RLOCK_OK)
        printf("%" PRId64 "\t%" PRId64 ":%" PRId64 "\tLOOK\t\t0\t%" PRId64
               "\t\n",
               timeline_now_us(), h.pid, h.tid, h.ttl_ms);
    else
        printf("%" PRId64 "\t-\tLOOK\t\t0\t0\t\n", timeline_now_us());
}

static void work(double ms)
{
    int64_t us = (int64_t)(ms * 1000);
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

static void lock_it(rlock *lock, const char *name)
{
    if (rlock_hold_count(lock) == 0)
        timeline_line(stdout, "ASKED", name, 0, 0, "");
    (void)rlock_lock(lock); /* what comes of it is told by events */
}

static void take(rlock *lock, const char *name, const char *step)
{
    if (strcmp(step, "lock") == 0)
        lock_it(lock, name);
    else if (strcmp(step, "unlock") == 0)
        (void)rlock_unlock(lock);
    else if (strcmp(step, "look") == 0)
        look(lock);
    else
        work(strtod(step, NULL));
}

static void *run(void *number)
{
    long n = (long)(intptr_t)number;
    char name[64], lane[64];
    rlock *lock;
    snprintf(name, sizeof name, own_ms < 0 ? "example:timeline" : "lock %ld",
             n);
    snprintf(lane, sizeof lane, threads > 1 ? "%s %ld" : "%s", who, n);
    timeline_lane(stdout, lane);
    sleep_ms(own_ms < 0 ? 0 : own_ms * (n - 1));
    MUST(rlock_new(client, name, &lock));
    for (long i = 0; i < rounds; i++)
        for (char **step = steps; *step; step++)
            take(lock, name, *step);
    rlock_free(lock);
    return NULL;
}

static void read_option(int option, const char *value)
{
    long n = strtol(value, NULL, 10);
    switch (option) {
    case 'w':
        who = value;
        break;
    case 'n':
        threads = n;
        break;
    case 'k':
        rounds = n;
        break;
    case 'l':
        opts.watchdog_lease_ms = n;
        break;
    case 't':
        opts.turn_ms = n;
        break;
    case 'r':
        opts.min_replicas = (unsigned)n;
        break;
    case 'o':
        own_ms = n;
        break;
    default:
        fail("timeline", "see the beginning of timeline.c");
    }
}

int main(int argc, char **argv)
{
    static char *some[] = {"lock",   "300",    "lock", "300",
                           "unlock", "unlock", NULL};
    opts.watchdog_lease_ms = 3000;
    for (int o; (o = getopt(argc, argv, "w:n:k:l:t:r:o:")) != -1;)
        read_option(o, optarg ? optarg : "");
    opts.uri = optind < argc ? argv[optind] : NULL;
    steps = optind + 1 < argc ? argv + optind + 1 : some;
    opts.on_event = timeline_event;
    opts.event_arg = stdout;
    print_lines();
    MUST(rlock_client_new(&opts, &client));
    pthread_t thread[64];
    if (threads < 1 || threads > 64)
        fail("timeline", "1 to 64 threads");
    for (long i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, run, (void *)(intptr_t)(i + 1)) !=
            0)
            fail("timeline", "pthread_create failed");
    for (long i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    rlock_client_free(client);
    return 0;
}
