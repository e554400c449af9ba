/* What waiting costs the server, and the program, when many wait. */
#include <dirent.h>

#include "other_client.h"
#include "tasks.h"

enum { CLIENTS = 100, THREADS = 50, NAMES = 400 };

/*
 * Whoever is first in the queue looks when the lease runs out, and the others
 * leave him time: there is one grant.
 */
TEST(waiting_calls, of_a_hundred_clients_few_look_when_a_lease_runs_out)
{
    scene s = scene_server(NULL);
    static other_client r[CLIENTS];
    int64_t ends_ms = test_now_ms() + 4000;
    take_by_hand(s.sv, SCENE_LOCK, 4000);
    scene_client(&s, 0, 0);
    for (int i = 0; i < CLIENTS; i++) {
        r[i] = other_client_join(&s, NULL);
        r[i].w = waiter_start(r[i].lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    }
    if (test_now_ms() > ends_ms - 1000)
        SKIP("the machine is too slow to start so many in time");
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == CLIENTS);
    if (test_now_ms() > ends_ms - 200)
        SKIP("the machine is too slow today");
    while (test_now_ms() < ends_ms - 20)
        test_pause_ms(1);
    long long before = script_calls(s.sv);
    EVENTUALLY(SOON, test_now_ms() > ends_ms + 280);
    /* Without the looks for a missed ring, in 2 s one of each. */
    EXPECT_BETWEEN(script_calls(s.sv) - before, 1, CLIENTS / 2);
    EXPECT_INT(server_int(s.sv, "HEXISTS %s " BY_HAND, SCENE_LOCK), 0);
    for (int i = 0; i < CLIENTS; i++)
        if (!waiter_returned(r[i].w))
            rlock_cancel(r[i].lk);
    for (int i = 0; i < CLIENTS; i++) {
        waiter_end(r[i].w);
        other_client_leave(&r[i]);
    }
    scene_stop(&s);
}

/* It is enough that one of them is told that it is busy. */
TEST(waiting_calls, who_waited_behind_others_asks_nobody_in_the_end)
{
    scene s = scene_start(0, 0);
    waiter *w[THREADS];
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *front = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    long long before = script_calls(s.sv);
    for (int i = 0; i < THREADS; i++)
        w[i] = waiter_start(s.lk, 1000 + 5 * i, RLOCK_WATCHDOG);
    for (int i = 0; i < THREADS; i++)
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(script_calls(s.sv) - before, 0, THREADS / 2);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(front), RLOCK_CANCELED);
    scene_stop(&s);
}

/* Time that the process's only thread of this name has had, in us. */
static long long cpu_us_of(const char *thread)
{
    char path[300];
    long long ns = -1;
    DIR *d = opendir("/proc/self/task");
    EXPECT(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", e->d_name);
        FILE *f = task_is_named(e->d_name, thread) ? fopen(path, "re") : NULL;
        if (!f)
            continue;
        if (fscanf(f, "%lld", &ns) != 1)
            ns = -1;
        fclose(f);
    }
    closedir(d);
    if (ns < 0)
        SKIP("this system does not tell what a thread has used");
    return ns / 1000;
}

/* What so many short waits cost the thread that subscribes for them. */
static long long cost_of_waits(rlock *lk, int n)
{
    long long before_us = cpu_us_of("rlock-loop");
    for (int i = 0; i < n; i++)
        EXPECT_STATUS(rlock_acquire(lk, 5, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    return cpu_us_of("rlock-loop") - before_us;
}

/* Redisson's channels: each wait is news of one name, not of all there are. */
TEST(waiting_calls, a_wait_does_not_go_through_the_names_of_others)
{
    scene s = scene_server(NULL);
    static rlock *lk[NAMES];
    static waiter *w[NAMES];
    s.opts.redisson_channel = true;
    scene_client(&s, 0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 50, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    long long alone_us = cost_of_waits(s.lk, 200);
    for (int i = 0; i < NAMES; i++) {
        char name[20];
        snprintf(name, sizeof name, "n%d", i);
        take_by_hand(s.sv, name, 0);
        lk[i] = test_lock(s.cl, name);
        w[i] = waiter_start(lk[i], RLOCK_FOREVER, RLOCK_WATCHDOG);
    }
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == NAMES);
    long long among_us = cost_of_waits(s.lk, 200);
    EXPECT_BETWEEN(among_us, 0, 2 * alone_us + 10000);
    for (int i = 0; i < NAMES; i++) {
        rlock_cancel(lk[i]);
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_CANCELED);
        rlock_free(lk[i]);
    }
    scene_stop(&s);
}
