/*
 * Credentials that a program hands out by a callback: passwords that are
 * rotated, and tokens that expire.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "scene.h"

typedef struct vault {
    pthread_mutex_t mutex;
    const char *password;
    const char *next; /* from the second call on; or NULL */
    int64_t valid_ms;
    bool empty;
    atomic_int calls, inside;
    char shown[64]; /* the same memory each time */
} vault;

static int hand_out(rlock_credentials *out, void *arg)
{
    vault *v = arg;
    EXPECT_INT(atomic_fetch_add(&v->inside, 1), 0);
    int nth = atomic_fetch_add(&v->calls, 1);
    pthread_mutex_lock(&v->mutex);
    snprintf(v->shown, sizeof v->shown, "%s",
             v->next && nth > 0 ? v->next : v->password);
    *out = (rlock_credentials){.password = v->shown, .valid_ms = v->valid_ms};
    bool empty = v->empty;
    pthread_mutex_unlock(&v->mutex);
    atomic_fetch_sub(&v->inside, 1);
    return !empty;
}

static void rotate(vault *v, server *sv, const char *password)
{
    pthread_mutex_lock(&v->mutex);
    v->password = password;
    pthread_mutex_unlock(&v->mutex);
    EXPECT_STR(server_str(sv, "CONFIG SET requirepass %s", password), "OK");
}

/* A server that wants a password; the test's own connection is logged in. */
static server *guarded(const char *password)
{
    server *sv = server_start(NULL);
    EXPECT_STR(server_str(sv, "CONFIG SET requirepass %s", password), "OK");
    EXPECT_STR(server_str(sv, "AUTH %s", password), "OK");
    return sv;
}

static rlock_options asking(server *sv, vault *v)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    pthread_mutex_init(&v->mutex, NULL);
    o.uri = server_uri(sv);
    o.credentials = hand_out;
    o.credentials_arg = v;
    return o;
}

TEST(credentials, fault_127_a_rotated_password_is_taken_and_holds_survive)
{
    vault v = {.password = "first"};
    server *sv = guarded("first");
    rlock_options o = asking(sv, &v);
    o.watchdog_lease_ms = BRISK_MS;
    scene one = scene_with(sv, &o);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    rotate(&v, sv, "second");
    server_int(sv, "CLIENT KILL TYPE normal SKIPME yes");
    watch_renewals(one.cl, 2);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    unlock_times(one.lk, 2, RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).lost, 0);
    scene_leave(&one);
    server_stop(sv);
}

TEST(credentials, fault_127_refused_ones_are_asked_for_once_more)
{
    vault v = {.password = "old", .next = "new"};
    server *sv = guarded("new");
    rlock_options o = asking(sv, &v);
    scene one = scene_with(sv, &o);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    scene_leave(&one);
    server_stop(sv);
}

TEST(credentials, fault_127_those_that_stay_wrong_are_said_to_be)
{
    vault v = {.password = "wrong-one"};
    server *sv = guarded("right");
    rlock_options o = asking(sv, &v);
    rlock_client *cl;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "login failed");
    EXPECT(!strstr(rlock_last_error()->message, "wrong-one"));
    EXPECT_INT(atomic_load(&v.calls), 2);
    server_stop(sv);
}

TEST(credentials, fault_127_a_program_that_has_none_is_named)
{
    vault v = {.password = "", .empty = true};
    server *sv = guarded("right");
    rlock_options o = asking(sv, &v);
    rlock_client *cl;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, "credentials callback");
    server_stop(sv);
}

/* Connections that are older than nine tenths of their login. */
static bool all_are_new(server *sv, int64_t limit_ms)
{
    char list[8192];
    snprintf(list, sizeof list, "%s", server_str(sv, "CLIENT LIST SKIPME yes"));
    for (char *at = list; (at = strstr(at, " age=")) != NULL; at++)
        if (atoi(at + 5) * 1000LL > limit_ms)
            return false;
    return true;
}

TEST(credentials, fault_127_no_connection_outlives_its_login)
{
    enum { VALID_MS = 1000 };
    vault v = {.password = "right", .valid_ms = VALID_MS};
    server *sv = guarded("right");
    rlock_options o = asking(sv, &v);
    o.watchdog_lease_ms = BRISK_MS;
    scene one = scene_with(sv, &o), two = scene_with(sv, &o);
    rlock *held = test_lock(one.cl, "held");
    EXPECT_STATUS(rlock_lock(held), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(two.lk), RLOCK_OK);
    waiter *w = waiter_start(one.lk, SOON, RLOCK_WATCHDOG);
    waiters_settle(sv, 1, one.cl, 1);
    int asked = atomic_load(&v.calls);
    EVENTUALLY(SOON, atomic_load(&v.calls) >= asked + 8);
    EXPECT(all_are_new(sv, 2 * VALID_MS));
    EXPECT_INT(stats_of(one.cl).reconnects, 0);
    EXPECT_INT(stats_of(one.cl).lost + stats_of(two.cl).lost, 0);
    EXPECT_STATUS(rlock_unlock(two.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(held), RLOCK_OK);
    rlock_free(held);
    scene_leave(&two);
    scene_leave(&one);
    server_stop(sv);
}

TEST(credentials, beside_a_login_in_the_uri_are_refused)
{
    vault v = {.password = "x"};
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    o.uri = "redis://:hush@127.0.0.1:1";
    o.credentials = hand_out;
    o.credentials_arg = &v;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EINVAL);
    EXPECT(!strstr(rlock_last_error()->message, "hush"));
    EXPECT_INT(atomic_load(&v.calls), 0);
}
