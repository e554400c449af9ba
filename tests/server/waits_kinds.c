/*
 * Who waits for what, of each kind: what rlock_waits_for() tells of fair locks, the
 * sides of read-write locks, permits and latches, and of those who have them.
 */
#include <unistd.h>

#include "crossing.h"
#include "gate.h"
#include "permits.h"
#include "rw_scene.h"

/* What it told, copied. */
enum { SEEN_MAX = 4 };

typedef struct told {
    char name[64];
    rlock_kind kind;
    int64_t rank;
    unsigned circle;
    size_t n_holders;
    rlock_holder holder[SEEN_MAX];
} told;

typedef struct seen {
    size_t n;
    told of[SEEN_MAX];
} seen;

static void copy(const rlock_wait *w, void *arg)
{
    seen *all = arg;
    EXPECT(all->n < SEEN_MAX && w->n_holders <= SEEN_MAX);
    told *t = &all->of[all->n++];
    snprintf(t->name, sizeof t->name, "%s", w->name);
    t->kind = w->kind;
    t->rank = w->rank;
    t->circle = w->circle;
    t->n_holders = w->n_holders;
    EXPECT(w->holder == w->holders && (w->n_holders == 0) == !w->holders);
    for (size_t i = 0; i < w->n_holders; i++)
        t->holder[i] = w->holders[i];
}

static seen look(rlock_client *cl)
{
    seen all = {0};
    EXPECT_STATUS(rlock_waits_for(cl, copy, &all), RLOCK_OK);
    return all;
}

/* The only one who waits. */
static told only(rlock_client *cl)
{
    EVENTUALLY(SOON, look(cl).n == 1);
    return look(cl).of[0];
}

static size_t in_circles(rlock_client *cl)
{
    seen all = look(cl);
    size_t n = 0;
    for (size_t i = 0; i < all.n; i++)
        n += all.of[i].circle > 0;
    return n;
}

/* --- locks ---------------------------------------------------------------- */

static void expect_lock(bool fair)
{
    scene s = scene_start(0, 0);
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk;
    o.fair = fair;
    EXPECT_STATUS(rlock_new_ex(s.cl, "job", 3, &o, &lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    waiter *w = waiter_start(lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    told t = only(s.cl);
    EXPECT_INT(t.kind, RLOCK_KIND_LOCK);
    EXPECT_INT(t.rank, fair ? 0 : -1);
    EXPECT_INT(t.n_holders, 1);
    EXPECT(t.holder[0].count == 1 && t.holder[0].pid == getpid());
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(lk);
    scene_stop(&s);
}

TEST_CASE(waits_kinds, for_a_plain_lock_one_waits_in_the_queue,
          expect_lock(false))
TEST_CASE(waits_kinds, for_a_fair_lock_one_waits_in_line, expect_lock(true))

/* --- read-write locks ----------------------------------------------------- */

#define DEAD "host:1:2:6f1e1e0c-5d07-4f36-9a4e-00000000000f"

TEST(waits_kinds, for_a_side_is_told_who_has_either_while_his_lease_goes_on)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.theirs.read, 0, 3600000), RLOCK_OK);
    waiter *w = rw_stand(&r, r.mine.write, RLOCK_FOREVER, 1);
    waiter *behind = rw_stand(&r, r.theirs.read, RLOCK_FOREVER, 2);
    server_cmd(r.s.sv, "HSET " SCENE_LOCK " " DEAD " 1");
    server_cmd(r.s.sv, "ZADD " RW_LEASES " 1 " DEAD);
    seen all = look(r.s.cl);
    EXPECT_INT(all.n, 2);
    EXPECT_INT(all.of[0].kind, RLOCK_KIND_WRITE);
    EXPECT_INT(all.of[1].kind, RLOCK_KIND_READ);
    for (int i = 0; i < 2; i++) {
        const told *t = &all.of[i];
        EXPECT(t->rank == i && t->n_holders == 2);
        size_t mine = t->holder[0].count == 2 ? 0 : 1;
        EXPECT(t->holder[mine].count == 2 && t->holder[!mine].count == 1);
        EXPECT_BETWEEN(t->holder[mine].ttl_ms, 1, 60000);
        EXPECT_BETWEEN(t->holder[!mine].ttl_ms, 3000000, 3600000);
    }
    unlock_times(r.mine.read, 2, RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(waiter_end(behind), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(waits_kinds, for_what_is_written_is_told_who_writes)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    waiter *w = rw_stand(&r, r.theirs.read, RLOCK_FOREVER, 1);
    told t = only(r.s.cl);
    EXPECT(t.kind == RLOCK_KIND_READ && t.n_holders == 1);
    EXPECT_INT(t.holder[0].pid, getpid());
    EXPECT_BETWEEN(t.holder[0].ttl_ms, 1, 60000);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rw_scene_stop(&r);
}

/* One more reads, and waits for nothing. */
TEST(waits_kinds, who_waits_to_write_is_in_a_circle_with_any_of_those_who_read)
{
    rw_scene r = rw_scene_start(0);
    rlock *one, *two;
    EXPECT_STATUS(rlock_new(r.s.cl, "b", &one), RLOCK_OK);
    EXPECT_STATUS(rlock_new(r.o.cl, "b", &two), RLOCK_OK);
    crossing c[2] = {{.mine = r.theirs.read, .wanted = one},
                     {.mine = two, .wanted = r.mine.write}};
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    crossing_start(c);
    EVENTUALLY(SOON, in_circles(r.s.cl) == 2);
    EXPECT_INT(look(r.s.cl).n, 2);
    rlock_cancel(one);
    crossing_end(&c[0], RLOCK_CANCELED);
    EXPECT_INT(in_circles(r.s.cl), 0);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    crossing_end(&c[1], RLOCK_OK);
    rlock_free(one);
    rlock_free(two);
    rw_scene_stop(&r);
}

/* --- permits, latches ----------------------------------------------------- */

TEST(waits_kinds, for_permits_is_told_who_has_them_and_how_many)
{
    scene s = scene_start(0, 0);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 3);
    rlock_permit *two = take(pool, 2, 60000), *one = take(pool, 1, 3600000);
    taker *t = taker_stand(s.sv, pool, 2, 1);
    told x = only(s.cl);
    EXPECT_STR(x.name, POOL);
    EXPECT(x.kind == RLOCK_KIND_PERMIT && x.rank == 0 && x.n_holders == 2);
    EXPECT(x.holder[0].count == 2 && x.holder[1].count == 1);
    EXPECT(x.holder[0].pid == getpid() && x.holder[1].pid == getpid());
    EXPECT_BETWEEN(x.holder[0].ttl_ms, 1, 60000);
    EXPECT_BETWEEN(x.holder[1].ttl_ms, 3000000, 3600000);
    give_back(two);
    EXPECT_STATUS(taker_end(t, NULL, NULL), RLOCK_OK);
    give_back(one);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

/* What is there is a number of permits, and nobody's holder id. */
TEST(waits_kinds, for_permits_that_nobody_has_is_told_without_a_holder)
{
    scene s = scene_start(0, 0);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 1);
    for (int64_t fewer = 0; fewer >= -2; fewer -= 2) {
        EXPECT_STATUS(rlock_semaphore_add(pool, fewer), RLOCK_OK);
        taker *t = taker_start(pool, 2, RLOCK_FOREVER, RLOCK_WATCHDOG);
        told x = only(s.cl);
        EXPECT_STR(x.name, POOL);
        EXPECT(x.kind == RLOCK_KIND_PERMIT && x.n_holders == 0);
        rlock_semaphore_cancel(pool);
        EXPECT_STATUS(taker_end(t, NULL, NULL), RLOCK_CANCELED);
    }
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

/* Its count is nobody's holder id. */
TEST(waits_kinds, for_a_latch_is_told_without_a_holder)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 3, 0), RLOCK_OK);
    gate_waiter *w = gate_wait(l, RLOCK_FOREVER);
    gate_await_queue(s.sv, GATE, 1);
    told t = only(s.cl);
    EXPECT_STR(t.name, GATE);
    EXPECT(t.kind == RLOCK_KIND_LATCH && t.rank == -1 && t.n_holders == 0);
    EXPECT_STATUS(rlock_latch_count_down(l, 3), RLOCK_OK);
    EXPECT_STATUS(gate_end(w, NULL), RLOCK_OK);
    rlock_latch_free(l);
    scene_stop(&s);
}
