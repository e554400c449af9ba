/*
 * A client is freed while what has been started at it still stands in line: its
 * server has stopped, so those at the desks wait for it, and no other begins.
 * What gives up or uses a hold is done before the client goes; an acquire that
 * had not begun is told that the client is closed, and leaves nothing.
 */
#include <hiredis/hiredis.h>

#include "loop.h"
#include "permits.h"

/* More than ever have a desk (run/started.c), however long the starts take. */
#define CROWD 4500

/* Longer than the server stops. */
#define PATIENCE_MS 20000

typedef struct crowd {
    scene s;
    request r[CROWD];
} crowd;

typedef rlock *maker(rlock_client *cl, int i);

static rlock *numbered(rlock_client *cl, char kind, int i)
{
    char name[32];
    snprintf(name, sizeof name, "%c:%d", kind, i);
    return test_lock(cl, name);
}

static rlock *one(rlock_client *cl, int i)
{
    return numbered(cl, 'o', i);
}

static rlock *both(rlock *a, rlock *b)
{
    rlock *multi;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){a, b}, 2, &multi), RLOCK_OK);
    rlock_free(a);
    rlock_free(b);
    return multi;
}

static rlock *two(rlock_client *cl, int i)
{
    return both(numbered(cl, 'a', i), numbered(cl, 'b', i));
}

/* Also a connection of a guarded call's own may be opened while it stops. */
static scene patient_scene(void)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.command_timeout_ms = o.connect_timeout_ms = PATIENCE_MS;
    server *sv = server_start(NULL);
    server_load_scripts(sv);
    return scene_with(sv, &o);
}

static rlock_client *other;

static rlock *of_two_clients(rlock_client *cl, int i)
{
    return both(numbered(cl, 'a', i), numbered(other, 'b', i));
}

static crowd *gather(maker *make)
{
    crowd *c = calloc(1, sizeof *c);
    EXPECT(c);
    c->s = patient_scene();
    for (int i = 0; i < CROWD; i++)
        c->r[i] = request_new(make(c->s.cl, i));
    return c;
}

static void disperse(crowd *c)
{
    for (int i = 0; i < CROWD; i++) {
        rlock_free(c->r[i].lk);
        request_free(&c->r[i]);
    }
    scene_stop(&c->s);
    free(c);
}

/* --- who frees the client -------------------------------------------------- */

static intptr_t resume_when_closed(void *arg)
{
    const scene *s = arg;
    EVENTUALLY(SOON, rlock_extend(s->lk, 0) == RLOCK_ECLOSED);
    server_resume(s->sv);
    return 0;
}

/* The server has stopped before. */
static void free_in_front_of(scene *s)
{
    test_thread *t = test_spawn(resume_when_closed, s);
    rlock_client_free(s->cl);
    s->cl = NULL;
    test_join(t);
}

static void start_all(crowd *c, rlock_status (*start)(request *r))
{
    server_pause(c->s.sv);
    for (int i = 0; i < CROWD; i++) {
        c->r[i].told = 0;
        EXPECT_STATUS(start(&c->r[i]), RLOCK_OK);
    }
    free_in_front_of(&c->s);
    for (int i = 0; i < CROWD; i++)
        EXPECT_INT(c->r[i].told, 1);
}

static rlock_status acquire(request *r)
{
    return request_acquire(r, 0, RLOCK_WATCHDOG);
}

static bool all_hold(crowd *c)
{
    for (int i = 0; i < CROWD; i++)
        if (c->r[i].told == 0 || c->r[i].status != RLOCK_OK)
            return false;
    return true;
}

static crowd *gather_holders(maker *make)
{
    crowd *c = gather(make);
    for (int i = 0; i < CROWD; i++)
        EXPECT_STATUS(acquire(&c->r[i]), RLOCK_OK);
    LOOP_UNTIL(c->s.cl, all_hold(c));
    return c;
}

static long long locks(server *sv, char kind)
{
    const char pattern[] = {kind, ':', '*', '\0'};
    return server_int(sv, "EVAL %s 0 %s", "return #redis.call('KEYS', ARGV[1])",
                      pattern);
}

/* --- what is done ---------------------------------------------------------- */

static void expect_released(maker *make, const char *kinds)
{
    crowd *c = gather_holders(make);
    for (const char *k = kinds; *k; k++)
        EXPECT_INT(locks(c->s.sv, *k), CROWD);
    start_all(c, request_unlock);
    for (int i = 0; i < CROWD; i++)
        EXPECT_STATUS(c->r[i].status, RLOCK_OK);
    for (const char *k = kinds; *k; k++)
        EXPECT_INT(locks(c->s.sv, *k), 0);
    disperse(c);
}

TEST_CASE(async_close, an_unlock_that_was_started_before_is_done,
          expect_released(one, "o"))
TEST_CASE(async_close, an_unlock_of_several_that_was_started_before_is_done,
          expect_released(two, "ab"))

/* The other client is open until its home has gone. */
TEST(async_close, an_unlock_of_locks_of_two_clients_is_done_by_the_first)
{
    scene t = patient_scene();
    other = t.cl;
    crowd *c = gather_holders(of_two_clients);
    EXPECT_INT(locks(t.sv, 'b'), CROWD);
    start_all(c, request_unlock);
    for (int i = 0; i < CROWD; i++)
        EXPECT_STATUS(c->r[i].status, RLOCK_OK);
    EXPECT_INT(locks(c->s.sv, 'a') + locks(t.sv, 'b'), 0);
    disperse(c);
    scene_stop(&t);
}

static void replied(rlock *lk, rlock_status s, redisReply *reply, void *arg)
{
    request *r = arg;
    EXPECT(lk);
    EXPECT(s != RLOCK_OK || reply);
    r->told++;
    r->status = s;
}

static rlock_status count(request *r)
{
    rlock_owner *former = rlock_owner_set(r->owner);
    rlock_status s = rlock_command_start(r->lk, replied, r, "INCR n");
    rlock_owner_set(former);
    return s;
}

TEST(async_close, a_guarded_write_that_was_started_before_is_done)
{
    crowd *c = gather_holders(one);
    start_all(c, count);
    for (int i = 0; i < CROWD; i++)
        EXPECT_STATUS(c->r[i].status, RLOCK_OK);
    EXPECT_STR(server_str(c->s.sv, "GET n"), "4500");
    disperse(c);
}

/* --- what is not ----------------------------------------------------------- */

TEST(async_close, an_acquire_that_has_not_begun_is_told_and_leaves_nothing)
{
    crowd *c = gather(one);
    int granted = 0;
    start_all(c, acquire);
    for (int i = 0; i < CROWD; i++) {
        granted += c->r[i].status == RLOCK_OK;
        EXPECT(c->r[i].status == RLOCK_OK || c->r[i].status == RLOCK_ECLOSED);
    }
    EXPECT_BETWEEN(granted, 1, CROWD - 1);
    EXPECT_INT(locks(c->s.sv, 'o'), granted);
    disperse(c);
}

/* --- permits --------------------------------------------------------------- */

static void released(rlock_permit *p, rlock_status s, void *arg)
{
    int *done = arg;
    EXPECT(!p);
    EXPECT_STATUS(s, RLOCK_OK);
    ++*done;
}

TEST(async_close, a_permit_whose_release_was_started_before_is_released)
{
    scene s = scene_start(0, PATIENCE_MS);
    rlock_semaphore *pool = test_semaphore(s.cl, "pool", CROWD);
    static rlock_permit *p[CROWD];
    int done = 0;
    for (int i = 0; i < CROWD; i++)
        EXPECT_STATUS(
            rlock_semaphore_acquire(pool, 1, 0, RLOCK_WATCHDOG, &p[i]),
            RLOCK_OK);
    server_pause(s.sv);
    for (int i = 0; i < CROWD; i++)
        EXPECT_STATUS(rlock_permit_release_start(p[i], released, &done),
                      RLOCK_OK);
    free_in_front_of(&s);
    EXPECT_INT(done, CROWD);
    EXPECT_STR(server_str(s.sv, "GET pool"), "4500");
    rlock_semaphore_free(pool);
    scene_stop(&s);
}
