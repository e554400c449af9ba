/*
 * watchdog [URI]: a job three times as long as its lease.
 *
 * A lock must not stay for ever when its holder dies, so it has a lease: here
 * one second (the default is 30). A job may take longer: the watchdog renews
 * the lease every third of it until the unlock. You see the TTL fall and jump
 * back up, and that another client cannot have the lock meanwhile.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

static void on_event(const rlock_event *ev, void *arg)
{
    (void)arg;
    if (ev->type == RLOCK_EVENT_RENEWED)
        printf("          the watchdog has renewed the lease\n");
    if (ev->type == RLOCK_EVENT_LOST)
        printf("          lost: %s\n", ev->message);
}

static void do_job(rlock *lock, rlock *wanted)
{
    rlock_holder h;
    for (int ms = 0; ms < 3000; ms += 250) {
        MUST(rlock_holder_info(lock, &h, sizeof h));
        if (rlock_trylock(wanted) != RLOCK_BUSY)
            fail("watchdog", "the other client was not refused");
        printf("%5d ms  TTL %4" PRId64 " ms, %s -> %" PRId64
               "; another client is refused\n",
               ms, h.ttl_ms, h.raw, h.count);
        sleep_ms(250); /* the job */
    }
}

int main(int argc, char **argv)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *client, *rival;
    rlock *lock, *wanted;
    rlock_stats stats;

    print_lines();
    opts.uri = argc > 1 ? argv[1] : NULL;
    opts.watchdog_lease_ms = 1000;
    opts.on_event = on_event;
    MUST(rlock_client_new(&opts, &client));
    MUST(rlock_new(client, "example:watchdog", &lock));
    rival = new_client(opts.uri);
    MUST(rlock_new(rival, "example:watchdog", &wanted));

    MUST(rlock_lock(lock));
    printf("locked for 1000 ms; the job takes 3000 ms\n");
    do_job(lock, wanted);

    MUST(rlock_client_stats(client, &stats, sizeof stats));
    MUST(rlock_unlock(lock));
    printf("unlocked after %" PRIu64 " renewals\n", stats.renewals);
    MUST(rlock_trylock(wanted));
    printf("now the other client has it\n");
    MUST(rlock_unlock(wanted));

    rlock_free(lock);
    rlock_free(wanted);
    rlock_client_free(rival);
    rlock_client_free(client);
    return stats.renewals >= 3 ? 0 : 1;
}
