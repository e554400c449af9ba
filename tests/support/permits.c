#include "permits.h"

struct taker {
    rlock_semaphore *s;
    int n;
    int64_t wait_ms, lease_ms, at_ms;
    rlock_status status;
    rlock_permit *p;
    test_thread *thread;
};

rlock_semaphore *test_semaphore(rlock_client *cl, const char *name,
                                int64_t permits)
{
    rlock_semaphore *s;
    EXPECT_STATUS(rlock_semaphore_new(cl, name, permits, &s), RLOCK_OK);
    return s;
}

rlock_permit *take(rlock_semaphore *s, int n, int64_t lease_ms)
{
    rlock_permit *p;
    EXPECT_STATUS(rlock_semaphore_acquire(s, n, 0, lease_ms, &p), RLOCK_OK);
    EXPECT(p && rlock_permit_is_held(p));
    return p;
}

void give_back(rlock_permit *p)
{
    EXPECT_STATUS(rlock_permit_release(p), RLOCK_OK);
}

int64_t free_of(rlock_semaphore *s)
{
    int64_t n;
    EXPECT_STATUS(rlock_semaphore_available(s, &n), RLOCK_OK);
    return n;
}

long long held_at(server *sv)
{
    return server_int(sv, "ZCARD " POOL_PERMITS);
}

long long standing_at(server *sv)
{
    return server_int(sv, "ZCARD " POOL_LINE);
}

static intptr_t take_there(void *arg)
{
    taker *t = arg;
    t->status =
        rlock_semaphore_acquire(t->s, t->n, t->wait_ms, t->lease_ms, &t->p);
    t->at_ms = test_now_ms();
    return 0;
}

taker *taker_start(rlock_semaphore *s, int n, int64_t wait_ms, int64_t lease_ms)
{
    taker *t = calloc(1, sizeof *t);
    EXPECT(t);
    t->s = s;
    t->n = n;
    t->wait_ms = wait_ms;
    t->lease_ms = lease_ms;
    t->thread = test_spawn(take_there, t);
    return t;
}

taker *taker_stand(server *sv, rlock_semaphore *s, int n, int rank)
{
    taker *t = taker_start(s, n, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, standing_at(sv) == rank);
    return t;
}

bool taker_returned(taker *t)
{
    return test_done(t->thread);
}

rlock_status taker_end(taker *t, rlock_permit **p, int64_t *at_ms)
{
    test_join(t->thread);
    rlock_status s = t->status;
    if (at_ms)
        *at_ms = t->at_ms;
    if (p)
        *p = t->p;
    else if (t->p)
        give_back(t->p);
    free(t);
    return s;
}

static bool is_left(const char *key)
{
    return strcmp(key, POOL) == 0 || strncmp(key, "rlock_undone:", 13) == 0;
}

static bool is_all_left(server *sv)
{
    bool all = true;
    redisReply *keys = server_cmd(sv, "KEYS *");
    for (size_t i = 0; i < keys->elements; i++)
        all = all && is_left(keys->element[i]->str);
    return all;
}

void expect_pool_left(server *sv, long long free)
{
    EVENTUALLY(SOON, is_all_left(sv));
    EXPECT_INT(strtoll(server_str(sv, "GET " POOL), NULL, 10), free);
}
