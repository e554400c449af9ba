/*
 * extend [URI]: a job that asks for more time only while it gets on.
 *
 * With a watchdog a lock lasts for as long as its process lives, also if that
 * hangs in an endless loop. Here the lease is explicit, a second, and the
 * worker extends it after each piece of work: if one piece never ends, nobody
 * extends it, and the lock is free half a second later. You see five pieces
 * that together take longer than the lease, then one that hangs, and another
 * worker that takes over.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

enum { LEASE_MS = 1000, PIECES = 4 };

int main(int argc, char **argv)
{
    const char *uri = argc > 1 ? argv[1] : NULL;
    rlock_client *client = new_client(uri), *other = new_client(uri);
    rlock *lock, *next;
    print_lines();
    MUST(rlock_new(client, "example:extend", &lock));
    MUST(rlock_new(other, "example:extend", &next));

    MUST(rlock_acquire(lock, 0, LEASE_MS));
    for (int i = 1; i <= PIECES; i++) {
        sleep_ms(300);
        MUST(rlock_extend(lock, LEASE_MS)); /* from now on, as much again */
        printf("piece %d is done, %" PRId64 " ms are left\n", i,
               rlock_valid_ms(lock));
    }

    printf("piece %d hangs\n", PIECES + 1);
    MUST(rlock_acquire(next, 10000, LEASE_MS)); /* waits for the lease's end */
    printf("another worker has it, with a larger token\n");
    rlock_status late = rlock_extend(lock, LEASE_MS);
    printf("the one that hung is told: %s\n", rlock_last_error()->message);

    MUST(rlock_unlock(next));
    (void)rlock_unlock(lock); /* pairs with its acquire; it was lost */
    rlock_free(next);
    rlock_free(lock);
    rlock_client_free(other);
    rlock_client_free(client);
    return late == RLOCK_LOST ? 0 : 1;
}
