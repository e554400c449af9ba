/*
 * What operating systems do differently: Linux with glibc or musl, FreeBSD,
 * macOS. No other file asks which one it is.
 */
#ifndef RL_BASE_OS_H
#define RL_BASE_OS_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- Threads --- */

/* The number by which the system knows the calling thread. */
long rl_os_thread_id(void);

/* Shown by debuggers and top; at most 15 characters. */
void rl_os_name_thread(const char *name);

/* A condition variable whose waits do not depend on the wall clock. */
bool rl_os_cond_init(pthread_cond_t *c);

/* Waits until woken, or that long; it may return early. */
void rl_os_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, int64_t us);

/* --- Processes --- */

/*
 * The number of this process: in a forked child it is another one, also when
 * that was made by a system call past the C library, or has the pid of an
 * ancestor, in a pid namespace of its own. It costs no system call where the
 * kernel can clear a page at a fork (Linux 4.14, FreeBSD 12).
 */
uint64_t rl_os_process(void);

/* --- Randomness --- */

/* From the kernel, never from a pool of the process's; at most 256 bytes. */
bool rl_os_random(void *bytes, size_t len);

/* --- Descriptors --- */

/*
 * A stream socket that does not block, is closed by exec(), and raises no
 * SIGPIPE where a socket can be told so; -1 with errno.
 */
int rl_os_socket(int family);

/*
 * Requests leave at once; a dead peer of an idle connection is noticed after
 * idle_s and so many probes, each every_s after the last; and what has not been
 * acknowledged for unacknowledged_s has not arrived. As far as the system can.
 */
typedef struct rl_os_tcp {
    int idle_s, every_s, probes, unacknowledged_s;
} rl_os_tcp;

void rl_os_tune_tcp(int fd, const rl_os_tcp *t);

/* send() that does not wait and, on such a socket, raises no SIGPIPE. */
ssize_t rl_os_send(int fd, const void *bytes, size_t len);

/* What poll() is asked for who wants to know of the other side's end, but not of
   what comes before that. Where it cannot tell, of both. */
#ifdef POLLRDHUP
#define RL_POLL_END POLLRDHUP
#else
#define RL_POLL_END POLLIN
#endif

/*
 * A descriptor that a thread polls, and that any other makes readable to wake
 * it. It stays raised until it is cleared, however often it was raised.
 */
typedef struct rl_signal {
    int fd; /* to be polled for POLLIN; -1: none */
    int raise_fd;
} rl_signal;

#define RL_SIGNAL_NONE ((rl_signal){.fd = -1, .raise_fd = -1})

bool rl_signal_init(rl_signal *s); /* false with errno: no descriptors */
void rl_signal_fini(rl_signal *s); /* no effect on RL_SIGNAL_NONE */
void rl_signal_raise(const rl_signal *s);
void rl_signal_clear(const rl_signal *s);

/* Its descriptor to be polled is not its own any more, and is left alone. */
void rl_signal_forget(rl_signal *s);

/*
 * Which file a descriptor leads to, as far as the system tells: on Linux two
 * eventfds are alike.
 */
typedef struct rl_os_file {
    uint64_t device, number, type;
} rl_os_file;

bool rl_os_file_of(int fd, rl_os_file *out); /* false with errno */
bool rl_os_file_is(const rl_os_file *a, const rl_os_file *b);

/*
 * What a path leads to just now: it is another one when a file has been
 * written, replaced or taken away since.
 */
typedef struct rl_os_stamp {
    uint64_t device, number;
    int64_t size, written_s, written_ns, changed_s, changed_ns;
} rl_os_stamp;

rl_os_stamp rl_os_stamp_of(const char *path); /* all 0: to nothing */
bool rl_os_stamp_is(const rl_os_stamp *a, const rl_os_stamp *b);

/*
 * A descriptor that is readable while one of others is: an epoll or a kqueue.
 * -1 with errno: it cannot be had. What is closed has to be removed before.
 */
int rl_os_watch_new(void);
bool rl_os_watch_add(int watch, int fd); /* false with errno */
void rl_os_watch_remove(int watch, int fd);

/* --- SIGPIPE --- */

/*
 * Between the two, the calling thread writes by functions that cannot be told
 * to raise no SIGPIPE; what they raise is taken back. One that was pending
 * before, or that the program had blocked, stays as it was. Both keep errno.
 */
typedef struct rl_os_sigpipe {
    sigset_t before;
    bool was_pending;
} rl_os_sigpipe;

void rl_os_block_sigpipe(rl_os_sigpipe *p);
void rl_os_restore_sigpipe(const rl_os_sigpipe *p);

#endif
