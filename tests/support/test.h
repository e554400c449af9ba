/*
 * How tests are written here.
 *
 *     TEST(lock, reentry_keeps_the_token)
 *     {
 *         server *sv = server_start(NULL);
 *         ...
 *         EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
 *         server_stop(sv);
 *     }
 *
 * With Criterion each test is a Criterion test: a process of its own, with a
 * time limit. ThreadSanitizer cannot start under Criterion, so with
 * RLOCK_TEST_PLAIN the same sources are compiled against plain.c, which forks
 * a process for every test by itself. Either way the program writes a TAP file
 * that tests/run.sh counts.
 */
#ifndef TEST_SUPPORT_TEST_H
#define TEST_SUPPORT_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rlock/rlock.h>

#ifdef __cplusplus
#ifndef _Noreturn
#define _Noreturn [[noreturn]]
#endif
extern "C" {
#endif

/* A test may take this long before it is killed and counts as failed. */
#define TEST_LIMIT_S 60

/*
 * The smallest lease in ms that a test depends on, unless it says another. When
 * the machine stands still for more than a fourth of it, a failure may be due
 * to that, and the test is run again (tap.sh).
 */
#define TEST_LEASE_MS 300

/* Of the running test: it depends on a lease that is as small as this. */
void test_lease(int64_t ms);
/* For TEST and the runners: which one this process runs; and that it fails. */
void test_begin(const char *suite, const char *name);
void test_failed(void);

/*
 * Ends the test; file, line and text go into the report. May be called on any
 * thread of the test's process, and in a child that the test forked (there it
 * prints the text and ends the child with status 1).
 */
_Noreturn void test_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Ends the test as skipped. Only on the thread that runs the test. */
_Noreturn void test_skip(const char *reason);

#ifdef RLOCK_TEST_PLAIN

typedef void test_fn(void);
void test_register(const char *suite, const char *name, test_fn *fn);

#define TEST(suite, name)                                                      \
    static void test_##suite##_##name(void);                                   \
    __attribute__((constructor)) static void register_##suite##_##name(void)   \
    {                                                                          \
        test_register(#suite, #name, test_##suite##_##name);                   \
    }                                                                          \
    static void test_##suite##_##name(void)

#else

#include <criterion/criterion.h>

#define TEST(suite, name)                                                      \
    static void test_##suite##_##name(void);                                   \
    Test(suite, name, .timeout = TEST_LIMIT_S)                                 \
    {                                                                          \
        test_begin(#suite, #name);                                             \
        test_##suite##_##name();                                               \
    }                                                                          \
    static void test_##suite##_##name(void)

#endif

/* A test that is one call of what it shares with others. */
#define TEST_CASE(suite, name, ...)                                            \
    TEST(suite, name)                                                          \
    {                                                                          \
        __VA_ARGS__;                                                           \
    }

#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)
/* Reported as skipped, never as passed. */
#define SKIP(reason) test_skip(reason)

#define EXPECT(cond)                                                           \
    do {                                                                       \
        if (!(cond))                                                           \
            FAIL("expected %s", #cond);                                        \
    } while (0)

#define EXPECT_INT(actual, wanted)                                             \
    do {                                                                       \
        long long a_ = (long long)(actual), w_ = (long long)(wanted);          \
        if (a_ != w_)                                                          \
            FAIL("%s is %lld, expected %lld", #actual, a_, w_);                \
    } while (0)

/* lo <= actual <= hi */
#define EXPECT_BETWEEN(actual, lo, hi)                                         \
    do {                                                                       \
        long long a_ = (long long)(actual);                                    \
        if (a_ < (long long)(lo) || a_ > (long long)(hi))                      \
            FAIL("%s is %lld, expected %lld to %lld", #actual, a_,             \
                 (long long)(lo), (long long)(hi));                            \
    } while (0)

#define EXPECT_STR(actual, wanted)                                             \
    do {                                                                       \
        const char *a_ = (actual), *w_ = (wanted);                             \
        if (!a_ || strcmp(a_, w_) != 0)                                        \
            FAIL("%s is \"%s\", expected \"%s\"", #actual, a_ ? a_ : "(null)", \
                 w_);                                                          \
    } while (0)

#define EXPECT_CONTAINS(actual, part)                                          \
    do {                                                                       \
        const char *a_ = (actual), *p_ = (part);                               \
        if (!a_ || !strstr(a_, p_))                                            \
            FAIL("%s is \"%s\", expected it to contain \"%s\"", #actual,       \
                 a_ ? a_ : "(null)", p_);                                      \
    } while (0)

#define EXPECT_STATUS(call, wanted)                                            \
    do {                                                                       \
        rlock_status s_ = (call), w_ = (wanted);                               \
        if (s_ != w_)                                                          \
            FAIL("%s is \"%s\" (%s), expected \"%s\"", #call,                  \
                 rlock_status_str(s_), s_ ? rlock_last_error()->message : "",  \
                 rlock_status_str(w_));                                        \
    } while (0)

/* Waits until cond is true; fails after limit_ms. */
#define EVENTUALLY(limit_ms, cond)                                             \
    do {                                                                       \
        int64_t until_ = test_now_ms() + (limit_ms);                           \
        while (!(cond)) {                                                      \
            if (test_now_ms() > until_)                                        \
                FAIL("not within %d ms: %s", (int)(limit_ms), #cond);          \
            test_pause_ms(1);                                                  \
        }                                                                      \
    } while (0)

/* A limit in ms for what happens at once on an idle machine. */
#define SOON 20000

/* What a call may take longer than its own limit on a busy machine. */
#define SLACK_MS 600

/* With a sanitizer all takes longer, and memory that was freed is kept. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

/* What a clock shows, as that of a thread's processor time. */
int64_t test_clock_us(clockid_t clock);

/* A clock that only runs forward, and a short pause for polling with it. */
int64_t test_now_ms(void);
int64_t test_now_us(void);
int64_t test_since_ms(int64_t began_ms);
void test_pause_ms(int ms);

/* The middle one of n times, which are sorted by that. */
int64_t test_median(int64_t time[], size_t n);

/*
 * How many times longer a call takes here than by itself: 1, or what
 * RLOCK_TEST_SLOWNESS says, as where qemu plays the processor.
 */
int test_slowness(void);

/*
 * A thread that runs fn(arg); test_join waits for its end (and fails the test
 * after TEST_LIMIT_S / 2) and returns what fn returned.
 */
typedef struct test_thread test_thread;
test_thread *test_spawn(intptr_t (*fn)(void *arg), void *arg);
intptr_t test_join(test_thread *t);
/* Has fn returned? (Before test_join, which frees t.) */
bool test_done(test_thread *t);

#ifdef __cplusplus
}
#endif
#endif
