/*
 * Threads of one client hand a lock over to each other: what that promises to
 * them, and to other clients.
 */
#include <stdatomic.h>

#include "busy.h"
#include "other_client.h"
#include "wire/script.h"

enum { THREADS = 8, TURNS = SANITIZED ? 40 : 200 };

/* --- threads of one client ------------------------------------------------ */

typedef struct table {
    rlock *lk;
    atomic_int inside;
    uint64_t token; /* guarded by the lock */
    int sections;   /* likewise */
} table;

static intptr_t work(void *arg)
{
    table *t = arg;
    for (int i = 0; i < TURNS; i++) {
        EXPECT_STATUS(rlock_lock(t->lk), RLOCK_OK);
        EXPECT_INT(atomic_fetch_add(&t->inside, 1), 0);
        EXPECT(rlock_token(t->lk) > t->token);
        t->token = rlock_token(t->lk);
        t->sections++;
        atomic_fetch_sub(&t->inside, 1);
        EXPECT_STATUS(rlock_unlock(t->lk), RLOCK_OK);
    }
    return 0;
}

static void run(table *t)
{
    test_thread *thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        thread[i] = test_spawn(work, t);
    for (int i = 0; i < THREADS; i++)
        test_join(thread[i]);
    EXPECT_INT(t->sections, THREADS * TURNS);
}

TEST(handover, a_section_of_a_lock_that_many_threads_want_costs_one_call)
{
    scene s = scene_start(0, 0);
    table t = {.lk = s.lk};
    long long before = script_calls(s.sv);
    run(&t);
    long long calls = script_calls(s.sv) - before;
    EXPECT_BETWEEN(calls, THREADS * TURNS, THREADS * TURNS * 3 / 2);
    rlock_stats st = stats_of(s.cl);
    EXPECT_INT(st.acquires, THREADS * TURNS);
    EXPECT_INT(st.releases, THREADS * TURNS);
    EXPECT_INT(st.held_now, 0);
    EXPECT_INT(st.lost, 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_RELEASED), THREADS * TURNS);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_ACQUIRED), THREADS * TURNS);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* A waiter that sleeps in the room, behind n others. */
static waiter *line_up(scene *s, rlock *lk, int64_t wait_ms, int64_t lease_ms,
                       int n)
{
    waiter *w = waiter_start(lk, wait_ms, lease_ms);
    EVENTUALLY(SOON, (int)stats_of(s->cl).waiting_now == n + 1);
    return w;
}

TEST(handover, threads_are_served_in_the_order_in_which_they_came)
{
    enum { N = 5 };
    scene s = scene_held(0, 0);
    waiter *w[N];
    int64_t at_ms, before_ms = 0;
    for (int i = 0; i < N; i++)
        w[i] = line_up(&s, s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG, i);
    waiters_settle(s.sv, 1, s.cl, N);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    for (int i = 0; i < N; i++) {
        EXPECT_STATUS(waiter_status(w[i], &at_ms), RLOCK_OK);
        EXPECT(at_ms >= before_ms);
        before_ms = at_ms;
        if (i + 1 < N)
            EXPECT(!waiter_returned(w[i + 1]));
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_OK);
    }
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* Handed over, the lock was never free: whoever looks finds it held. */
TEST(handover, a_waiter_gets_its_own_lease_and_holder_id)
{
    scene s = scene_held(0, 0);
    char before[400], after[400];
    int count;
    read_lock(s.sv, before, sizeof before, &count);
    waiter *w = line_up(&s, s.lk, RLOCK_FOREVER, 5000, 0);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    read_lock(s.sv, after, sizeof after, &count);
    EXPECT_INT(count, 1);
    EXPECT(strcmp(before, after) != 0);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 1, 5000);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 0);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_stop(&s);
}

TEST(handover, what_was_handed_over_is_renewed)
{
    scene s = scene_held(BRISK_MS, 0);
    waiter *w = line_up(&s, s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG, 0);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    watch_renewals(s.cl, 4);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(handover, a_client_that_hears_no_rings_hands_over_all_the_same)
{
    scene s = scene_held(0, 0);
    EXPECT_STR(server_str(s.sv, "ACL SETUSER default -subscribe"), "OK");
    waiter *w = line_up(&s, s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG, 0);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    waiter_expect_rung(w, freed_ms);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_stop(&s);
}

/* --- what is in the way --------------------------------------------------- */

/* What the waiter gets. */
static rlock_status unlock_without_memory(void)
{
    scene s = scene_held(0, 0);
    waiter *w = line_up(&s, s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG, 0);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_STR(server_str(s.sv, "CONFIG SET maxmemory 1"), "OK");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "CONFIG SET maxmemory 0"), "OK");
    rlock_status status = waiter_end(w);
    expect_nothing_left(s.sv);
    scene_stop(&s);
    return status;
}

/* A waiter that is awake just then, and asks by itself, is refused. */
TEST(handover, an_unlock_at_a_server_out_of_memory_succeeds)
{
    rlock_status status;
    for (int i = 0; i < 5; i++) {
        status = unlock_without_memory();
        if (status == RLOCK_OK)
            return;
        EXPECT_STATUS(status, RLOCK_ESERVER);
    }
    EXPECT_STATUS(status, RLOCK_OK);
}

TEST(handover, a_lock_that_was_forced_is_lost_and_the_next_gets_it)
{
    scene s = scene_held(0, 0);
    waiter *w = line_up(&s, s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG, 0);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_INT(server_int(s.sv, "DEL " SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    int64_t lost_ms = test_now_ms(), at_ms;
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - lost_ms, -SOON, WELL_BEFORE_POLL_MS);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_stop(&s);
}

/* --- other clients -------------------------------------------------------- */

TEST(handover, another_client_gets_its_turn_while_threads_hand_over)
{
    scene s = scene_start(0, 0);
    other_client r = other_client_join(&s, NULL);
    busy b = {.lk = s.lk};
    busy_start(&b, 20);
    for (int i = 0; i < 5; i++) {
        EXPECT_STATUS(rlock_acquire(r.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    }
    busy_stop(&b);
    other_client_leave(&r);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* It stands in no queue, and asks now and then. */
TEST(handover, a_program_that_polls_finds_the_lock_free_at_times)
{
    scene s = scene_start(0, 0);
    other_client r = other_client_join(&s, NULL);
    busy b = {.lk = s.lk};
    busy_start(&b, 20);
    EVENTUALLY(SOON, rlock_trylock(r.lk) == RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    busy_stop(&b);
    other_client_leave(&r);
    scene_stop(&s);
}

/* --- the script ----------------------------------------------------------- */

#define OLD       "host:7:8:6f1e1e0c-5d07-4f36-9a4e-0123456789ab"
#define NEXT      "host:7:9:7f1e1e0c-5d07-4f36-9a4e-0123456789ab"
#define BELL      "rlock_bell:own"
#define TOKEN     "rlock_token:{" SCENE_LOCK "}"
#define QUEUE     "rlock_queue:{" SCENE_LOCK "}"
#define TOMBSTONE "rlock_undone:{" SCENE_LOCK "}:next"

static server *held_server(void)
{
    server *sv = server_start(NULL);
    server_load_scripts(sv);
    server_cmd(sv, "HSET " SCENE_LOCK " " OLD " 2");
    server_cmd(sv, "PEXPIRE " SCENE_LOCK " 60000");
    server_cmd(sv, "SET " TOKEN " 999999999999999998 PX 60000");
    return sv;
}

static redisReply *hand_over(server *sv, const char *lease)
{
    return server_cmd(sv,
                      "EVALSHA %s 4 %s %s %s %s %s %s %s 1000000 channel %s",
                      rl_scripts[RL_SCRIPT_HASH_HANDOVER].sha1, SCENE_LOCK,
                      TOKEN, TOMBSTONE, QUEUE, OLD, NEXT, lease, BELL);
}

static void expect_code(const redisReply *r, long long code)
{
    if (r->type != REDIS_REPLY_ARRAY)
        FAIL("handover: %s", r->str ? r->str : "no array");
    EXPECT_INT(r->elements, 1);
    EXPECT_INT(r->element[0]->integer, code);
}

static void expect_token(const redisReply *r, const char *token)
{
    EXPECT_INT(r->type, REDIS_REPLY_STRING);
    EXPECT_STR(r->str, token);
}

static void wait_in_queue(server *sv, const char *bell, long long for_ms)
{
    redisReply *now = server_cmd(sv, "TIME");
    long long us = strtoll(now->element[0]->str, NULL, 10) * 1000000 +
                   strtoll(now->element[1]->str, NULL, 10);
    server_cmd(sv, "ZADD " QUEUE " %lld %s", us - for_ms * 1000, bell);
}

TEST(handover, the_script_puts_the_next_in_the_place_of_the_holder)
{
    server *sv = held_server();
    wait_in_queue(sv, BELL, 60000);
    wait_in_queue(sv, "rlock_bell:new", 0);
    server_cmd(sv, "ZADD " QUEUE " 9999999999999999 rlock_bell:later");
    expect_token(hand_over(sv, "5000"), "999999999999999999");
    EXPECT_STR(server_str(sv, "HGET " SCENE_LOCK " " NEXT), "1");
    EXPECT_INT(server_int(sv, "HLEN " SCENE_LOCK), 1);
    EXPECT_BETWEEN(key_ttl(sv, SCENE_LOCK), 1, 5000);
    EXPECT_INT(queued(sv, SCENE_LOCK), 2); /* nobody was rung */
    server_stop(sv);
}

static void expect_told(const redisReply *r, const char *token)
{
    EXPECT_INT(r->type, REDIS_REPLY_ARRAY);
    EXPECT_INT(r->elements, 2);
    EXPECT_INT(r->element[0]->integer, 5);
    EXPECT_STR(r->element[1]->str, token);
}

TEST(handover, the_script_asked_again_tells_the_token_and_never_shortens)
{
    server *sv = held_server();
    expect_token(hand_over(sv, "60000"), "999999999999999999");
    server_cmd(sv, "HSET " SCENE_LOCK " " NEXT " 3");
    expect_told(hand_over(sv, "1000"), "999999999999999999");
    EXPECT_BETWEEN(key_ttl(sv, SCENE_LOCK), 50000, 60000);
    expect_told(hand_over(sv, "90000"), "999999999999999999");
    EXPECT_BETWEEN(key_ttl(sv, SCENE_LOCK), 80000, 90000);
    EXPECT_STR(server_str(sv, "HGET " SCENE_LOCK " " NEXT), "3");
    EXPECT_INT(server_int(sv, "DEL " SCENE_LOCK), 1);
    expect_code(hand_over(sv, "1000"), 0);
    EXPECT(!key_exists(sv, SCENE_LOCK));
    server_stop(sv);
}

TEST(handover, the_script_frees_the_lock_when_the_next_has_given_up)
{
    server *sv = held_server();
    server_cmd(sv, "SET " TOMBSTONE " x PX 60000");
    expect_code(hand_over(sv, "5000"), 1);
    EXPECT(!key_exists(sv, SCENE_LOCK));
    server_stop(sv);
}

static void expect_freed_for(const char *clock_of_who_waits)
{
    server *sv = held_server();
    if (clock_of_who_waits)
        server_cmd(sv, "ZADD " QUEUE " %s rlock_bell:x", clock_of_who_waits);
    else
        wait_in_queue(sv, "rlock_bell:x", 5000);
    wait_in_queue(sv, BELL, 90000);
    expect_code(hand_over(sv, "5000"), 1); /* that bell is dead */
    EXPECT(!key_exists(sv, SCENE_LOCK));
    EXPECT_INT(queued(sv, SCENE_LOCK), 0);
    server_stop(sv);
}

TEST_CASE(handover, the_script_frees_the_lock_for_who_has_waited_too_long,
          expect_freed_for(NULL))
TEST_CASE(handover, the_script_frees_the_lock_for_a_ticket_of_the_future,
          expect_freed_for("9000000000000000"))

TEST(handover, the_script_grants_nothing_beside_another_field)
{
    server *sv = held_server();
    server_cmd(sv, "HSET " SCENE_LOCK " somebody 1");
    expect_code(hand_over(sv, "5000"), 1);
    EXPECT_INT(server_int(sv, "HLEN " SCENE_LOCK), 1);
    EXPECT_STR(server_str(sv, "HGET " SCENE_LOCK " somebody"), "1");
    server_stop(sv);
}

/* An unlock has to succeed, and a lock without an expiry must not stay. */
TEST(handover, the_script_frees_the_lock_when_a_grant_is_refused)
{
    server *sv = held_server();
    EXPECT_STR(server_str(sv, "ACL SETUSER default -pexpire"), "OK");
    expect_code(hand_over(sv, "5000"), 1);
    EXPECT(!key_exists(sv, SCENE_LOCK));
    server_stop(sv);
}

TEST(handover, the_script_changes_nothing_for_a_bad_lease)
{
    server *sv = held_server();
    redisReply *r = hand_over(sv, "0");
    EXPECT_INT(r->type, REDIS_REPLY_ERROR);
    EXPECT_STR(server_str(sv, "HGET " SCENE_LOCK " " OLD), "2");
    server_stop(sv);
}
