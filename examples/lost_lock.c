/*
 * lost_lock [URI]: a program learns that it has lost its lock, and stops.
 *
 * A lock can be lost: its lease runs out while the program is stopped or cut
 * off, an operator frees it by force, the server loses its data. Here another
 * client frees it by force after the third step of ten. The program learns of
 * it at the watchdog's next renewal, in three ways, each shown: an event,
 * rlock_is_held() before each step, and RLOCK_LOST from the unlock.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"
#include <stdatomic.h>

static atomic_bool told; /* the event comes on a thread of the library */

static void on_event(const rlock_event *ev, void *arg)
{
    (void)arg;
    if (ev->type != RLOCK_EVENT_LOST)
        return;
    printf("  event: '%s' is lost: %s\n", ev->name, ev->message);
    atomic_store(&told, true);
}

static void force_unlock(rlock_client *admin)
{
    rlock *lock;
    MUST(rlock_new(admin, "example:lost_lock", &lock));
    MUST(rlock_force_unlock(lock));
    printf("  (an operator frees the lock by force)\n");
    rlock_free(lock);
}

int main(int argc, char **argv)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *client, *admin;
    rlock_status status;
    rlock *lock;
    int step;

    print_lines();
    opts.uri = argc > 1 ? argv[1] : NULL;
    opts.watchdog_lease_ms = 900; /* renewed, so looked at, every 300 ms */
    opts.on_event = on_event;
    MUST(rlock_client_new(&opts, &client));
    MUST(rlock_new(client, "example:lost_lock", &lock));
    admin = new_client(opts.uri);

    MUST(rlock_lock(lock));
    for (step = 1; step <= 10 && rlock_is_held(lock); step++) {
        printf("step %d of 10, lock held for %" PRId64 " ms more at least\n",
               step, rlock_valid_ms(lock));
        if (step == 3)
            force_unlock(admin);
        sleep_ms(200); /* the work */
    }
    printf("stopped before step %d: the lock is not held any more\n", step);

    for (int i = 0; i < 200 && !atomic_load(&told); i++)
        sleep_ms(10); /* is_held() may know it a moment before the event */
    status = rlock_unlock(lock); /* pairs with the acquire, also after a loss */
    printf("unlock: %s\n", rlock_status_str(status));

    rlock_free(lock);
    rlock_client_free(admin);
    rlock_client_free(client);
    return status == RLOCK_LOST && step <= 10 && atomic_load(&told) ? 0 : 1;
}
