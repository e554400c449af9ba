/*
 * Status codes and error details. The library prints nothing, aborts nothing,
 * and leaves signal dispositions alone.
 *
 * Over each function stands every status that it can return: with words, what
 * it means there ("also": besides what stands below); without, what stands
 * below. "As f()": all that is said of f() holds, statuses included. A pointer
 * that is NULL is RLOCK_EINVAL, where it is not said to be accepted. What a
 * function makes is NULL in *out unless it returns RLOCK_OK.
 *
 * Structs grow, and only at their ends. Each that a program hands in says its
 * size: options by their first member, which RLOCK_..._INIT sets; what the
 * library fills by an argument. A program is given the members that its header
 * has, and finds zeroes in those that the library does not know. Structs that
 * callbacks are given may be longer: copy members, or no more than sizeof.
 */
#ifndef RLOCK_BASE_H
#define RLOCK_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RLOCK_VERSION_MAJOR 0
#define RLOCK_VERSION_MINOR 3
#define RLOCK_VERSION_PATCH 0

/* One number, which grows with the version: 0.3.0 is 300, 1.2.3 is 10203. */
#define RLOCK_VERSION_NUMBER                                                   \
    (RLOCK_VERSION_MAJOR * 10000 + RLOCK_VERSION_MINOR * 100 +                 \
     RLOCK_VERSION_PATCH)

#if defined(__GNUC__)
#define RLOCK_API __attribute__((visibility("default")))
#else
#define RLOCK_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A wait without a limit; see rlock_acquire(). */
#define RLOCK_FOREVER ((int64_t)-1)

/* A lease of the client's watchdog_lease_ms, renewed while the lock is held. */
#define RLOCK_WATCHDOG ((int64_t)0)

/* The shortest lease that is accepted: of less the margin would leave none. */
#define RLOCK_LEASE_MIN_MS ((int64_t)3)

/* The longest lease that is accepted, in milliseconds (2^52). */
#define RLOCK_LEASE_MAX_MS ((int64_t)4503599627370496)

/* The longest name of a lock, in bytes. */
#define RLOCK_NAME_MAX 512

/* Numbers are part of the ABI: new codes are appended, none is reused. */
typedef enum rlock_status {
    RLOCK_OK = 0,          /* done */
    RLOCK_BUSY = 1,        /* another owner holds it; no wait was asked for */
    RLOCK_TIMEOUT = 2,     /* the wait ran out */
    RLOCK_CANCELED = 3,    /* a cancel ended the wait */
    RLOCK_NOT_HELD = 4,    /* this owner has no hold to release or to use */
    RLOCK_LOST = 5,        /* this owner held it and lost it */
    RLOCK_EINVAL = 6,      /* bad argument, or a busy owner; nothing was sent */
    RLOCK_ENOMEM = 7,      /* out of memory, or a thread could not start */
    RLOCK_EIO = 8,         /* server unreachable, connection broken, timeout */
    RLOCK_ESERVER = 9,     /* the server answered with an error */
    RLOCK_EWRONGTYPE = 10, /* the key exists and is no lock of this kind */
    RLOCK_EQUORUM = 11,    /* too few nodes, or replicas, did their part */
    RLOCK_ECLOSED = 12,    /* the client was freed, or is being freed */
    RLOCK_EFORKED = 13,    /* the handle, or owner, was made before fork() */
    RLOCK_ENOTSUP = 14,    /* not possible with this build, server or kind */
    RLOCK_EDEADLK = 15     /* the wait would close a circle of owners */
} rlock_status;

/* What a lock is held as, or waited for. More kinds may come; numbers are part
   of the ABI. */
typedef enum rlock_kind {
    RLOCK_KIND_LOCK = 0,
    RLOCK_KIND_READ = 1,   /* a side of a read-write lock, */
    RLOCK_KIND_WRITE = 2,  /* and the other one */
    RLOCK_KIND_PERMIT = 3, /* of a semaphore */
    RLOCK_KIND_LATCH = 4   /* a latch, which is waited for, and nobody holds */
} rlock_kind;

/* Detail of a failure. */
typedef struct rlock_error {
    rlock_status status;
    int sys_errno;     /* errno of the system call that failed, or 0 */
    char message[256]; /* names the lock, the server and the cause */
} rlock_error;

/* Gives the text of a status: constant, English, never NULL, for any number. */
RLOCK_API const char *rlock_status_str(rlock_status status);

/*
 * Tells of the calling thread's last failed call. Never NULL; before the first
 * failure RLOCK_OK and an empty message. A call that succeeds leaves it as it
 * was, like errno. Valid until the thread's next call into the library, or its
 * end. Messages never hold a password; bytes of a lock's name that are not
 * printable ASCII are shown as \xNN, and a long name is shortened.
 */
RLOCK_API const rlock_error *rlock_last_error(void);

/* Gives the library's version at run time, as "major.minor.patch". */
RLOCK_API const char *rlock_version(void);

#ifdef __cplusplus
}
#endif
#endif
