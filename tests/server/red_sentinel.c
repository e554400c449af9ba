/*
 * Red locks over three masters that the same Sentinels name, while one of the
 * masters fails over.
 */
#include "nodes.h"
#include "sentinels.h"

enum { N = 3, LEASE_MS = 3000 };

typedef struct fleet {
    nodes masters, replicas;
    sentinels *s;
} fleet;

static fleet fleet_start(int n)
{
    fleet f = {.masters.n = N, .replicas.n = N};
    for (int i = 0; i < N; i++) {
        f.masters.sv[i] = server_start_tcp(NULL);
        f.replicas.sv[i] = replica_start(f.masters.sv[i]);
    }
    f.s = sentinels_start_several(f.masters.sv, N, n);
    return f;
}

static void fleet_stop(fleet *f)
{
    sentinels_stop(f->s);
    nodes_stop(&f->replicas);
    nodes_stop(&f->masters);
}

/* Who is in office after the failover of the first. */
static nodes after_failover(const fleet *f)
{
    nodes ns = f->masters;
    ns.sv[0] = f->replicas.sv[0];
    return ns;
}

static party join(const fleet *f, int64_t lease_ms)
{
    party p = {.n = N};
    for (int i = 0; i < N; i++) {
        rlock_options opts = RLOCK_OPTIONS_INIT;
        opts.uri = sentinels_uri_of(f->s, i);
        opts.watchdog_lease_ms = lease_ms;
        p.ev[i] = events_new();
        events_hook(p.ev[i], &opts);
        p.cl[i] = server_client(f->masters.sv[i], &opts);
    }
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    return p;
}

/* The first master dies, and the party knows of the next one. */
static void fail_over_first(fleet *f, party *p)
{
    server_kill(f->masters.sv[0]);
    EVENTUALLY(SOON, stats_of(p->cl[0]).failovers == 1);
}

/* Which node did not vote, if it was too few then, and why. */
static bool is_refused_for(rlock *lk, const char *why)
{
    return rlock_trylock(lk) == RLOCK_EQUORUM &&
           strstr(rlock_last_error()->message, why);
}

TEST(red_sentinel, a_lock_over_their_masters_is_taken_kept_and_released)
{
    fleet f = fleet_start(3);
    party p = join(&f, LEASE_MS), q = join(&f, LEASE_MS);
    party_hold_renewed(&p);
    EXPECT_INT(nodes_having(&f.masters), N);
    EXPECT_STATUS(rlock_trylock(q.lk), RLOCK_BUSY);
    for (int i = 0; i < N; i++)
        watch_renewals(p.cl[i], 1);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(p.lk, 20000), RLOCK_OK);
    EXPECT(rlock_valid_ms(p.lk) > LEASE_MS);
    unlock_times(p.lk, 2, RLOCK_OK);
    nodes_expect_all_undone(&f.masters);
    EXPECT_STATUS(rlock_acquire(q.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(q.lk), RLOCK_OK);
    party_leave(&q);
    party_leave(&p);
    fleet_stop(&f);
}

/* Which is slow on a busy machine, and has to be over within a lease. */
TEST(red_sentinel, fault_129_a_red_lock_is_held_over_the_failover_of_a_node)
{
    fleet f = fleet_start(3);
    nodes now = after_failover(&f);
    party p = join(&f, 3 * LEASE_MS), q = join(&f, 3 * LEASE_MS);
    party_connect(&q);
    party_hold_renewed(&p);
    EXPECT_STATUS(rlock_trylock(q.lk), RLOCK_BUSY); /* the control */
    EVENTUALLY(SOON, replica_follows(f.masters.sv[0]));
    fail_over_first(&f, &p);
    events_wait(p.ev[0], RLOCK_EVENT_FAILOVER, 1, SOON);
    expect_one_owner(&p, &q);
    for (int i = 0; i < N; i++)
        watch_renewals(p.cl[i], 1); /* also where the replica is master now */
    EXPECT_INT(nodes_having(&now), N);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_LOST), 0);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_expect_all_undone(&now);
    party_leave(&q);
    party_leave(&p);
    fleet_stop(&f);
}

TEST(red_sentinel, fault_129_two_other_masters_suffice_for_a_new_red_lock)
{
    fleet f = fleet_start(1);
    nodes now = after_failover(&f);
    party p = join(&f, LEASE_MS), q = join(&f, LEASE_MS);
    expect_undisturbed_party(&p);
    party_connect(&q);
    server_kill(f.masters.sv[0]);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(q.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(q.cl[0]).failovers == 1);
    EXPECT_STATUS(rlock_acquire(q.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(nodes_having(&now) >= 2); /* the third one, after a lease */
    EXPECT_STATUS(rlock_unlock(q.lk), RLOCK_OK);
    nodes_expect_all_undone(&now);
    party_leave(&q);
    party_leave(&p);
    fleet_stop(&f);
}

/* The second node is somebody else's, so all depends on the first. */
TEST(red_sentinel, fault_042_a_promoted_replica_does_not_vote_for_a_lease)
{
    fleet f = fleet_start(3);
    nodes now = after_failover(&f);
    party p = join(&f, 0); /* the watchdog's 30 s */
    party_connect(&p);
    nodes_take(&f.masters, 1, 2);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 1000), RLOCK_OK); /* control */
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    fail_over_first(&f, &p);
    EVENTUALLY(SOON, is_refused_for(p.lk, "1 restarted"));
    const char *in = strstr(rlock_last_error()->message, "again in ");
    EXPECT(in);
    EXPECT_BETWEEN(atoll(in + 9), 5000, 30000);
    EVENTUALLY(SOON, nodes_having(&now) == 1);
    nodes_give_back(&now, 1, 2);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(!node_has(now.sv[0]));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_leave(&p);
    fleet_stop(&f);
}

/* It may have been a replica for long, and tells for how long it runs. */
TEST(red_sentinel, fault_042_a_promoted_replica_counts_a_lease_after_that)
{
    enum { LONGEST_MS = 4000 };
    fleet f = fleet_start(3);
    rlock_red_options red = RLOCK_RED_OPTIONS_INIT;
    red.longest_lease_ms = LONGEST_MS;
    party p = join(&f, 1000);
    rlock *lk = party_lock(&p, SCENE_LOCK, &red);
    party_connect(&p);
    nodes_take(&f.masters, 1, 2);
    EVENTUALLY(SOON, server_info(f.replicas.sv[0], "uptime_in_seconds") > 5);
    EXPECT_STATUS(rlock_acquire(lk, SOON, 1000), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    int64_t before_ms = test_now_ms();
    server_kill(f.masters.sv[0]);
    EVENTUALLY(SOON, rlock_trylock(lk) == RLOCK_OK);
    EXPECT(test_since_ms(before_ms) >= LONGEST_MS);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    party_leave(&p);
    fleet_stop(&f);
}

/*
 * The vote of the first node never reached its replica, and the third one's
 * was somebody else's.
 */
TEST(red_sentinel,
     fault_042_a_vote_that_a_replica_lacks_lets_no_second_owner_in)
{
    fleet f = fleet_start(3);
    party p = join(&f, 0), q = join(&f, 0);
    party_connect(&p);
    party_connect(&q);
    nodes_take(&f.masters, 2, 3);
    server_pause(f.replicas.sv[0]);
    server_cmd(f.masters.sv[0], "CLIENT KILL TYPE replica");
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 25000), RLOCK_OK);
    nodes_give_back(&f.masters, 2, 3);
    EXPECT_STATUS(rlock_trylock(q.lk), RLOCK_BUSY); /* the control */
    server_kill(f.masters.sv[0]);
    server_resume(f.replicas.sv[0]);
    EVENTUALLY(SOON, is_refused_for(q.lk, "1 restarted"));
    EXPECT(!node_has(f.replicas.sv[0]));
    expect_one_owner(&p, &q);
    rlock_unlock(p.lk);
    party_leave(&q);
    party_leave(&p);
    fleet_stop(&f);
}
