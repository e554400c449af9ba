/*
 * libuv [URI]: five requests of one libuv loop take turns on one lock.
 *
 * uv_poll_t watches the descriptor of the client; rlock_client_dispatch() then
 * calls back, on the loop's thread. Each request has an owner of its own, and
 * so they exclude each other, though all of them run on that thread.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"
#include <uv.h>

enum { REQUESTS = 5, WORK_MS = 20 };

typedef struct request {
    int number;
    rlock_owner *owner;
    uv_timer_t work;
} request;

static rlock *lock; /* one handle serves all owners */
static uv_poll_t watch;
static int inside, overlaps, finished;

/* As in every callback of rlock, the thread acts as the request's owner. */
static void on_unlocked(rlock *lk, rlock_status s, void *arg)
{
    (void)lk;
    MUST(s);
    rlock_owner_free(((request *)arg)->owner);
    if (++finished == REQUESTS)
        uv_poll_stop(&watch);
}

static void on_worked(uv_timer_t *timer)
{
    request *r = timer->data;
    inside--;
    rlock_owner_set(r->owner); /* a callback of libuv: say who it is */
    MUST(rlock_unlock_start(lock, on_unlocked, r));
    rlock_owner_set(NULL);
}

static void on_locked(rlock *lk, rlock_status s, void *arg)
{
    request *r = (MUST(s), arg);
    overlaps += inside++ > 0;
    printf("request %d: token %" PRIu64 "\n", r->number, rlock_token(lk));
    uv_timer_start(&r->work, on_worked, WORK_MS, 0); /* a database, say */
}

static void on_readable(uv_poll_t *w, int status, int events)
{
    (void)status, (void)events;
    MUST(rlock_client_dispatch(w->data));
}

int main(int argc, char **argv)
{
    rlock_client *client = new_client(argc > 1 ? argv[1] : NULL);
    request requests[REQUESTS];
    MUST(rlock_new(client, "example:libuv", &lock));
    uv_poll_init(uv_default_loop(), &watch, rlock_client_fd(client));
    watch.data = client;
    uv_poll_start(&watch, UV_READABLE, on_readable);
    for (int i = 0; i < REQUESTS; i++) {
        request *r = &requests[i];
        *r = (request){.number = i + 1, .work.data = r};
        uv_timer_init(uv_default_loop(), &r->work);
        MUST(rlock_owner_new(NULL, &r->owner));
        rlock_owner_set(r->owner);
        MUST(rlock_acquire_start(lock, 5000, RLOCK_WATCHDOG, on_locked, r));
    }
    rlock_owner_set(NULL);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT); /* until nothing is watched */
    printf("%d requests had the lock, %d overlaps\n", finished, overlaps);
    rlock_free(lock);
    rlock_client_free(client); /* closes the descriptor */
    return finished == REQUESTS && overlaps == 0 ? 0 : 1;
}
