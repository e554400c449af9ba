/*
 * What comes of renewals beside the lease: who is told, what is known of the
 * server, who waited for their end, and what goes together in one pass.
 */
#include "renewals.h"

#include <errno.h>

#include "run/batch.h"
#include "shim.h"

static bool tells(const rl_hold *h, rlock_event_type type)
{
    return h->reports & 1u << type;
}

/* --- what is told --------------------------------------------------------- */

TEST(renewals, each_that_was_renewed_is_told)
{
    round r;
    open_round(&r, 2);
    EXPECT_INT(asks(&r, MANY), 1);
    EXPECT(!tells(r.h[0], RLOCK_EVENT_RENEWED));
    answer(&r, "$2\r\n11\r\n");
    EXPECT(tells(r.h[0], RLOCK_EVENT_RENEWED));
    EXPECT(tells(r.h[1], RLOCK_EVENT_RENEWED));
    close_round(&r);
}

static size_t told_failed(const round *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += tells(r->h[i], RLOCK_EVENT_RENEW_FAILED);
    return n;
}

static void fail_after(round *r, int64_t us)
{
    play_pass(&r->p, us);
    for (size_t i = 0; i < r->n; i++) {
        r->h[i]->reports &= ~(1u << RLOCK_EVENT_RENEW_FAILED);
        set_due(r, r->h[i]);
    }
    EXPECT_INT(asks(r, MANY), 1);
    answer(r, "-BUSY Redis is busy running a script\r\n");
}

TEST(renewals, of_those_that_failed_one_is_told_each_second)
{
    round r;
    open_round(&r, 3);
    fail_after(&r, 0);
    EXPECT_INT(told_failed(&r), 1);
    EXPECT_CONTAINS(table(&r)->failure.text, "BUSY");
    fail_after(&r, 999 * MS);
    EXPECT_INT(told_failed(&r), 0);
    fail_after(&r, 1 * MS);
    EXPECT_INT(told_failed(&r), 1);
    EXPECT_INT(failed(&r), 9);
    close_round(&r);
}

/* --- whose answer does not matter any more -------------------------------- */

/* Its owner has taken renewal off it, or is about to extend it, or released it. */
enum meanwhile { STOPPED, PAUSED, UNDONE };

static void change(round *r, enum meanwhile what)
{
    rl_holds *t = table(r);
    rl_mutex_lock(&t->mutex);
    if (what == STOPPED)
        rl_hold_stop_renewal_locked(t, r->h[0]);
    else if (what == PAUSED)
        rl_hold_pause_renewal_locked(t, r->h[0]);
    else
        rl_hold_end_locked(t, r->h[0], r->p.now_us);
    if (what == UNDONE)
        rl_hold_undo_locked(t, r->h[0], RL_NEVER);
    rl_mutex_unlock(&t->mutex);
}

static void expect_ignored(enum meanwhile what, const char *reply)
{
    round r;
    open_round(&r, 1);
    play_pass(&r.p, 50 * MS);
    EXPECT_INT(asks(&r, SINGLY), 1);
    change(&r, what);
    int64_t until_us = r.h[0]->expiry.due_us;
    rl_state state = (rl_state)r.h[0]->state;
    answer(&r, reply);
    EXPECT(renewed(&r) == 0 && failed(&r) == 0 && !r.h[0]->in_flight);
    EXPECT(r.h[0]->state == state && r.h[0]->expiry.due_us == until_us);
    close_round(&r);
}

TEST_CASE(renewals, what_is_renewed_no_more_keeps_its_deadline,
          expect_ignored(STOPPED, YES))
TEST_CASE(renewals, what_is_to_be_extended_keeps_its_deadline,
          expect_ignored(PAUSED, YES))
TEST_CASE(renewals, what_was_released_is_not_prolonged,
          expect_ignored(UNDONE, YES))
TEST_CASE(renewals, what_is_to_be_extended_is_not_lost_by_a_renewal,
          expect_ignored(PAUSED, NO))
TEST_CASE(renewals, what_was_released_is_not_lost, expect_ignored(UNDONE, NO))
TEST_CASE(renewals, of_what_was_released_no_failure_is_told,
          expect_ignored(UNDONE, "-BUSY a script is running\r\n"))

/* --- who waits for its end ------------------------------------------------ */

typedef struct extender {
    rl_waker waker;
    int woken;
} extender;

static void wake(rl_waker *w, rl_wake why, unsigned node)
{
    EXPECT(why == RL_WAKE_LOOK && node == 0);
    RL_CONTAINER(w, extender, waker)->woken++;
}

static void expect_landing(const char *reply)
{
    extender x = {.waker = {wake}};
    round r;
    open_round(&r, 1);
    uint32_t refs = r.h[0]->refs;
    EXPECT_INT(asks(&r, SINGLY), 1);
    EXPECT_INT(r.h[0]->refs, refs + 1);
    rl_hold_make_extra(r.h[0])->landing = &x.waker;
    answer(&r, reply);
    EXPECT(x.woken == 1 && !r.h[0]->extra->landing);
    EXPECT(r.h[0]->refs == refs + 1 && r.h[0]->queued); /* its report's */
    close_round(&r);
}

TEST_CASE(renewals, who_waits_to_extend_is_woken_by_the_answer,
          expect_landing(YES))
TEST_CASE(renewals, who_waits_to_extend_is_woken_by_a_failure,
          expect_landing("-BUSY a script is running\r\n"))

/* --- how long what was asked may last ------------------------------------- */

TEST(renewals, what_is_renewed_may_last_for_a_lease_from_now)
{
    round r;
    open_round(&r, 1);
    play_pass(&r.p, 1000 * MS);
    EXPECT_INT(asks(&r, SINGLY), 1);
    EXPECT_INT(r.h[0]->gone_us, r.p.now_us + PLAY_LEASE_MS * MS);
    close_round(&r);
}

TEST(renewals, what_is_only_looked_at_lasts_no_longer)
{
    round r;
    open_round(&r, 1);
    change(&r, STOPPED);
    int64_t gone_us = r.h[0]->gone_us;
    play_pass(&r.p, 1000 * MS);
    rl_holds_doubt(table(&r), r.e.node.queue, r.p.now_us);
    EXPECT_INT(asks(&r, SINGLY), 1);
    EXPECT_INT(r.h[0]->gone_us, gone_us);
    close_round(&r);
}

TEST(renewals, what_is_not_asked_about_by_itself_lasts_no_longer)
{
    round r;
    open_round(&r, 2);
    EXPECT_INT(asks(&r, MANY), 1);
    change(&r, PAUSED);
    int64_t gone_us = r.h[0]->gone_us;
    play_pass(&r.p, 1000 * MS);
    answer(&r, REFUSED);
    EXPECT_INT(r.h[0]->gone_us, gone_us);
    EXPECT_INT(r.h[1]->gone_us, r.p.now_us + PLAY_LEASE_MS * MS);
    close_round(&r);
}

/* --- until when it may be sent -------------------------------------------- */

static bool may_send(round *r, int64_t now_us)
{
    return rl_batches_may_send(&r->e.node.keeper, now_us);
}

TEST(renewals, what_goes_by_itself_may_be_sent_until_its_deadline)
{
    round r;
    open_round(&r, 2);
    int64_t until_us = r.h[0]->expiry.due_us;
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, REFUSED);
    EXPECT(may_send(&r, until_us - 1) && !may_send(&r, until_us));
    EXPECT_INT(sends(&r, SINGLY), 2);
    EXPECT(may_send(&r, until_us)); /* it has been sent */
    close_round(&r);
}

TEST(renewals, where_nothing_waits_to_be_sent_anything_may_be)
{
    round r;
    open_round(&r, 0);
    EXPECT(may_send(&r, RL_NEVER - 1));
    close_round(&r);
}

/* The one whose lease ends first is due last. */
TEST(renewals, those_that_go_together_may_be_sent_until_the_first_deadline)
{
    round r;
    open_round(&r, 1);
    play_pass(&r.p, 100 * MS);
    add_hold(&r, RLOCK_LAYOUT_HASH);
    rl_mutex_lock(&table(&r)->mutex);
    rl_hold_schedule_locked(table(&r), r.h[1], r.p.now_us - 1000 * MS);
    rl_mutex_unlock(&table(&r)->mutex);
    rl_batches_push_due(&r.e.node, r.p.now_us);
    EXPECT_INT(line(&r)->pending, 1);
    EXPECT(r.h[0]->expiry.due_us < r.h[1]->expiry.due_us);
    EXPECT(may_send(&r, r.h[0]->expiry.due_us - 1));
    EXPECT(!may_send(&r, r.h[0]->expiry.due_us));
    close_round(&r);
}

/* Its lease ends some day in any case; it is not for somebody's who is gone. */
TEST(renewals, what_is_undone_beside_them_may_be_sent_at_any_time)
{
    round r;
    open_round(&r, 3);
    rl_mutex_lock(&table(&r)->mutex);
    rl_hold_end_locked(table(&r), r.h[2], r.p.now_us);
    rl_hold_undo_locked(table(&r), r.h[2], RL_NEVER);
    rl_hold_schedule_locked(table(&r), r.h[2], r.p.now_us);
    rl_mutex_unlock(&table(&r)->mutex);
    rl_batches_push_due(&r.e.node, r.p.now_us);
    EXPECT_INT(line(&r)->pending, 2);
    const rl_ask *first =
        RL_CONTAINER(rl_list_first(&line(&r)->slots), rl_ask, slot.link);
    EXPECT(!may_send(&r, r.h[0]->expiry.due_us));
    rl_line_sent(line(&r), first->slot.end - line(&r)->sent);
    EXPECT(may_send(&r, r.h[0]->expiry.due_us));
    close_round(&r);
}

/* --- in a circle ---------------------------------------------------------- */

static void ignore_move(rl_redirects *r, unsigned slot, const char *host,
                        int port)
{
    (void)r, (void)slot, (void)host, (void)port;
}

/* How often it is sent on before there is a pause. */
static int sent_on(round *r)
{
    for (int n = 1; n < 100; n++) {
        EXPECT_INT(asks(r, SINGLY), 1);
        answer(r, "-MOVED 3999 10.0.0.2:6381\r\n");
        int64_t pause_us = r->h[0]->work.due_us - r->p.now_us;
        play_pass(&r->p, pause_us);
        if (pause_us >= rl_keeper_longest_pause_us(&r->e.node))
            return n;
        EXPECT(*table(r)->failure.text == '\0');
    }
    return 0;
}

TEST(renewals, after_a_pause_one_is_sent_on_as_often_as_before)
{
    static rl_redirects nowhere = {.moved = ignore_move};
    round r;
    open_round(&r, 1);
    r.e.core.redirects = &nowhere;
    for (int i = 1; i <= 2; i++) {
        EXPECT_INT(sent_on(&r), RL_ASK_REDIRECTS + 1);
        EXPECT_INT(failed(&r), i);
        EXPECT_CONTAINS(table(&r)->failure.text, "MOVED");
        table(&r)->failure = (rl_fault){.status = RLOCK_OK};
    }
    close_round(&r);
}

static unsigned ask_there(rl_redirects *r, unsigned slot, const char *host,
                          int port)
{
    (void)r, (void)slot, (void)host, (void)port;
    return 2;
}

/* "ASK" is for the next attempt alone. */
TEST(renewals, one_that_is_asked_elsewhere_once_is_asked_there_with_asking)
{
    static rl_redirects elsewhere = {.moved = ignore_move, .ask = ask_there};
    round r;
    const char *bytes;
    open_round(&r, 1);
    r.e.core.redirects = &elsewhere;
    EXPECT_INT(asks(&r, SINGLY), 1);
    answer(&r, "-ASK 3999 10.0.0.2:6381\r\n");
    EXPECT(r.h[0]->detour == 2 && failed(&r) == 0);
    play_pass(&r.p, r.h[0]->work.due_us - r.p.now_us);
    rl_batches_push_due(&r.e.node, r.p.now_us);
    size_t n = rl_line_bytes(line(&r), &bytes);
    EXPECT_INT(times(bytes, n, "ASKING"), 1);
    EXPECT_INT(r.h[0]->detour, 0);
    EXPECT_INT(sends(&r, SINGLY), 1);
    answer(&r, "+OK\r\n" YES);
    EXPECT_INT(renewed(&r), 1);
    close_round(&r);
}

/* While its slot moves, of a writer the lock's key alone is renewed, there, too. */
TEST(renewals, one_that_is_asked_anew_by_itself_is_asked_with_asking_too)
{
    round r;
    const char *bytes;
    open_round(&r, 0);
    add_hold(&r, (rlock_layout)RL_LAYOUT_WRITE);
    r.h[0]->detour = 2;
    rl_batches_push_due(&r.e.node, r.p.now_us);
    EXPECT_INT(sends(&r, SINGLY), 0);
    answer(&r, "+OK\r\n" TRYAGAIN);
    size_t n = rl_line_bytes(line(&r), &bytes);
    EXPECT_INT(times(bytes, n, "ASKING"), 1);
    EXPECT_INT(sends(&r, SINGLY), 1);
    answer(&r, "+OK\r\n" YES);
    EXPECT_INT(renewed(&r), 1);
    close_round(&r);
}

/* How often a script goes with a call, of what is to be sent. */
static size_t wholes(round *r)
{
    const char *bytes;
    size_t n = rl_line_bytes(line(r), &bytes);
    size_t found = n > 0 ? times(bytes, n, "EVAL\r\n") : 0;
    rl_line_sent(line(r), n);
    return found;
}

/* The lock's key alone is renewed as a lock is, by one script. */
TEST(renewals, what_one_has_brought_is_not_brought_for_a_lock_once_more)
{
    round r;
    open_round(&r, 0);
    add_hold(&r, (rlock_layout)RL_LAYOUT_WRITE);
    EXPECT_INT(asks(&r, SINGLY), 0);
    answer(&r, TRYAGAIN);
    EXPECT_INT(sends(&r, SINGLY), 1);
    add_hold(&r, RLOCK_LAYOUT_HASH);
    EXPECT_INT(asks(&r, SINGLY), 1);
    answer(&r, NOSCRIPT);
    EXPECT_INT(wholes(&r), 1);
    answer(&r, NOSCRIPT);
    EXPECT_INT(wholes(&r), 0);
    answer(&r, YES YES);
    EXPECT_INT(renewed(&r), 2);
    close_round(&r);
}

/* --- what goes together --------------------------------------------------- */

/* One is due now, and another in so long. */
static void expect_together(int64_t later_us, bool together)
{
    round r;
    open_round(&r, 2);
    rl_mutex_lock(&table(&r)->mutex);
    rl_hold_schedule_locked(table(&r), r.h[1], r.p.now_us + later_us);
    rl_mutex_unlock(&table(&r)->mutex);
    EXPECT_INT(asks(&r, together ? MANY : SINGLY), 1);
    EXPECT_INT(line(&r)->pending, 1);
    EXPECT(r.h[1]->in_flight == together);
    close_round(&r);
}

/* A third of the lease is a period. */
#define SOON_US (PLAY_LEASE_MS * MS / 3 / 16)

TEST_CASE(renewals, what_is_due_in_a_sixteenth_of_a_period_goes_too,
          expect_together(SOON_US - MS, true))
TEST_CASE(renewals, what_is_due_after_that_does_not,
          expect_together(SOON_US + MS, false))

TEST(renewals, a_turn_takes_500_and_the_next_the_others)
{
    round r;
    open_round(&r, 600);
    EXPECT_INT(asks(&r, MANY), 10);
    EXPECT_INT(asks(&r, MANY), 2);
    EXPECT_INT(asks(&r, MANY), 0);
    close_round(&r);
}

TEST(renewals, of_those_that_go_one_by_one_none_is_left_out)
{
    round r;
    open_round(&r, 120);
    r.e.node.keeper.one_by_one = true;
    EXPECT_INT(asks(&r, SINGLY), 120);
    EXPECT_INT(line(&r)->pending, 120);
    close_round(&r);
}

/* The one between says its token, and goes by itself. */
TEST(renewals, those_before_and_behind_one_that_goes_by_itself_go_together)
{
    round r;
    open_round(&r, 3);
    r.h[1]->unknown = true;
    rl_batches_push_due(&r.e.node, r.p.now_us);
    rl_line_sent(line(&r), (size_t)-1);
    answer(&r, "$2\r\n11\r\n" YES);
    EXPECT_INT(renewed(&r), 3);
    close_round(&r);
}

/* So many holders, each of so many permits: how many go in the first call? */
static void expect_permits(size_t n, uint16_t weight, size_t in_first)
{
    char reply[120];
    round r;
    open_round(&r, 0);
    for (size_t i = 0; i < n; i++) {
        add_hold(&r, (rlock_layout)RL_LAYOUT_PERMIT);
        r.h[i]->record->weight = weight;
    }
    EXPECT_INT(asks(&r, RL_SCRIPT_PERMIT_RENEW_MANY), 2);
    EXPECT_INT(line(&r)->pending, 2);
    static const char yes[] = "1111111111111111111111111111111111111111111111";
    snprintf(reply, sizeof reply, "$%zu\r\n%.*s\r\n$%zu\r\n%.*s\r\n", in_first,
             (int)in_first, yes, n - in_first, (int)(n - in_first), yes);
    answer(&r, reply);
    EXPECT_INT(renewed(&r), n);
    for (size_t i = 0; i < n; i++)
        r.h[i]->record->weight = 0;
    close_round(&r);
}

TEST_CASE(renewals, of_permits_a_call_has_25_holders, expect_permits(30, 1, 25))
TEST_CASE(renewals, of_permits_a_call_has_100, expect_permits(12, 10, 10))
TEST_CASE(renewals, of_permits_a_call_has_no_more_than_100,
          expect_permits(12, 11, 9))

/* --- what cannot be asked ------------------------------------------------- */

static void fail_due(round *r)
{
    rl_fault why;
    rl_fault_set(&why, RLOCK_EIO, 0, "connection refused");
    rl_batches_fail_due(&r->e.node, &why, r->p.now_us);
}

static void expect_failed(size_t n)
{
    round r;
    open_round(&r, n + 1);
    rl_mutex_lock(&table(&r)->mutex);
    rl_hold_schedule_locked(table(&r), r.h[n], r.p.now_us + MS);
    rl_mutex_unlock(&table(&r)->mutex);
    r.e.node.keeper.not_before_us = r.p.now_us + 1000 * MS;
    fail_due(&r);
    EXPECT_INT(failed(&r), n);
    EXPECT_CONTAINS(table(&r)->failure.text, "connection refused");
    EXPECT_INT(r.h[n]->work.due_us, r.p.now_us + MS);
    EXPECT_INT(r.e.node.keeper.in_flight, 0);
    close_round(&r);
}

TEST_CASE(renewals, without_a_server_what_is_due_has_failed, expect_failed(3))
TEST_CASE(renewals, without_a_server_all_that_is_due_has_failed,
          expect_failed(60))

TEST(renewals, over_a_broken_connection_nothing_is_asked)
{
    round r;
    open_round(&r, 3);
    cut(&r);
    EXPECT(!rl_batches_have_room(&r.e.node.keeper));
    rl_batches_push_due(&r.e.node, r.p.now_us);
    EXPECT(failed(&r) == 0 && !r.h[0]->in_flight && r.h[0]->work.at);
    close_round(&r);
}

/* --- batches -------------------------------------------------------------- */

enum { MOST_BATCHES = 1024 };

TEST(renewals, there_are_no_more_than_1024_batches)
{
    static rl_batch *b[MOST_BATCHES];
    round r;
    open_round(&r, 0);
    rl_keeper *k = &r.e.node.keeper;
    for (size_t i = 0; i < MOST_BATCHES; i++) {
        EXPECT(rl_batches_have_room(k));
        b[i] = rl_batch_take(&r.e.node, &rl_batch_renew);
        EXPECT(b[i]);
    }
    EXPECT(!rl_batch_take(&r.e.node, &rl_batch_renew));
    EXPECT(!rl_batches_have_room(k) && k->in_flight == MOST_BATCHES);
    for (size_t i = 0; i < MOST_BATCHES; i++)
        rl_batch_put(b[i]);
    EXPECT(rl_batches_have_room(k));
    rl_conn *c = k->conn;
    k->conn = NULL;
    EXPECT(!rl_batches_have_room(k));
    k->conn = c;
    close_round(&r);
}

/* There are eight that go on, and others as soon as one of them has ended. */
TEST(renewals, without_a_batch_for_it_one_by_itself_has_failed)
{
    round r;
    open_round(&r, 20);
    EXPECT_INT(asks(&r, MANY), 1);
    r.e.node.keeper.batches = MOST_BATCHES;
    answer(&r, REFUSED);
    EXPECT_INT(sends(&r, SINGLY), 7);
    EXPECT_INT(failed(&r), 13);
    EXPECT(r.h[19]->work.at && !r.h[19]->in_flight);
    close_round(&r);
}

static bool lacks_memory(rl_keeper *k)
{
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    bool reserved = rl_batches_reserve(k);
    shim_clear(shim_here());
    return !reserved;
}

TEST(renewals, what_was_reserved_is_there_without_memory)
{
    round r;
    open_round(&r, 0);
    rl_keeper *k = &r.e.node.keeper;
    for (int i = 0; i < 2; i++) {
        EXPECT(lacks_memory(k) && !k->chunks);
        EXPECT(rl_batches_reserve(k) && k->batches == 8);
        EXPECT(!lacks_memory(k) && k->batches == 8);
        rl_batches_fini(k); /* and more may be reserved afterwards */
        EXPECT(!k->chunks && k->batches == 0);
        EXPECT(rl_list_is_empty(&k->idle_batches));
    }
    close_round(&r);
}
