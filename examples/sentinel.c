/*
 * sentinel URI: a lock that outlives its master.
 *
 * The URI names Sentinels; where the master is, and when it is another one, is
 * the library's business. The program takes a lock and works under it for as
 * long as it holds. You see each step, and the failover in between; it ends
 * some steps after that, or when the lock is lost.
 */
#include "example.h"

#include <stdatomic.h>

static atomic_int failovers;

static void on_event(const rlock_event *ev, void *arg)
{
    (void)arg;
    if (ev->type == RLOCK_EVENT_FAILOVER) {
        printf("failover: %s\n", ev->message);
        atomic_fetch_add(&failovers, 1);
    }
    if (ev->type == RLOCK_EVENT_LOST)
        printf("LOST: %s\n", ev->message);
}

int main(int argc, char **argv)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *client;
    rlock *lock;
    int steps_after = 0;
    if (argc != 2)
        fail("usage", "sentinel redis-sentinel://host:port,.../master");
    print_lines();
    opts.uri = argv[1];
    opts.on_event = on_event;
    MUST(rlock_client_new(&opts, &client));
    MUST(rlock_new(client, "example:sentinel", &lock));
    MUST(rlock_lock(lock));
    for (int step = 1; rlock_is_held(lock) && steps_after < 10; step++) {
        printf("step %d: held, token %" PRIu64 "\n", step, rlock_token(lock));
        steps_after += atomic_load(&failovers) > 0;
        sleep_ms(200);
    }
    rlock_status status = rlock_unlock(lock);
    printf("unlock: %s\n", rlock_status_str(status));
    rlock_free(lock);
    rlock_client_free(client);
    return status == RLOCK_OK ? 0 : 1;
}
