/*
 * What stays true: while c->asks somebody, either a question is under way at
 * c->conn (c->waits), or the race goes on. Of two questions the first is about
 * the ids of nodes, and the second about their slots; both together have their
 * time. Who does not answer is left, and the race goes on with the next.
 */
#include "route/canvass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "route/census.h"
#include "wire/error.h"

/* --- one of them ---------------------------------------------------------- */

static void note_failure(rl_cluster *c, const rl_place *at, const rl_fault *f)
{
    rl_mutex_lock(&c->mutex);
    rl_fault_set(&c->why, f->status, f->sys_errno, "%.60s:%d: %.120s", at->host,
                 at->port, f->text);
    c->why.transient = f->transient;
    rl_mutex_unlock(&c->mutex);
}

void rl_canvass_hang_up(rl_cluster *c)
{
    if (!c->conn)
        return;
    rl_mutex_lock(&c->mutex);
    c->fd = -1;
    rl_mutex_unlock(&c->mutex);
    if (!rl_conn_is_broken(c->conn))
        rl_conn_time_out(c->conn); /* what is under way has failed */
    rl_conn_free(c->conn);
    c->conn = NULL;
    c->waits = false;
}

static int64_t ask_until(const rl_cluster *c)
{
    return rl_now_us() + c->patience_us + c->took_us;
}

/* Whoever waits for the first map may hope for it from now on. */
static void connected(rl_cluster *c, rl_conn *conn, int64_t took_us)
{
    c->conn = conn;
    c->took_us = took_us;
    conn->line.budget = RL_SLOTMAP_TEXT;
    rl_mutex_lock(&c->mutex);
    c->fd = conn->io.fd;
    c->hope_us = ask_until(c);
    rl_mutex_unlock(&c->mutex);
}

static void put(rl_cluster *c, const char *what, rl_sink *into)
{
    c->question = (rl_question){.replies = 0};
    c->conn->line.reply.sink = into;
    rl_conn_put(c->conn, &c->question, 2, (const char *[]){"CLUSTER", what});
    c->waits = true;
}

static void ask_there(rl_cluster *c)
{
    rl_slotmap_reply_init(c->said);
    c->until_us = ask_until(c);
    c->second = false;
    put(c, "NODES", &c->said->nodes);
}

static bool is_answered(rl_cluster *c)
{
    rl_conn *conn = c->conn;
    bool goes_on =
        c->question.over || (rl_conn_send(conn) && rl_conn_receive(conn));
    if (goes_on && !c->question.over && rl_now_us() >= c->until_us)
        rl_conn_time_out(conn);
    return c->question.over;
}

static rlock_status read_answer(rl_cluster *c, rl_fault *f)
{
    const rl_question *q = &c->question;
    c->conn->line.reply.sink = NULL;
    *f = q->fault;
    if (q->status != RLOCK_OK || !rl_reply_is(&q->reply, REDIS_REPLY_ERROR))
        return q->status;
    if (strstr(q->reply.top.str, "cluster support disabled"))
        return rl_fault_set(f, RLOCK_EINVAL, 0,
                            "it is no cluster: use redis:// (or rediss://)");
    if (strstr(q->reply.top.str, "unknown command"))
        return rl_fault_set(f, RLOCK_EINVAL, 0,
                            "it is no cluster, for it knows no CLUSTER; a "
                            "Sentinel is asked by redis-sentinel://");
    return rl_error_reply(&q->reply, f)->status;
}

/* A map that is empty or absurd says nothing. */
static rlock_status check_map(const rl_slotmap_reply *map, rl_fault *f)
{
    if (map->absurd)
        return rl_fault_set(f, RLOCK_EIO, 0, "its map of slots makes no sense");
    if (map->claimed == 0)
        return rl_fault_set(f, RLOCK_EIO, 0,
                            "it names nobody for any slot: they are given out "
                            "by redis-cli --cluster create");
    return RLOCK_OK;
}

/* --- whom to ask ---------------------------------------------------------- */

/* In this order: the good ones, from anywhere in the list on; replicas, who
   know who takes the place of their master, if nobody else is left; those that
   the program has named; those that are suspected. */
enum { GOOD, REPLICAS, NAMED, SUSPECTED, PASSES };

static size_t count_of(const rl_cluster *c, int pass)
{
    return pass == REPLICAS ? c->replicas
           : pass == NAMED  ? c->o.uri->endpoints
                            : c->next.servers;
}

static bool is_next(rl_cluster *c, rl_place *out)
{
    size_t i = c->next.i++;
    size_t any = (c->next.first + i) % count_of(c, c->next.pass);
    if (c->next.pass == NAMED) {
        const rl_endpoint *e = &c->o.uri->endpoint[i];
        *out = (rl_place){.port = e->port};
        snprintf(out->host, sizeof out->host, "%s", e->host);
        return true;
    }
    if (c->next.pass == REPLICAS) {
        *out = c->replica[any];
        return true;
    }
    rl_mutex_lock(&c->mutex);
    const rl_server *s = c->server[any];
    bool is = !s->retired && s->suspect == (c->next.pass == SUSPECTED);
    *out = s->place;
    rl_mutex_unlock(&c->mutex);
    return is;
}

static bool next_candidate(void *arg, rl_place *out)
{
    rl_cluster *c = arg;
    if (c->next.alone) {
        *out = c->next.place;
        return c->next.i++ == 0;
    }
    for (; c->next.pass < PASSES; c->next.pass++, c->next.i = 0)
        while (c->next.i < count_of(c, c->next.pass))
            if (is_next(c, out))
                return true;
    return false;
}

static void cannot_reach(void *arg, const rl_place *at, const rl_fault *why)
{
    note_failure(arg, at, why);
}

/* He, and nobody else. */
static void call(rl_cluster *c, const rl_place *at)
{
    rl_canvass_hang_up(c);
    c->next.alone = true;
    c->next.place = *at;
    c->next.i = 0;
    rl_race_begin(&c->race, c);
}

static void call_anybody(rl_cluster *c)
{
    rl_canvass_hang_up(c);
    c->next.alone = false;
    c->next.pass = GOOD;
    c->next.i = 0;
    c->next.first = rl_random_below(1 << 16);
    c->next.servers = rl_cluster_count(c);
    rl_race_begin(&c->race, c);
}

static bool has_witness(rl_cluster *c, rl_place *at)
{
    rl_mutex_lock(&c->mutex);
    const rl_server *s = c->witness;
    c->witness = NULL;
    if (s)
        *at = s->place;
    rl_mutex_unlock(&c->mutex);
    return s != NULL;
}

/* Is who was asked last still there, and not suspected? */
static bool may_ask_again(rl_cluster *c)
{
    if (!c->conn)
        return false;
    rl_mutex_lock(&c->mutex);
    const rl_server *s = rl_slotmap_find(c, c->at.host, c->at.port);
    bool good = (!s || (!s->suspect && !s->retired)) && !c->unhelpful;
    rl_mutex_unlock(&c->mutex);
    return good && !rl_conn_is_stale(c->conn) &&
           !rl_conn_is_outdated(c->conn, rl_now_us());
}

/* --- one after the other -------------------------------------------------- */

/* Asks these, or, if there are none of them, those who come after. */
static void go_on_with(rl_cluster *c, int whom)
{
    rl_place at;
    if (whom == RL_ASKS_WITNESS && !has_witness(c, &at))
        whom = RL_ASKS_AGAIN;
    if (whom == RL_ASKS_AGAIN && !may_ask_again(c))
        whom = RL_ASKS_ANYBODY;
    if (whom == RL_ASKS_CENSUS && !rl_census_next(c, c->said, &at))
        whom = RL_ASKS_NOBODY;
    c->asks = whom;
    if (whom == RL_ASKS_WITNESS || whom == RL_ASKS_CENSUS)
        call(c, &at);
    if (whom == RL_ASKS_AGAIN)
        ask_there(c);
    if (whom == RL_ASKS_ANYBODY)
        call_anybody(c);
}

/* Nobody of them has answered. */
static void fail(rl_cluster *c)
{
    rl_race_end(&c->race);
    go_on_with(c, c->asks == RL_ASKS_WITNESS  ? RL_ASKS_AGAIN
                  : c->asks == RL_ASKS_AGAIN  ? RL_ASKS_ANYBODY
                  : c->asks == RL_ASKS_CENSUS ? RL_ASKS_CENSUS
                                              : RL_ASKS_NOBODY);
}

/* Somebody has. */
static void succeed(rl_cluster *c)
{
    c->answered = true;
    rl_race_end(&c->race);
    c->said->from = c->at;
    if (c->asks == RL_ASKS_CENSUS)
        rl_census_take(c, &c->said);
    else
        rl_census_begin(c, &c->said);
    go_on_with(c, RL_ASKS_CENSUS);
}

/* Both questions are answered, or one of them in vain. */
static void hear(rl_cluster *c)
{
    rl_fault f;
    c->waits = false;
    rlock_status s = read_answer(c, &f);
    if (s == RLOCK_OK && !c->second) {
        c->second = true;
        put(c, "SLOTS", &c->said->slots);
        return;
    }
    if (s == RLOCK_OK)
        s = check_map(c->said, &f);
    if (s == RLOCK_OK) {
        succeed(c);
        return;
    }
    note_failure(c, &c->at, &f);
    rl_canvass_hang_up(c);
    if (c->asks == RL_ASKS_AGAIN)
        fail(c);
}

/* False: nothing can be done until something comes. */
static bool step(rl_cluster *c)
{
    int64_t took_us;
    if (c->waits) {
        bool answered = is_answered(c);
        if (answered)
            hear(c);
        return answered;
    }
    rl_conn *conn = rl_race_look(&c->race, &c->at, &took_us);
    if (conn) {
        connected(c, conn, took_us);
        ask_there(c);
    } else if (rl_race_is_lost(&c->race)) {
        fail(c);
    } else {
        return false;
    }
    return true;
}

void rl_canvass_init(rl_cluster *c)
{
    c->race = (rl_race){.like = c->o.uri,
                        .tls = c->o.tls,
                        .credentials = c->o.credentials,
                        .connect_timeout_ms = c->o.connect_timeout_ms,
                        .signal = c->o.signal,
                        .next = next_candidate,
                        .failed = cannot_reach};
    rl_race_init(&c->race);
}

void rl_canvass_begin(rl_cluster *c)
{
    c->said = malloc(sizeof *c->said);
    if (c->said)
        go_on_with(c, RL_ASKS_WITNESS);
}

bool rl_canvass_is_over(rl_cluster *c)
{
    while (c->asks != RL_ASKS_NOBODY && step(c))
        ;
    return c->asks == RL_ASKS_NOBODY;
}

int64_t rl_canvass_due_us(rl_cluster *c)
{
    return c->waits ? c->until_us : rl_race_due_us(&c->race);
}
