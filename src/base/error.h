/*
 * How failures travel. A function that can fail deep inside fills an
 * rl_fault, which costs nothing while all goes well; the public call on top
 * turns it into the thread's rlock_error, adding the names of lock and server.
 */
#ifndef RL_BASE_ERROR_H
#define RL_BASE_ERROR_H

#include <rlock/base.h>

#if defined(__GNUC__)
#define RL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define RL_PRINTF(fmt, args)
#endif

typedef struct rl_fault {
    rlock_status status;
    int sys_errno;
    bool transient; /* worth another try a little later */
    const char *at; /* the server that said so, if its client has several; stays
                       as long as the client; or NULL */
    char text[200]; /* the cause */
} rl_fault;

/*
 * Fills *f (if not NULL) and returns status. errno is kept. RLOCK_EIO counts
 * as transient, everything else does not, until the caller says otherwise.
 */
rlock_status rl_fault_set(rl_fault *f, rlock_status status, int sys_errno,
                          const char *fmt, ...) RL_PRINTF(4, 5);

/* What *f says (if not NULL) is transient; returns status. */
rlock_status rl_fault_passes(rl_fault *f, rlock_status status);

/* Sets the calling thread's last error and returns status. */
rlock_status rl_error_set(rlock_status status, int sys_errno, const char *fmt,
                          ...) RL_PRINTF(3, 4);

/* As it was: what was done meanwhile is none of the caller's. */
void rl_error_put(const rlock_error *e);

/* A name in printable form, shortened to fit out; returns out. */
char *rl_printable(char *out, size_t size, const void *name, size_t len);

#endif
