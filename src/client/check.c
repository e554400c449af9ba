/*
 * What a client wants to know of its server before it relies on it: may the
 * user do what the scripts do, does the server keep what it is given, which run
 * of which version is it.
 *
 * Called by the thread that makes the client; for a lazy one, by whichever
 * opens its first connection. Threads that open others meanwhile wait for what
 * comes of that: one check is enough, and two would hear each other, as each
 * listens for a moment where the other one tries to ring.
 */
#include "client/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/inquiry.h"
#include "wire/error.h"
#include "wire/hash_slot.h"
#include "wire/keys.h"

/* What the program is warned of when all is over: its callback may want a
   connection. */
#define MOST_WARNINGS 5

typedef struct warnings {
    size_t n;
    char text[MOST_WARNINGS][512];
} warnings;

static void warn(warnings *w, const char *text)
{
    if (w->n < MOST_WARNINGS)
        snprintf(w->text[w->n++], sizeof w->text[0], "%s", text);
}

static void tell(rl_engine *e, const warnings *w)
{
    for (size_t i = 0; i < w->n; i++) {
        rlock_event ev = {.type = RLOCK_EVENT_WARNING,
                          .name = "",
                          .message = w->text[i],
                          .owner = ""};
        rl_tell(&e->core, &ev);
    }
}

static rlock_status unexpected(rl_fault *f)
{
    return rl_fault_set(f, RLOCK_EIO, 0, "unexpected reply to the probe");
}

static rlock_status lacks_right(const char *what, rl_fault *f)
{
    return rl_fault_set(f, RLOCK_ESERVER, 0, "the user lacks rights: %s", what);
}

/* One server of many answers for one name of so many, at least. */
#define MOST_NAMES 100000

/*
 * The side keys are those of a name that no lock and no other client has, and,
 * in a cluster, that this server answers for.
 */
typedef struct probe {
    char name[sizeof RL_PROBE_PREFIX + RL_UUID_LEN + 16];
    rl_key bell;
} probe;

static bool is_for(rl_node *n, const char *name)
{
    rl_core *c = &n->e->core;
    return rl_node_of(c, rl_slot_of(c, name, strlen(name))) == n;
}

static void name_probe(rl_node *n, probe *p)
{
    const char *bell = n->e->core.bell;
    const char *uuid = bell + strlen(bell) - RL_UUID_LEN;
    snprintf(p->name, sizeof p->name, "%s%s", RL_PROBE_PREFIX, uuid);
    for (unsigned i = 1; i < MOST_NAMES && !is_for(n, p->name); i++)
        snprintf(p->name, sizeof p->name, "%s%s-%u", RL_PROBE_PREFIX, uuid, i);
    p->bell = rl_key_bell(p->name, strlen(p->name), bell);
}

/*
 * Is the user allowed to listen there? Otherwise waiters poll. The connection
 * is asked other things afterwards, so nothing of this may be left: an echo
 * comes last, and as a text only to who does not listen any more.
 */
static rlock_status check_channel(const rl_engine *e, rl_conn *c,
                                  int64_t until_us, const char *channel,
                                  bool *allowed, rl_fault *f)
{
    const char *in = e->cluster ? "SSUBSCRIBE" : "SUBSCRIBE";
    const char *out = e->cluster ? "SUNSUBSCRIBE" : "UNSUBSCRIBE";
    rl_question q[] = {
        {.subscribes = true},
        {.subscribes = true},
        {.replies = RL_REPLY_BIT(REDIS_REPLY_STRING) |
                    RL_REPLY_BIT(REDIS_REPLY_ARRAY)},
    };
    rl_conn_put(c, &q[0], 2, (const char *[]){in, channel});
    rl_conn_put(c, &q[1], 2, (const char *[]){out, channel});
    rl_conn_put(c, &q[2], 2, (const char *[]){"PING", "rlock"});
    rlock_status s = rl_conn_await(c, until_us, q, 3, f);
    if (s != RLOCK_OK)
        return s;
    *allowed = !rl_reply_is(&q[0].reply, REDIS_REPLY_ERROR);
    if (*allowed && rl_reply_is(&q[1].reply, REDIS_REPLY_ERROR))
        return lacks_right(out, f);
    return rl_reply_is(&q[2].reply, REDIS_REPLY_STRING) ? RLOCK_OK
                                                        : unexpected(f);
}

/* Redisson's channel of the probe lies where its bell does. */
static rlock_status check_channels(rl_engine *e, rl_conn *c, const probe *p,
                                   int64_t until_us, warnings *w, rl_fault *f)
{
    bool allowed;
    char bell[sizeof p->bell.text + 1] = "";
    rl_key foreign = rl_key_redisson(p->name, strlen(p->name));
    memcpy(bell, p->bell.text, p->bell.len);
    rlock_status s = check_channel(e, c, until_us, bell, &allowed, f);
    if (s == RLOCK_OK && !allowed)
        warn(w, e->cluster
                    ? "SSUBSCRIBE to rlock_sbell:* is not allowed, or not "
                      "known (before Redis 7), so waiters poll"
                    : "SUBSCRIBE to rlock_bell:* is not allowed, so waiters "
                      "poll");
    if (s != RLOCK_OK || !e->core.set.redisson_channel)
        return s;
    char channel[sizeof foreign.text + 1] = "";
    memcpy(channel, foreign.text, foreign.len);
    s = check_channel(e, c, until_us, channel, &allowed, f);
    if (s == RLOCK_OK && !allowed)
        warn(w, e->cluster
                    ? "SSUBSCRIBE to redisson_lock__channel:* is not allowed, "
                      "or not known (before Redis 7), so waiters for locks of "
                      "Redisson poll"
                    : "SUBSCRIBE to redisson_lock__channel:* is not allowed, "
                      "so waiters for locks of Redisson poll");
    return s;
}

/* --- what it is, if it is no server by itself ----------------------------- */

static rlock_status belongs_to_cluster(rl_fault *f)
{
    return rl_fault_set(f, RLOCK_EINVAL, 0,
                        "it is a server of a cluster: use redis-cluster:// "
                        "(or rediss-cluster://)");
}

static rlock_status check_mode(const rl_engine *e, const rl_item *mode,
                               rl_fault *f)
{
    bool cluster = mode->str && strcmp(mode->str, "cluster") == 0;
    return cluster && !e->cluster ? belongs_to_cluster(f) : RLOCK_OK;
}

static bool is_sentinel(const rl_table *t)
{
    return t->count > 1 && t->cell[1].str &&
           strcmp(t->cell[1].str, "sentinel") == 0;
}

/* It tells by ROLE, and which masters it watches. */
static rlock_status ask_if_sentinel(rl_conn *c, int64_t until_us, rl_fault *f)
{
    rl_reply r;
    rl_fault ignored;
    rl_table *t = calloc(1, sizeof *t);
    c->line.reply.table = t;
    if (t &&
        rl_conn_ask(c, until_us, &r, &ignored, 1, (const char *[]){"ROLE"}) ==
            RLOCK_OK &&
        is_sentinel(t)) {
        const char *name = t->count > 3 ? t->cell[3].str : NULL;
        rl_fault_set(f, RLOCK_EINVAL, 0,
                     "it is a Sentinel: use redis-sentinel://host:port/name "
                     "(or rediss-sentinel://), here with the name %.60s",
                     name ? name : "of a master");
    }
    c->line.reply.table = NULL;
    free(t);
    return f->status;
}

static bool is_elsewhere(const rl_fault *f)
{
    return strstr(f->text, "MOVED ") || strstr(f->text, "CLUSTERDOWN ");
}

/* Who has been called by the wrong scheme says so in words of his own. */
static rlock_status explain(const rl_engine *e, rl_conn *c, int64_t until_us,
                            rl_fault *f)
{
    if (!e->cluster && is_elsewhere(f))
        return belongs_to_cluster(f);
    if (strstr(f->text, "unknown command") && !rl_conn_is_broken(c))
        return ask_if_sentinel(c, until_us, f);
    return f->status;
}

/* --- rights --------------------------------------------------------------- */

/* The probe goes by EVALSHA, and by EVAL only to a server that lacks it. */
static rlock_status check_eval(rl_conn *c, rl_question *q, int64_t until_us,
                               rl_fault *f)
{
    rlock_status s = rl_conn_await(c, until_us, q, 1, f);
    if (s == RLOCK_OK && rl_reply_is(&q->reply, REDIS_REPLY_ERROR))
        return rl_error_reply(&q->reply, f)->status;
    return s == RLOCK_OK && q->reply.top.integer != 1 ? unexpected(f) : s;
}

static void write_probe(const rl_ask *a, rl_bytes *to)
{
    static const char holder[] = "000000000000000000000000000000000000";
    const rl_inquiry *q = RL_CONTAINER(a, rl_inquiry, ask);
    const probe *p = q->arg;
    size_t len = strlen(p->name);
    rl_put_call(to, RL_SCRIPT_PROBE, a->whole, 3, 1);
    rl_put_token_key(to, p->name, len);
    rl_put_queue_key(to, p->name, len);
    rl_put_tombstone_key(to, p->name, len, holder);
    rl_put_bytes(to, p->bell.text, p->bell.len);
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

/* What the probe has answered. */
static rlock_status judge_probe(rl_engine *e, rl_conn *c, const rl_inquiry *q,
                                warnings *w, rl_fault *f)
{
    const rl_item *missing = &q->reply.item[0], *warning = &q->reply.item[1];
    const rl_item *too_old = &q->reply.item[4];
    if (q->reply.count != 6 || !missing->str || !warning->str || !too_old->str)
        return unexpected(f);
    if (check_mode(e, &q->reply.item[5], f) != RLOCK_OK)
        return f->status;
    if (too_old->len)
        return rl_fault_set(f, RLOCK_ENOTSUP, 0,
                            "the server is too old: rlock needs Redis 6.2 or "
                            "newer, its version is %s",
                            too_old->str);
    c->known =
        rl_server_run_note(&e->core.server_run, &q->reply.item[2], rl_now_us());
    if (missing->len)
        return lacks_right(missing->str, f);
    if (warning->len)
        warn(w, warning->str);
    return RLOCK_OK;
}

static rlock_status check_rights(rl_engine *e, rl_conn *c, const probe *p,
                                 int64_t until_us, warnings *w, rl_fault *f)
{
    rl_inquiry q = {.arg = p};
    rl_question eval = {.replies = RL_REPLY_BIT(REDIS_REPLY_INTEGER)};
    rl_conn_put(c, &eval, 3, (const char *[]){"EVAL", "return 1", "0"});
    bool answered = rl_inquire(c, &q, RL_SCRIPT_PROBE, write_probe,
                               &e->core.stats.script_loads, until_us);
    rlock_status s = check_eval(c, &eval, until_us, f);
    if (s == RLOCK_OK && !answered)
        s = probe_failed(&q, f);
    if (s != RLOCK_OK)
        return explain(e, c, until_us, f);
    rl_rtt_note(&e->core.rtt, rl_now_us() - q.ask.sent_us);
    return judge_probe(e, c, &q, w, f);
}

bool rl_check_missing(rl_node *n, rl_conn *c, int64_t until_us, char *out,
                      size_t size, bool *rings)
{
    probe p;
    rl_fault f = {0};
    rl_inquiry q = {.arg = &p};
    const rl_item *missing = &q.reply.item[0], *warning = &q.reply.item[1];
    name_probe(n, &p);
    bool answered = rl_inquire(c, &q, RL_SCRIPT_PROBE, write_probe,
                               &n->e->core.stats.script_loads, until_us);
    bool told = answered && q.reply.count == 6 && missing->str;
    *rings = true;
    if (told)
        snprintf(out, size, "%s", missing->str);
    if (told && warning->str) /* as lua/probe.lua has it */
        *rings = !strstr(warning->str, "waiters poll");
    if (told || rl_conn_is_broken(c) || answered)
        return told;
    probe_failed(&q, &f);
    snprintf(out, size, "%s", f.text);
    return f.status == RLOCK_ESERVER && strstr(f.text, "rights") != NULL;
}

bool rl_check_bell(rl_node *n, rl_conn *c, int64_t until_us, bool *allowed)
{
    probe p;
    rl_fault ignored;
    char bell[sizeof p.bell.text + 1] = "";
    name_probe(n, &p);
    memcpy(bell, p.bell.text, p.bell.len);
    return check_channel(n->e, c, until_us, bell, allowed, &ignored) ==
           RLOCK_OK;
}

/* Behind the probe, which has written. */
static rlock_status check_replicas(const rl_engine *e, rl_conn *c,
                                   int64_t until_us, warnings *w, rl_fault *f)
{
    const rl_settings *set = &e->core.set;
    int64_t ms = rl_min(set->replica_wait_ms, (until_us - rl_now_us()) / 2000);
    char k[8], wait_ms[24], text[128];
    rl_reply r;
    snprintf(k, sizeof k, "%d", set->min_replicas);
    snprintf(wait_ms, sizeof wait_ms, "%lld", (long long)rl_max(ms, 1));
    rlock_status s = rl_conn_ask(c, until_us, &r, f, 3,
                                 (const char *[]){"WAIT", k, wait_ms});
    if (s != RLOCK_OK)
        return s;
    if (rl_reply_is(&r, REDIS_REPLY_ERROR) && strstr(r.top.str, "NOPERM"))
        return lacks_right("WAIT, for min_replicas", f);
    if (!rl_reply_is(&r, REDIS_REPLY_INTEGER))
        return rl_fault_set(f, RLOCK_ENOTSUP, 0,
                            "min_replicas needs WAIT; the server answered: %s",
                            r.top.str ? r.top.str : "no number");
    if (r.top.integer >= set->min_replicas)
        return RLOCK_OK;
    snprintf(text, sizeof text,
             "%lld of the %d replicas of min_replicas are there, so no lock is "
             "granted",
             r.top.integer, set->min_replicas);
    warn(w, text);
    return RLOCK_OK;
}

/* ASKING goes with the first of them, and concerns what is said next, which is
   no matter here. */
static rlock_status check_with_asking(rl_engine *e, rl_conn *c, const probe *p,
                                      int64_t until_us, warnings *w,
                                      rl_fault *f)
{
    rl_question q = {.replies = RL_REPLY_BIT(REDIS_REPLY_STATUS)};
    rl_conn_put(c, &q, 1, (const char *[]){"ASKING"});
    rlock_status s = check_channels(e, c, p, until_us, w, f);
    if (rl_conn_await(c, until_us, &q, 1, f) != RLOCK_OK)
        return f->status;
    if (rl_reply_is(&q.reply, REDIS_REPLY_ERROR))
        warn(w, "ASKING is not allowed, or not known, so a lock whose slot "
                "moves may be lost");
    return s;
}

static rlock_status check(rl_node *n, rl_conn *c, int64_t until_us, warnings *w,
                          rl_fault *f)
{
    probe p;
    name_probe(n, &p);
    rlock_status s = check_rights(n->e, c, &p, until_us, w, f);
    if (s == RLOCK_OK && n->e->core.set.min_replicas)
        s = check_replicas(n->e, c, until_us, w, f);
    if (s != RLOCK_OK)
        return s;
    return n->e->cluster ? check_with_asking(n->e, c, &p, until_us, w, f)
                         : check_channels(n->e, c, &p, until_us, w, f);
}

/* One server of a cluster will do: they are set up alike. */
static rlock_status choose(rl_engine *e, int64_t until_us, rl_node **n,
                           rl_fault *f)
{
    const char *bell = e->core.bell;
    *n = &e->node;
    if (!e->cluster)
        return RLOCK_OK;
    rlock_status s = rl_cluster_await(e->cluster, until_us, f);
    if (s == RLOCK_OK)
        *n = rl_node_of(&e->core, rl_hash_slot(bell, strlen(bell)));
    return s;
}

/* Where the master is, or who has which slot, is found out in the same time. */
static rlock_status connect_and_check(rl_engine *e, int64_t until_us,
                                      rl_node **n, warnings *w, rl_fault *f)
{
    rlock_status s = choose(e, until_us, n, f);
    if (s == RLOCK_OK)
        s = rl_pool_open((*n)->pool, until_us, &(*n)->keeper.conn, f);
    int64_t check_us = rl_command_end(&e->core, rl_now_us());
    if (s == RLOCK_OK)
        s = check(*n, (*n)->keeper.conn, rl_min(check_us, until_us), w, f);
    return s;
}

/* What whoever meets his first server can do about it. Of a text that is long no
   more is shown than the words. */
static const char *remedy(const rl_fault *f, int *shown)
{
    static const struct {
        const char *words, *remedy;
        bool is_long;
    } known[] = {
        {"Connection refused", ": is redis-server running there?", false},
        {"NOAUTH Authentication required.",
         " It goes into the URI: redis://:PASSWORD@host (of Sentinels, into "
         "sentinel_password)",
         false},
        {"DENIED Redis is running in protected mode",
         ": set a password there (requirepass), and it lets other machines in",
         true},
        {"READONLY You can't write against a read only replica.",
         " Name its master, or its Sentinels (redis-sentinel://)", false},
    };
    *shown = (int)strlen(f->text);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *at = strstr(f->text, known[i].words);
        if (!at)
            continue;
        if (known[i].is_long)
            *shown = (int)(at - f->text + (ptrdiff_t)strlen(known[i].words));
        return known[i].remedy;
    }
    return "";
}

/* Of a cluster, the message begins with the server. */
static rlock_status fail(const rl_engine *e, const rl_node *n,
                         const rl_fault *f)
{
    const char *name = n->name ? n->name : atomic_load(&e->core.node);
    int shown;
    const char *what_to_do = remedy(f, &shown);
    return rl_error_set(f->status, f->sys_errno, "%s: %.*s%s", name, shown,
                        f->text, what_to_do);
}

/* A descriptor, too, has to be there before the first hold. */
static rlock_status open_loop(rl_engine *e)
{
    if (rl_loop_open(&e->loop))
        return RLOCK_OK;
    return rl_error_set(RLOCK_ENOMEM, errno, "no descriptor: %s",
                        strerror(errno));
}

static void disconnect(rl_node *n)
{
    rl_pool_close(n->pool, n->keeper.conn);
    n->keeper.conn = NULL;
}

/* The Sentinel that answers first may not know yet that its master is dead. */
static bool asks_sentinels_again(rl_node *n, int64_t until_us)
{
    const int64_t pause_us = 50 * 1000;
    if (!n->e->sentinels || rl_now_us() + pause_us >= until_us)
        return false;
    disconnect(n);
    rl_node_complain(n);
    nanosleep(&(struct timespec){.tv_nsec = pause_us * 1000}, NULL);
    return true;
}

rlock_status rl_check_server(rl_engine *e, bool lazy)
{
    const int64_t connect_ms = e->core.set.connect_timeout_ms;
    int64_t now_us = rl_now_us();
    int64_t until_us =
        rl_after_ms(rl_command_end(&e->core, now_us), connect_ms);
    warnings w;
    rl_fault f;
    rl_node *n;
    rlock_status s;
    do {
        w.n = 0;
        f = (rl_fault){0};
        s = connect_and_check(e, until_us, &n, &w, &f);
    } while (s != RLOCK_OK && f.transient && !lazy &&
             asks_sentinels_again(n, rl_after_ms(now_us, connect_ms)));
    tell(e, &w);
    if (s == RLOCK_OK)
        return open_loop(e);
    f.status = s;
    if (!lazy || !f.transient)
        return fail(e, n, &f);
    disconnect(n);
    atomic_store(&e->unchecked, true);
    rl_server_run_await(&e->core.server_run);
    rl_connector_suspect(n, &f);
    return open_loop(e);
}

/* --- later ---------------------------------------------------------------- */

/* Has somebody else's come to its end in time? *ours: there was none, or it
   was in vain. */
static bool begin_check(rl_engine *e, int64_t deadline_us, bool *ours)
{
    rl_mutex_lock(&e->check_mutex);
    while (e->checking && rl_now_us() < deadline_us)
        rl_cond_wait_until(&e->checked, &e->check_mutex, deadline_us);
    bool free = !e->checking;
    *ours = free && atomic_load(&e->unchecked);
    e->checking = e->checking || *ours;
    rl_mutex_unlock(&e->check_mutex);
    return free;
}

static void end_check(rl_engine *e, bool passed)
{
    rl_mutex_lock(&e->check_mutex);
    if (passed)
        atomic_store(&e->unchecked, false);
    e->checking = false;
    rl_cond_wake_all(&e->checked);
    rl_mutex_unlock(&e->check_mutex);
}

/* Another server has its slots by now: that is to be found out. */
static void look_again(rl_node *n, rl_fault *f)
{
    f->transient = true;
    rl_node_complain(n);
}

static bool check_once(rl_node *n, rl_conn *c, int64_t deadline_us, rl_fault *f)
{
    bool ours;
    warnings w = {.n = 0};
    if (!begin_check(n->e, deadline_us, &ours)) {
        rl_fault_set(f, RLOCK_EIO, ETIMEDOUT,
                     "another connection is still being checked");
        return false;
    }
    if (!ours)
        return true;
    bool passed = check(n, c, deadline_us, &w, f) == RLOCK_OK;
    end_check(n->e, passed);
    if (passed)
        tell(n->e, &w);
    else if (n->e->cluster && is_elsewhere(f))
        look_again(n, f);
    return passed;
}

/* The way into a cluster is for whoever does not know the slots yet. */
bool rl_check_connection(rl_node *n, rl_conn *c, int64_t deadline_us,
                         rl_fault *f)
{
    rl_engine *e = n->e;
    bool entrance = e->cluster && n == &e->node;
    deadline_us = rl_min(deadline_us, rl_command_end(&e->core, rl_now_us()));
    if (atomic_load(&e->unchecked) && !entrance &&
        !check_once(n, c, deadline_us, f))
        return false;
    return !atomic_load(&e->core.server_run.wanted) ||
           rl_identify(e, c, deadline_us, f);
}
