/*
 * run_once [URI]: of several instances, one runs the nightly job.
 *
 * Three processes start together, as cron does it on three machines, and a
 * fourth comes late. The lock lets one in; the others do not wait for it. The
 * late one gets the lock, but finds the note that the job is done: a lock says
 * who is at work now, the note says what has been done. The lease is a fixed
 * one: should the job hang, the next instance may try after ten seconds.
 */
#define _POSIX_C_SOURCE 200809L
#include "data.h"

static char job[64]; /* in earnest: its name and the date */

static void run_job(redisContext *data, const rlock *lock)
{
    if (data_number(data, "HGET %s done", job)) {
        printf("  process %ld: the job is done already\n", (long)getpid());
        return;
    }
    printf("  process %ld: runs the job\n", (long)getpid());
    data_number(data, "HINCRBY %s runs 1", job);
    sleep_ms(500);
    if (!rlock_is_held(lock)) /* too slow: somebody else may be at it */
        fail("run_once", "the job took longer than its lease");
    data_number(data, "HSET %s done 1", job);
}

static int instance(const char *uri)
{
    redisContext *data = data_connect(uri);
    rlock_client *client = new_client(uri);
    rlock_status status;
    rlock *lock;

    MUST(rlock_new(client, "example:run_once", &lock));
    status = rlock_acquire(lock, 0, 10000);
    if (status == RLOCK_BUSY) {
        printf("  process %ld: another one is at it\n", (long)getpid());
    } else {
        MUST(status);
        run_job(data, lock);
        MUST(rlock_unlock(lock));
    }
    rlock_free(lock);
    rlock_client_free(client);
    redisFree(data);
    return 0;
}

int main(int argc, char **argv)
{
    const char *uri = argc > 1 ? argv[1] : NULL;
    redisContext *data = data_connect(uri);
    snprintf(job, sizeof(job), "example:run_once:%ld", (long)getpid());
    data_number(data, "HSET %s runs 0", job);
    data_number(data, "EXPIRE %s 60", job);
    redisFree(data); /* children inherit no connection */

    print_lines();
    printf("three instances start\n");
    int failed = in_processes(3, instance, uri);
    printf("a late one starts\n");
    failed += in_processes(1, instance, uri);

    data = data_connect(uri);
    long long runs = data_number(data, "HGET %s runs", job);
    printf("runs of the job: %lld\n", runs);
    data_number(data, "DEL %s", job);
    redisFree(data);
    return failed || runs != 1;
}
