/*
 * epoll [URI]: rlock and a redisAsyncContext of hiredis in one loop, by hand.
 *
 * 400 requests at a time add one to a number in Redis: GET, then SET. Without a
 * lock they read the same number; under one, each as an owner, none does.
 */
#include "data_epoll.h"

enum { REQUESTS = 400 };
static rlock *lock;
static redisAsyncContext *data;
static int unfinished;

static void on_unlocked(rlock *lk, rlock_status s, void *owner)
{
    (void)lk;
    MUST(s);
    rlock_owner_free(owner);
}

static void on_set(redisAsyncContext *c, void *reply, void *owner)
{
    data_reply(reply, c->errstr);
    unfinished--;
    if (!owner)
        return;
    rlock_owner_set(owner); /* a callback of hiredis: say who it is */
    MUST(rlock_unlock_start(lock, on_unlocked, owner));
    rlock_owner_set(NULL);
}

static void on_get(redisAsyncContext *c, void *reply, void *owner)
{
    long long next = data_reply(reply, c->errstr) + 1;
    redisAsyncCommand(c, on_set, owner, "SET example:epoll:n %lld", next);
}

static void on_locked(rlock *lk, rlock_status s, void *owner)
{
    (void)lk;
    MUST(s);
    redisAsyncCommand(data, on_get, owner, "GET example:epoll:n");
}

static void begin(void)
{
    rlock_owner *o;
    MUST(rlock_owner_new(NULL, &o));
    rlock_owner_set(o);
    MUST(rlock_acquire_start(lock, 60000, RLOCK_WATCHDOG, on_locked, o));
    rlock_owner_set(NULL);
}

int main(int argc, char **argv)
{
    rlock_client *client = new_client(argc > 1 ? argv[1] : NULL);
    redisContext *view = data_connect(argc > 1 ? argv[1] : NULL);
    int loop = epoll_create1(EPOLL_CLOEXEC), wrong = 0;
    struct epoll_event e;
    MUST(rlock_new(client, "example:epoll", &lock));
    epoll_watch(loop, EPOLL_CTL_ADD, rlock_client_fd(client), EPOLLIN, NULL);
    data = data_attach(argc > 1 ? argv[1] : NULL, loop);
    for (int locked = 0; locked < 2; locked++) {
        data_number(view, "DEL example:epoll:n");
        for (unfinished = 0; unfinished < REQUESTS; unfinished++)
            locked ? begin() : on_locked(NULL, RLOCK_OK, NULL);
        while (unfinished > 0 && epoll_wait(loop, &e, 1, -1) > 0)
            if (!data_on_event(&e)) /* it is not for hiredis */
                MUST(rlock_client_dispatch(client));
        long long n = data_number(view, "GET example:epoll:n");
        printf("%s lock: %lld\n", locked ? "with the" : "without a", n);
        wrong += (n == REQUESTS) != locked;
    }
    redisAsyncFree(data);
    redisFree(view);
    rlock_free(lock);
    rlock_client_free(client);
    return close(loop) || wrong;
}
