/*
 * redlock URI...: one lock on several independent servers.
 *
 * Held by who holds it on a majority, it outlives the loss of the others. When
 * the majority is gone, the program is told in time to stop. redlock.sh starts
 * it on five servers and kills some. Each step prints what is left of the lease
 * on each server, -1 where none answers; the watchdog renews it every 500 ms.
 * Ends with 0 when the work is done, with 3 when the lock was lost before.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"
#include <stdatomic.h>
#include <string.h>

enum { LEASE_MS = 1500, STEPS = 300, LOST = 3 };

static atomic_int told; /* the event comes on a thread of the library */

static void on_event(const rlock_event *ev, void *arg)
{
    (void)arg;
    if (ev->type == RLOCK_EVENT_LOST) {
        printf("LOST after %" PRId64 " ms: %s\n", ev->elapsed_ms, ev->message);
        atomic_fetch_add(&told, 1);
    }
}

/* What is left of the lease on one server; -1 when it does not answer. */
static long node_ttl(rlock_client *client)
{
    int64_t ttl;
    rlock *node; /* the same name on this server alone */
    MUST(rlock_new(client, "example:redlock", &node));
    if (rlock_ttl(node, &ttl) != RLOCK_OK)
        ttl = -1;
    rlock_free(node);
    return (long)ttl;
}

int main(int argc, char **argv)
{
    rlock_client *clients[RLOCK_RED_MAX];
    int n = argc - 1, step;
    rlock_status status;
    rlock *lock;

    print_lines();
    if (n < 1 || n > RLOCK_RED_MAX)
        fail("usage", "redlock URI... (nine at most)");
    for (int i = 0; i < n; i++) {
        rlock_options opts = RLOCK_OPTIONS_INIT;
        opts.uri = argv[i + 1];
        opts.watchdog_lease_ms = LEASE_MS;
        opts.on_event = on_event; /* the first client's gets the lock's */
        MUST(rlock_client_new(&opts, &clients[i]));
    }
    MUST(rlock_red_new(clients, (size_t)n, "example:redlock", &lock));
    MUST(rlock_lock(lock));
    printf("locked; %d of %d servers have to agree; token %" PRIu64 "\n",
           n / 2 + 1, n, rlock_token(lock));

    for (step = 1; step <= STEPS && rlock_is_held(lock); step++) {
        char ttls[RLOCK_RED_MAX * 24] = "";
        for (int i = 0; i < n; i++)
            sprintf(ttls + strlen(ttls), " %5ld", node_ttl(clients[i]));
        printf("step %d: good for %" PRId64 " ms; on the servers:%s\n", step,
               rlock_valid_ms(lock), ttls);
        sleep_ms(200); /* the work */
    }
    for (int i = 0; i < 200 && step <= STEPS && !atomic_load(&told); i++)
        sleep_ms(10); /* is_held() may know it a moment before the event */
    status = rlock_unlock(lock);
    printf("work has stopped; unlock: %s\n", rlock_status_str(status));

    rlock_free(lock);
    for (int i = 0; i < n; i++)
        rlock_client_free(clients[i]);
    return status == RLOCK_LOST && told == 1 ? LOST : status != RLOCK_OK;
}
