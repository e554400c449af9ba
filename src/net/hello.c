/*
 * The answers are judged in the order of the questions: behind a login that was
 * refused, what else is answered says nothing.
 */
#include "net/hello.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "wire/error.h"
#include "wire/table.h"

/* What is there already cannot be the answer to what we say: it is kept, as is
   the error of a server that is full and closes at once. */
typedef struct greeting {
    bool came;
    rl_reply reply;
} greeting;

static void keep_greeting(void *arg, const rl_reply *r)
{
    greeting *g = arg;
    if (!g->came)
        rl_reply_copy(&g->reply, r);
    g->came = true;
}

/* --- what is said --------------------------------------------------------- */

enum { AUTH, SELECT, ECHO, ROLE, QUESTIONS };

typedef struct talk {
    const rl_hello *h;
    rl_conn *c;
    rl_login login;
    rl_question q[QUESTIONS];
    bool asked[QUESTIONS];
    rl_table *role; /* gets that answer; or NULL */
} talk;

static void ask(talk *t, int what, int argc, const char **argv)
{
    t->q[what] = (rl_question){.replies = 0};
    t->asked[what] = true;
    rl_conn_put(t->c, &t->q[what], argc, argv);
}

static void ask_all(talk *t)
{
    char number[16];
    memset(t->asked, 0, sizeof t->asked);
    t->q[AUTH] = (rl_question){.replies = 0};
    t->asked[AUTH] = rl_login_put(&t->login, t->c, &t->q[AUTH]);
    if (!t->h->theirs && t->h->uri->db != 0) {
        snprintf(number, sizeof number, "%d", t->h->uri->db);
        ask(t, SELECT, 2, (const char *[]){"SELECT", number});
    }
    ask(t, ECHO, 2, (const char *[]){"PING", "rlock"});
    if (t->h->master)
        ask(t, ROLE, 1, (const char *[]){"ROLE"});
}

static void await_all(talk *t, int64_t deadline_us)
{
    rl_fault ignored;
    t->c->line.reply.table = t->role;
    for (int i = 0; i < QUESTIONS; i++)
        if (t->asked[i])
            rl_conn_await(t->c, deadline_us, &t->q[i], 1, &ignored);
    t->c->line.reply.table = NULL;
}

/* --- what is answered ----------------------------------------------------- */

static rlock_status judge_select(const talk *t, rl_fault *f)
{
    const rl_reply *r = &t->q[SELECT].reply;
    if (rl_reply_is(r, REDIS_REPLY_ERROR))
        return rl_fault_set(f, RLOCK_ESERVER, 0,
                            "cannot select database %d: %s", t->h->uri->db,
                            r->top.str);
    return RLOCK_OK;
}

static rlock_status not_ready(bool theirs, const rl_reply *r, rl_fault *f)
{
    if (rl_reply_is(r, REDIS_REPLY_ERROR))
        return rl_error_reply(r, f)->status;
    if (!theirs)
        return rl_fault_set(f, RLOCK_EIO, 0,
                            "not a Redis server: it does not answer PING");
    return rl_fault_set(f, RLOCK_EINVAL, 0,
                        "the connect callback's context is not ready for "
                        "commands (in MULTI, subscribed, or with unread "
                        "replies): it answered \"%.60s\"",
                        r->top.str ? r->top.str : "(no text)");
}

/* Sentinels before Redis 7, and KeyDB's, take no word with their PING; that is
   an answer to ours, too. */
static bool takes_no_word(const rl_reply *r)
{
    return rl_reply_is(r, REDIS_REPLY_ERROR) &&
           strstr(r->top.str, "wrong number of arguments for 'ping'");
}

/* The echo of a word of ours: a PONG may be the answer to somebody's PING. */
static rlock_status judge_echo(const talk *t, rl_fault *f)
{
    const rl_reply *r = &t->q[ECHO].reply;
    bool echo =
        rl_reply_is(r, REDIS_REPLY_STRING) && strcmp(r->top.str, "rlock") == 0;
    return echo || takes_no_word(r) ? RLOCK_OK : not_ready(t->h->theirs, r, f);
}

/* A list of lists; what it is comes first. */
static rlock_status judge_role(const talk *t, rl_fault *f)
{
    const rl_reply *r = &t->q[ROLE].reply;
    if (rl_reply_is(r, REDIS_REPLY_ERROR))
        return rl_error_reply(r, f)->status;
    if (t->role->count < 2 || !t->role->cell[1].str ||
        strcmp(t->role->cell[1].str, "master") != 0)
        return rl_fault_set(f, RLOCK_EIO, 0, "it is no master (yet)");
    return RLOCK_OK;
}

static rlock_status judge_one(const talk *t, int what, bool *wrong, rl_fault *f)
{
    const rl_question *q = &t->q[what];
    if (!t->asked[what])
        return RLOCK_OK;
    if (q->status != RLOCK_OK) {
        *f = q->fault;
        return q->status;
    }
    return what == AUTH     ? rl_login_judge(&t->login, &q->reply, wrong, f)
           : what == SELECT ? judge_select(t, f)
           : what == ECHO   ? judge_echo(t, f)
                            : judge_role(t, f);
}

/* *wrong: these credentials are not taken. */
static rlock_status judge_all(const talk *t, bool *wrong, rl_fault *f)
{
    rlock_status s = RLOCK_OK;
    *wrong = false;
    for (int i = 0; i < QUESTIONS && s == RLOCK_OK; i++)
        s = judge_one(t, i, wrong, f);
    return s;
}

/* --- all of it ------------------------------------------------------------ */

static rlock_status say(talk *t, int64_t deadline_us, rl_fault *f)
{
    bool changes = t->h->credentials && t->h->credentials->callback;
    bool wrong = true;
    rlock_status s = RLOCK_OK;
    t->login = (rl_login){.expires_us = RL_NEVER};
    /* They may have been changed while the program looked them up. */
    for (int tries = changes ? 2 : 1; wrong && tries > 0; tries--) {
        if (!t->h->theirs)
            s = rl_login_get(t->h->credentials, t->h->uri, &t->login,
                             deadline_us, f);
        wrong = false;
        if (s == RLOCK_OK) {
            ask_all(t);
            await_all(t, deadline_us);
            s = judge_all(t, &wrong, f);
        }
        t->c->expires_us = t->login.expires_us;
        rl_login_fini(&t->login);
    }
    if (wrong && t->h->strict)
        f->transient = false;
    return s;
}

static rlock_status stale(const rl_conn *c, rl_fault *f)
{
    *f = c->line.fault;
    return f->status;
}

static rlock_status begin(talk *t, int64_t deadline_us, rl_fault *f)
{
    if (rl_conn_is_stale(t->c))
        return stale(t->c, f);
    if (t->h->master && !(t->role = calloc(1, sizeof *t->role)))
        return rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
    rlock_status s = say(t, deadline_us, f);
    free(t->role);
    return s == RLOCK_OK && rl_conn_is_stale(t->c) ? stale(t->c, f) : s;
}

rlock_status rl_hello_say(const rl_hello *h, rl_conn *c, int64_t deadline_us,
                          rl_fault *f)
{
    greeting g = {.came = false};
    talk t = {.h = h, .c = c};
    c->line.pushed = keep_greeting;
    c->line.arg = &g;
    rlock_status s = begin(&t, deadline_us, f);
    if (g.came)
        s = not_ready(h->theirs, &g.reply, f);
    c->line.pushed = NULL;
    return s;
}
