/*
 * Turns: threads of one client pass a lock on for some milliseconds without
 * asking the server. What that promises, and what it does not.
 */
#include <stdatomic.h>

#include "busy.h"
#include "other_client.h"
#include "turns.h"

static scene scene_with_turns(int64_t turn_ms)
{
    scene s = scene_server(NULL);
    s.opts.turn_ms = turn_ms;
    scene_client(&s, 0, 0);
    return s;
}

/* --- many threads --------------------------------------------------------- */

typedef struct table {
    atomic_int inside, doubled, fallen;
    uint64_t token; /* guarded by the lock */
} table;

static table seen;

static void look(busy *b)
{
    uint64_t token = rlock_token(b->lk);
    if (atomic_fetch_add(&seen.inside, 1) != 0)
        seen.doubled++;
    if (token <= seen.token)
        seen.fallen++;
    seen.token = token;
    atomic_fetch_sub(&seen.inside, 1);
}

enum { SECTIONS = SANITIZED ? 400 : 4000 };

TEST(turns, many_sections_cost_one_call_and_each_has_its_own_token)
{
    scene s = scene_with_turns(5);
    busy b = {.lk = s.lk, .inside = look};
    long long before = script_calls(s.sv);
    busy_start(&b, SECTIONS);
    busy_stop(&b);
    int sections = atomic_load(&b.sections);
    EXPECT(script_calls(s.sv) - before < sections / 2);
    EXPECT(stats_of(s.cl).passes > (uint64_t)sections / 2);
    EXPECT_INT(seen.doubled, 0);
    EXPECT_INT(seen.fallen, 0);
    rlock_stats st = stats_of(s.cl);
    EXPECT_INT(st.acquires, sections);
    EXPECT_INT(st.releases, sections);
    EXPECT_INT(st.held_now, 0);
    EXPECT_INT(st.lost, 0);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(turns, another_client_gets_the_lock_in_between)
{
    scene s = scene_with_turns(5);
    other_client r = other_client_join(&s, NULL);
    busy b = {.lk = s.lk, .inside = look};
    busy_start(&b, 50);
    for (int i = 0; i < 5; i++) {
        EXPECT_STATUS(rlock_acquire(r.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT(rlock_token(r.lk) > seen.token);
        EXPECT_INT(atomic_load(&seen.inside), 0);
        EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    }
    busy_stop(&b);
    EXPECT_INT(seen.fallen, 0);
    other_client_leave(&r);
    scene_stop(&s);
}

TEST(turns, without_the_right_to_reserve_tokens_each_section_asks)
{
    scene s = scene_with_turns(TURN_MS);
    EXPECT_STR(server_str(s.sv, "ACL SETUSER default -incrby"), "OK");
    busy b = {.lk = s.lk, .inside = look};
    long long before = script_calls(s.sv);
    busy_start(&b, 200);
    busy_stop(&b);
    EXPECT(script_calls(s.sv) - before >= atomic_load(&b.sections));
    EXPECT_INT(stats_of(s.cl).passes, 0);
    EXPECT_INT(seen.fallen + seen.doubled, 0);
    scene_stop(&s);
}

/* --- one pass ------------------------------------------------------------- */

TEST(turns, the_server_names_the_thread_that_began_the_turn)
{
    turns t = turns_passed(0, NULL);
    rlock_holder who;
    turns_go_on(&t);
    EXPECT_STATUS(rlock_holder_info(t.s.lk, &who, sizeof who), RLOCK_OK);
    EXPECT_STR(who.raw, t.holder);
    turns_end(&t);
}

TEST(turns, what_was_passed_on_is_renewed)
{
    turns t = turns_passed(BRISK_MS, NULL);
    watch_renewals(t.s.cl, 4);
    EXPECT_INT(levels(t.s.sv, SCENE_LOCK), 1);
    EXPECT_INT(stats_of(t.s.cl).lost, 0);
    turns_end(&t);
}

TEST(turns, tokens_grow_from_thread_to_thread)
{
    turns t = turns_passed(0, NULL);
    uint64_t second = turns_token(&t);
    turns_go_on(&t);
    EXPECT(turns_token(&t) > second);
    turns_end(&t);
}

TEST(turns, after_the_last_one_nothing_is_left)
{
    turns t = turns_passed(0, NULL);
    while (t.owner < PASSERS - 1)
        turns_go_on(&t);
    EXPECT_STATUS(waiter_end(t.w[t.owner]), RLOCK_OK);
    t.owner = PASSERS;
    expect_nothing_left(t.s.sv);
    turns_end(&t);
}

/* --- the option ----------------------------------------------------------- */

static void expect_refused(int64_t turn_ms)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    opts.turn_ms = turn_ms;
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "turn_ms");
}

TEST_CASE(turns, a_turn_that_is_too_long_is_refused, expect_refused(1001))
TEST_CASE(turns, a_turn_below_zero_is_refused, expect_refused(-1))
