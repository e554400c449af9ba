/* Red locks: waiting for one, closing clients, fork, and exclusion. */
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"

/* --- waiting ------------------------------------------------------------- */

TEST(red_waiting, a_waiter_gets_it_after_the_release)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    uint64_t token = rlock_token(p.lk);
    waiter *w = waiter_start(q.lk, RLOCK_FOREVER, 60000);
    EVENTUALLY(SOON, stats_of(q.cl[0]).waiting_now == 1);
    EXPECT(!waiter_returned(w));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    rlock_event ev;
    EXPECT(events_last(q.ev[0], RLOCK_EVENT_ACQUIRED, &ev));
    EXPECT(ev.token > token);
    waiter_end(w);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

TEST(red_waiting, threads_of_a_process_are_served_in_the_order_they_came)
{
    enum { N = 4 };
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    waiter *w[N];
    party_hold(&p, 60000);
    for (int i = 0; i < N; i++) {
        w[i] = waiter_start(p.lk, RLOCK_FOREVER, 60000);
        EVENTUALLY(SOON, stats_of(p.cl[0]).waiting_now == (uint64_t)i + 1);
    }
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    for (int i = 0; i < N; i++) {
        EXPECT_STATUS(waiter_status(w[i], NULL), RLOCK_OK);
        for (int k = i + 1; k < N; k++)
            EXPECT(!waiter_returned(w[k]));
        waiter_end(w[i]);
    }
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red_waiting, a_wait_runs_out_no_earlier_than_told)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    nodes_take(&ns, 1, 3);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(p.lk, 400, 60000), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 400, 400 + 3000);
    nodes first = nodes_first(&ns, 1);
    nodes_expect_all_undone(&first);
    party_end(&p, &ns);
}

TEST(red_waiting, cancel_ends_the_waits_on_its_handle)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    rlock *other = party_lock(&p, SCENE_LOCK, NULL);
    nodes_take(&ns, 0, 3);
    waiter *w[] = {waiter_start(p.lk, RLOCK_FOREVER, 60000),
                   waiter_start(p.lk, RLOCK_FOREVER, 60000)};
    waiter *stays = waiter_start(other, RLOCK_FOREVER, 60000);
    EVENTUALLY(SOON, stats_of(p.cl[0]).waiting_now == 3);
    rlock_cancel(p.lk);
    EXPECT_STATUS(waiter_end(w[0]), RLOCK_CANCELED);
    EXPECT_STATUS(waiter_end(w[1]), RLOCK_CANCELED);
    EXPECT(!waiter_returned(stays));
    nodes_give_back(&ns, 0, 3);
    EXPECT_STATUS(waiter_end(stays), RLOCK_OK);
    /* Who leaves does not wait for the nodes' answers. */
    for (size_t i = 0; i < 3; i++)
        EVENTUALLY(SOON, server_int(ns.sv[i], "EXISTS rlock_queue:{job}") == 0);
    nodes_expect_all_undone(&ns);
    rlock_free(other);
    party_end(&p, &ns);
}

/* --- closing ------------------------------------------------------------- */

TEST(red_waiting, closing_the_first_client_ends_a_wait)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    nodes_take(&ns, 0, 3);
    waiter *w = waiter_start(p.lk, RLOCK_FOREVER, 60000);
    EVENTUALLY(SOON, stats_of(p.cl[0]).waiting_now == 1);
    party_free_client(&p, 0);
    EXPECT_STATUS(waiter_end(w), RLOCK_ECLOSED);
    party_end(&p, &ns);
}

/* Says what each node answered; one that is slow may not have yet. */
static bool try_tells(rlock *lk, const char *part)
{
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EQUORUM);
    return strstr(rlock_last_error()->message, part) != NULL;
}

TEST(red_waiting, closing_another_client_is_a_node_that_failed)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_free_client(&p, 2);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 60000), RLOCK_OK);
    EXPECT(!node_has(ns.sv[2]));
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_take(&ns, 1, 2);
    EVENTUALLY(SOON, try_tells(p.lk, "1 ok; 2 held by "));
    EXPECT_CONTAINS(rlock_last_error()->message, "closed");
    party_end(&p, &ns);
}

/* Neither who is in front nor who stands behind keeps it from being freed. */
TEST(red_waiting, closing_another_client_ends_no_wait_and_waits_for_none)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    nodes_take(&ns, 0, 3);
    waiter *w[2];
    for (size_t i = 0; i < 2; i++) {
        w[i] = waiter_start(p.lk, RLOCK_FOREVER, 60000);
        EVENTUALLY(SOON, stats_of(p.cl[0]).waiting_now == i + 1);
    }
    party_free_client(&p, 2);
    for (size_t i = 0; i < 2; i++)
        EXPECT(!waiter_returned(w[i]));
    nodes_give_back(&ns, 0, 3);
    for (size_t i = 0; i < 2; i++)
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_OK);
    EXPECT(!node_has(ns.sv[2]));
    party_end(&p, &ns);
}

TEST(red_waiting, closing_the_first_client_while_holding_ends_the_hold)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    bool locked;
    party_hold_renewed(&p);
    party_free_client(&p, 0);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_extend(p.lk, 1500), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_force_unlock(p.lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_ECLOSED);
    EXPECT(!rlock_is_held(p.lk));
    EVENTUALLY(SOON, nodes_having(&ns) == 0);
    party_end(&p, &ns);
}

TEST(red_waiting, closing_a_minority_while_holding_keeps_the_hold)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    party_free_client(&p, 1);
    EVENTUALLY(SOON, !node_has(ns.sv[1])); /* its lease runs out */
    EXPECT(rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_LOST), 0);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red_waiting, closing_a_majority_while_holding_is_a_loss)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    party_free_client(&p, 1);
    party_free_client(&p, 2);
    EVENTUALLY(SOON, !rlock_is_held(p.lk));
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, 8000);
    EVENTUALLY(SOON, nodes_having(&ns) == 0); /* nobody renews it */
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_INT(events_count(p.ev[0], RLOCK_EVENT_LOST), 1);
    party_end(&p, &ns);
}

static void expect_closed(rlock *lk)
{
    rlock_holder holder;
    bool locked;
    int64_t ttl_ms;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_acquire(lk, 100, 0), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_extend(lk, 1000), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_force_unlock(lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_is_locked(lk, &locked), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_ttl(lk, &ttl_ms), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_holder_info(lk, &holder, sizeof holder), RLOCK_ECLOSED);
    EXPECT_INT(rlock_last_error()->status, RLOCK_ECLOSED);
    rlock_cancel(lk);
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_hold_count(lk), 0);
    EXPECT_INT(rlock_valid_ms(lk), 0);
    EXPECT_INT(rlock_token(lk), 0);
}

TEST(red_waiting, clients_may_be_freed_in_any_order_and_before_the_lock)
{
    static const size_t order[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                      {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    nodes ns = nodes_start(3);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        party p = party_join(&ns, 0, 0);
        party_hold(&p, 60000);
        for (size_t k = 0; k < 3; k++)
            party_free_client(&p, order[i][k]);
        expect_closed(p.lk);
        nodes_give_back(&ns, 0, 3); /* it is not released */
        party_leave(&p);
    }
    nodes_stop(&ns);
}

/* --- fork ---------------------------------------------------------------- */

static void expect_forked(party *p)
{
    rlock_holder holder;
    rlock *lk = NULL;
    bool locked;
    int64_t ttl_ms;
    EXPECT_STATUS(rlock_red_new(p->cl, p->n, "x", &lk), RLOCK_EFORKED);
    EXPECT(!lk);
    EXPECT_STATUS(rlock_lock(p->lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_trylock(p->lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_acquire(p->lk, 10, 10), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_extend(p->lk, 10), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_unlock(p->lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_force_unlock(p->lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_is_locked(p->lk, &locked), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_ttl(p->lk, &ttl_ms), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_holder_info(p->lk, &holder, sizeof holder),
                  RLOCK_EFORKED);
    EXPECT_INT(rlock_last_error()->status, RLOCK_EFORKED);
    rlock_cancel(p->lk);
    EXPECT(!rlock_is_held(p->lk));
    EXPECT_INT(rlock_hold_count(p->lk), 0);
    EXPECT_INT(rlock_token(p->lk), 0);
    rlock_free(p->lk);
    for (size_t i = 0; i < p->n; i++)
        rlock_client_free(p->cl[i]);
}

TEST(red_waiting, in_a_forked_child_every_call_answers_forked)
{
    int status;
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    fflush(NULL);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        alarm(TEST_LIMIT_S / 2);
        expect_forked(&p);
        _exit(0);
    }
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT(WIFEXITED(status));
    EXPECT_INT(WEXITSTATUS(status), 0);
    EXPECT(rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_INT(levels(ns.sv[1], SCENE_LOCK), 2);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

/* --- exclusion ----------------------------------------------------------- */

TEST(red_waiting, threads_and_clients_take_turns)
{
    enum { ROUNDS = 60 };
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    arena *a = arena_new();
    runner of_p = {a, p.lk, ROUNDS, 60000, false},
           of_q = {a, q.lk, ROUNDS, 60000, false};
    test_thread *t[] = {
        test_spawn(arena_run, &of_p), test_spawn(arena_run, &of_p),
        test_spawn(arena_run, &of_q), test_spawn(arena_run, &of_q)};
    for (size_t i = 0; i < 4; i++)
        test_join(t[i]);
    arena_end(a, 4 * ROUNDS);
    nodes_expect_all_undone(&ns);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

TEST(red_waiting, processes_take_turns)
{
    enum { ROUNDS = 60, PROCESSES = 3 };
    arena *a = arena_new();
    runner r = {a, NULL, ROUNDS, 60000, false};
    child *c[PROCESSES];
    for (size_t i = 0; i < PROCESSES; i++)
        c[i] = child_start(arena_run_in_child, &r);
    nodes ns = nodes_start(3);
    arena_start_children(&ns, c, PROCESSES);
    for (size_t i = 0; i < PROCESSES; i++)
        child_end(c[i]);
    arena_end(a, PROCESSES * ROUNDS);
    nodes_expect_all_undone(&ns);
    nodes_stop(&ns);
}

/* Any number of threads may make and free handles of one lock. */
static intptr_t make_and_free(void *arg)
{
    party *p = arg;
    for (int i = 0; i < 50; i++) {
        rlock *lk = party_lock(p, SCENE_LOCK, NULL);
        EXPECT_STATUS(rlock_acquire(lk, SOON, 60000), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        rlock_free(lk);
    }
    return 0;
}

TEST(red_waiting, threads_may_have_handles_of_their_own)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    test_thread *t[3];
    for (size_t i = 0; i < 3; i++)
        t[i] = test_spawn(make_and_free, &p);
    for (size_t i = 0; i < 3; i++)
        test_join(t[i]);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

enum { LONERS = 6 };

/* A lock of its own, so that nobody is in its way. */
typedef struct loner {
    party *p;
    int number;
} loner;

static intptr_t lock_and_unlock_alone(void *arg)
{
    const loner *l = arg;
    char name[16];
    snprintf(name, sizeof name, "job-%d", l->number);
    rlock *lk = party_lock(l->p, name, NULL);
    for (int i = 0; i < 200; i++) {
        EXPECT_STATUS(rlock_acquire(lk, SOON, 60000), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    }
    rlock_free(lk);
    return 0;
}

/* Six threads, each with a lock of its own. */
static void lock_and_unlock_all(party *p)
{
    loner l[LONERS];
    test_thread *t[LONERS];
    for (int i = 0; i < LONERS; i++) {
        l[i] = (loner){p, i};
        t[i] = test_spawn(lock_and_unlock_alone, &l[i]);
    }
    for (int i = 0; i < LONERS; i++)
        test_join(t[i]);
}

/* On a busy machine there is nearly always some node whose grant is late. */
TEST(red_waiting, a_grant_that_comes_during_the_release_is_released)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0);
    lock_and_unlock_all(&p);
    for (size_t i = 0; i < ns.n; i++) {
        EXPECT_INT(stats_of(p.cl[i]).held_now, 0);
        for (int k = 0; k < LONERS; k++)
            EVENTUALLY(SOON, server_int(ns.sv[i], "EXISTS job-%d", k) == 0);
        expect_all_undone(ns.sv[i]);
    }
    party_end(&p, &ns);
}

/* The same with nodes that others hold, and whose answer is late. */
TEST(red_waiting, a_refusal_that_comes_during_the_release_is_no_hold)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0);
    for (size_t i = 0; i < 2; i++) {
        for (int k = 0; k < LONERS; k++)
            server_cmd(ns.sv[i], "HSET job-%d " BY_HAND " 1", k);
    }
    for (int i = 0; i < 5; i++)
        lock_and_unlock_all(&p);
    for (size_t i = 0; i < ns.n; i++) {
        EXPECT_INT(stats_of(p.cl[i]).held_now, 0);
        for (int k = 0; k < LONERS; k++)
            EVENTUALLY(SOON,
                       server_int(ns.sv[i], "EXISTS job-%d", k) == (i < 2));
    }
    party_end(&p, &ns);
}
