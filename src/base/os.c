#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#elif defined(__FreeBSD__)
#include <pthread_np.h>
#include <sys/event.h>
#include <sys/random.h>
#elif defined(__APPLE__)
#include <sys/event.h>
#include <sys/random.h>
#else
#error "rlock knows Linux, FreeBSD and macOS; base/os.c is what a port changes"
#endif

/* --- Threads --- */

long rl_os_thread_id(void)
{
#if defined(__linux__)
    return syscall(SYS_gettid); /* older C libraries have no gettid() */
#elif defined(__FreeBSD__)
    return pthread_getthreadid_np();
#else
    uint64_t id = 0;
    pthread_threadid_np(NULL, &id);
    return (long)id;
#endif
}

void rl_os_name_thread(const char *name)
{
#if defined(__linux__)
    pthread_setname_np(pthread_self(), name);
#elif defined(__FreeBSD__)
    pthread_set_name_np(pthread_self(), name);
#else
    pthread_setname_np(name);
#endif
}

bool rl_os_cond_init(pthread_cond_t *c)
{
#if defined(__APPLE__)
    return pthread_cond_init(c, NULL) == 0;
#else
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0)
        return false;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    bool ok = pthread_cond_init(c, &attr) == 0;
    pthread_condattr_destroy(&attr);
    return ok;
#endif
}

void rl_os_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1000000),
                         .tv_nsec = (long)(us % 1000000 * 1000)};
#if defined(__APPLE__)
    pthread_cond_timedwait_relative_np(c, m, &t);
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    t.tv_sec += now.tv_sec;
    t.tv_nsec += now.tv_nsec;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(c, m, &t);
#endif
}

/* --- Processes --- */

/* What the kernel clears in a child; else it has the number of the process. */
static atomic_uint_fast64_t *_Atomic cleared;
static atomic_uint_fast64_t no_page; /* instead of it: there is none */
static atomic_uint forks;            /* counted then */
/* The latest that was given; in a child, its parent's. */
static atomic_uint_fast64_t last_number;

static void count_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

static bool clear_at_fork(void *page, size_t len)
{
#if defined(MADV_WIPEONFORK)
    return madvise(page, len, MADV_WIPEONFORK) == 0;
#elif defined(INHERIT_ZERO)
    return minherit(page, len, INHERIT_ZERO) == 0;
#else
    (void)page;
    (void)len;
    return false;
#endif
}

/* NULL: the kernel has none that it clears. */
static atomic_uint_fast64_t *map_page(size_t len)
{
    void *page =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (clear_at_fork(page, len))
        return page;
    munmap(page, len);
    return NULL;
}

/* Threads may do so at the same time; one of their pages stays. */
static atomic_uint_fast64_t *make_page(void)
{
    size_t len = (size_t)sysconf(_SC_PAGESIZE);
    atomic_uint_fast64_t *none = NULL, *own = map_page(len);
    atomic_uint_fast64_t *page = own ? own : &no_page;
    if (atomic_compare_exchange_strong(&cleared, &none, page)) {
        if (!own)
            pthread_atfork(NULL, NULL, count_fork);
        return page;
    }
    if (own)
        munmap(own, len);
    return none;
}

/* As far as can be told: a child may come to have its parent's pid. */
static uint64_t number_without_page(void)
{
    return (uint64_t)atomic_load(&forks) << 32 | (uint32_t)getpid();
}

uint64_t rl_os_process(void)
{
    atomic_uint_fast64_t *page = atomic_load(&cleared);
    if (!page)
        page = make_page();
    if (page == &no_page)
        return number_without_page();
    uint_fast64_t n = atomic_load(page), none = 0;
    if (n != 0)
        return n;
    n = atomic_load(&last_number) + 1;
    if (!atomic_compare_exchange_strong(page, &none, n))
        n = none;
    atomic_store(&last_number, n);
    return n;
}

/* --- Randomness --- */

bool rl_os_random(void *bytes, size_t len)
{
#if defined(__APPLE__)
    return getentropy(bytes, len) == 0;
#else
    ssize_t got;
    do {
        got = getrandom(bytes, len, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)len;
#endif
}

/* --- Descriptors --- */

#if !defined(__linux__) || !defined(SOCK_CLOEXEC)
/* A program that another thread starts just before this inherits it. */
static bool prepare(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
           fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}
#endif

int rl_os_socket(int family)
{
#if defined(SOCK_CLOEXEC)
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
#else
    int fd = socket(family, SOCK_STREAM, 0), on = 1;
    if (fd < 0)
        return -1;
    if (prepare(fd) &&
        setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) == 0)
        return fd;
    int err = errno;
    close(fd);
    errno = err;
    return -1;
#endif
}

static void set(int fd, int level, int option, int value)
{
    setsockopt(fd, level, option, &value, sizeof value);
}

void rl_os_tune_tcp(int fd, const rl_os_tcp *t)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined(__APPLE__)
    set(fd, IPPROTO_TCP, TCP_KEEPALIVE, t->idle_s);
    set(fd, IPPROTO_TCP, TCP_RXT_CONNDROPTIME, t->unacknowledged_s);
#else
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, t->idle_s);
#endif
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, t->every_s);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, t->probes);
#if defined(TCP_USER_TIMEOUT)
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, t->unacknowledged_s * 1000);
#endif
}

ssize_t rl_os_send(int fd, const void *bytes, size_t len)
{
#if defined(MSG_NOSIGNAL)
    return send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
#else
    return send(fd, bytes, len, MSG_DONTWAIT);
#endif
}

bool rl_signal_init(rl_signal *s)
{
#if defined(__linux__)
    s->fd = s->raise_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return s->fd >= 0;
#else
    int ends[2];
    *s = RL_SIGNAL_NONE;
    if (pipe(ends) != 0)
        return false;
    *s = (rl_signal){.fd = ends[0], .raise_fd = ends[1]};
    if (prepare(s->fd) && prepare(s->raise_fd))
        return true;
    int err = errno;
    rl_signal_fini(s);
    errno = err;
    return false;
#endif
}

void rl_signal_fini(rl_signal *s)
{
    if (s->raise_fd >= 0 && s->raise_fd != s->fd)
        close(s->raise_fd);
    if (s->fd >= 0)
        close(s->fd);
    *s = RL_SIGNAL_NONE;
}

/* When the pipe is full, or the count at its end, it is raised already. */
void rl_signal_raise(const rl_signal *s)
{
    uint64_t one = 1; /* what an eventfd wants; a pipe takes anything */
    while (write(s->raise_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* An eventfd is empty after one read of eight bytes. */
void rl_signal_clear(const rl_signal *s)
{
    char bytes[512];
    ssize_t n;
    do {
        n = read(s->fd, bytes, sizeof bytes);
    } while (n == (ssize_t)sizeof bytes || (n < 0 && errno == EINTR));
}

void rl_signal_forget(rl_signal *s)
{
    if (s->raise_fd == s->fd)
        s->raise_fd = -1;
    s->fd = -1;
}

bool rl_os_file_of(int fd, rl_os_file *out)
{
    struct stat is;
    if (fstat(fd, &is) != 0)
        return false;
    *out = (rl_os_file){.device = (uint64_t)is.st_dev,
                        .number = (uint64_t)is.st_ino,
                        .type = (uint64_t)is.st_mode & S_IFMT};
    return true;
}

#ifdef __APPLE__
#define WRITTEN(is) ((is).st_mtimespec)
#define CHANGED(is) ((is).st_ctimespec)
#else
#define WRITTEN(is) ((is).st_mtim)
#define CHANGED(is) ((is).st_ctim)
#endif

rl_os_stamp rl_os_stamp_of(const char *path)
{
    struct stat is;
    if (stat(path, &is) != 0)
        return (rl_os_stamp){0};
    return (rl_os_stamp){.device = (uint64_t)is.st_dev,
                         .number = (uint64_t)is.st_ino,
                         .size = (int64_t)is.st_size,
                         .written_s = (int64_t)WRITTEN(is).tv_sec,
                         .written_ns = (int64_t)WRITTEN(is).tv_nsec,
                         .changed_s = (int64_t)CHANGED(is).tv_sec,
                         .changed_ns = (int64_t)CHANGED(is).tv_nsec};
}

bool rl_os_stamp_is(const rl_os_stamp *a, const rl_os_stamp *b)
{
    return a->device == b->device && a->number == b->number &&
           a->size == b->size && a->written_s == b->written_s &&
           a->written_ns == b->written_ns && a->changed_s == b->changed_s &&
           a->changed_ns == b->changed_ns;
}

bool rl_os_file_is(const rl_os_file *a, const rl_os_file *b)
{
    return a->device == b->device && a->number == b->number &&
           a->type == b->type;
}

#if defined(__linux__)

int rl_os_watch_new(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

bool rl_os_watch_add(int watch, int fd)
{
    struct epoll_event e = {.events = EPOLLIN};
    return epoll_ctl(watch, EPOLL_CTL_ADD, fd, &e) == 0;
}

void rl_os_watch_remove(int watch, int fd)
{
    struct epoll_event e = {.events = 0}; /* older kernels want one */
    epoll_ctl(watch, EPOLL_CTL_DEL, fd, &e);
}

#else

int rl_os_watch_new(void)
{
    int watch = kqueue();
    if (watch >= 0)
        fcntl(watch, F_SETFD, FD_CLOEXEC);
    return watch;
}

bool rl_os_watch_add(int watch, int fd)
{
    struct kevent e;
    EV_SET(&e, fd, EVFILT_READ, EV_ADD, 0, 0, NULL);
    return kevent(watch, &e, 1, NULL, 0, NULL) == 0;
}

void rl_os_watch_remove(int watch, int fd)
{
    struct kevent e;
    EV_SET(&e, fd, EVFILT_READ, EV_DELETE, 0, 0, NULL);
    kevent(watch, &e, 1, NULL, 0, NULL);
}

#endif

/* --- SIGPIPE --- */

static bool sigpipe_is_pending(void)
{
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE);
}

void rl_os_block_sigpipe(rl_os_sigpipe *p)
{
    int saved = errno;
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    p->was_pending = sigpipe_is_pending();
    pthread_sigmask(SIG_BLOCK, &pipe, &p->before);
    errno = saved;
}

/* It is this thread's own, so it does not vanish before it is taken. */
static void take_sigpipe(void)
{
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
#if defined(__APPLE__)
    int which;
    sigwait(&pipe, &which);
#else
    while (sigtimedwait(&pipe, NULL, &(struct timespec){0}) < 0 &&
           errno == EINTR)
        ;
#endif
}

void rl_os_restore_sigpipe(const rl_os_sigpipe *p)
{
    int saved = errno;
    if (!p->was_pending && sigpipe_is_pending())
        take_sigpipe();
    pthread_sigmask(SIG_SETMASK, &p->before, NULL);
    errno = saved;
}
