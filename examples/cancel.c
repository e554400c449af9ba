/*
 * cancel [URI]: how to end a wait from outside, and how to stop a program whose
 * threads wait.
 *
 * rlock_cancel() ends what waits on one handle at that moment: a user has
 * closed his window. rlock_client_cancel() is a state: until it is switched
 * off, no wait begins, so a program that stops can join its threads. At the end
 * what is still held is released, so nobody has to wait for its lease.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"
#include <pthread.h>

static void *wait_for_it(void *lock)
{
    rlock_status s = rlock_lock(lock);
    printf("  a waiting thread: %s\n", rlock_status_str(s));
    return s == RLOCK_CANCELED ? lock : NULL;
}

/* Once it waits, `cancel` is called; true: that ended the wait. */
static bool ends(rlock_client *client, rlock *lock, void (*cancel)(rlock *lock))
{
    pthread_t thread;
    rlock_stats stats = {0};
    void *canceled;
    if (pthread_create(&thread, NULL, wait_for_it, lock) != 0)
        fail("cancel", "no second thread");
    while (stats.waiting_now == 0) {
        sleep_ms(5);
        MUST(rlock_client_stats(client, &stats, sizeof(stats)));
    }
    cancel(lock);
    pthread_join(thread, &canceled);
    return canceled == lock;
}

static rlock_client *client;

static void stop_program(rlock *lock)
{
    (void)lock;
    MUST(rlock_client_cancel(client, true));
}

int main(int argc, char **argv)
{
    rlock *held, *lock;
    client = new_client(argc > 1 ? argv[1] : NULL);
    print_lines();
    MUST(rlock_new(client, "example:cancel", &held));
    MUST(rlock_new(client, "example:cancel",
                   &lock)); /* a handle for each wait */
    MUST(rlock_lock(held));
    printf("one wait is canceled\n");
    bool ok = ends(client, lock, rlock_cancel);
    printf("the program stops\n");
    ok = ends(client, lock, stop_program) && ok;
    rlock_free(lock);
    rlock_free(held);
    MUST(rlock_client_close(client, RLOCK_CLOSE_RELEASE_HELD));
    printf("and what it held is free\n");
    return ok ? 0 : 1;
}
