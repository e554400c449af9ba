/* Who waits for a Red lock is woken by its release, and costs little. */
#include "nodes.h"

enum { TIMES = 11 };

/* One that looks by itself does so every 250 ms and more. */
TEST(red_woken, a_waiter_gets_it_soon_after_the_release)
{
    nodes ns = nodes_start(3);
    party a = party_join(&ns, 0, 0), b = party_join(&ns, 0, 0);
    int64_t took_ms[TIMES];
    for (int i = 0; i < TIMES; i++) {
        int64_t at_ms;
        EXPECT_STATUS(rlock_lock(a.lk), RLOCK_OK);
        waiter *w = waiter_start(b.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, stats_of(b.cl[0]).waiting_now == 1);
        test_pause_ms(150 + 23 * i);
        int64_t freed_ms = test_now_ms();
        EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_OK);
        EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
        took_ms[i] = at_ms - freed_ms;
        waiter_end(w);
    }
    EXPECT_BETWEEN(test_median(took_ms, TIMES), 0, 25 * test_slowness());
    party_leave(&b);
    party_end(&a, &ns);
}

/* Each in turn: who waits has it when the others have had it once. */
enum { PARTIES = 8, SECTIONS = 6, SECTION_MS = 60, MOST_MS = 2000 };

static intptr_t take_turns(void *lk)
{
    for (int i = 0; i < SECTIONS; i++) {
        EXPECT_STATUS(rlock_acquire(lk, MOST_MS, RLOCK_WATCHDOG), RLOCK_OK);
        test_pause_ms(SECTION_MS);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    }
    return 0;
}

static long long calls_on(const nodes *ns)
{
    long long calls = 0;
    for (size_t i = 0; i < ns->n; i++)
        calls += script_calls(ns->sv[i]);
    return calls;
}

/*
 * A section is an acquire and a release on each of three nodes, and who is
 * woken has queued there before: nine scripts, and some for who is told "busy".
 */
TEST(red_woken, all_get_their_turns_and_a_section_costs_few_scripts)
{
    nodes ns = nodes_start(3);
    party p[PARTIES];
    test_thread *runs[PARTIES];
    for (int i = 0; i < PARTIES; i++) {
        p[i] = party_join(&ns, 0, 0);
        party_connect(&p[i]);
    }
    long long before = calls_on(&ns);
    for (int i = 0; i < PARTIES; i++)
        runs[i] = test_spawn(take_turns, p[i].lk);
    for (int i = 0; i < PARTIES; i++)
        test_join(runs[i]);
    EXPECT_BETWEEN((calls_on(&ns) - before) / (PARTIES * SECTIONS), 6, 30);
    for (int i = 0; i < PARTIES; i++)
        party_leave(&p[i]);
    nodes_stop(&ns);
}
