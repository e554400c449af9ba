/* What the nodes of a cluster say about it, and new masters. */
#include "cluster_view.h"

enum { FAILOVER_LIMIT_MS = 6000 }; /* after five seconds the servers give up */

/* --- what one of them says ------------------------------------------------ */

static int node_of(const cluster *c, const char *id)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (strcmp(c->at[i].id, id) == 0)
            return i;
    return -1;
}

/* "5" or "5-8"; what is in brackets is on its way, and not yet elsewhere. */
static void read_slots(cluster_view *v, int i, const char *word)
{
    unsigned first, last;
    int n = sscanf(word, "%u-%u", &first, &last);
    if (n == 1)
        last = first;
    for (unsigned s = first; n > 0 && s <= last && s < CLUSTER_SLOTS; s++)
        v->owner[s] = (int8_t)i;
}

/* id address flags master ping pong epoch link slots... */
static void read_line(const cluster *c, cluster_view *v, char *line)
{
    enum { ID, ADDRESS, FLAGS, MASTER, PING, PONG, EPOCH, LINK, FIXED };
    char *word[FIXED] = {NULL}, *rest = NULL;
    for (int i = 0; i < FIXED; i++)
        word[i] = strtok_r(i ? NULL : line, " ", &rest);
    int i = word[LINK] ? node_of(c, word[ID]) : -1;
    if (i < 0)
        return;
    v->at[i].master = (int8_t)node_of(c, word[MASTER]);
    v->at[i].epoch = atoll(word[EPOCH]);
    v->at[i].linked = strcmp(word[LINK], "connected") == 0;
    for (char *s; (s = strtok_r(NULL, " ", &rest)) != NULL;)
        read_slots(v, i, s);
}

cluster_view cluster_look(cluster *c, int i)
{
    cluster_view v = {0};
    char *rest = NULL;
    memset(v.owner, -1, sizeof v.owner);
    for (int k = 0; k < CLUSTER_NODES; k++)
        v.at[k].master = -1;
    char *text = strdup(server_str(c->at[i].sv, "CLUSTER NODES"));
    EXPECT(text);
    for (char *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest))
        read_line(c, &v, line);
    free(text);
    return v;
}

/* --- what holds ----------------------------------------------------------- */

/*
 * A node that claims a slot itself knows better than those who name it: these
 * keep naming one that has given the slot away, with the epoch it has now,
 * until they hear of the new owner.
 */
static int freshest(cluster *c, unsigned slot)
{
    int best = -1;
    long long best_rank = -1;
    for (int i = 0; i < CLUSTER_NODES; i++) {
        if (!cluster_lives(c, i))
            continue;
        cluster_view v = cluster_look(c, i);
        int owner = v.owner[slot];
        if (owner < 0)
            continue;
        long long rank = v.at[owner].epoch + (owner == i ? 1LL << 40 : 0);
        if (rank > best_rank) {
            best_rank = rank;
            best = owner;
        }
    }
    return best;
}

int cluster_slot_owner(cluster *c, unsigned slot)
{
    EXPECT(slot < CLUSTER_SLOTS);
    return freshest(c, slot);
}

int cluster_owner(cluster *c, const char *name)
{
    return freshest(c, cluster_slot(name));
}

int cluster_replica_of(cluster *c, int master)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (i != master && cluster_lives(c, i) &&
            cluster_look(c, i).at[i].master == master)
            return i;
    return -1;
}

/* False: it is not known yet, as nobody serves the slot. */
static bool tells_of_key(cluster *c, const char *key, bool *is_there)
{
    int i = cluster_owner(c, key);
    EXPECT(i >= 0 && cluster_lives(c, i));
    const redisReply *r = cluster_cmd(c, i, "EXISTS %s", key);
    if (r->type == REDIS_REPLY_ERROR)
        return strncmp(r->str, "ASK ", 4) == 0;
    *is_there = r->integer > 0;
    return true;
}

bool cluster_has_key(cluster *c, const char *key)
{
    bool is_there = false;
    EVENTUALLY(SOON, tells_of_key(c, key, &is_there));
    return is_there;
}

const char *cluster_name_on(cluster *c, int i, const char *prefix)
{
    enum { KEPT = 8, TRIES = 100000 };
    static _Thread_local char kept[KEPT][128];
    static _Thread_local unsigned next;
    char *name = kept[next++ % KEPT];
    int told_by = i;
    while (!cluster_lives(c, told_by))
        told_by = (told_by + 1) % CLUSTER_NODES;
    cluster_view v = cluster_look(c, told_by);
    for (int n = 0; n < TRIES; n++) {
        snprintf(name, sizeof *kept, "%s-%d", prefix, n);
        if (v.owner[cluster_slot(name)] == i)
            return name;
    }
    FAIL("node %d serves no slot of a name like \"%s\"", i, name);
}

/* --- what they agree on --------------------------------------------------- */

static bool is_master(const cluster_view *v, int i)
{
    return v->at[i].master < 0;
}

bool cluster_masters_name(cluster *c, unsigned slot, int i)
{
    for (int k = 0; k < CLUSTER_NODES; k++) {
        if (!cluster_lives(c, k))
            continue;
        cluster_view v = cluster_look(c, k);
        if (is_master(&v, k) && v.owner[slot] != i)
            return false;
    }
    return true;
}

bool cluster_all_name(cluster *c, unsigned slot, int i)
{
    for (int k = 0; k < CLUSTER_NODES; k++)
        if (cluster_lives(c, k) && cluster_look(c, k).owner[slot] != i)
            return false;
    return true;
}

void cluster_await_owner(cluster *c, const char *name, int i)
{
    EVENTUALLY(SOON, cluster_masters_name(c, cluster_slot(name), i));
}

/* --- new masters ---------------------------------------------------------- */

/* Every living node gives the replica all that its master had. */
static bool took_over(cluster *c, const cluster_view *before, int replica)
{
    int master = before->at[replica].master;
    for (int i = 0; i < CLUSTER_NODES; i++) {
        if (!cluster_lives(c, i))
            continue;
        cluster_view v = cluster_look(c, i);
        for (int s = 0; s < CLUSTER_SLOTS; s++)
            if (before->owner[s] == master && v.owner[s] != replica)
                return false;
    }
    return true;
}

static cluster_view as_replica(cluster *c, int i)
{
    cluster_view v = cluster_look(c, i);
    if (is_master(&v, i))
        FAIL("node %d is no replica", i);
    return v;
}

void cluster_promote(cluster *c, int replica)
{
    cluster_view before = as_replica(c, replica);
    cluster_order(c, replica, "CLUSTER FAILOVER TAKEOVER");
    EVENTUALLY(SOON, took_over(c, &before, replica));
}

/*
 * Whether all know that it is a replica, and whose: its master does not hear
 * one that it does not know as its own, and says nothing, and the others refuse
 * their votes. It takes a moment after a node has become a replica.
 */
static bool is_known(cluster *c, int replica)
{
    int master = cluster_look(c, replica).at[replica].master;
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (cluster_lives(c, i) &&
            cluster_look(c, i).at[replica].master != master)
            return false;
    return master >= 0;
}

/* False: it has been refused, or has given up. */
static bool has_failed_over(cluster *c, const cluster_view *before, int replica)
{
    int64_t until = test_now_ms() + FAILOVER_LIMIT_MS;
    bool done = false;
    if (cluster_cmd(c, replica, "CLUSTER FAILOVER")->type == REDIS_REPLY_ERROR)
        until = 0;
    while (!(done = took_over(c, before, replica)) && test_now_ms() < until)
        test_pause_ms(1);
    return done;
}

/* The others may refuse it their votes, as they vote only once in two node
   timeouts for replicas of the same master. */
void cluster_fail_over(cluster *c, int replica)
{
    EVENTUALLY(SOON, is_known(c, replica));
    cluster_view before = as_replica(c, replica);
    EVENTUALLY(SOON, has_failed_over(c, &before, replica));
}
