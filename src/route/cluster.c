/*
 * The thread's loop: if there is a reason, ask one server after the other until
 * one has answered; judge what it says (route/slotmap.c); sleep. If who
 * answers does not know somebody who is in office, the others are asked, too.
 *
 * `mutex` guards which servers there are, what is known of each, and the
 * reasons. Who has which slot is atomic, slot by slot, because every call looks
 * there: a slot that is just changing is asked at either server, and each
 * answers for itself.
 *
 * While trouble lasts, askings come ever more rarely, a twentieth of its length
 * apart, however many threads complain: who waits for a failover is late by a
 * twentieth. A server that is silent is complained of once by each who waits
 * for it, so for a while nobody has to, to be asked about again.
 */
#include "route/cluster.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "route/census.h"
#include "route/suspicion.h"
#include "wire/error.h"

#define LEAST_GAP_US      (100 * 1000)
#define LONGEST_GAP_US    (2 * 1000 * 1000)
#define GAP_OF_TROUBLE    20
#define ROUTINE_US        (60 * 1000 * 1000)
#define FIRST_PATIENCE_US (300 * 1000)
/* Until it is known why none can be reached. */
#define LAST_WORDS_US (100 * 1000)
/* Of what a connection may take. */
#define LAST_PATIENCE 3
/* What there is for one that was left goes, unless something is held there. */
#define DISMISS_AGAIN_US (1000 * 1000)

/* --- to ask --------------------------------------------------------------- */

static void disconnect(rl_cluster *c)
{
    rl_mutex_lock(&c->mutex);
    c->fd = -1;
    rl_mutex_unlock(&c->mutex);
    rl_conn_free(c->conn);
    c->conn = NULL;
}

static int64_t ask_until(const rl_cluster *c)
{
    return rl_now_us() + c->patience_us + c->took_us;
}

/* Whoever waits for the first map may hope for it from now on. */
static void connected(rl_cluster *c, rl_conn *conn, const rl_place *at,
                      int64_t took_us)
{
    c->conn = conn;
    c->took_us = took_us;
    c->conn->line.budget = RL_SLOTMAP_TEXT;
    snprintf(c->asked_at, sizeof c->asked_at, "%s", at->host);
    c->asked_port = at->port;
    rl_mutex_lock(&c->mutex);
    c->fd = conn->io.fd;
    c->hope_us = ask_until(c);
    rl_mutex_unlock(&c->mutex);
}

static rlock_status ask_for(rl_cluster *c, const char *what, rl_sink *into,
                            int64_t until_us, rl_fault *f)
{
    rl_reply r;
    c->conn->line.reply.sink = into;
    rlock_status s = rl_conn_ask(c->conn, until_us, &r, f, 2,
                                 (const char *[]){"CLUSTER", what});
    c->conn->line.reply.sink = NULL;
    if (s != RLOCK_OK || !rl_reply_is(&r, REDIS_REPLY_ERROR))
        return s;
    if (strstr(r.top.str, "cluster support disabled"))
        return rl_fault_set(f, RLOCK_EINVAL, 0,
                            "it is no cluster: use redis:// (or rediss://)");
    if (strstr(r.top.str, "unknown command"))
        return rl_fault_set(f, RLOCK_EINVAL, 0,
                            "it is no cluster, for it knows no CLUSTER; a "
                            "Sentinel is asked by redis-sentinel://");
    return rl_error_reply(&r, f)->status;
}

/* A map that is empty or absurd says nothing. */
static rlock_status ask_both(rl_cluster *c, rl_slotmap_reply *map, rl_fault *f)
{
    int64_t until_us = ask_until(c);
    rl_slotmap_reply_init(map);
    rlock_status s = ask_for(c, "NODES", &map->nodes, until_us, f);
    if (s == RLOCK_OK)
        s = ask_for(c, "SLOTS", &map->slots, until_us, f);
    if (s == RLOCK_OK && (map->absurd || map->claimed == 0))
        s = rl_fault_set(f, RLOCK_EIO, 0,
                         map->absurd ? "its map of slots makes no sense"
                                     : "it names nobody for any slot: they "
                                       "are given out by redis-cli "
                                       "--cluster create");
    return s;
}

static void lack_memory_locked(rl_cluster *c) RL_REQUIRES(&c->mutex)
{
    rl_fault_passes(&c->why,
                    rl_fault_set(&c->why, RLOCK_ENOMEM, 0, "out of memory"));
}

static void note_failure(rl_cluster *c, const rl_place *at, const rl_fault *f)
{
    rl_mutex_lock(&c->mutex);
    rl_fault_set(&c->why, f->status, f->sys_errno, "%.60s:%d: %.120s", at->host,
                 at->port, f->text);
    c->why.transient = f->transient;
    rl_mutex_unlock(&c->mutex);
}

static bool is_stopping(rl_cluster *c)
{
    rl_mutex_lock(&c->mutex);
    bool stopping = c->stopping;
    rl_mutex_unlock(&c->mutex);
    return stopping;
}

/* The one that is connected. */
static bool ask_there(rl_cluster *c, rl_slotmap_reply *map)
{
    rl_fault f;
    rl_place at = {.port = c->asked_port};
    if (is_stopping(c))
        return false;
    snprintf(at.host, sizeof at.host, "%s", c->asked_at);
    if (ask_both(c, map, &f) == RLOCK_OK) {
        map->from = at;
        return true;
    }
    note_failure(c, &at, &f);
    disconnect(c);
    return false;
}

/* The one that was asked last is asked again, unless it is suspected. */
static bool ask_again(rl_cluster *c, rl_slotmap_reply *map)
{
    if (!c->conn)
        return false;
    rl_mutex_lock(&c->mutex);
    const rl_server *s = rl_slotmap_find(c, c->asked_at, c->asked_port);
    bool good = (!s || (!s->suspect && !s->retired)) && !c->unhelpful;
    rl_mutex_unlock(&c->mutex);
    if (good && !rl_conn_is_stale(c->conn) &&
        !rl_conn_is_outdated(c->conn, rl_now_us()))
        return ask_there(c, map);
    disconnect(c);
    return false;
}

/* Who is asked, in this order: the good ones, from anywhere in the list on;
   replicas, who know who takes the place of their master, if nobody else is
   left; those that the program has named; those that are suspected. */
enum { GOOD, REPLICAS, NAMED, SUSPECTED, PASSES };

typedef struct canvass {
    rl_cluster *c;
    const rl_place *only; /* or nobody but this one */
    int pass;
    size_t i, first, count[PASSES];
} canvass;

static canvass canvass_of(rl_cluster *c)
{
    unsigned count = rl_cluster_count(c);
    return (canvass){.c = c,
                     .first = rl_random_below(1 << 16),
                     .count = {count, c->replicas, c->o.uri->endpoints, count}};
}

static bool is_next(canvass *v, rl_place *out)
{
    rl_cluster *c = v->c;
    size_t i = v->i++, any = (v->first + i) % v->count[v->pass];
    if (v->pass == NAMED) {
        const rl_endpoint *e = &c->o.uri->endpoint[i];
        *out = (rl_place){.port = e->port};
        snprintf(out->host, sizeof out->host, "%s", e->host);
        return true;
    }
    if (v->pass == REPLICAS) {
        *out = c->replica[any];
        return true;
    }
    rl_mutex_lock(&c->mutex);
    const rl_server *s = c->server[any];
    bool is = !s->retired && s->suspect == (v->pass == SUSPECTED);
    *out = s->place;
    rl_mutex_unlock(&c->mutex);
    return is;
}

static bool next_candidate(void *arg, rl_place *out)
{
    canvass *v = arg;
    if (v->only) {
        *out = *v->only;
        return v->i++ == 0;
    }
    for (; v->pass < PASSES; v->pass++, v->i = 0)
        while (v->i < v->count[v->pass])
            if (is_next(v, out))
                return true;
    return false;
}

static void cannot_reach(void *arg, const rl_place *at, const rl_fault *why)
{
    note_failure(((canvass *)arg)->c, at, why);
}

static bool is_off(void *arg)
{
    return is_stopping(((canvass *)arg)->c);
}

static bool ask_whom(rl_cluster *c, rl_slotmap_reply *map, canvass v)
{
    rl_place at;
    rl_conn *conn;
    int64_t took_us;
    bool told = false;
    rl_race_begin(&c->race, &v);
    while (!told && (conn = rl_race_take(&c->race, &at, &took_us)) != NULL) {
        connected(c, conn, &at, took_us);
        told = ask_there(c, map);
    }
    rl_race_end(&c->race);
    return told;
}

static void drop_connection(rl_cluster *c)
{
    if (c->conn)
        disconnect(c);
}

/* For a second opinion. */
static bool ask_another(rl_cluster *c, rl_slotmap_reply *map,
                        const rl_place *at)
{
    drop_connection(c);
    return ask_whom(c, map, (canvass){.c = c, .only = at});
}

/* Who denied what the client believes, if somebody did. */
static bool ask_witness(rl_cluster *c, rl_slotmap_reply *map)
{
    rl_place at;
    rl_mutex_lock(&c->mutex);
    const rl_server *s = c->witness;
    c->witness = NULL;
    if (s)
        at = s->place;
    rl_mutex_unlock(&c->mutex);
    return s && ask_another(c, map, &at);
}

static bool ask(rl_cluster *c, rl_slotmap_reply *map)
{
    return ask_witness(c, map) || ask_again(c, map) ||
           ask_whom(c, map, canvass_of(c));
}

/* --- the thread ----------------------------------------------------------- */

/* Nobody may dial a new one while an old one is still believed. */
static bool take_over(rl_cluster *c, const rl_slotmap_reply *map, rl_change *ch)
{
    rl_mutex_lock(&c->mutex);
    bool changed = rl_slotmap_judge(c, map, ch);
    for (unsigned i = 0; i < ch->left; i++)
        ch->leaves[i]->dismiss_us = rl_now_us() + c->o.dismiss_us;
    rl_mutex_unlock(&c->mutex);
    for (unsigned i = 0; i < ch->left; i++)
        c->o.leave(c->o.arg, ch->leaves[i]->made, ch->leaves[i]->place.nth);
    rl_mutex_lock(&c->mutex);
    rl_slotmap_publish(c, ch);
    c->known = c->known || (c->count > 0 && !ch->lacking);
    rl_cond_wake_all(&c->told);
    rl_mutex_unlock(&c->mutex);
    c->o.told(c->o.arg, ch->failovers, ch->failover);
    return changed;
}

/* *again: somebody who is in office was not found. */
static bool is_told(rl_cluster *c, rl_slotmap_reply **said, bool *again)
{
    if (!*said || !ask(c, *said))
        return false;
    *again = rl_census_take(c, said, ask_another);
    const rl_place *from = &(*said)->from;
    if (from->port != c->asked_port || strcmp(from->host, c->asked_at) != 0)
        drop_connection(c); /* who was asked last is not believed */
    rl_census_note_replicas(c, *said);
    return true;
}

static void refresh(rl_cluster *c)
{
    int64_t now_us = rl_now_us();
    rl_slotmap_reply *map = malloc(sizeof *map);
    rl_change *ch = malloc(sizeof *ch);
    bool again = false, lacking = !map || !ch;
    c->asked_us = now_us;
    atomic_fetch_add(c->o.refreshes, 1);
    bool told = ch && is_told(c, &map, &again);
    bool changed = told && take_over(c, map, ch);
    lacking = lacking || (told && ch->lacking);
    if (changed && !lacking) /* that was the end of it */
        c->troubled_us = -LONGEST_GAP_US - RL_CALM_US;
    c->unhelpful = told && !changed && now_us - c->troubled_us < RL_CALM_US;
    free(map);
    free(ch);
    int64_t last_us = LAST_PATIENCE * c->o.connect_timeout_ms * 1000;
    c->patience_us =
        told ? FIRST_PATIENCE_US : rl_min(2 * c->patience_us, last_us);
    bool troubled = now_us - c->troubled_us < RL_CALM_US;
    int64_t lasts_us = troubled ? rl_now_us() - c->trouble_us : 0;
    rl_mutex_lock(&c->mutex);
    c->rounds++;
    if (lacking)
        lack_memory_locked(c);
    c->suspected = c->suspected || !told || again || lacking ||
                   rl_suspicion_lasts_locked(c, rl_now_us());
    c->gap_us = rl_jitter(rl_min(
        rl_max(lasts_us / GAP_OF_TROUBLE, LEAST_GAP_US), LONGEST_GAP_US));
    c->routine_us = rl_now_us() + rl_jitter(ROUTINE_US);
    rl_cond_wake_all(&c->told);
    rl_mutex_unlock(&c->mutex);
}

static int64_t dismissed_from(const rl_server *s)
{
    return s->retired ? s->dismiss_us : RL_NEVER;
}

static int64_t next_dismissal_us(rl_cluster *c)
{
    int64_t us = RL_NEVER;
    rl_mutex_lock(&c->mutex);
    for (unsigned i = 0; i < c->count; i++)
        us = rl_min(us, dismissed_from(c->server[i]));
    rl_mutex_unlock(&c->mutex);
    return us;
}

/* Again and again: somebody who is late may have had it start anew. */
static void dismiss_retired(rl_cluster *c, int64_t now_us)
{
    for (unsigned i = 0; i < rl_cluster_count(c); i++) {
        rl_server *s = c->server[i];
        rl_mutex_lock(&c->mutex);
        bool due = dismissed_from(s) <= now_us;
        rl_mutex_unlock(&c->mutex);
        if (!due)
            continue;
        bool gone = c->o.dismiss(c->o.arg, s->made);
        rl_mutex_lock(&c->mutex);
        s->dismiss_us = now_us + (gone ? ROUTINE_US : DISMISS_AGAIN_US);
        rl_mutex_unlock(&c->mutex);
    }
}

static void *run(void *arg)
{
    rl_cluster *c = arg;
    while (!is_stopping(c)) {
        if (rl_suspicion_is_due(c, rl_now_us()))
            refresh(c);
        dismiss_retired(c, rl_now_us());
        int64_t until_us =
            rl_min(rl_suspicion_next_us(c), next_dismissal_us(c));
        struct pollfd p = {.fd = c->signal.fd, .events = POLLIN};
        if (!is_stopping(c) && poll(&p, 1, rl_poll_ms(until_us)) > 0)
            rl_signal_clear(&c->signal);
    }
    return NULL;
}

/* --- for others ----------------------------------------------------------- */

/* Who is not connected by then will not be, and who is may answer yet. */
static int64_t wait_end_locked(const rl_cluster *c, int64_t began_us,
                               int64_t deadline_us) RL_REQUIRES(&c->mutex)
{
    int64_t us = rl_after_ms(began_us, c->o.connect_timeout_ms) + LAST_WORDS_US;
    return rl_min(deadline_us, rl_max(us, c->hope_us));
}

rlock_status rl_cluster_await(rl_cluster *c, int64_t deadline_us, rl_fault *f)
{
    int64_t began_us = rl_now_us(), until_us;
    rl_mutex_lock(&c->mutex);
    while (!c->known && (c->rounds == 0 || c->why.transient) &&
           rl_now_us() < (until_us = wait_end_locked(c, began_us, deadline_us)))
        rl_cond_wait_until(&c->told, &c->mutex, until_us);
    bool known = c->known;
    *f = c->why;
    rl_mutex_unlock(&c->mutex);
    return known ? RLOCK_OK : f->status;
}

rlock_status rl_server_locate(void *server, int64_t deadline_us, rl_place *out,
                              rl_fault *f)
{
    rl_server *s = server;
    (void)deadline_us;
    rl_mutex_lock(&s->cluster->mutex);
    *out = s->place;
    bool retired = s->retired;
    rl_mutex_unlock(&s->cluster->mutex);
    return retired ? rl_fault_set(f, RLOCK_EIO, 0,
                                  "it has no slots of the cluster any more")
                   : RLOCK_OK;
}

rlock_status rl_cluster_locate(void *cluster, int64_t deadline_us,
                               rl_place *out, rl_fault *f)
{
    rl_cluster *c = cluster;
    rlock_status s = rl_cluster_await(c, deadline_us, f);
    if (s != RLOCK_OK)
        return s;
    rl_mutex_lock(&c->mutex);
    for (unsigned i = 0; i < c->count; i++) {
        *out = c->server[i]->place;
        if (!c->server[i]->retired && !c->server[i]->suspect)
            break;
    }
    rl_mutex_unlock(&c->mutex);
    out->nth = 0;
    return RLOCK_OK;
}

bool rl_cluster_is_retired(rl_cluster *c, unsigned number)
{
    rl_mutex_lock(&c->mutex);
    bool retired = c->server[number - 1]->retired;
    rl_mutex_unlock(&c->mutex);
    return retired;
}

rlock_status rl_server_uri(const rl_server *s, rl_uri *u, rl_fault *f)
{
    return rl_uri_of(u, s->cluster->o.uri, s->place.host, s->place.port, f);
}

rl_cluster *rl_cluster_new(const rl_cluster_options *o)
{
    rl_cluster *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->o = *o;
    c->fd = -1;
    c->patience_us = FIRST_PATIENCE_US;
    c->race = (rl_race){.like = o->uri,
                        .tls = o->tls,
                        .credentials = o->credentials,
                        .connect_timeout_ms = o->connect_timeout_ms,
                        .signal = &c->signal,
                        .next = next_candidate,
                        .is_off = is_off,
                        .failed = cannot_reach};
    rl_race_init(&c->race);
    c->gap_us = LEAST_GAP_US;
    c->asked_us = c->troubled_us = -LONGEST_GAP_US - RL_CALM_US;
    c->suspected = true;
    rl_fault_set(&c->why, RLOCK_EIO, ETIMEDOUT,
                 "no server has told who has which slot");
    rl_slotmap_init(c);
    rl_mutex_init(&c->mutex, RL_RANK_CLUSTER);
    rl_cond_init(&c->told);
    if (rl_signal_init(&c->signal))
        return c;
    rl_cluster_free(c, false);
    return NULL;
}

bool rl_cluster_start(rl_cluster *c)
{
    return rl_thread_start(&c->thread, "rlock-topology", run, c);
}

void rl_cluster_close(rl_cluster *c)
{
    rl_mutex_lock(&c->mutex);
    c->stopping = true;
    if (c->fd >= 0) /* who is being asked is not waited for */
        shutdown(c->fd, SHUT_RDWR);
    rl_mutex_unlock(&c->mutex);
    rl_signal_raise(&c->signal);
}

void rl_cluster_stop(rl_cluster *c)
{
    rl_cluster_close(c);
    rl_thread_join(&c->thread);
}

/* In a child the thread's memory may be half-changed: it is left alone, where a
   search for leaks finds it. */
static void leave_behind(rl_cluster *c)
{
    static _Atomic(rl_cluster *) left_behind;
    c->next_left_behind = atomic_exchange(&left_behind, c);
    rl_race_leave_behind(&c->race);
    if (!rl_mutex_was_free(&c->mutex))
        return;
    if (c->fd >= 0)
        close(c->fd);
    rl_signal_fini(&c->signal);
}

void rl_cluster_free(rl_cluster *c, bool forked)
{
    if (!c)
        return;
    if (forked) {
        leave_behind(c);
        return;
    }
    if (c->conn)
        disconnect(c);
    for (unsigned i = 0; i < c->count; i++)
        free(c->server[i]);
    free(c->replica);
    rl_signal_fini(&c->signal);
    rl_cond_fini(&c->told);
    rl_mutex_fini(&c->mutex);
    free(c);
}
