#include "home.h"

#include <stdlib.h>

#include "cluster.h"
#include "sentinels.h"

enum { SERVERS_MAX = 6, SENTINELS = 3, HEALTH_MS = 60000 };

struct home {
    const struct acts *acts;
    int n, n_masters;
    server *sv[SERVERS_MAX];
    int masters[MASTERS_MAX]; /* which of them */
    sentinels *s;
    cluster *c;
};

/* What is done in its own way where there are replicas. */
struct acts {
    void (*start)(home *h);
    const char *(*uri)(const home *h);
    bool (*is_well)(home *h); /* and tells the masters */
    int64_t (*term)(home *h);
    int (*heir)(home *h, int master);
    bool (*is_master)(home *h, int i);
    void (*fail_over)(home *h, int heir);
    void (*make_anew)(home *h);
};

/* One that comes back has to catch up soon, and to have what it had promised.
 */
static const char *arguments(void)
{
    return server_unlocked(
        SERVER_DURABLE " --lua-time-limit 100 --repl-diskless-sync-delay 0");
}

static int index_of(const home *h, const server *sv)
{
    int i = 0;
    while (i < h->n && h->sv[i] != sv)
        i++;
    EXPECT(i < h->n);
    return i;
}

/* --- one server ----------------------------------------------------------- */

static void start_alone(home *h)
{
    h->sv[h->n++] = server_start(arguments());
}

static const char *uri_alone(const home *h)
{
    return server_uri(h->sv[0]);
}

static bool is_well_alone(home *h)
{
    h->n_masters = 1;
    return true;
}

static int64_t term_alone(home *h)
{
    (void)h;
    return 0;
}

static const struct acts alone = {.start = start_alone,
                                  .uri = uri_alone,
                                  .is_well = is_well_alone,
                                  .term = term_alone};

/* --- Sentinels ------------------------------------------------------------ */

/* Quicker ones take a promotion that is under way for a mistake, and a new
   master for dead that has too much to do. */
static void slow_down(home *h, int i)
{
    sentinels_say(h->s, i, "SENTINEL DEBUG publish-period 1000");
    sentinels_say(h->s, i,
                  "SENTINEL SET " SENTINELS_MASTER
                  " down-after-milliseconds 600");
}

/*
 * Each starts as a master of its own, as whoever has been down comes back, and
 * is told by command whom it follows: an argument would outlive a failover.
 */
static void start_watched(home *h)
{
    for (h->n = 0; h->n < 2; h->n++)
        h->sv[h->n] = server_start_tcp(arguments());
    server_cmd(h->sv[1], "REPLICAOF 127.0.0.1 %d", server_port(h->sv[0]));
    EVENTUALLY(HEALTH_MS, replica_follows(h->sv[0]));
    h->s = sentinels_start(h->sv[0], SENTINELS);
    for (int i = 0; i < SENTINELS; i++)
        slow_down(h, i);
}

static const char *uri_watched(const home *h)
{
    return sentinels_uri(h->s);
}

static bool is_well_watched(home *h)
{
    h->n_masters = 1;
    for (int i = 0; i < h->n; i++) {
        h->masters[0] = i;
        if (sentinels_agree(h->s, h->sv[i]))
            return replica_follows(h->sv[i]);
    }
    return false;
}

static int64_t term_watched(home *h)
{
    return sentinels_epoch(h->s);
}

static int heir_watched(home *h, int master)
{
    (void)h;
    return 1 - master;
}

static bool is_master_watched(home *h, int i)
{
    return sentinels_naming(h->s, h->sv[i]) == SENTINELS;
}

static void fail_over_watched(home *h, int heir)
{
    sentinels_fail_over(h->s, h->sv[heir], HEALTH_MS);
}

/* One that still knows it would tell the others what it remembers. */
static void make_watched_anew(home *h)
{
    const server *master = h->sv[h->masters[0]];
    for (int i = 0; i < SENTINELS; i++)
        sentinels_forget(h->s, i);
    for (int i = 0; i < SENTINELS; i++) {
        sentinels_monitor(h->s, i, master);
        slow_down(h, i);
    }
}

static const struct acts watched = {
    start_watched, uri_watched,       is_well_watched,   term_watched,
    heir_watched,  is_master_watched, fail_over_watched, make_watched_anew};

/* --- a cluster ------------------------------------------------------------ */

static void start_cluster(home *h)
{
    h->c = cluster_start_with(arguments());
    for (h->n = 0; h->n < CLUSTER_NODES; h->n++)
        h->sv[h->n] = cluster_server(h->c, h->n);
}

static const char *uri_cluster(const home *h)
{
    return cluster_uri(h->c);
}

static bool is_well_cluster(home *h)
{
    int masters[CLUSTER_NODES] = {0}, n = 0;
    for (int i = 0; i < h->n; i++)
        if (cluster_all_agree_on_master(h->c, i))
            masters[n++] = i;
    h->n_masters = n < MASTERS_MAX ? n : MASTERS_MAX;
    memcpy(h->masters, masters, sizeof h->masters);
    return n == MASTERS_MAX && cluster_is_well(h->c);
}

/* A slot that moves has an epoch, too, and loses nothing. */
static int64_t term_cluster(home *h)
{
    int64_t masters = 0;
    for (int i = 0; i < h->n_masters; i++)
        masters |= 1 << h->masters[i];
    return masters;
}

static int heir_cluster(home *h, int master)
{
    return cluster_replica_of(h->c, master);
}

static bool is_master_cluster(home *h, int i)
{
    return cluster_all_agree_on_master(h->c, i);
}

static void fail_over_cluster(home *h, int heir)
{
    cluster_fail_over(h->c, heir);
}

static void make_cluster_anew(home *h)
{
    cluster_make_anew(h->c);
}

static const struct acts clustered = {
    start_cluster, uri_cluster,       is_well_cluster,   term_cluster,
    heir_cluster,  is_master_cluster, fail_over_cluster, make_cluster_anew};

/* --- whichever it is ------------------------------------------------------ */

home *home_start(home_kind kind)
{
    static const struct acts *const all[HOME_KINDS] = {
        [ALONE] = &alone, [WATCHED] = &watched, [CLUSTERED] = &clustered};
    home *h = calloc(1, sizeof *h);
    EXPECT(h);
    h->acts = all[kind];
    h->acts->start(h);
    home_await_health(h);
    return h;
}

void home_stop(home *h)
{
    if (h->s)
        sentinels_stop(h->s);
    if (h->c)
        cluster_stop(h->c);
    for (int i = 0; !h->c && i < h->n; i++)
        server_stop(h->sv[i]);
    free(h);
}

const char *home_uri(const home *h)
{
    return h->acts->uri(h);
}

void home_await_health(home *h)
{
    EVENTUALLY(HEALTH_MS, h->acts->is_well(h));
}

int home_masters(const home *h, server *masters[MASTERS_MAX])
{
    for (int i = 0; i < h->n_masters; i++)
        masters[i] = h->sv[h->masters[i]];
    return h->n_masters;
}

int64_t home_term(home *h)
{
    return h->acts->term(h);
}

server *home_heir(home *h, const server *master)
{
    int heir = -1, of = index_of(h, master);
    EVENTUALLY(HEALTH_MS, (heir = h->acts->heir(h, of)) >= 0);
    return h->sv[heir];
}

void home_await_master(home *h, server *sv)
{
    EVENTUALLY(HEALTH_MS, h->acts->is_master(h, index_of(h, sv)));
}

/* A cluster has to know whom of its nodes it cannot ask. */
static void act(home *h, server *sv, void (*on_node)(cluster *c, int i),
                void (*on_server)(server *sv))
{
    if (h->c)
        on_node(h->c, index_of(h, sv));
    else
        on_server(sv);
}

void home_kill(home *h, server *sv)
{
    act(h, sv, cluster_kill, server_kill);
}

void home_restart(home *h, server *sv)
{
    act(h, sv, cluster_restart, server_restart);
}

void home_pause(home *h, server *sv)
{
    act(h, sv, cluster_pause, server_pause);
}

void home_resume(home *h, server *sv)
{
    act(h, sv, cluster_resume, server_resume);
}

void home_fail_over(home *h, server *heir)
{
    h->acts->fail_over(h, index_of(h, heir));
    home_await_master(h, heir);
}

void home_take_over(home *h, server *heir)
{
    cluster_promote(h->c, index_of(h, heir));
}

void home_make_anew(home *h)
{
    h->acts->make_anew(h);
}

void home_move_slot(home *h, const char *key, int64_t ms, uint64_t *rng)
{
    unsigned slot = cluster_slot(key);
    int from = cluster_slot_owner(h->c, slot), to;
    do
        to = h->masters[attack_pick(rng, h->n_masters)];
    while (to == from);
    cluster_slot_begin(h->c, slot, to);
    test_pause_ms((int)ms);
    cluster_slot_move_keys(h->c, slot, to);
    test_pause_ms((int)ms);
    cluster_slot_end(h->c, slot, to);
}
