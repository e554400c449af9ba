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

request request_new(loop *l, const char *name, int i)
{
    char full[64];
    request r = {.loop = l};
    snprintf(full, sizeof full, "%s:%d", name, i);
    r.lk = bench_lock(l->cl, full);
    bench_ok(rlock_owner_new(NULL, &r.owner));
    return r;
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
