/*
 * Each fault and each error is looked at where the library sets it, whatever the
 * test is about: its status is one that there is, and it has an errno only of a
 * system call that has failed, and tells of it in words.
 */
#include <errno.h>
#include <stdarg.h>

#include "base/error.h"
#include "test.h"

/* An errno is told in words, too: beside another text it is somebody else's. For
   these the library has words of its own. */
static bool is_told(int err, const char *text, size_t size)
{
    return err == 0 || err == ETIMEDOUT || err == EBUSY || err == EMFILE ||
           err == ENFILE || strstr(text, strerror(err)) ||
           strlen(text) == size - 1; /* it was cut */
}

static void look(rlock_status status, int err, const char *text, size_t size)
{
    int saved = errno;
    EXPECT_BETWEEN(status, RLOCK_OK, RLOCK_EDEADLK);
    if (!is_told(err, text, size))
        FAIL("told of errno %d is \"%s\"", err, text);
    errno = saved;
}

rlock_status __real_rl_fault_set(rl_fault *f, rlock_status status,
                                 int sys_errno, const char *fmt, ...);
rlock_status __wrap_rl_fault_set(rl_fault *f, rlock_status status,
                                 int sys_errno, const char *fmt, ...)
    RL_PRINTF(4, 5);
rlock_status __wrap_rl_fault_set(rl_fault *f, rlock_status status,
                                 int sys_errno, const char *fmt, ...)
{
    char text[sizeof f->text];
    va_list ap;
    int saved = errno;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    errno = saved;
    look(status, sys_errno, text, sizeof text);
    return __real_rl_fault_set(f, status, sys_errno, "%s", text);
}

rlock_status __real_rl_error_set(rlock_status status, int sys_errno,
                                 const char *fmt, ...);
rlock_status __wrap_rl_error_set(rlock_status status, int sys_errno,
                                 const char *fmt, ...) RL_PRINTF(3, 4);
rlock_status __wrap_rl_error_set(rlock_status status, int sys_errno,
                                 const char *fmt, ...)
{
    char text[sizeof rlock_last_error()->message];
    va_list ap;
    int saved = errno;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    errno = saved;
    look(status, sys_errno, text, sizeof text);
    return __real_rl_error_set(status, sys_errno, "%s", text);
}
