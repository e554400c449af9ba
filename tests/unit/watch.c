/*
 * The watch over a server, and what is asked about holds that it may not know:
 * the keeper's line leads nowhere, and the test says what comes over it.
 */
#include "run/watch.h"

#include "engine.h"
#include "hold.h"

/* An answer is alarmingly late after that, and said to be so once a second. */
#define LATE_US  (150 * MS)
#define AGAIN_US (1000 * MS)

#define SIGN    "*3\r\n$7\r\nPEXPIRE\r\n"
#define RUN(id) "*2\r\n$1\r\n" #id "\r\n$1\r\n7\r\n"
#define UNTOLD  "*2\r\n$0\r\n\r\n$1\r\n0\r\n"

/* A client that holds one lock, or none. */
typedef struct vigil {
    play p; /* its owner */
    rl_engine e;
    rl_pool pool; /* from which no connection comes */
    rl_hold *h;
} vigil;

static rl_holds *holds(vigil *v)
{
    return &v->e.core.holds;
}

static void heard(vigil *v)
{
    v->e.node.keeper.conn->heard_us = v->p.now_us;
}

static void made(vigil *v)
{
    v->e.node.keeper.conn->made_us = v->p.now_us;
    heard(v);
}

static void open_vigil(vigil *v)
{
    memset(v, 0, sizeof *v);
    engine_open(&v->e, &v->p);
    v->e.node.pool = &v->pool;
    v->e.node.keeper.watch.met = true;
    made(v);
}

static rl_hold *hold(vigil *v, const rl_target *what, rl_group *g,
                     int64_t lease_ms, int64_t sent_us)
{
    rl_uuid id;
    rl_core *c = &v->e.core;
    EXPECT(rl_uuid_new(&id));
    rl_owner_record *room = rl_holds_make_room(&c->holds, &v->p.owner);
    rl_hold *h = rl_draft(c, room, what, &id, lease_ms);
    EXPECT(h);
    h->group = g;
    rl_mutex_lock(&c->holds.mutex);
    rl_hold_grant_locked(&c->holds, h, 100, sent_us, lease_ms == RLOCK_WATCHDOG,
                         v->p.now_us);
    rl_mutex_unlock(&c->holds.mutex);
    return h;
}

static void open_holding(vigil *v, int64_t lease_ms)
{
    open_vigil(v);
    v->h = hold(v, &play_job, NULL, lease_ms, v->p.now_us);
}

static void release(vigil *v)
{
    rl_mutex_lock(&holds(v)->mutex);
    rl_hold_end_locked(holds(v), v->h, v->p.now_us);
    rl_hold_unref_locked(holds(v), v->h);
    rl_mutex_unlock(&holds(v)->mutex);
}

static void close_vigil(vigil *v)
{
    engine_close(&v->e, v->p.now_us);
    play_close_core(&v->e.core);
    play_close(&v->p);
}

static void watch(vigil *v)
{
    rl_watch_ask(&v->e.node, v->e.node.queue->held > 0, true, v->p.now_us);
}

/* What goes out now. */
static bool says(vigil *v, const char *what)
{
    const char *bytes;
    size_t n = rl_line_bytes(engine_line(&v->e), &bytes);
    bool found = n >= strlen(what) && memmem(bytes, n, what, strlen(what));
    rl_line_sent(engine_line(&v->e), n);
    return found && n > 0;
}

static bool says_nothing(vigil *v)
{
    const char *bytes;
    return rl_line_bytes(engine_line(&v->e), &bytes) == 0;
}

static void answer(vigil *v, const char *reply)
{
    heard(v);
    EXPECT(rl_line_feed(engine_line(&v->e), reply, strlen(reply), v->p.now_us));
}

static bool is_alarmed(vigil *v)
{
    return rl_watch_is_alarmed(&v->e.node, v->p.now_us);
}

/* --- a sign of life ------------------------------------------------------- */

TEST(watch, a_silent_server_is_asked_for_a_sign_of_life_while_something_is_held)
{
    vigil v;
    open_holding(&v, RLOCK_WATCHDOG);
    play_pass(&v.p, RL_WATCH_US - 1);
    watch(&v);
    EXPECT(says_nothing(&v));
    EXPECT_INT(rl_watch_due_us(&v.e.node), v.p.now_us + 1);
    play_pass(&v.p, 1);
    watch(&v);
    EXPECT(says(&v, SIGN));
    answer(&v, NO);
    watch(&v);
    EXPECT(says_nothing(&v));
    release(&v);
    play_pass(&v.p, 10 * RL_WATCH_US);
    watch(&v);
    EXPECT(says_nothing(&v));
    close_vigil(&v);
}

/* All batches that there may be are out. */
TEST(watch, when_nobody_can_ask_for_a_sign_nothing_stays_behind)
{
    vigil v;
    open_holding(&v, RLOCK_WATCHDOG);
    unsigned refs = v.h->refs;
    v.e.node.keeper.batches = SIZE_MAX;
    play_pass(&v.p, RL_WATCH_US);
    watch(&v);
    EXPECT(says_nothing(&v));
    EXPECT_INT(v.h->refs, refs);
    close_vigil(&v);
}

TEST(watch, what_is_under_way_is_a_question_already)
{
    vigil v;
    open_holding(&v, RLOCK_WATCHDOG);
    play_pass(&v.p, PLAY_LEASE_MS * MS / 3);
    rl_batches_push_due(&v.e.node, v.p.now_us);
    EXPECT(says(&v, rl_scripts[RL_SCRIPT_HASH_RENEW].sha1));
    watch(&v);
    EXPECT(says_nothing(&v));
    close_vigil(&v);
}

TEST(watch, an_error_is_a_sign_of_life)
{
    vigil v;
    open_holding(&v, RLOCK_WATCHDOG);
    play_pass(&v.p, RL_WATCH_US);
    watch(&v);
    EXPECT(says(&v, SIGN));
    answer(&v, LOADING);
    EXPECT_INT(engine_line(&v.e)->pending, 0);
    EXPECT(!engine_line(&v.e)->failed);
    close_vigil(&v);
}

TEST(watch, silence_is_told_in_time_and_then_once_a_second)
{
    vigil v;
    open_holding(&v, RLOCK_WATCHDOG);
    play_pass(&v.p, RL_WATCH_US);
    watch(&v);
    EXPECT(says(&v, SIGN));
    EXPECT(!is_alarmed(&v));
    EXPECT_INT(rl_watch_due_us(&v.e.node), v.p.now_us + LATE_US);
    play_pass(&v.p, LATE_US);
    EXPECT(is_alarmed(&v));
    EXPECT(!is_alarmed(&v));
    EXPECT_INT(rl_watch_due_us(&v.e.node), v.p.now_us + AGAIN_US);
    play_pass(&v.p, AGAIN_US);
    EXPECT(is_alarmed(&v));
    close_vigil(&v);
}

TEST(watch, a_server_that_is_far_is_given_two_round_trips)
{
    vigil v;
    open_holding(&v, RLOCK_WATCHDOG);
    play_pass(&v.p, RL_WATCH_US);
    watch(&v);
    EXPECT(says(&v, SIGN));
    play_pass(&v.p, 2 * LATE_US);
    answer(&v, NO);
    play_pass(&v.p, RL_WATCH_US);
    watch(&v);
    EXPECT(says(&v, SIGN));
    play_pass(&v.p, 4 * LATE_US - 1);
    EXPECT(!is_alarmed(&v));
    play_pass(&v.p, 1);
    EXPECT(is_alarmed(&v));
    close_vigil(&v);
}

/* --- which run ------------------------------------------------------------ */

/* A new connection, and what its server says of itself. */
static void meet(vigil *v, const char *run)
{
    engine_cut(&v->e, v->p.now_us);
    engine_reconnect(&v->e);
    made(v);
    v->e.node.keeper.watch.met = false;
    watch(v);
    EXPECT(says(v, rl_scripts[RL_SCRIPT_IDENTIFY].sha1));
    answer(v, run);
    rl_batches_push_due(&v->e.node, v->p.now_us);
}

static void expect_asked_in_a_new_run(int64_t lease_ms, const char *asked)
{
    vigil v;
    open_holding(&v, lease_ms);
    v.e.node.keeper.watch.run_id[0] = 'a';
    play_pass(&v.p, MS);
    meet(&v, RUN(a));
    EXPECT(says_nothing(&v));
    play_pass(&v.p, MS);
    meet(&v, RUN(b));
    EXPECT(says(&v, asked));
    answer(&v, NO);
    EXPECT_INT(v.h->state, RL_LOST);
    close_vigil(&v);
}

TEST_CASE(watch, a_new_run_has_what_is_renewed_asked_about_at_once,
          expect_asked_in_a_new_run(RLOCK_WATCHDOG, "\r\n30000\r\n"))
TEST_CASE(watch, a_new_run_has_a_lease_of_its_own_looked_at_at_once,
          expect_asked_in_a_new_run(LEASE_MS, "$1\r\n0\r\n"))

TEST(watch, a_run_that_is_not_told_may_be_any)
{
    vigil v;
    open_holding(&v, LEASE_MS);
    play_pass(&v.p, MS);
    meet(&v, UNTOLD);
    EXPECT(says(&v, rl_scripts[RL_SCRIPT_HASH_RENEW].sha1));
    answer(&v, YES);
    play_pass(&v.p, MS);
    meet(&v, UNTOLD);
    EXPECT(says(&v, rl_scripts[RL_SCRIPT_HASH_RENEW].sha1));
    close_vigil(&v);
}

TEST(watch, a_connection_that_was_identified_is_not_asked_again)
{
    vigil v;
    open_holding(&v, LEASE_MS);
    rl_watch *w = &v.e.node.keeper.watch;
    w->met = false;
    v.e.node.keeper.conn->known = true;
    watch(&v);
    EXPECT(says_nothing(&v));
    EXPECT_INT(v.h->work.at, 0);
    EXPECT_STR(w->run_id, rl_server_run_read(&v.e.core.server_run).id);
    close_vigil(&v);
}

/* All batches that there may be are out. */
TEST(watch, when_nobody_can_ask_which_run_it_is_that_is_asked_later)
{
    vigil v;
    open_holding(&v, LEASE_MS);
    rl_keeper *k = &v.e.node.keeper;
    k->watch.met = false;
    k->batches = SIZE_MAX;
    watch(&v);
    EXPECT(says_nothing(&v));
    k->batches = 0;
    watch(&v);
    EXPECT(says(&v, rl_scripts[RL_SCRIPT_IDENTIFY].sha1));
    answer(&v, RUN(a));
    close_vigil(&v);
}

TEST(watch, what_was_granted_since_the_connection_is_there_is_of_its_run)
{
    vigil v;
    open_vigil(&v);
    play_pass(&v.p, MS);
    v.h = hold(&v, &play_job, NULL, LEASE_MS, v.p.now_us);
    v.e.node.keeper.watch.met = false;
    play_pass(&v.p, MS);
    watch(&v);
    EXPECT(says(&v, rl_scripts[RL_SCRIPT_IDENTIFY].sha1));
    answer(&v, RUN(a));
    EXPECT_INT(v.h->work.at, 0);
    close_vigil(&v);
}

/* --- a lease of its own --------------------------------------------------- */

/* Looked at: its server may not know it. */
static void open_looked_at(vigil *v)
{
    open_holding(v, LEASE_MS);
    play_pass(&v->p, MS);
    rl_holds_doubt(holds(v), v->e.node.queue, v->p.now_us);
    rl_batches_push_due(&v->e.node, v->p.now_us);
    EXPECT(says(v, rl_scripts[RL_SCRIPT_HASH_RENEW].sha1));
}

TEST(watch, a_look_is_asked_once_and_prolongs_nothing)
{
    vigil v;
    open_looked_at(&v);
    int64_t deadline_us = v.h->expiry.due_us;
    answer(&v, YES);
    EXPECT_INT(v.h->state, RL_HELD);
    EXPECT_INT(v.h->expiry.due_us, deadline_us);
    EXPECT_INT(v.h->work.at, 0);
    EXPECT_INT(atomic_load(&v.e.core.stats.renewals), 0);
    close_vigil(&v);
}

TEST(watch, a_look_that_is_not_answered_is_asked_again_and_not_told)
{
    vigil v;
    open_looked_at(&v);
    answer(&v, NOPERM);
    EXPECT_INT(v.h->state, RL_HELD);
    EXPECT(v.h->work.at > 0);
    EXPECT_INT(atomic_load(&v.e.core.stats.renew_failures), 0);
    EXPECT_INT(v.h->reports, 0);
    close_vigil(&v);
}

/* Then its answer is about the lease that it had before. */
TEST(watch, a_hold_that_is_renewed_from_then_on_is_not_prolonged_by_a_look)
{
    vigil v;
    open_looked_at(&v);
    int64_t sent_us = v.p.now_us, deadline_us = v.h->expiry.due_us;
    rl_mutex_lock(&holds(&v)->mutex);
    rl_hold_start_renewal_locked(holds(&v), v.h, sent_us, v.p.now_us);
    rl_mutex_unlock(&holds(&v)->mutex);
    EXPECT_INT(v.h->work.at, 0);
    answer(&v, YES);
    EXPECT_INT(v.h->expiry.due_us, deadline_us);
    EXPECT_INT(due_us(holds(&v), v.h), sent_us + PLAY_LEASE_MS * MS / 3);
    close_vigil(&v);
}

TEST(watch, a_look_that_is_answered_during_an_extend_schedules_nothing)
{
    vigil v;
    open_looked_at(&v);
    rl_mutex_lock(&holds(&v)->mutex);
    rl_hold_start_renewal_locked(holds(&v), v.h, v.p.now_us, v.p.now_us);
    rl_hold_pause_renewal_locked(holds(&v), v.h);
    rl_mutex_unlock(&holds(&v)->mutex);
    answer(&v, YES);
    EXPECT_INT(v.h->work.at, 0);
    close_vigil(&v);
}

/* The node gives its vote to nobody until then. */
TEST(watch, a_red_lock_of_a_lease_of_its_own_is_not_looked_at)
{
    vigil v;
    open_vigil(&v);
    rl_group *g = rl_group_new(&v.p.home, 2);
    EXPECT(g);
    v.h = hold(&v, &play_red, g, LEASE_MS, v.p.now_us);
    play_pass(&v.p, MS);
    rl_holds_doubt(holds(&v), v.e.node.queue, v.p.now_us);
    EXPECT_INT(v.h->work.at, 0);
    close_vigil(&v);
}

/* --- answers that are slow to be read ------------------------------------- */

/* Granted by the run before, and noted after the new one was met. */
TEST(watch, what_an_earlier_call_was_granted_is_asked_about)
{
    vigil v;
    open_vigil(&v);
    play_pass(&v.p, MS);
    rl_holds_doubt(holds(&v), v.e.node.queue, v.p.now_us);
    v.h = hold(&v, &play_job, NULL, LEASE_MS, v.p.now_us - 1);
    EXPECT_INT(due_us(holds(&v), v.h), v.p.now_us);
    close_vigil(&v);
}

TEST(watch, a_renewal_that_an_earlier_run_answered_is_asked_for_again)
{
    vigil v;
    open_holding(&v, RLOCK_WATCHDOG);
    play_pass(&v.p, PLAY_LEASE_MS * MS / 3);
    rl_batches_push_due(&v.e.node, v.p.now_us);
    EXPECT(says(&v, rl_scripts[RL_SCRIPT_HASH_RENEW].sha1));
    play_pass(&v.p, MS);
    rl_holds_doubt(holds(&v), v.e.node.queue, v.p.now_us);
    answer(&v, YES);
    EXPECT_INT(due_us(holds(&v), v.h), v.p.now_us);
    close_vigil(&v);
}

TEST(watch, a_failover_asks_about_a_lease_of_its_own_too)
{
    vigil v;
    open_holding(&v, LEASE_MS);
    play_pass(&v.p, MS);
    rl_holds_failed_over(holds(&v), true, v.p.now_us);
    EXPECT_BETWEEN(due_us(holds(&v), v.h), v.p.now_us, v.p.now_us + 250 * MS);
    close_vigil(&v);
}

/* --- who is woken, and told ----------------------------------------------- */

/* In a loop of locks and unlocks. */
TEST(watch, its_keeper_is_woken_for_the_first_hold_and_not_for_each)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    int woken = p.client[0].wakes[PLAY_KEEPER];
    EXPECT_INT(table(&p)->first.held, 1);
    for (int i = 0; i < 100; i++) {
        end(&p, h);
        EXPECT_INT(table(&p)->first.held, 0);
        play_pass(&p, MS);
        h = play_hold(&p, 0, "job", LEASE_MS);
    }
    EXPECT_BETWEEN(woken, 1, 2);
    EXPECT_INT(p.client[0].wakes[PLAY_KEEPER], woken);
    end(&p, h);
    play_close(&p);
}

TEST(watch, of_renewals_that_fail_at_one_server_one_in_a_second_is_told)
{
    rl_holds t = {.wants_reports = true};
    rl_due_queue l = {.held = 1};
    int told = 0;
    rl_mutex_init(&t.mutex, RL_RANK_WAKER);
    rl_mutex_lock(&t.mutex);
    for (int64_t us = PLAY_BEGAN_US; us < PLAY_BEGAN_US + 2500 * MS; us += MS)
        told += rl_due_queue_tells_locked(&t, &l, us);
    rl_mutex_unlock(&t.mutex);
    rl_mutex_fini(&t.mutex);
    EXPECT_INT(told, 3);
}
