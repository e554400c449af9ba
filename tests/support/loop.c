#include "loop.h"

#include <poll.h>

request request_new(rlock *lk)
{
    request r = {.lk = lk};
    EXPECT_STATUS(rlock_owner_new(NULL, &r.owner), RLOCK_OK);
    return r;
}

void request_free(request *r)
{
    rlock_owner_free(r->owner);
}

static void done(rlock *lk, rlock_status s, void *arg)
{
    request *r = arg;
    EXPECT(lk);
    r->told++;
    r->status = s;
    r->at_ms = test_now_ms();
    if (s != RLOCK_OK) {
        r->error = *rlock_last_error();
        EXPECT_INT(r->error.status, s);
    }
    if (r->then)
        r->then(r);
}

static void act_as(request *r, rlock_owner **former)
{
    *former = rlock_owner_set(r->owner);
}

rlock_status request_acquire(request *r, int64_t wait_ms, int64_t lease_ms)
{
    rlock_owner *former;
    act_as(r, &former);
    rlock_status s = rlock_acquire_start(r->lk, wait_ms, lease_ms, done, r);
    rlock_owner_set(former);
    return s;
}

rlock_status request_unlock(request *r)
{
    rlock_owner *former;
    act_as(r, &former);
    rlock_status s = rlock_unlock_start(r->lk, done, r);
    rlock_owner_set(former);
    return s;
}

rlock_status request_extend(request *r, int64_t lease_ms)
{
    rlock_owner *former;
    act_as(r, &former);
    rlock_status s = rlock_extend_start(r->lk, lease_ms, done, r);
    rlock_owner_set(former);
    return s;
}

bool request_holds(request *r)
{
    rlock_owner *former;
    act_as(r, &former);
    bool held = rlock_is_held(r->lk);
    rlock_owner_set(former);
    return held;
}

void loop_turn(rlock_client *cl)
{
    struct pollfd p = {.fd = rlock_client_fd(cl), .events = POLLIN};
    EXPECT(p.fd >= 0);
    EXPECT_INT(poll(&p, 1, SOON), 1);
    EXPECT_STATUS(rlock_client_dispatch(cl), RLOCK_OK);
}

static rlock_status wait_for(rlock_client *cl, request *r, int told)
{
    LOOP_UNTIL(cl, r->told > told);
    EXPECT_INT(r->told, told + 1);
    return r->status;
}

rlock_status loop_acquire(rlock_client *cl, request *r, int64_t wait_ms,
                          int64_t lease_ms)
{
    int told = r->told;
    EXPECT_STATUS(request_acquire(r, wait_ms, lease_ms), RLOCK_OK);
    return wait_for(cl, r, told);
}

rlock_status loop_unlock(rlock_client *cl, request *r)
{
    int told = r->told;
    EXPECT_STATUS(request_unlock(r), RLOCK_OK);
    return wait_for(cl, r, told);
}

rlock_status loop_extend(rlock_client *cl, request *r, int64_t lease_ms)
{
    int told = r->told;
    EXPECT_STATUS(request_extend(r, lease_ms), RLOCK_OK);
    return wait_for(cl, r, told);
}
