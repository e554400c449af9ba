#include "other_client.h"

other_client other_client_join(const scene *s, const rlock_options *opts)
{
    other_client r = {.cl = server_client(s->sv, opts)};
    r.lk = test_lock(r.cl, SCENE_LOCK);
    return r;
}

void other_client_leave(other_client *r)
{
    rlock_free(r->lk);
    rlock_client_free(r->cl);
}

void other_client_wait(const scene *s, other_client *r, int n, int64_t wait_ms)
{
    r->asleep_ms = test_now_ms();
    r->w = waiter_start(r->lk, wait_ms, RLOCK_WATCHDOG);
    waiters_settle(s->sv, n, r->cl, 1);
}

void expect_woken(other_client *r)
{
    int64_t at_ms;
    EXPECT_STATUS(waiter_status(r->w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - r->asleep_ms, 0, WELL_BEFORE_POLL_MS);
}
