/*
 * The keeper's batches: what a hold is asked, and that it is asked once. The
 * keeper's line leads nowhere; the test says what comes over it.
 */
#include "engine.h"
#include "lock/red.h"
#include "run/batch.h"

/* A client's engine without threads, and its hold, on one node of three. */
typedef struct shift {
    play p; /* who owns it; it is home to the group */
    rl_engine e;
    rl_group *g;
    rl_hold *h;
    rl_nodes nodes;
} shift;

static rl_line *line(shift *s)
{
    return engine_line(&s->e);
}

/* The lock is held on the other nodes, with renewal. */
static void add_group(shift *s)
{
    s->g = rl_group_new(&s->p.home, 2);
    EXPECT(s->g);
    s->g->token = 100;
    rl_group_join(s->g, 1, 0, RL_NEVER);
    rl_group_join(s->g, 2, 0, RL_NEVER);
    rl_group_set_count(s->g, 1);
    rl_group_set_renewed(s->g, true);
    EXPECT(rl_group_move(s->g, RL_GROUP_FORMING, RL_GROUP_OWNED));
}

static void add_hold(shift *s)
{
    rl_uuid id;
    rl_core *c = &s->e.core;
    EXPECT(rl_uuid_new(&id));
    rl_owner_record *room = rl_holds_make_room(&c->holds, &s->p.owner);
    s->h = rl_draft(c, room, &play_red, &id, RLOCK_WATCHDOG);
    EXPECT(s->h);
    s->h->group = s->g;
    rl_group_ref(s->g);
    s->nodes = (rl_nodes){.n = 1, .core = {c}, .hold = {s->h}, .group = s->g};
}

static void open_shift(shift *s)
{
    memset(s, 0, sizeof *s);
    engine_open(&s->e, &s->p);
    add_group(s);
    add_hold(s);
}

/* This node does not have it, and is to be asked at once. */
static void open_vacant(shift *s)
{
    open_shift(s);
    rl_holds *t = &s->e.core.holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_list_locked(t, s->h);
    rl_hold_vacate_locked(t, s->h, s->p.now_us);
    rl_hold_schedule_locked(t, s->h, s->p.now_us);
    rl_mutex_unlock(&t->mutex);
}

/* This node has it, and renewal is due at once. */
static void open_held(shift *s)
{
    open_shift(s);
    rl_holds *t = &s->e.core.holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_grant_locked(t, s->h, 100, s->p.now_us, true, s->p.now_us);
    rl_hold_schedule_locked(t, s->h, s->p.now_us);
    rl_mutex_unlock(&t->mutex);
}

static void cut(shift *s)
{
    engine_cut(&s->e, s->p.now_us);
}

static void close_shift(shift *s)
{
    engine_close(&s->e, s->p.now_us);
    rl_group_unref(s->g);
    play_close_core(&s->e.core);
    play_close(&s->p);
}

/* What the keeper asks now; how many calls have no answer then. */
static size_t ask(shift *s)
{
    const char *bytes;
    rl_batches_push_due(&s->e.node, s->p.now_us);
    rl_line_sent(line(s), rl_line_bytes(line(s), &bytes));
    return line(s)->pending;
}

/* Is it a call of this script that the keeper asks now, and nothing else? */
static bool asks_only(shift *s, rl_script_id script)
{
    const char *bytes;
    rl_batches_push_due(&s->e.node, s->p.now_us);
    size_t n = rl_line_bytes(line(s), &bytes);
    const char *sha1 = rl_scripts[script].sha1;
    bool found = n > 0 && memmem(bytes, n, sha1, strlen(sha1));
    rl_line_sent(line(s), n);
    return found && line(s)->pending == 1;
}

static void answer(shift *s, const char *reply)
{
    EXPECT(rl_line_feed(line(s), reply, strlen(reply), s->p.now_us));
}

static void restart(shift *s)
{
    rl_item told[2] = {
        {.type = REDIS_REPLY_STRING, .str = "a new run", .len = 9},
        {.type = REDIS_REPLY_INTEGER, .integer = 1}};
    EXPECT(rl_server_run_note(&s->e.core.server_run, told, s->p.now_us));
}

/* --- votes ---------------------------------------------------------------- */

/*
 * The second would be executed even after a release that follows the first, and
 * its grant would stay behind.
 */
TEST(batches, a_vote_under_way_is_not_asked_again_when_the_policy_changes)
{
    shift s;
    open_vacant(&s);
    EXPECT(asks_only(&s, rl_hold_layout(s.h)->acquire));
    rl_nodes_set_policy(&s.nodes, false, s.p.now_us);
    rl_nodes_set_policy(&s.nodes, true, s.p.now_us);
    EXPECT_INT(ask(&s), 1);
    answer(&s, VOTED(100, 900));
    EXPECT_INT(s.h->state, RL_HELD);
    EXPECT_INT(ask(&s), 0);
    close_shift(&s);
}

TEST(batches, a_vacant_hold_is_asked_for_at_once_when_the_policy_changes)
{
    shift s;
    open_vacant(&s);
    EXPECT_INT(ask(&s), 1);
    answer(&s, IS_BUSY);
    EXPECT_INT(ask(&s), 0); /* not before the next period */
    rl_nodes_set_policy(&s.nodes, true, s.p.now_us);
    EXPECT_INT(ask(&s), 1);
    close_shift(&s);
}

/* Whatever it granted is forgotten, but the vote may be executed yet. */
TEST(batches, a_node_that_restarts_before_it_answers_is_asked_once_it_may_vote)
{
    shift s;
    open_vacant(&s);
    s.g->longest_us = LEASE_MS * MS;
    EXPECT_INT(ask(&s), 1);
    cut(&s);
    EXPECT(s.h->state == RL_VACANT && s.h->unknown);
    engine_reconnect(&s.e);
    restart(&s);
    rl_nodes_set_policy(&s.nodes, true, s.p.now_us);
    EXPECT_INT(ask(&s), 0);
    EXPECT_INT(s.h->work.due_us,
               s.p.now_us +
                   rl_hold_renewal_period_us(&s.e.core.holds, s.h, s.p.now_us));
    play_pass(&s.p, LEASE_MS * MS);
    rl_nodes_set_policy(&s.nodes, true, s.p.now_us);
    EXPECT(asks_only(&s, rl_hold_layout(s.h)->acquire));
    close_shift(&s);
}

/* A vote that replicas have to have: so many have it. */
static void expect_confirmed(const char *have, rl_state state, bool unknown)
{
    shift s;
    open_vacant(&s);
    s.e.core.set.replica_wait_ms = 1000;
    s.h->replicas = 1;
    EXPECT_INT(ask(&s), 1);
    answer(&s, VOTED(100, 900));
    EXPECT_INT(s.h->state, RL_VACANT);
    EXPECT_INT(ask(&s), 1); /* a touch with WAIT */
    answer(&s, YES);
    answer(&s, have);
    EXPECT_INT(s.h->state, state);
    EXPECT(s.h->unknown == unknown);
    EXPECT(rl_group_lose_one(s.g, 1, RL_NEVER, 0) == (state != RL_HELD));
    close_shift(&s);
}

TEST_CASE(batches, a_vote_joins_when_its_replicas_have_it,
          expect_confirmed(":1\r\n", RL_HELD, false))
TEST_CASE(batches, a_vote_that_its_replicas_lack_may_have_been_granted,
          expect_confirmed(":0\r\n", RL_VACANT, true))

TEST(batches, a_vote_that_is_granted_after_the_client_was_closed_joins_nothing)
{
    shift s;
    rl_home other = {0};
    open_vacant(&s);
    EXPECT_INT(ask(&s), 1);
    rl_holds_close(&s.e.core.holds, &other, s.p.now_us);
    answer(&s, VOTED(100, 900));
    EXPECT_INT(s.h->state, RL_VACANT);
    EXPECT(rl_group_lose_one(s.g, 1, RL_NEVER, 0));
    close_shift(&s);
}

/*
 * The second node's lease ran out while this one was away, and its notifier is
 * late: until it looks, the group seems to have two again.
 */
static void expect_no_return(bool granted)
{
    shift s;
    open_vacant(&s);
    rl_group_set_until(s.g, 1, s.p.now_us + 100 * MS);
    EXPECT_INT(ask(&s), 1);
    play_pass(&s.p, 100 * MS);
    answer(&s, granted ? VOTED(100, 900) : IS_BUSY);
    EXPECT(s.h->state == RL_VACANT && s.h->unknown == granted);
    EXPECT(!rl_group_is_owned(s.g));
    EXPECT(s.h->reports & 1u << RLOCK_EVENT_LOST);
    close_shift(&s);
}

TEST_CASE(batches, a_vote_joins_nothing_that_was_lost_by_the_clock,
          expect_no_return(true))
TEST_CASE(batches, a_vote_that_is_refused_notices_a_loss_by_the_clock,
          expect_no_return(false))

TEST(batches, a_vote_is_not_asked_for_once_the_lock_is_lost_by_the_clock)
{
    shift s;
    open_vacant(&s);
    rl_group_set_until(s.g, 1, s.p.now_us);
    EXPECT_INT(ask(&s), 0);
    EXPECT(!rl_group_is_owned(s.g));
    EXPECT(s.h->reports & 1u << RLOCK_EVENT_LOST);
    close_shift(&s);
}

/* It has the same holder id as before, so the extend is about it, too. */
TEST(batches,
     a_vote_is_believed_no_longer_than_an_extend_that_may_arrive_allows)
{
    shift s;
    open_vacant(&s);
    rl_hold_make_extra(s.h)->cap_ms = 2000;
    EXPECT_INT(ask(&s), 1);
    int64_t asked_us = s.p.now_us;
    play_pass(&s.p, 100 * MS);
    answer(&s, VOTED(100, 900));
    EXPECT_INT(s.h->expiry.due_us, asked_us + GOOD_US(2000));
    close_shift(&s);
}

TEST(batches, a_vote_that_such_an_extend_may_have_ended_by_now_joins_nothing)
{
    shift s;
    open_vacant(&s);
    rl_hold_make_extra(s.h)->cap_ms = 2000;
    EXPECT_INT(ask(&s), 1);
    play_pass(&s.p, 2000 * MS);
    answer(&s, VOTED(100, 900));
    EXPECT(s.h->state == RL_VACANT && s.h->unknown);
    close_shift(&s);
}

TEST(batches, a_vote_under_way_when_its_owner_ends_is_undone)
{
    shift s;
    open_vacant(&s);
    EXPECT_INT(ask(&s), 1);
    rl_holds_abandon(&s.e.core.holds, s.p.owner.serial, s.p.now_us);
    EXPECT_INT(s.h->state, RL_UNDOING);
    answer(&s, VOTED(100, 900));
    EXPECT_INT(s.h->state, RL_UNDOING);
    s.p.now_us = s.h->gone_us;
    EXPECT(asks_only(&s, rl_hold_layout(s.h)->release));
    answer(&s, YES);
    EXPECT_INT(s.e.core.holds.undoing, 0);
    close_shift(&s);
}

/* Its last unlock, when no lease of it can be running any more. */
static void run_out(shift *s)
{
    rl_holds *t = &s->e.core.holds;
    rl_mutex_lock(&t->mutex);
    s->p.now_us = s->h->gone_us;
    rl_hold_lose_locked(t, s->h, RL_LOSS_EXPIRED, s->p.now_us);
    rl_hold_end_locked(t, s->h, s->p.now_us);
    rl_hold_drop_locked(t, s->h, rl_hold_lingers(s->h), s->p.now_us);
    rl_mutex_unlock(&t->mutex);
}

static void open_run_out(shift *s)
{
    open_held(s);
    run_out(s);
    EXPECT(asks_only(s, RL_SCRIPT_HASH_RELEASE));
}

static void expect_ended(shift *s)
{
    rl_fault why;
    EXPECT_INT(rl_holds_left(&s->e.core.holds, &why), 0);
    EXPECT_INT(ask(s), 0);
    EXPECT_INT(s->e.core.holds.undoing, 0);
    EXPECT_INT(s->e.core.holds.uncounted, 0);
    close_shift(s);
}

/* While its slot moves. */
static void expect_undone_by(unsigned layout, rl_script_id script)
{
    shift s;
    open_held(&s);
    s.h->layout = (uint8_t)layout;
    s.h->split = true;
    run_out(&s);
    EXPECT(asks_only(&s, script));
    answer(&s, YES);
    expect_ended(&s);
}

TEST_CASE(batches, while_its_slot_moves_it_is_dropped,
          expect_undone_by(RLOCK_LAYOUT_HASH, RL_SCRIPT_HASH_DROP))
TEST_CASE(batches, what_may_stand_in_line_is_not_only_dropped,
          expect_undone_by(RL_LAYOUT_FAIR, RL_SCRIPT_FAIR_RELEASE))

TEST(batches, what_has_run_out_is_released_once)
{
    shift s;
    open_run_out(&s);
    answer(&s, YES);
    expect_ended(&s);
}

/* Nothing of it is left that a lease would not have ended. */
TEST(batches, a_release_of_what_has_run_out_that_fails_is_not_repeated)
{
    shift s;
    open_run_out(&s);
    answer(&s, "-BUSY a script is running\r\n");
    expect_ended(&s);
}

TEST(batches, a_vote_whose_answer_makes_no_sense_may_have_been_granted)
{
    shift s;
    open_vacant(&s);
    EXPECT_INT(ask(&s), 1);
    EXPECT(!s.h->unknown);
    EXPECT(!rl_line_feed(line(&s), "$5\r\n12ab5\r\n", 11, s.p.now_us));
    EXPECT(s.h->state == RL_VACANT && s.h->unknown);
    close_shift(&s);
}

/* --- undoing ------------------------------------------------------------- */

/* So many more that the server may have. */
static void leave(shift *s, const rl_target *what, size_t n)
{
    rl_holds *t = &s->e.core.holds;
    rl_uuid id;
    for (size_t i = 0; i < n; i++) {
        EXPECT(rl_uuid_new(&id));
        rl_owner_record *room = rl_holds_make_room(t, &s->p.owner);
        rl_hold *h = rl_draft(&s->e.core, room, what, &id, LEASE_MS);
        EXPECT(h);
        rl_mutex_lock(&t->mutex);
        h->gone_us = s->p.now_us + LEASE_MS * MS;
        rl_hold_drop_locked(t, h, true, s->p.now_us);
        rl_mutex_unlock(&t->mutex);
    }
}

/* What fails is due at once then: there is no time for a pause. */
TEST(batches, at_the_end_a_pass_over_undos_that_fail_ends)
{
    shift s;
    rl_fault why;
    open_held(&s);
    leave(&s, &play_red, RL_BATCH_MAX);
    rl_holds_stop(&s.e.core.holds);
    rl_fault_set(&why, RLOCK_EIO, 0, "connection refused");
    rl_batches_fail_due(&s.e.node, &why, s.p.now_us);
    EXPECT_INT(s.e.core.holds.undoing, RL_BATCH_MAX);
    EXPECT_INT(s.e.core.holds.first.work.count, RL_BATCH_MAX);
    close_shift(&s);
}

/* It has been sent, and was not answered. */
static void open_uncounted(shift *s)
{
    static const rl_target gate = {
        .name = "gate", .len = 4, .scope = RL_LATCH_SCOPE};
    open_held(s);
    rl_mutex_lock(&s->e.core.holds.mutex);
    rl_hold_schedule_locked(&s->e.core.holds, s->h, RL_NEVER);
    rl_mutex_unlock(&s->e.core.holds.mutex);
    leave(s, &gate, 1);
    EXPECT(asks_only(s, RL_SCRIPT_LATCH_COUNT_DOWN));
    answer(s, "-BUSY a script is running\r\n");
    EXPECT_INT(s->e.core.holds.undoing, 1);
    play_pass(&s->p, rl_keeper_longest_pause_us(&s->e.node));
}

TEST(batches, a_count_down_is_asked_for_again_until_it_is_answered)
{
    shift s;
    open_uncounted(&s);
    EXPECT(asks_only(&s, RL_SCRIPT_LATCH_COUNT_DOWN));
    answer(&s, YES);
    expect_ended(&s);
}

/* It would count once more. */
TEST(batches, a_count_down_whose_mark_may_be_gone_is_not_asked_for_again)
{
    shift s;
    open_uncounted(&s);
    play_pass(&s.p, LEASE_MS * MS);
    EXPECT_INT(ask(&s), 0);
    expect_ended(&s);
}

/* Of a vote no deadline has passed that it could miss. */
TEST(batches, a_vote_may_be_sent_at_any_time)
{
    shift s;
    open_vacant(&s);
    rl_batches_push_due(&s.e.node, s.p.now_us);
    EXPECT_INT(line(&s)->pending, 1);
    EXPECT(rl_batches_may_send(&s.e.node.keeper, s.p.now_us + 1000000 * MS));
    close_shift(&s);
}

TEST(batches, what_is_nobodys_any_more_is_lost_before_it_is_renewed)
{
    shift s;
    open_held(&s);
    EXPECT(rl_group_move(s.g, RL_GROUP_OWNED, RL_GROUP_LOST));
    EXPECT_INT(ask(&s), 0);
    EXPECT(s.h->state == RL_LOST && s.h->loss == RL_LOSS_GROUP);
    close_shift(&s);
}

/* --- renewals ------------------------------------------------------------- */

/* An extend that gave up waiting for it turns renewal on again. */
TEST(batches, a_renewal_under_way_is_not_asked_again_when_renewal_goes_on)
{
    shift s;
    open_held(&s);
    rl_holds *t = &s.e.core.holds;
    EXPECT(asks_only(&s, rl_hold_layout(s.h)->renew));
    rl_mutex_lock(&t->mutex);
    rl_hold_pause_renewal_locked(t, s.h);
    rl_hold_start_renewal_locked(t, s.h, 0, s.p.now_us);
    rl_mutex_unlock(&t->mutex);
    EXPECT_INT(ask(&s), 1);
    answer(&s, YES);
    EXPECT_INT(ask(&s), 0);
    play_pass(&s.p, PLAY_LEASE_MS * MS / 3);
    EXPECT(asks_only(&s, rl_hold_layout(s.h)->renew));
    close_shift(&s);
}

/* What falls due soon goes with it; but not what is due all the time. */
TEST(batches, a_hold_whose_lease_is_capped_is_renewed_once_a_period)
{
    shift s;
    open_held(&s);
    rl_hold_make_extra(s.h)->cap_ms = 1000;
    EXPECT_INT(ask(&s), 1);
    answer(&s, YES);
    EXPECT_INT(ask(&s), 0);
    play_pass(&s.p, 1000 * MS / 3);
    EXPECT_INT(ask(&s), 1);
    close_shift(&s);
}

/*
 * It was sent before the answer of an extend that was late, and is answered
 * after it: what it gives is not the whole lease, so the next one is due early.
 */
TEST(batches, a_renewal_that_was_cut_is_soon_followed_by_another)
{
    shift s;
    open_held(&s);
    EXPECT_INT(ask(&s), 1);
    int64_t asked_us = s.p.now_us;
    rl_hold_make_extra(s.h)->late_us = asked_us + MS;
    s.h->extra->late_cap_ms = 1000;
    play_pass(&s.p, 2 * MS);
    answer(&s, YES);
    EXPECT_INT(s.h->work.due_us, asked_us + 1000 * MS / 3);
    close_shift(&s);
}

/* --- a batch -------------------------------------------------------------- */

/* The latest is an ASK's, behind which nothing else may go. */
TEST(batches, one_that_is_used_again_is_as_new)
{
    shift s = {0}; /* without a hold */
    engine_open(&s.e, &s.p);
    rl_batch *b = rl_batch_take(&s.e.node, &rl_batch_renew);
    EXPECT(b);
    b->detour = 2;
    b->compare = b->bare = true;
    b->replicas = 1;
    b->send_by_us = s.p.now_us;
    b->next = b;
    b->n = 3;
    rl_batch_put(b);
    rl_batch *again[64];
    bool met = false;
    size_t n = 0;
    while (!met && n < 64) {
        again[n] = rl_batch_take(&s.e.node, &rl_batch_renew);
        met = again[n++] == b;
    }
    EXPECT(met && b->detour == 0 && !b->compare && !b->bare);
    EXPECT(b->replicas == 0 && b->send_by_us == RL_NEVER && b->n == 0);
    EXPECT(!b->next);
    while (n > 0)
        rl_batch_put(again[--n]);
    engine_close(&s.e, s.p.now_us);
    play_close_core(&s.e.core);
    play_close(&s.p);
}
