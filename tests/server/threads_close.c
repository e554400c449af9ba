/* Closing a client while threads are inside of its calls. */
#include <sched.h>
#include <stdatomic.h>

#include "scene.h"

enum { KINDS = 9, CLOSINGS = SANITIZED ? 4 : 10, LONG_MS = 20000 };

typedef struct user {
    rlock_client *cl;
    rlock *contended, *free_one, *canceled;
    int kind;
    atomic_int *inside; /* threads that have made their first call */
    bool counted;
} user;

static rlock_status call_once(user *u)
{
    rlock_holder holder;
    rlock_status s;
    switch (u->kind) {
    case 0:
        return rlock_lock(u->contended);
    case 1:
        return rlock_acquire(u->contended, 5, 3000);
    case 2:
        return rlock_trylock(u->contended);
    case 3:
        s = rlock_acquire(u->free_one, RLOCK_FOREVER, 3000);
        if (s != RLOCK_OK)
            return s;
        rlock_unlock(u->free_one);
        return rlock_unlock(u->free_one); /* not held, or closed */
    case 4:
        s = rlock_lock(u->free_one);
        if (s == RLOCK_OK)
            s = rlock_extend(u->free_one, 4000);
        while (rlock_unlock(u->free_one) == RLOCK_OK)
            ;
        return s;
    case 5:
        return rlock_force_unlock(u->free_one);
    case 6:
        return rlock_holder_info(u->contended, &holder, sizeof holder);
    case 7:
        return rlock_acquire(u->canceled, RLOCK_FOREVER, RLOCK_WATCHDOG);
    default:
        rlock_cancel(u->canceled);
        rlock_is_held(u->contended);
        sched_yield();
        return rlock_unlock(u->contended);
    }
}

static bool is_expected(rlock_status s)
{
    return s == RLOCK_OK || s == RLOCK_BUSY || s == RLOCK_TIMEOUT ||
           s == RLOCK_CANCELED || s == RLOCK_NOT_HELD || s == RLOCK_LOST;
}

static intptr_t use_until_closed(void *arg)
{
    user *u = arg;
    rlock_status s;
    do {
        if (!u->counted)
            atomic_fetch_add(u->inside, 1);
        u->counted = true;
        s = call_once(u);
        if (s != RLOCK_ECLOSED && !is_expected(s))
            FAIL("kind %d: %s", u->kind, rlock_last_error()->message);
    } while (s != RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_trylock(u->contended), RLOCK_ECLOSED);
    EXPECT(!rlock_is_held(u->contended));
    rlock_free(u->contended);
    rlock_free(u->free_one);
    return 0;
}

static void close_while_in_use(server *sv, int pause_ms)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 3000;
    opts.command_timeout_ms = LONG_MS;
    rlock_client *cl = server_client(sv, &opts);
    atomic_int inside = 0;
    user users[2 * KINDS];
    test_thread *threads[2 * KINDS];
    rlock *canceled = test_lock(cl, "contended"), *held;
    held = test_lock(cl, "contended");
    EXPECT_STATUS(rlock_lock(held), RLOCK_OK);
    for (int i = 0; i < 2 * KINDS; i++) {
        users[i] = (user){.cl = cl,
                          .contended = test_lock(cl, "contended"),
                          .free_one = test_lock(cl, "free"),
                          .canceled = canceled,
                          .kind = i % KINDS,
                          .inside = &inside};
        threads[i] = test_spawn(use_until_closed, &users[i]);
    }
    EVENTUALLY(LONG_MS, atomic_load(&inside) == 2 * KINDS);
    test_pause_ms(pause_ms);
    rlock_client_free(cl);
    EXPECT_STATUS(rlock_unlock(held), RLOCK_ECLOSED);
    for (int i = 0; i < 2 * KINDS; i++)
        test_join(threads[i]);
    rlock_free(held);
    rlock_free(canceled);
}

TEST(threads_close,
     a_client_can_be_freed_while_threads_are_in_every_kind_of_call)
{
    server *sv = server_start(NULL);
    for (int i = 0; i < CLOSINGS; i++) {
        close_while_in_use(sv, 3 * i);
        server_cmd(sv, "DEL contended free");
    }
    EVENTUALLY(LONG_MS, server_info(sv, "connected_clients") == 1);
    server_stop(sv);
}
