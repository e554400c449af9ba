#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STR2(x) #x
#define STR(x)  STR2(x)

static _Thread_local rlock_error last_error;

static const char *const texts[] = {
    [RLOCK_OK] = "ok",
    [RLOCK_BUSY] = "held by another owner",
    [RLOCK_TIMEOUT] = "the wait ran out",
    [RLOCK_CANCELED] = "the wait was canceled",
    [RLOCK_NOT_HELD] = "not held",
    [RLOCK_LOST] = "the hold was lost",
    [RLOCK_EINVAL] = "invalid argument",
    [RLOCK_ENOMEM] = "out of memory",
    [RLOCK_EIO] = "server unreachable",
    [RLOCK_ESERVER] = "the server answered with an error",
    [RLOCK_EWRONGTYPE] = "the key is no lock of this kind",
    [RLOCK_EQUORUM] = "too few nodes granted it",
    [RLOCK_ECLOSED] = "the client is closed",
    [RLOCK_EFORKED] = "the handle was made before fork",
    [RLOCK_ENOTSUP] = "not supported",
    [RLOCK_EDEADLK] = "its holder waits for this owner",
};

const char *rlock_status_str(rlock_status status)
{
    size_t i = (size_t)status;
    return i < sizeof texts / sizeof *texts ? texts[i] : "unknown status";
}

const rlock_error *rlock_last_error(void)
{
    return &last_error;
}

const char *rlock_version(void)
{
    return STR(RLOCK_VERSION_MAJOR) "." STR(RLOCK_VERSION_MINOR) "." STR(
        RLOCK_VERSION_PATCH);
}

rlock_status rl_fault_set(rl_fault *f, rlock_status status, int sys_errno,
                          const char *fmt, ...)
{
    if (!f)
        return status;
    int saved = errno;
    f->status = status;
    f->sys_errno = sys_errno;
    f->transient = status == RLOCK_EIO;
    f->at = NULL;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
    errno = saved;
    return status;
}

rlock_status rl_fault_passes(rl_fault *f, rlock_status status)
{
    if (f)
        f->transient = true;
    return status;
}

rlock_status rl_error_set(rlock_status status, int sys_errno, const char *fmt,
                          ...)
{
    last_error.status = status;
    last_error.sys_errno = sys_errno;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(last_error.message, sizeof last_error.message, fmt, ap);
    va_end(ap);
    return status;
}

void rl_error_put(const rlock_error *e)
{
    last_error = *e;
}

char *rl_printable(char *out, size_t size, const void *name, size_t len)
{
    const unsigned char *bytes = name;
    size_t at = 0;
    for (size_t i = 0; i < len; i++) {
        bool plain = bytes[i] > ' ' - 1 && bytes[i] < 127;
        if (at + (plain ? 1 : 4) + sizeof "..." > size) {
            at += (size_t)snprintf(out + at, size - at, "...");
            break;
        }
        if (plain)
            out[at++] = (char)bytes[i];
        else
            at += (size_t)snprintf(out + at, size - at, "\\x%02x", bytes[i]);
    }
    out[at] = '\0';
    return out;
}
