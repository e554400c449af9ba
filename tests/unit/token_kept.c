/*
 * The key of a lock's token: renewals keep it as long as the lock is held. The
 * keeper's line leads nowhere; the test says what comes over it.
 */
#include "renewals.h"

#define S (1000 * MS)

/* How many tokens' keys the renewals name that are asked now. */
static size_t named(round *r)
{
    const char *bytes;
    rl_batches_push_due(&r->e.node, r->p.now_us);
    size_t n = rl_line_bytes(line(r), &bytes);
    EXPECT(n > 0 && line(r)->pending == 1);
    size_t tokens = times(bytes, n, "rlock_token:");
    rl_line_sent(line(r), n);
    return tokens;
}

static void say_yes(round *r)
{
    answer(r, r->n == 1 ? YES : "$2\r\n11\r\n");
}

/* They are renewed every so often, and in none of these calls it is named. */
static void renew_every(round *r, int64_t each, int64_t seconds)
{
    for (int64_t s = 0; s < seconds; s += each) {
        play_pass(&r->p, each * S);
        EXPECT_INT(named(r), 0);
        say_yes(r);
    }
}

static void renew_for(round *r, int64_t seconds)
{
    renew_every(r, 10, seconds);
}

static size_t named_next(round *r)
{
    play_pass(&r->p, 10 * S);
    return named(r);
}

static void keep_it(size_t holds)
{
    round r;
    open_round(&r, holds);
    for (int i = 0; i < 3; i++) {
        renew_for(&r, 140);
        EXPECT_INT(named_next(&r), holds);
        say_yes(&r);
    }
    close_round(&r);
}

/* Of its five minutes. */
TEST_CASE(token_kept, a_renewal_names_it_when_half_of_its_life_is_over,
          keep_it(1))
TEST_CASE(token_kept, a_renewal_of_many_names_it_for_each, keep_it(2))

/* Who has been granted a lock has minted a token. */
TEST(token_kept, of_many_only_those_are_named_whose_time_has_come)
{
    round r;
    open_round(&r, 1);
    renew_for(&r, 100);
    add_hold(&r, RLOCK_LAYOUT_HASH);
    renew_for(&r, 40);
    EXPECT_INT(named_next(&r), 1);
    say_yes(&r);
    renew_for(&r, 90);
    EXPECT_INT(named_next(&r), 1);
    close_round(&r);
}

TEST(token_kept, what_was_not_answered_is_named_again)
{
    round r;
    open_round(&r, 1);
    renew_for(&r, 140);
    EXPECT_INT(named_next(&r), 1);
    cut(&r);
    engine_reconnect(&r.e);
    EXPECT_INT(named_next(&r), 1);
    say_yes(&r);
    EXPECT_INT(named_next(&r), 0);
    close_round(&r);
}

/* A long lease has a token that lives for longer. */
TEST(token_kept, it_lives_for_twice_the_lease)
{
    round r;
    open_round(&r, 1);
    table(&r)->renewal_ms = 210 * 1000;
    renew_for(&r, 10);
    renew_every(&r, 70, 140);
    play_pass(&r.p, 70 * S);
    EXPECT_INT(named(&r), 1);
    close_round(&r);
}

/* The lock is renewed all the same, at once, and the hold is no worse. */
static void refuse_with(const char *error)
{
    round r;
    open_round(&r, 1);
    renew_for(&r, 140);
    EXPECT_INT(named_next(&r), 1);
    uint64_t before = renewed(&r);
    answer(&r, error);
    EXPECT_INT(named(&r), 0);
    say_yes(&r);
    EXPECT_INT(renewed(&r), before + 1);
    EXPECT_INT(failed(&r), 0);
    EXPECT_INT(named_next(&r), 1);
    close_round(&r);
}

TEST_CASE(token_kept, while_its_slot_moves_the_lock_is_renewed_without_it,
          refuse_with("-TRYAGAIN Multiple keys request during rehashing\r\n"))
TEST_CASE(token_kept, without_the_right_for_it_the_lock_is_renewed_without_it,
          refuse_with("-NOPERM No permissions to access a key\r\n"))

/* The owner may have it, or not: a look prolongs nothing. */
TEST(token_kept, a_look_names_no_token)
{
    round r;
    open_round(&r, 1);
    renew_for(&r, 140);
    rl_mutex_lock(&table(&r)->mutex);
    rl_hold_stop_renewal_locked(table(&r), r.h[0]);
    rl_hold_schedule_locked(table(&r), r.h[0], r.p.now_us + 10 * S);
    rl_mutex_unlock(&table(&r)->mutex);
    EXPECT_INT(named_next(&r), 0);
    close_round(&r);
}
