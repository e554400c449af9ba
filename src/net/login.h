/*
 * Says who we are, on a new connection: with what the URI names, or what the
 * program's callback hands out.
 */
#ifndef RL_NET_LOGIN_H
#define RL_NET_LOGIN_H

#include <rlock/client.h>

#include "base/thread.h"
#include "net/conn.h"
#include "net/uri.h"

/*
 * Asks the program for credentials, one thread at a time, so that it may hand
 * out the same memory again and again.
 */
typedef struct rl_credentials {
    int (*callback)(rlock_credentials *out, void *arg); /* or NULL */
    void *arg;
    rl_mutex mutex; /* guards asking */
    rl_cond asked;
    bool asking;
} rl_credentials;

void rl_credentials_init(rl_credentials *c);
void rl_credentials_fini(rl_credentials *c);

/*
 * from: NULL if the URI says all.
 *
 * With the callback's credentials, else with the URI's, else not at all. Sets
 * until when the connection may be used. RLOCK_EIO, RLOCK_ESERVER (refused),
 * RLOCK_ENOMEM.
 */
rlock_status rl_log_in(rl_credentials *from, const rl_uri *u, rl_conn *c,
                       int64_t deadline_us, rl_fault *f);

#endif
