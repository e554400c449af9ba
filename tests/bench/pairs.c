#include "pairs.h"

#include <poll.h>
#include <stdio.h>

static void go_on(request *r);

static void unlocked(rlock *lk, rlock_status s, void *arg)
{
    request *r = arg;
    (void)lk;
    bench_ok(s);
    if (--r->left > 0)
        go_on(r);
    else
        r->loop->under_way--;
}

static void acquired(rlock *lk, rlock_status s, void *arg)
{
    bench_ok(s);
    bench_ok(rlock_unlock_start(lk, unlocked, arg));
}

static void go_on(request *r)
{
    rlock_owner *former = rlock_owner_set(r->owner);
    bench_ok(
        rlock_acquire_start(r->lk, RLOCK_FOREVER, RLOCK_WATCHDOG, acquired, r));
    rlock_owner_set(former);
}

request request_of(loop *l, rlock *lk)
{
    request r = {.lk = lk, .loop = l};
    bench_ok(rlock_owner_new(NULL, &r.owner));
    return r;
}

request request_new(loop *l, const char *name, int i)
{
    char full[64];
    snprintf(full, sizeof full, "%s:%d", name, i);
    return request_of(l, bench_lock(l->cl, full));
}

void request_free(request *r)
{
    rlock_free(r->lk);
    rlock_owner_free(r->owner);
}

static void canceled(rlock *lk, rlock_status s, void *arg)
{
    request *r = arg;
    (void)lk;
    r->loop->under_way--;
    if (s == RLOCK_EIO) /* a server that is silent has been waited for */
        request_wait(r);
    else
        bench_check(s == RLOCK_CANCELED, "a wait ended");
}

void request_wait(request *r)
{
    rlock_owner *former = rlock_owner_set(r->owner);
    bench_ok(
        rlock_acquire_start(r->lk, RLOCK_FOREVER, RLOCK_WATCHDOG, canceled, r));
    rlock_owner_set(former);
    r->loop->under_way++;
}

void loop_cancel(loop *l)
{
    bench_ok(rlock_client_cancel(l->cl, true));
    while (l->under_way > 0)
        loop_turn(l);
    bench_ok(rlock_client_cancel(l->cl, false));
}

void loop_turn(loop *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    bench_check(poll(&p, 1, 10000) == 1, "nothing is delivered");
    bench_ok(rlock_client_dispatch(l->cl));
}

void loop_run(loop *l, request *r, int n, int pairs)
{
    l->under_way = n;
    for (int i = 0; i < n; i++) {
        r[i].left = pairs;
        go_on(&r[i]);
    }
    while (l->under_way > 0)
        loop_turn(l);
}
