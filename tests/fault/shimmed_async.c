/*
 * Calls that are started where descriptors, threads or memory run out: a start
 * that fails says so and calls nobody back; what has been started is called
 * back once. Each test sees that the same goes well before or after the fault.
 */
#include <errno.h>

#include "sentinels.h"
#include "shim.h"
#include "storm.h"

enum { N = 60, TOLD = 2 /* of each, by the control */ };

/* Without events: what records them allocates, too. */
static scene silent_scene(int64_t timeout_ms)
{
    scene s = scene_server(NULL);
    s.opts.command_timeout_ms = timeout_ms;
    s.cl = server_client(s.sv, &s.opts);
    s.lk = test_lock(s.cl, SCENE_LOCK);
    return s;
}

/* --- 162 ------------------------------------------------------------------ */

/* No client of this scene has been used for a start. */
static void expect_refused_start(shim_call call, int err)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    shim_fail(shim_everywhere(), call, 1, SHIM_EVER, err);
    EXPECT_STATUS(request_acquire(&r, 0, RLOCK_WATCHDOG), RLOCK_ENOMEM);
    EXPECT_CONTAINS(rlock_last_error()->message, SCENE_LOCK);
    EXPECT(shim_failed(shim_everywhere(), call) > 0);
    shim_clear(shim_everywhere());
    EXPECT_STATUS(rlock_client_dispatch(s.cl), RLOCK_OK);
    EXPECT_INT(r.told, 0);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    expect_nothing_left(s.sv);
    request_free(&r);
    scene_stop(&s);
}

TEST_CASE(shimmed_async, fault_162_without_a_thread_nothing_is_started,
          expect_refused_start(SHIM_THREAD, EAGAIN))
TEST_CASE(shimmed_async, fault_162_without_memory_nothing_is_started,
          expect_refused_start(SHIM_ALLOC, ENOMEM))

TEST(shimmed_async, fault_162_a_start_needs_no_descriptor)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    EXPECT(rlock_client_fd(s.cl) >= 0); /* the program's has to be there */
    shim_fail(shim_everywhere(), SHIM_EVENTFD, 1, SHIM_EVER, EMFILE);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    shim_clear(shim_everywhere());
    expect_nothing_left(s.sv);
    request_free(&r);
    scene_stop(&s);
}

/* Its memory is free again, or the next one's. */
TEST(shimmed_async, fault_162_a_second_start_for_one_owner_leaves_nothing)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    EXPECT_STATUS(request_acquire(&r, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&r, SOON, RLOCK_WATCHDOG), RLOCK_EINVAL);
    EXPECT_STATUS(request_acquire(&r, SOON, RLOCK_WATCHDOG), RLOCK_EINVAL);
    LOOP_UNTIL(s.cl, r.told == 1);
    EXPECT_STATUS(r.status, RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    expect_nothing_left(s.sv);
    request_free(&r);
    scene_stop(&s);
}

static intptr_t start_one(void *arg)
{
    EXPECT_STATUS(request_acquire(arg, 0, RLOCK_WATCHDOG), RLOCK_OK);
    return 0;
}

/* The others come while the first one still makes the thread that drives. */
static void start_at_once(scene *s)
{
    enum { THREADS = 8 };
    test_thread *t[THREADS];
    request r[THREADS];
    for (int k = 0; k < THREADS; k++)
        r[k] = request_new(s->lk);
    shim_spare_me(true);
    shim_fail(shim_everywhere(), SHIM_THREAD, 1, 1, SHIM_LATE);
    for (int k = 0; k < THREADS; k++)
        t[k] = test_spawn(start_one, &r[k]);
    for (int k = 0; k < THREADS; k++)
        test_join(t[k]);
    EXPECT_INT(shim_failed(shim_everywhere(), SHIM_THREAD), 1);
    shim_spare_me(false);
    shim_clear(shim_everywhere());
    for (int k = 0; k < THREADS; k++)
        LOOP_UNTIL(s->cl, r[k].told);
    for (int k = 0; k < THREADS; k++)
        request_free(&r[k]);
}

TEST(shimmed_async, fault_162_several_may_be_the_first_to_start_something)
{
    for (int i = 0; i < 20; i++) {
        scene s = scene_start(0, 0);
        expect_undisturbed(&s);
        start_at_once(&s);
        scene_stop(&s);
    }
}

/* Whom an acquire has left nothing, a start refuses, and he still has it. */
TEST(shimmed_async, fault_162_what_was_started_is_unlocked_without_memory)
{
    scene s = silent_scene(SOON);
    request r = request_new(s.lk), b = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    shim_fail(shim_everywhere(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    rlock_status inner = loop_unlock(s.cl, &r);
    rlock_status outer = loop_unlock(s.cl, &r);
    rlock_status other = request_acquire(&b, 0, RLOCK_WATCHDOG);
    shim_clear(shim_everywhere());
    EXPECT_STATUS(inner, RLOCK_OK);
    EXPECT_STATUS(outer, RLOCK_OK);
    EXPECT_STATUS(other, RLOCK_ENOMEM);
    expect_nothing_left(s.sv);
    request_free(&b);
    request_free(&r);
    scene_stop(&s);
}

/* A Multi lock takes more memory than a single one has left. */
TEST(shimmed_async, fault_162_a_start_that_is_refused_takes_no_unlock_along)
{
    scene s = silent_scene(SOON);
    rlock *both, *of[] = {s.lk, test_lock(s.cl, "b")};
    EXPECT_STATUS(rlock_multi_new(of, 2, &both), RLOCK_OK);
    request r = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    r.lk = both;
    rlock_status larger = request_acquire(&r, 0, RLOCK_WATCHDOG);
    r.lk = s.lk;
    rlock_status unlock = request_unlock(&r);
    shim_clear(shim_here());
    EXPECT_STATUS(larger, RLOCK_ENOMEM);
    EXPECT_STATUS(unlock, RLOCK_OK);
    LOOP_UNTIL(s.cl, r.told == 2);
    EVENTUALLY(SOON, levels(s.sv, SCENE_LOCK) == 0);
    expect_nothing_left(s.sv);
    request_free(&r);
    rlock_free(both);
    rlock_free(of[1]);
    scene_stop(&s);
}

TEST(shimmed_async, fault_162_a_descriptor_that_cannot_be_had_is_had_later)
{
    static const shim_call calls[] = {SHIM_EVENTFD, SHIM_FCNTL};
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        shim_fail(shim_here(), calls[i], 1, SHIM_EVER, EMFILE);
        int fd = rlock_client_fd(s.cl);
        bool failed = shim_failed(shim_here(), calls[i]) > 0;
        shim_clear(shim_here());
        EXPECT_INT(fd == -1, failed);
        if (failed)
            EXPECT_INT(rlock_last_error()->status, RLOCK_ENOMEM);
        if (failed)
            EXPECT_INT(rlock_last_error()->sys_errno, EMFILE);
        EXPECT(i > 0 || failed);
    }
    EXPECT(rlock_client_fd(s.cl) >= 0);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    request_free(&r);
    scene_stop(&s);
}

/* Without a connection, and none can be made: then one can. */
TEST(shimmed_async, fault_162_waits_that_find_no_descriptor_are_had_later)
{
    scene s = scene_start(20000, 0);
    storm st = storm_new(s.cl, N);
    storm_undisturbed(&st);
    shim_fail(shim_everywhere(), SHIM_SOCKET, 1, SHIM_EVER, EMFILE);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    storm_acquire(&st, 0, RLOCK_WATCHDOG);
    storm_settle(&st, TOLD + 1);
    storm_expect(&st, RLOCK_EIO);
    EXPECT_INT(st.r[0].error.sys_errno, EMFILE);
    storm_acquire(&st, SOON, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == N);
    shim_clear(shim_everywhere());
    storm_settle(&st, TOLD + 2);
    storm_expect(&st, RLOCK_OK);
    storm_unlock(&st);
    storm_settle(&st, TOLD + 3);
    storm_free(&st);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* How many can be started while the library gets no memory. */
static size_t start_what_can_be(storm *st, bool *started)
{
    size_t n = 0;
    for (size_t i = 0; i < st->n; i++) {
        rlock_status s = request_acquire(&st->r[i], 1000, RLOCK_WATCHDOG);
        EXPECT(s == RLOCK_OK || s == RLOCK_ENOMEM);
        n += started[i] = s == RLOCK_OK;
    }
    return n;
}

/* From the kth allocation of any thread on there is no memory; then there is
   again. */
static void run_out_of_memory(long first)
{
    scene s = silent_scene(2000);
    bool started[N];
    storm st = storm_new(s.cl, N);
    if (first > 40) /* before: also where nothing has been used yet */
        storm_undisturbed(&st);
    int told = st.r[0].told;
    shim_fail(shim_everywhere(), SHIM_ALLOC, first, SHIM_EVER, ENOMEM);
    size_t n = start_what_can_be(&st, started);
    int64_t began_ms = test_now_ms();
    while (test_since_ms(began_ms) < 50)
        EXPECT_STATUS(rlock_client_dispatch(s.cl), RLOCK_OK);
    shim_clear(shim_everywhere());
    for (size_t i = 0; i < N; i++)
        LOOP_UNTIL(s.cl, st.r[i].told == told + started[i]);
    EXPECT(n <= N);
    for (size_t i = 0; i < N; i++) {
        rlock_status got = st.r[i].status;
        EXPECT(got == RLOCK_OK || got == RLOCK_ENOMEM || got == RLOCK_EIO);
        if (request_holds(&st.r[i]))
            EXPECT_STATUS(loop_unlock(s.cl, &st.r[i]), RLOCK_OK);
    }
    EVENTUALLY(SOON, server_cmd(s.sv, "KEYS storm:*")->elements == 0);
    storm_undisturbed(&st);
    expect_all_undone(s.sv);
    storm_free(&st);
    scene_stop(&s);
}

TEST(shimmed_async, fault_162_wherever_memory_runs_out_each_is_told_once)
{
    for (long first = 1; first < 160; first += first < 20 ? 1 : 11)
        run_out_of_memory(first);
}

/* --- a connection that breaks at the send --------------------------------- */

/*
 * False: it was not sent by this thread at once, but by the loop, or over a
 * connection that had to be made, as Sentinels had just told something.
 */
static bool is_unlocked_after_a_break(rlock_client *cl, request *r)
{
    int told = r->told;
    shim_fail(shim_here(), SHIM_SEND, 1, 1, EPIPE);
    EXPECT_STATUS(request_unlock(r), RLOCK_OK);
    bool broke = shim_failed(shim_here(), SHIM_SEND) == 1;
    shim_clear(shim_here());
    LOOP_UNTIL(cl, r->told > told);
    EXPECT_STATUS(r->status, RLOCK_OK);
    return broke;
}

/*
 * Behind Sentinels it rests for a moment first, as another server may take over,
 * and then has to be looked at: what is waited for no longer comes.
 */
TEST(shimmed_async, a_call_whose_connection_breaks_at_the_send_is_made_again)
{
    server *sv = server_start_tcp(NULL);
    server *replica = replica_start(sv);
    sentinels *guards = sentinels_start(sv, 3);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = sentinels_uri(guards);
    opts.command_timeout_ms = SOON;
    rlock_client *cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    request r = request_new(lk);
    int64_t began_ms;
    int tries = 0;
    do {
        EXPECT(tries++ < 10);
        EXPECT_STATUS(loop_acquire(cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
        began_ms = test_now_ms();
    } while (!is_unlocked_after_a_break(cl, &r));
    EXPECT_BETWEEN(test_now_ms() - began_ms, 0, SOON / 2);
    request_free(&r);
    rlock_free(lk);
    rlock_client_free(cl);
    sentinels_stop(guards);
    server_stop(replica);
    server_stop(sv);
}
