#include "rival.h"

rival rival_join(const scene *s, const rlock_options *opts)
{
    rival r = {.cl = server_client(s->sv, opts)};
    r.lk = test_lock(r.cl, SCENE_LOCK);
    return r;
}

void rival_leave(rival *r)
{
    rlock_free(r->lk);
    rlock_client_free(r->cl);
}

void rival_wait(const scene *s, rival *r, int n, int64_t wait_ms)
{
    r->asleep_ms = test_now_ms();
    r->w = waiter_start(r->lk, wait_ms, RLOCK_WATCHDOG);
    waiters_settle(s->sv, n, r->cl, 1);
}

void expect_woken(rival *r)
{
    int64_t at_ms;
    EXPECT_STATUS(waiter_status(r->w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - r->asleep_ms, 0, WELL_BEFORE_POLL_MS);
}
