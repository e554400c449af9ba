/*
 * Tests that fail on purpose, beside stalls that they make up, for planted.sh:
 * which of them does tap.sh run again, and what does it make of that?
 */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "test.h"

/* The how manieth run of this test is it? From 1 on; over processes. */
static int runs(const char *test)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", getenv("PLANTED_DIR"), test);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    EXPECT(fd >= 0 && write(fd, ".", 1) == 1);
    int n = (int)lseek(fd, 0, SEEK_END);
    close(fd);
    return n;
}

/* As if the witness had seen one, while no other test ran. */
static void stall(int ms)
{
    long long from = test_now_us();
    test_pause_ms(ms);
    int fd = open(getenv("RLOCK_TEST_LOG"), O_WRONLY | O_APPEND | O_CLOEXEC);
    EXPECT(fd >= 0);
    dprintf(fd, "stall %lld %lld\n", from, from + ms * 1000);
    close(fd);
}

static intptr_t end_here(void *arg)
{
    (void)arg;
    return 0;
}

/* What a test that fails has not freed yet, and whom it has not joined. */
TEST(planted, fails_once_in_the_midst_of_things)
{
    if (runs(__func__) > 1)
        return;
    stall(100);
    char *volatile kept = malloc(1000);
    kept[0] = 'x';
    kept = NULL;
    test_spawn(end_here, NULL);
    FAIL("planted");
}

static intptr_t fail_here(void *arg)
{
    (void)arg;
    FAIL("planted");
}

TEST(planted, passes)
{
    runs(__func__);
}

TEST(planted, is_skipped)
{
    SKIP("planted");
}

TEST(planted, passes_beside_a_stall)
{
    runs(__func__);
    stall(200);
}

TEST(planted, fails)
{
    runs(__func__);
    FAIL("planted");
}

TEST(planted, fails_beside_stalls)
{
    runs(__func__);
    stall(TEST_LEASE_MS / 4 + 1);
    FAIL("planted");
}

TEST(planted, fails_beside_a_short_stall)
{
    runs(__func__);
    stall(TEST_LEASE_MS / 4);
    FAIL("planted");
}

TEST(planted, fails_once_beside_a_stall)
{
    if (runs(__func__) > 1)
        return;
    stall(100);
    FAIL("planted");
}

TEST(planted, fails_once_with_a_small_lease)
{
    if (runs(__func__) > 1)
        return;
    test_lease(80);
    stall(21);
    FAIL("planted");
}

TEST(planted, fails_twice_beside_stalls)
{
    if (runs(__func__) > 2)
        return;
    stall(100);
    FAIL("planted");
}

TEST(planted, fails_once_more_without_a_stall)
{
    int n = runs(__func__);
    if (n > 2)
        return;
    if (n == 1)
        stall(100);
    FAIL("planted");
}

TEST(planted, fails_before_a_stall)
{
    runs(__func__);
    test_failed();
    test_pause_ms(1);
    stall(200);
    fail_here(NULL);
}

TEST(planted, fails_once_on_another_thread)
{
    if (runs(__func__) > 1)
        return;
    stall(100);
    test_join(test_spawn(fail_here, NULL));
}

/* Without a sanitizer's handler, whose report would be a failure by itself. */
static void crash(void)
{
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

TEST(planted, crashes_beside_a_stall)
{
    runs(__func__);
    stall(100);
    crash();
}

TEST(planted, crashes_where_it_has_failed)
{
    runs(__func__);
    stall(100);
    test_failed();
    crash();
}

TEST(planted, exits_beside_a_stall)
{
    runs(__func__);
    stall(100);
    _exit(1);
}

TEST(planted, is_reported_when_it_is_run_again)
{
    if (runs(__func__) > 1) {
        int fd = open(getenv("PLANTED_REPORT"), O_CREAT | O_CLOEXEC, 0600);
        EXPECT(fd >= 0);
        close(fd);
        return;
    }
    stall(100);
    FAIL("planted");
}

/* The witness itself sees this one. */
TEST(witnessed, fails_once_beside_a_stall)
{
    if (runs(__func__) > 1)
        return;
    pid_t witness = atoi(getenv("RLOCK_TEST_WITNESS"));
    EXPECT_INT(kill(witness, SIGSTOP), 0);
    test_pause_ms(200);
    EXPECT_INT(kill(witness, SIGCONT), 0);
    test_pause_ms(20);
    FAIL("planted");
}
