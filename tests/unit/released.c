/* What a client still holds when it is about to be closed, and gives back. */
#include "hold/step.h"

#include "hold.h"

/* What is known of a hold, and whether the server may have it. */
typedef struct found {
    rl_state state;
    rl_loss loss;
    bool in_flight, unknown;
} found;

static rl_hold *open_found(play *p, found is)
{
    play_open(p, 1);
    rl_hold *h = play_hold(p, 0, "job", RLOCK_WATCHDOG);
    if (is.state == RL_LOST) {
        lose(p, 0, h, is.loss);
    } else if (is.state != RL_HELD) {
        end(p, h);
        h = play_draft(p, 0, &play_job, RLOCK_WATCHDOG);
        rl_mutex_lock(&table(p)->mutex);
        rl_hold_list_locked(table(p), h);
        rl_mutex_unlock(&table(p)->mutex);
        h->state = (uint8_t)is.state;
    }
    take_reports(p, 0);
    h->in_flight = is.in_flight;
    h->unknown = is.unknown;
    return h;
}

static void expect_given_back(play *p, rl_hold *h, bool undone)
{
    EXPECT_INT(table(p)->map.count, 0);
    EXPECT_INT(table(p)->undoing, undone);
    EXPECT_INT(h->state, undone ? RL_UNDOING : RL_OVER);
    if (undone)
        EXPECT_INT(due_us(table(p), h), p->now_us);
    EXPECT_INT(take_reports(p, 0) & ABANDONED, 0);
    EXPECT_INT(h->refs, undone ? 2 : 1);
    rl_holds_put(table(p), h);
    EXPECT_INT(table(p)->records.count, undone);
    play_close(p);
}

/* Its owner ends, having seen the client being closed; or the client does. */
static void expect_release(found is, bool undone)
{
    for (int by_owner = 0; by_owner < 2; by_owner++) {
        play p;
        rl_hold *h = open_found(&p, is);
        rl_hold_ref(table(&p), h);
        rl_holds_release(table(&p));
        if (by_owner)
            rl_holds_abandon(table(&p), p.owner.serial, p.now_us);
        else
            rl_holds_close(table(&p), &p.home, p.now_us);
        expect_given_back(&p, h, undone);
    }
}

#define RELEASE(name, state, loss, in_flight, unknown, undone)                 \
    TEST_CASE(                                                                 \
        released, name,                                                        \
        expect_release((found){state, loss, in_flight, unknown}, undone))

RELEASE(what_is_held_is_given_back, RL_HELD, 0, false, false, true)
RELEASE(what_ran_out_here_may_be_there, RL_LOST, RL_LOSS_EXPIRED, false, false,
        true)
RELEASE(what_was_held_too_long_may_be_there, RL_LOST, RL_LOSS_TOO_LONG, false,
        false, true)
RELEASE(what_the_server_does_not_know_is_not_asked_for, RL_LOST, RL_LOSS_GONE,
        false, false, false)
RELEASE(what_is_no_lock_is_left_alone, RL_LOST, RL_LOSS_FOREIGN, false, false,
        false)
RELEASE(what_is_in_doubt_may_be_there, RL_LOST, RL_LOSS_GONE, false, true, true)
RELEASE(what_was_refused_is_not_there, RL_VACANT, RL_LOSS_NONE, false, false,
        false)
RELEASE(what_is_being_asked_for_may_be_there, RL_VACANT, RL_LOSS_NONE, true,
        false, true)
RELEASE(what_was_not_answered_may_be_there, RL_DRAFT, RL_LOSS_NONE, false,
        false, true)

/* The control: without it an owner's hold runs out by itself, and is told. */
TEST(released, what_is_left_behind_runs_out_and_is_told)
{
    play p;
    rl_hold *h = open_found(&p, (found){.state = RL_HELD});
    rl_hold_ref(table(&p), h);
    rl_holds_abandon(table(&p), p.owner.serial, p.now_us);
    EXPECT_INT(table(&p)->undoing, 0);
    EXPECT_INT(h->state, RL_OVER);
    EXPECT_INT(take_reports(&p, 0), ABANDONED);
    rl_holds_put(table(&p), h);
    play_close(&p);
}

TEST(released, what_a_client_leaves_by_itself_stays_in_its_table)
{
    play p;
    rl_hold *h = open_found(&p, (found){.state = RL_HELD});
    rl_holds_close(table(&p), &p.home, p.now_us);
    EXPECT(h->state == RL_HELD && find(&p, 1) == h);
    EXPECT_INT(table(&p)->undoing, 0);
    play_close(&p);
}

/* So many were given up, and the latest reason. */
TEST(released, what_could_not_be_given_back_is_counted_with_its_reason)
{
    play p;
    rl_fault why;
    open_found(&p, (found){.state = RL_HELD});
    play_hold(&p, 0, "other", LEASE_MS);
    rl_fault_set(&table(&p)->failure, RLOCK_EIO, 0, "no way");
    table(&p)->left = 5;
    rl_holds_release(table(&p));
    rl_holds_close(table(&p), &p.home, p.now_us);
    EXPECT_INT(rl_holds_left(table(&p), &why), 7);
    EXPECT_STR(why.text, "no way");
    play_close(&p);
}
