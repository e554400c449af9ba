/*
 * What is said first on a new connection: who we are, which database, and a
 * word that has to come back, so that an unsolicited error, a left-over reply
 * or an open MULTI is never taken for the answer to a command of ours. All of
 * it goes in one write: to a server that is far away, each answer that is
 * waited for by itself takes as long as the way there.
 */
#ifndef RL_NET_HELLO_H
#define RL_NET_HELLO_H

#include "net/conn.h"
#include "net/login.h"
#include "net/uri.h"

typedef struct rl_hello {
    const rl_uri *uri;
    rl_credentials *credentials; /* instead of the URI's; or NULL */
    bool theirs;                 /* the program has made it, and logged in */
    bool master;                 /* what answers has to say that it is one */
    bool strict; /* credentials that are refused are so for good, also when the
                    program may have others later */
} rl_hello;

/*
 * RLOCK_EIO, RLOCK_ESERVER (refused), RLOCK_EINVAL (theirs cannot be used) or
 * RLOCK_ENOMEM. Sets until when the connection may be used. Its line has no
 * listener before and afterwards.
 */
rlock_status rl_hello_say(const rl_hello *h, rl_conn *c, int64_t deadline_us,
                          rl_fault *f);

#endif
