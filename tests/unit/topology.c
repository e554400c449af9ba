/* What a client does when a cluster, or Sentinels, tell that a server is there, has
   taken over, or is gone: as they are told to call it. */
#include "client/topology.h"

#include <errno.h>

#include "clustered.h"
#include "handles.h"
#include "room.h"
#include "shim.h"

typedef struct scene {
    rlock_client *cl;
    rl_engine *e;
    stub b;
    stub_events told;
} scene;

static void open_at(scene *s, const char *uri, bool hears_events)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    memset(s, 0, sizeof *s);
    o.uri = uri;
    o.connect_timeout_ms = 700;
    s->cl = stub_client(hears_events ? &s->told : NULL, o);
    s->e = &s->cl->engine;
    if (s->e->cluster)
        clustered_open(&s->b, s->cl);
    else
        stub_open(&s->b, s->cl);
}

static void close_scene(scene *s)
{
    stub_close(&s->b);
}

static rl_node *master(const scene *s, unsigned number)
{
    return rl_cluster_server(s->e->cluster, number);
}

static const rl_cluster_options *cluster_of(const scene *s)
{
    return &s->e->cluster->o;
}

/* They are the first of it. */
static const rl_sentinels_options *sentinels_of(const scene *s)
{
    const rl_sentinels_options *o = (const void *)s->e->sentinels;
    EXPECT(o->arg == s->e);
    return o;
}

#define SENTINELS "redis-sentinel://127.0.0.1:1/main"

/* --- how it is asked ------------------------------------------------------ */

TEST(topology, of_a_cluster_is_asked_as_the_client_says)
{
    scene s;
    open_at(&s, CLUSTERED, false);
    const rl_cluster_options *o = cluster_of(&s);
    EXPECT(o->arg == s.e && o->credentials == &s.e->credentials && !o->tls);
    EXPECT_INT(o->connect_timeout_ms, STUB_WAY_MS);
    EXPECT_INT(o->dismiss_us, 1000000 + STUB_WAY_MS * 1000);
    EXPECT(o->signal == &s.e->loop.signal);
    EXPECT(o->refreshes == &s.e->core.stats.refreshes);
    EXPECT(o->redirects == &s.e->core.stats.redirects);
    EXPECT(o->nodes == &s.e->core.stats.nodes);
    EXPECT(s.e->topology.most == 1 && !s.e->sentinels);
    close_scene(&s);
}

TEST(topology, of_sentinels_is_asked_as_the_client_says)
{
    scene s;
    open_at(&s, SENTINELS, false);
    const rl_sentinels_options *o = sentinels_of(&s);
    EXPECT(o->credentials == &s.e->credentials && !o->tls);
    EXPECT(o->connect_timeout_ms == STUB_WAY_MS && !o->user && !o->password);
    EXPECT(o->signal == &s.e->loop.signal);
    EXPECT(o->refreshes == &s.e->core.stats.refreshes);
    EXPECT(s.e->topology.most == RL_SENTINELS_POLLED && !s.e->cluster);
    const rl_dialer *d = &s.e->node.pool->dialer;
    EXPECT(d->locate == rl_sentinels_locate && d->locate_arg == s.e->sentinels);
    EXPECT(d->role && s.e->core.patient);
    EXPECT(!s.e->core.redirects && !s.e->core.hears);
    EXPECT(strncmp(s.e->core.bell, "rlock_bell:", 11) == 0);
    close_scene(&s);
}

TEST(topology, of_a_cluster_changes_what_the_client_relies_on)
{
    scene s;
    open_at(&s, CLUSTERED, false);
    rl_core *c = &s.e->core;
    EXPECT(strncmp(c->bell, "rlock_sbell:", 12) == 0);
    EXPECT_INT(strlen(c->bell), 12 + 36);
    EXPECT(c->patient && c->redirects == &s.e->cluster->redirects);
    EXPECT(s.e->node.pool->dialer.locate == rl_cluster_locate);
    EXPECT(s.e->node.pool->dialer.locate_arg == s.e->cluster);
    close_scene(&s);
}

TEST(topology, of_a_server_by_itself_is_none)
{
    scene s;
    open_at(&s, NULL, false);
    EXPECT(rl_topology_start(s.e));
    EXPECT(!s.e->topology.turn && !s.e->cluster && !s.e->sentinels);
    rl_topology_stop(s.e);
    EXPECT(atomic_load(&s.e->topology_ends));
    close_scene(&s);
}

/* --- servers of a cluster ------------------------------------------------- */

TEST(topology, a_server_that_comes_to_be_known_is_a_node)
{
    scene s;
    open_at(&s, CLUSTERED, false);
    const rl_node *n = master(&s, 2);
    const rl_dialer *d = &n->pool->dialer;
    EXPECT_STR(n->name, SECOND_MASTER);
    EXPECT(n->e == s.e && n->queue == &n->own_queue);
    EXPECT_INT(d->connect_timeout_ms, 700);
    EXPECT(d->credentials == &s.e->credentials && !d->tls);
    EXPECT(d->locate == rl_server_locate);
    EXPECT(d->locate_arg == s.e->cluster->server[1]);
    EXPECT(!atomic_load(&n->started));
    close_scene(&s);
}

/* The last one is the test's own: no cluster frees it. */
TEST(topology, a_server_is_no_node_without_memory)
{
    scene s;
    rl_node *n = NULL;
    int nth = 1;
    open_at(&s, CLUSTERED, false);
    for (bool failed = true; failed; nth++) {
        shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
        n = cluster_of(&s)->add(s.e, s.e->cluster->server[0], "another");
        failed = shim_failed(shim_here(), SHIM_ALLOC) > 0;
        shim_clear(shim_here());
        EXPECT_INT(n == NULL, failed);
    }
    EXPECT(nth > 4);
    close_scene(&s);
    rl_node_fini(n, false);
    free(n);
}

/* What has a hold may move there. */
TEST(topology, a_server_that_comes_to_be_known_is_started_where_there_are_holds)
{
    scene s;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = CLUSTERED;
    s.cl = stub_client(NULL, o);
    s.e = &s.cl->engine;
    atomic_store(&s.e->started, true);
    stub_open(&s.b, s.cl);
    clustered_tell(s.e, 1, 8191);
    EXPECT(atomic_load(&master(&s, 1)->started));
    EXPECT(atomic_load(&master(&s, 2)->started));
    close_scene(&s);
}

TEST(topology, a_server_that_is_left_is_connected_to_no_more)
{
    scene s;
    open_at(&s, CLUSTERED, false);
    cluster_of(&s)->leave(s.e, master(&s, 2), 5);
    EXPECT(master(&s, 2)->pool->nth == 5 && master(&s, 1)->pool->nth != 5);
    close_scene(&s);
}

TEST(topology, a_server_goes_unless_something_is_held_there)
{
    scene s;
    open_at(&s, CLUSTERED, false);
    rl_node *n = master(&s, 1);
    n->queue->held = 1;
    EXPECT(!cluster_of(&s)->dismiss(s.e, n));
    EXPECT(!atomic_load(&n->keeper.dismissed));
    n->queue->held = 0;
    EXPECT(cluster_of(&s)->dismiss(s.e, n));
    EXPECT(atomic_load(&n->keeper.dismissed));
    close_scene(&s);
}

/* --- whose a slot is ------------------------------------------------------ */

TEST(topology, a_hold_is_due_where_its_slot_is_or_where_it_was_sent)
{
    scene s;
    open_at(&s, CLUSTERED, false);
    rl_holds *t = &s.e->core.holds;
    rl_hold h = {.slot = 16383};
    EXPECT(t->queue_of(t, &h) == master(&s, 2)->queue);
    h.slot = 0;
    EXPECT(t->queue_of(t, &h) == master(&s, 1)->queue);
    h.detour = 2;
    EXPECT(t->queue_of(t, &h) == master(&s, 2)->queue);
    close_scene(&s);
}

/* --- another master ------------------------------------------------------- */

static bool is_hurried(rl_node *n)
{
    bool keeper = atomic_exchange(&n->keeper.hurry, false);
    bool bell = atomic_exchange(&n->doorbell.hurry, false);
    EXPECT_INT(keeper, bell);
    return keeper;
}

static uint64_t failovers(const scene *s)
{
    rlock_stats st;
    EXPECT_STATUS(rlock_client_stats(s->cl, &st, sizeof st), RLOCK_OK);
    return st.failovers;
}

static void expect_hurried(const scene *s, bool hurried)
{
    EXPECT_INT(is_hurried(&s->e->node), hurried);
    for (unsigned i = 1; s->e->cluster && i <= 2; i++)
        EXPECT_INT(is_hurried(master(s, i)), hurried);
}

TEST(topology, a_map_with_failovers_hurries_all_and_is_told)
{
    scene s;
    open_at(&s, CLUSTERED, true);
    expect_hurried(&s, false); /* the control */
    cluster_of(&s)->told(s.e, 2, "b instead of a");
    expect_hurried(&s, true);
    EXPECT_INT(failovers(&s), 2);
    EXPECT_STR(s.e->notifier.notes->failover, "b instead of a");
    EXPECT(s.e->core.holds.failed_over);
    cluster_of(&s)->told(s.e, 1, "c instead of b");
    EXPECT_INT(failovers(&s), 3);
    close_scene(&s);
}

TEST(topology, a_map_without_failovers_hurries_nobody)
{
    scene s;
    open_at(&s, CLUSTERED, true);
    cluster_of(&s)->told(s.e, 0, "");
    expect_hurried(&s, false);
    EXPECT_INT(failovers(&s), 0);
    EXPECT(!s.e->core.holds.failed_over);
    close_scene(&s);
}

/* They may have become known just before there were holds. */
static void expect_started(bool started)
{
    scene s;
    open_at(&s, CLUSTERED, false);
    s.b.away = true; /* whoever connects now is another thread */
    atomic_store(&s.e->started, started);
    cluster_of(&s)->told(s.e, 0, "");
    for (unsigned i = 1; i <= 2; i++)
        EXPECT_INT(atomic_load(&master(&s, i)->started), started);
    close_scene(&s);
}

TEST_CASE(topology, a_map_starts_servers_where_there_are_holds,
          expect_started(true))
TEST_CASE(topology, a_map_starts_no_servers_where_there_are_none,
          expect_started(false))

/* Who waits may have to ask the new one. */
static void expect_looks(const char *uri, unsigned failovers, bool looks)
{
    scene s;
    guest g;
    rl_place was = {.nth = 1, .host = "a"}, is = {.nth = 2, .host = "b"};
    open_at(&s, uri, false);
    enter(&s.e->core.rooms, &g, &job);
    if (s.e->cluster)
        cluster_of(&s)->told(s.e, failovers, "b instead of a");
    else
        sentinels_of(&s)->failed_over(s.e, &was, &is);
    EXPECT_INT(g.woken, looks);
    EXPECT(!looks || g.why == RL_WAKE_LOOK);
    leave(&s.e->core.rooms, &g, false);
    close_scene(&s);
}

TEST_CASE(topology, a_map_with_failovers_has_waiters_look,
          expect_looks(CLUSTERED, 1, true))
TEST_CASE(topology, a_map_without_failovers_lets_waiters_sleep,
          expect_looks(CLUSTERED, 0, false))
TEST_CASE(topology, another_master_has_waiters_look,
          expect_looks(SENTINELS, 1, true))

static rl_place place(uint64_t nth, const char *host, int port)
{
    rl_place p = {.nth = nth, .port = port};
    snprintf(p.host, sizeof p.host, "%s", host);
    return p;
}

TEST(topology, another_master_hurries_the_client_and_is_told)
{
    scene s;
    rl_place was = place(1, "a\n", 1), is = place(2, "b", 22);
    open_at(&s, SENTINELS, true);
    expect_hurried(&s, false); /* the control */
    sentinels_of(&s)->failed_over(s.e, &was, &is);
    expect_hurried(&s, true);
    EXPECT_INT(failovers(&s), 1);
    EXPECT_STR(s.e->notifier.notes->failover, "b:22 instead of a\\x0a:1");
    EXPECT(s.e->core.holds.failed_over);
    close_scene(&s);
}

TEST(topology, a_master_before_is_left_and_named_no_more)
{
    scene s;
    open_at(&s, SENTINELS, false);
    sentinels_of(&s)->leave(s.e, 4, "redis://there:1");
    EXPECT_STR(atomic_load(&s.e->core.node), "redis://there:1");
    EXPECT_INT(s.e->node.pool->nth, 4);
    sentinels_of(&s)->leave(s.e, 5, NULL);
    EXPECT_STR(atomic_load(&s.e->core.node), "redis://there:1");
    EXPECT_INT(s.e->node.pool->nth, 5);
    close_scene(&s);
}

TEST(topology, that_sentinels_contradict_each_other_is_warned_of)
{
    scene s;
    open_at(&s, SENTINELS, true);
    sentinels_of(&s)->warn(s.e, "they differ");
    EXPECT_STR(s.e->notifier.notes->warning, "they differ");
    EXPECT(s.e->notifier.warned && failovers(&s) == 0);
    close_scene(&s);
}
