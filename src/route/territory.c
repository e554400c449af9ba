/*
 * Of two servers that are named for a slot the one with the higher epoch has
 * it: that is how the servers themselves decide. So a server that was cut off,
 * and still names one that has been replaced, changes nothing. A slot that
 * nobody is named for stays where it was.
 */
#include "route/territory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* --- servers -------------------------------------------------------------- */

rl_server *rl_territory_find(rl_cluster *c, const char *host, int port)
{
    for (unsigned i = 0; i < c->count; i++) {
        rl_server *s = c->server[i];
        if (s->place.port == port && strcmp(s->place.host, host) == 0)
            return s;
    }
    return NULL;
}

static rl_server *make(rl_cluster *c, const char *host, int port)
    RL_REQUIRES(&c->mutex)
{
    char shown[100];
    size_t size = sizeof shown + sizeof "rediss://[]:65535";
    rl_server *s = calloc(1, sizeof *s + size);
    if (!s)
        return NULL;
    s->cluster = c;
    s->number = c->count + 1;
    s->place = (rl_place){.nth = 1, .port = port};
    strcpy(s->place.host, host);
    rl_printable(shown, sizeof shown, host, strlen(host));
    snprintf(s->name, size, strchr(shown, ':') ? "%s://[%s]:%d" : "%s://%s:%d",
             c->o.tls ? "rediss" : "redis", shown, port);
    s->made = c->o.add(c->o.arg, s, s->name);
    if (s->made)
        return s;
    free(s);
    return NULL;
}

/* NULL: there is no room for it. */
static rl_server *find_or_make(rl_cluster *c, const char *host, int port)
    RL_REQUIRES(&c->mutex)
{
    rl_server *s = rl_territory_find(c, host, port);
    if (s || c->stopping || c->count == RL_CLAIMANTS ||
        strlen(host) >= RL_PLACE_HOST)
        return s;
    s = make(c, host, port);
    if (s)
        atomic_store(&c->server[c->count++], s);
    return s;
}

/* --- a map ---------------------------------------------------------------- */

static bool is_changed(const rl_cluster *c, const rl_change *ch)
{
    for (unsigned i = 0; i < RL_KEYSLOTS; i++)
        if (ch->owner[i] != c->owner[i])
            return true;
    return false;
}

/* Those that are named; NULL: nobody, or there is no room. */
static void name_servers(rl_cluster *c, const rl_claims *said, rl_server **into)
    RL_REQUIRES(&c->mutex)
{
    for (size_t i = 0; i < said->count; i++) {
        const rl_claimant *n = &said->node[i];
        const char *host = *n->host ? n->host : c->asked_at;
        into[i] = n->port ? find_or_make(c, host, n->port) : NULL;
    }
}

/* The same server at another address, where it cannot be reached any more. */
static bool has_moved_house(const rl_server *was, const rl_server *is,
                            const rl_claimant *n)
{
    return was != is && was->suspect && *n->id && strcmp(was->id, n->id) == 0 &&
           n->epoch >= was->epoch;
}

static void assign(rl_cluster *c, const rl_claims *said,
                   rl_server *const *named, rl_change *ch)
    RL_REQUIRES(&c->mutex)
{
    for (unsigned i = 0; i < RL_KEYSLOTS; i++) {
        unsigned now = c->owner[i], claimed = said->owner[i];
        rl_server *s = claimed ? named[claimed - 1] : NULL;
        ch->owner[i] = (uint16_t)now;
        if (s &&
            (now == 0 ||
             said->node[claimed - 1].epoch > c->server[now - 1]->epoch ||
             has_moved_house(c->server[now - 1], s, &said->node[claimed - 1])))
            ch->owner[i] = (uint16_t)s->number;
    }
}

/* The epochs count from the next map on: one may have grown by other slots. */
static void note_epochs(const rl_claims *said, rl_server *const *named)
{
    for (size_t i = 0; i < said->count; i++) {
        rl_server *s = named[i];
        if (!s)
            continue;
        strcpy(s->id, said->node[i].id);
        s->epoch = rl_max(s->epoch, said->node[i].epoch);
        s->suspect = said->node[i].failed;
    }
}

/* Has one that had nothing got all that this one had? */
static void tell_failover(rl_cluster *c, const rl_server *old, rl_change *ch)
    RL_REQUIRES(&c->mutex)
{
    const rl_server *heir = NULL;
    int first = -1, last = -1;
    for (int i = 0; i < RL_KEYSLOTS; i++) {
        if (c->owner[i] != old->number)
            continue;
        const rl_server *s = c->server[ch->owner[i] - 1];
        if ((heir && s != heir) || s->slots > 0)
            return;
        heir = s;
        first = first < 0 ? i : first;
        last = i;
    }
    if (!heir)
        return;
    size_t used = strlen(ch->failover);
    snprintf(ch->failover + used, sizeof ch->failover - used,
             "%sslots %d-%d: %.100s:%d instead of %.100s:%d", used ? "; " : "",
             first, last, heir->place.host, heir->place.port, old->place.host,
             old->place.port);
    ch->failovers++;
}

static void find_leaving(rl_cluster *c, rl_change *ch) RL_REQUIRES(&c->mutex)
{
    size_t has[RL_CLAIMANTS] = {0};
    for (unsigned i = 0; i < RL_KEYSLOTS; i++)
        if (ch->owner[i])
            has[ch->owner[i] - 1]++;
    for (unsigned i = 0; i < c->count; i++) {
        rl_server *s = c->server[i];
        if (s->slots == 0 || has[i] > 0)
            continue;
        tell_failover(c, s, ch);
        ch->leaves[ch->left++] = s;
        s->retired = true;
        s->place.nth++;
    }
    for (unsigned i = 0; i < c->count; i++) {
        c->server[i]->slots = has[i];
        c->server[i]->retired = c->server[i]->retired && has[i] == 0;
    }
}

bool rl_territory_judge(rl_cluster *c, const rl_claims *said, rl_change *ch)
{
    rl_server *named[RL_CLAIMANTS] = {NULL};
    ch->left = ch->failovers = 0;
    ch->failover[0] = '\0';
    name_servers(c, said, named);
    assign(c, said, named, ch);
    note_epochs(said, named);
    bool changed = is_changed(c, ch);
    find_leaving(c, ch);
    return changed || ch->left > 0;
}

void rl_territory_publish(rl_cluster *c, const rl_change *ch)
{
    uint64_t in_office = 0;
    for (unsigned i = 0; i < RL_KEYSLOTS; i++)
        if (c->owner[i] != ch->owner[i])
            atomic_store(&c->owner[i], ch->owner[i]);
    for (unsigned i = 0; i < c->count; i++)
        in_office += c->server[i]->slots > 0;
    atomic_store(c->o.nodes, in_office);
}

/* --- redirects ------------------------------------------------------------ */

static rl_cluster *cluster_of(rl_redirects *r)
{
    return RL_CONTAINER(r, rl_cluster, redirects);
}

/* Without a host it is where the slot's server is, but at another port. */
static rl_server *named_by(rl_cluster *c, unsigned slot, const char *host,
                           int port) RL_REQUIRES(&c->mutex)
{
    unsigned now = slot < RL_KEYSLOTS ? c->owner[slot] : 0;
    if (!*host && now)
        host = c->server[now - 1]->place.host;
    return *host && slot < RL_KEYSLOTS ? find_or_make(c, host, port) : NULL;
}

/* It may be long out of date: one that was left is not gone back to for it. */
static void moved(rl_redirects *r, unsigned slot, const char *host, int port)
{
    rl_cluster *c = cluster_of(r);
    atomic_fetch_add(c->o.redirects, 1);
    rl_mutex_lock(&c->mutex);
    const rl_server *s = named_by(c, slot, host, port);
    if (s && !s->retired)
        atomic_store(&c->owner[slot], (uint16_t)s->number);
    rl_mutex_unlock(&c->mutex);
    rl_cluster_suspect(c, NULL);
}

static unsigned ask(rl_redirects *r, unsigned slot, const char *host, int port)
{
    rl_cluster *c = cluster_of(r);
    atomic_fetch_add(c->o.redirects, 1);
    rl_mutex_lock(&c->mutex);
    rl_server *s = named_by(c, slot, host, port);
    unsigned number = s ? s->number : 0;
    if (s) /* it is about to get this slot */
        s->retired = false;
    rl_mutex_unlock(&c->mutex);
    return number;
}

static void trouble(rl_redirects *r)
{
    rl_cluster_suspect(cluster_of(r), NULL);
}

void rl_territory_init(rl_cluster *c)
{
    c->redirects =
        (rl_redirects){.moved = moved, .ask = ask, .trouble = trouble};
}

/* --- what is where -------------------------------------------------------- */

rl_redirects *rl_cluster_redirects(rl_cluster *c)
{
    return &c->redirects;
}

void *rl_cluster_server(rl_cluster *c, unsigned number)
{
    const rl_server *s = atomic_load(&c->server[number - 1]);
    return s->made;
}

void *rl_cluster_route(rl_cluster *c, unsigned slot)
{
    unsigned number = atomic_load(&c->owner[slot]);
    return number ? rl_cluster_server(c, number) : NULL;
}

unsigned rl_cluster_count(rl_cluster *c)
{
    unsigned count = 0;
    while (count < RL_CLAIMANTS && atomic_load(&c->server[count]))
        count++;
    return count;
}
