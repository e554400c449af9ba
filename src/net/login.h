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

typedef struct rl_login {
    char *user, *password; /* or NULL */
    int64_t expires_us;
    bool passing; /* the program may have others soon */
} rl_login;

/*
 * From the callback, else from the URI; from: NULL if that says all. RLOCK_EIO,
 * RLOCK_ENOMEM. Afterwards *l can be given to rl_login_fini() in any case.
 */
rlock_status rl_login_get(rl_credentials *from, const rl_uri *u, rl_login *l,
                          int64_t deadline_us, rl_fault *f);
void rl_login_fini(rl_login *l);

/* Writes it. False: there is nothing to say. */
bool rl_login_put(const rl_login *l, rl_conn *c, rl_question *q);

/* What the server has answered to it. *wrong: it does not take these. */
rlock_status rl_login_judge(const rl_login *l, const rl_reply *r, bool *wrong,
                            rl_fault *f);

#endif
