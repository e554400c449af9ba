/* Threads that end: what becomes of their holds, and of what they do last. */
#include <pthread.h>

#include "scene.h"

enum { LONG_MS = 20000 };

typedef struct ending {
    server *sv;
    events *ev;
    rlock_client *cl;
    rlock *lk;
} ending;

static ending ending_start(int64_t lease_ms)
{
    ending e = {.sv = server_start(NULL), .ev = events_new()};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = lease_ms;
    events_hook(e.ev, &opts);
    e.cl = server_client(e.sv, &opts);
    e.lk = test_lock(e.cl, "main");
    return e;
}

static void ending_stop(ending *e)
{
    rlock_free(e->lk);
    rlock_client_free(e->cl);
    server_stop(e->sv);
    events_free(e->ev);
}

static intptr_t lock_twice(void *arg)
{
    rlock *lk = arg;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    return 0;
}

TEST(threads_end, the_hold_of_a_thread_that_ended_is_abandoned_once)
{
    ending e = ending_start(600);
    rlock_event ev;
    test_join(test_spawn(lock_twice, e.lk));
    events_wait(e.ev, RLOCK_EVENT_ABANDONED, 1, LONG_MS);
    EXPECT(events_last(e.ev, RLOCK_EVENT_ABANDONED, &ev));
    EXPECT_STR(ev.name, "main");
    EXPECT(ev.token != 0);
    EXPECT_INT(stats_of(e.cl).held_now, 0);
    EVENTUALLY(LONG_MS, server_int(e.sv, "EXISTS main") == 0);
    EXPECT_INT(events_count(e.ev, RLOCK_EVENT_ABANDONED), 1);
    EXPECT_INT(events_count(e.ev, RLOCK_EVENT_LOST), 0);
    ending_stop(&e);
}

TEST(threads_end, the_lock_of_a_thread_that_ended_is_free_after_its_lease)
{
    ending e = ending_start(600);
    test_join(test_spawn(lock_twice, e.lk));
    int64_t ended = test_now_ms();
    EXPECT_STATUS(rlock_trylock(e.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(e.lk, LONG_MS, RLOCK_WATCHDOG), RLOCK_OK);
    /* The fallback poll would come after 1.5 s. */
    EXPECT_BETWEEN(test_now_ms() - ended, 300, 600 + 800);
    EXPECT_INT(stats_of(e.cl).renewals, 0);
    ending_stop(&e);
}

TEST(threads_end, a_thread_that_ended_without_a_hold_is_not_reported)
{
    ending e = ending_start(600);
    for (int i = 0; i < 20; i++)
        test_join(test_spawn(lock_once, e.lk));
    test_join(test_spawn(lock_twice, e.lk));
    events_wait(e.ev, RLOCK_EVENT_ABANDONED, 1, LONG_MS);
    EXPECT_INT(events_count(e.ev, RLOCK_EVENT_ABANDONED), 1);
    ending_stop(&e);
}

/* A thread's own clean-up, that of a key which is younger than the client. */
static void unlock_at_the_end(void *arg)
{
    EXPECT(rlock_is_held(arg));
    EXPECT_STATUS(rlock_unlock(arg), RLOCK_OK);
}

typedef struct cleanup {
    rlock *lk;
    pthread_key_t key;
} cleanup;

static intptr_t lock_until_the_end(void *arg)
{
    cleanup *c = arg;
    EXPECT_STATUS(rlock_lock(c->lk), RLOCK_OK);
    EXPECT_INT(pthread_setspecific(c->key, c->lk), 0);
    return 0;
}

TEST(threads_end, a_threads_own_cleanup_may_unlock)
{
    ending e = ending_start(0);
    cleanup c = {.lk = e.lk};
    EXPECT_INT(pthread_key_create(&c.key, unlock_at_the_end), 0);
    test_join(test_spawn(lock_until_the_end, &c));
    EXPECT_STATUS(rlock_trylock(e.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(e.lk), RLOCK_OK);
    EXPECT_INT(events_count(e.ev, RLOCK_EVENT_ABANDONED), 0);
    pthread_key_delete(c.key);
    ending_stop(&e);
}

/* It may lock, too. */
static void lock_at_the_end(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
}

typedef struct late {
    rlock *first, *last;
    pthread_key_t key;
} late;

static intptr_t lock_now_and_at_the_end(void *arg)
{
    late *l = arg;
    EXPECT_STATUS(rlock_lock(l->first), RLOCK_OK);
    EXPECT_INT(pthread_setspecific(l->key, l->last), 0);
    return 0;
}

TEST(threads_end, a_lock_taken_in_a_threads_own_cleanup_is_abandoned_too)
{
    ending e = ending_start(600);
    late l = {.first = e.lk, .last = test_lock(e.cl, "late")};
    /* After the library's key, so its destructor runs after the library's. */
    EXPECT_INT(pthread_key_create(&l.key, lock_at_the_end), 0);
    test_join(test_spawn(lock_now_and_at_the_end, &l));
    events_wait(e.ev, RLOCK_EVENT_ABANDONED, 2, 5000);
    EVENTUALLY(LONG_MS, server_int(e.sv, "EXISTS main late") == 0);
    pthread_key_delete(l.key);
    rlock_free(l.last);
    ending_stop(&e);
}

static void *lock_and_tell_thread(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(arg), 2); /* the control: it is its own */
    return NULL;
}

static void *expect_nothing_inherited(void *arg)
{
    rlock *lk = arg;
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_hold_count(lk), 0);
    EXPECT(rlock_token(lk) == 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    return NULL;
}

/* glibc gives the memory of a thread that was joined to the next one. */
TEST(threads_end, fault_087_a_thread_with_a_dead_ones_id_does_not_inherit)
{
    ending e = ending_start(60000);
    pthread_t first, next;
    bool same = false;
    EXPECT_INT(pthread_create(&first, NULL, lock_and_tell_thread, e.lk), 0);
    pthread_join(first, NULL);
    for (int i = 0; i < 50 && !same; i++) {
        EXPECT_INT(pthread_create(&next, NULL, expect_nothing_inherited, e.lk),
                   0);
        same = pthread_equal(first, next);
        pthread_join(next, NULL);
    }
    ending_stop(&e);
    if (!same)
        SKIP("no thread got the id of the first one");
}
