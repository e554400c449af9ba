/*
 * What there is for locks, on the sides of a read-write lock: options, leases,
 * questions, force, guarded calls, events, descriptors, owners, event loops, several
 * locks, replicas, circles, rights.
 */
#include <rlock/async.h>
#include <rlock/multi.h>
#include <rlock/owner.h>
#include <unistd.h>

#include "descriptor.h"
#include "direct.h"
#include "guarded.h"
#include "loop.h"
#include "replica_scene.h"
#include "rw_scene.h"
#include "scanned.h"

/* --- handles -------------------------------------------------------------- */

TEST(rw_verbs, either_side_may_be_left_out)
{
    scene s = scene_start(0, 0);
    rlock *read = NULL, *write = NULL;
    EXPECT_STATUS(rlock_rw_new(s.cl, "x", &read, NULL), RLOCK_OK);
    EXPECT_STATUS(rlock_rw_new(s.cl, "x", NULL, &write), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(write), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(write), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(read), RLOCK_OK);
    rlock_free(read);
    rlock_free(write);
    scene_stop(&s);
}

static void expect_refused(rlock_client *cl, const char *name,
                           const rlock_lock_options *o, rlock_status wanted)
{
    rlock *read = NULL, *write = NULL;
    EXPECT_STATUS(
        rlock_rw_new_ex(cl, name, name ? strlen(name) : 0, o, &read, &write),
        wanted);
    EXPECT(!read && !write);
}

TEST(rw_verbs, what_cannot_be_made_is_refused)
{
    scene s = scene_start(0, 0);
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    EXPECT_STATUS(rlock_rw_new(s.cl, "x", NULL, NULL), RLOCK_EINVAL);
    expect_refused(NULL, "x", NULL, RLOCK_EINVAL);
    expect_refused(s.cl, NULL, NULL, RLOCK_EINVAL);
    expect_refused(s.cl, "", NULL, RLOCK_EINVAL);
    expect_refused(s.cl, "rlock_leases:{x}", NULL, RLOCK_EINVAL);
    expect_refused(s.cl, "redisson_rwlock:{x}", NULL, RLOCK_EINVAL);
    o.min_replicas = 17;
    expect_refused(s.cl, "x", &o, RLOCK_EINVAL);
    o.min_replicas = 0;
    o.layout = RLOCK_LAYOUT_STRING;
    expect_refused(s.cl, "x", &o, RLOCK_ENOTSUP);
    o.layout = RLOCK_LAYOUT_TIMESTAMP;
    expect_refused(s.cl, "x", &o, RLOCK_ENOTSUP);
    scene_stop(&s);
}

TEST(rw_verbs, local_levels_are_counted_here)
{
    scene s = scene_start(0, 0);
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    rlock *read, *write;
    o.local_levels = true;
    EXPECT_STATUS(rlock_rw_new_ex(s.cl, "job", 3, &o, &read, &write), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(read), RLOCK_OK);
    long long before = script_calls(s.sv);
    lock_times(read, 3);
    unlock_times(read, 3, RLOCK_OK);
    EXPECT_INT(script_calls(s.sv), before);
    EXPECT_STATUS(rlock_unlock(read), RLOCK_OK);
    rlock_free(read);
    rlock_free(write);
    scene_stop(&s);
}

/* --- questions, and force ------------------------------------------------- */

static bool locked(rlock *lk)
{
    bool is;
    EXPECT_STATUS(rlock_is_locked(lk, &is), RLOCK_OK);
    return is;
}

/* Who comes while others read has their token, which is older than its hold. */
TEST(rw_verbs, since_when_somebody_reads_is_not_told_of_who_came_later)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT_INT(scan_only(r.s.cl, NULL, 0).l.held_ms, -1);
    EXPECT_STATUS(rlock_trylock(r.mine.write), RLOCK_BUSY);
    EXPECT_CONTAINS(rlock_last_error()->message, "held by ");
    EXPECT(!strstr(rlock_last_error()->message, " for "));
    EXPECT_STATUS(rlock_lock(r.theirs.write), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(r.mine.read), RLOCK_BUSY);
    EXPECT_CONTAINS(rlock_last_error()->message, " for ");
    EXPECT(scan_only(r.s.cl, NULL, 0).l.held_ms >= 0);
    EXPECT_STATUS(rlock_unlock(r.theirs.write), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(rw_verbs, questions_are_about_the_side)
{
    rw_scene r = rw_scene_start(0);
    rlock_holder h;
    int64_t ttl_ms;
    rlock_rw_state now = RLOCK_RW_STATE_INIT;
    EXPECT(!locked(r.mine.read) && !locked(r.mine.write));
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    EXPECT(!locked(r.theirs.read) && locked(r.theirs.write));
    EXPECT_STATUS(rlock_holder_info(r.theirs.write, &h, sizeof h), RLOCK_OK);
    EXPECT_INT(h.pid, getpid());
    EXPECT_STR(strrchr(h.raw, ':') + 1, h.hold_id);
    EXPECT_STATUS(rlock_holder_info(r.theirs.read, &h, sizeof h),
                  RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_ttl(r.theirs.read, &ttl_ms), RLOCK_OK);
    EXPECT_INT(ttl_ms, -2);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT(locked(r.theirs.read) && locked(r.theirs.write));
    EXPECT_STATUS(rlock_rw_inspect(r.theirs.read, &now), RLOCK_OK);
    EXPECT(now.mode == 2 && now.holders == 1 && now.waiting == 0);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    EXPECT(locked(r.theirs.read) && !locked(r.theirs.write));
    EXPECT_STATUS(rlock_lock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_rw_inspect(r.theirs.write, &now), RLOCK_OK);
    EXPECT(now.mode == 1 && now.holders == 2);
    EXPECT_BETWEEN(now.ttl_ms, 1, 30000);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(rw_verbs, only_a_side_has_a_state)
{
    rw_scene r = rw_scene_start(0);
    rlock_rw_state now = RLOCK_RW_STATE_INIT;
    EXPECT_STATUS(rlock_rw_inspect(r.s.lk, &now), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_rw_inspect(NULL, &now), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_rw_inspect(r.mine.read, NULL), RLOCK_EINVAL);
    now.size = 4;
    EXPECT_STATUS(rlock_rw_inspect(r.mine.read, &now), RLOCK_EINVAL);
    rw_scene_stop(&r);
}

/* Their marks go with their time. */
static void stop_after_force(rw_scene *r)
{
    server_cmd(r->s.sv, "EVAL %s 0",
               "for _, k in ipairs(redis.call('KEYS', '*:rwlock_timeout:1')) "
               "do redis.call('DEL', k) end");
    rw_scene_stop(r);
}

TEST(rw_verbs, force_ends_all_who_read_and_lets_in_who_waits)
{
    rw_scene r = rw_scene_start(BRISK_MS);
    EXPECT_STATUS(rlock_force_unlock(r.theirs.read), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(r.theirs.write), RLOCK_NOT_HELD);
    waiter *w = rw_stand(&r, r.theirs.write, RLOCK_FOREVER, 1);
    int64_t forced_ms = test_now_ms();
    EXPECT_STATUS(rlock_force_unlock(r.theirs.read), RLOCK_OK);
    waiter_expect_rung(w, forced_ms);
    events_wait(r.s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_LOST);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    stop_after_force(&r);
}

TEST(rw_verbs, force_ends_the_hold_that_was_looked_at)
{
    rw_scene r = rw_scene_start(0);
    rlock_holder h;
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(r.theirs.write, &h, sizeof h), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock_hold(r.theirs.read, h.raw),
                  RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_force_unlock_hold(r.theirs.write, h.raw), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock_hold(r.theirs.write, h.raw),
                  RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_LOST);
    stop_after_force(&r);
}

static bool keep_last(const rlock_lock_info *l, void *arg)
{
    *(rlock_lock_info *)arg = *l;
    EXPECT_STR(l->name, SCENE_LOCK);
    return true;
}

static rlock_lock_info scanned(rlock_client *cl, unsigned flags)
{
    rlock_lock_info found = {.name = NULL};
    EXPECT_STATUS(rlock_scan(cl, NULL, flags, keep_last, &found), RLOCK_OK);
    EXPECT(found.name);
    return found;
}

TEST(rw_verbs, a_scan_tells_which_side_is_held_and_by_how_many)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.theirs.read), RLOCK_OK);
    rlock_lock_info found = scanned(r.s.cl, 0);
    EXPECT_INT(found.kind, RLOCK_KIND_READ);
    EXPECT_INT(found.holders_in_all, 2);
    EXPECT_INT(found.token, rlock_token(r.mine.read));
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    server_cmd(r.s.sv, "DEL rlock_token:{job}"); /* as if Java had it */
    found = scanned(r.s.cl, RLOCK_SCAN_ALL);
    EXPECT_INT(found.kind, RLOCK_KIND_WRITE);
    EXPECT(found.holders_in_all == 1 && !found.foreign);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    rw_scene_stop(&r);
}

/* --- leases --------------------------------------------------------------- */

TEST(rw_verbs, both_sides_are_renewed_each_by_itself)
{
    rw_scene r = rw_scene_start(BRISK_MS);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    watch_renewals(r.s.cl, 6);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.theirs.read), RLOCK_OK);
    watch_renewals(r.s.cl, 4);
    watch_renewals(r.o.cl, 4);
    EXPECT(rlock_is_held(r.mine.read) && rlock_is_held(r.theirs.read));
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_INT(stats_of(r.s.cl).lost + stats_of(r.o.cl).lost, 0);
    rw_scene_stop(&r);
}

/* More than one call takes. */
TEST(rw_verbs, many_who_read_are_renewed_together)
{
    enum { N = 120 };
    scene s = scene_start(BRISK_MS, 0);
    rlock *read[N];
    char name[16];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "r%d", i);
        EXPECT_STATUS(rlock_rw_new(s.cl, name, &read[i], NULL), RLOCK_OK);
        EXPECT_STATUS(rlock_lock(read[i]), RLOCK_OK);
    }
    watch_renewals(s.cl, 4 * N);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    for (int i = 0; i < N; i++) {
        EXPECT_STATUS(rlock_unlock(read[i]), RLOCK_OK);
        rlock_free(read[i]);
    }
    scene_stop(&s);
}

TEST(rw_verbs, an_extend_is_about_the_own_lease)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(r.mine.read, 300), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(r.mine.read), 1, 300);
    EVENTUALLY(SOON, !rlock_is_held(r.mine.read));
    EXPECT(rlock_is_held(r.theirs.read));
    EVENTUALLY(SOON, rlock_trylock(r.theirs.write) == RLOCK_OK);
    EXPECT_STATUS(rlock_extend(r.theirs.write, 60000), RLOCK_OK);
    EXPECT(key_ttl(r.s.sv, SCENE_LOCK) > 50000);
    EXPECT_STATUS(rlock_unlock(r.theirs.write), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_LOST);
    stop_after_force(&r);
}

/* --- guarded calls -------------------------------------------------------- */

TEST(rw_verbs, scripts_run_under_either_side)
{
    rw_scene r = rw_scene_start(0);
    redisReply *reply;
    char field[600];
    EXPECT_STATUS(eval(r.mine.read, "return 1", &reply), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    expect_answer(r.mine.write, "return {#KEYS, #ARGV}", REDIS_REPLY_ARRAY);
    expect_answer(r.mine.read, "return {#KEYS, #ARGV}", REDIS_REPLY_ARRAY);
    EXPECT_STATUS(rlock_command(r.mine.read, NULL, "SET x 1"), RLOCK_OK);
    snprintf(field, sizeof field, "%s",
             server_cmd(r.s.sv, "ZRANGE " RW_LEASES " -1 -1")->element[0]->str);
    server_cmd(r.s.sv, "ZADD " RW_LEASES " 1 %s", field); /* it is over */
    rlock_status read = eval(r.mine.read, "return 1", &reply);
    freeReplyObject(reply);
    rlock_status write = eval(r.mine.write, "return 1", &reply);
    freeReplyObject(reply);
    EXPECT((read == RLOCK_LOST) + (write == RLOCK_LOST) == 1);
    server_cmd(r.s.sv, "DEL x " SCENE_LOCK " " RW_LEASES);
    sides_free(&r.mine);
    sides_free(&r.theirs);
    other_client_leave(&r.o);
    scene_stop(&r.s);
}

TEST(rw_verbs, no_script_runs_once_the_side_is_lost)
{
    rw_scene r = rw_scene_start(0);
    redisReply *reply;
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(eval(r.mine.read, "return 1", &reply), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_LOST);
    stop_after_force(&r);
}

/* --- what is told --------------------------------------------------------- */

TEST(rw_verbs, events_say_which_side)
{
    rw_scene r = rw_scene_start(BRISK_MS);
    rlock_event ev;
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT(events_last(r.s.ev, RLOCK_EVENT_ACQUIRED, &ev));
    EXPECT_INT(ev.kind, RLOCK_KIND_READ);
    events_wait(r.s.ev, RLOCK_EVENT_RENEWED, 1, SOON);
    EXPECT(events_last(r.s.ev, RLOCK_EVENT_RENEWED, &ev));
    EXPECT_INT(ev.kind, RLOCK_KIND_READ);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    EXPECT(events_last(r.s.ev, RLOCK_EVENT_ACQUIRED, &ev));
    EXPECT_INT(ev.kind, RLOCK_KIND_WRITE);
    EXPECT_STATUS(rlock_force_unlock(r.theirs.write), RLOCK_OK);
    events_wait(r.s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_last(r.s.ev, RLOCK_EVENT_LOST, &ev));
    EXPECT_INT(ev.kind, RLOCK_KIND_WRITE);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT(events_last(r.s.ev, RLOCK_EVENT_RELEASED, &ev));
    EXPECT_INT(ev.kind, RLOCK_KIND_READ);
    EXPECT_STATUS(rlock_lock(r.s.lk), RLOCK_OK);
    EXPECT(events_last(r.s.ev, RLOCK_EVENT_ACQUIRED, &ev));
    EXPECT_INT(ev.kind, RLOCK_KIND_LOCK);
    EXPECT_STATUS(rlock_unlock(r.s.lk), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(rw_verbs, each_side_has_a_descriptor_of_its_own)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.mine.write, 0, 500), RLOCK_OK);
    int read = lost_fd_of_held(r.mine.read);
    int write = lost_fd_of_held(r.mine.write);
    fd_wait(write, SOON);
    EXPECT(!fd_is_readable(read) && rlock_is_held(r.mine.read));
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT(!fd_is_open(read) && !fd_is_open(write));
    rw_scene_stop(&r);
}

/* --- owners, and event loops ---------------------------------------------- */

TEST(rw_verbs, owners_read_together_on_one_loop)
{
    enum { N = 40 };
    scene s = scene_start(0, 0);
    sides x = sides_of(s.cl, SCENE_LOCK);
    request w = request_new(x.write), r[N];
    EXPECT_STATUS(loop_acquire(s.cl, &w, 0, RLOCK_WATCHDOG), RLOCK_OK);
    for (int i = 0; i < N; i++) {
        r[i] = request_new(x.read);
        EXPECT_STATUS(request_acquire(&r[i], RLOCK_FOREVER, RLOCK_WATCHDOG),
                      RLOCK_OK);
    }
    EVENTUALLY(SOON, rw_in_line(s.sv) == N);
    EXPECT_STATUS(loop_unlock(s.cl, &w), RLOCK_OK);
    for (int i = 0; i < N; i++) {
        LOOP_UNTIL(s.cl, r[i].told);
        EXPECT_STATUS(r[i].status, RLOCK_OK);
    }
    for (int i = 0; i < N; i++)
        EXPECT(request_holds(&r[i]));
    EXPECT_STATUS(loop_acquire(s.cl, &w, 50, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    for (int i = 0; i < N; i++) {
        EXPECT_STATUS(loop_unlock(s.cl, &r[i]), RLOCK_OK);
        request_free(&r[i]);
    }
    EXPECT_STATUS(loop_acquire(s.cl, &w, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &w), RLOCK_OK);
    request_free(&w);
    sides_free(&x);
    scene_stop(&s);
}

TEST(rw_verbs, a_started_upgrade_and_a_started_refusal)
{
    scene s = scene_start(0, 0);
    sides x = sides_of(s.cl, SCENE_LOCK);
    request a = request_new(x.read), b = request_new(x.read);
    EXPECT_STATUS(loop_acquire(s.cl, &a, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_acquire(s.cl, &b, 0, RLOCK_WATCHDOG), RLOCK_OK);
    a.lk = x.write;
    EXPECT_STATUS(loop_acquire(s.cl, &a, RLOCK_FOREVER, RLOCK_WATCHDOG),
                  RLOCK_EDEADLK);
    EXPECT_CONTAINS(a.error.message, "reads it, too");
    EXPECT_STATUS(loop_unlock(s.cl, &b), RLOCK_OK);
    EXPECT_STATUS(loop_acquire(s.cl, &a, RLOCK_FOREVER, RLOCK_WATCHDOG),
                  RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &a), RLOCK_OK);
    a.lk = x.read;
    EXPECT_STATUS(loop_unlock(s.cl, &a), RLOCK_OK);
    request_free(&a);
    request_free(&b);
    sides_free(&x);
    scene_stop(&s);
}

/* --- several locks -------------------------------------------------------- */

TEST(rw_verbs, sides_are_members_of_a_multi_lock)
{
    rw_scene r = rw_scene_start(0);
    rlock *plain = test_lock(r.s.cl, "zzz"), *multi, *both;
    rlock *members[] = {plain, r.mine.read};
    rlock *sides_of_one[] = {r.mine.read, r.mine.write};
    EXPECT_STATUS(rlock_multi_new(sides_of_one, 2, &both), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "the same lock");
    EXPECT_STATUS(rlock_multi_new(members, 2, &multi), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(multi), RLOCK_OK); /* beside one who reads */
    EXPECT_STATUS(rlock_unlock(multi), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.theirs.write), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(multi), RLOCK_BUSY);
    waiter *w = rw_stand(&r, multi, RLOCK_FOREVER, 1);
    EXPECT_STATUS(rlock_unlock(r.theirs.write), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(r.theirs.write), RLOCK_BUSY);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(multi);
    rlock_free(plain);
    rw_scene_stop(&r);
}

/* --- replicas ------------------------------------------------------------- */

TEST(rw_verbs, replicas_have_what_is_granted)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    sides x = sides_of(f.s.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(x.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(x.write), RLOCK_OK);
    EXPECT_INT(server_int(f.replica[0], "HLEN " SCENE_LOCK), 3);
    waiter *w = waiter_start(x.read, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, rw_in_line(f.s.sv) == 1);
    EXPECT_STATUS(rlock_unlock(x.write), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(server_int(f.replica[0], "HLEN " SCENE_LOCK), 3);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(x.read), RLOCK_OK);
    replica_scene_cut_off(&f, 0);
    EXPECT_STATUS(rlock_trylock(x.read), RLOCK_EQUORUM);
    EVENTUALLY(SOON, rlock_trylock(x.write) == RLOCK_EQUORUM);
    sides_free(&x);
    replica_scene_stop(&f);
}

/* --- circles -------------------------------------------------------------- */

/* One owner of `other` waits for the lock "b", which this thread has. */
static rlock_owner *begin_to_wait(rlock *held, rlock *b, rlock_client *cl)
{
    rlock_owner *other;
    EXPECT_STATUS(rlock_owner_new("other", &other), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(b), RLOCK_OK);
    rlock_owner_set(other);
    EXPECT_STATUS(rlock_lock(held), RLOCK_OK);
    EXPECT_STATUS(
        rlock_acquire_start(b, RLOCK_FOREVER, RLOCK_WATCHDOG, NULL, NULL),
        RLOCK_OK);
    rlock_owner_set(NULL);
    EVENTUALLY(SOON, stats_of(cl).waiting_now == 1);
    return other;
}

static void expect_circle(bool other_reads, bool reads)
{
    scene s = scene_start(0, 0);
    sides x = sides_of(s.cl, SCENE_LOCK);
    rlock *b = test_lock(s.cl, "b");
    rlock_owner *other = begin_to_wait(other_reads ? x.read : x.write, b, s.cl);
    EXPECT_STATUS(rlock_acquire(reads ? x.read : x.write, 5000, RLOCK_WATCHDOG),
                  RLOCK_EDEADLK);
    EXPECT_CONTAINS(rlock_last_error()->message, "of owner 'other'");
    EXPECT_INT(rw_in_line(s.sv), 0);
    EXPECT_STATUS(rlock_unlock(b), RLOCK_OK);
    rlock_owner_free(other);
    rlock_free(b);
    sides_free(&x);
    scene_stop(&s);
}

TEST_CASE(rw_verbs, who_waits_to_write_is_in_a_circle_with_one_who_reads,
          expect_circle(true, false))
TEST_CASE(rw_verbs, who_waits_to_read_is_in_a_circle_with_one_who_writes,
          expect_circle(false, true))
TEST_CASE(rw_verbs, who_waits_to_write_is_in_a_circle_with_one_who_writes,
          expect_circle(false, false))

/* --- rights --------------------------------------------------------------- */

/* As src/doc/rights.md has them. */
#define RIGHTS                                                                 \
    "ACL SETUSER app on >secret resetkeys resetchannels -@all ~job "           \
    "~rlock_token:* ~rlock_queue:* ~rlock_undone:* ~rlock_line:* "             \
    "~rlock_wants:* ~rlock_leases:* ~*:rwlock_timeout:* &rlock_bell:* "        \
    "&redisson_lock__channel:* &redisson_rwlock:* +ping +eval +evalsha "       \
    "+subscribe +unsubscribe +publish +time +exists +get +set +del +pexpire "  \
    "+pttl +hset +hexists +hlen +hscan +hdel +zadd +zrem +zpopmin +zrank "     \
    "+zrange +hget +zrevrange +zscore +zcard +zrangebyscore +hkeys"

static rlock_status use_as_user(const char *less)
{
    scene s = scene_server(NULL);
    server_cmd(s.sv, RIGHTS);
    server_cmd(s.sv, less);
    rlock_client *cl = user_client(s.sv);
    sides x = sides_of(cl, SCENE_LOCK);
    rlock_rw_state now = RLOCK_RW_STATE_INIT;
    rlock_status got = rlock_lock(x.write);
    if (got == RLOCK_OK) {
        waiter *w = waiter_start(x.read, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, rw_in_line(s.sv) == 1 || waiter_returned(w));
        EXPECT_STATUS(rlock_unlock(x.write), RLOCK_OK);
        got = waiter_end(w);
    }
    if (got == RLOCK_OK)
        got = rlock_rw_inspect(x.read, &now);
    if (got == RLOCK_OK)
        EXPECT_STATUS(rlock_force_unlock(x.read), RLOCK_NOT_HELD);
    sides_free(&x);
    rlock_client_free(cl);
    server_stop(s.sv);
    return got;
}

TEST(rw_verbs, a_user_with_the_rights_that_are_told_can_use_it)
{
    EXPECT_STATUS(use_as_user("PING"), RLOCK_OK);
}

TEST(rw_verbs, a_right_that_is_missing_is_told)
{
    EXPECT_STATUS(use_as_user("ACL SETUSER app -zcard"), RLOCK_ESERVER);
    EXPECT_STATUS(use_as_user("ACL SETUSER app resetkeys ~job ~rlock_token:* "
                              "~rlock_queue:* ~rlock_undone:* ~rlock_line:* "
                              "~rlock_wants:*"),
                  RLOCK_ESERVER);
}
