/*
 * Which connection one gets of a pool, who is served first, and which are closed.
 * Connections lead to sockets that say nothing, and are put into the pool as its
 * dialer would.
 */
#include "route/pool.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"

typedef struct scene {
    rl_pool *p;
    int peers[80], n;
    int troubles, wants;
} scene;

static void note_trouble(void *arg)
{
    ((scene *)arg)->troubles++;
}

static void note_want(void *arg)
{
    ((scene *)arg)->wants++;
}

static void open_scene(scene *s, unsigned limit)
{
    rl_dialer d;
    rl_fault f;
    *s = (scene){.n = 0};
    rl_dialer_init(&d);
    EXPECT_INT(rl_uri_parse(&d.uri, "unix:///nowhere", &f), RLOCK_OK);
    s->p = rl_pool_new(&d, limit);
    EXPECT(s->p);
    s->p->on_trouble = note_trouble;
    s->p->on_want = note_want;
    s->p->arg = s->p->keeps = s;
}

static void close_scene(scene *s)
{
    rl_pool_free(s->p, false);
    for (int i = 0; i < s->n; i++)
        close(s->peers[i]);
}

/* Opened just now, and borrowed; its server has said something. */
static rl_conn *borrowed(scene *s)
{
    int fds[2];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    rl_conn *c = rl_conn_new(rl_plain_transport(fds[0]));
    EXPECT(c);
    s->peers[s->n++] = fds[1];
    c->heard_us = rl_now_us();
    s->p->dialer.met(s->p->dialer.met_arg, c);
    s->p->places++;
    return c;
}

static rl_conn *idle(scene *s)
{
    rl_conn *c = borrowed(s);
    rl_pool_give_back(s->p, c);
    return c;
}

static void answered(rl_slot *slot, const rl_reply *r, int64_t now_us)
{
    (void)slot, (void)r, (void)now_us;
}

static void failed(rl_slot *slot, bool whole, const rl_fault *why,
                   int64_t now_us)
{
    (void)slot, (void)whole, (void)why, (void)now_us;
}

/* So many answers are owed on it. */
static void owe(rl_conn *c, rl_slot *slots, int n)
{
    for (int i = 0; i < n; i++) {
        slots[i] = (rl_slot){.answered = answered, .failed = failed};
        rl_put_array(rl_line_begin(&c->line), 1);
        rl_put_text(rl_line_begin(&c->line), "PING");
        EXPECT(rl_line_push(&c->line, &slots[i]));
    }
    rl_conn_send(c);
    EXPECT_INT(c->line.pending, n);
}

static bool is_idle(const scene *s, const rl_conn *c)
{
    for (rl_link *k = rl_list_first(&s->p->idle); k;
         k = rl_list_next(&s->p->idle, k))
        if (RL_CONTAINER(k, rl_conn, idle) == c)
            return true;
    return false;
}

static rl_conn *borrow(scene *s)
{
    rl_conn *c;
    rl_fault f;
    EXPECT_INT(rl_pool_borrow(s->p, rl_now_us(), &c, &f), RLOCK_OK);
    return c;
}

/* --- which ---------------------------------------------------------------------- */

TEST(pool, the_one_used_last_is_the_first)
{
    scene s;
    open_scene(&s, 3);
    rl_conn *a = idle(&s), *b = idle(&s);
    EXPECT_INT(s.p->places, 0);
    EXPECT(borrow(&s) == b && borrow(&s) == a);
    EXPECT_INT(s.p->places, 2);
    EXPECT_INT(s.wants, 0);
    close_scene(&s);
}

TEST(pool, one_that_is_asked_for_comes_if_it_is_there)
{
    scene s;
    open_scene(&s, 3);
    rl_conn *a = idle(&s), *b = idle(&s);
    EXPECT(rl_pool_borrow_idle(s.p, &a->line) == a);
    EXPECT(rl_pool_borrow_idle(s.p, &a->line) == b);
    EXPECT(!rl_pool_borrow_idle(s.p, &a->line));
    EXPECT(s.p->places == 2 && s.wants == 1);
    close_scene(&s);
}

TEST(pool, without_a_place_there_is_none)
{
    scene s;
    open_scene(&s, 1);
    rl_conn *a = idle(&s), *c = NULL;
    rl_fault f;
    EXPECT(borrow(&s) == a && !rl_pool_has_room(s.p));
    rl_pool_give_back(s.p, borrowed(&s)); /* one is idle, but that is all */
    s.p->places = 1;
    EXPECT(!rl_pool_borrow_idle(s.p, NULL));
    EXPECT_INT(rl_pool_borrow(s.p, rl_now_us() - 1, &c, &f), RLOCK_EIO);
    EXPECT_STR(f.text, "all 1 connections are in use");
    EXPECT(f.sys_errno == EBUSY && s.p->places == 1);
    EXPECT(!rl_pool_is_wanted(s.p));
    rl_pool_leave_place(s.p);
    EXPECT(rl_pool_has_room(s.p));
    close_scene(&s);
}

/* What owes answers is for who says so. */
TEST(pool, one_that_owes_answers_is_passed_over)
{
    scene s;
    rl_slot slot;
    open_scene(&s, 4);
    rl_conn *a = idle(&s), *b = borrowed(&s);
    owe(b, &slot, 1);
    rl_pool_give_back(s.p, b);
    EXPECT(is_idle(&s, b) && borrow(&s) == a);
    EXPECT(rl_pool_borrow_idle(s.p, NULL) == b);
    close_scene(&s);
}

/* What it owes may be a WAIT, until whose end its server reads nothing else. */
TEST(pool, who_takes_also_what_owes_answers_gets_what_owes_none_first)
{
    scene s;
    rl_slot slot;
    open_scene(&s, 4);
    rl_conn *used_first = idle(&s), *used_last = idle(&s), *b = borrowed(&s);
    owe(b, &slot, 1);
    rl_pool_give_back(s.p, b);
    EXPECT(rl_pool_borrow_idle(s.p, NULL) == used_last);
    EXPECT(rl_pool_borrow_idle(s.p, NULL) == used_first);
    EXPECT(rl_pool_borrow_idle(s.p, NULL) == b);
    close_scene(&s);
}

static void expect_used(int owed, bool used)
{
    scene s;
    rl_slot slots[70];
    open_scene(&s, 4);
    rl_conn *c = borrowed(&s);
    owe(c, slots, owed);
    rl_pool_give_back(s.p, c);
    EXPECT(rl_pool_borrow_idle(s.p, &c->line) == (used ? c : NULL));
    EXPECT_INT(is_idle(&s, c), !used);
    close_scene(&s);
}

TEST_CASE(pool, one_that_owes_many_answers_is_asked_more, expect_used(63, true))
TEST_CASE(pool, one_that_owes_too_many_is_not, expect_used(64, false))

TEST(pool, what_has_owed_for_long_is_found)
{
    scene s;
    rl_slot slots[2];
    int64_t next_us;
    open_scene(&s, 4);
    rl_conn *a = borrowed(&s), *b = borrowed(&s), *c = idle(&s);
    owe(a, &slots[0], 1);
    owe(b, &slots[1], 1);
    rl_pool_give_back(s.p, a);
    rl_pool_give_back(s.p, b);
    a->rested_us = 100;
    b->rested_us = 200;
    c->rested_us = 50;
    EXPECT(!rl_pool_borrow_owing(s.p, 99, &next_us) && next_us == 100);
    EXPECT_INT(s.p->places, 0);
    EXPECT(rl_pool_borrow_owing(s.p, 100, &next_us) == a && next_us == 200);
    EXPECT_INT(s.p->places, 1);
    EXPECT(rl_pool_borrow_owing(s.p, 300, &next_us) == b);
    EXPECT_INT(next_us, RL_NEVER);
    EXPECT(!rl_pool_borrow_owing(s.p, 300, &next_us) && is_idle(&s, c));
    close_scene(&s);
}

/* --- who ------------------------------------------------------------------------ */

static bool is_raised(const rl_signal *signal)
{
    struct pollfd p = {.fd = signal->fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

TEST(pool, who_came_first_is_served_first)
{
    scene s;
    rl_claim t[2];
    rl_signal signal[2];
    rl_conn *got;
    open_scene(&s, 1);
    rl_conn *c = borrowed(&s);
    for (int i = 0; i < 2; i++) {
        EXPECT(rl_signal_init(&signal[i]));
        EXPECT(rl_pool_line_up(s.p, &t[i], &signal[i]));
    }
    EXPECT(rl_pool_is_wanted(s.p) && s.wants == 2);
    EXPECT(!rl_pool_take_claim(s.p, &t[0], NULL, &got) && !got);
    rl_pool_give_back(s.p, c);
    EXPECT(is_raised(&signal[0]) && !is_raised(&signal[1]));
    EXPECT(!rl_pool_take_claim(s.p, &t[1], NULL, &got) && !got);
    EXPECT(rl_pool_take_claim(s.p, &t[0], NULL, &got) && got == c);
    EXPECT(s.p->places == 1 && rl_pool_is_wanted(s.p));
    rl_pool_leave_line(s.p, &t[1]);
    EXPECT(!rl_pool_is_wanted(s.p));
    rl_pool_give_back(s.p, c);
    EXPECT(is_idle(&s, c) && s.p->places == 0);
    for (int i = 0; i < 2; i++)
        rl_signal_fini(&signal[i]);
    close_scene(&s);
}

TEST(pool, who_leaves_with_what_has_come_passes_it_on)
{
    scene s;
    rl_claim t[2];
    rl_signal signal;
    rl_conn *got;
    open_scene(&s, 1);
    rl_conn *c = borrowed(&s);
    EXPECT(rl_signal_init(&signal));
    EXPECT(rl_pool_line_up(s.p, &t[0], &signal));
    EXPECT(rl_pool_line_up(s.p, &t[1], &signal));
    rl_pool_give_back(s.p, c);
    rl_pool_leave_line(s.p, &t[0]);
    EXPECT(rl_pool_take_claim(s.p, &t[1], NULL, &got) && got == c);
    rl_pool_give_back(s.p, c);
    EXPECT(s.p->places == 0 && !rl_pool_is_wanted(s.p));
    rl_signal_fini(&signal);
    close_scene(&s);
}

/* Who comes with a place alone may open one, or finds one that is idle. */
TEST(pool, a_place_may_come_without_a_connection)
{
    scene s;
    rl_claim t;
    rl_signal signal;
    rl_conn *got;
    open_scene(&s, 1);
    rl_conn *c = borrowed(&s);
    EXPECT(rl_signal_init(&signal));
    EXPECT(rl_pool_line_up(s.p, &t, &signal));
    rl_pool_leave_place(s.p); /* c is its keeper's */
    EXPECT(rl_pool_take_claim(s.p, &t, NULL, &got) && !got);
    EXPECT(s.p->places == 0);
    s.p->places = 1;
    EXPECT(rl_pool_line_up(s.p, &t, &signal));
    rl_list_add_first(&s.p->idle, &c->idle);
    rl_pool_leave_place(s.p);
    EXPECT(rl_pool_take_claim(s.p, &t, NULL, &got) && got == c);
    EXPECT(s.p->places == 1);
    EXPECT(!is_idle(&s, c));
    rl_signal_fini(&signal);
    close_scene(&s);
}

TEST(pool, where_there_is_room_there_is_no_line)
{
    scene s;
    rl_claim t;
    open_scene(&s, 1);
    EXPECT(!rl_pool_line_up(s.p, &t, NULL));
    EXPECT(!rl_pool_is_wanted(s.p) && s.wants == 0);
    rl_pool_leave_line(s.p, &t);
    EXPECT_INT(s.p->places, 0);
    close_scene(&s);
}

/* --- what is closed ---------------------------------------------------------------- */

static void expect_closed(scene *s, rl_conn *c, int troubles, unsigned broken)
{
    rl_pool_give_back(s->p, c);
    EXPECT(rl_list_is_empty(&s->p->open) && rl_list_is_empty(&s->p->idle));
    EXPECT_INT(s->p->places, 0);
    EXPECT_INT(s->troubles, troubles);
    EXPECT_INT(s->p->broken, broken);
    EXPECT_INT(atomic_load(&s->p->last_trouble_us) > 0, broken > 0);
    close_scene(s);
}

TEST(pool, one_that_broke_is_closed_and_told)
{
    scene s;
    open_scene(&s, 1);
    rl_conn *c = borrowed(&s);
    rl_conn_break(c, &(rl_fault){.status = RLOCK_EIO});
    expect_closed(&s, c, 1, 1);
}

/* Its server says that it is not the one. */
TEST(pool, one_that_was_retired_is_closed_and_told)
{
    scene s;
    open_scene(&s, 1);
    rl_conn *c = borrowed(&s);
    c->line.retired = true;
    expect_closed(&s, c, 1, 0);
}

TEST(pool, one_whose_login_runs_out_is_closed)
{
    scene s;
    open_scene(&s, 1);
    rl_conn *c = borrowed(&s);
    c->expires_us = rl_now_us();
    expect_closed(&s, c, 0, 0);
}

TEST(pool, one_that_is_not_identified_is_closed_where_it_has_to_be)
{
    scene s;
    atomic_bool only = true;
    open_scene(&s, 1);
    s.p->identified_only = &only;
    expect_closed(&s, borrowed(&s), 0, 0);
}

TEST(pool, one_that_has_not_sent_all_is_closed)
{
    scene s;
    open_scene(&s, 1);
    rl_conn *c = borrowed(&s);
    rl_put_raw(rl_line_begin(&c->line), "x", 1);
    EXPECT(rl_line_push(&c->line, NULL));
    expect_closed(&s, c, 1, 1);
}

TEST(pool, one_that_has_half_a_reply_is_closed)
{
    scene s;
    open_scene(&s, 1);
    rl_conn *c = borrowed(&s);
    EXPECT(rl_line_feed(&c->line, "$5\r\nhal", 7, 0));
    expect_closed(&s, c, 1, 1);
}

/* The server has hung up meanwhile: it is looked at when nothing has come for
   long, or another one broke since. */
static void expect_looked_at(int64_t heard_ms_ago, int64_t trouble_ms_ago,
                             bool looked_at)
{
    scene s;
    int64_t now_us = rl_now_us();
    open_scene(&s, 1);
    rl_conn *c = idle(&s);
    c->heard_us = now_us - heard_ms_ago * 1000;
    atomic_store(&s.p->last_trouble_us, now_us - trouble_ms_ago * 1000);
    EXPECT_INT(rl_pool_trusts(s.p, c, now_us), !looked_at);
    close(s.peers[--s.n]);
    EXPECT_INT(rl_pool_borrow_idle(s.p, NULL) == NULL, looked_at);
    close_scene(&s);
}

TEST_CASE(pool, one_of_which_something_came_is_not_looked_at,
          expect_looked_at(500, 600, false))
TEST_CASE(pool, one_of_which_nothing_has_come_is_looked_at,
          expect_looked_at(1000, 60000, true))
TEST_CASE(pool, one_that_is_older_than_a_trouble_is_looked_at,
          expect_looked_at(500, 400, true))
TEST_CASE(pool, one_that_is_as_old_as_a_trouble_is_looked_at,
          expect_looked_at(500, 500, true))

/* Nobody said so to the others: the host had no power for a moment, perhaps. */
static void expect_lost(int sys_errno, int64_t heard_ms_ago, bool lost)
{
    scene s;
    int64_t now_us = rl_now_us();
    open_scene(&s, 4);
    rl_conn *c = borrowed(&s), *other = borrowed(&s);
    c->made_us = other->made_us = now_us - 60000000;
    other->heard_us = now_us - heard_ms_ago * 1000;
    rl_pool_give_back(s.p, other);
    rl_conn_break(c, &(rl_fault){.status = RLOCK_EIO, .sys_errno = sys_errno});
    rl_pool_give_back(s.p, c);
    rl_conn *next = rl_pool_borrow_idle(s.p, NULL);
    EXPECT(next == (lost ? NULL : other));
    EXPECT_INT(s.troubles, 1);
    if (next)
        rl_pool_give_back(s.p, next);
    close_scene(&s);
}

TEST_CASE(pool, when_one_was_reset_those_as_old_are_made_anew,
          expect_lost(ECONNRESET, 30000, true))
TEST_CASE(pool, when_one_could_not_be_written_to_those_as_old_are_made_anew,
          expect_lost(EPIPE, 30000, true))
TEST_CASE(pool, when_one_was_reset_those_that_were_heard_since_are_good,
          expect_lost(ECONNRESET, -1000, false))
TEST_CASE(pool, when_one_failed_otherwise_the_others_are_good,
          expect_lost(ETIMEDOUT, 30000, false))

/* It may have been given back long after that. */
TEST(pool, one_made_between_a_reset_and_its_being_noticed_is_good)
{
    scene s;
    open_scene(&s, 4);
    rl_conn *c = borrowed(&s);
    rl_line_fail(&c->line, &(rl_fault){.status = RLOCK_EIO, .sys_errno = EPIPE},
                 rl_now_us() - 2000000);
    rl_conn *next = borrowed(&s);
    next->made_us = next->heard_us = rl_now_us() - 1000000;
    rl_pool_give_back(s.p, next);
    rl_pool_give_back(s.p, c);
    EXPECT(rl_pool_borrow_idle(s.p, NULL) == next);
    close_scene(&s);
}

/* --- a sign of life --------------------------------------------------------- */

static void *answer_a_ping(void *peer)
{
    char text[64];
    struct pollfd p = {.fd = *(int *)peer, .events = POLLIN};
    EXPECT_INT(poll(&p, 1, SOON), 1);
    EXPECT_INT(read(p.fd, text, sizeof text), 14);
    EXPECT_INT(write(p.fd, "+PONG\r\n", 7), 7);
    return NULL;
}

/* Two that are idle; with the one that comes first its server has ended. */
TEST(pool, who_asks_for_a_sign_of_life_asks_once_more_where_one_was_lost)
{
    scene s;
    rl_fault f = {0};
    pthread_t server;
    open_scene(&s, 4);
    idle(&s)->heard_us = rl_now_us() + 5000000; /* it has not been lost */
    rl_conn *lost = idle(&s);
    EXPECT_INT(shutdown(lost->io.fd, SHUT_WR), 0);
    EXPECT_INT(pthread_create(&server, NULL, answer_a_ping, &s.peers[0]), 0);
    lost->heard_us = rl_now_us();
    EXPECT_INT(rl_pool_ping(s.p, rl_now_us() + 5000000, &f), RLOCK_OK);
    EXPECT_INT(pthread_join(server, NULL), 0);
    EXPECT(s.troubles == 1 && s.p->places == 0);
    close_scene(&s);
}

/* Then it was not lost while it rested. */
TEST(pool, who_is_cut_off_on_a_new_one_asks_no_more)
{
    scene s;
    rl_fault f = {0};
    open_scene(&s, 4);
    rl_conn *other = idle(&s), *made = idle(&s);
    other->heard_us = rl_now_us() + 5000000;
    made->rested_us = 0;
    EXPECT_INT(shutdown(made->io.fd, SHUT_WR), 0);
    EXPECT_INT(rl_pool_ping(s.p, rl_now_us() + 5000000, &f), RLOCK_EIO);
    EXPECT_INT(f.sys_errno, EPIPE);
    EXPECT(is_idle(&s, other));
    close_scene(&s);
}

TEST(pool, who_gets_no_sign_of_life_in_time_asks_no_more)
{
    scene s;
    rl_fault f = {0};
    open_scene(&s, 4);
    idle(&s);
    rl_conn *silent = idle(&s);
    EXPECT_INT(rl_pool_ping(s.p, rl_now_us() + 20000, &f), RLOCK_EIO);
    EXPECT_INT(f.sys_errno, ETIMEDOUT);
    EXPECT(s.troubles == 1 && !is_idle(&s, silent));
    close_scene(&s);
}

/* --- another master ---------------------------------------------------------------- */

TEST(pool, what_leads_to_a_master_before_is_shut)
{
    scene s;
    rl_slot slot;
    char byte;
    open_scene(&s, 4);
    rl_conn *old = borrowed(&s), *owing = borrowed(&s), *good = borrowed(&s);
    rl_conn *resting = borrowed(&s);
    owe(owing, &slot, 1);
    old->nth = owing->nth = resting->nth = 1;
    good->nth = 2;
    rl_pool_give_back(s.p, owing);
    rl_pool_give_back(s.p, resting);
    rl_pool_forsake(s.p, 2);
    EXPECT(atomic_load(&old->forsaken) && atomic_load(&owing->forsaken));
    EXPECT(!atomic_load(&good->forsaken));
    EXPECT(is_idle(&s, owing) && !is_idle(&s, resting) && s.wants == 1);
    EXPECT_INT(recv(s.peers[0], &byte, 1, 0), 0);
    EXPECT(recv(s.peers[2], &byte, 1, MSG_DONTWAIT) < 0);
    EXPECT_INT(recv(s.peers[3], &byte, 1, 0), 0);
    rl_pool_give_back(s.p, old);
    EXPECT(s.troubles == 0 && !is_idle(&s, old));
    rl_pool_give_back(s.p, good);
    EXPECT(is_idle(&s, good) && s.p->places == 0);
    close_scene(&s);
}

/* It is in the list before it is there for anybody. */
TEST(pool, one_that_is_made_for_a_master_before_is_shut_at_once)
{
    scene s;
    open_scene(&s, 4);
    rl_pool_forsake(s.p, 2);
    rl_conn *c = borrowed(&s);
    EXPECT(atomic_load(&c->forsaken));
    close_scene(&s);
}

TEST(pool, where_nobody_is_a_trouble_is_told)
{
    scene s;
    rl_conn *c;
    rl_fault f;
    open_scene(&s, 1);
    EXPECT_INT(rl_pool_borrow(s.p, rl_after_ms(rl_now_us(), SOON), &c, &f),
               RLOCK_EIO);
    EXPECT(!c && s.troubles == 1 && s.p->places == 0 && s.wants == 1);
    EXPECT_STR(s.p->server, "unix:///nowhere");
    close_scene(&s);
}
