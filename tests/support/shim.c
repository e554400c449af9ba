#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "remains.h"

static _Thread_local shim_panel here;
static _Thread_local bool spare_me;
static shim_panel own;
static _Atomic(shim_panel *) everywhere = &own;

/* --- the panels ---------------------------------------------------------- */

shim_panel *shim_here(void)
{
    return &here;
}

shim_panel *shim_everywhere(void)
{
    return atomic_load_explicit(&everywhere, memory_order_acquire);
}

void shim_share(shim_panel *p)
{
    atomic_store(&everywhere, p);
}

void shim_spare_me(bool spared)
{
    spare_me = spared;
}

/* last is what switches a rule on and off. */
void shim_fail(shim_panel *p, shim_call call, long first, long last, int err)
{
    shim_rule *r = &p->rules[call];
    atomic_store(&r->last, 0);
    atomic_store(&r->first, first);
    atomic_store(&r->err, err);
    atomic_store(&r->seen, 0);
    atomic_store(&r->failed, 0);
    atomic_store(&r->last, last);
}

void shim_clear(shim_panel *p)
{
    for (int i = 0; i < SHIM_CALLS; i++)
        shim_fail(p, i, 0, 0, 0);
    shim_clock(p, CLOCK_REALTIME, 0);
    shim_clock(p, CLOCK_MONOTONIC, 0);
    shim_clock(p, CLOCK_BOOTTIME, 0);
}

long shim_seen(shim_panel *p, shim_call call)
{
    return atomic_load(&p->rules[call].seen);
}

long shim_failed(shim_panel *p, shim_call call)
{
    return atomic_load(&p->rules[call].failed);
}

/* Counts a call; what it is to fail with, or 0. */
static int strike_one(shim_panel *p, shim_call call)
{
    shim_rule *r = &p->rules[call];
    long nth = atomic_fetch_add_explicit(&r->seen, 1, memory_order_relaxed) + 1;
    if (nth > atomic_load(&r->last) || nth < atomic_load(&r->first))
        return 0;
    atomic_fetch_add(&r->failed, 1);
    return atomic_load(&r->err);
}

static int strike(shim_call call)
{
    int mine = strike_one(&here, call);
    int all = spare_me ? 0 : strike_one(shim_everywhere(), call);
    return mine ? mine : all;
}

/* The same for a call that tells of failures by errno. */
static bool fails(shim_call call)
{
    int err = strike(call);
    if (err)
        errno = err;
    return err != 0;
}

/* Is there a rule, for this thread, that has not come to its end? */
static bool has_rule(shim_call call)
{
    return atomic_load(&here.rules[call].last) ||
           (!spare_me && atomic_load(&shim_everywhere()->rules[call].last));
}

/* --- allocations --------------------------------------------------------- */

void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return fails(SHIM_ALLOC) ? NULL : blocks_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return fails(SHIM_ALLOC) ? NULL : blocks_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size)
{
    return fails(SHIM_ALLOC) ? NULL : blocks_realloc(p, size);
}

char *__wrap_strdup(const char *s);
char *__wrap_strdup(const char *s)
{
    if (fails(SHIM_ALLOC))
        return NULL;
    char *copy = blocks_malloc(strlen(s) + 1);
    return copy ? strcpy(copy, s) : NULL;
}

void __wrap_free(void *p);
void __wrap_free(void *p)
{
    blocks_free(p);
}

/* --- sockets ------------------------------------------------------------- */

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
    return fails(SHIM_SOCKET) ? -1 : __real_socket(domain, type, protocol);
}

int __real_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    return fails(SHIM_CONNECT) ? -1 : __real_connect(fd, addr, len);
}

/* How many bytes may go; -1: the call fails, with this errno. */
static ssize_t allowed(shim_call call, size_t len)
{
    int err = strike(call);
    if (err == 0)
        return (ssize_t)len;
    if (err == SHIM_SHORT)
        return len ? 1 : 0;
    errno = err;
    return -1;
}

ssize_t __real_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
    ssize_t n = allowed(SHIM_SEND, len);
    return n < 0 ? n : __real_send(fd, bytes, (size_t)n, flags);
}

static bool would_block(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* With a rule it looks first, so that a failure takes nothing away. */
ssize_t __real_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
    bool ruled = has_rule(SHIM_RECV);
    ssize_t n = __real_recv(fd, bytes, size, ruled ? flags | MSG_PEEK : flags);
    if (would_block(n))
        return n;
    ssize_t most = allowed(SHIM_RECV, size);
    if (!ruled)
        return n;
    return most < 0 ? most : __real_recv(fd, bytes, (size_t)most, flags);
}

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    return fails(SHIM_POLL) ? -1 : __real_poll(fds, n, timeout_ms);
}

int __real_setsockopt(int fd, int level, int name, const void *value,
                      socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value,
                      socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value,
                      socklen_t len)
{
    return fails(SHIM_SETSOCKOPT)
               ? -1
               : __real_setsockopt(fd, level, name, value, len);
}

/* All that is used here: a command with one int, or with none. */
int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    va_list ap;
    va_start(ap, command);
    long arg = va_arg(ap, long);
    va_end(ap);
    return fails(SHIM_FCNTL) ? -1 : __real_fcntl(fd, command, arg);
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags)
{
    return fails(SHIM_EVENTFD) ? -1 : __real_eventfd(count, flags);
}

/* What _FORTIFY_SOURCE makes of them; the last argument is the room there. */
ssize_t __wrap___recv_chk(int fd, void *bytes, size_t size, size_t room,
                          int flags);
ssize_t __wrap___recv_chk(int fd, void *bytes, size_t size, size_t room,
                          int flags)
{
    (void)room;
    return __wrap_recv(fd, bytes, size, flags);
}

int __wrap___poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms,
                      size_t room);
int __wrap___poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t room)
{
    (void)room;
    return __wrap_poll(fds, n, timeout_ms);
}

/* --- the rest of the system ---------------------------------------------- */

ssize_t __real_getrandom(void *bytes, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t len, unsigned flags)
{
    return fails(SHIM_GETRANDOM) ? -1 : __real_getrandom(bytes, len, flags);
}

int __real_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **found);
int __wrap_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **found);
int __wrap_getaddrinfo(const char *host, const char *service,
                       const struct addrinfo *hints, struct addrinfo **found)
{
    int err = strike(SHIM_LOOKUP);
    return err ? err : __real_getaddrinfo(host, service, hints, found);
}

int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr,
                          void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr,
                          void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr,
                          void *(*run)(void *), void *arg)
{
    int err = strike(SHIM_THREAD);
    if (err == SHIM_LATE) {
        __real_poll(NULL, 0, 5);
        err = 0;
    }
    return err ? err : __real_pthread_create(t, attr, run, arg);
}

int __real_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
    int err = strike(SHIM_SPECIFIC);
    return err ? err : __real_pthread_setspecific(key, value);
}

/* --- clocks -------------------------------------------------------------- */

static int clock_index(clockid_t clock)
{
    switch (clock) {
    case CLOCK_REALTIME:
        return 0;
    case CLOCK_MONOTONIC:
        return 1;
    case CLOCK_BOOTTIME:
        return 2;
    default:
        return -1;
    }
}

void shim_clock(shim_panel *p, clockid_t clock, int64_t ahead_ms)
{
    atomic_store(&p->ahead_ms[clock_index(clock)], ahead_ms);
}

static int64_t ahead_ms(clockid_t clock)
{
    int i = clock_index(clock);
    if (i < 0)
        return 0;
    int64_t mine = atomic_load(&here.ahead_ms[i]);
    return spare_me ? mine
                    : mine + atomic_load(&shim_everywhere()->ahead_ms[i]);
}

static struct timespec moved(struct timespec ts, int64_t ms)
{
    int64_t ns = ts.tv_nsec + ms % 1000 * 1000000;
    int carry = ns < 0 ? -1 : ns >= 1000000000;
    return (struct timespec){
        .tv_sec = ts.tv_sec + (time_t)(ms / 1000 + carry),
        .tv_nsec = (long)(ns - carry * 1000000000LL),
    };
}

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
    if (clock == CLOCK_REALTIME)
        strike(SHIM_WALL_CLOCK);
    int result = __real_clock_gettime(clock, ts);
    if (result == 0)
        *ts = moved(*ts, ahead_ms(clock));
    return result;
}

time_t __wrap_time(time_t *out);
time_t __wrap_time(time_t *out)
{
    struct timespec ts;
    __wrap_clock_gettime(CLOCK_REALTIME, &ts);
    if (out)
        *out = ts.tv_sec;
    return ts.tv_sec;
}

int __wrap_gettimeofday(struct timeval *tv, void *zone);
int __wrap_gettimeofday(struct timeval *tv, void *zone)
{
    (void)zone;
    struct timespec ts;
    __wrap_clock_gettime(CLOCK_REALTIME, &ts);
    *tv = (struct timeval){.tv_sec = ts.tv_sec, .tv_usec = ts.tv_nsec / 1000};
    return 0;
}

int __real_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until)
{
    struct timespec real = moved(*until, -ahead_ms(CLOCK_MONOTONIC));
    return __real_pthread_cond_timedwait(c, m, &real);
}

int __real_clock_nanosleep(clockid_t clock, int flags,
                           const struct timespec *until, struct timespec *left);
int __wrap_clock_nanosleep(clockid_t clock, int flags,
                           const struct timespec *until, struct timespec *left);
int __wrap_clock_nanosleep(clockid_t clock, int flags,
                           const struct timespec *until, struct timespec *left)
{
    struct timespec real = *until;
    if (flags & TIMER_ABSTIME)
        real = moved(real, -ahead_ms(clock));
    return __real_clock_nanosleep(clock, flags, &real, left);
}
