/* A lock without tokens: it is granted without doubt, or not at all. */
#include "hold/due.h"
#include "op/call.h"
#include "wait.h"

#define NO_TOKEN "$1\r\n1\r\n" /* granted */

static void open_tokenless(wait_for *w, int64_t wait_ms)
{
    open_wait(w, wait_ms);
    w->a.what = &play_tokenless;
}

static rl_hold *first_held(wait_for *w)
{
    rl_holds *t = &core(w)->holds;
    bool valid;
    rl_hold *h =
        rl_holds_pick(t, &play_job, &w->p.owner, w->p.now_us, &valid, NULL);
    EXPECT(h && valid);
    rl_holds_put(t, h);
    return h;
}

TEST(tokenless, what_is_granted_has_no_token)
{
    wait_for w;
    open_tokenless(&w, 0);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_STR(play_called(&w.p, 0), "tokenless/acquire");
    EXPECT_INT(play_args(&w.p, 0), BRIEF);
    EXPECT_STR(play_word(&w.p, 0, 2), "2");
    EXPECT_STR(play_key(&w.p, 0, 1), "job");
    EXPECT_CONTAINS(play_key(&w.p, 0, 2), "rlock_undone:{job}:");
    EXPECT_INT(answer(&w, NO_TOKEN), RL_DONE);
    EXPECT_INT(w.a.token, 0);
    EXPECT_INT(first_held(&w)->token, 0);
    close_wait(&w, RLOCK_OK);
}

/* Whoever acquired it, by whichever handle it is looked for. */
TEST(tokenless, its_key_is_never_kept)
{
    wait_for w;
    open_tokenless(&w, 0);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, NO_TOKEN), RL_DONE);
    rl_holds *t = &core(&w)->holds;
    rl_hold *h = first_held(&w);
    rl_mutex_lock(&t->mutex);
    EXPECT(
        !rl_hold_has_to_keep_token_locked(t, h, w.p.now_us + 3600 * 1000 * MS));
    rl_mutex_unlock(&t->mutex);
    close_wait(&w, RLOCK_OK);
}

TEST(tokenless, who_does_not_wait_is_not_asked_for_again_when_no_answer_comes)
{
    wait_for w;
    open_tokenless(&w, 0);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(play_cut(&w.p, 0), RL_DONE);
    EXPECT_INT(calls(&w), 1);
    EXPECT_INT(core(&w)->holds.undoing, 1);
    close_wait(&w, RLOCK_EIO);
}

/* A late copy would find the tombstone of the first. */
TEST(tokenless, who_waits_asks_as_another_hold_when_no_answer_has_come)
{
    wait_for w;
    open_tokenless(&w, 5000);
    EXPECT_INT(begin(&w), RL_ASK);
    play_id first = play_holder(w.a.draft);
    EXPECT_INT(play_cut(&w.p, 0), RL_SLEEP);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(core(&w)->holds.undoing, 1);
    EXPECT(strcmp(play_arg(&w.p, 0, HOLDER_ARG), first.text) != 0);
    EXPECT_INT(answer(&w, NO_TOKEN), RL_DONE);
    EXPECT(!first_held(&w)->unknown);
    close_wait(&w, RLOCK_OK);
}

TEST(tokenless, what_certainly_was_not_executed_is_asked_for_by_the_same_id)
{
    wait_for w;
    open_tokenless(&w, 5000);
    EXPECT_INT(begin(&w), RL_ASK);
    play_id first = play_holder(w.a.draft);
    EXPECT_INT(answer(&w, NOSCRIPT), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, HOLDER_ARG), first.text);
    EXPECT_INT(answer(&w, NO_TOKEN), RL_DONE);
    EXPECT_INT(core(&w)->holds.undoing, 0);
    close_wait(&w, RLOCK_OK);
}

TEST(tokenless, who_waits_wants_to_be_rung_though_others_want_grants)
{
    wait_for w;
    open_tokenless(&w, 60000);
    core(&w)->set.grants = true;
    hear_bell(&w);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(play_args(&w.p, 0), TICKET_ARG);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    EXPECT(!w.a.draft->stood);
    EXPECT_STR(play_key(&w.p, 0, 3), "rlock_queue:{job}");
    play_pass(&w.p, 2000 * MS);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_STR(play_word(&w.p, 0, 2), "4");
    EXPECT_STR(play_key(&w.p, 0, 4), "rlock_undone:{job}:who");
    EXPECT_INT(answer(&w, NO_TOKEN), RL_DONE);
    close_wait(&w, RLOCK_OK);
}
