#include "turns.h"

static turns begin(int64_t lease_ms, void (*prepare)(scene *s))
{
    turns t = {
        .s = {.sv = server_start_clocked(NULL), .opts = RLOCK_OPTIONS_INIT}};
    scene *s = &t.s;
    server_load_scripts(s->sv);
    s->opts.turn_ms = TURN_MS;
    scene_client(s, lease_ms, 0);
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    if (prepare)
        prepare(s);
    for (int i = 0; i < PASSERS; i++) {
        t.w[i] = waiter_start(s->lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, (int)stats_of(s->cl).waiting_now == i + 1);
    }
    waiters_settle(s->sv, 1, s->cl, PASSERS);
    return t;
}

static bool is_passed(const turns *t)
{
    return stats_of(t->s.cl).passes == 1;
}

/* On a machine that stops for as long as a turn, nothing is passed. */
turns turns_passed(int64_t lease_ms, void (*prepare)(scene *s))
{
    int count;
    for (int tries = 0; tries < 5; tries++) {
        turns t = begin(lease_ms, prepare);
        EXPECT_STATUS(rlock_unlock(t.s.lk), RLOCK_OK);
        EXPECT_STATUS(waiter_status(t.w[0], NULL), RLOCK_OK);
        read_lock(t.s.sv, t.holder, sizeof t.holder, &count);
        turns_go_on(&t);
        if (is_passed(&t))
            return t;
        turns_end(&t);
    }
    FAIL("nothing is passed on");
}

void turns_go_on(turns *t)
{
    EXPECT_STATUS(waiter_end(t->w[t->owner]), RLOCK_OK);
    t->w[t->owner++] = NULL;
    EXPECT_STATUS(waiter_status(t->w[t->owner], NULL), RLOCK_OK);
}

uint64_t turns_token(const turns *t)
{
    rlock_event ev;
    EXPECT(events_last(t->s.ev, RLOCK_EVENT_ACQUIRED, &ev));
    return ev.token;
}

void turns_end(turns *t)
{
    for (int i = t->owner; i < PASSERS; i++)
        EXPECT_STATUS(waiter_end(t->w[i]), RLOCK_OK);
    scene_stop(&t->s);
}
