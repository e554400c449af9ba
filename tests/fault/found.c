/*
 * What reviews found wrong in this library, each as a test that failed before
 * it was put right. The names say what is right.
 */
#include "dialer.h"

static long long ttl_of(server *sv, const char *name)
{
    return server_int(sv, "PTTL %s", name);
}

static size_t tombstones(server *sv)
{
    return server_cmd(sv, "KEYS rlock_undone:*")->elements;
}

/* --- extends that stay without an answer --------------------------------- */

static void lose_an_extend(scene *s, int64_t lease_ms)
{
    proxy_rule(s->px, proxy_sha("extend"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_extend(s->lk, lease_ms), RLOCK_EIO);
    EXPECT(proxy_fired(s->px));
}

/* What we believe in, the server keeps; it may be renewed between the looks. */
static void expect_kept(scene *s)
{
    int64_t began_ms = test_now_ms();
    int64_t valid_ms = rlock_valid_ms(s->lk);
    long long ttl_ms = ttl_of(s->sv, SCENE_LOCK);
    EXPECT(valid_ms <= ttl_ms + test_now_ms() - began_ms);
}

TEST(found, an_extend_that_may_still_arrive_caps_the_longer_ones_after_it)
{
    scene s = scene_proxied(0, 200);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 2000), RLOCK_OK);
    lose_an_extend(&s, 4000);
    EXPECT_STATUS(rlock_extend(s.lk, 30000), RLOCK_EIO);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 4000);
    expect_kept(&s);
    proxy_let_go(s.px);
    EXPECT_BETWEEN(ttl_of(s.sv, SCENE_LOCK), 1, 4000);
    expect_kept(&s);
    EXPECT_STATUS(rlock_extend(s.lk, 3000), RLOCK_OK); /* not above it */
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 3000);
    expect_kept(&s);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(found, an_extend_that_may_still_arrive_caps_the_renewals_after_it)
{
    scene s = scene_proxied(9000, 200);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1200), RLOCK_OK);
    lose_an_extend(&s, 1500);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 1500);
    expect_kept(&s);
    proxy_let_go(s.px);
    EXPECT_BETWEEN(ttl_of(s.sv, SCENE_LOCK), 1, 1500);
    uint64_t before = stats_of(s.cl).renewals;
    do {
        EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 1500);
        expect_kept(&s);
        test_pause_ms(1);
    } while (stats_of(s.cl).renewals < before + 3);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- extends and late grants of renewed holds ---------------------------- */

static void expect_renewed_on(scene *s)
{
    uint64_t before = stats_of(s->cl).renewals;
    EVENTUALLY(20000, stats_of(s->cl).renewals >= before + 2);
    EXPECT_INT(stats_of(s->cl).lost, 0);
}

/* The command timeout is longer than the lease. */
TEST(found, an_extend_without_an_answer_costs_no_renewed_hold)
{
    scene s = scene_proxied(1800, 20000);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("extend"), 1, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_extend(s.lk, RLOCK_WATCHDOG), RLOCK_EIO);
    EXPECT(proxy_fired(s.px));
    expect_renewed_on(&s);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* Begun shortly before the first renewal, which it puts off. */
TEST(found, renewal_goes_on_at_once_after_an_extend_that_failed)
{
    scene s = scene_proxied(1800, 1000);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(5000, rlock_valid_ms(s.lk) <= 1260);
    proxy_rule(s.px, proxy_sha("extend"), 1, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_extend(s.lk, RLOCK_WATCHDOG), RLOCK_EIO);
    expect_renewed_on(&s);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* A renewal a third of the lease after the grant would come too late. */
TEST(found, a_hold_whose_grant_came_late_is_renewed_in_time)
{
    scene s = scene_proxied(3000, 20000);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REPLY, NULL);
    waiter *w = waiter_start(s.lk, 0, RLOCK_WATCHDOG);
    EVENTUALLY(5000, proxy_fired(s.px));
    EVENTUALLY(5000, ttl_of(s.sv, SCENE_LOCK) < 900);
    proxy_let_go(s.px);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    expect_renewed_on(&s);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).releases, 1);
    scene_stop(&s);
}

/* The renewal has used up its own time; the extend's begins after it. */
TEST(found, an_extend_has_time_left_after_a_renewal_that_it_waited_for)
{
    scene s = scene_proxied(2400, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_HOLD_REPLY, NULL);
    EVENTUALLY(5000, proxy_fired(s.px));
    proxy_rule(s.px, proxy_sha("extend"), 1, PROXY_DRIP_REPLY, NULL);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 30000, 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- many holds ---------------------------------------------------------- */

enum { MANY = 120 };

/* From the moment that the server is back every batch of renewals takes much
   longer than the next hold has left. Returns when each one has been renewed
   or lost. */
static void come_back_slowly(scene *s)
{
    uint64_t before = stats_of(s->cl).renewals;
    rlock_stats st;
    proxy_rule(s->px, proxy_sha("renew"), 1, PROXY_DRIP_REPLY, NULL);
    proxy_refuse(s->px, false);
    do {
        test_pause_ms(1);
        if (proxy_fired(s->px))
            proxy_rule(s->px, proxy_sha("renew"), 1, PROXY_DRIP_REPLY, NULL);
        st = stats_of(s->cl);
    } while (st.renewals - before < st.held_now);
}

TEST(found, a_hold_that_is_lost_takes_no_others_with_it)
{
    scene s = scene_proxied(2400, 0);
    rlock *lk[MANY];
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "lock%d", i);
        lk[i] = test_lock(s.cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
        test_pause_ms(6); /* between their deadlines */
    }
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    EVENTUALLY(10000, stats_of(s.cl).lost > 0);
    come_back_slowly(&s);
    proxy_rule(s.px, NULL, 1, PROXY_DRIP_REPLY, NULL);
    EXPECT_BETWEEN(stats_of(s.cl).held_now, MANY / 10, MANY - 1);
    for (int i = 0; i < MANY; i++) {
        rlock_status status = rlock_unlock(lk[i]);
        EXPECT(status == RLOCK_OK || status == RLOCK_LOST);
        rlock_free(lk[i]);
    }
    scene_stop(&s);
}

/* --- acquires that are stuck --------------------------------------------- */

/* Granted to the second try; the first is still on its way. */
static void acquire_doubtfully(scene *s, int64_t lease_ms)
{
    proxy_rule(s->px, proxy_sha("acquire"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_acquire(s->lk, 10000, lease_ms), RLOCK_OK);
    EXPECT(proxy_fired(s->px));
}

static void expect_refused_when_it_arrives(scene *s)
{
    EVENTUALLY(5000, tombstones(s->sv) == 1);
    proxy_let_go(s->px);
    EXPECT_INT(levels(s->sv, SCENE_LOCK), 0);
    expect_all_undone(s->sv);
}

/* The server is not to keep for ten years what is late for minutes at most. */
TEST(found, a_tombstone_does_not_stand_as_long_as_a_lease_of_ten_years)
{
    scene s = scene_proxied(0, 200);
    acquire_doubtfully(&s, (int64_t)10 * 365 * 24 * 3600 * 1000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EVENTUALLY(5000, tombstones(s.sv) == 1);
    const char *key = server_cmd(s.sv, "KEYS rlock_undone:*")->element[0]->str;
    char name[200];
    snprintf(name, sizeof name, "%s", key);
    EXPECT_BETWEEN(key_ttl(s.sv, name), 500000, 600000);
    proxy_let_go(s.px);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    scene_stop(&s);
}

static void lose_a_doubtful_hold(const char *how)
{
    scene s = scene_proxied(0, 200);
    acquire_doubtfully(&s, 20000);
    server_cmd(s.sv, how);
    EXPECT_STATUS(rlock_extend(s.lk, 20000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    expect_refused_when_it_arrives(&s);
    scene_stop(&s);
}

TEST(found, a_stuck_acquire_does_not_take_a_lock_that_was_taken_away)
{
    lose_a_doubtful_hold("DEL " SCENE_LOCK);
}

TEST(found, a_stuck_acquire_does_not_take_a_lock_that_was_flushed)
{
    lose_a_doubtful_hold("FLUSHALL");
}

static intptr_t acquire_doubtfully_and_end(void *arg)
{
    acquire_doubtfully(arg, 700);
    return 0;
}

TEST(found, a_stuck_acquire_of_a_thread_that_ended_takes_nothing)
{
    scene s = scene_proxied(0, 200);
    test_join(test_spawn(acquire_doubtfully_and_end, &s));
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, 5000);
    expect_refused_when_it_arrives(&s);
    scene_stop(&s);
}

/* Memory for the tombstone comes only after the release. */
TEST(found, a_release_out_of_memory_still_stops_a_stuck_acquire)
{
    scene s = scene_proxied(6000, 200);
    acquire_doubtfully(&s, RLOCK_WATCHDOG);
    server_cmd(s.sv, "CONFIG SET maxmemory 1");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    EXPECT_INT(tombstones(s.sv), 0);
    server_cmd(s.sv, "CONFIG SET maxmemory 0");
    expect_refused_when_it_arrives(&s);
    scene_stop(&s);
}

/* --- force-unlock -------------------------------------------------------- */

TEST(found, a_force_unlock_whose_reply_is_lost_is_not_asked_again)
{
    scene s = scene_proxied(0, 0);
    rlock_client *b = server_client(s.sv, NULL);
    rlock *next = test_lock(b, SCENE_LOCK);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(next, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, b, 1);
    proxy_rule(s.px, proxy_sha("force_release"), 1, PROXY_CUT_AFTER, NULL);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_EIO);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(proxy_count(s.px, proxy_sha("force_release")), 1);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(stats_of(b).releases, 1);
    rlock_free(next);
    rlock_client_free(b);
    scene_stop(&s);
}

/* --- connections --------------------------------------------------------- */

/* The caller of unlock did nothing wrong. */
TEST(found, a_callback_that_fails_later_is_an_io_error)
{
    dialer d = {0};
    scene s = scene_dialed(&d, 0, 0);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    atomic_store(&d.spoiled, true);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EIO);
    EXPECT_STATUS(rlock_trylock(other), RLOCK_EIO);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_EIO);
    atomic_store(&d.spoiled, false);
    EVENTUALLY(5000, levels(s.sv, SCENE_LOCK) == 0);
    rlock_free(other);
    scene_stop(&s);
}

/* There is nothing to undo for a hold that is only not renewed any more. */
TEST(found, freeing_a_client_does_not_connect_to_a_dead_server)
{
    dialer d = {0};
    scene s = scene_dialed(&d, 9000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    server_pause(s.sv);
    int before = atomic_load(&d.dialed);
    int64_t began_ms = test_now_ms();
    scene_free_client(&s);
    EXPECT_INT(atomic_load(&d.dialed), before);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 0, 900);
    server_resume(s.sv);
    scene_stop(&s);
}

/* --- answers and keys ---------------------------------------------------- */

static void answer_first_level(const char *answer)
{
    scene s = scene_proxied(0, 0);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER, answer);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER, answer);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_EIO);
    EXPECT_INT(rlock_hold_count(s.lk), 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(found, an_answer_that_fits_no_first_level_is_an_io_error)
{
    answer_first_level("*1\r\n:-1\r\n");
    answer_first_level("*3\r\n:-1\r\n:5\r\n$1\r\n7\r\n");
    answer_first_level("$1\r\n0\r\n");
    answer_first_level("*2\r\n:1\r\n$3\r\n123\r\n");
    answer_first_level("*2\r\n:0\r\n:5\r\n");
}

TEST(found, an_answer_that_fits_no_reentry_is_an_io_error)
{
    scene s = scene_proxied(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER,
               "*3\r\n:0\r\n:5000\r\n$1\r\n7\r\n");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_EIO);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    scene_stop(&s);
}

TEST(found, a_question_about_a_free_lock_is_no_failure)
{
    scene s = scene_start(0, 0);
    bool locked = true;
    int64_t ttl_ms = 0;
    EXPECT_STATUS(rlock_is_locked(s.lk, &locked), RLOCK_OK);
    EXPECT(!locked);
    EXPECT_STATUS(rlock_ttl(s.lk, &ttl_ms), RLOCK_OK);
    EXPECT_INT(ttl_ms, -2);
    EXPECT_INT(rlock_last_error()->status, RLOCK_OK);
    EXPECT_STR(rlock_last_error()->message, "");
    scene_stop(&s);
}

TEST(found, a_token_key_of_another_type_ends_no_hold)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    server_cmd(s.sv, "DEL rlock_token:{%s}", SCENE_LOCK);
    server_cmd(s.sv, "HSET rlock_token:{%s} a b", SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.lk), 2);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "HGET rlock_token:{%s} a", SCENE_LOCK), "b");
    scene_stop(&s);
}

TEST(found, a_foreign_key_in_the_queues_place_gets_no_expiry)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    server_cmd(s.sv, "SET rlock_queue:{%s} x", SCENE_LOCK);
    long long before = script_calls(s.sv);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    /* It looks once, and when its bell is up once more, to queue. */
    EVENTUALLY(5000, script_calls(s.sv) >= before + 2);
    EXPECT_INT(server_int(s.sv, "PTTL rlock_queue:{%s}", SCENE_LOCK), -1);
    EXPECT_STR(server_str(s.sv, "GET rlock_queue:{%s}", SCENE_LOCK), "x");
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    scene_stop(&s);
}

TEST(found, making_a_client_disturbs_no_lock_of_any_name)
{
    scene s = scene_start(0, 0);
    rlock *lk = test_lock(s.cl, "rlock_probe");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    uint64_t token = rlock_token(lk);
    rlock_client_free(server_client(s.sv, NULL));
    EXPECT(token == strtoull(server_str(s.sv, "GET rlock_token:{rlock_probe}"),
                             NULL, 10));
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    scene_stop(&s);
}
