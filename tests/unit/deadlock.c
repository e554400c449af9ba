/* Who waits for whom: circles, and what looks like one and is none. */
#include "hold/deadlock.h"
#include "hold/level.h"
#include "op/handover.h"
#include "op/turn.h"

#include "play.h"

enum { MOST = 10 };

/* Owners, each of whom holds a lock that is called like it: "a", "b" ... */
typedef struct owners {
    play p;
    size_t n;
    rl_owner owner[MOST];
    rl_hold *h[MOST];
    char name[MOST][64];
    rl_target what[MOST];
    rl_acquire a[MOST];
    rl_part lent[MOST]; /* to who waits */
    atomic_uint cancels[MOST];
} owners;

static rl_core *core(owners *o)
{
    return play_core(&o->p, 0);
}

static void add_owner(owners *o, size_t i, const char *name)
{
    o->owner[i] = (rl_owner){.serial = i + 1, .tid = 100 + (long)i};
    snprintf(o->name[i], sizeof o->name[i], "%s", name);
    o->what[i] = play_job;
    o->what[i].name = o->name[i];
    o->what[i].len = strlen(name);
    o->p.owner = o->owner[i];
    o->h[i] = play_hold(&o->p, 0, o->name[i], LEASE_MS);
    o->owner[i].holds = 1;
}

static void open_owners(owners *o, size_t n)
{
    memset(o, 0, sizeof *o);
    play_open(&o->p, 1);
    o->n = n;
    for (size_t i = 0; i < n; i++)
        add_owner(o, i, (char[2]){(char)('a' + i)});
}

/* Which waits for a lock of the other's: what it wants next. */
static rl_next wait_for(owners *o, size_t i, size_t other, int64_t wait_ms)
{
    rl_acquire *a = &o->a[i];
    *a = (rl_acquire){.attempt = &rl_attempt_one,
                      .home = core(o),
                      .what = &o->what[other],
                      .handle = a,
                      .owner = &o->owner[i],
                      .cancel = {.count = &o->cancels[i]},
                      .wait_ms = wait_ms,
                      .lease_ms = RLOCK_WATCHDOG,
                      .listen = play_listen,
                      .op.lent = &o->lent[i]};
    o->lent[i] = (rl_part){.heap = false};
    rl_acquire_init(a, o->p.now_us);
    rl_next next = play_begin(&o->p, &a->op);
    return next == RL_ASK ? play_answer(&o->p, 0, IS_BUSY) : next;
}

static void expect_waiting(owners *o, size_t i, size_t other)
{
    EXPECT_INT(wait_for(o, i, other, RLOCK_FOREVER), RL_SLEEP);
}

/* It is not begun, and all that is told of it is this. */
static void expect_deadlock(owners *o, size_t i, size_t other, const char *text)
{
    int contended = o->p.events[RLOCK_EVENT_CONTENDED];
    EXPECT_INT(wait_for(o, i, other, 60000), RL_DONE);
    EXPECT_INT(o->a[i].status, RLOCK_EDEADLK);
    EXPECT_STR(o->a[i].fault.text, text);
    EXPECT(!o->a[i].draft && !o->a[i].waiter.room && !o->a[i].wait.record);
    EXPECT_INT(o->p.events[RLOCK_EVENT_CONTENDED], contended);
}

static void resume(owners *o, size_t i, rl_next wanted)
{
    o->p.op = &o->a[i].op;
    o->p.next = RL_SLEEP;
    EXPECT_INT(play_wake(&o->p), wanted);
}

static void end_wait(owners *o, size_t i)
{
    rl_rooms_cancel(&core(o)->rooms, o->a[i].what, &o->a[i]);
    resume(o, i, RL_DONE);
    EXPECT_INT(o->a[i].status, RLOCK_CANCELED);
}

/* Those that still wait, from this one on. */
static void close_owners(owners *o, size_t from, size_t waiting)
{
    for (size_t i = from; i < from + waiting; i++)
        end_wait(o, i);
    EXPECT_INT(core(o)->stats.waiting_now, 0);
    EXPECT_INT(core(o)->rooms.map.count, 0);
    play_close(&o->p);
}

/* --- circles -------------------------------------------------------------- */

TEST(deadlock, of_two_the_last_one_is_told)
{
    owners o;
    open_owners(&o, 2);
    expect_waiting(&o, 0, 1);
    expect_deadlock(&o, 1, 0,
                    "deadlock: thread 101 waits for 'a' of thread 100, which "
                    "waits for 'b' of thread 101");
    close_owners(&o, 0, 1);
}

TEST(deadlock, of_three_the_last_one_is_told)
{
    owners o;
    open_owners(&o, 3);
    expect_waiting(&o, 0, 1);
    expect_waiting(&o, 2, 0);
    expect_deadlock(&o, 1, 2,
                    "deadlock: thread 101 waits for 'c' of thread 102, which "
                    "waits for 'a' of thread 100, which waits for 'b' of "
                    "thread 101");
    expect_deadlock(&o, 1, 0,
                    "deadlock: thread 101 waits for 'a' of thread 100, which "
                    "waits for 'b' of thread 101");
    end_wait(&o, 0);
    end_wait(&o, 2);
    close_owners(&o, 0, 0);
}

/* What does not fit is counted; who wants what of the caller is always said. */
TEST(deadlock, of_ten_the_last_one_is_told_the_first_and_the_last_of_them)
{
    owners o;
    open_owners(&o, 10);
    for (size_t i = 0; i < 9; i++)
        expect_waiting(&o, i, i + 1);
    expect_deadlock(&o, 9, 0,
                    "deadlock: thread 109 waits for 'a' of thread 100, which "
                    "waits for 'b' of thread 101, which waits for 'c' of "
                    "thread 102, which ... 6 more, which waits for 'j' of "
                    "thread 109");
    close_owners(&o, 0, 9);
}

TEST(deadlock, long_names_are_cut)
{
    owners o;
    open_owners(&o, 0);
    add_owner(&o, 0, "the first account of them all, that of the founder");
    add_owner(&o, 1, "another\xff name");
    expect_waiting(&o, 0, 1);
    expect_deadlock(&o, 1, 0,
                    "deadlock: thread 101 waits for 'the first account of "
                    "them all...' of thread 100, which waits for "
                    "'another\\xff name' of thread 101");
    close_owners(&o, 0, 1);
}

/* The first try has not queued, as the bell was not heard yet. */
TEST(deadlock, is_found_though_the_doorbell_has_just_come_up)
{
    owners o;
    open_owners(&o, 2);
    expect_waiting(&o, 0, 1);
    rl_rooms_hear(&core(&o)->rooms);
    resume(&o, 0, RL_ASK);
    EXPECT_INT(play_answer(&o.p, 0, IS_BUSY), RL_SLEEP);
    EXPECT_INT(wait_for(&o, 1, 0, 60000), RL_ASK);
    EXPECT_STR(play_called(&o.p, 0), "leave"); /* it had queued */
    EXPECT_INT(play_answer(&o.p, 0, LEFT), RL_DONE);
    EXPECT_INT(o.a[1].status, RLOCK_EDEADLK);
    rl_rooms_hear_no_more(&core(&o)->rooms);
    rl_rooms_cancel(&core(&o)->rooms, o.a[0].what, &o.a[0]);
    resume(&o, 0, RL_ASK);
    EXPECT_INT(play_answer(&o.p, 0, LEFT), RL_DONE);
    close_owners(&o, 0, 0);
}

/* It stands behind another one that waits for the same. */
TEST(deadlock, is_found_by_who_is_not_in_front)
{
    owners o;
    open_owners(&o, 3);
    expect_waiting(&o, 1, 0);
    expect_waiting(&o, 0, 2);
    EXPECT_INT(wait_for(&o, 2, 0, 60000), RL_DONE);
    EXPECT_INT(o.a[2].status, RLOCK_EDEADLK);
    close_owners(&o, 0, 2);
}

TEST(deadlock, whose_wait_was_refused_goes_on)
{
    owners o;
    open_owners(&o, 2);
    expect_waiting(&o, 0, 1);
    EXPECT_INT(wait_for(&o, 1, 0, 60000), RL_DONE);
    EXPECT_INT(o.a[1].status, RLOCK_EDEADLK);
    /* It unlocks: then the other one is handed the lock. */
    rl_op op;
    rl_part x = {.heap = false};
    EXPECT_INT(rl_hold_count_down(&core(&o)->holds, o.h[1], 0, o.p.now_us),
               RL_COUNTED);
    EXPECT(rl_part_hand_over(&x, core(&o), o.h[1], o.p.now_us));
    play_one(&o.p, &op, &x);
    EXPECT_INT(play_begin(&o.p, &op), RL_ASK);
    EXPECT_INT(play_answer(&o.p, 0, GRANTED(123)), RL_DONE);
    resume(&o, 0, RL_DONE);
    EXPECT_INT(o.a[0].status, RLOCK_OK);
    o.owner[1].holds = 0;
    expect_waiting(&o, 1, 0);
    close_owners(&o, 1, 1);
}

/* --- and none ------------------------------------------------------------- */

TEST(deadlock, a_chain_is_none)
{
    owners o;
    open_owners(&o, 10);
    for (size_t i = 0; i < 9; i++)
        expect_waiting(&o, i, i + 1);
    close_owners(&o, 0, 9);
}

TEST(deadlock, a_chain_that_is_waited_for_by_its_last_owner_is_none)
{
    owners o;
    open_owners(&o, 4);
    for (size_t i = 4; i-- > 1;)
        expect_waiting(&o, i, i - 1);
    close_owners(&o, 1, 3);
}

/* The first holds what two wait for, and both have what the last wants. */
TEST(deadlock, a_diamond_is_none)
{
    owners o;
    open_owners(&o, 4);
    expect_waiting(&o, 1, 0);
    expect_waiting(&o, 2, 0);
    expect_waiting(&o, 3, 1);
    end_wait(&o, 3);
    expect_waiting(&o, 3, 2);
    close_owners(&o, 1, 3);
}

TEST(deadlock, who_holds_nothing_is_in_none)
{
    owners o;
    open_owners(&o, 2);
    o.owner[0].holds = 0;
    expect_waiting(&o, 0, 1);
    EXPECT(!o.a[0].wait.record);
    close_owners(&o, 0, 1);
}

TEST(deadlock, a_wait_that_is_over_is_in_none)
{
    owners o;
    open_owners(&o, 2);
    expect_waiting(&o, 0, 1);
    end_wait(&o, 0);
    expect_waiting(&o, 1, 0);
    close_owners(&o, 1, 1);
}

TEST(deadlock, a_wait_whose_time_is_up_is_in_none)
{
    owners o;
    open_owners(&o, 2);
    EXPECT_INT(wait_for(&o, 0, 1, 100), RL_SLEEP);
    EXPECT_INT(play_sleep(&o.p), RL_DONE);
    EXPECT_INT(o.a[0].status, RLOCK_TIMEOUT);
    expect_waiting(&o, 1, 0);
    close_owners(&o, 1, 1);
}

TEST(deadlock, who_does_not_wait_is_told_that_it_is_busy)
{
    owners o;
    open_owners(&o, 2);
    expect_waiting(&o, 0, 1);
    EXPECT_INT(wait_for(&o, 1, 0, 0), RL_DONE);
    EXPECT_INT(o.a[1].status, RLOCK_BUSY);
    close_owners(&o, 0, 1);
}

TEST(deadlock, is_not_looked_for_when_it_is_switched_off)
{
    owners o;
    open_owners(&o, 2);
    core(&o)->set.no_deadlock_check = true;
    expect_waiting(&o, 0, 1);
    expect_waiting(&o, 1, 0);
    close_owners(&o, 0, 2);
}

/* Another client has it by now. */
TEST(deadlock, a_hold_that_is_lost_is_in_none)
{
    owners o;
    open_owners(&o, 2);
    expect_waiting(&o, 0, 1);
    rl_mutex_lock(&core(&o)->holds.mutex);
    rl_hold_lose_locked(&core(&o)->holds, o.h[0], RL_LOSS_GONE, o.p.now_us);
    rl_mutex_unlock(&core(&o)->holds.mutex);
    expect_waiting(&o, 1, 0);
    close_owners(&o, 0, 2);
}

TEST(deadlock, a_hold_past_its_deadline_is_in_none)
{
    owners o;
    open_owners(&o, 2);
    expect_waiting(&o, 0, 1);
    play_pass(&o.p, GOOD_US(LEASE_MS));
    expect_waiting(&o, 1, 0);
    close_owners(&o, 0, 2);
}

TEST(deadlock, a_lock_of_another_layout_is_another_one)
{
    owners o;
    open_owners(&o, 2);
    o.what[0].scope = RLOCK_LAYOUT_STRING;
    o.what[0].layout = RLOCK_LAYOUT_STRING;
    expect_waiting(&o, 0, 1);
    expect_waiting(&o, 1, 0);
    close_owners(&o, 0, 2);
}

/* --- while locks change hands --------------------------------------------- */

/* As after a hand-over with tokens to spare, to the first of them. */
static void begin_turn(owners *o, rl_hold *h)
{
    rl_waiter w = {.token = 100, .kept = 63, .sent_us = o->p.now_us};
    core(o)->set.turn_us = 1000 * MS;
    rl_turn_begin(&core(o)->holds, h, &w);
    rl_mutex_lock(&core(o)->holds.mutex);
    rl_hold_start_renewal_locked(&core(o)->holds, h, o->p.now_us, o->p.now_us);
    rl_mutex_unlock(&core(o)->holds.mutex);
}

static int64_t stopped_us;

static int64_t clock_us(void)
{
    return stopped_us;
}

/* b passes "b" to c, which waited for it, and holds "c" itself. */
static void pass(owners *o)
{
    stopped_us = o->p.now_us;
    o->p.owner = o->owner[1];
    rl_hold *h = o->h[1];
    begin_turn(o, h);
    rl_mutex_lock(&core(o)->holds.mutex);
    rl_hold_set_lease_locked(&core(o)->holds, h, o->p.now_us, PLAY_LEASE_MS,
                             o->p.now_us);
    rl_mutex_unlock(&core(o)->holds.mutex);
    expect_waiting(o, 2, 1);
    EXPECT(rl_turn_pass(core(o), h, clock_us));
    o->owner[1].holds = 0;
}

TEST(deadlock, what_was_passed_on_is_its_new_owners)
{
    owners o;
    open_owners(&o, 3);
    pass(&o);
    resume(&o, 2, RL_DONE);
    EXPECT_INT(o.a[2].status, RLOCK_OK);
    expect_waiting(&o, 0, 1);
    expect_deadlock(&o, 2, 0,
                    "deadlock: thread 102 waits for 'a' of thread 100, which "
                    "waits for 'b' of thread 102");
    close_owners(&o, 0, 1);
}

/* Its new owner is about to wake, and will find the circle, should it wait. */
TEST(deadlock, what_is_being_passed_on_is_in_none)
{
    owners o;
    open_owners(&o, 3);
    pass(&o);
    expect_waiting(&o, 0, 2); /* which still seems to wait for "b" */
    resume(&o, 2, RL_DONE);
    EXPECT_INT(o.a[2].status, RLOCK_OK);
    expect_deadlock(&o, 2, 0,
                    "deadlock: thread 102 waits for 'a' of thread 100, which "
                    "waits for 'c' of thread 102");
    close_owners(&o, 0, 1);
}

/* --- of several servers --------------------------------------------------- */

/* What its home knows: a node that lost it, or has not granted it, may be. */
static void expect_red(rl_state state, rl_group_state group, int64_t until_us,
                       rl_next wanted)
{
    owners o;
    open_owners(&o, 2);
    rl_group *g = rl_group_new(&o.p.home, 2);
    rl_group_join(g, 1, 0, RL_NEVER);
    rl_group_join(g, 2, 0, until_us);
    rl_group_move(g, RL_GROUP_FORMING, group);
    rl_mutex_lock(&core(&o)->holds.mutex);
    o.h[0]->group = g;
    o.h[0]->state = (uint8_t)state;
    rl_mutex_unlock(&core(&o)->holds.mutex);
    expect_waiting(&o, 0, 1);
    EXPECT_INT(wait_for(&o, 1, 0, RLOCK_FOREVER), wanted);
    rl_mutex_lock(&core(&o)->holds.mutex);
    o.h[0]->state = RL_HELD;
    rl_mutex_unlock(&core(&o)->holds.mutex);
    close_owners(&o, 0, wanted == RL_SLEEP ? 2 : 1);
}

TEST_CASE(circle, a_red_lock_is_its_owners,
          expect_red(RL_HELD, RL_GROUP_OWNED, RL_NEVER, RL_DONE))
TEST_CASE(circle, a_red_lock_is_its_owners_though_a_node_does_not_have_it,
          expect_red(RL_VACANT, RL_GROUP_OWNED, RL_NEVER, RL_DONE))
TEST_CASE(circle, a_red_lock_that_is_lost_is_nobodys,
          expect_red(RL_HELD, RL_GROUP_LOST, RL_NEVER, RL_SLEEP))
TEST_CASE(circle, a_red_lock_that_is_lost_by_the_clock_is_nobodys,
          expect_red(RL_VACANT, RL_GROUP_OWNED, 0, RL_SLEEP))

/* So its record outlives what it held. */
TEST(circle, an_owner_that_waits_may_lose_all_that_it_holds_meanwhile)
{
    owners o;
    open_owners(&o, 2);
    expect_waiting(&o, 0, 1);
    rl_hold *h = o.h[0];
    rl_mutex_lock(&core(&o)->holds.mutex);
    rl_hold_end_locked(&core(&o)->holds, h, o.p.now_us);
    rl_hold_unref_locked(&core(&o)->holds, h);
    rl_mutex_unlock(&core(&o)->holds.mutex);
    EXPECT_INT(o.a[0].wait.record->refs, 2); /* the draft's, too */
    EXPECT_INT(o.a[0].wait.record->owner, 1);
    close_owners(&o, 0, 1);
}
