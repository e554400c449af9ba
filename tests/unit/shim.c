/* The shim of tests/support: what it is told to fail fails, and nothing else.
 */
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "test.h"

/* Can this thread allocate? The compiler must not answer that by itself. */
static bool can_allocate(void)
{
    void *volatile p = malloc(16);
    bool can = p != NULL;
    free(p);
    return can;
}

TEST(shim, the_calls_that_are_told_fail_and_no_others)
{
    shim_fail(shim_here(), SHIM_ALLOC, 2, 3, ENOMEM);
    bool first = can_allocate(), second = can_allocate();
    int err = errno;
    bool third = can_allocate(), fourth = can_allocate();
    long seen = shim_seen(shim_here(), SHIM_ALLOC);
    long failed = shim_failed(shim_here(), SHIM_ALLOC);
    shim_clear(shim_here());
    EXPECT(first && !second && !third && fourth);
    EXPECT_INT(err, ENOMEM);
    EXPECT_INT(seen, 4);
    EXPECT_INT(failed, 2);
}

TEST(shim, every_way_to_allocate_can_fail)
{
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    void *volatile zeroed = calloc(2, 8), *volatile grown = realloc(NULL, 8);
    char *volatile copy = strdup("text");
    shim_clear(shim_here());
    EXPECT(!zeroed && !grown && !copy);
    free(zeroed);
    free(grown);
    free(copy);
}

/* A thread that tries to allocate when it is told to: making it allocates. */
typedef struct trial {
    bool spared;
    atomic_bool go;
} trial;

static intptr_t try_to_allocate(void *arg)
{
    trial *t = arg;
    shim_spare_me(t->spared);
    while (!atomic_load(&t->go))
        test_pause_ms(1);
    return can_allocate();
}

static bool other_thread_can_allocate(shim_panel *p, bool spared)
{
    trial t = {.spared = spared};
    test_thread *thread = test_spawn(try_to_allocate, &t);
    shim_fail(p, SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    atomic_store(&t.go, true);
    intptr_t can = test_join(thread);
    shim_clear(p);
    return can;
}

TEST(shim, a_threads_panel_is_for_that_thread_only)
{
    EXPECT(other_thread_can_allocate(shim_here(), false));
}

TEST(shim, the_processs_panel_is_for_all_threads_but_the_spared)
{
    EXPECT(!other_thread_can_allocate(shim_everywhere(), false));
    EXPECT(other_thread_can_allocate(shim_everywhere(), true));
}

TEST(shim, the_processs_panel_can_be_in_memory_of_ones_own)
{
    static shim_panel shared;
    shim_share(&shared);
    shim_fail(&shared, SHIM_SOCKET, 1, 1, EMFILE);
    EXPECT_INT(socket(AF_UNIX, SOCK_STREAM, 0), -1);
    EXPECT_INT(errno, EMFILE);
    EXPECT_INT(shim_failed(&shared, SHIM_SOCKET), 1);
}

static void *do_nothing(void *arg)
{
    return arg;
}

/* The call fails as told, and not by itself. */
#define EXPECT_FAILS(kind, call)                                               \
    do {                                                                       \
        shim_fail(shim_here(), kind, 1, 1, ENOTTY);                            \
        EXPECT_INT(call, -1);                                                  \
        EXPECT_INT(errno, ENOTTY);                                             \
    } while (0)

TEST(shim, every_system_call_of_its_list_can_fail)
{
    struct sockaddr addr = {.sa_family = AF_UNIX};
    struct pollfd none = {.fd = -1};
    struct addrinfo *found;
    pthread_t thread;
    char byte = 0;
    EXPECT_FAILS(SHIM_SOCKET, socket(AF_UNIX, SOCK_STREAM, 0));
    EXPECT_FAILS(SHIM_CONNECT, connect(-1, &addr, sizeof addr));
    EXPECT_FAILS(SHIM_SEND, send(-1, &byte, 1, 0));
    EXPECT_FAILS(SHIM_RECV, recv(-1, &byte, 1, 0));
    EXPECT_FAILS(SHIM_POLL, poll(&none, 1, 0));
    EXPECT_FAILS(SHIM_GETRANDOM, getrandom(&byte, 1, 0));
    EXPECT_FAILS(SHIM_EVENTFD, eventfd(0, 0));
    EXPECT_FAILS(SHIM_FCNTL, fcntl(0, F_GETFD));
    EXPECT_FAILS(SHIM_SETSOCKOPT,
                 setsockopt(-1, SOL_SOCKET, SO_TYPE, &byte, 1));
    shim_fail(shim_here(), SHIM_THREAD, 1, 1, EAGAIN);
    EXPECT_INT(pthread_create(&thread, NULL, do_nothing, NULL), EAGAIN);
    shim_fail(shim_here(), SHIM_SPECIFIC, 1, 1, ENOMEM);
    EXPECT_INT(pthread_setspecific(0, NULL), ENOMEM);
    shim_fail(shim_here(), SHIM_LOOKUP, 1, 1, EAI_AGAIN);
    EXPECT_INT(getaddrinfo("127.0.0.1", NULL, NULL, &found), EAI_AGAIN);
}

TEST(shim, a_failed_or_short_recv_leaves_the_bytes)
{
    int fds[2];
    char bytes[8];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    shim_fail(shim_here(), SHIM_RECV, 1, 1, EINTR);
    EXPECT_INT(recv(fds[0], bytes, sizeof bytes, MSG_DONTWAIT), -1);
    EXPECT_INT(errno, EAGAIN); /* nothing there: does not count */
    EXPECT_INT(send(fds[1], "hello", 5, 0), 5);
    EXPECT_INT(recv(fds[0], bytes, sizeof bytes, MSG_DONTWAIT), -1);
    EXPECT_INT(errno, EINTR);
    shim_fail(shim_here(), SHIM_RECV, 1, 1, SHIM_SHORT);
    EXPECT_INT(recv(fds[0], bytes, sizeof bytes, MSG_DONTWAIT), 1);
    EXPECT_INT(recv(fds[0], bytes, sizeof bytes, MSG_DONTWAIT), 4);
    close(fds[0]);
    close(fds[1]);
}

TEST(shim, a_short_send_sends_one_byte)
{
    int fds[2];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    shim_fail(shim_here(), SHIM_SEND, 1, 1, SHIM_SHORT);
    EXPECT_INT(send(fds[1], "hello", 5, 0), 1);
    EXPECT_INT(send(fds[1], "hello", 5, 0), 5);
    close(fds[0]);
    close(fds[1]);
}

TEST(shim, a_clock_that_is_ahead_shows_it_and_the_others_do_not)
{
    int64_t lease_us = rl_now_us(), steady_ms = test_now_ms();
    shim_clock(shim_everywhere(), CLOCK_BOOTTIME, 3600 * 1000);
    int64_t passed_us = rl_now_us() - lease_us;
    EXPECT_BETWEEN(passed_us, 3600 * 1000000LL, 3610 * 1000000LL);
    EXPECT_BETWEEN(test_now_ms() - steady_ms, 0, 10000);
    shim_clear(shim_everywhere());
    EXPECT_BETWEEN(rl_now_us() - lease_us, 0, 10000000);
}

TEST(shim, a_timed_wait_takes_as_long_however_far_the_clock_is)
{
    rl_mutex mutex;
    rl_cond never;
    rl_mutex_init(&mutex, RL_RANK_ALONE);
    rl_cond_init(&never);
    shim_clock(shim_everywhere(), CLOCK_MONOTONIC, -500);
    int64_t began_ms = test_now_ms();
    rl_mutex_lock(&mutex);
    rl_cond_wait_until(&never, &mutex, rl_now_us() + 20000);
    rl_mutex_unlock(&mutex);
    test_pause_ms(20);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 39, 10000);
    rl_cond_fini(&never);
    rl_mutex_fini(&mutex);
}

TEST(shim, a_look_at_the_wall_clock_is_counted)
{
    struct timespec ts;
    struct timeval tv;
    shim_clear(shim_here());
    clock_gettime(CLOCK_REALTIME, &ts);
    time(NULL);
    gettimeofday(&tv, NULL);
    clock_gettime(CLOCK_MONOTONIC, &ts);
    EXPECT_INT(shim_seen(shim_here(), SHIM_WALL_CLOCK), 3);
}
