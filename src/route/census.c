#include "route/census.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

/* --- whom to ask ---------------------------------------------------------- */

static bool is_at(const rl_place *p, const char *host, int port)
{
    return p->port == port && strcmp(p->host, host) == 0;
}

static void add(rl_cluster *c, const rl_slotmap_reply *first, const char *host,
                int port)
{
    unsigned n = c->census.count;
    bool listed = n == RL_WITNESSES || is_at(&first->from, host, port);
    for (unsigned i = 0; i < n && !listed; i++)
        listed = is_at(&c->census.at[i], host, port);
    if (listed || strlen(host) >= RL_PLACE_HOST)
        return;
    c->census.at[n] = (rl_place){.port = port};
    strcpy(c->census.at[n].host, host);
    c->census.count++;
}

/* From anywhere on: there may be more than can be asked. */
static void find_witnesses(rl_cluster *c, const rl_slotmap_reply *first)
{
    rl_mutex_lock(&c->mutex);
    unsigned from = c->count ? (unsigned)rl_random_below(c->count) : 0;
    for (unsigned i = 0; i < c->count; i++) {
        const rl_server *s = c->server[(from + i) % c->count];
        if (s->slots > 0)
            add(c, first, s->place.host, s->place.port);
    }
    rl_mutex_unlock(&c->mutex);
    for (size_t i = 0; i < c->replicas; i++)
        add(c, first, c->replica[i].host, c->replica[i].port);
    for (size_t i = 0; i < c->o.uri->endpoints; i++)
        add(c, first, c->o.uri->endpoint[i].host, c->o.uri->endpoint[i].port);
}

/* --- what they say -------------------------------------------------------- */

static bool is_heard(rl_cluster *c, const rl_slotmap_reply *said)
{
    const char *id = said->self ? said->node[said->self - 1].id : "";
    for (unsigned i = 0; i < c->census.answers; i++)
        if (*id && strcmp(c->census.heard[i], id) == 0)
            return true;
    strcpy(c->census.heard[c->census.answers++], id);
    return false;
}

void rl_census_take(rl_cluster *c, rl_slotmap_reply **said)
{
    rl_mutex_lock(&c->mutex);
    rl_slotmap_reply **kind =
        rl_slotmap_is_ours(c, *said) ? &c->census.ours : &c->census.strange;
    if (!is_heard(c, *said))
        rl_slotmap_count(c, *said);
    rl_mutex_unlock(&c->mutex);
    if (*kind)
        return;
    *kind = *said;
    *said = malloc(sizeof **said);
}

void rl_census_begin(rl_cluster *c, rl_slotmap_reply **said)
{
    c->census.count = c->census.asked = c->census.answers = 0;
    rl_mutex_lock(&c->mutex);
    bool all = rl_slotmap_is_known(c, *said);
    rl_slotmap_begin_count(c);
    rl_mutex_unlock(&c->mutex);
    if (!all)
        find_witnesses(c, *said);
    rl_census_take(c, said);
}

bool rl_census_next(rl_cluster *c, const rl_slotmap_reply *said, rl_place *at)
{
    if (!said || c->census.asked == c->census.count)
        return false;
    *at = c->census.at[c->census.asked++];
    return true;
}

/* The first of the better kind, if there is one. */
static rl_slotmap_reply *choose(rl_cluster *c, bool anybody)
{
    rl_slotmap_reply **best = anybody ? &c->census.ours : &c->census.strange;
    if (!*best)
        best = c->census.ours ? &c->census.ours : &c->census.strange;
    rl_slotmap_reply *said = *best;
    *best = NULL;
    return said;
}

bool rl_census_end(rl_cluster *c, rl_slotmap_reply **said)
{
    bool anybody;
    rl_mutex_lock(&c->mutex);
    bool again = rl_slotmap_end_count(c, &anybody);
    rl_mutex_unlock(&c->mutex);
    free(*said);
    *said = choose(c, anybody);
    rl_census_drop(c);
    return again;
}

void rl_census_drop(rl_cluster *c)
{
    free(c->census.ours);
    free(c->census.strange);
    c->census.ours = c->census.strange = NULL;
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
