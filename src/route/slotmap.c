/*
 * Of two nodes that are named for a slot the one with the higher epoch has it:
 * that is how the servers themselves decide. So a server that was cut off, and
 * still names one that has been replaced, changes nothing. A slot that nobody
 * is named for stays where it was.
 *
 * Lower epochs count in three cases: a node says by itself that somebody else
 * has what it had; it is elsewhere now, and its old address is in trouble; or
 * it is gone (route/era.h).
 */
#include "route/slotmap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* --- servers -------------------------------------------------------------- */

static bool is_at(const rl_server *s, const char *host, int port)
{
    return s->place.port == port && strcmp(s->place.host, host) == 0;
}

rl_server *rl_slotmap_find(rl_cluster *c, const char *host, int port)
{
    rl_server *best = NULL;
    for (unsigned i = 0; i < c->count; i++) {
        rl_server *s = c->server[i];
        if (is_at(s, host, port) &&
            (!best || s->slots > 0 || (best->retired && !s->retired)))
            best = s;
    }
    return best;
}

rl_server *rl_slotmap_made(rl_cluster *c, const void *made)
{
    for (unsigned i = 0; i < c->count; i++)
        if (c->server[i]->made == made)
            return c->server[i];
    return NULL;
}

static rl_server *make(rl_cluster *c, const char *host, int port)
    RL_REQUIRES(&c->mutex)
{
    char shown[100];
    size_t size = sizeof shown + sizeof "rediss://[]:65535";
    if (c->closed || c->count == RL_SERVERS || strlen(host) >= RL_PLACE_HOST)
        return NULL;
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
    if (!s->made) {
        free(s);
        return NULL;
    }
    atomic_store(&c->server[c->count++], s);
    return s;
}

/* Who is named only by its address. NULL: there is no room for it. */
static rl_server *find_or_make(rl_cluster *c, const char *host, int port)
    RL_REQUIRES(&c->mutex)
{
    rl_server *s = rl_slotmap_find(c, host, port);
    return s ? s : make(c, host, port);
}

/* --- nodes ---------------------------------------------------------------- */

static const char *host_of(const rl_slotmap_reply *said, const rl_slot_owner *n)
{
    return *n->host ? n->host : said->from.host;
}

static bool is_node(const rl_server *s, const rl_slot_owner *n)
{
    return strcmp(s->id, n->id) == 0;
}

/* The node itself, there. */
static bool is_server(const rl_server *s, const rl_slotmap_reply *said,
                      const rl_slot_owner *n)
{
    return is_node(s, n) && is_at(s, host_of(said, n), n->port);
}

/* One at its address that is nobody so far, or whose node has left for good. */
static rl_server *find_room(rl_cluster *c, const char *host, int port)
    RL_REQUIRES(&c->mutex)
{
    for (unsigned i = 0; i < c->count; i++) {
        rl_server *s = c->server[i];
        if (is_at(s, host, port) && (!*s->id || s->retired))
            return s;
    }
    return NULL;
}

/* Where the node is from now on. NULL: there is no room for it. */
static rl_server *settle(rl_cluster *c, const rl_slotmap_reply *said,
                         const rl_slot_owner *n) RL_REQUIRES(&c->mutex)
{
    const char *host = host_of(said, n);
    for (unsigned i = 0; i < c->count; i++)
        if (is_server(c->server[i], said, n))
            return c->server[i];
    rl_server *s = find_room(c, host, n->port);
    if (!s)
        s = make(c, host, n->port);
    if (!s)
        return NULL;
    strcpy(s->id, n->id);
    s->epoch = 0;
    s->absent = 0;
    s->suspect = false;
    return s;
}

/* --- a map ---------------------------------------------------------------- */

static rl_server *in_office(rl_cluster *c, unsigned slot) RL_REQUIRES(&c->mutex)
{
    return c->office[slot] ? c->server[c->office[slot] - 1] : NULL;
}

/* Does the map say more of the slot than the ones before? */
static bool is_believed(const rl_server *was, const rl_slotmap_reply *said,
                        const rl_slot_owner *n)
{
    if (!was || n->epoch > was->epoch || was->absent >= RL_ERA_ASKINGS)
        return true;
    return (said->self && is_node(was, &said->node[said->self - 1])) ||
           (is_node(was, n) && was->suspect);
}

static void assign(rl_cluster *c, const rl_slotmap_reply *said, rl_change *ch)
    RL_REQUIRES(&c->mutex)
{
    rl_server *named[RL_SLOT_OWNERS] = {NULL};
    for (unsigned i = 0; i < RL_HASH_SLOTS; i++) {
        const rl_server *was = in_office(c, i);
        unsigned by = said->owner[i];
        ch->office[i] = c->office[i];
        if (!by && was && was->absent >= RL_ERA_ASKINGS)
            ch->office[i] = 0;
        if (!by || !is_believed(was, said, &said->node[by - 1]))
            continue;
        if (!named[by - 1])
            named[by - 1] = settle(c, said, &said->node[by - 1]);
        if (named[by - 1])
            ch->office[i] = (uint16_t)named[by - 1]->number;
        else
            ch->lacking = c->count < RL_SERVERS;
    }
}

/* The epochs count from the next map on: one may have grown by other slots. */
static void note_epochs(rl_cluster *c, const rl_slotmap_reply *said)
    RL_REQUIRES(&c->mutex)
{
    for (unsigned i = 0; i < c->count; i++) {
        rl_server *s = c->server[i];
        const rl_slot_owner *n = rl_slotmap_reply_find(said, s->id);
        if (!n || !n->master)
            continue;
        s->epoch = rl_max(s->epoch, n->epoch);
        if (is_at(s, host_of(said, n), n->port))
            s->suspect = n->failed;
    }
}

static void tell(const rl_server *old, const rl_server *heir, int first,
                 int last, rl_change *ch)
{
    size_t used = strlen(ch->failover);
    char *at = ch->failover + used;
    const char *then = used ? "; " : "";
    if (is_at(heir, old->place.host, old->place.port))
        snprintf(at, sizeof ch->failover - used,
                 "%sslots %d-%d: another server at %.100s:%d", then, first,
                 last, heir->place.host, heir->place.port);
    else
        snprintf(at, sizeof ch->failover - used,
                 "%sslots %d-%d: %.100s:%d instead of %.100s:%d", then, first,
                 last, heir->place.host, heir->place.port, old->place.host,
                 old->place.port);
    ch->failovers++;
}

/* Has one that had nothing got all that this one had? */
static void tell_failover(rl_cluster *c, const rl_server *old, rl_change *ch)
    RL_REQUIRES(&c->mutex)
{
    const rl_server *heir = NULL;
    int first = -1, last = -1;
    for (int i = 0; i < RL_HASH_SLOTS; i++) {
        if (c->office[i] != old->number)
            continue;
        const rl_server *s =
            ch->office[i] ? c->server[ch->office[i] - 1] : NULL;
        if (!s || (heir && s != heir) || s->slots > 0)
            return;
        heir = s;
        first = first < 0 ? i : first;
        last = i;
    }
    if (heir)
        tell(old, heir, first, last, ch);
}

static void find_leaving(rl_cluster *c, rl_change *ch) RL_REQUIRES(&c->mutex)
{
    size_t has[RL_SERVERS] = {0};
    for (unsigned i = 0; i < RL_HASH_SLOTS; i++)
        if (ch->office[i])
            has[ch->office[i] - 1]++;
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

bool rl_slotmap_judge(rl_cluster *c, const rl_slotmap_reply *said,
                      rl_change *ch)
{
    ch->left = ch->failovers = 0;
    ch->lacking = false;
    ch->failover[0] = '\0';
    assign(c, said, ch);
    note_epochs(c, said);
    find_leaving(c, ch);
    return ch->left > 0 ||
           memcmp(ch->office, c->office, sizeof ch->office) != 0;
}

/* Redirects are forgotten: who told this map knows better, or sends us on. */
void rl_slotmap_publish(rl_cluster *c, const rl_change *ch)
{
    uint64_t in_office = 0;
    memcpy(c->office, ch->office, sizeof c->office);
    for (unsigned i = 0; i < RL_HASH_SLOTS; i++)
        if (c->owner[i] != ch->office[i])
            atomic_store(&c->owner[i], ch->office[i]);
    for (unsigned i = 0; i < c->count; i++)
        in_office += c->server[i]->slots > 0;
    atomic_store(c->o.nodes, in_office);
}

/* --- whether who is in office is still there -------------------------------
 */

/* How many are in office, and how many of them are known to who says so. */
static void compare(rl_cluster *c, const rl_slotmap_reply *said, unsigned *all,
                    unsigned *known) RL_REQUIRES(&c->mutex)
{
    *all = *known = 0;
    for (unsigned i = 0; i < c->count; i++) {
        const rl_server *s = c->server[i];
        *all += s->slots > 0;
        *known += s->slots > 0 && rl_slotmap_reply_find(said, s->id);
    }
}

bool rl_slotmap_is_ours(rl_cluster *c, const rl_slotmap_reply *said)
{
    unsigned all, known;
    compare(c, said, &all, &known);
    return all == 0 || known > 0;
}

bool rl_slotmap_is_known(rl_cluster *c, const rl_slotmap_reply *said)
{
    unsigned all, known;
    compare(c, said, &all, &known);
    return known == all;
}

void rl_slotmap_begin_count(rl_cluster *c)
{
    for (unsigned i = 0; i < c->count; i++) {
        rl_server *s = c->server[i];
        s->known = s->unknown = 0;
        s->present = false;
    }
}

void rl_slotmap_count(rl_cluster *c, const rl_slotmap_reply *said)
{
    for (unsigned i = 0; i < c->count; i++) {
        rl_server *s = c->server[i];
        const rl_slot_owner *n = rl_slotmap_reply_find(said, s->id);
        s->known += n != NULL;
        s->unknown += n == NULL;
        s->present =
            s->present || (n && said->self && n == &said->node[said->self - 1]);
    }
}

bool rl_slotmap_end_count(rl_cluster *c, bool *anybody)
{
    bool again = false;
    *anybody = false;
    for (unsigned i = 0; i < c->count; i++) {
        rl_server *s = c->server[i];
        bool found = s->present || s->known >= s->unknown;
        s->absent = found ? 0 : s->absent + 1;
        if (s->slots == 0)
            continue;
        *anybody = *anybody || found;
        again = again || s->absent > 0;
    }
    return again;
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
    unsigned now = slot < RL_HASH_SLOTS ? c->owner[slot] : 0;
    if (!*host && now)
        host = c->server[now - 1]->place.host;
    return *host && slot < RL_HASH_SLOTS ? find_or_make(c, host, port) : NULL;
}

/*
 * It may be long out of date: one that was left is not gone back to for it. But
 * who is in office should know, and is asked for its map.
 */
static void moved(rl_redirects *r, unsigned slot, const char *host, int port)
{
    rl_cluster *c = cluster_of(r);
    atomic_fetch_add(c->o.redirects, 1);
    rl_mutex_lock(&c->mutex);
    const rl_server *s = named_by(c, slot, host, port);
    if (s && !s->retired)
        atomic_store(&c->owner[slot], (uint16_t)s->number);
    else if (slot < RL_HASH_SLOTS)
        c->witness = in_office(c, slot);
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
    bool returns = s && s->retired;
    if (s) /* it is about to get this slot */
        s->retired = false;
    rl_mutex_unlock(&c->mutex);
    if (returns) /* with the next map it is started again */
        rl_cluster_suspect(c, NULL);
    return number;
}

static void trouble(rl_redirects *r)
{
    rl_cluster_suspect(cluster_of(r), NULL);
}

void rl_slotmap_init(rl_cluster *c)
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
    while (count < RL_SERVERS && atomic_load(&c->server[count]))
        count++;
    return count;
}
