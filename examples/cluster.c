/*
 * cluster URI: a nested lock that outlives the master of its slot.
 *
 * The URI names some nodes of a Redis Cluster; which of all its nodes has the
 * lock, and when that is another one, is the library's business. The program
 * locks twice and works, and in each step another client tries to get the lock.
 * You see the failover in between, and the renewal at the new master; it ends
 * some steps after that, or when the lock is lost.
 */
#include "example.h"

#include <stdatomic.h>

static atomic_int failovers, renewed_there;

static void on_event(const rlock_event *ev, void *arg)
{
    (void)arg;
    if (ev->type == RLOCK_EVENT_FAILOVER) {
        printf("failover: %s\n", ev->message);
        atomic_fetch_add(&failovers, 1);
    }
    if (ev->type == RLOCK_EVENT_RENEWED && atomic_load(&failovers) > 0 &&
        atomic_fetch_add(&renewed_there, 1) == 0)
        printf("renewed at the new master\n");
    if (ev->type == RLOCK_EVENT_LOST)
        printf("LOST: %s\n", ev->message);
}

static rlock_client *connect_to(const char *uri)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *client;
    opts.uri = uri;
    opts.on_event = on_event;
    MUST(rlock_client_new(&opts, &client));
    return client;
}

/* As long as there is no master, nobody is told yes either. */
static bool is_refused(rlock *other)
{
    rlock_status status = rlock_trylock(other);
    if (status == RLOCK_OK)
        fail("another client", "it has got the lock, too");
    printf("another client: %s\n", rlock_status_str(status));
    return status == RLOCK_BUSY;
}

static void unlock(rlock *lock)
{
    rlock_status status = rlock_unlock(lock);
    printf("unlock: %s\n", rlock_status_str(status));
    if (status != RLOCK_OK)
        fail("unlock", rlock_last_error()->message);
}

int main(int argc, char **argv)
{
    rlock_client *ours, *theirs;
    rlock *lock, *other;
    int steps_after = 0;
    if (argc != 2)
        fail("usage", "cluster redis-cluster://host:port,...");
    print_lines();
    ours = connect_to(argv[1]);
    theirs = new_client(argv[1]);
    MUST(rlock_new(ours, "example:cluster", &lock));
    MUST(rlock_new(theirs, "example:cluster", &other));
    MUST(rlock_lock(lock));
    MUST(rlock_lock(lock));
    for (int step = 1; rlock_is_held(lock) && steps_after < 10; step++) {
        printf("step %d: held, level %d, token %" PRIu64 "\n", step,
               rlock_hold_count(lock), rlock_token(lock));
        if (is_refused(other) && atomic_load(&renewed_there) > 0)
            steps_after++;
        sleep_ms(200);
    }
    unlock(lock);
    unlock(lock);
    rlock_free(other);
    rlock_free(lock);
    rlock_client_free(theirs);
    rlock_client_free(ours);
    return 0;
}
