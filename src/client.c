/*
 * Builds a client's parts in order and tears them down in reverse; the one
 * file that knows all of them.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "drive/handle.h"
#include "route/pool.h"
#include "wire/error.h"

#define CONNECT_TIMEOUT_MS 1000
#define COMMAND_TIMEOUT_MS 3000
#define WATCHDOG_LEASE_MS  30000
#define POOL_SIZE          16

#define SHORTEST_WATCHDOG_LEASE_MS 100

/*
 * The probe's keys are the side keys of this name and the client's uuid, which
 * no lock has.
 */
#define PROBE_NAME "rlock_probe:"

static rlock_status invalid(const char *what)
{
    return rl_error_set(RLOCK_EINVAL, 0, "bad option: %s", what);
}

static rlock_status no_memory(void)
{
    return rl_error_set(RLOCK_ENOMEM, 0, "cannot make a client: out of memory");
}

static rlock_status read_options(rlock_options *to, const rlock_options *from)
{
    if (!rl_options_read(to, sizeof *to, from))
        return invalid("size (use RLOCK_OPTIONS_INIT; or the program was "
                       "built for a newer rlock)");
    if (to->uri && to->connect)
        return invalid("uri and connect are both given");
    if (to->connect_timeout_ms < 0 ||
        to->connect_timeout_ms > RLOCK_LEASE_MAX_MS)
        return invalid("connect_timeout_ms");
    if (to->command_timeout_ms < 0 ||
        to->command_timeout_ms > RLOCK_LEASE_MAX_MS)
        return invalid("command_timeout_ms");
    if (to->watchdog_lease_ms != 0 &&
        (to->watchdog_lease_ms < SHORTEST_WATCHDOG_LEASE_MS ||
         to->watchdog_lease_ms > RLOCK_LEASE_MAX_MS))
        return invalid("watchdog_lease_ms (at least 100)");
    if (to->max_hold_ms < 0)
        return invalid("max_hold_ms");
    if (to->host_id && (!*to->host_id || strlen(to->host_id) > RL_HOST_MAX))
        return invalid("host_id (1 to 255 bytes)");
    return RLOCK_OK;
}

/* The holder id is cut at its colons, and people read it. */
static void set_process(rl_settings *set, const char *host_id)
{
    char host[RL_HOST_MAX + 1] = "";
    if (host_id)
        strcpy(host, host_id);
    else if (gethostname(host, sizeof host - 1) != 0 || !*host)
        strcpy(host, "unknown");
    for (char *p = host; *p; p++) {
        if ((unsigned char)*p <= ' ' || *p == ':' || *p == 127)
            *p = '_';
    }
    snprintf(set->process, sizeof set->process, "%s:%ld", host, (long)getpid());
}

static int64_t or_default(int64_t value, int64_t otherwise)
{
    return value ? value : otherwise;
}

static void read_settings(rl_settings *set, const rlock_options *o)
{
    set->connect_timeout_ms =
        or_default(o->connect_timeout_ms, CONNECT_TIMEOUT_MS);
    set->command_timeout_ms =
        or_default(o->command_timeout_ms, COMMAND_TIMEOUT_MS);
    set->watchdog_lease_ms =
        or_default(o->watchdog_lease_ms, WATCHDOG_LEASE_MS);
    set->redisson_channel = o->redisson_channel;
    set->on_event = o->on_event;
    set->event_arg = o->event_arg;
    set_process(set, o->host_id);
}

static void on_reconnect(void *arg)
{
    rl_engine *e = arg;
    rl_add(&e->stats.reconnects, 1);
    rl_holds_reconnected(&e->holds);
}

static bool on_open(void *arg, rl_conn *c, int64_t deadline_us, rl_fault *f)
{
    rl_engine *e = arg;
    return !atomic_load(&e->identity.wanted) ||
           rl_identify(e, c, deadline_us, f);
}

static rlock_status make_source(rl_engine *e, const rlock_options *o)
{
    rl_fault f;
    rl_dialer dialer;
    rl_dialer_init(&dialer);
    dialer.connect = o->connect;
    dialer.connect_arg = o->connect_arg;
    dialer.connect_timeout_ms = e->set.connect_timeout_ms;
    rlock_status s =
        o->connect ? RLOCK_OK : rl_uri_parse(&dialer.uri, o->uri, &f);
    if (s != RLOCK_OK) {
        rl_dialer_fini(&dialer);
        return rl_error_set(s, 0, "%s", f.text);
    }
    e->source = rl_pool_new(&dialer, o->pool_size ? o->pool_size : POOL_SIZE);
    if (!e->source)
        return no_memory();
    e->source->on_open = on_open;
    e->source->on_reconnect = on_reconnect;
    e->source->arg = e;
    return RLOCK_OK;
}

static void warn(const rl_engine *e, const char *text)
{
    rlock_event ev = {.type = RLOCK_EVENT_WARNING, .name = "", .message = text};
    rl_emit(e, &ev);
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
        e, c, until_us, e->doorbell.channel,
        "SUBSCRIBE to rlock_bell:* is not allowed, so waiters poll", f);
    if (s != RLOCK_OK || !e->set.redisson_channel)
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

static void probe(rl_engine *e, rl_conn *c, int64_t until_us, rl_answer *a)
{
    static const char holder[] = "000000000000000000000000000000000000";
    const char *bell = e->doorbell.channel;
    char name[sizeof PROBE_NAME + RL_UUID_LEN];
    int len = snprintf(name, sizeof name, "%s%s", PROBE_NAME,
                       bell + strlen(RL_BELL_PREFIX));
    rl_key token = rl_key_token(name, (size_t)len);
    rl_key queue = rl_key_queue(name, (size_t)len);
    rl_key tombstone = rl_key_tombstone(name, (size_t)len, holder);
    rl_call call;
    rl_call_init(&call, RL_SCRIPT_PROBE, 3);
    rl_call_bytes(&call, token.text, token.len);
    rl_call_bytes(&call, queue.text, queue.len);
    rl_call_bytes(&call, tombstone.text, tombstone.len);
    rl_call_text(&call, bell);
    rl_script_exchange(c, &call, until_us, &e->stats.script_loads, a);
}

/* A key that may not be touched makes the server refuse the whole script. */
static rlock_status probe_failed(const rl_answer *a, rl_fault *f)
{
    *f = a->fault;
    if (strstr(f->text, "NOPERM") && strstr(f->text, "key"))
        return lacks_right("the keys rlock_token:*, rlock_queue:* and "
                           "rlock_undone:*, or some of them",
                           f);
    return f->status;
}

static rlock_status check_rights(rl_engine *e, rl_conn *c, int64_t until_us,
                                 rl_fault *f)
{
    rl_answer a;
    rlock_status s = check_eval(c, until_us, f);
    if (s != RLOCK_OK)
        return s;
    probe(e, c, until_us, &a);
    if (a.outcome != RL_ANSWERED)
        return probe_failed(&a, f);
    const rl_item *missing = &a.reply.item[0], *warning = &a.reply.item[1];
    if (a.reply.count != 4 || !missing->str || !warning->str)
        return rl_fault_set(f, RLOCK_EIO, 0, "unexpected reply to the probe");
    rl_identity_note(&e->identity, &a.reply.item[2]);
    if (missing->len)
        return lacks_right(missing->str, f);
    if (warning->len)
        warn(e, warning->str);
    return RLOCK_OK;
}

/*
 * Checks the server on the connection that the watchdog will keep: it has to
 * have one before the first hold.
 */
static rlock_status check_server(rl_engine *e)
{
    rl_fault f = {0};
    rlock_status s = rl_source_open(
        e->source, rl_after_ms(rl_now_us(), e->set.connect_timeout_ms),
        &e->watchdog.conn, &f);
    int64_t until_us = rl_command_deadline(e);
    if (s == RLOCK_OK)
        s = check_rights(e, e->watchdog.conn, until_us, &f);
    if (s == RLOCK_OK)
        s = check_channels(e, e->watchdog.conn, until_us, &f);
    if (s != RLOCK_OK)
        rl_error_set(s, f.sys_errno, "%s: %s", e->source->server, f.text);
    return s;
}

static rlock_status engine_init(rl_engine *e, const rlock_options *o)
{
    read_settings(&e->set, o);
    rl_mutex_init(&e->starting);
    rl_identity_init(&e->identity);
    rl_agent_init(&e->agent);
    rl_watchdog_init(&e->watchdog);
    bool ok = rl_holds_init(&e->holds, &e->stats, e->set.watchdog_lease_ms,
                            o->max_hold_ms, o->on_event != NULL);
    ok = rl_rooms_init(&e->rooms) && ok;
    ok = rl_doorbell_init(&e->doorbell) && ok;
    return ok ? make_source(e, o) : no_memory();
}

/* Threads have ended, or never were in this process. */
static void engine_fini(rl_engine *e)
{
    rl_doorbell_fini(&e->doorbell, false);
    rl_rooms_fini(&e->rooms, false);
    rl_holds_fini(&e->holds, false);
    rl_source_free(e->source, false);
    rl_agent_fini(&e->agent);
    rl_identity_fini(&e->identity);
    rl_mutex_fini(&e->starting);
}

/*
 * In a forked child: only what was whole at the fork can be walked and freed;
 * mutexes may be locked for ever by threads that are not here.
 */
static void engine_fini_forked(rl_engine *e)
{
    rl_doorbell_fini(&e->doorbell, true);
    if (rl_mutex_was_free(&e->rooms.mutex))
        rl_rooms_fini(&e->rooms, true);
    if (rl_mutex_was_free(&e->holds.mutex))
        rl_holds_fini(&e->holds, true);
    rl_source_free(e->source, true);
}

static void ended(void *arg, uint64_t owner)
{
    rlock_client *cl = arg;
    rl_holds_abandon(&cl->engine.holds, owner);
}

static void destroy(rlock_client *cl)
{
    if (cl->engine.watchdog.conn)
        rl_source_close(cl->engine.source, cl->engine.watchdog.conn);
    engine_fini(&cl->engine);
    rl_client_unref(cl);
}

static rlock_status make_client(const rlock_options *o, rlock_client **out)
{
    rlock_client *cl = calloc(1, sizeof *cl);
    if (!cl)
        return no_memory();
    cl->pid = getpid();
    cl->forks = rl_owner_forks();
    atomic_init(&cl->refs, 1);
    rl_mutex_init(&cl->mutex);
    rl_cond_init(&cl->idle);
    rlock_status s = engine_init(&cl->engine, o);
    if (s == RLOCK_OK)
        s = check_server(&cl->engine);
    cl->listener.ended = ended;
    cl->listener.arg = cl;
    if (s == RLOCK_OK && !rl_owner_listen(&cl->listener))
        s = rl_error_set(RLOCK_ENOMEM, 0, "no pthread key is left");
    if (s == RLOCK_OK)
        *out = cl;
    else
        destroy(cl);
    return s;
}

rlock_status rlock_client_new(const rlock_options *opts, rlock_client **out)
{
    int cancel;
    rlock_options o;
    if (!out)
        return rl_error_set(RLOCK_EINVAL, 0, "out is NULL");
    *out = NULL;
    rlock_status s = read_options(&o, opts);
    if (s != RLOCK_OK)
        return s;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    s = make_client(&o, out);
    pthread_setcancelstate(cancel, NULL);
    return s;
}

static void wait_until_idle(rlock_client *cl)
{
    rl_mutex_lock(&cl->mutex);
    while (atomic_load(&cl->calls) > 0)
        rl_cond_wait_until(&cl->idle, &cl->mutex, RL_NEVER);
    rl_mutex_unlock(&cl->mutex);
}

static void close_client(rlock_client *cl)
{
    rl_engine *e = &cl->engine;
    atomic_store(&cl->closing, true);
    rl_rooms_close(&e->rooms);
    wait_until_idle(cl);
    rl_owner_unlisten(&cl->listener);
    rl_doorbell_stop(e);
    rl_agent_stop(e);
    rl_holds_close(&e->holds, cl);
    rl_holds_stop(&e->holds);
    rl_watchdog_stop(e);
    rl_notifier_stop(e);
    engine_fini(e);
}

void rlock_client_free(rlock_client *cl)
{
    int cancel;
    if (!cl)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (rl_client_is_forked(cl))
        engine_fini_forked(&cl->engine);
    else
        close_client(cl);
    rl_client_unref(cl);
    pthread_setcancelstate(cancel, NULL);
}

rlock_status rlock_client_ping(rlock_client *cl)
{
    int cancel;
    if (!cl)
        return rl_error_set(RLOCK_EINVAL, 0, "the client is NULL");
    rlock_status s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    rl_engine *e = &cl->engine;
    int64_t until_us = rl_command_deadline(e);
    rl_fault f = {0};
    rl_reply r;
    rl_conn *c;
    s = rl_source_borrow(e->source, until_us, &c, &f);
    if (s == RLOCK_OK) {
        s = rl_conn_ask(c, until_us, &r, &f, 1, (const char *[]){"PING"});
        if (s == RLOCK_OK && rl_reply_is(&r, REDIS_REPLY_ERROR))
            s = rl_fault_set(&f, RLOCK_ESERVER, 0, "the server answered: %s",
                             r.top.str);
        rl_source_give_back(e->source, c);
    }
    if (s != RLOCK_OK)
        rl_error_set(s, f.sys_errno, "%s: %s", e->source->server, f.text);
    rl_client_leave(cl, cancel);
    return s;
}

rlock_status rlock_client_stats(rlock_client *cl, rlock_stats *out)
{
    int cancel;
    if (!cl || !out)
        return rl_error_set(RLOCK_EINVAL, 0, "a pointer is NULL");
    rlock_status s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    rl_stats_copy(out, &cl->engine.stats);
    rl_client_leave(cl, cancel);
    return RLOCK_OK;
}
