#include "storm.h"

static storm make(rlock_client *cl, size_t n)
{
    storm st = {.cl = cl, .n = n, .r = calloc(n, sizeof *st.r)};
    EXPECT(st.r);
    return st;
}

storm storm_new(rlock_client *cl, size_t n)
{
    storm st = make(cl, n);
    st.own_locks = true;
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "storm:%zu", i);
        st.r[i] = request_new(test_lock(cl, name));
    }
    return st;
}

storm storm_for(rlock_client *cl, rlock *lk, size_t n)
{
    storm st = make(cl, n);
    for (size_t i = 0; i < n; i++)
        st.r[i] = request_new(lk);
    return st;
}

void storm_free(storm *st)
{
    for (size_t i = 0; i < st->n; i++) {
        request_free(&st->r[i]);
        if (st->own_locks)
            rlock_free(st->r[i].lk);
    }
    free(st->r);
}

void storm_acquire(storm *st, int64_t wait_ms, int64_t lease_ms)
{
    for (size_t i = 0; i < st->n; i++)
        EXPECT_STATUS(request_acquire(&st->r[i], wait_ms, lease_ms), RLOCK_OK);
}

void storm_unlock(storm *st)
{
    for (size_t i = 0; i < st->n; i++)
        EXPECT_STATUS(request_unlock(&st->r[i]), RLOCK_OK);
}

void storm_settle(storm *st, int told)
{
    for (size_t i = 0; i < st->n; i++)
        LOOP_UNTIL(st->cl, st->r[i].told >= told);
    for (size_t i = 0; i < st->n; i++)
        EXPECT_INT(st->r[i].told, told);
}

size_t storm_told(const storm *st, rlock_status status)
{
    size_t n = 0;
    for (size_t i = 0; i < st->n; i++)
        n += st->r[i].status == status;
    return n;
}

void storm_expect(const storm *st, rlock_status status)
{
    for (size_t i = 0; i < st->n; i++)
        if (st->r[i].status != status)
            FAIL("request %zu: \"%s\" (%s) instead of \"%s\"", i,
                 rlock_status_str(st->r[i].status), st->r[i].error.message,
                 rlock_status_str(status));
}

void storm_expect_between(const storm *st, int64_t began_ms, int64_t from_ms,
                          int64_t to_ms)
{
    for (size_t i = 0; i < st->n; i++)
        EXPECT_BETWEEN(st->r[i].at_ms - began_ms, from_ms, to_ms);
}

size_t storm_holding(storm *st)
{
    size_t n = 0;
    for (size_t i = 0; i < st->n; i++)
        n += request_holds(&st->r[i]);
    return n;
}

void storm_undisturbed(storm *st)
{
    for (size_t i = 0; i < st->n; i++)
        st->r[i].told = 0;
    storm_acquire(st, 0, RLOCK_WATCHDOG);
    storm_settle(st, 1);
    storm_expect(st, RLOCK_OK);
    EXPECT(storm_holding(st) == st->n);
    storm_unlock(st);
    storm_settle(st, 2);
    storm_expect(st, RLOCK_OK);
    EXPECT(storm_holding(st) == 0);
}
