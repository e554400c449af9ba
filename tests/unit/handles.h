/* What the tests of handles share: some of each kind, of clients whose servers
   are not there. */
#ifndef UNIT_HANDLES_H
#define UNIT_HANDLES_H

#include <errno.h>

#include "rlock/rlock.h"

#include "test.h"

#define HERE "lock 'job' at unix:///nowhere: "
#define GONE "cannot connect: No such file or directory"

typedef struct kit {
    rlock_client *cl, *other;
    rlock *lk, *theirs;
} kit;

/* Nobody is there. */
static inline rlock_client *client_of(const char *uri)
{
    rlock_client *cl;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = uri;
    o.lazy = true;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_OK);
    return cl;
}

static inline kit kit_open(void)
{
    kit k = {.cl = client_of("unix:///nowhere"),
             .other = client_of("unix:///neither")};
    EXPECT_STATUS(rlock_new(k.cl, "job", &k.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_new(k.other, "job", &k.theirs), RLOCK_OK);
    return k;
}

static inline void kit_close(kit *k)
{
    rlock_free(k->lk);
    rlock_free(k->theirs);
    rlock_client_free(k->cl);
    rlock_client_free(k->other);
}

static inline void expect_told(rlock_status s, rlock_status wanted,
                               int sys_errno, const char *message)
{
    const rlock_error *e = rlock_last_error();
    EXPECT_STR(e->message, message);
    EXPECT_INT(s, wanted);
    EXPECT_INT(e->status, wanted);
    EXPECT_INT(e->sys_errno, sys_errno);
}

/* Of what is wrong with the call. */
#define REFUSED(call, status, message) expect_told(call, status, 0, message)
#define INVALID(call, message)         REFUSED(call, RLOCK_EINVAL, message)
/* Of a server that is not there. */
#define AWAY(call, message) expect_told(call, RLOCK_EIO, ENOENT, message GONE)

#endif
