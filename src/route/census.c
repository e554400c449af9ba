#include "route/census.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

typedef struct census {
    rl_cluster *c;
    rl_slotmap_reply *ours, *strange; /* the first map of each kind; or NULL */
    rl_slotmap_reply *spare;          /* for the next; NULL: out of memory */
    rl_place at[RL_WITNESSES];        /* whom to ask */
    unsigned count;
    /* Who has answered: one may have two addresses. */
    char heard[RL_WITNESSES + 1][RL_NODE_ID + 1];
    unsigned answers;
} census;

/* --- whom to ask ---------------------------------------------------------- */

static void add(census *v, const rl_slotmap_reply *first, const char *host,
                int port)
{
    rl_place *p = &v->at[v->count];
    bool listed =
        v->count == RL_WITNESSES ||
        (first->from.port == port && strcmp(first->from.host, host) == 0);
    for (unsigned i = 0; i < v->count && !listed; i++)
        listed = v->at[i].port == port && strcmp(v->at[i].host, host) == 0;
    if (listed || strlen(host) >= sizeof p->host)
        return;
    *p = (rl_place){.port = port};
    strcpy(p->host, host);
    v->count++;
}

/* From anywhere on: there may be more than can be asked. */
static void find_witnesses(census *v, const rl_slotmap_reply *first)
{
    rl_cluster *c = v->c;
    rl_mutex_lock(&c->mutex);
    unsigned from = c->count ? (unsigned)rl_random_below(c->count) : 0;
    for (unsigned i = 0; i < c->count; i++) {
        const rl_server *s = c->server[(from + i) % c->count];
        if (s->slots > 0)
            add(v, first, s->place.host, s->place.port);
    }
    rl_mutex_unlock(&c->mutex);
    for (size_t i = 0; i < c->replicas; i++)
        add(v, first, c->replica[i].host, c->replica[i].port);
    for (size_t i = 0; i < c->o.uri->endpoints; i++)
        add(v, first, c->o.uri->endpoint[i].host, c->o.uri->endpoint[i].port);
}

/* --- what they say -------------------------------------------------------- */

static bool is_heard(census *v, const rl_slotmap_reply *said)
{
    const char *id = said->self ? said->node[said->self - 1].id : "";
    for (unsigned i = 0; i < v->answers; i++)
        if (*id && strcmp(v->heard[i], id) == 0)
            return true;
    strcpy(v->heard[v->answers++], id);
    return false;
}

/* What has come is in `spare`. */
static void take(census *v)
{
    rl_mutex_lock(&v->c->mutex);
    rl_slotmap_reply **kind =
        rl_slotmap_is_ours(v->c, v->spare) ? &v->ours : &v->strange;
    if (!is_heard(v, v->spare))
        rl_slotmap_count(v->c, v->spare);
    rl_mutex_unlock(&v->c->mutex);
    if (*kind)
        return;
    *kind = v->spare;
    v->spare = malloc(sizeof *v->spare);
}

static rl_slotmap_reply *choose(census *v, bool anybody)
{
    rl_slotmap_reply **best = anybody ? &v->ours : &v->strange;
    if (!*best)
        best = v->ours ? &v->ours : &v->strange;
    rl_slotmap_reply *said = *best;
    *best = NULL;
    return said;
}

bool rl_census_take(rl_cluster *c, rl_slotmap_reply **said,
                    bool (*ask)(rl_cluster *c, rl_slotmap_reply *into,
                                const rl_place *at))
{
    census v = {.c = c, .spare = *said};
    bool anybody;
    rl_mutex_lock(&c->mutex);
    bool all = rl_slotmap_is_known(c, *said);
    rl_slotmap_begin_count(c);
    rl_mutex_unlock(&c->mutex);
    if (!all)
        find_witnesses(&v, *said);
    take(&v);
    for (unsigned i = 0; i < v.count && v.spare; i++)
        if (ask(c, v.spare, &v.at[i]))
            take(&v);
    rl_mutex_lock(&c->mutex);
    bool again = rl_slotmap_end_count(c, &anybody);
    rl_mutex_unlock(&c->mutex);
    *said = choose(&v, anybody);
    free(v.ours);
    free(v.strange);
    free(v.spare);
    return again;
}

void rl_census_note_replicas(rl_cluster *c, const rl_slotmap_reply *said)
{
    size_t n = 0;
    rl_mutex_lock(&c->mutex);
    bool ours = rl_slotmap_is_ours(c, said);
    rl_mutex_unlock(&c->mutex);
    for (size_t i = 0; i < said->count; i++)
        n += !said->node[i].master && said->node[i].port;
    rl_place *at = ours ? malloc((n + 1) * sizeof *at) : NULL;
    if (!at)
        return;
    free(c->replica);
    c->replica = at;
    c->replicas = n;
    for (size_t i = 0; i < said->count; i++) {
        const rl_slot_owner *r = &said->node[i];
        if (r->master || !r->port)
            continue;
        *at = (rl_place){.port = r->port};
        strcpy((at++)->host, *r->host ? r->host : said->from.host);
    }
}

/* --- one of them ---------------------------------------------------------- */

/*
 * A right that is missing, or a server that does not know the question, is no
 * reason to refuse it.
 */
bool rl_cluster_recognizes(rl_cluster *c, void *server, rl_conn *conn,
                           int64_t deadline_us, rl_fault *f)
{
    rl_reply r;
    char id[RL_NODE_ID + 1] = "";
    rl_mutex_lock(&c->mutex);
    const rl_server *s = rl_slotmap_made(c, server);
    if (s)
        strcpy(id, s->id);
    rl_mutex_unlock(&c->mutex);
    if (!*id)
        return true;
    if (rl_conn_ask(conn, deadline_us, &r, f, 2,
                    (const char *[]){"CLUSTER", "MYID"}) != RLOCK_OK)
        return false;
    if (!rl_reply_is(&r, REDIS_REPLY_STRING) || r.top.len != RL_NODE_ID ||
        strcmp(r.top.str, id) == 0)
        return true;
    rl_cluster_suspect(c, server);
    rl_fault_set(f, RLOCK_EIO, 0,
                 "another server of a cluster is at its address");
    return false;
}
