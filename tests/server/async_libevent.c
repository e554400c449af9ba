/*
 * A program of the shape of webdis: libevent, one thread, and hiredis'
 * asynchronous API with its own adapter. Requests that overlap, each with an
 * owner, read a number, add one and write it. Skipped where libevent is
 * missing.
 */
#include "scene.h"

#ifdef TEST_LIBEVENT

#include <hiredis/adapters/libevent.h>

enum { REQUESTS = 400 };

typedef struct program {
    scene s;
    struct event_base *loop;
    struct event *watch;
    redisAsyncContext *data;
    bool locks;
    int unfinished;
    int under_way, most_under_way; /* between their GET and the SET's reply */
} program;

typedef struct visit {
    program *p;
    rlock_owner *owner;
} visit;

/* --- a request ------------------------------------------------------------ */

static void finish(visit *v)
{
    rlock_owner_free(v->owner);
    v->p->unfinished--;
}

static void on_unlocked(rlock *lk, rlock_status s, void *arg)
{
    EXPECT(lk);
    EXPECT_STATUS(s, RLOCK_OK);
    finish(arg);
}

static void on_set(redisAsyncContext *c, void *reply, void *arg)
{
    visit *v = arg;
    EXPECT(c && reply);
    EXPECT_STR(((redisReply *)reply)->str, "OK");
    v->p->under_way--;
    if (!v->p->locks) {
        finish(v);
        return;
    }
    rlock_owner_set(v->owner);
    EXPECT_STATUS(rlock_unlock_start(v->p->s.lk, on_unlocked, v), RLOCK_OK);
    rlock_owner_set(NULL);
}

static void on_get(redisAsyncContext *c, void *reply, void *arg)
{
    EXPECT(c && reply);
    const char *n = ((redisReply *)reply)->str;
    int next = n ? atoi(n) + 1 : 1;
    EXPECT_INT(redisAsyncCommand(c, on_set, arg, "SET number %d", next),
               REDIS_OK);
}

static void read_and_write(visit *v)
{
    program *p = v->p;
    p->under_way++;
    if (p->most_under_way < p->under_way)
        p->most_under_way = p->under_way;
    EXPECT_INT(redisAsyncCommand(p->data, on_get, v, "GET number"), REDIS_OK);
}

static void on_locked(rlock *lk, rlock_status s, void *arg)
{
    EXPECT_STATUS(s, RLOCK_OK);
    EXPECT_INT(rlock_hold_count(lk), 1);
    read_and_write(arg);
}

static void begin(program *p, visit *v)
{
    v->p = p;
    p->unfinished++;
    EXPECT_STATUS(rlock_owner_new(NULL, &v->owner), RLOCK_OK);
    if (!p->locks) {
        read_and_write(v);
        return;
    }
    rlock_owner_set(v->owner);
    EXPECT_STATUS(rlock_acquire_start(p->s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG,
                                      on_locked, v),
                  RLOCK_OK);
    rlock_owner_set(NULL);
}

/* --- the program ---------------------------------------------------------- */

static void on_readable(evutil_socket_t fd, short what, void *client)
{
    EXPECT_INT(fd, rlock_client_fd(client));
    EXPECT_INT(what, EV_READ);
    EXPECT_STATUS(rlock_client_dispatch(client), RLOCK_OK);
}

static program program_start(bool locks)
{
    program p = {.s = scene_start(0, 0), .locks = locks};
    p.loop = event_base_new();
    p.data = redisAsyncConnectUnix(server_path(p.s.sv));
    EXPECT(p.loop && p.data && !p.data->err);
    EXPECT_INT(redisLibeventAttach(p.data, p.loop), REDIS_OK);
    p.watch = event_new(p.loop, rlock_client_fd(p.s.cl), EV_READ | EV_PERSIST,
                        on_readable, p.s.cl);
    EXPECT(p.watch);
    EXPECT_INT(event_add(p.watch, NULL), 0);
    return p;
}

static void program_stop(program *p)
{
    redisAsyncFree(p->data);
    event_free(p->watch);
    event_base_free(p->loop);
    scene_stop(&p->s);
}

/* What the number is when every request has added one. */
static long long count(bool locks, int *most_under_way)
{
    program p = program_start(locks);
    visit visits[REQUESTS];
    for (int i = 0; i < REQUESTS; i++)
        begin(&p, &visits[i]);
    EXPECT_INT(p.unfinished, REQUESTS); /* all of them, at the same time */
    while (p.unfinished > 0)
        EXPECT_INT(event_base_loop(p.loop, EVLOOP_ONCE), 0);
    long long n = atoll(server_str(p.s.sv, "GET number"));
    server_int(p.s.sv, "DEL number");
    expect_nothing_left(p.s.sv);
    *most_under_way = p.most_under_way;
    program_stop(&p);
    return n;
}

TEST(async_libevent, requests_under_a_lock_lose_no_step)
{
    int most;
    EXPECT_INT(count(true, &most), REQUESTS);
    EXPECT_INT(most, 1);
}

/* Or the test above could not fail. */
TEST(async_libevent, requests_without_a_lock_lose_steps)
{
    int most;
    EXPECT_BETWEEN(count(false, &most), 1, REQUESTS - 1);
    EXPECT_INT(most, REQUESTS);
}

#else

TEST(async_libevent, requests_under_a_lock_lose_no_step)
{
    SKIP("no libevent here");
}

#endif
