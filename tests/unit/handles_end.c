/* Every verb, when the client is closed, after fork(), and without memory. */
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handles.h"
#include "shim.h"

/* Of each kind one. */
typedef struct all {
    kit k;
    rlock *multi, *red, *read, *write;
    rlock_latch *latch;
    rlock_semaphore *semaphore;
} all;

static all all_open(void)
{
    all a = {.k = kit_open()};
    rlock *locks[] = {a.k.lk, a.k.theirs};
    rlock_client *clients[] = {a.k.cl, a.k.other};
    EXPECT_STATUS(rlock_multi_new(locks, 2, &a.multi), RLOCK_OK);
    EXPECT_STATUS(rlock_red_new(clients, 2, "job", &a.red), RLOCK_OK);
    EXPECT_STATUS(rlock_rw_new(a.k.cl, "job", &a.read, &a.write), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_new(a.k.cl, "job", &a.latch), RLOCK_OK);
    EXPECT_STATUS(rlock_semaphore_new(a.k.cl, "job", 2, &a.semaphore),
                  RLOCK_OK);
    return a;
}

static void all_close(all *a)
{
    rlock_free(a->multi);
    rlock_free(a->red);
    rlock_free(a->read);
    rlock_free(a->write);
    rlock_latch_free(a->latch);
    rlock_semaphore_free(a->semaphore);
    kit_close(&a->k);
}

/* --- the verbs ------------------------------------------------------------ */

static bool locked;
static int64_t number;
static rlock_holder holder;
static rlock_permit *permit;
static rlock_rw_state sides = RLOCK_RW_STATE_INIT;

static void done(rlock *lk, rlock_status s, void *arg)
{
    (void)lk;
    *(rlock_status *)arg = s;
}

static void permit_done(rlock_permit *p, rlock_status s, void *arg)
{
    EXPECT(!p);
    *(rlock_status *)arg = s;
}

static void replied(rlock *lk, rlock_status s, struct redisReply *reply,
                    void *arg)
{
    EXPECT(!reply);
    done(lk, s, arg);
}

static void latch_done(rlock_latch *l, rlock_status s, void *arg)
{
    (void)l;
    *(rlock_status *)arg = s;
}

#define VERB(name, call)                                                       \
    static rlock_status name(all *a)                                           \
    {                                                                          \
        return call;                                                           \
    }

VERB(trylock, rlock_trylock(a->k.lk))
VERB(wait_for, rlock_acquire(a->k.lk, 20, 0))
VERB(force, rlock_force_unlock(a->k.lk))
VERB(is_locked, rlock_is_locked(a->k.lk, &locked))
VERB(ttl, rlock_ttl(a->k.lk, &number))
VERB(holder_info, rlock_holder_info(a->k.lk, &holder, sizeof holder))
VERB(multi_trylock, rlock_trylock(a->multi))
VERB(multi_force, rlock_force_unlock(a->multi))
VERB(red_trylock, rlock_trylock(a->red))
VERB(red_force, rlock_force_unlock(a->red))
VERB(red_is_locked, rlock_is_locked(a->red, &locked))
VERB(read_trylock, rlock_trylock(a->read))
VERB(write_trylock, rlock_trylock(a->write))
VERB(rw_inspect, rlock_rw_inspect(a->write, &sides))
VERB(latch_set, rlock_latch_set(a->latch, 1, 0))
VERB(latch_down, rlock_latch_count_down(a->latch, 1))
VERB(latch_wait, rlock_latch_wait(a->latch, 0))
VERB(latch_count, rlock_latch_count(a->latch, &number))
VERB(latch_delete, rlock_latch_delete(a->latch))
VERB(permits_add, rlock_semaphore_add(a->semaphore, 1))
VERB(permits_left, rlock_semaphore_available(a->semaphore, &number))
VERB(permits_acquire, rlock_semaphore_acquire(a->semaphore, 1, 0, 0, &permit))

/* They need the server. */
static rlock_status (*const asking[])(all *a) = {
    trylock,       wait_for,      force,        is_locked,       ttl,
    holder_info,   multi_trylock, multi_force,  red_trylock,     red_force,
    red_is_locked, latch_set,     latch_down,   latch_wait,      latch_count,
    latch_delete,  permits_add,   permits_left, permits_acquire, read_trylock,
    write_trylock, rw_inspect};

VERB(unlock, rlock_unlock(a->k.lk))
VERB(extend, rlock_extend(a->k.lk, 0))
VERB(eval, rlock_eval(a->k.lk, "return 1", 0, 0, NULL, NULL, NULL))
VERB(command, rlock_command(a->k.lk, NULL, "PING"))
VERB(multi_unlock, rlock_unlock(a->multi))
VERB(multi_extend, rlock_extend(a->multi, 0))
VERB(red_unlock, rlock_unlock(a->red))
VERB(red_extend, rlock_extend(a->red, 0))

/* They need a hold. */
static rlock_status (*const holding[])(all *a) = {
    unlock,       extend,       eval,       command,
    multi_unlock, multi_extend, red_unlock, red_extend};

static rlock_status told;

VERB(start_acquire, rlock_acquire_start(a->k.lk, 0, 0, done, &told))
VERB(start_unlock, rlock_unlock_start(a->k.lk, done, &told))
VERB(start_extend, rlock_extend_start(a->k.lk, 0, done, &told))
VERB(start_multi, rlock_acquire_start(a->multi, 0, 0, done, &told))
VERB(start_red, rlock_acquire_start(a->red, 0, 0, done, &told))
VERB(start_wait, rlock_latch_wait_start(a->latch, 0, latch_done, &told))
VERB(start_permits,
     rlock_semaphore_acquire_start(a->semaphore, 1, 0, 0, permit_done, &told))
VERB(start_eval,
     rlock_eval_start(a->k.lk, "return 1", 0, 0, NULL, NULL, replied, &told))
VERB(start_command, rlock_command_start(a->k.lk, replied, &told, "PING"))

/* How they end is told later. */
static const struct {
    rlock_status (*verb)(all *a);
    rlock_status end;
} starting[] = {{start_acquire, RLOCK_EIO},     {start_unlock, RLOCK_NOT_HELD},
                {start_extend, RLOCK_NOT_HELD}, {start_multi, RLOCK_EIO},
                {start_red, RLOCK_EQUORUM},     {start_wait, RLOCK_EIO},
                {start_permits, RLOCK_EIO},     {start_eval, RLOCK_NOT_HELD},
                {start_command, RLOCK_NOT_HELD}};

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* --- the ends ------------------------------------------------------------- */

static bool says(rlock_status s, rlock_status wanted)
{
    const rlock_error *e = rlock_last_error();
    return s == wanted && e->status == wanted && *e->message;
}

/* The number of the first one that says something else; 0: none. */
static int first_that_differs(all *a, rlock_status wanted)
{
    int n = 0;
    for (size_t i = 0; i < COUNT(asking); i++)
        if (++n && !says(asking[i](a), wanted))
            return n;
    for (size_t i = 0; i < COUNT(holding); i++)
        if (++n && !says(holding[i](a), wanted))
            return n;
    for (size_t i = 0; i < COUNT(starting); i++)
        if (++n && !says(starting[i].verb(a), wanted))
            return n;
    return 0;
}

/* No new ones are made; what sets no error answers that nothing is had. */
static int first_that_is_made(all *a, rlock_status wanted)
{
    rlock *lk, *write;
    rlock_latch *l;
    rlock_semaphore *s;
    int n = 1;
    if (rlock_is_held(a->k.lk) || rlock_hold_count(a->red) ||
        rlock_valid_ms(a->multi) || rlock_token(a->k.lk))
        return n;
    if (++n && !says(rlock_new(a->k.cl, "x", &lk), wanted))
        return n;
    if (++n && !says(rlock_latch_new(a->k.cl, "x", &l), wanted))
        return n;
    if (++n && !says(rlock_semaphore_new(a->k.cl, "x", 1, &s), wanted))
        return n;
    if (++n && !says(rlock_rw_new(a->k.cl, "x", &lk, &write), wanted))
        return n;
    rlock_cancel(a->k.lk);
    rlock_latch_cancel(a->latch);
    rlock_semaphore_cancel(a->semaphore);
    return rlock_lost_fd(a->k.lk) == -1 && !lk && !write && !l && !s ? 0 : ++n;
}

TEST(handles_end, all_verbs_of_a_client_that_was_closed_say_so)
{
    all a = all_open();
    rlock *lk;
    rlock_client_free(a.k.cl);
    rlock_client_free(a.k.other);
    EXPECT_INT(first_that_differs(&a, RLOCK_ECLOSED), 0);
    EXPECT_INT(first_that_is_made(&a, RLOCK_ECLOSED), 0);
    INVALID(rlock_multi_new(&a.k.lk, 1, &lk),
            "member 1 belongs to a closed client");
    INVALID(rlock_red_new(&a.k.cl, 1, "job", &lk), "client 1 is closed");
    a.k.cl = a.k.other = NULL;
    all_close(&a);
}

TEST(handles_end, all_verbs_after_fork_say_so)
{
    int status;
    all a = all_open();
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        rlock *lk;
        int n = first_that_differs(&a, RLOCK_EFORKED);
        if (n == 0 && first_that_is_made(&a, RLOCK_EFORKED) != 0)
            n = 100 + first_that_is_made(&a, RLOCK_EFORKED);
        if (n == 0 && !says(rlock_multi_new(&a.k.lk, 1, &lk), RLOCK_EFORKED))
            n = 120;
        if (n == 0 &&
            !says(rlock_red_new(&a.k.cl, 1, "job", &lk), RLOCK_EFORKED))
            n = 121;
        _exit(n);
    }
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT(WIFEXITED(status));
    EXPECT_INT(WEXITSTATUS(status), 0);
    all_close(&a);
}

/* --- cancellation --------------------------------------------------------- */

/* The owner that the thread acts as while it starts them. */
static rlock_owner *act(void)
{
    rlock_owner *o;
    EXPECT_STATUS(rlock_owner_new("it", &o), RLOCK_OK);
    EXPECT(!rlock_owner_set(o));
    return o;
}

static rlock_status free_owner(all *a)
{
    (void)a;
    rlock_owner_free(act());
    return RLOCK_OK;
}

static void expect_as_before(all *a, rlock_status (*verb)(all *a))
{
    static const int states[] = {PTHREAD_CANCEL_DISABLE, PTHREAD_CANCEL_ENABLE};
    for (size_t i = 0; i < COUNT(states); i++) {
        int was;
        pthread_setcancelstate(states[i], NULL);
        verb(a);
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &was);
        EXPECT_INT(was, states[i]);
    }
}

TEST(handles_end, whether_a_thread_may_be_canceled_is_as_before)
{
    all a = all_open();
    for (size_t i = 0; i < COUNT(asking); i++)
        expect_as_before(&a, asking[i]);
    for (size_t i = 0; i < COUNT(holding); i++)
        expect_as_before(&a, holding[i]);
    expect_as_before(&a, free_owner);
    all_close(&a);
}

/* --- without memory ------------------------------------------------------- */

/* Whichever allocation of this thread fails: it says so, or goes on. */
static void expect_failure(all *a, rlock_status (*verb)(all *a),
                           rlock_status otherwise)
{
    bool failed = true;
    for (int nth = 1; failed && nth < 60; nth++) {
        EXPECT_STATUS(rlock_lock(NULL), RLOCK_EINVAL); /* said before */
        shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
        rlock_status s = verb(a);
        failed = shim_failed(shim_here(), SHIM_ALLOC) > 0;
        shim_clear(shim_here());
        EXPECT((failed && says(s, RLOCK_ENOMEM)) || says(s, otherwise));
    }
    EXPECT(!failed);
}

TEST(handles_end, what_lacks_memory_says_so_and_leaves_nothing)
{
    for (size_t i = 0; i < COUNT(asking); i++) {
        all a = all_open();
        bool red = i >= 8 && i <= 10;
        expect_failure(&a, asking[i], red ? RLOCK_EQUORUM : RLOCK_EIO);
        EXPECT(!rlock_is_held(a.k.lk) && !rlock_is_held(a.multi));
        all_close(&a);
    }
}

TEST(handles_end, what_is_not_held_says_so_or_that_memory_lacks)
{
    for (size_t i = 0; i < COUNT(holding); i++) {
        all a = all_open();
        expect_failure(&a, holding[i], RLOCK_NOT_HELD);
        all_close(&a);
    }
}

static rlock *new_lock;
static rlock_latch *new_latch;
static rlock_semaphore *new_semaphore;

VERB(make_lock, rlock_new(a->k.cl, "new", &new_lock))
VERB(make_multi,
     rlock_multi_new((rlock *[]){a->k.lk, a->k.theirs}, 2, &new_lock))
VERB(make_mixed,
     rlock_multi_new((rlock *[]){a->k.theirs, a->write}, 2, &new_lock))
VERB(make_of_red, rlock_multi_new(&a->red, 1, &new_lock))
VERB(make_red, rlock_red_new((rlock_client *[]){a->k.cl, a->k.other}, 2, "new",
                             &new_lock))
VERB(make_latch, rlock_latch_new(a->k.cl, "new", &new_latch))
VERB(make_semaphore, rlock_semaphore_new(a->k.cl, "new", 2, &new_semaphore))

static rlock_status make_sides(all *a)
{
    rlock *write = a->write; /* is set to NULL */
    rlock_status s = rlock_rw_new(a->k.cl, "new", &new_lock, &write);
    EXPECT((s == RLOCK_OK) == (write != NULL));
    rlock_free(write);
    return s;
}

/* Freed is what there is. */
static rlock_status made(all *a, rlock_status (*make)(all *a))
{
    rlock_status s = make(a);
    bool is_there = new_lock || new_latch || new_semaphore;
    EXPECT((s == RLOCK_OK) == is_there);
    rlock_free(new_lock);
    rlock_latch_free(new_latch);
    rlock_semaphore_free(new_semaphore);
    new_lock = NULL;
    new_latch = NULL;
    new_semaphore = NULL;
    return s;
}

TEST(handles_end, what_cannot_be_made_for_lack_of_memory_says_so)
{
    rlock_status (*const make[])(all * a) = {
        make_lock, make_multi, make_mixed, make_of_red,
        make_red,  make_latch, make_sides, make_semaphore};
    all a = all_open();
    for (size_t i = 0; i < COUNT(make); i++) {
        bool failed = true;
        int nth = 0;
        while (failed && ++nth < 60) {
            EXPECT_STATUS(rlock_lock(NULL), RLOCK_EINVAL); /* said before */
            shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
            rlock_status s = made(&a, make[i]);
            failed = shim_failed(shim_here(), SHIM_ALLOC) > 0;
            shim_clear(shim_here());
            EXPECT(failed ? says(s, RLOCK_ENOMEM) : s == RLOCK_OK);
        }
        EXPECT(!failed && nth > 1);
    }
    all_close(&a);
}

/* --- started -------------------------------------------------------------- */

enum { NOT_YET = -1 };

static void act_no_more(rlock_owner *o)
{
    EXPECT(rlock_owner_set(NULL) == o);
    rlock_owner_free(o);
}

static void await_end(rlock_client *cl)
{
    struct pollfd p = {.fd = rlock_client_fd(cl), .events = POLLIN};
    while ((int)told == NOT_YET) {
        EXPECT_INT(poll(&p, 1, 10000), 1);
        EXPECT_STATUS(rlock_client_dispatch(cl), RLOCK_OK);
    }
}

TEST(handles_end, who_acts_as_no_owner_starts_nothing_for_one)
{
    all a = all_open();
    told = (rlock_status)NOT_YET;
    for (size_t i = 0; i < COUNT(starting); i++) {
        bool for_none =
            starting[i].verb == start_wait || starting[i].verb == start_permits;
        if (!for_none)
            EXPECT(says(starting[i].verb(&a), RLOCK_EINVAL));
    }
    EXPECT_STATUS(rlock_client_dispatch(a.k.cl), RLOCK_OK);
    EXPECT_INT((int)told, NOT_YET);
    all_close(&a);
}

TEST(handles_end, what_is_started_ends_once)
{
    rlock_owner *o = act();
    for (size_t i = 0; i < COUNT(starting); i++) {
        all a = all_open();
        told = (rlock_status)NOT_YET;
        EXPECT_STATUS(starting[i].verb(&a), RLOCK_OK);
        EXPECT_INT((int)told, NOT_YET);
        await_end(a.k.cl);
        EXPECT_INT(told, starting[i].end);
        told = (rlock_status)NOT_YET;
        EXPECT_STATUS(rlock_client_dispatch(a.k.cl), RLOCK_OK);
        EXPECT_INT((int)told, NOT_YET);
        all_close(&a);
    }
    act_no_more(o);
}

/* It is not begun, or ends; and nothing is left of it. */
static bool start_without(size_t i, int nth)
{
    all a = all_open();
    told = (rlock_status)NOT_YET;
    shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
    rlock_status s = starting[i].verb(&a);
    bool failed = shim_failed(shim_here(), SHIM_ALLOC) > 0;
    shim_clear(shim_here());
    EXPECT(s == RLOCK_OK || (failed && says(s, RLOCK_ENOMEM)));
    if (s == RLOCK_OK)
        await_end(a.k.cl);
    EXPECT(s == RLOCK_OK || (int)told == NOT_YET);
    EXPECT(s != RLOCK_OK || failed || told == starting[i].end);
    all_close(&a);
    return failed;
}

TEST(handles_end, what_cannot_be_started_for_lack_of_memory_is_not)
{
    rlock_owner *o = act();
    for (size_t i = 0; i < COUNT(starting); i++) {
        int nth = 1;
        while (start_without(i, nth))
            EXPECT(++nth < 60);
    }
    act_no_more(o);
}
