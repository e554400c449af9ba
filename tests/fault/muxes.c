/*
 * A connection that threads share: what one of them meets is not for the
 * others to pay, and nobody gets another's answer. The client has a pool of
 * one, so that all of its threads are on one connection.
 */
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lag.h"
#include "scene.h"

#define MOST 256

/* A thread that wants a lock of its own. */
typedef struct caller {
    rlock *lk;
    const char *name;
    int64_t wait_ms;
    test_thread *thread;
    atomic_bool begun;
    rlock_status status;
    int64_t took_ms;
} caller;

static scene shared_scene(server *sv, const char *uri, int64_t timeout_ms)
{
    scene s = {.sv = sv, .opts = RLOCK_OPTIONS_INIT};
    s.opts.uri = uri;
    s.opts.pool_size = 1;
    scene_client(&s, 0, timeout_ms);
    return s;
}

static intptr_t run(void *arg)
{
    caller *c = arg;
    int64_t began_ms = test_now_ms();
    atomic_store(&c->begun, true);
    c->status = rlock_acquire(c->lk, c->wait_ms, RLOCK_WATCHDOG);
    c->took_ms = test_now_ms() - began_ms;
    if (c->status == RLOCK_OK)
        EXPECT_STATUS(rlock_unlock(c->lk), RLOCK_OK);
    return 0;
}

static caller caller_of(const scene *s, const char *name)
{
    return (caller){.lk = test_lock(s->cl, name), .name = name};
}

static void start(caller *c)
{
    c->thread = test_spawn(run, c);
}

static void end(caller *c, rlock_status wanted)
{
    test_join(c->thread);
    if (c->status != wanted)
        FAIL("%s: %s instead of %s", c->name, rlock_status_str(c->status),
             rlock_status_str(wanted));
    rlock_free(c->lk);
}

static void stop(scene *s)
{
    scene_free_client(s);
    expect_all_undone(s->sv);
    scene_stop(s);
}

/* Each wants a lock of its own, whose name begins so. */
static void start_all(const scene *s, const char *stem, caller *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char name[RLOCK_NAME_MAX + 8];
        snprintf(name, sizeof name, "%s:%03zu", stem, i);
        c[i] = caller_of(s, name);
        c[i].name = "one of many";
        start(&c[i]);
    }
}

static void end_all(caller *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        end(&c[i], RLOCK_OK);
}

/* Behind a proxy, which holds what the action says about the first lock. */
static scene held_scene(proxy_action action, int64_t timeout_ms)
{
    server *sv = server_start(NULL);
    server_load_scripts(sv);
    proxy *px = proxy_start(sv);
    scene s = shared_scene(sv, proxy_uri(px), timeout_ms);
    s.px = px;
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    proxy_rule(px, "first", 1, action, NULL);
    return s;
}

/* --- 109, 111, 113: one of them leaves ----------------------------------- */

/*
 * The first asks, and reads for all; the second stands behind its reply, and
 * has more time. The first leaves: the second gets its reply, and a third,
 * which comes then, does not stand behind it.
 */
static void expect_others_undisturbed(scene *s)
{
    caller first = caller_of(s, "first"), second = caller_of(s, "second"),
           third = caller_of(s, "third");
    start(&first);
    EVENTUALLY(5000, proxy_fired(s->px));
    test_pause_ms(300); /* the second has so much more time */
    start(&second);
    EVENTUALLY(5000, proxy_count(s->px, "second") > 0);
    end(&first, RLOCK_EIO);
    start(&third);
    end(&third, RLOCK_OK);
    EXPECT(third.took_ms < 500);
    proxy_let_go(s->px);
    end(&second, RLOCK_OK);
    EXPECT(second.took_ms < 600);
}

TEST(muxes, fault_109_who_leaves_keeps_neither_the_others_nor_the_next_waiting)
{
    scene s = held_scene(PROXY_HOLD_REPLY, 600);
    expect_others_undisturbed(&s);
    stop(&s);
}

TEST(muxes, fault_111_half_a_reply_whose_caller_has_left_is_nobodys)
{
    scene s = held_scene(PROXY_HOLD_REPLY, 600);
    proxy_rule_at(s.px, "first", 1, 3, PROXY_LATE);
    expect_others_undisturbed(&s);
    stop(&s);
}

TEST(muxes, fault_113_when_who_reads_for_all_leaves_another_one_does)
{
    scene s = held_scene(PROXY_HOLD_REPLY, 400);
    caller first = caller_of(&s, "first"), others[8];
    start(&first);
    EVENTUALLY(5000, proxy_fired(s.px));
    test_pause_ms(200); /* they have so much more time */
    start_all(&s, "other", others, 8);
    end(&first, RLOCK_EIO);
    proxy_let_go(s.px);
    end_all(others, 8);
    stop(&s);
}

/* --- 110: it breaks ------------------------------------------------------- */

/* What is counted twice is still there when it has been unlocked. */
TEST(muxes, fault_110_when_it_breaks_each_asks_again_and_has_its_lock_once)
{
    scene s = held_scene(PROXY_HOLD_REPLY, 5000);
    caller first = caller_of(&s, "first"), others[16];
    start(&first);
    EVENTUALLY(5000, proxy_fired(s.px));
    start_all(&s, "other", others, 16);
    EVENTUALLY(5000, proxy_count(s.px, "other") >= 16);
    proxy_cut_all(s.px);
    end(&first, RLOCK_OK);
    end_all(others, 16);
    stop(&s);
}

/* --- 112: answers that nobody asked for, or others did -------------------- */

/* An unlock's answer to an acquire: and whose is the next? */
TEST(muxes, fault_112_a_reply_of_another_kind_is_nobodys)
{
    scene s = held_scene(PROXY_HOLD_REPLY, 5000);
    caller first = caller_of(&s, "first"), others[16];
    proxy_rule(s.px, "first", 1, PROXY_ANSWER, ":1\r\n:1\r\n:1\r\n");
    start(&first);
    start_all(&s, "other", others, 16);
    end(&first, RLOCK_OK);
    end_all(others, 16);
    EXPECT(proxy_fired(s.px));
    stop(&s);
}

/* --- 114: the first sleeps, or nothing more can be sent ------------------- */

TEST(muxes, fault_114_a_call_is_sent_while_another_ones_reply_is_awaited)
{
    scene s = held_scene(PROXY_HOLD_REPLY, 5000);
    caller first = caller_of(&s, "first"), second = caller_of(&s, "second");
    start(&first);
    EVENTUALLY(5000, proxy_fired(s.px));
    start(&second);
    EVENTUALLY(2000, levels(s.sv, "second") == 1);
    proxy_let_go(s.px);
    end(&first, RLOCK_OK);
    end(&second, RLOCK_OK);
    stop(&s);
}

/* Long names: more than the kernel holds for us. */
TEST(muxes, fault_114_more_than_can_be_sent_is_sent_when_there_is_room)
{
    static caller c[MOST];
    char stem[401];
    scene s = held_scene(PROXY_HOLD_REPLY, 20000);
    memset(stem, 'n', sizeof stem);
    stem[sizeof stem - 1] = 0;
    proxy_rule(s.px, NULL, 1, PROXY_HOLD_REPLY, NULL);
    proxy_freeze(s.px, true);
    start_all(&s, stem, c, MOST);
    for (size_t i = 0; i < MOST; i++)
        EVENTUALLY(10000, atomic_load(&c[i].begun));
    test_pause_ms(100); /* so that most have sent, or cannot */
    proxy_freeze(s.px, false);
    end_all(c, MOST);
    stop(&s);
}

/* --- 115: to connect takes long ------------------------------------------- */

static long long connections(server *sv)
{
    return server_info(sv, "total_connections_received");
}

TEST(muxes, fault_115_many_callers_make_one_connection)
{
    caller c[32];
    server *sv = server_start(NULL);
    server_load_scripts(sv);
    lag *l = lag_start(sv);
    scene s = shared_scene(sv, lag_uri(l), 5000);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK); /* starts the threads */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    server_cmd(sv, "CLIENT KILL TYPE normal SKIPME yes");
    long long before = connections(sv);
    lag_set(l, 50);
    start_all(&s, "one", c, 32);
    end_all(c, 32);
    EXPECT_BETWEEN(connections(sv) - before, 1, 6); /* with the keeper's */
    scene_leave(&s);
    lag_stop(l);
    server_stop(sv);
}

TEST(muxes, fault_115_each_ends_in_time_while_another_one_connects)
{
    caller c[32];
    scene s = held_scene(PROXY_HOLD_REPLY, 300);
    proxy_rule(s.px, NULL, 1, PROXY_HOLD_REPLY, NULL);
    proxy_cut_all(s.px);
    proxy_freeze(s.px, true);
    start_all(&s, "one", c, 32);
    for (size_t i = 0; i < 32; i++) {
        test_join(c[i].thread);
        EXPECT_STATUS(c[i].status, RLOCK_EIO);
        EXPECT_BETWEEN(c[i].took_ms, 250, 300 + SLACK_MS);
        rlock_free(c[i].lk);
    }
    proxy_freeze(s.px, false);
    stop(&s);
}

/* --- 116: fork() ---------------------------------------------------------- */

TEST(muxes, fault_116_a_child_does_not_disturb_who_reads_for_all)
{
    int status;
    scene s = held_scene(PROXY_HOLD_REPLY, 5000);
    caller first = caller_of(&s, "first"), second = caller_of(&s, "second");
    start(&first);
    EVENTUALLY(5000, proxy_fired(s.px));
    start(&second);
    EVENTUALLY(5000, proxy_count(s.px, "second") > 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        rlock_status answer = rlock_trylock(s.lk);
        rlock_client_free(s.cl);
        _exit(answer == RLOCK_EFORKED ? 0 : 1);
    }
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status));
    EXPECT_INT(WEXITSTATUS(status), 0);
    proxy_let_go(s.px);
    end(&first, RLOCK_OK);
    end(&second, RLOCK_OK);
    stop(&s);
}

/* --- 117: the server lacks the script ------------------------------------- */

TEST(muxes, fault_117_each_sends_the_script_and_has_its_lock_once)
{
    caller first, others[32];
    scene s = held_scene(PROXY_HOLD_REPLY, 5000);
    server_cmd(s.sv, "SCRIPT FLUSH");
    first = caller_of(&s, "first");
    start(&first);
    start_all(&s, "other", others, 32);
    EVENTUALLY(5000, proxy_fired(s.px));
    proxy_let_go(s.px);
    end(&first, RLOCK_OK);
    end_all(others, 32);
    EXPECT(stats_of(s.cl).script_loads >= 1);
    stop(&s);
}
