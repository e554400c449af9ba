/* A client that has not met its server, a server that is a table, and a connection
   there that may be checked. */
#ifndef UNIT_CHECKED_H
#define UNIT_CHECKED_H

#include "client/check.h"
#include "stub.h"

typedef struct checked {
    rlock_client *cl;
    rl_engine *e;
    rl_node *node, other; /* of a cluster: not the way into it */
    stub b;
    rl_conn *c;
    rl_fault f;
    stub_events told;
} checked;

static inline void checked_open_with(checked *s, const rlock_options *o)
{
    memset(s, 0, sizeof *s);
    s->cl = stub_client(&s->told, *o);
    s->e = &s->cl->engine;
    s->other.e = s->e;
    s->node = s->e->cluster ? &s->other : &s->e->node;
    stub_open(&s->b, s->cl);
    s->c = stub_connect(&s->b);
    EXPECT(atomic_load(&s->e->unchecked));
}

static inline void checked_open(checked *s)
{
    checked_open_with(s, &(rlock_options)RLOCK_OPTIONS_INIT);
}

static inline void checked_in_cluster(checked *s)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = "redis-cluster://127.0.0.1:1";
    o.redisson_channel = true;
    checked_open_with(s, &o);
}

static inline void checked_close(checked *s)
{
    rl_fault end = {.status = RLOCK_EIO};
    rl_conn_break(s->c, &end);
    rl_conn_free(s->c);
    stub_close(&s->b);
}

static inline int64_t in_ms(int64_t ms)
{
    return rl_after_ms(rl_now_us(), ms);
}

static inline bool checked_passes(checked *s)
{
    return rl_check_connection(s->node, s->c, in_ms(SOON), &s->f);
}

#endif
