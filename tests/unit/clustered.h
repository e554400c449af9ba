/* A client of a cluster of two masters, which have half of the slots each, and are
   both a server that is a table. */
#ifndef UNIT_CLUSTERED_H
#define UNIT_CLUSTERED_H

#include "slotmap.h"
#include "stub.h"

#define CLUSTERED "redis-cluster://127.0.0.1:1"

/* The names of the two. */
#define FIRST_MASTER  "redis://127.0.0.1:1"
#define SECOND_MASTER "redis://127.0.0.1:2"

/* As if somebody had told who has which slot. */
static inline void clustered_tell(rl_engine *e, int64_t epoch, int first_ends)
{
    rl_cluster *c = e->cluster;
    rl_change *ch = calloc(1, sizeof *ch);
    rl_slotmap_reply *said = calloc(1, sizeof *said);
    EXPECT(ch && said);
    rl_slotmap_reply_init(said);
    claim_at(said, "a", "127.0.0.1", epoch, 0, first_ends);
    said->node[0].port = 1;
    claim_at(said, "b", "127.0.0.1", epoch + 1, first_ends + 1, 16383);
    said->node[1].port = 2;
    rl_mutex_lock(&c->mutex);
    rl_slotmap_judge(c, said, ch);
    rl_slotmap_publish(c, ch);
    c->known = true;
    rl_mutex_unlock(&c->mutex);
    free(said);
    free(ch);
}

/* The client is of CLUSTERED. */
static inline void clustered_open(stub *b, rlock_client *cl)
{
    stub_open(b, cl);
    clustered_tell(&cl->engine, 1, 8191);
    EXPECT_INT(rl_cluster_count(cl->engine.cluster), 2);
    for (unsigned i = 1; i <= 2; i++)
        stub_lead(b, (rl_node *)rl_cluster_server(cl->engine.cluster, i));
    stub_say(b, "CLUSTER MYID", "$1\r\na\r\n");
    atomic_store(&cl->engine.unchecked, false);
}

#endif
