/* Which visit of a trunk somebody waits for. The connector has no thread. */
#include <errno.h>

#include "engine.h"

typedef struct station {
    rl_pool pool; /* from which no connection comes */
    rl_node node;
    rl_signal signal;
    rl_engine e;
    rl_trunks trunks;
} station;

static void open_station(station *s)
{
    memset(s, 0, sizeof *s);
    s->node.pool = &s->pool;
    s->node.e = &s->e;
    EXPECT(rl_signal_init(&s->signal));
    rl_connector_init(&s->node.connector);
    s->node.connector.open = s->node.connector.runs = true;
    rl_trunks_init(&s->trunks, &s->signal, NULL);
}

static void close_station(station *s)
{
    rl_trunks_close(&s->trunks);
    rl_connector_fini(&s->node.connector);
    rl_signal_fini(&s->signal);
}

static rl_trunk *latest(station *s)
{
    return RL_CONTAINER(s->trunks.all.head.prev, rl_trunk, link);
}

/* What the connector would do. */
static void fail_visit(station *s)
{
    rl_visitor *v = &latest(s)->visitor;
    rl_list_remove(&v->link);
    rl_fault_set(&v->fault, RLOCK_EIO, ETIMEDOUT, "cannot connect");
    v->waiting = false;
    rl_trunks_look(&s->trunks);
}

/* True: there is none, and *f says why; false: it is still to come. */
static bool has_failed(station *s, unsigned *visits, rl_fault *f)
{
    EXPECT(!rl_trunks_join(&s->trunks, &s->node, visits, f));
    return *visits == UINT_MAX;
}

TEST(trunk, who_waits_is_told_why_there_is_no_connection)
{
    station s;
    rl_fault f = {0};
    unsigned visits = RL_NO_VISIT;
    open_station(&s);
    EXPECT(!has_failed(&s, &visits, &f));
    EXPECT(!has_failed(&s, &visits, &f));
    fail_visit(&s);
    EXPECT(has_failed(&s, &visits, &f));
    EXPECT_INT(f.status, RLOCK_EIO);
    close_station(&s);
}

/* Its connection came, and was spent before anybody asked on it. */
TEST(trunk, who_waited_for_one_that_is_old_waits_for_its_successor)
{
    station s;
    rl_fault f = {0};
    unsigned first = RL_NO_VISIT, visits = RL_NO_VISIT;
    open_station(&s);
    EXPECT(!has_failed(&s, &first, &f));
    fail_visit(&s);
    EXPECT(!has_failed(&s, &visits, &f));
    latest(&s)->old = true;
    EXPECT(!has_failed(&s, &visits, &f));
    fail_visit(&s);
    EXPECT(has_failed(&s, &visits, &f));
    EXPECT_INT(f.status, RLOCK_EIO);
    close_station(&s);
}
