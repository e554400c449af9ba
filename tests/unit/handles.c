/*
 * What is asked of handles, as far as no server has to answer: what is refused,
 * and in which words; and what is told when there is no server.
 */
#include "handles.h"
#include "shim.h"

/* --- NULL ----------------------------------------------------------------- */

TEST(handles, a_lock_that_is_null_is_refused)
{
    rlock_holder h;
    int64_t ms;
    bool locked;
    INVALID(rlock_acquire(NULL, 0, 0), "the lock is NULL");
    INVALID(rlock_lock(NULL), "the lock is NULL");
    INVALID(rlock_trylock(NULL), "the lock is NULL");
    INVALID(rlock_unlock(NULL), "the lock is NULL");
    INVALID(rlock_extend(NULL, 0), "the lock is NULL");
    INVALID(rlock_force_unlock(NULL), "the lock is NULL");
    INVALID(rlock_force_unlock_hold(NULL, "x"), "the lock is NULL");
    INVALID(rlock_is_locked(NULL, &locked), "the lock is NULL");
    INVALID(rlock_ttl(NULL, &ms), "the lock is NULL");
    INVALID(rlock_holder_info(NULL, &h, sizeof h), "the lock is NULL");
    INVALID(rlock_hold_info(NULL, "x", &h, sizeof h), "the lock is NULL");
    INVALID(rlock_acquire_start(NULL, 0, 0, NULL, NULL), "the lock is NULL");
    INVALID(rlock_unlock_start(NULL, NULL, NULL), "the lock is NULL");
    INVALID(rlock_extend_start(NULL, 0, NULL, NULL), "the lock is NULL");
    EXPECT_INT(rlock_lost_fd(NULL), -1);
    EXPECT(!rlock_is_held(NULL) && rlock_hold_count(NULL) == 0);
    EXPECT(rlock_valid_ms(NULL) == 0 && rlock_token(NULL) == 0);
    rlock_cancel(NULL);
    rlock_free(NULL);
}

TEST(handles, a_place_for_the_answer_that_is_null_is_refused)
{
    kit k = kit_open();
    rlock_client *cl[] = {k.cl};
    INVALID(rlock_new(k.cl, "job", NULL), "out is NULL");
    INVALID(rlock_multi_new(&k.lk, 1, NULL), "out is NULL");
    INVALID(rlock_red_new(cl, 1, "job", NULL), "out is NULL");
    INVALID(rlock_latch_new(k.cl, "job", NULL), "out is NULL");
    INVALID(rlock_semaphore_new(k.cl, "job", 1, NULL), "out is NULL");
    INVALID(rlock_semaphore_acquire(NULL, 1, 0, 0, NULL), "out is NULL");
    INVALID(rlock_latch_count(NULL, NULL), "out is NULL");
    INVALID(rlock_semaphore_available(NULL, NULL), "out is NULL");
    INVALID(rlock_is_locked(k.lk, NULL), "out is NULL");
    INVALID(rlock_ttl(k.lk, NULL), "out_ms is NULL");
    INVALID(rlock_holder_info(k.lk, NULL, 0), "out is NULL");
    INVALID(rlock_force_unlock_hold(k.lk, NULL), "the holder id is NULL");
    kit_close(&k);
}

TEST(handles, latches_and_permits_that_are_null_are_refused)
{
    int64_t n = 7;
    rlock_permit *p = (rlock_permit *)&n;
    INVALID(rlock_latch_set(NULL, 1, 0), "the latch is NULL");
    INVALID(rlock_latch_count_down(NULL, 1), "the latch is NULL");
    INVALID(rlock_latch_wait(NULL, 0), "the latch is NULL");
    INVALID(rlock_latch_delete(NULL), "the latch is NULL");
    INVALID(rlock_latch_count(NULL, &n), "the latch is NULL");
    EXPECT_INT(n, 0);
    INVALID(rlock_semaphore_add(NULL, 1), "the semaphore is NULL");
    INVALID(rlock_semaphore_available(NULL, &n), "the semaphore is NULL");
    INVALID(rlock_semaphore_acquire(NULL, 1, 0, 0, &p),
            "the semaphore is NULL");
    EXPECT(!p);
    INVALID(rlock_permit_release(NULL), "the permit is NULL");
    INVALID(rlock_permit_release_start(NULL, NULL, NULL), "the permit is NULL");
    INVALID(rlock_permit_extend(NULL, 0), "the permit is NULL");
    EXPECT_INT(rlock_permit_lost_fd(NULL), -1);
    EXPECT_STR(rlock_last_error()->message, "the permit is NULL");
    EXPECT(!rlock_permit_is_held(NULL) && rlock_permit_valid_ms(NULL) == 0);
    rlock_latch_cancel(NULL);
    rlock_latch_free(NULL);
    rlock_semaphore_cancel(NULL);
    rlock_semaphore_free(NULL);
}

/* --- names and options ---------------------------------------------------- */

/* All that is made with a name refuses the same ones. */
static void expect_name_refused(const kit *k, const void *name, size_t len,
                                const char *message)
{
    rlock *lk = k->lk, *write = k->lk;
    rlock_latch *l = (rlock_latch *)k;
    rlock_semaphore *s = (rlock_semaphore *)k;
    INVALID(rlock_new_n(k->cl, name, len, &lk), message);
    INVALID(rlock_latch_new_n(k->cl, name, len, &l), message);
    INVALID(rlock_semaphore_new_ex(k->cl, name, len, NULL, &s), message);
    EXPECT(!lk && !l && !s);
    INVALID(rlock_rw_new_ex(k->cl, name, len, NULL, &lk, &write), message);
    EXPECT(!lk && !write);
    INVALID(rlock_red_new_ex(&k->cl, 1, name, len, NULL, &lk), message);
    EXPECT(!lk);
}

TEST(handles, a_name_has_1_to_512_bytes)
{
    char name[RLOCK_NAME_MAX + 1];
    kit k = kit_open();
    rlock *lk;
    memset(name, 'x', sizeof name);
    EXPECT_INT(RLOCK_NAME_MAX, 512);
    expect_name_refused(&k, NULL, 0, "the name is NULL");
    expect_name_refused(&k, "", 0, "a lock's name has 1 to 512 bytes, not 0");
    expect_name_refused(&k, name, sizeof name,
                        "a lock's name has 1 to 512 bytes, not 513");
    expect_name_refused(
        &k, "rlock_leases:{x}", 16,
        "a lock's name must not begin with \"rlock_leases:\", as the "
        "library's own keys do");
    EXPECT_STATUS(rlock_new_n(k.cl, name, RLOCK_NAME_MAX, &lk), RLOCK_OK);
    rlock_free(lk);
    EXPECT_STATUS(rlock_new_n(k.cl, "", 1, &lk), RLOCK_OK); /* a NUL */
    rlock_free(lk);
    kit_close(&k);
}

TEST(handles, a_client_that_is_null_is_refused)
{
    rlock *lk, *write;
    rlock_latch *l;
    rlock_semaphore *s;
    INVALID(rlock_new(NULL, "job", &lk), "the client is NULL");
    INVALID(rlock_latch_new(NULL, "job", &l), "the client is NULL");
    INVALID(rlock_semaphore_new(NULL, "job", 1, &s), "the client is NULL");
    INVALID(rlock_rw_new(NULL, "job", &lk, &write), "the client is NULL");
    EXPECT(!lk && !write && !l && !s);
}

TEST(handles, either_side_may_be_left_out_and_not_both)
{
    kit k = kit_open();
    rlock *lk = k.lk;
    INVALID(rlock_rw_new(k.cl, "x", NULL, NULL), "read and write are NULL");
    EXPECT_STATUS(rlock_rw_new(k.cl, "x", &lk, NULL), RLOCK_OK);
    rlock_free(lk);
    EXPECT_STATUS(rlock_rw_new(k.cl, "x", NULL, &lk), RLOCK_OK);
    rlock_free(lk);
    kit_close(&k);
}

static void expect_option_refused(const kit *k, rlock_lock_options o,
                                  rlock_status status, const char *message)
{
    rlock *lk = k->lk;
    REFUSED(rlock_new_ex(k->cl, "job", 3, &o, &lk), status, message);
    EXPECT(!lk);
}

static void expect_option_taken(const kit *k, rlock_lock_options o)
{
    rlock *lk;
    EXPECT_STATUS(rlock_new_ex(k->cl, "job", 3, &o, &lk), RLOCK_OK);
    rlock_free(lk);
}

#define WITH(...)                                                              \
    ((rlock_lock_options){sizeof(rlock_lock_options), __VA_ARGS__})

TEST(handles, options_of_a_lock_out_of_range_are_refused)
{
    kit k = kit_open();
    expect_option_refused(&k, (rlock_lock_options){.size = 0}, RLOCK_EINVAL,
                          "bad option: size (use RLOCK_LOCK_OPTIONS_INIT)");
    expect_option_refused(&k, WITH(.layout = 3), RLOCK_EINVAL,
                          "bad option: layout");
    expect_option_refused(&k, WITH(.layout = -1), RLOCK_EINVAL,
                          "bad option: layout");
    expect_option_refused(&k, WITH(.min_replicas = -2), RLOCK_EINVAL,
                          "bad option: min_replicas (-1 to 16)");
    expect_option_refused(&k, WITH(.min_replicas = 17), RLOCK_EINVAL,
                          "bad option: min_replicas (-1 to 16)");
    expect_option_refused(&k, WITH(.layout = 1, .fair = true), RLOCK_ENOTSUP,
                          "only a lock of the hash layout can be fair");
    expect_option_taken(&k, WITH(.layout = 2));
    expect_option_taken(&k, WITH(.min_replicas = -1));
    expect_option_taken(&k, WITH(.min_replicas = 16));
    expect_option_taken(&k, WITH(.fair = true));
    kit_close(&k);
}

#define NOT_ALONE                                                              \
    "only a lock of the hash layout that is not fair can do without tokens"
#define TWO_MAY                                                                \
    "a lock without tokens is one server's: where another may take over, two " \
    "may hold it for a moment, and only their tokens tell who is the later "   \
    "one"

TEST(handles, who_does_without_tokens_has_one_server_and_no_line)
{
    kit k = kit_open();
    expect_option_refused(&k, WITH(.no_tokens = true, .fair = true),
                          RLOCK_ENOTSUP, NOT_ALONE);
    expect_option_refused(&k, WITH(.no_tokens = true, .layout = 1),
                          RLOCK_ENOTSUP, NOT_ALONE);
    expect_option_refused(&k, WITH(.no_tokens = true, .min_replicas = 1),
                          RLOCK_ENOTSUP, TWO_MAY);
    expect_option_taken(&k, WITH(.no_tokens = true, .min_replicas = -1));
    expect_option_taken(&k, WITH(.no_tokens = true));
    kit_close(&k);
}

static void expect_permits(const kit *k, rlock_semaphore_options o,
                           const char *message)
{
    rlock_semaphore *s = (rlock_semaphore *)k;
    rlock_status status = rlock_semaphore_new_ex(k->cl, "job", 3, &o, &s);
    if (*message)
        INVALID(status, message);
    EXPECT_INT(status, *message ? RLOCK_EINVAL : RLOCK_OK);
    EXPECT(!*message == !!s);
    rlock_semaphore_free(s);
}

#define PERMITS(...)                                                           \
    ((rlock_semaphore_options){sizeof(rlock_semaphore_options), __VA_ARGS__})

TEST(handles, options_of_a_semaphore_out_of_range_are_refused)
{
    static const int64_t most = RLOCK_SEMAPHORE_MAX, idle = (int64_t)1 << 41;
    static const char range[] = "bad option: permits (0 to 2^52)";
    static const char time[] = "bad option: idle_ms (0 to 2^41)";
    static const char replicas[] = "bad option: min_replicas (-1 to 16)";
    rlock_semaphore *s;
    kit k = kit_open();
    expect_permits(&k, (rlock_semaphore_options){.size = 0},
                   "bad option: size (use RLOCK_SEMAPHORE_OPTIONS_INIT)");
    expect_permits(&k, PERMITS(.permits = -1), range);
    expect_permits(&k, PERMITS(.permits = 0), "");
    expect_permits(&k, PERMITS(.permits = most), "");
    expect_permits(&k, PERMITS(.permits = most + 1), range);
    expect_permits(&k, PERMITS(.idle_ms = -1), time);
    expect_permits(&k, PERMITS(.idle_ms = idle), "");
    expect_permits(&k, PERMITS(.idle_ms = idle + 1), time);
    expect_permits(&k, PERMITS(.min_replicas = -2), replicas);
    expect_permits(&k, PERMITS(.min_replicas = -1), "");
    expect_permits(&k, PERMITS(.min_replicas = 16), "");
    expect_permits(&k, PERMITS(.min_replicas = 17), replicas);
    INVALID(rlock_semaphore_new(k.cl, "{job}", 1, &s),
            "a semaphore's name must not be in braces as a whole: it would "
            "have the permits of the one without them");
    kit_close(&k);
}

/* --- numbers -------------------------------------------------------------- */

static const char lease[] = HERE "lease_ms is out of range (0, or 3 to 2^52)";

/* Those within the range are asked of the server, which is not there. */
TEST(handles, a_lease_is_0_or_3_to_2_to_the_52)
{
    kit k = kit_open();
    INVALID(rlock_acquire(k.lk, 0, -1), lease);
    INVALID(rlock_acquire(k.lk, 0, 1), lease);
    INVALID(rlock_acquire(k.lk, 0, 2), lease);
    INVALID(rlock_acquire(k.lk, 0, RLOCK_LEASE_MAX_MS + 1), lease);
    INVALID(rlock_extend(k.lk, 2), lease);
    INVALID(rlock_acquire_start(k.lk, 0, 2, NULL, NULL), lease);
    INVALID(rlock_extend_start(k.lk, 2, NULL, NULL), lease);
    AWAY(rlock_acquire(k.lk, 0, 0), HERE);
    AWAY(rlock_acquire(k.lk, 0, 3), HERE);
    AWAY(rlock_acquire(k.lk, 0, RLOCK_LEASE_MAX_MS), HERE);
    kit_close(&k);
}

TEST(handles, a_wait_that_is_negative_and_not_for_ever_is_refused)
{
    kit k = kit_open();
    rlock_latch *l;
    INVALID(rlock_acquire(k.lk, -2, 0), HERE "wait_ms is negative");
    INVALID(rlock_acquire_start(k.lk, -2, 0, NULL, NULL),
            HERE "wait_ms is negative");
    EXPECT_STATUS(rlock_latch_new(k.cl, "job", &l), RLOCK_OK);
    INVALID(rlock_latch_wait(l, -2),
            "latch 'job' at unix:///nowhere: wait_ms is negative");
    rlock_latch_free(l);
    kit_close(&k);
}

TEST(handles, counts_of_a_latch_out_of_range_are_refused)
{
    static const char set[] = "latch 'job' at unix:///nowhere: "
                              "count is out of range (1 to 2^52)";
    static const char by[] = "latch 'job' at unix:///nowhere: "
                             "n is out of range (1 to 2^52)";
    static const char ttl[] = "latch 'job' at unix:///nowhere: "
                              "ttl_ms is out of range (0 to 2^52)";
    static const int64_t most = RLOCK_COUNT_MAX;
    kit k = kit_open();
    rlock_latch *l;
    EXPECT_STATUS(rlock_latch_new(k.cl, "job", &l), RLOCK_OK);
    INVALID(rlock_latch_set(l, 0, 0), set);
    INVALID(rlock_latch_set(l, most + 1, 0), set);
    INVALID(rlock_latch_set(l, 1, -1), ttl);
    INVALID(rlock_latch_set(l, 1, RLOCK_LEASE_MAX_MS + 1), ttl);
    INVALID(rlock_latch_count_down(l, 0), by);
    INVALID(rlock_latch_count_down(l, most + 1), by);
    AWAY(rlock_latch_set(l, 1, 0), "latch 'job' at unix:///nowhere: ");
    AWAY(rlock_latch_set(l, most, RLOCK_LEASE_MAX_MS),
         "latch 'job' at unix:///nowhere: ");
    expect_told(rlock_latch_count_down(l, most), RLOCK_EIO, ENOENT,
                "latch 'job' at unix:///nowhere: to be counted down in the "
                "background (" GONE ")");
    rlock_latch_free(l);
    kit_close(&k);
}

#define SEMAPHORE "semaphore 'job' at unix:///nowhere: "

TEST(handles, counts_of_permits_out_of_range_are_refused)
{
    static const char n[] = SEMAPHORE "n is out of range (1 to 1000)";
    static const char delta[] = SEMAPHORE "delta is out of range (up to 2^52)";
    static const int64_t most = RLOCK_SEMAPHORE_MAX;
    kit k = kit_open();
    rlock_semaphore *s;
    rlock_permit *p = (rlock_permit *)&k;
    EXPECT_STATUS(rlock_semaphore_new(k.cl, "job", 2, &s), RLOCK_OK);
    INVALID(rlock_semaphore_acquire(s, 0, 0, 0, &p), n);
    EXPECT(!p);
    INVALID(rlock_semaphore_acquire(s, -1, 0, 0, &p), n);
    INVALID(rlock_semaphore_acquire(s, 1001, 0, 0, &p), n);
    INVALID(rlock_semaphore_acquire(s, 65537, 0, 0, &p), n);
    INVALID(rlock_semaphore_acquire(s, 1, -2, 0, &p),
            SEMAPHORE "wait_ms is negative");
    INVALID(rlock_semaphore_acquire(s, 1, 0, 2, &p),
            SEMAPHORE "lease_ms is out of range (0, or 3 to 2^52)");
    AWAY(rlock_semaphore_acquire(s, 1000, 0, 0, &p), SEMAPHORE);
    INVALID(rlock_semaphore_acquire_start(s, 1, 0, 0, NULL, NULL),
            SEMAPHORE "done is NULL");
    INVALID(rlock_semaphore_add(s, -most - 1), delta);
    INVALID(rlock_semaphore_add(s, most + 1), delta);
    AWAY(rlock_semaphore_add(s, most), SEMAPHORE);
    AWAY(rlock_semaphore_add(s, -most), SEMAPHORE);
    rlock_semaphore_free(s);
    kit_close(&k);
}

/* --- what nobody holds, and nobody answers -------------------------------- */

#define NOT_HELD "this thread does not hold it"

TEST(handles, what_is_not_held_is_not_released_or_extended)
{
    kit k = kit_open();
    rlock *multi;
    EXPECT_STATUS(rlock_multi_new(&k.lk, 1, &multi), RLOCK_OK);
    REFUSED(rlock_unlock(k.lk), RLOCK_NOT_HELD, HERE NOT_HELD);
    REFUSED(rlock_extend(k.lk, 0), RLOCK_NOT_HELD, HERE NOT_HELD);
    REFUSED(rlock_unlock(multi), RLOCK_NOT_HELD, "member 1: " HERE NOT_HELD);
    REFUSED(rlock_extend(multi, 0), RLOCK_NOT_HELD, "member 1: " HERE NOT_HELD);
    EXPECT(!rlock_is_held(k.lk) && !rlock_is_held(multi));
    EXPECT_INT(rlock_lost_fd(multi), -1);
    EXPECT_STR(rlock_last_error()->message, "member 1: " HERE NOT_HELD);
    EXPECT_INT(rlock_lost_fd(k.lk), -1);
    EXPECT_STR(rlock_last_error()->message, HERE NOT_HELD);
    rlock_free(multi);
    kit_close(&k);
}

TEST(handles, what_is_asked_of_a_server_that_is_away_says_so)
{
    kit k = kit_open();
    rlock_holder h = {.pid = 7};
    int64_t ms = 7;
    bool locked = true;
    AWAY(rlock_trylock(k.lk), HERE);
    AWAY(rlock_acquire(k.lk, 30, 0), HERE);
    AWAY(rlock_force_unlock(k.lk), HERE);
    AWAY(rlock_is_locked(k.lk, &locked), HERE);
    EXPECT(!locked);
    AWAY(rlock_ttl(k.lk, &ms), HERE);
    EXPECT_INT(ms, -2);
    AWAY(rlock_holder_info(k.lk, &h, sizeof h), HERE);
    EXPECT_INT(h.pid, 0);
    INVALID(rlock_hold_info(k.lk, "x", &h, sizeof h),
            HERE "that is no holder id: rlock_holder.raw has one");
    INVALID(rlock_force_unlock_hold(k.lk, "x"),
            HERE "that is no holder id: rlock_holder.raw has one");
    INVALID(rlock_holder_info(k.lk, &h, 7), "no rlock_holder has 7 bytes (use "
                                            "sizeof)");
    kit_close(&k);
}

/* --- several -------------------------------------------------------------- */

TEST(handles, members_that_a_multi_lock_cannot_have_are_refused)
{
    kit k = kit_open();
    rlock *out = k.lk, *many[RLOCK_MULTI_MAX + 1] = {k.theirs, k.lk, k.lk};
    INVALID(rlock_multi_new(NULL, 1, &out), "a Multi lock needs members");
    INVALID(rlock_multi_new(many, 0, &out), "a Multi lock needs members");
    INVALID(rlock_multi_new((rlock *[]){NULL}, 1, &out), "member 1 is NULL");
    INVALID(rlock_multi_new((rlock *[]){k.lk, NULL}, 2, &out),
            "member 2 is NULL");
    INVALID(rlock_multi_new(many, 3, &out),
            "member 3 is the same lock as an earlier one");
    EXPECT(!out);
    for (size_t i = 0; i <= RLOCK_MULTI_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "job %zu", i);
        EXPECT_STATUS(rlock_new(k.cl, name, &many[i]), RLOCK_OK);
    }
    INVALID(rlock_multi_new(many, RLOCK_MULTI_MAX + 1, &out),
            "member 65 is one too many");
    EXPECT_STATUS(rlock_multi_new(many, RLOCK_MULTI_MAX, &out), RLOCK_OK);
    rlock_free(out);
    for (size_t i = 0; i <= RLOCK_MULTI_MAX; i++)
        rlock_free(many[i]);
    kit_close(&k);
}

#define MEMBER "member 1: lock 'job' at unix:///neither: "
#define ASK    "lock 'a Multi lock': ask the members of a Multi lock"

/* The first that was given, in whatever order they are asked. */
TEST(handles, a_multi_lock_tells_which_member_failed)
{
    kit k = kit_open();
    rlock_holder h;
    int64_t ms;
    bool locked;
    rlock *multi, *of[] = {k.theirs, k.lk};
    EXPECT_STATUS(rlock_multi_new(of, 2, &multi), RLOCK_OK);
    AWAY(rlock_trylock(multi), MEMBER);
    AWAY(rlock_force_unlock(multi), MEMBER);
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    AWAY(rlock_force_unlock(multi), MEMBER); /* one after the other */
    shim_clear(shim_here());
    REFUSED(rlock_force_unlock_hold(multi, "x"), RLOCK_ENOTSUP, ASK);
    REFUSED(rlock_is_locked(multi, &locked), RLOCK_ENOTSUP, ASK);
    REFUSED(rlock_ttl(multi, &ms), RLOCK_ENOTSUP, ASK);
    REFUSED(rlock_holder_info(multi, &h, sizeof h), RLOCK_ENOTSUP, ASK);
    rlock_free(multi);
    kit_close(&k);
}

TEST(handles, nodes_that_a_red_lock_cannot_have_are_refused)
{
    kit k = kit_open();
    rlock *out = k.lk;
    rlock_client *of[] = {k.cl, k.other, k.cl};
    static const char count[] = "a Red lock has 1 to 9 clients";
    INVALID(rlock_red_new(NULL, 1, "job", &out), count);
    INVALID(rlock_red_new(of, 0, "job", &out), count);
    INVALID(rlock_red_new(of, 10, "job", &out), count);
    INVALID(rlock_red_new((rlock_client *[]){NULL}, 1, "job", &out),
            "client 1 is NULL");
    INVALID(rlock_red_new((rlock_client *[]){k.cl, NULL}, 2, "job", &out),
            "client 2 is NULL");
    INVALID(rlock_red_new(of, 3, "job", &out), "client 3 is listed twice");
    EXPECT(!out);
    kit_close(&k);
}

static void expect_red(const kit *k, rlock_red_options o, rlock_status status,
                       const char *message)
{
    rlock *lk = k->lk;
    REFUSED(rlock_red_new_ex(&k->cl, 1, "job", 3, &o, &lk), status, message);
    EXPECT(!lk);
}

#define RED(...) ((rlock_red_options){sizeof(rlock_red_options), __VA_ARGS__})

TEST(handles, options_of_a_red_lock_out_of_range_are_refused)
{
    static const char longest[] = "bad option: longest_lease_ms";
    kit k = kit_open();
    rlock *lk;
    expect_red(&k, (rlock_red_options){.size = 0}, RLOCK_EINVAL,
               "bad option: size (use RLOCK_RED_OPTIONS_INIT)");
    expect_red(&k, RED(.layout = 3), RLOCK_EINVAL, "bad option: layout");
    expect_red(&k, RED(.layout = 2), RLOCK_ENOTSUP,
               "a Red lock has no timestamp layout: nobody would share it");
    expect_red(&k, RED(.longest_lease_ms = -1), RLOCK_EINVAL, longest);
    expect_red(&k, RED(.longest_lease_ms = RLOCK_LEASE_MAX_MS + 1),
               RLOCK_EINVAL, longest);
    EXPECT_STATUS(rlock_red_new_ex(&k.cl, 1, "job", 3,
                                   &RED(.longest_lease_ms = RLOCK_LEASE_MAX_MS),
                                   &lk),
                  RLOCK_OK);
    rlock_free(lk);
    kit_close(&k);
}

#define NODES "lock 'job' on 2 nodes: "

/* Without one of the two the other need not have been asked. */
static void expect_no_quorum(rlock_status s)
{
    const rlock_error *e = rlock_last_error();
    EXPECT(s == RLOCK_EQUORUM && e->status == s && e->sys_errno == 0);
    EXPECT(strncmp(e->message, NODES "1 ", strlen(NODES "1 ")) == 0);
    EXPECT_CONTAINS(e->message, "; 2 ");
    EXPECT_CONTAINS(e->message, GONE);
}

TEST(handles, a_red_lock_tells_what_each_node_said)
{
    kit k = kit_open();
    rlock_holder h;
    bool locked = true;
    rlock *red;
    EXPECT_STATUS(
        rlock_red_new((rlock_client *[]){k.cl, k.other}, 2, "job", &red),
        RLOCK_OK);
    expect_no_quorum(rlock_trylock(red));
    expect_no_quorum(rlock_force_unlock(red));
    expect_no_quorum(rlock_holder_info(red, &h, sizeof h));
    expect_no_quorum(rlock_is_locked(red, &locked));
    REFUSED(rlock_unlock(red), RLOCK_NOT_HELD, NODES NOT_HELD);
    REFUSED(rlock_extend(red, 0), RLOCK_NOT_HELD, NODES NOT_HELD);
    EXPECT_INT(rlock_lost_fd(red), -1);
    EXPECT_STR(rlock_last_error()->message, NODES NOT_HELD);
    EXPECT(!locked && !rlock_is_held(red));
    rlock_free(red);
    kit_close(&k);
}

/* --- what is called under a lock ------------------------------------------ */

#define WORDS  HERE "a key or argument is NULL"
#define MANY   HERE "there are more than 1,000,000 keys and arguments"
#define COUNTS HERE "the number of keys or arguments is negative"
#define FORMAT HERE "the format is NULL, or not one that redisCommand() takes"

TEST(handles, calls_that_cannot_be_made_are_refused)
{
    kit k = kit_open();
    const char *argv[] = {"a", NULL};
    struct redisReply *r = (struct redisReply *)&k;
    INVALID(rlock_eval(k.lk, NULL, 0, 0, NULL, NULL, &r),
            HERE "the script is NULL");
    EXPECT(!r);
    INVALID(rlock_eval(k.lk, "#!lua\n", 0, 0, NULL, NULL, NULL),
            HERE "a script that begins with \"#!\" cannot be guarded, as that "
                 "has to be a script's first line");
    INVALID(rlock_eval(k.lk, "", -1, 1, argv, NULL, NULL), COUNTS);
    INVALID(rlock_eval(k.lk, "", 1, -1, argv, NULL, NULL), COUNTS);
    INVALID(rlock_eval(k.lk, "", 1000001, 0, argv, NULL, NULL), MANY);
    INVALID(rlock_eval(k.lk, "", 1, 1000000, argv, NULL, NULL), MANY);
    INVALID(rlock_eval(k.lk, "", 1, 999999, NULL, NULL, NULL), WORDS);
    INVALID(rlock_eval(k.lk, "", 1, 0, NULL, NULL, NULL), WORDS);
    INVALID(rlock_eval(k.lk, "", 1, 1, argv, NULL, NULL), WORDS);
    INVALID(rlock_command_argv(k.lk, NULL, 0, argv, NULL),
            HERE "the command has no words");
    INVALID(rlock_command_argv(k.lk, NULL, 2, argv, NULL), WORDS);
    INVALID(rlock_command(k.lk, NULL, NULL), FORMAT);
    INVALID(rlock_command(k.lk, NULL, "SET a %q"), FORMAT);
    kit_close(&k);
}

#define NO_ONE                                                                 \
    "a lock of several has no one server that could check it; see "            \
    "rlock_token()"

TEST(handles, calls_need_a_hold_of_one_server)
{
    kit k = kit_open();
    rlock *multi, *red;
    const char *argv[] = {"a", NULL};
    EXPECT_STATUS(rlock_multi_new(&k.lk, 1, &multi), RLOCK_OK);
    EXPECT_STATUS(rlock_red_new(&k.cl, 1, "job", &red), RLOCK_OK);
    REFUSED(rlock_eval(k.lk, "return 1", 0, 1, argv, NULL, NULL),
            RLOCK_NOT_HELD, HERE NOT_HELD);
    REFUSED(rlock_command_argv(k.lk, NULL, 1, argv, NULL), RLOCK_NOT_HELD,
            HERE NOT_HELD);
    REFUSED(rlock_command(k.lk, NULL, "GET %s", "a"), RLOCK_NOT_HELD,
            HERE NOT_HELD);
    REFUSED(rlock_command(multi, NULL, "GET %s", "a"), RLOCK_ENOTSUP,
            "lock 'a Multi lock': " NO_ONE);
    REFUSED(rlock_command(red, NULL, "GET %s", "a"), RLOCK_ENOTSUP,
            "lock 'job': " NO_ONE);
    rlock_free(multi);
    rlock_free(red);
    kit_close(&k);
}
