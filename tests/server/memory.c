/* What the client keeps in memory for what it has: README's figures. */
#include <malloc.h>

#include "loop.h"
#include "permits.h"

/* In use, without what the allocator keeps for itself; tables, which are large, are
   the kernel's. */
static size_t in_use(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
#else
    return 0;
#endif
}

enum { MANY = 30000 };

/* What one of so many takes, each taken by `take`, and given back by `let_go`. */
static void expect_bytes(void *(*take)(rlock_client *cl, int i),
                         void (*let_go)(void *), int most)
{
    static void *held[MANY + 1];
    server *sv = server_start(NULL);
    rlock_client *cl = server_client(sv, NULL);
    if (in_use() == 0)
        SKIP("the C library does not tell how much memory is in use");
    size_t before = 0;
    for (int i = 0; i <= MANY; i++) {
        held[i] = take(cl, i);
        if (i == 0)
            before = in_use(); /* the threads run */
    }
    EXPECT_BETWEEN((in_use() - before) / MANY, 200, most);
    for (int i = 0; i <= MANY; i++)
        let_go(held[i]);
    rlock_client_free(cl);
    server_stop(sv);
}

static void *hold_one(rlock_client *cl, int i)
{
    char name[32];
    snprintf(name, sizeof name, "memory:%d", i);
    rlock *lk = test_lock(cl, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    return lk;
}

static void *read_one(rlock_client *cl, int i)
{
    char name[32];
    rlock *lk;
    snprintf(name, sizeof name, "memory:%d", i);
    EXPECT_STATUS(rlock_rw_new(cl, name, &lk, NULL), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    return lk;
}

static void free_lock(void *lk)
{
    rlock_free(lk);
}

static void *take_one(rlock_client *cl, int i)
{
    static rlock_semaphore *of;
    if (i == 0)
        of = test_semaphore(cl, POOL, MANY + 1);
    rlock_permit *p = take(of, 1, RLOCK_WATCHDOG);
    if (i == MANY)
        rlock_semaphore_free(of);
    return p;
}

static void free_permit(void *p)
{
    give_back(p);
}

/* A handle (80 bytes) and its hold (240), renewed by the watchdog, with a name of up
   to 15 bytes; the rest is in the tables. */
TEST_CASE(memory, a_held_lock_takes_no_more_than_the_readme_says,
          expect_bytes(hold_one, free_lock, 346))
TEST_CASE(memory, so_does_a_read_lock, expect_bytes(read_one, free_lock, 346))
/* Of a semaphore whose handle is freed. */
TEST_CASE(memory, a_permit_takes_little_more,
          expect_bytes(take_one, free_permit, 436))

/* --- what a burst leaves ---------------------------------------------------
 */

static int ended;

static void count(request *r)
{
    EXPECT_STATUS(r->status, RLOCK_OK);
    ended++;
}

static void unlock(request *r)
{
    EXPECT_STATUS(r->status, RLOCK_OK);
    r->then = count;
    EXPECT_STATUS(request_unlock(r), RLOCK_OK);
}

/*
 * So many, all begun before the first is over, each by an owner of its own.
 * slow: the server, which stands still when they begin.
 */
static void pairs(rlock_client *cl, request *r, int n, server *slow)
{
    ended = 0;
    for (int i = 0; i < n; i++) {
        r[i].then = unlock;
        EXPECT_STATUS(request_acquire(&r[i], RLOCK_FOREVER, RLOCK_WATCHDOG),
                      RLOCK_OK);
    }
    if (slow) {
        test_pause_ms(500); /* so more and more of them ask at a time */
        server_resume(slow);
    }
    LOOP_UNTIL(cl, ended == n);
}

/* Memory that was needed then is not needed any more, though the owners stay. */
TEST(memory, a_burst_of_started_pairs_leaves_less_than_a_megabyte)
{
    enum { FEW = 64, MANY = 8192, MEGABYTE = 1024 * 1024 };
    static request r[MANY];
    static rlock *lk[MANY];
    char name[32];
    server *sv = server_start(NULL);
    rlock_client *cl = server_client(sv, NULL);
    if (in_use() == 0)
        SKIP("the C library does not tell how much memory is in use");
    EXPECT(rlock_client_fd(cl) >= 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "memory:%d", i);
        lk[i] = test_lock(cl, name);
        r[i] = request_new(lk[i]);
    }
    pairs(cl, r, FEW, NULL);
    long long before = (long long)in_use();
    server_pause(sv);
    pairs(cl, r, MANY, sv);
    EVENTUALLY(SOON, (long long)in_use() < before + MEGABYTE);
    pairs(cl, r, FEW, NULL);
    for (int i = 0; i < MANY; i++) {
        request_free(&r[i]);
        rlock_free(lk[i]);
    }
    rlock_client_free(cl);
    server_stop(sv);
}
