#include "loop_thread.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

static atomic_int blocked, turns;
static _Atomic(const char *) blocked_in;
static atomic_llong longest_us;

int loop_thread_blocked(void)
{
    return atomic_load(&blocked);
}

const char *loop_thread_blocked_in(void)
{
    const char *name = atomic_load(&blocked_in);
    return name ? name : "";
}

int loop_thread_turns(void)
{
    return atomic_load(&turns);
}

int64_t loop_thread_longest_us(void)
{
    return atomic_load(&longest_us);
}

static void may_block(const char *call)
{
    if (!loop_thread_is_this())
        return;
    atomic_fetch_add(&blocked, 1);
    atomic_store(&blocked_in, call);
}

/* --- its own wait --------------------------------------------------------- */

/* The first that it polls is the eventfd that wakes it. */
static bool is_own_wait(const struct pollfd *p, nfds_t n)
{
    char path[64], leads_to[64];
    if (n == 0)
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", p[0].fd);
    ssize_t len = readlink(path, leads_to, sizeof leads_to - 1);
    if (len <= 0)
        return false;
    leads_to[len] = '\0';
    return strstr(leads_to, "eventfd") != NULL;
}

static _Thread_local int64_t began_us;

static void turn_ends(void)
{
    int64_t us = test_clock_us(CLOCK_THREAD_CPUTIME_ID) - began_us;
    if (began_us > 0 && us > atomic_load(&longest_us))
        atomic_store(&longest_us, us);
    atomic_fetch_add(&turns, 1);
}

static bool wait_begins(const struct pollfd *p, nfds_t n, int ms)
{
    bool own = loop_thread_is_this() && is_own_wait(p, n);
    if (own)
        turn_ends();
    else if (ms != 0)
        may_block("poll");
    return own;
}

static int wait_ended(bool own, int ready)
{
    if (own)
        began_us = test_clock_us(CLOCK_THREAD_CPUTIME_ID);
    return ready;
}

int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
    bool own = wait_begins(p, n, ms);
    return wait_ended(own, __real_poll(p, n, ms));
}

/* What _FORTIFY_SOURCE makes of it; the last argument is the room there. */
int __wrap___poll_chk(struct pollfd *p, nfds_t n, int ms, size_t room);
int __wrap___poll_chk(struct pollfd *p, nfds_t n, int ms, size_t room)
{
    (void)room;
    return __wrap_poll(p, n, ms);
}

/* --- what it must not call ------------------------------------------------ */

int __real_connect(int fd, const struct sockaddr *to, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len)
{
    may_block("connect");
    return __real_connect(fd, to, len);
}

int __real_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **out)
{
    may_block("getaddrinfo");
    return __real_getaddrinfo(host, service, hints, out);
}

int __real_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    may_block("pthread_cond_wait");
    return __real_pthread_cond_wait(c, m);
}

int __real_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until)
{
    may_block("pthread_cond_timedwait");
    return __real_pthread_cond_timedwait(c, m, until);
}

int __real_clock_nanosleep(clockid_t clock, int flags,
                           const struct timespec *how_long,
                           struct timespec *left);
int __wrap_clock_nanosleep(clockid_t clock, int flags,
                           const struct timespec *how_long,
                           struct timespec *left);
int __wrap_clock_nanosleep(clockid_t clock, int flags,
                           const struct timespec *how_long,
                           struct timespec *left)
{
    may_block("clock_nanosleep");
    return __real_clock_nanosleep(clock, flags, how_long, left);
}

int __real_nanosleep(const struct timespec *how_long, struct timespec *left);
int __wrap_nanosleep(const struct timespec *how_long, struct timespec *left);
int __wrap_nanosleep(const struct timespec *how_long, struct timespec *left)
{
    may_block("nanosleep");
    return __real_nanosleep(how_long, left);
}

/*
 * Who starts a connector joins the one before it, which has done its work
 * (run/connector.c). That may be the loop, and takes the time of a thread's last
 * instructions; one that still works takes longer.
 */
#define LAST_WORDS_US 100000

int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result)
{
    int64_t began_us = test_now_us();
    int err = __real_pthread_join(thread, result);
    if (test_now_us() - began_us > LAST_WORDS_US)
        may_block("pthread_join");
    return err;
}

/* --- what it may call if that cannot wait ---------------------------------- */

static void may_block_at(int fd, int flags, const char *call)
{
    if (!(flags & MSG_DONTWAIT) && loop_thread_is_this() &&
        !(fcntl(fd, F_GETFL) & O_NONBLOCK))
        may_block(call);
}

ssize_t __real_recv(int fd, void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags)
{
    may_block_at(fd, flags, "recv");
    return __real_recv(fd, bytes, n, flags);
}

ssize_t __wrap___recv_chk(int fd, void *bytes, size_t n, size_t room,
                          int flags);
ssize_t __wrap___recv_chk(int fd, void *bytes, size_t n, size_t room, int flags)
{
    (void)room;
    return __wrap_recv(fd, bytes, n, flags);
}

ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
    may_block_at(fd, flags, "send");
    return __real_send(fd, bytes, n, flags);
}

ssize_t __real_read(int fd, void *bytes, size_t n);
ssize_t __wrap_read(int fd, void *bytes, size_t n);
ssize_t __wrap_read(int fd, void *bytes, size_t n)
{
    may_block_at(fd, 0, "read");
    return __real_read(fd, bytes, n);
}

ssize_t __wrap___read_chk(int fd, void *bytes, size_t n, size_t room);
ssize_t __wrap___read_chk(int fd, void *bytes, size_t n, size_t room)
{
    (void)room;
    return __wrap_read(fd, bytes, n);
}

ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
    may_block_at(fd, 0, "write");
    return __real_write(fd, bytes, n);
}
