/* Whether a cluster is as it was when it had just been started. */
#include "cluster_view.h"

bool cluster_all_agree_on_master(cluster *c, int i)
{
    for (int k = 0; k < CLUSTER_NODES; k++)
        if (cluster_lives(c, k) && cluster_look(c, k).at[i].master >= 0)
            return false;
    return true;
}

static bool agree(const cluster_view *a, const cluster_view *b)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (a->at[i].master != b->at[i].master || !b->at[i].linked)
            return false;
    return memcmp(a->owner, b->owner, sizeof a->owner) == 0;
}

static bool is_ok(cluster *c, int i)
{
    return strstr(server_str(cluster_server(c, i), "CLUSTER INFO"),
                  "cluster_state:ok");
}

/* WAIT is about what its own connection has written. */
static bool is_followed(cluster *c, const cluster_view *v, int master)
{
    enum { TRIES = 100000 };
    char name[40];
    int n = 0;
    do
        snprintf(name, sizeof name, "rlock:test:replicates-%d", n++);
    while (v->owner[cluster_slot(name)] != master && n < TRIES);
    const redisReply *r = cluster_cmd(c, master, "SET %s 1 PX 1000", name);
    return r->type == REDIS_REPLY_STATUS &&
           cluster_int(c, master, "WAIT 1 100") > 0;
}

bool cluster_is_well(cluster *c)
{
    cluster_view first = cluster_look(c, 0);
    for (int i = 0; i < CLUSTER_NODES; i++) {
        cluster_view v = cluster_look(c, i);
        if (!is_ok(c, i) || !agree(&first, &v))
            return false;
    }
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (first.at[i].master < 0 && !is_followed(c, &first, i))
            return false;
    return true;
}
