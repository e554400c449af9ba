/*
 * What a keeper does beside its renewals: answers that nobody waits for, what it
 * is asked for by others, and its end.
 */
#include "ward.h"

#define PATIENCE_MS 10 /* before late answers are looked for */
#define MOST_POLLED 65

#define UNDO rl_scripts[RL_SCRIPT_HASH_RELEASE].sha1

/* A connection that owes the answer to a call, which nobody waits for. */
typedef struct debt {
    rl_conn *conn;
    int server;
    rl_slot slot;
    int answered, failed;
} debt;

static void note_answer(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    (void)r, (void)now_us;
    RL_CONTAINER(s, debt, slot)->answered++;
}

static void note_failure(rl_slot *s, bool whole, const rl_fault *why,
                         int64_t now_us)
{
    (void)whole, (void)why, (void)now_us;
    RL_CONTAINER(s, debt, slot)->failed++;
}

/* It is given back, and is waited for for so long. */
static void owe(ward *w, debt *d, int64_t patience_ms)
{
    rl_conn *c = outpost_connect(&w->o);
    rl_bytes *to = rl_line_begin(&c->line);
    *d = (debt){.conn = c, .server = outpost_peer(&w->o)};
    d->slot = (rl_slot){.answered = note_answer, .failed = note_failure};
    rl_put_array(to, 1);
    rl_put_text(to, "PING");
    EXPECT(rl_line_push(&c->line, &d->slot));
    EXPECT(rl_conn_send(c));
    c->patient_us = rl_now_us() + patience_ms * MS;
    outpost_node(&w->o)->pool->places++;
    rl_pool_give_back(outpost_node(&w->o)->pool, c);
    rl_keeper_expect(outpost_node(&w->o), rl_now_us());
}

static int places(ward *w)
{
    return (int)outpost_node(&w->o)->pool->places;
}

static size_t look(ward *w, struct pollfd p[MOST_POLLED])
{
    rl_watcher *k = &keeper(w)->watcher;
    return k->look(k, p, MOST_POLLED);
}

/* Without anything else to do. */
static void open_idle(ward *w)
{
    open_connected(w);
    EXPECT_INT(take_turn(w), RL_NEVER);
    outpost_take_nudge(&keeper(w)->watcher);
}

/* --- answers that nobody waits for ---------------------------------------- */

TEST(keeper_end,
     mostly_the_next_caller_comes_before_a_late_answer_is_looked_for)
{
    ward w;
    debt d;
    open_idle(&w);
    int64_t before_us = rl_now_us();
    owe(&w, &d, 1000);
    EXPECT(outpost_take_nudge(&keeper(&w)->watcher));
    int64_t us = keeper(&w)->owing_us;
    EXPECT_BETWEEN(us, before_us + PATIENCE_MS * MS,
                   rl_now_us() + PATIENCE_MS * MS);
    pass(&w, 1);
    rl_keeper_expect(outpost_node(&w.o), rl_now_us());
    EXPECT(!outpost_take_nudge(&keeper(&w)->watcher)); /* it knows of one */
    EXPECT_INT(keeper(&w)->owing_us, us);
    rl_watcher *k = &keeper(&w)->watcher;
    EXPECT_INT(k->turn(k, us - 1), us);
    EXPECT_INT(places(&w), 0);
    close_ward(&w);
}

/* Its keeper looks after what owes an answer. */
static void open_owing(ward *w, debt *d, int64_t patience_ms)
{
    open_idle(w);
    owe(w, d, patience_ms);
    pass(w, PATIENCE_MS);
    EXPECT_INT(take_turn(w), d->conn->patient_us);
}

TEST(keeper_end, a_late_answer_is_read_and_its_connection_given_back)
{
    ward w;
    debt d;
    struct pollfd p[MOST_POLLED];
    open_owing(&w, &d, 1000);
    EXPECT_INT(places(&w), 1);
    EXPECT_INT(look(&w, p), 2);
    EXPECT(p[0].fd == keeper(&w)->conn->io.fd && p[0].events == POLLIN);
    EXPECT(p[1].fd == d.conn->io.fd && p[1].events == POLLIN);
    outpost_say_at(d.server, "+PONG\r\n");
    EXPECT_INT(take_turn(&w), RL_NEVER);
    EXPECT(d.answered == 1 && d.failed == 0);
    EXPECT_INT(places(&w), 0);
    EXPECT_INT(look(&w, p), 1);
    EXPECT(rl_pool_borrow_idle(outpost_node(&w.o)->pool, NULL) == d.conn);
    close_ward(&w);
}

static bool is_down(ward *w)
{
    rl_fault f;
    return rl_connector_is_down(&outpost_node(&w->o)->connector, &f);
}

TEST(keeper_end, a_server_that_owes_an_answer_for_too_long_is_suspected)
{
    ward w;
    debt d;
    open_owing(&w, &d, 1000);
    pass(&w, 1000 - PATIENCE_MS - LONG_TURN_US / MS);
    EXPECT_INT(take_turn(&w), d.conn->patient_us);
    EXPECT(!d.failed && !is_down(&w));
    pass(&w, LONG_TURN_US / MS);
    EXPECT_INT(take_turn(&w), RL_NEVER);
    EXPECT(d.failed == 1 && is_down(&w) && places(&w) == 0);
    EXPECT(outpost_is_closed(d.server));
    close_ward(&w);
}

TEST(keeper_end, a_server_that_closes_what_owes_an_answer_is_not_suspected)
{
    ward w;
    debt d;
    open_owing(&w, &d, 1000);
    EXPECT_INT(shutdown(d.server, SHUT_WR), 0);
    EXPECT_INT(take_turn(&w), RL_NEVER);
    EXPECT(d.failed == 1 && !is_down(&w) && places(&w) == 0);
    EXPECT(outpost_is_closed(d.server));
    close_ward(&w);
}

TEST(keeper_end, those_that_have_rested_for_less_are_looked_for_later)
{
    ward w;
    debt d[2];
    open_idle(&w);
    owe(&w, &d[0], 100000);
    pass(&w, PATIENCE_MS);
    outpost_node(&w.o)->pool->limit = 10;
    owe(&w, &d[1], 90000);
    rl_watcher *k = &keeper(&w)->watcher;
    EXPECT_INT(k->turn(k, d[1].conn->rested_us),
               d[1].conn->rested_us + PATIENCE_MS * MS);
    EXPECT_INT(places(&w), 1);
    pass(&w, PATIENCE_MS);
    EXPECT_INT(take_turn(&w), d[1].conn->patient_us);
    EXPECT_INT(places(&w), 2);
    outpost_say_at(d[1].server, "+PONG\r\n"); /* and not the first one's */
    EXPECT_INT(take_turn(&w), d[0].conn->patient_us);
    EXPECT(places(&w) == 1 && d[1].answered == 1 && d[0].answered == 0);
    close_ward(&w);
}

TEST(keeper_end, polls_as_many_as_it_has_said_and_serves_all)
{
    static debt d[MOST_POLLED];
    ward w;
    struct pollfd p[MOST_POLLED];
    open_idle(&w);
    EXPECT_INT(keeper(&w)->watcher.most, MOST_POLLED);
    outpost_node(&w.o)->pool->limit = 2 * MOST_POLLED;
    for (int i = 0; i < MOST_POLLED; i++)
        owe(&w, &d[i], 100000);
    pass(&w, PATIENCE_MS + LONG_TURN_US / MS);
    take_turn(&w);
    EXPECT_INT(places(&w), MOST_POLLED);
    EXPECT_INT(look(&w, p), MOST_POLLED);
    for (int i = 0; i < MOST_POLLED; i++)
        outpost_say_at(d[i].server, "+PONG\r\n");
    take_turn(&w);
    for (int i = 0; i < MOST_POLLED; i++)
        EXPECT_INT(d[i].answered, 1);
    EXPECT_INT(places(&w), 0);
    close_ward(&w);
}

/* --- what others ask over its connection ---------------------------------- */

static rl_part *new_leave(ward *w)
{
    rl_part *x = rl_part_new_leave(&w->o.e.core, &play_job, rl_now_us());
    EXPECT(x);
    return x;
}

TEST(keeper_end, asks_at_once_what_nobody_waits_for)
{
    ward w;
    open_idle(&w);
    rl_part *x = new_leave(&w);
    int64_t now_us = rl_now_us();
    rl_keeper_ask(outpost_node(&w.o), x, now_us);
    outpost_expect_asked(&w.o);
    EXPECT(x->ask.tries <= 1 && !x->ask.patient);
    EXPECT_INT(x->ask.until_us, now_us + PLAY_TIMEOUT_MS * MS);
    EXPECT(outpost_take_nudge(&keeper(&w)->watcher)); /* it waits from now on */
    EXPECT_INT(take_turn(&w), x->ask.until_us);
    outpost_say(&w.o, LEFT);
    EXPECT_INT(take_turn(&w), RL_NEVER);
    EXPECT_INT(keeper(&w)->conn->line.pending, 0);
    close_ward(&w);
}

TEST(keeper_end, asks_nothing_for_others_without_a_connection)
{
    ward w;
    rl_fault why;
    open_ward(&w);
    rl_keeper_ask(outpost_node(&w.o), new_leave(&w), rl_now_us());
    EXPECT(!outpost_take_nudge(&keeper(&w)->watcher));
    take_turn(&w);
    rl_conn *c = outpost_give(&w.o);
    take_turn(&w);
    rl_fault_set(&why, RLOCK_EIO, 0, "it broke");
    rl_conn_break(c, &why);
    rl_keeper_ask(outpost_node(&w.o), new_leave(&w), rl_now_us());
    EXPECT(!outpost_take_nudge(&keeper(&w)->watcher));
    EXPECT_STR(outpost_read(&w.o), "");
    close_ward(&w);
}

/* A renewal has not been sent when the lease is over: nothing goes with it. */
TEST(keeper_end, asks_nothing_for_others_behind_what_is_too_late)
{
    ward w;
    open_idle(&w);
    hold(&w, RLOCK_WATCHDOG);
    rl_holds *t = &w.o.e.core.holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_schedule_locked(t, w.h, rl_now_us());
    rl_mutex_unlock(&t->mutex);
    rl_batches_push_due(outpost_node(&w.o), rl_now_us());
    EXPECT_INT(keeper(&w)->conn->line.pending, 1);
    rl_keeper_ask(outpost_node(&w.o), new_leave(&w), w.h->expiry.due_us);
    EXPECT_STR(outpost_read(&w.o), "");
    rl_keeper_ask(outpost_node(&w.o), new_leave(&w), rl_now_us());
    outpost_expect_asked(&w.o);
    close_ward(&w);
}

/* --- the end -------------------------------------------------------------- */

static void stop(ward *w)
{
    rl_holds_stop(&w->o.e.core.holds);
}

/* An acquire was given up, and may have been executed: it is to be undone. */
static void give_one_up(ward *w)
{
    rl_uuid id;
    rl_core *c = &w->o.e.core;
    EXPECT(rl_uuid_new(&id));
    rl_owner_record *room = rl_holds_make_room(&c->holds, &w->p.owner);
    rl_hold *h = rl_draft(c, room, &play_job, &id, LEASE_MS);
    EXPECT(h);
    h->unknown = true;
    rl_give_up(c, h, rl_now_us());
    EXPECT_INT(c->holds.undoing, 1);
}

TEST(keeper_end, ends_at_once_when_there_is_nothing_to_undo)
{
    ward w;
    open_connected(&w);
    hold(&w, RLOCK_WATCHDOG);
    take_turn(&w);
    int server = outpost_peer(&w.o);
    outpost_take_nudge(&keeper(&w)->watcher);
    stop(&w);
    EXPECT(outpost_take_nudge(&keeper(&w)->watcher));
    EXPECT_INT(take_turn(&w), RL_LOOP_LEAVE);
    EXPECT(!keeper(&w)->conn && outpost_is_closed(server));
    close_ward(&w);
}

TEST(keeper_end, undoes_what_is_left_and_ends_then)
{
    ward w;
    open_connected(&w);
    give_one_up(&w);
    stop(&w);
    int64_t us = take_turn(&w);
    EXPECT_BETWEEN(us, w.before_us + MS, w.now_us + MS);
    EXPECT_CONTAINS(outpost_read(&w.o), UNDO);
    take_turn(&w);
    EXPECT_STR(outpost_read(&w.o), "");
    outpost_say(&w.o, YES);
    take_turn(&w);
    EXPECT_INT(w.o.e.core.holds.undoing, 0);
    EXPECT_INT(take_turn(&w), RL_LOOP_LEAVE);
    EXPECT_INT(w.o.e.core.holds.left, 0);
    close_ward(&w);
}

/* A back-off is not waited for, and holds are not renewed. */
TEST(keeper_end, connects_once_more_to_undo_what_is_left)
{
    ward w;
    open_ward(&w);
    hold(&w, RLOCK_WATCHDOG);
    take_turn(&w);
    outpost_refuse(&w.o);
    take_turn(&w);
    EXPECT(!visitor(&w));
    give_one_up(&w);
    stop(&w);
    take_turn(&w);
    EXPECT(visitor(&w));
    rl_visitor *v = visitor(&w);
    EXPECT_BETWEEN(v->until_us, w.before_us + 1000 * MS, w.now_us + 1000 * MS);
    take_turn(&w);
    EXPECT(visitor(&w) == v &&
           !rl_list_next(&outpost_node(&w.o)->connector.own, &v->link));
    outpost_give(&w.o);
    take_turn(&w);
    EXPECT_CONTAINS(outpost_read(&w.o), UNDO);
    EXPECT(!strstr(w.o.said, RENEW));
    close_ward(&w);
}

TEST(keeper_end, has_no_time_for_a_server_that_is_away)
{
    ward w;
    open_ward(&w);
    give_one_up(&w);
    stop(&w);
    take_turn(&w);
    EXPECT(visitor(&w));
    outpost_refuse(&w.o);
    EXPECT_INT(take_turn(&w), RL_LOOP_LEAVE);
    const rl_fault *f = &w.o.e.core.holds.failure;
    EXPECT_CONTAINS(f->text, "it is away");
    EXPECT_STR(f->at, "its server");
    EXPECT_INT(f->status, RLOCK_EIO);
    EXPECT(!visitor(&w) && w.o.e.core.holds.undoing == 1);
    close_ward(&w);
}

TEST(keeper_end, replaces_a_connection_that_has_ended_to_undo_what_is_left)
{
    ward w;
    open_connected(&w);
    give_one_up(&w);
    stop(&w);
    EXPECT_INT(shutdown(outpost_peer(&w.o), SHUT_WR), 0);
    take_turn(&w);
    EXPECT(!keeper(&w)->conn && visitor(&w));
    outpost_give(&w.o);
    take_turn(&w);
    EXPECT_CONTAINS(outpost_read(&w.o), UNDO);
    close_ward(&w);
}

/* It stops after so long, answered or not. */
static void expect_end_after(bool releasing, int64_t ms)
{
    ward w;
    open_connected(&w);
    w.o.e.core.holds.releasing = releasing;
    give_one_up(&w);
    stop(&w);
    take_turn(&w);
    int64_t us = w.now_us;
    pass(&w, ms - LONG_TURN_US / MS);
    int64_t next_us = take_turn(&w);
    EXPECT_BETWEEN(next_us, us, w.now_us + MS);
    pass(&w, LONG_TURN_US / MS);
    EXPECT_INT(take_turn(&w), RL_LOOP_LEAVE);
    EXPECT(!keeper(&w)->conn && outpost_is_closed(outpost_peer(&w.o)));
    EXPECT_INT(w.o.e.core.holds.undoing, 1);
    close_ward(&w);
}

TEST_CASE(keeper_end, tries_to_undo_for_a_second, expect_end_after(false, 1000))
TEST_CASE(keeper_end, what_is_held_is_worth_a_commands_time,
          expect_end_after(true, PLAY_TIMEOUT_MS))

/* --- off the loop, and on it again ---------------------------------------- */

TEST(keeper_end, that_is_dismissed_leaves_with_all_that_it_has)
{
    ward w;
    debt d;
    open_owing(&w, &d, 1000);
    int server = w.o.peers[0];
    outpost_take_nudge(&keeper(&w)->watcher);
    rl_keeper_dismiss(outpost_node(&w.o));
    EXPECT(outpost_take_nudge(&keeper(&w)->watcher));
    EXPECT_INT(take_turn(&w), RL_LOOP_LEAVE);
    EXPECT(!keeper(&w)->conn && outpost_is_closed(server));
    EXPECT(d.failed == 1 && outpost_is_closed(d.server) && places(&w) == 0);
    EXPECT(rl_list_is_empty(&keeper(&w)->owing));
    close_ward(&w);
}

TEST(keeper_end, that_is_dismissed_while_it_is_connected_to_waits_no_longer)
{
    ward w;
    open_ward(&w);
    take_turn(&w);
    rl_keeper_dismiss(outpost_node(&w.o));
    EXPECT_INT(take_turn(&w), RL_LOOP_LEAVE);
    EXPECT(!visitor(&w));
    close_ward(&w);
}

TEST(keeper_end, that_is_dismissed_closes_a_connection_that_has_just_come)
{
    ward w;
    open_ward(&w);
    take_turn(&w);
    outpost_give(&w.o);
    rl_keeper_dismiss(outpost_node(&w.o));
    EXPECT_INT(take_turn(&w), RL_LOOP_LEAVE);
    EXPECT(outpost_is_closed(outpost_peer(&w.o)));
    EXPECT(!keeper(&w)->visitor.conn && !keeper(&w)->conn);
    close_ward(&w);
}

TEST(keeper_end, that_was_dismissed_may_be_started_again_and_connects_at_once)
{
    ward w;
    open_connected(&w);
    rl_keeper_dismiss(outpost_node(&w.o));
    EXPECT_INT(take_turn(&w), RL_LOOP_LEAVE);
    EXPECT(rl_keeper_start(outpost_node(&w.o)));
    EXPECT(keeper(&w)->watcher.in);
    take_turn(&w);
    EXPECT(visitor(&w));
    outpost_give(&w.o);
    take_turn(&w);
    int server = outpost_peer(&w.o);
    rl_keeper_stop(outpost_node(&w.o)); /* there is no loop: it never ran */
    EXPECT(!keeper(&w)->watcher.in && !keeper(&w)->conn);
    EXPECT(outpost_is_closed(server));
    close_ward(&w);
}

/* For the renewals of the first holds there is some, then. */
TEST(keeper_end, that_lacks_memory_is_not_started)
{
    ward w;
    open_ward(&w);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    bool ok = rl_keeper_start(outpost_node(&w.o));
    shim_clear(shim_here());
    EXPECT(!ok && !keeper(&w)->watcher.in);
    EXPECT(rl_keeper_start(outpost_node(&w.o)));
    EXPECT(keeper(&w)->batches > 0);
    rl_keeper_stop(outpost_node(&w.o));
    close_ward(&w);
}
