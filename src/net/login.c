/*
 * The copy of a password for one login is wiped afterwards; what has been sent
 * stays in the connection's buffer until that is used anew. It is in no
 * message: what a server says to a login is passed on only when it is known not
 * to repeat it.
 */
#include "net/login.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "wire/error.h"

void rl_credentials_init(rl_credentials *c)
{
    *c = (rl_credentials){0};
    rl_mutex_init(&c->mutex, RL_RANK_ALONE);
    rl_cond_init(&c->asked);
}

void rl_credentials_fini(rl_credentials *c)
{
    rl_cond_fini(&c->asked);
    rl_mutex_fini(&c->mutex);
}

/* --- what is said --------------------------------------------------------- */

static void wipe(char *text)
{
    if (text)
        for (volatile char *p = text; *p; p++)
            *p = '\0';
    free(text);
}

void rl_login_fini(rl_login *l)
{
    wipe(l->user);
    wipe(l->password);
    l->user = l->password = NULL;
}

static rlock_status set(rl_login *l, const char *user, const char *password,
                        rl_fault *f)
{
    *l = (rl_login){.expires_us = RL_NEVER};
    bool whole = rl_options_copy(&l->user, user);
    whole = rl_options_copy(&l->password, password) && whole;
    return whole ? RLOCK_OK : rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
}

/* Another thread's turn may take long. False: longer than we have. */
static bool begin_asking(rl_credentials *from, int64_t deadline_us)
{
    rl_mutex_lock(&from->mutex);
    while (from->asking && rl_now_us() < deadline_us)
        rl_cond_wait_until(&from->asked, &from->mutex, deadline_us);
    bool ours = !from->asking;
    from->asking = from->asking || ours;
    rl_mutex_unlock(&from->mutex);
    return ours;
}

static void end_asking(rl_credentials *from)
{
    rl_mutex_lock(&from->mutex);
    from->asking = false;
    rl_cond_wake(&from->asked);
    rl_mutex_unlock(&from->mutex);
}

static rlock_status ask_program(rl_credentials *from, rl_login *l, rl_fault *f)
{
    rlock_credentials got = {0};
    if (from->callback(&got, from->arg) != 1)
        return rl_fault_set(f, RLOCK_EIO, 0,
                            "login failed: the credentials callback has none");
    if (got.valid_ms < 0)
        return rl_fault_set(f, RLOCK_EIO, 0,
                            "login failed: the credentials have expired");
    rlock_status s = set(l, got.user, got.password, f);
    if (got.valid_ms > 0)
        l->expires_us = rl_after_ms(rl_now_us(), got.valid_ms) -
                        rl_min(got.valid_ms, RLOCK_LEASE_MAX_MS) * 1000 / 10;
    return s;
}

rlock_status rl_login_get(rl_credentials *from, const rl_uri *u, rl_login *l,
                          int64_t deadline_us, rl_fault *f)
{
    *l = (rl_login){.expires_us = RL_NEVER};
    if (!from || !from->callback)
        return set(l, u->user, u->password, f);
    if (!begin_asking(from, deadline_us))
        return rl_fault_set(f, RLOCK_EIO, ETIMEDOUT,
                            "login failed: the credentials callback is busy");
    rlock_status s = ask_program(from, l, f);
    l->passing = true;
    end_asking(from);
    return s;
}

bool rl_login_put(const rl_login *l, rl_conn *c, rl_question *q)
{
    if (!l->user && !l->password)
        return false;
    /* A user without a password is one that needs none: any will do. */
    const char *with_user[] = {"AUTH", l->user, l->password ? l->password : ""};
    const char *without[] = {"AUTH", l->password};
    rl_conn_put(c, q, l->user ? 3 : 2, l->user ? with_user : without);
    return true;
}

/* --- what the server says ------------------------------------------------- */

/*
 * A server that does not know AUTH repeats its arguments, cut and cleaned in
 * its own way, so only answers that are known to be free of them are passed on.
 */
static bool is_safe_to_show(const char *answer)
{
    static const char *const known[] = {
        "WRONGPASS", "NOAUTH",   "NOPERM",
        "LOADING",   "ERR AUTH", "ERR invalid password",
        "ERR max",   "DENIED",   "ERR Client sent AUTH",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(answer, known[i], strlen(known[i])) == 0)
            return true;
    }
    return false;
}

static bool is_wrong(const rl_reply *r)
{
    return strncmp(r->top.str, "WRONGPASS", 9) == 0 ||
           strncmp(r->top.str, "ERR invalid password", 20) == 0;
}

static rlock_status refused(const rl_login *l, const rl_reply *r, rl_fault *f)
{
    const rl_error_kind *kind = rl_error_reply(r, NULL);
    bool safe =
        is_safe_to_show(r->top.str) &&
        (!l->password || !*l->password || !strstr(r->top.str, l->password));
    rl_fault_set(f, RLOCK_ESERVER, 0, "login failed: %s",
                 safe ? r->top.str
                      : "the server does not accept AUTH (its answer may "
                        "repeat the password and is left out)");
    f->transient = kind->transient || (l->passing && is_wrong(r));
    return RLOCK_ESERVER;
}

rlock_status rl_login_judge(const rl_login *l, const rl_reply *r, bool *wrong,
                            rl_fault *f)
{
    if (!rl_reply_is(r, REDIS_REPLY_ERROR))
        return RLOCK_OK;
    *wrong = is_wrong(r);
    return refused(l, r, f);
}
