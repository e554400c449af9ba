#include "route/race.h"

#include "base/clock.h"

/* Most servers that are there answer by then. */
#define HEAD_START_US (100 * 1000)

void rl_race_init(rl_race *r)
{
    for (size_t i = 0; i < RL_RACERS; i++)
        r->racer[i].dialing.thread.started = false;
}

void rl_race_begin(rl_race *r, void *arg)
{
    rl_race_reap(r);
    r->arg = arg;
    r->exhausted = false;
    r->next_us = rl_now_us();
}

static rl_racer *idle(rl_race *r)
{
    for (size_t i = 0; i < RL_RACERS; i++)
        if (!rl_dialing_is_under_way(&r->racer[i].dialing))
            return &r->racer[i];
    return NULL;
}

static bool is_running(const rl_dialing *d)
{
    return rl_dialing_is_under_way(d) && !d->off;
}

static void fail(rl_race *r, rl_racer *x, const rl_fault *why)
{
    rl_dialing_fini(&x->dialing, false);
    r->failed(r->arg, &x->at, why);
    r->next_us = rl_now_us();
}

static void call(rl_race *r, rl_racer *x)
{
    rl_fault f;
    rl_dialing *d = &x->dialing;
    int64_t now_us = rl_now_us();
    r->next_us = now_us + HEAD_START_US;
    rl_dialing_init(d);
    d->dialer.tls = r->tls;
    d->dialer.credentials = r->credentials;
    d->dialer.connect_timeout_ms = r->connect_timeout_ms;
    if (rl_uri_of(&d->dialer.uri, r->like, x->at.host, x->at.port, &f) !=
        RLOCK_OK) {
        fail(r, x, &f);
        return;
    }
    if (rl_dialing_begin(d, rl_after_ms(now_us, r->connect_timeout_ms),
                         r->signal))
        return;
    rl_fault_set(&f, RLOCK_ENOMEM, 0, "no thread to connect with");
    rl_fault_passes(&f, RLOCK_ENOMEM);
    fail(r, x, &f);
}

static void call_due(rl_race *r)
{
    rl_racer *x;
    while (!r->exhausted && rl_now_us() >= r->next_us &&
           (x = idle(r)) != NULL) {
        r->exhausted = !r->next(r->arg, &x->at);
        if (!r->exhausted)
            call(r, x);
    }
}

static rl_conn *take(rl_race *r, rl_place *at, int64_t *took_us)
{
    for (size_t i = 0; i < RL_RACERS; i++) {
        rl_racer *x = &r->racer[i];
        if (!rl_dialing_is_over(&x->dialing))
            continue;
        rl_conn *c = rl_dialing_end(&x->dialing);
        if (!c) {
            fail(r, x, &x->dialing.fault);
            continue;
        }
        *at = x->at;
        *took_us = x->dialing.took_us;
        rl_dialing_fini(&x->dialing, false);
        return c;
    }
    return NULL;
}

rl_conn *rl_race_look(rl_race *r, rl_place *at, int64_t *took_us)
{
    rl_race_reap(r);
    rl_conn *c = take(r, at, took_us);
    if (!c)
        call_due(r);
    return c;
}

int64_t rl_race_due_us(rl_race *r)
{
    return !r->exhausted && idle(r) ? r->next_us : RL_NEVER;
}

bool rl_race_is_lost(const rl_race *r)
{
    for (size_t i = 0; i < RL_RACERS; i++)
        if (is_running(&r->racer[i].dialing))
            return false;
    return r->exhausted;
}

void rl_race_end(rl_race *r)
{
    for (size_t i = 0; i < RL_RACERS; i++)
        rl_dialing_leave(&r->racer[i].dialing);
}

bool rl_race_reap(rl_race *r)
{
    bool any = false;
    for (size_t i = 0; i < RL_RACERS; i++) {
        rl_dialing *d = &r->racer[i].dialing;
        if (rl_dialing_reap(d))
            rl_dialing_fini(d, false);
        any = any || rl_dialing_is_under_way(d);
    }
    return any;
}

void rl_race_call_off(rl_race *r)
{
    for (size_t i = 0; i < RL_RACERS; i++) {
        rl_dialing *d = &r->racer[i].dialing;
        if (!rl_dialing_is_under_way(d))
            continue;
        rl_dialing_call_off(d);
        rl_dialing_fini(d, false);
    }
}

void rl_race_leave_behind(rl_race *r)
{
    for (size_t i = 0; i < RL_RACERS; i++)
        if (rl_dialing_is_under_way(&r->racer[i].dialing))
            rl_dialing_fini(&r->racer[i].dialing, true);
}
