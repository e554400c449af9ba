/*
 * What a client wants to know of its server before it relies on it: may the
 * user do what the scripts do, does the server keep what it is given, which run
 * of which version is it.
 *
 * Called by the thread that makes the client; for a lazy one, by whichever
 * opens its first connection.
 */
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/error.h"
#include "wire/keys.h"

static void warn(const rl_engine *e, const char *text)
{
    rlock_event ev = {.type = RLOCK_EVENT_WARNING, .name = "", .message = text};
    rl_tell(&e->core, &ev);
}

static rlock_status lacks_right(const char *what, rl_fault *f)
{
    return rl_fault_set(f, RLOCK_ESERVER, 0, "the user lacks rights: %s", what);
}

/* Is the user allowed to listen there? Otherwise waiters poll. */
static rlock_status check_channel(rl_engine *e, rl_conn *c, int64_t until_us,
                                  const char *channel, const char *warning,
                                  rl_fault *f)
{
    rl_reply r;
    rlock_status s = rl_conn_ask(c, until_us, &r, f, 2,
                                 (const char *[]){"SUBSCRIBE", channel});
    if (s != RLOCK_OK)
        return s;
    if (rl_reply_is(&r, REDIS_REPLY_ERROR)) {
        warn(e, warning);
        return RLOCK_OK;
    }
    s = rl_conn_ask(c, until_us, &r, f, 2,
                    (const char *[]){"UNSUBSCRIBE", channel});
    if (s == RLOCK_OK && rl_reply_is(&r, REDIS_REPLY_ERROR))
        return lacks_right("UNSUBSCRIBE", f);
    return s;
}

static rlock_status check_channels(rl_engine *e, rl_conn *c, int64_t until_us,
                                   rl_fault *f)
{
    rlock_status s = check_channel(
        e, c, until_us, e->core.bell,
        "SUBSCRIBE to rlock_bell:* is not allowed, so waiters poll", f);
    if (s != RLOCK_OK || !e->core.set.redisson_channel)
        return s;
    return check_channel(
        e, c, until_us, "redisson_lock__channel:{rlock_probe}",
        "SUBSCRIBE to redisson_lock__channel:* is not allowed, so waiters for "
        "locks of Redisson poll",
        f);
}

/* The probe goes by EVALSHA, and by EVAL only to a server that lacks it. */
static rlock_status check_eval(rl_conn *c, int64_t until_us, rl_fault *f)
{
    rl_reply r;
    rlock_status s = rl_conn_ask(c, until_us, &r, f, 3,
                                 (const char *[]){"EVAL", "return 1", "0"});
    if (s == RLOCK_OK && rl_reply_is(&r, REDIS_REPLY_ERROR))
        return rl_error_reply(&r, f)->status;
    return s;
}

/*
 * The side keys are those of a name that no lock and no other client has.
 */
static void write_probe(const rl_ask *a, rl_bytes *to)
{
    static const char holder[] = "000000000000000000000000000000000000";
    const rl_inquiry *q = RL_CONTAINER(a, rl_inquiry, ask);
    const char *bell = q->arg;
    char name[sizeof RL_PROBE_PREFIX + RL_UUID_LEN];
    int len = snprintf(name, sizeof name, "%s%s", RL_PROBE_PREFIX,
                       bell + strlen(RL_BELL_PREFIX));
    rl_put_call(to, RL_SCRIPT_PROBE, a->whole, 3, 1);
    rl_put_token_key(to, name, (size_t)len);
    rl_put_queue_key(to, name, (size_t)len);
    rl_put_tombstone_key(to, name, (size_t)len, holder);
    rl_put_text(to, bell);
}

/* A key that may not be touched makes the server refuse the whole script. */
static rlock_status probe_failed(const rl_inquiry *q, rl_fault *f)
{
    *f = q->fault;
    if (strstr(f->text, "NOPERM") && strstr(f->text, "key"))
        return lacks_right("the keys rlock_token:*, rlock_queue:* and "
                           "rlock_undone:*, or some of them",
                           f);
    return f->status;
}

static rlock_status check_rights(rl_engine *e, rl_conn *c, int64_t until_us,
                                 rl_fault *f)
{
    rl_inquiry q = {.arg = e->core.bell};
    rlock_status s = check_eval(c, until_us, f);
    if (s != RLOCK_OK)
        return s;
    if (!rl_inquire(c, &q, RL_SCRIPT_PROBE, write_probe,
                    &e->core.stats.script_loads, until_us))
        return probe_failed(&q, f);
    rl_pace_note(&e->core.pace, rl_now_us() - q.ask.sent_us);
    const rl_item *missing = &q.reply.item[0], *warning = &q.reply.item[1];
    const rl_item *too_old = &q.reply.item[4];
    if (q.reply.count != 5 || !missing->str || !warning->str || !too_old->str)
        return rl_fault_set(f, RLOCK_EIO, 0, "unexpected reply to the probe");
    if (too_old->len)
        return rl_fault_set(f, RLOCK_ENOTSUP, 0,
                            "the server is too old: rlock needs Redis 6.2 or "
                            "newer, its version is %s",
                            too_old->str);
    rl_identity_note(&e->core.identity, &q.reply.item[2], rl_now_us());
    if (missing->len)
        return lacks_right(missing->str, f);
    if (warning->len)
        warn(e, warning->str);
    return RLOCK_OK;
}

static rlock_status check(rl_engine *e, rl_conn *c, int64_t until_us,
                          rl_fault *f)
{
    rlock_status s = check_rights(e, c, until_us, f);
    return s == RLOCK_OK ? check_channels(e, c, until_us, f) : s;
}

rlock_status rl_check_server(rl_engine *e, bool lazy)
{
    rl_fault f = {0};
    rl_conn **c = &e->node.keeper.conn;
    rlock_status s = rl_source_open(
        e->node.source,
        rl_after_ms(rl_now_us(), e->core.set.connect_timeout_ms), c, &f);
    if (s == RLOCK_OK)
        s = check(e, *c, rl_command_end(&e->core, rl_now_us()), &f);
    /* A descriptor, too, has to be there before the first hold. */
    if (s == RLOCK_OK && !rl_signal_init(&e->node.keeper.signal))
        s = rl_fault_set(&f, RLOCK_ENOMEM, errno, "no descriptor: %s",
                         strerror(errno));
    if (s == RLOCK_OK)
        return s;
    if (!lazy || !f.transient)
        return rl_error_set(s, f.sys_errno, "%s: %s",
                            atomic_load(&e->core.node), f.text);
    if (e->node.keeper.signal.fd < 0 && !rl_signal_init(&e->node.keeper.signal))
        return rl_error_set(RLOCK_ENOMEM, errno, "no descriptor");
    rl_source_close(e->node.source, *c);
    *c = NULL;
    atomic_store(&e->unchecked, true);
    atomic_store(&e->core.identity.awaited, true);
    rl_connector_suspect(&e->node.connector, &f);
    return RLOCK_OK;
}

bool rl_check_connection(rl_engine *e, rl_conn *c, int64_t deadline_us,
                         rl_fault *f)
{
    if (atomic_load(&e->unchecked)) {
        if (check(e, c, deadline_us, f) != RLOCK_OK)
            return false;
        atomic_store(&e->unchecked, false);
    }
    return !atomic_load(&e->core.identity.wanted) ||
           rl_identify(e, c, deadline_us, f);
}
