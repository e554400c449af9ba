/*
 * threads [URI]: eight threads count to 400 in one variable.
 *
 * counter = counter + 1 is a read and a write. Without a lock threads read the
 * same value and steps are lost; the pause between the two makes sure of it.
 * Under the lock the sum is right. One client and one handle serve all
 * threads: who owns a lock is the thread, not the handle.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"
#include <pthread.h>

enum { THREADS = 8, ROUNDS = 50 };

static int counter; /* no atomic, no mutex: only the lock in Redis guards it */

static void show(rlock *lock)
{
    rlock_holder h;
    MUST(rlock_holder_info(lock, &h, sizeof h)); /* what HGETALL has */
    printf("  %3d so far; in Redis: %s -> %" PRId64 "\n", counter, h.raw,
           h.count);
}

static void *count(void *arg)
{
    rlock *lock = arg;
    for (int i = 0; i < ROUNDS; i++) {
        MUST(rlock_lock(lock));
        int seen = counter;
        sleep_ms(1);
        counter = seen + 1;
        if (counter % ROUNDS == 0)
            show(lock);
        MUST(rlock_unlock(lock));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    rlock_client *client = new_client(argc > 1 ? argv[1] : NULL);
    rlock_stats stats;
    pthread_t thread[THREADS];
    rlock *lock;

    MUST(rlock_new(client, "example:threads", &lock));
    printf("%d threads add 1 to a counter, %d times each\n", THREADS, ROUNDS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, count, lock) != 0)
            fail("threads", "pthread_create failed");
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);

    MUST(rlock_client_stats(client, &stats, sizeof stats));
    printf("sum %d, expected %d; %" PRIu64 " of %" PRIu64 " acquires waited\n",
           counter, THREADS * ROUNDS, stats.acquires_contended, stats.acquires);
    rlock_free(lock);
    rlock_client_free(client);
    return counter == THREADS * ROUNDS ? 0 : 1;
}
