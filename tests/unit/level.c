/* Levels that are counted here, without the server. */
#include "hold/level.h"

#include <limits.h>

#include "hold.h"
#include "hold/step.h"

/* --- up ------------------------------------------------------------------- */

/* A level more of a hold with this lease, which was granted so long ago, is
   counted: yes or no; and nothing else changes. */
static void expect_up(int64_t has_ms, int64_t ago_us, int count,
                      int64_t wants_ms, bool counts)
{
    play p;
    rl_hold *h = open_with_hold(&p, has_ms);
    h->count = count;
    int64_t deadline_us = h->expiry.due_us;
    play_pass(&p, ago_us);
    EXPECT_INT(rl_hold_count_up(table(&p), h, wants_ms, p.now_us), counts);
    EXPECT_INT(h->count, count + counts);
    EXPECT(h->state == RL_HELD && h->expiry.due_us == deadline_us);
    play_close(&p);
}

#define UP(name, ...) TEST_CASE(level, name, expect_up(__VA_ARGS__))

UP(one_more_has_the_same_lease_already, LEASE_MS, 0, 1, LEASE_MS, true)
UP(one_more_may_want_a_shorter_lease, LEASE_MS, 1000 * MS, 1, LEASE_MS - 1500,
   true)
UP(one_more_with_a_longer_lease_is_the_servers, LEASE_MS, 0, 1, LEASE_MS + 1,
   false)
UP(one_more_a_moment_later_is_the_servers, LEASE_MS, 1, 1, LEASE_MS, false)
UP(one_more_is_renewed_as_the_others, RLOCK_WATCHDOG, 1000 * MS, 7,
   RLOCK_WATCHDOG, true)
UP(one_more_that_is_to_be_renewed_is_the_servers, LEASE_MS, 0, 1,
   RLOCK_WATCHDOG, false)
UP(one_more_has_its_lease_of_one_that_is_renewed, RLOCK_WATCHDOG, 0, 1,
   LEASE_MS, true)
UP(one_more_with_more_than_the_renewals_is_the_servers, RLOCK_WATCHDOG, 0, 1,
   PLAY_LEASE_MS + 1, false)
UP(the_last_one_is_counted, LEASE_MS, 0, INT_MAX - 1, LEASE_MS, true)
UP(none_is_counted_beyond_the_last, LEASE_MS, 0, INT_MAX, LEASE_MS, false)

TEST(level, none_is_counted_once_the_lease_has_run_out)
{
    play p;
    rl_hold *h = open_with_hold(&p, RLOCK_WATCHDOG);
    p.now_us = h->expiry.due_us;
    EXPECT(!rl_hold_count_up(table(&p), h, RLOCK_WATCHDOG, p.now_us));
    EXPECT(h->count == 1 && h->state == RL_LOST);
    play_close(&p);
}

/* --- down ----------------------------------------------------------------- */

TEST(level, one_of_several_ends_without_the_hold)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    h->count = 3;
    EXPECT_INT(rl_hold_count_down(table(&p), h, 2, p.now_us), RL_COUNTED);
    EXPECT(h->count == 2 && h->state == RL_HELD && find(&p, 1) == h);
    play_close(&p);
}

TEST(level, with_the_last_the_hold_is_over_and_its_callers)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    EXPECT_INT(rl_hold_count_down(table(&p), h, 0, p.now_us), RL_COUNTED);
    EXPECT(h->count == 0 && h->state == RL_OVER && !find(&p, 1));
    rl_holds_put(table(&p), h);
    EXPECT_INT(table(&p)->records.count, 0);
    play_close(&p);
}

TEST(level, of_a_hold_that_has_run_out_is_told_to_be_lost)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    h->count = 2;
    p.now_us = h->expiry.due_us;
    EXPECT_INT(rl_hold_count_down(table(&p), h, 1, p.now_us), RL_COUNTED_LOST);
    EXPECT(h->count == 1 && h->state == RL_LOST && find(&p, 1) == h);
    EXPECT_INT(rl_hold_count_down(table(&p), h, 0, p.now_us), RL_COUNTED_LOST);
    EXPECT(h->state == RL_OVER && !find(&p, 1));
    rl_holds_put(table(&p), h);
    play_close(&p);
}

TEST(level, of_a_hold_that_somebody_else_has_ended_is_none)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    h->refs++;
    end(&p, h);
    EXPECT_INT(rl_hold_count_down(table(&p), h, 0, p.now_us), RL_COUNTED_OVER);
    EXPECT_INT(h->count, 1);
    rl_holds_put(table(&p), h);
    play_close(&p);
}

/* --- down, on a node of a Red lock ---------------------------------------- */

/* What is found of the hold there, besides the group's. */
typedef struct found {
    rl_state state;
    rl_loss loss;
    bool in_flight, unknown;
} found;

/* What becomes of it: OVER, by a release; or UNDOING; or nothing is left. */
enum { GOES_ON, RELEASED, UNDONE, UNDONE_AS_UNKNOWN, NOTHING_LEFT };

static rl_hold *open_node(play *p, found is)
{
    play_open(p, 1);
    rl_group *g = rl_group_new(&p->home, 1);
    EXPECT(g);
    rl_hold *h;
    if (is.state == RL_HELD) {
        h = play_member(p, 0, &play_red, g, RLOCK_WATCHDOG);
    } else {
        h = play_draft(p, 0, &play_red, RLOCK_WATCHDOG);
        rl_hold_join(h, g);
        rl_hold_list_absent(table(p), h, false, p->now_us);
        h->state = (uint8_t)is.state;
    }
    rl_group_unref(g);
    h->loss = (uint8_t)is.loss;
    h->in_flight = is.in_flight;
    h->unknown = is.unknown;
    h->count = 2;
    h->refs++;
    if (is.state == RL_VACANT) {
        rl_mutex_lock(&table(p)->mutex);
        rl_hold_vacate_locked(table(p), h, p->now_us);
        rl_mutex_unlock(&table(p)->mutex);
    }
    return h;
}

static void expect_became(play *p, const rl_hold *h, int what)
{
    bool undoing = what == UNDONE || what == UNDONE_AS_UNKNOWN;
    EXPECT_INT(table(p)->undoing, undoing);
    EXPECT_INT(h->refs, what == NOTHING_LEFT ? 1 : 2);
    EXPECT_INT(h->unknown, what == UNDONE_AS_UNKNOWN);
    EXPECT_INT(table(p)->map.count, what == GOES_ON);
    if (what != GOES_ON)
        EXPECT_INT(h->state, undoing ? RL_UNDOING : RL_OVER);
    int64_t again_us =
        h->state == RL_VACANT ? p->now_us + PLAY_LEASE_MS * MS / 3 * 7 / 8 : 0;
    if (h->state != RL_HELD)
        EXPECT_INT(due_us(table(p), h), undoing ? p->now_us : again_us);
}

static void expect_down(found is, int level, bool to_release, int what)
{
    play p;
    rl_hold *h = open_node(&p, is);
    EXPECT_INT(rl_hold_count_down_node(table(&p), h, level, p.now_us),
               to_release);
    EXPECT_INT(h->count, level);
    expect_became(&p, h, what);
    if (what == GOES_ON)
        EXPECT_INT(h->state, is.state);
    rl_holds_put(table(&p), h);
    if (what == RELEASED)
        rl_holds_put(table(&p), h);
    play_close(&p);
}

#define NODE(name, state, loss, in_flight, unknown, ...)                       \
    TEST_CASE(                                                                 \
        level, node_##name,                                                    \
        expect_down((found){state, loss, in_flight, unknown}, __VA_ARGS__))

NODE(has_one_of_several_less, RL_HELD, 0, false, false, 1, true, GOES_ON)
NODE(is_released_with_the_last, RL_HELD, 0, false, false, 0, true, RELEASED)
NODE(is_released_also_while_it_is_renewed, RL_HELD, 0, true, false, 0, true,
     RELEASED)
NODE(without_the_hold_has_one_less, RL_VACANT, RL_LOSS_GONE, false, false, 1,
     false, GOES_ON)
NODE(that_does_not_know_it_is_left, RL_VACANT, RL_LOSS_GONE, false, false, 0,
     false, NOTHING_LEFT)
NODE(that_never_had_it_is_left, RL_VACANT, RL_LOSS_NONE, false, false, 0, false,
     NOTHING_LEFT)
NODE(that_is_being_asked_may_grant_it_yet, RL_VACANT, RL_LOSS_GONE, true, false,
     0, false, UNDONE_AS_UNKNOWN)
NODE(that_was_not_heard_may_have_it, RL_VACANT, RL_LOSS_GONE, false, true, 0,
     false, UNDONE_AS_UNKNOWN)
NODE(that_has_not_answered_yet_may_grant_it, RL_DRAFT, RL_LOSS_NONE, false,
     false, 0, false, UNDONE_AS_UNKNOWN)
NODE(may_have_what_ran_out_here, RL_VACANT, RL_LOSS_EXPIRED, false, false, 0,
     false, UNDONE)
NODE(may_have_what_was_held_too_long, RL_LOST, RL_LOSS_TOO_LONG, false, false,
     0, false, UNDONE)
NODE(may_have_what_was_lost_for_others, RL_LOST, RL_LOSS_GROUP, false, false, 0,
     false, UNDONE)
NODE(does_not_have_what_was_lost_there, RL_LOST, RL_LOSS_GONE, false, false, 0,
     false, NOTHING_LEFT)

TEST(level, node_whose_hold_has_ended_counts_nothing)
{
    play p;
    rl_hold *h = open_node(&p, (found){.state = RL_HELD});
    end(&p, h);
    EXPECT(!rl_hold_count_down_node(table(&p), h, 0, p.now_us));
    EXPECT_INT(h->count, 2);
    rl_holds_put(table(&p), h);
    play_close(&p);
}
