/*
 * When a keeper connects, asks, backs off and looks again. The test has its turns,
 * makes its connections, and is its server.
 */
#include "ward.h"

#define SIGN "\r\nPEXPIRE\r\n"

/* It has its turn, and wants to have the next one in so many ms. */
static void expect_next(ward *w, int64_t ms)
{
    int64_t us = take_turn(w);
    EXPECT_BETWEEN(us, w->before_us + ms * MS - LONG_TURN_US,
                   w->now_us + ms * MS);
}

/* --- a connection --------------------------------------------------------- */

/* The first renewal is not to wait for it. */
TEST(keeper, connects_at_first_though_nothing_is_held)
{
    ward w;
    open_ward(&w);
    EXPECT_INT(take_turn(&w), RL_NEVER);
    rl_visitor *v = visitor(&w);
    EXPECT(v && v->own && v->signal == &w.o.e.loop.signal);
    EXPECT_BETWEEN(v->until_us, w.before_us + PLAY_TIMEOUT_MS * MS,
                   w.now_us + PLAY_TIMEOUT_MS * MS);
    EXPECT(keeper(&w)->watcher.called); /* the connector's signal is for it */
    struct pollfd p = {.fd = 0};
    EXPECT_INT(keeper(&w)->watcher.look(&keeper(&w)->watcher, &p, 1), 1);
    EXPECT(p.fd < 0); /* it has nothing to be polled */
    rl_conn *c = outpost_give(&w.o);
    EXPECT_INT(take_turn(&w), RL_NEVER);
    EXPECT(keeper(&w)->conn == c && !visitor(&w));
    EXPECT(!keeper(&w)->watcher.called);
    close_ward(&w);
}

TEST(keeper, that_cannot_connect_does_not_try_again_while_nothing_is_held)
{
    ward w;
    open_ward(&w);
    take_turn(&w);
    outpost_refuse(&w.o);
    EXPECT_INT(take_turn(&w), RL_NEVER);
    pass(&w, 5000);
    EXPECT_INT(take_turn(&w), RL_NEVER);
    EXPECT(!visitor(&w) && !keeper(&w)->conn);
    close_ward(&w);
}

TEST(keeper, asks_for_a_connection_once)
{
    ward w;
    open_ward(&w);
    hold(&w, LEASE_MS);
    take_turn(&w);
    rl_visitor *v = visitor(&w);
    rl_list *all = &outpost_node(&w.o)->connector.own;
    expect_next(&w, RL_WATCH_US / MS);
    EXPECT(visitor(&w) == v && !rl_list_next(all, &v->link));
    close_ward(&w);
}

/* Where nobody gets another one by now, a password having been changed perhaps,
   it is what there is to renew with. */
TEST(keeper, keeps_its_connection_when_the_server_has_lost_another_one)
{
    ward w;
    open_connected(&w);
    hold(&w, RLOCK_WATCHDOG);
    rl_conn *mine = keeper(&w)->conn;
    pass(&w, PLAY_LEASE_MS / 3 + 1);
    outpost_lose_another(&w.o, rl_now_us());
    take_turn(&w);
    EXPECT(keeper(&w)->conn == mine && !visitor(&w));
    EXPECT_CONTAINS(outpost_read(&w.o), RENEW);
    close_ward(&w);
}

TEST(keeper, asks_for_a_sign_of_life_when_the_server_has_lost_another_one)
{
    ward w;
    open_connected(&w);
    hold(&w, RLOCK_WATCHDOG);
    take_turn(&w);
    outpost_read(&w.o);
    pass(&w, 100);
    outpost_lose_another(&w.o, rl_now_us());
    take_turn(&w);
    EXPECT_CONTAINS(outpost_read(&w.o), SIGN);
    close_ward(&w);
}

TEST(keeper, that_has_connected_tells_its_doorbell)
{
    ward w;
    open_ward(&w);
    hold(&w, LEASE_MS);
    take_turn(&w);
    EXPECT(rl_keeper_is_cut_off(keeper(&w)));
    rl_watcher *doorbell = &outpost_node(&w.o)->doorbell.watcher;
    outpost_refuse(&w.o);
    int64_t us = take_turn(&w);
    EXPECT(!outpost_take_nudge(doorbell));
    pass(&w, (us - rl_now_us()) / MS + 1);
    take_turn(&w);
    outpost_give(&w.o);
    take_turn(&w);
    EXPECT(!rl_keeper_is_cut_off(keeper(&w)));
    EXPECT(outpost_take_nudge(doorbell));
    close_ward(&w);
}

/* --- while the server is away --------------------------------------------- */

/* The connector fails; then nobody visits it for so long, but a jitter. */
static void expect_pause(ward *w, int64_t pause_us)
{
    EXPECT(visitor(w));
    outpost_refuse(&w->o);
    int64_t us = take_turn(w);
    EXPECT_BETWEEN(us, w->before_us + pause_us * 3 / 5, w->now_us + pause_us);
    EXPECT(!visitor(w));
    pass(w, (us - rl_now_us()) / MS - 1);
    int64_t again_us = take_turn(w);
    EXPECT(w->before_us >= us || (again_us == us && !visitor(w)));
    pass(w, 3);
    take_turn(w);
}

static void expect_pauses(int64_t lease_ms, int64_t longest_us)
{
    ward w;
    open_ward(&w);
    w.o.e.core.set.watchdog_lease_ms = lease_ms;
    EXPECT_INT(rl_keeper_longest_pause_us(outpost_node(&w.o)), longest_us);
    hold(&w, 60000);
    take_turn(&w);
    for (int64_t us = 10 * MS; us < 2 * longest_us; us *= 2)
        expect_pause(&w, rl_min(us, longest_us));
    expect_pause(&w, longest_us);
    close_ward(&w);
}

TEST_CASE(keeper, its_pauses_grow_up_to_a_second, expect_pauses(30000, 1000000))
TEST_CASE(keeper, its_pauses_are_short_against_the_lease,
          expect_pauses(3000, 250000))

TEST(keeper, that_is_told_of_another_server_pauses_no_longer)
{
    ward w;
    open_ward(&w);
    hold(&w, LEASE_MS);
    take_turn(&w);
    for (int64_t us = 10 * MS; us < 200 * MS; us *= 2)
        expect_pause(&w, us);
    outpost_refuse(&w.o);
    take_turn(&w);
    EXPECT(!visitor(&w));
    outpost_take_nudge(&keeper(&w)->watcher);
    rl_keeper_hurry(outpost_node(&w.o));
    EXPECT(outpost_take_nudge(&keeper(&w)->watcher));
    take_turn(&w);
    expect_pause(&w, 10 * MS);
    expect_pause(&w, 20 * MS); /* it was told once */
    close_ward(&w);
}

TEST(keeper, what_is_due_while_the_server_is_away_has_failed_and_is_tried_again)
{
    ward w;
    open_ward(&w);
    hold(&w, RLOCK_WATCHDOG);
    take_turn(&w);
    pass(&w, PLAY_LEASE_MS / 3 + 1);
    take_turn(&w);
    EXPECT_INT(count(&w.o.e.core.stats.renew_failures), 0);
    expect_pause(&w, 10 * MS);
    EXPECT_INT(count(&w.o.e.core.stats.renew_failures), 1);
    outpost_give(&w.o);
    take_turn(&w);
    EXPECT_CONTAINS(outpost_read(&w.o), RENEW);
    EXPECT_INT(w.h->state, RL_HELD);
    close_ward(&w);
}

/* --- what is due ---------------------------------------------------------- */

/* A renewal is due, and the server has just said something. */
static void pass_until_due(ward *w)
{
    pass(w, PLAY_LEASE_MS / 3 + 1);
    keeper(w)->conn->heard_us = rl_now_us();
}

static void open_renewing(ward *w)
{
    open_connected(w);
    hold(w, RLOCK_WATCHDOG);
    take_turn(w);
    pass_until_due(w);
    take_turn(w);
    EXPECT_CONTAINS(outpost_read(&w->o), RENEW);
}

TEST(keeper, renews_in_time_and_sleeps_until_the_next)
{
    ward w;
    open_connected(&w);
    hold(&w, RLOCK_WATCHDOG);
    EXPECT(outpost_take_nudge(&keeper(&w)->watcher)); /* it slept for ever */
    expect_next(&w, RL_WATCH_US / MS);
    EXPECT_STR(outpost_read(&w.o), "");
    pass_until_due(&w);
    take_turn(&w);
    EXPECT_CONTAINS(outpost_read(&w.o), RENEW);
    outpost_say(&w.o, YES);
    expect_next(&w, RL_WATCH_US / MS);
    EXPECT_INT(count(&w.o.e.core.stats.renewals), 1);
    EXPECT_BETWEEN(w.h->expiry.due_us - w.now_us,
                   GOOD_US(PLAY_LEASE_MS) - LONG_TURN_US,
                   GOOD_US(PLAY_LEASE_MS));
    close_ward(&w);
}

/* Who puts something there knows whether it has to be woken. */
TEST(keeper, says_until_when_it_sleeps)
{
    ward w;
    open_connected(&w);
    const rl_due_queue *q = outpost_node(&w.o)->queue;
    EXPECT_INT(q->sleeps_us, RL_NEVER);
    hold(&w, LEASE_MS);
    int64_t us = take_turn(&w);
    EXPECT(q->sleeps_us == us && q->look_us == us);
    close(outpost_peer(&w.o));
    w.o.n--;
    us = take_turn(&w);
    EXPECT(!keeper(&w)->conn && q->sleeps_us == us);
    close_ward(&w);
}

TEST(keeper, a_renewal_that_is_due_sooner_than_a_sign_is_slept_for)
{
    ward w;
    open_connected(&w);
    w.o.e.core.holds.renewal_ms = 1500;
    w.o.e.core.set.watchdog_lease_ms = 1500;
    hold(&w, RLOCK_WATCHDOG);
    expect_next(&w, 500);
    close_ward(&w);
}

/* Who knows of other servers is told then. */
TEST(keeper, that_is_not_answered_wakes_when_that_is_alarming)
{
    ward w;
    open_connected(&w);
    w.o.e.core.holds.renewal_ms = 1500;
    hold(&w, RLOCK_WATCHDOG);
    take_turn(&w);
    pass(&w, 501);
    int64_t us = take_turn(&w);
    EXPECT_CONTAINS(outpost_read(&w.o), RENEW);
    EXPECT_BETWEEN(us, w.before_us + 150 * MS, w.now_us + 150 * MS);
    close_ward(&w);
}

TEST(keeper, that_is_not_answered_in_time_gives_the_connection_up)
{
    ward w;
    open_renewing(&w);
    int64_t asked_us = w.now_us;
    int server = outpost_peer(&w.o);
    pass(&w, PLAY_TIMEOUT_MS - LONG_TURN_US / MS);
    int64_t us = take_turn(&w);
    EXPECT_BETWEEN(us, asked_us + PLAY_TIMEOUT_MS * MS - LONG_TURN_US,
                   asked_us + PLAY_TIMEOUT_MS * MS);
    EXPECT(keeper(&w)->conn && !outpost_is_closed(server));
    pass(&w, LONG_TURN_US / MS);
    us = take_turn(&w);
    EXPECT(!keeper(&w)->conn && outpost_is_closed(server));
    EXPECT_BETWEEN(us, w.before_us + 6 * MS, w.now_us + 10 * MS);
    EXPECT_INT(count(&w.o.e.core.stats.renew_failures), 1);
    pass(&w, 11);
    take_turn(&w);
    outpost_give(&w.o);
    take_turn(&w);
    EXPECT_CONTAINS(outpost_read(&w.o), RENEW);
    close_ward(&w);
}

/* Its answers are worth something again. */
TEST(keeper, an_answer_makes_the_next_pause_a_short_one)
{
    ward w;
    open_ward(&w);
    hold(&w, RLOCK_WATCHDOG);
    take_turn(&w);
    for (int64_t us = 10 * MS; us < 200 * MS; us *= 2)
        expect_pause(&w, us);
    outpost_give(&w.o);
    pass(&w, PLAY_LEASE_MS / 3);
    take_turn(&w);
    EXPECT_CONTAINS(outpost_read(&w.o), RENEW);
    outpost_say(&w.o, YES);
    take_turn(&w);
    close(outpost_peer(&w.o));
    w.o.n--;
    int64_t us = take_turn(&w);
    EXPECT_BETWEEN(us, w.before_us + 6 * MS, w.now_us + 10 * MS);
    close_ward(&w);
}

/* What a server that hangs takes nothing of. */
static ssize_t take_nothing(rl_transport *t, const char *bytes, size_t n,
                            rl_fault *f)
{
    (void)t, (void)bytes, (void)n, (void)f;
    return 0;
}

static ssize_t bring_nothing(rl_transport *t, char *bytes, size_t room,
                             rl_fault *f)
{
    (void)t, (void)bytes, (void)room, (void)f;
    return 0;
}

static void close_socket(rl_transport *t)
{
    close(t->fd);
}

TEST(keeper, what_cannot_be_sent_before_its_deadline_is_not_sent_later)
{
    static const rl_transport_ops hangs = {take_nothing, bring_nothing,
                                           close_socket};
    ward w;
    open_connected(&w);
    hold(&w, RLOCK_WATCHDOG);
    w.o.e.core.set.command_timeout_ms = 60000;
    w.o.e.core.set.watchdog_lease_ms = 360000; /* it is patient, too */
    keeper(&w)->conn->io.ops = &hangs;
    pass_until_due(&w);
    take_turn(&w);
    EXPECT_INT(keeper(&w)->conn->line.pending, 1);
    pass(&w, PLAY_LEASE_MS * 2 / 3 - PLAY_LEASE_MS / 100 - 1000);
    take_turn(&w);
    EXPECT(keeper(&w)->conn);
    pass(&w, 1000);
    take_turn(&w);
    EXPECT(!keeper(&w)->conn);
    close_ward(&w);
}

/* --- the connection's end ------------------------------------------------- */

TEST(keeper, replaces_a_connection_that_ends_while_something_is_held)
{
    ward w;
    open_connected(&w);
    hold(&w, LEASE_MS);
    take_turn(&w);
    close(outpost_peer(&w.o));
    w.o.n--;
    int64_t us = take_turn(&w);
    EXPECT(!keeper(&w)->conn && !visitor(&w));
    EXPECT_BETWEEN(us, w.before_us + 6 * MS, w.now_us + 10 * MS);
    pass(&w, 11);
    take_turn(&w);
    EXPECT(visitor(&w));
    close_ward(&w);
}

TEST(keeper, replaces_none_while_nothing_is_held)
{
    ward w;
    open_connected(&w);
    close(outpost_peer(&w.o));
    w.o.n--;
    EXPECT_INT(take_turn(&w), RL_NEVER);
    pass(&w, 1000);
    EXPECT_INT(take_turn(&w), RL_NEVER);
    EXPECT(!keeper(&w)->conn && !visitor(&w));
    close_ward(&w);
}

/* poll() had not told that when the turn began. */
TEST(keeper, asks_nothing_over_a_connection_that_has_ended)
{
    ward w;
    open_connected(&w);
    hold(&w, RLOCK_WATCHDOG);
    take_turn(&w);
    pass_until_due(&w);
    close(outpost_peer(&w.o));
    w.o.n--;
    rl_watcher *k = &keeper(&w)->watcher;
    int64_t before_us = rl_now_us(), us = k->turn(k, before_us);
    EXPECT(!keeper(&w)->conn && !visitor(&w));
    EXPECT_BETWEEN(us, before_us + 6 * MS, rl_now_us() + 10 * MS);
    EXPECT_INT(count(&w.o.e.core.stats.renew_failures), 0);
    close_ward(&w);
}

TEST(keeper, replaces_a_connection_whose_login_is_old_at_once)
{
    ward w;
    open_connected(&w);
    int server = outpost_peer(&w.o);
    keeper(&w)->conn->expires_us = rl_now_us() + 5000 * MS;
    EXPECT_INT(take_turn(&w), keeper(&w)->conn->expires_us);
    EXPECT(keeper(&w)->conn);
    pass(&w, 5000);
    take_turn(&w);
    EXPECT(outpost_is_closed(server));
    EXPECT(!keeper(&w)->conn && visitor(&w));
    outpost_give(&w.o);
    EXPECT_INT(take_turn(&w), RL_NEVER);
    EXPECT(keeper(&w)->conn);
    close_ward(&w);
}

TEST(keeper, an_old_login_is_good_for_what_is_under_way)
{
    ward w;
    open_renewing(&w);
    keeper(&w)->conn->expires_us = rl_now_us();
    take_turn(&w);
    EXPECT(keeper(&w)->conn && !visitor(&w));
    outpost_say(&w.o, YES);
    take_turn(&w);
    EXPECT_INT(count(&w.o.e.core.stats.renewals), 1);
    take_turn(&w);
    EXPECT(!keeper(&w)->conn && visitor(&w));
    close_ward(&w);
}

/* --- a sign of life ------------------------------------------------------- */

TEST(keeper, looks_after_a_silent_server_while_something_is_held)
{
    ward w;
    open_connected(&w);
    hold(&w, LEASE_MS);
    expect_next(&w, RL_WATCH_US / MS);
    EXPECT_STR(outpost_read(&w.o), "");
    pass(&w, RL_WATCH_US / MS + 1);
    take_turn(&w);
    EXPECT_CONTAINS(outpost_read(&w.o), SIGN);
    outpost_say(&w.o, NO);
    int64_t us = take_turn(&w);
    EXPECT_INT(us, keeper(&w)->conn->heard_us + RL_WATCH_US);
    EXPECT_INT(outpost_node(&w.o)->queue->look_us, us);
    EXPECT_STR(outpost_read(&w.o), "");
    close_ward(&w);
}

static void nudge(void *arg)
{
    (*(int *)arg)++;
}

/* Who knows of others is told: a server that hangs may have been replaced. */
TEST(keeper, complains_of_a_server_that_is_silent_and_not_before)
{
    ward w;
    rl_uri uri;
    rl_fault f;
    int nudges = 0;
    open_connected(&w);
    EXPECT_INT(rl_uri_parse(&uri, "redis-sentinel://127.0.0.1:1/main", &f),
               RLOCK_OK);
    rl_sentinels_options o = {.uri = &uri,
                              .nudge = nudge,
                              .arg = &nudges,
                              .signal = &w.o.e.loop.signal};
    w.o.e.sentinels = rl_sentinels_new(&o);
    EXPECT(w.o.e.sentinels);
    hold(&w, LEASE_MS);
    take_turn(&w);
    pass(&w, RL_WATCH_US / MS + 1);
    take_turn(&w);
    EXPECT_CONTAINS(outpost_read(&w.o), SIGN);
    EXPECT_INT(nudges, 0);
    pass(&w, 150);
    take_turn(&w);
    EXPECT_INT(nudges, 1);
    EXPECT(keeper(&w)->conn); /* it is waited for as long as a renewal */
    rl_sentinels_stop(w.o.e.sentinels);
    rl_sentinels_free(w.o.e.sentinels, false);
    w.o.e.sentinels = NULL;
    rl_uri_fini(&uri);
    close_ward(&w);
}

/* It takes one more look, for what may be held again by then. */
TEST(keeper, looks_after_no_server_at_which_nothing_is_held_any_more)
{
    ward w;
    open_connected(&w);
    rl_holds *t = &w.o.e.core.holds;
    hold(&w, LEASE_MS);
    int64_t us = take_turn(&w);
    rl_mutex_lock(&t->mutex);
    rl_hold_end_locked(t, w.h, rl_now_us());
    rl_hold_unref_locked(t, w.h);
    rl_mutex_unlock(&t->mutex);
    EXPECT_INT(take_turn(&w), us);
    pass(&w, RL_WATCH_US / MS + 1);
    EXPECT_INT(take_turn(&w), RL_NEVER);
    EXPECT_STR(outpost_read(&w.o), "");
    close_ward(&w);
}
