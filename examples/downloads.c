/*
 * downloads [URI]: at most three downloads at a time, on all machines.
 *
 * Eight processes, as programs on eight machines, have two files to fetch each.
 * Whoever asks first is served first; what a process has that is killed, others
 * have when its lease is over. How many there are at a time each sees at the
 * server.
 */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "example.h"

#define MACHINES 8
#define FILES    2
#define AT_MOST  3

static char name[64];

/* The name is this run's, so its keys go a minute after the last download. */
static rlock_semaphore *new_semaphore(rlock_client *client)
{
    rlock_semaphore_options opts = RLOCK_SEMAPHORE_OPTIONS_INIT;
    rlock_semaphore *downloads;
    opts.permits = AT_MOST;
    opts.idle_ms = 60000;
    MUST(rlock_semaphore_new_ex(client, name, strlen(name), &opts, &downloads));
    return downloads;
}

static void fetch(rlock_semaphore *downloads, int file)
{
    rlock_permit *permit;
    int64_t left;

    MUST(rlock_semaphore_acquire(downloads, 1, 30000, RLOCK_WATCHDOG, &permit));
    MUST(rlock_semaphore_available(downloads, &left));
    printf("  process %ld fetches file %d, now %" PRId64 " do\n",
           (long)getpid(), file, AT_MOST - left);
    sleep_ms(50); /* a download may take hours: the lease is renewed */
    if (!rlock_permit_is_held(permit))
        printf("  process %ld has lost its permit\n", (long)getpid());
    MUST(rlock_permit_release(permit));
}

static int machine(const char *uri)
{
    rlock_client *client = new_client(uri);
    rlock_semaphore *downloads = new_semaphore(client);

    for (int file = 1; file <= FILES; file++)
        fetch(downloads, file);
    rlock_semaphore_free(downloads);
    rlock_client_free(client);
    return 0;
}

int main(int argc, char **argv)
{
    const char *uri = argc > 1 ? argv[1] : NULL;
    rlock_client *client = new_client(uri);
    int64_t left;

    snprintf(name, sizeof(name), "example:downloads:%ld", (long)getpid());
    print_lines();
    rlock_semaphore *downloads = new_semaphore(client);
    int failed = in_processes(MACHINES, machine, uri);
    MUST(rlock_semaphore_available(downloads, &left));
    printf("free again: %" PRId64 " of %d\n", left, AT_MOST);
    rlock_semaphore_free(downloads);
    rlock_client_free(client);
    return failed || left != AT_MOST;
}
