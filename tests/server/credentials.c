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

/* It is told a second after the server. */
TEST(credentials, a_password_that_the_program_knows_late_is_waited_for)
{
    vault v = {.password = "first"};
    server *sv = guarded("first");
    rlock_options o = asking(sv, &v);
    o.watchdog_lease_ms = SOON;
    scene one = scene_with(sv, &o);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    EXPECT_STR(server_str(sv, "CONFIG SET requirepass second"), "OK");
    server_int(sv, "CLIENT KILL TYPE normal SKIPME yes");
    int calls = atomic_load(&v.calls);
    waiter *w = waiter_start(one.lk, SOON, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, atomic_load(&v.calls) >= calls + 6);
    rotate(&v, sv, "second");
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).lost, 0);
    scene_leave(&one);
    server_stop(sv);
}

TEST(credentials, one_that_stays_wrong_ends_the_wait_as_what_it_is)
{
    vault v = {.password = "first"};
    server *sv = guarded("first");
    rlock_options o = asking(sv, &v);
    scene one = scene_with(sv, &o);
    EXPECT_STR(server_str(sv, "CONFIG SET requirepass second"), "OK");
    server_int(sv, "CLIENT KILL TYPE normal SKIPME yes");
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(one.lk, 500, RLOCK_WATCHDOG), RLOCK_ESERVER);
    EXPECT(test_since_ms(began_ms) >= 490);
    EXPECT_CONTAINS(rlock_last_error()->message, "login failed");
    scene_leave(&one);
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

enum { VALID_MS = 1000 };

/* A thread that locks as long as it is not told that it is enough. */
typedef struct worker {
    rlock *lk;
    atomic_bool *enough;
} worker;

/* The ids of connections of this type, of which one is the test's own. */
typedef struct ids {
    char text[4096];
} ids;

static ids ids_of(server *sv, const char *type)
{
    ids found = {""};
    const char *list = server_str(sv, "CLIENT LIST TYPE %s", type);
    long long own = server_int(sv, "CLIENT ID");
    list = server_str(sv, "CLIENT LIST TYPE %s", type);
    for (const char *at = list; at && (at = strstr(at, "id=")) != NULL; at++)
        if ((at == list || at[-1] == '\n') && atoll(at + 3) != own)
            snprintf(found.text + strlen(found.text),
                     sizeof found.text - strlen(found.text), " %lld ",
                     atoll(at + 3));
    return found;
}

/* None of those from then is there any more. */
static bool all_replaced(server *sv, const char *type, const ids *then)
{
    ids now = ids_of(sv, type);
    for (char *at = strtok(now.text, " "); at; at = strtok(NULL, " ")) {
        char word[32];
        snprintf(word, sizeof word, " %s ", at);
        if (strstr(then->text, word))
            return false;
    }
    return true;
}

static intptr_t lock_until_told(void *arg)
{
    worker *w = arg;
    while (!atomic_load(w->enough)) {
        EXPECT_STATUS(rlock_lock(w->lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(w->lk), RLOCK_OK);
    }
    return 0;
}

TEST(credentials, fault_127_connections_that_threads_share_are_replaced_in_time)
{
    enum { THREADS = 6 };
    vault v = {.password = "right", .valid_ms = VALID_MS};
    server *sv = guarded("right");
    rlock_options o = asking(sv, &v);
    scene one = scene_with(sv, &o);
    atomic_bool enough = false;
    worker w[THREADS];
    test_thread *t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        char name[16];
        snprintf(name, sizeof name, "job:%d", i);
        w[i].lk = test_lock(one.cl, name);
        w[i].enough = &enough;
        t[i] = test_spawn(lock_until_told, &w[i]);
    }
    EVENTUALLY(SOON, server_calls(sv, "evalsha") > 100);
    ids then = ids_of(sv, "normal");
    EVENTUALLY(3 * VALID_MS + SLACK_MS, all_replaced(sv, "normal", &then));
    atomic_store(&enough, true);
    for (int i = 0; i < THREADS; i++) {
        test_join(t[i]);
        rlock_free(w[i].lk);
    }
    EXPECT_INT(stats_of(one.cl).reconnects, 0);
    scene_leave(&one);
    server_stop(sv);
}

TEST(credentials, fault_127_the_watchdogs_connection_is_replaced_in_time)
{
    vault v = {.password = "right", .valid_ms = VALID_MS};
    server *sv = guarded("right");
    rlock_options o = asking(sv, &v);
    o.watchdog_lease_ms = BRISK_MS;
    scene one = scene_with(sv, &o);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    watch_renewals(one.cl, 1);
    long long then = server_info(sv, "total_connections_received");
    /* Nobody but the watchdog makes any. */
    EVENTUALLY(5 * VALID_MS,
               server_info(sv, "total_connections_received") >= then + 2);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).reconnects, 0);
    scene_leave(&one);
    server_stop(sv);
}

/* It passes rings on that nobody here has a use for. */
TEST(credentials, fault_127_the_watchdogs_is_replaced_while_nothing_is_held)
{
    vault v = {.password = "right", .valid_ms = VALID_MS};
    server *sv = guarded("right");
    rlock_options o = asking(sv, &v);
    scene one = scene_with(sv, &o);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    int asked = atomic_load(&v.calls);
    EVENTUALLY(3 * VALID_MS + SLACK_MS, atomic_load(&v.calls) > asked);
    scene_leave(&one);
    server_stop(sv);
}

TEST(credentials, fault_127_the_doorbells_connection_is_replaced_in_time)
{
    vault v = {.password = "right", .valid_ms = VALID_MS};
    server *sv = guarded("right");
    rlock_options o = asking(sv, &v);
    scene one = scene_with(sv, &o), two = scene_with(sv, &o);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    waiter *w = waiter_start(two.lk, SOON, RLOCK_WATCHDOG);
    waiters_settle(sv, 1, two.cl, 1);
    ids then = ids_of(sv, "pubsub");
    EXPECT(*then.text);
    EVENTUALLY(3 * VALID_MS + SLACK_MS, all_replaced(sv, "pubsub", &then));
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(stats_of(two.cl).reconnects, 0);
    scene_leave(&two);
    scene_leave(&one);
    server_stop(sv);
}

TEST(credentials, fault_127_an_idle_connection_is_not_handed_out_any_more)
{
    vault v = {.password = "right", .valid_ms = VALID_MS};
    server *sv = guarded("right");
    rlock_options o = asking(sv, &v);
    scene one = scene_with(sv, &o);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    int64_t since_ms = test_now_ms();
    int asked = atomic_load(&v.calls);
    EVENTUALLY(SOON, test_since_ms(since_ms) > VALID_MS + 100);
    EXPECT_STATUS(rlock_trylock(one.lk), RLOCK_OK);
    EXPECT(atomic_load(&v.calls) > asked);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    scene_leave(&one);
    server_stop(sv);
}

/* A login that is over before its connection is ready must not be made again
   and again. */
TEST(credentials, fault_127_a_login_of_a_millisecond_serves_for_a_second)
{
    vault v = {.password = "right", .valid_ms = 1};
    server *sv = guarded("right");
    rlock_options o = asking(sv, &v);
    o.watchdog_lease_ms = BRISK_MS;
    scene one = scene_with(sv, &o);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    watch_renewals(one.cl, 3);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    EXPECT(atomic_load(&v.calls) < 20);
    EXPECT_INT(stats_of(one.cl).lost, 0);
    scene_leave(&one);
    server_stop(sv);
}

TEST(credentials, fault_127_those_that_have_expired_are_not_used)
{
    vault v = {.password = "right", .valid_ms = -1};
    server *sv = guarded("right");
    rlock_options o = asking(sv, &v);
    rlock_client *cl;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, "expired");
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
