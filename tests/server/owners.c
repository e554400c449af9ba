/*
 * Owners that are no threads: what they hold is theirs, whichever thread acts
 * as them, and one thread at a time does.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "scene.h"

static rlock_owner *owner(const char *label)
{
    rlock_owner *o;
    EXPECT_STATUS(rlock_owner_new(label, &o), RLOCK_OK);
    return o;
}

/* The status of a call, made as this owner. */
#define AS(o, call)                                                            \
    (rlock_owner_set(o), as_status = (call), rlock_owner_set(NULL), as_status)

static _Thread_local rlock_status as_status;

TEST(owners, two_owners_of_one_thread_exclude_each_other)
{
    scene s = scene_start(0, 0);
    rlock_owner *a = owner("a"), *b = owner("b");
    EXPECT_STATUS(AS(a, rlock_lock(s.lk)), RLOCK_OK);
    EXPECT_STATUS(AS(b, rlock_trylock(s.lk)), RLOCK_BUSY);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_STATUS(AS(b, rlock_acquire(s.lk, 50, RLOCK_WATCHDOG)),
                  RLOCK_TIMEOUT);
    EXPECT_STATUS(AS(a, rlock_unlock(s.lk)), RLOCK_OK);
    EXPECT_STATUS(AS(b, rlock_trylock(s.lk)), RLOCK_OK);
    EXPECT_STATUS(AS(b, rlock_unlock(s.lk)), RLOCK_OK);
    rlock_owner_free(a);
    rlock_owner_free(b);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(owners, an_owner_locks_again_one_level_deeper)
{
    scene s = scene_start(0, 0);
    rlock_owner *a = owner("a");
    rlock_owner_set(a);
    lock_times(s.lk, 3);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 3);
    EXPECT_INT(rlock_hold_count(s.lk), 3);
    EXPECT(rlock_owner_set(NULL) == a);
    EXPECT_INT(rlock_hold_count(s.lk), 0);
    EXPECT(!rlock_is_held(s.lk));
    rlock_owner_set(a);
    unlock_times(s.lk, 3, RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    EXPECT_CONTAINS(rlock_last_error()->message, "owner");
    rlock_owner_set(NULL);
    rlock_owner_free(a);
    scene_stop(&s);
}

/* --- threads -------------------------------------------------------------- */

typedef struct job {
    rlock *lk;
    rlock_owner *owner;
    atomic_bool acts, go_on;
} job;

static intptr_t unlock_as(void *arg)
{
    job *j = arg;
    return AS(j->owner, rlock_unlock(j->lk));
}

TEST(owners, what_one_thread_has_locked_another_one_unlocks)
{
    scene s = scene_start(0, 0);
    job j = {.lk = s.lk, .owner = owner("a")};
    EXPECT_STATUS(AS(j.owner, rlock_lock(s.lk)), RLOCK_OK);
    EXPECT_INT(test_join(test_spawn(unlock_as, &j)), RLOCK_OK);
    expect_nothing_left(s.sv);
    rlock_owner_free(j.owner);
    scene_stop(&s);
}

static intptr_t act(void *arg)
{
    job *j = arg;
    rlock_owner_set(j->owner);
    atomic_store(&j->acts, true);
    EVENTUALLY(SOON, atomic_load(&j->go_on));
    return 0;
}

TEST(owners, a_second_thread_is_refused_while_one_acts_as_the_owner)
{
    scene s = scene_start(0, 0);
    job j = {.lk = s.lk, .owner = owner("a")};
    test_thread *t = test_spawn(act, &j);
    EVENTUALLY(SOON, atomic_load(&j.acts));
    long long calls = script_calls(s.sv);
    rlock_owner_set(j.owner);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "'a' is used by another");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_extend(s.lk, 5000), RLOCK_EINVAL);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_INT(script_calls(s.sv), calls);
    atomic_store(&j.go_on, true);
    test_join(t); /* that ends, and acts as nobody any more */
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_owner_set(NULL);
    rlock_owner_free(j.owner);
    scene_stop(&s);
}

enum { THREADS = 8, SECTIONS = 50 };

typedef struct crowd {
    rlock *lk;
    rlock_owner *owner;
    int sections; /* guarded by the lock */
    atomic_int refused;
} crowd;

static intptr_t work(void *arg)
{
    crowd *c = arg;
    for (int i = 0; i < SECTIONS;) {
        rlock_owner_set(c->owner);
        if (rlock_lock(c->lk) == RLOCK_OK) {
            c->sections++;
            EXPECT_STATUS(rlock_unlock(c->lk), RLOCK_OK);
            i++;
        } else {
            EXPECT_INT(rlock_last_error()->status, RLOCK_EINVAL);
            atomic_fetch_add(&c->refused, 1);
        }
        rlock_owner_set(NULL);
    }
    return 0;
}

TEST(owners, threads_that_act_as_one_owner_are_refused_and_never_race)
{
    scene s = scene_start(0, 0);
    crowd c = {.lk = s.lk, .owner = owner("a")};
    test_thread *t[THREADS];
    for (int i = 0; i < THREADS; i++)
        t[i] = test_spawn(work, &c);
    for (int i = 0; i < THREADS; i++)
        test_join(t[i]);
    EXPECT_INT(c.sections, THREADS * SECTIONS);
    rlock_owner_free(c.owner);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* --- the end -------------------------------------------------------------- */

TEST(owners, what_an_owner_holds_at_its_end_is_abandoned)
{
    scene s = scene_start(0, 0);
    rlock_owner *a = owner("order 42");
    EXPECT_STATUS(AS(a, rlock_acquire(s.lk, 0, 60000)), RLOCK_OK);
    rlock_owner_free(a);
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, SOON);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    scene_stop(&s);
}

static intptr_t lock_and_end(void *arg)
{
    job *j = arg;
    rlock_owner_set(j->owner);
    return rlock_lock(j->lk);
}

TEST(owners, the_end_of_a_thread_is_no_end_of_who_it_acted_as)
{
    scene s = scene_start(BRISK_MS, 0);
    job j = {.lk = s.lk, .owner = owner("a")};
    EXPECT_INT(test_join(test_spawn(lock_and_end, &j)), RLOCK_OK);
    watch_renewals(s.cl, 4);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_ABANDONED), 0);
    EXPECT_STATUS(AS(j.owner, rlock_unlock(s.lk)), RLOCK_OK);
    rlock_owner_free(j.owner);
    scene_stop(&s);
}

TEST(owners, an_owner_that_was_freed_can_do_nothing_more)
{
    scene s = scene_start(0, 0);
    job j = {.lk = s.lk, .owner = owner("a")};
    test_thread *t = test_spawn(act, &j);
    EVENTUALLY(SOON, atomic_load(&j.acts));
    rlock_owner_set(j.owner);
    rlock_owner_free(j.owner); /* this thread acts as itself again */
    EXPECT(rlock_owner_set(NULL) == NULL);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    atomic_store(&j.go_on, true);
    test_join(t);
    scene_stop(&s);
}

static intptr_t act_when_freed(void *arg)
{
    job *j = arg;
    act(j);
    rlock_status s = rlock_trylock(j->lk);
    EXPECT_CONTAINS(rlock_last_error()->message, "has been freed");
    return s;
}

TEST(owners, who_acts_as_an_owner_that_was_freed_is_told)
{
    scene s = scene_start(0, 0);
    job j = {.lk = s.lk, .owner = owner("a")};
    test_thread *t = test_spawn(act_when_freed, &j);
    EVENTUALLY(SOON, atomic_load(&j.acts));
    rlock_owner_free(j.owner);
    atomic_store(&j.go_on, true);
    EXPECT_INT(test_join(t), RLOCK_EINVAL);
    scene_stop(&s);
}

static intptr_t wait_as(void *arg)
{
    job *j = arg;
    rlock_owner_set(j->owner);
    rlock_status s = rlock_lock(j->lk);
    EXPECT(!rlock_is_held(j->lk));
    rlock_owner_set(NULL);
    return s;
}

TEST(owners, the_wait_of_a_thread_ends_when_its_owner_was_freed)
{
    scene s = scene_start(0, 0);
    job j = {.lk = s.lk, .owner = owner("a")};
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    test_thread *t = test_spawn(wait_as, &j);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 1);
    rlock_owner_free(j.owner);
    EXPECT_INT(test_join(t), RLOCK_CANCELED);
    EXPECT_INT(stats_of(s.cl).held_now, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(owners, what_a_call_is_granted_after_its_owner_was_freed_is_abandoned)
{
    scene s = scene_proxied(0, 0);
    job j = {.lk = s.lk, .owner = owner("a")};
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REQUEST, NULL);
    test_thread *t = test_spawn(wait_as, &j);
    EVENTUALLY(SOON, proxy_fired(s.px));
    rlock_owner_free(j.owner);
    proxy_let_go(s.px);
    EXPECT_INT(test_join(t), RLOCK_CANCELED);
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, SOON);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    EXPECT_STATUS(rlock_trylock(s.lk),
                  RLOCK_BUSY); /* until its lease is over */
    scene_stop(&s);
}

static void note_owner(const rlock_event *ev, void *arg)
{
    if (ev->type == RLOCK_EVENT_ABANDONED)
        snprintf(arg, 64, "%s", ev->owner);
    else
        EXPECT_STR(ev->owner, "order_42");
}

TEST(owners, an_event_names_the_owner)
{
    scene s = scene_server(NULL);
    char abandoned[64] = "";
    rlock_client *cl;
    s.opts.uri = server_uri(s.sv);
    s.opts.on_event = note_owner;
    s.opts.event_arg = abandoned;
    s.opts.dispatch_events = true;
    EXPECT_STATUS(rlock_client_new(&s.opts, &cl), RLOCK_OK);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    rlock_owner *a = owner("order 42");
    EXPECT_STATUS(AS(a, rlock_acquire(lk, 0, 60000)), RLOCK_OK);
    rlock_owner_free(a);
    EVENTUALLY(SOON, rlock_client_dispatch(cl) == RLOCK_OK && *abandoned);
    EXPECT_STR(abandoned, "order_42");
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(s.sv);
}

/* --- who it is ------------------------------------------------------------ */

static void expect_shown(const char *label, const char *shown)
{
    scene s = scene_start(0, 0);
    rlock_holder h;
    rlock_owner *a = owner(label);
    EXPECT_STATUS(AS(a, rlock_lock(s.lk)), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_CONTAINS(h.owner, shown);
    EXPECT_CONTAINS(h.raw, h.owner);
    EXPECT_INT(h.pid, getpid());
    EXPECT(h.tid > 0);
    EXPECT_INT(strlen(h.hold_id), 36);
    EXPECT_STATUS(AS(a, rlock_unlock(s.lk)), RLOCK_OK);
    rlock_owner_free(a);
    scene_stop(&s);
}

TEST_CASE(owners, a_label_shows_in_the_holder_id,
          expect_shown("job/7", "job/7"))
TEST_CASE(owners, a_label_is_made_readable, expect_shown("a b:c\n", "a_b_c_"))
TEST_CASE(
    owners, a_long_label_is_cut,
    expect_shown("0123456789012345678901234567890123456789"
                 "0123456789012345678901234567890123456789",
                 "012345678901234567890123456789012345678901234567890123456"
                 "789012"))
TEST_CASE(owners, without_a_label_an_owner_has_a_number,
          expect_shown(NULL, "owner-"))

TEST(owners, a_thread_has_no_label)
{
    scene s = scene_held(0, 0);
    rlock_holder h;
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_STR(h.owner, "");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(owners, setting_tells_whom_the_thread_acted_as)
{
    rlock_owner *a = owner("a"), *b = owner("b");
    EXPECT(!rlock_owner_set(a));
    EXPECT(rlock_owner_set(b) == a);
    EXPECT(rlock_owner_set(a) == b);
    EXPECT(rlock_owner_set(NULL) == a);
    rlock_owner_free(a);
    rlock_owner_free(b);
    rlock_owner_free(NULL);
    EXPECT_STATUS(rlock_owner_new("x", NULL), RLOCK_EINVAL);
}
