/*
 * start_gun [URI]: eight processes start at the same moment.
 *
 * Each gets ready in a time of its own, as programs on eight machines do, says
 * so by counting down a latch, and waits for it: the last to be ready fires the
 * gun. The latch is set before anybody waits, for what is not set is open; and
 * it lives for a minute, should one of them never get there.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#define RUNNERS 8

static char race[64];
static struct timespec began;

static long ms_since(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)(now.tv_sec - then->tv_sec) * 1000 +
           (now.tv_nsec - then->tv_nsec) / 1000000;
}

static int runner(const char *uri)
{
    rlock_client *client = new_client(uri);
    rlock_latch *gun;
    long ready_ms, off_ms;

    MUST(rlock_latch_new(client, race, &gun));
    sleep_ms(getpid() % RUNNERS * 50);
    ready_ms = ms_since(&began);
    MUST(rlock_latch_count_down(gun, 1));
    MUST(rlock_latch_wait(gun, 10000));
    off_ms = ms_since(&began);
    printf("  process %ld: ready after %3ld ms, off after %3ld ms\n",
           (long)getpid(), ready_ms, off_ms);
    rlock_latch_free(gun);
    rlock_client_free(client);
    return 0;
}

int main(int argc, char **argv)
{
    const char *uri = argc > 1 ? argv[1] : NULL;
    rlock_client *client = new_client(uri);
    rlock_latch *gun;
    int64_t missing;

    snprintf(race, sizeof(race), "example:race:%ld", (long)getpid());
    print_lines();
    MUST(rlock_latch_new(client, race, &gun));
    MUST(rlock_latch_set(gun, RUNNERS, 60000));
    printf("on your marks\n");
    clock_gettime(CLOCK_MONOTONIC, &began);
    int failed = in_processes(RUNNERS, runner, uri);
    MUST(rlock_latch_count(gun, &missing));
    printf("still missing: %" PRId64 "\n", missing);
    rlock_latch_free(gun);
    rlock_client_free(client);
    return failed || missing != 0;
}
