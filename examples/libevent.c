/*
 * libevent [URI]: three requests of one libevent loop want one lock.
 *
 * An event watches the client's descriptor, and rlock_client_dispatch() calls
 * back. Each request has an owner: one goes two levels deep; then two others
 * begin to wait, one for 50 ms, which is too short, and one that gets the lock.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"
#include <event2/event.h>

static rlock_owner *nested, *hasty, *patient;
static struct event_base *loop;
static int as_expected; /* answers */

static void on_unlocked(rlock *lock, rlock_status s, void *owner)
{
    MUST(s);
    if (rlock_hold_count(lock) > 0)
        MUST(rlock_unlock_start(lock, on_unlocked, owner));
    else if (owner == patient)
        event_base_loopbreak(loop);
}

/* In a callback of rlock the thread acts as the owner whom it concerns. */
static void on_locked(rlock *lock, rlock_status s, void *owner)
{
    int level = rlock_hold_count(lock);
    printf("%s: %s, level %d\n",
           owner == nested  ? "nested"
           : owner == hasty ? "hasty"
                            : "patient",
           rlock_status_str(s), level);
    if (owner == nested && level == 1) {
        MUST(rlock_acquire_start(lock, 0, RLOCK_WATCHDOG, on_locked, nested));
    } else if (level == 2) { /* from here on two others wait */
        rlock_owner_set(hasty);
        MUST(rlock_acquire_start(lock, 50, RLOCK_WATCHDOG, on_locked, hasty));
        rlock_owner_set(patient);
        MUST(rlock_acquire_start(lock, 5000, RLOCK_WATCHDOG, on_locked,
                                 patient));
    } else {
        as_expected += s == (owner == hasty ? RLOCK_TIMEOUT : RLOCK_OK);
        owner = owner == hasty ? nested : patient; /* who has it */
        rlock_owner_set(owner);
        MUST(rlock_unlock_start(lock, on_unlocked, owner));
    }
}

static void on_readable(evutil_socket_t fd, short what, void *client)
{
    (void)fd, (void)what;
    MUST(rlock_client_dispatch(client));
}

int main(int argc, char **argv)
{
    rlock_client *client = new_client(argc > 1 ? argv[1] : NULL);
    rlock *lock;
    MUST(rlock_new(client, "example:libevent", &lock));
    MUST(rlock_owner_new("nested", &nested));
    MUST(rlock_owner_new("hasty", &hasty));
    MUST(rlock_owner_new("patient", &patient));
    loop = event_base_new();
    struct event *watch = event_new(loop, rlock_client_fd(client),
                                    EV_READ | EV_PERSIST, on_readable, client);
    event_add(watch, NULL);
    rlock_owner_set(nested);
    MUST(rlock_acquire_start(lock, 0, RLOCK_WATCHDOG, on_locked, nested));
    event_base_dispatch(loop);
    event_free(watch); /* before the client closes its descriptor */
    event_base_free(loop);
    rlock_owner_free(nested);
    rlock_owner_free(hasty);
    rlock_owner_free(patient);
    rlock_free(lock);
    rlock_client_free(client);
    return as_expected == 2 ? 0 : 1;
}
