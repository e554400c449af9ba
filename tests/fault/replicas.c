/*
 * Faults of replicas: rows 27 to 38 of the catalogue, as far as they concern a
 * client that is led to the master by its connect callback. Each test sees
 * first that all is well without the fault.
 */
#include <stdatomic.h>

#include "other_client.h"

/* --- a master and its replica -------------------------------------------- */

/* Where clients are led to; what Sentinel or a name server would know. */
typedef struct way {
    _Atomic(const server *) to;
    atomic_int gone; /* how often */
} way;

static redisContext *go(void *arg)
{
    way *w = arg;
    atomic_fetch_add(&w->gone, 1);
    return redisConnectUnix(server_path(atomic_load(&w->to)));
}

static void lead(scene *s, way *w)
{
    atomic_store(&w->to, s->sv);
    s->opts.connect = go;
    s->opts.connect_arg = w;
}

#define AT_ONCE "--repl-diskless-sync-delay 0"

static server *start_node(void)
{
    server *sv = server_start_tcp(AT_ONCE);
    server_load_scripts(sv);
    return sv;
}

static bool follows(server *sv)
{
    redisReply *r = server_cmd(sv, "ROLE");
    return r->elements > 3 && strcmp(r->element[0]->str, "slave") == 0 &&
           strcmp(r->element[3]->str, "connected") == 0;
}

static void follow(server *sv, const server *master)
{
    EXPECT_STR(server_str(sv, "REPLICAOF 127.0.0.1 %d", server_port(master)),
               "OK");
    EVENTUALLY(20000, follows(sv));
}

static void promote(server *sv)
{
    EXPECT_STR(server_str(sv, "REPLICAOF NO ONE"), "OK");
}

/* The master is s.sv; the client is led to it. */
typedef struct pair {
    scene s;
    way way;
    server *replica;
} pair;

static void pair_join(pair *p, server *replica, int64_t lease_ms)
{
    p->s = (scene){.sv = start_node(), .opts = RLOCK_OPTIONS_INIT};
    p->replica = replica;
    follow(replica, p->s.sv);
    lead(&p->s, &p->way);
    scene_client(&p->s, lease_ms, 0);
    expect_undisturbed(&p->s);
}

static void pair_start(pair *p, int64_t lease_ms)
{
    pair_join(p, start_node(), lease_ms);
}

static void pair_stop(pair *p)
{
    scene_stop(&p->s);
    server_stop(p->replica);
}

/* Takes the lock, and waits until the replica has it too. */
static void hold_on_both(pair *p)
{
    EXPECT_STATUS(rlock_lock(p->s.lk), RLOCK_OK);
    EVENTUALLY(5000, levels(p->replica, SCENE_LOCK) == 1);
}

/* The replica becomes the master, and the master its replica. */
static void change_roles(pair *p)
{
    promote(p->replica);
    follow(p->s.sv, p->replica);
}

/* From now on clients are led to the replica. */
static void lead_to_replica(pair *p)
{
    atomic_store(&p->way.to, p->replica);
}

/* The hold that the scene has is kept, and then let go of. */
static void expect_kept(pair *p)
{
    expect_renewals(&p->s, 1);
    EXPECT(rlock_is_held(p->s.lk));
    EXPECT_STATUS(rlock_unlock(p->s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(p->s.cl).lost, 0);
    EXPECT_INT(levels(p->replica, SCENE_LOCK), 0);
}

static void expect_gone(pair *p)
{
    events_wait(p->s.ev, RLOCK_EVENT_LOST, 1, 20000);
    EXPECT_CONTAINS(events_message(p->s.ev, RLOCK_EVENT_LOST),
                    "no longer knows");
    expect_hold_lost(&p->s);
}

/* One that knows this server only. */
static other_client rival_at(server *sv)
{
    return other_client_join(&(scene){.sv = sv}, NULL);
}

/* --- 27: a failover ------------------------------------------------------ */

TEST(replicas, fault_027_a_promoted_replica_that_has_the_lock_keeps_it)
{
    pair p = {0};
    pair_start(&p, 6000);
    hold_on_both(&p);
    promote(p.replica);
    lead_to_replica(&p);
    server_kill(p.s.sv);
    other_client b = rival_at(p.replica);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    other_client_leave(&b);
    expect_kept(&p);
    pair_stop(&p);
}

/* Two may believe in it until the first has asked; the tokens tell. */
TEST(replicas, fault_027_a_promoted_replica_that_lacks_the_lock_loses_it)
{
    pair p = {0};
    pair_start(&p, 6000);
    promote(p.replica);
    EXPECT_STATUS(rlock_lock(p.s.lk), RLOCK_OK);
    lead_to_replica(&p);
    other_client b = rival_at(p.replica);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    EXPECT(rlock_token(b.lk) > rlock_token(p.s.lk));
    server_kill(p.s.sv);
    expect_gone(&p);
    EXPECT_INT(levels(p.replica, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    other_client_leave(&b);
    pair_stop(&p);
}

/* --- 29, 30: the master is none any more --------------------------------- */

TEST(replicas, fault_029_a_hold_goes_on_at_the_new_master)
{
    pair p = {0};
    pair_start(&p, 6000);
    hold_on_both(&p);
    lead_to_replica(&p);
    change_roles(&p);
    expect_kept(&p);
    pair_stop(&p);
}

TEST(replicas, fault_029_a_demoted_master_is_asked_once_and_left)
{
    pair p = {0};
    pair_start(&p, 0);
    lead_to_replica(&p);
    change_roles(&p);
    int gone = atomic_load(&p.way.gone);
    long long asked = script_calls(p.s.sv);
    EXPECT_STATUS(rlock_trylock(p.s.lk), RLOCK_OK);
    EXPECT_INT(script_calls(p.s.sv), asked + 1);
    EXPECT_INT(atomic_load(&p.way.gone), gone + 1);
    EXPECT_INT(levels(p.replica, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(p.s.lk), RLOCK_OK);
    expect_nothing_left(p.replica); /* nothing was in doubt */
    pair_stop(&p);
}

/* Its doorbell is still at the old one. */
TEST(replicas, fault_029_a_waiter_gets_the_lock_that_the_new_master_frees)
{
    pair p = {0};
    pair_start(&p, 0);
    take_by_hand(p.s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(p.s.lk, 20000, RLOCK_WATCHDOG);
    waiters_settle(p.s.sv, 1, p.s.cl, 1);
    EVENTUALLY(5000, levels(p.replica, SCENE_LOCK) == 1);
    lead_to_replica(&p);
    change_roles(&p);
    server_cmd(p.replica, "DEL %s", SCENE_LOCK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(levels(p.replica, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    pair_stop(&p);
}

TEST(replicas, fault_030_a_replica_without_its_master_is_left)
{
    pair p = {0};
    pair_start(&p, 6000);
    hold_on_both(&p);
    rlock *other = test_lock(p.s.cl, "other");
    promote(p.replica);
    server_cmd(p.s.sv, "CONFIG SET replica-serve-stale-data no");
    EXPECT_STR(server_str(p.s.sv, "REPLICAOF 127.0.0.1 1"), "OK");
    EXPECT_STATUS(rlock_trylock(other), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "MASTERDOWN");
    lead_to_replica(&p);
    EXPECT_STATUS(rlock_acquire(other, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    expect_kept(&p);
    rlock_free(other);
    pair_stop(&p);
}

/* --- 31, 32: a master without replicas ----------------------------------- */

static bool wants_replicas(server *sv)
{
    return strncmp(server_str(sv, "SET no_key x XX"), "NOREPLICAS", 10) == 0;
}

static void lose_replica(pair *p)
{
    server_cmd(p->s.sv, "CONFIG SET min-replicas-to-write 1");
    promote(p->replica);
    EVENTUALLY(10000, wants_replicas(p->s.sv));
}

TEST(replicas, fault_031_a_master_that_wants_replicas_is_waited_for)
{
    pair p = {0};
    pair_start(&p, 6000);
    EXPECT_STATUS(rlock_lock(p.s.lk), RLOCK_OK);
    lose_replica(&p);
    rlock *other = test_lock(p.s.cl, "other");
    EXPECT_STATUS(rlock_trylock(other), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "NOREPLICAS");
    long long before = script_calls(p.s.sv);
    EXPECT_STATUS(rlock_acquire(other, 500, RLOCK_WATCHDOG), RLOCK_ESERVER);
    EXPECT_BETWEEN(script_calls(p.s.sv) - before, 2, 20); /* with pauses */
    waiter *w = waiter_start(other, 20000, RLOCK_WATCHDOG);
    follow(p.replica, p.s.sv);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_renewals(&p.s, 1);
    EXPECT_STATUS(rlock_unlock(p.s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(p.s.cl).lost, 0);
    expect_nothing_left(p.s.sv); /* nothing was in doubt */
    rlock_free(other);
    pair_stop(&p);
}

/* The replica is promoted, while the client goes on with the old master. */
TEST(replicas, fault_032_the_holder_on_the_old_side_learns_with_its_renewal)
{
    pair p = {0};
    pair_start(&p, 1500);
    hold_on_both(&p);
    promote(p.replica);
    other_client b = rival_at(p.replica);
    EXPECT_STATUS(rlock_acquire(b.lk, 20000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(rlock_is_held(p.s.lk)); /* both sides are writable */
    EXPECT(rlock_token(b.lk) > rlock_token(p.s.lk));
    lead_to_replica(&p);
    follow(p.s.sv, p.replica);
    expect_gone(&p);
    EXPECT_INT(levels(p.replica, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    other_client_leave(&b);
    pair_stop(&p);
}

TEST(replicas, fault_032_with_a_least_number_of_replicas_one_side_holds)
{
    pair p = {0};
    pair_start(&p, 1500);
    hold_on_both(&p);
    lose_replica(&p);
    other_client b = rival_at(p.replica);
    EXPECT_STATUS(rlock_acquire(b.lk, 20000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(!rlock_is_held(p.s.lk));
    expect_hold_lost(&p.s);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    other_client_leave(&b);
    pair_stop(&p);
}

/* --- 37: the promoted replica's clock ------------------------------------ */

#define HOUR_S 3600

/* The client holds the lock at a promoted replica with this clock. */
static void pair_shifted(pair *p, long long ahead_s)
{
    server *replica = server_start_clocked(AT_ONCE);
    server_load_scripts(replica);
    server_set_clock(replica, ahead_s);
    pair_join(p, replica, 6000);
    EXPECT_STATUS(rlock_lock(p->s.lk), RLOCK_OK);
    EVENTUALLY(5000, server_int(replica, "DBSIZE") == 2); /* with its token */
    promote(replica);
    lead_to_replica(p);
    server_kill(p->s.sv);
}

/* Redis before 7 tells its replicas how long, and not until when. */
static void need_deadlines(pair *p)
{
    long long ms = server_int(p->replica, "PTTL %s", SCENE_LOCK);
    if (ms <= 0 || ms > 6000)
        return;
    expect_kept(p);
    pair_stop(p);
    SKIP("to this server's replicas their clocks do not matter");
}

TEST(replicas, fault_037_at_a_promoted_replica_in_the_future_the_hold_is_lost)
{
    pair p = {0};
    pair_shifted(&p, 0); /* the control */
    expect_kept(&p);
    pair_stop(&p);
    p = (pair){0};
    pair_shifted(&p, HOUR_S);
    need_deadlines(&p);
    expect_gone(&p);
    pair_stop(&p);
}

TEST(replicas, fault_037_at_a_promoted_replica_in_the_past_the_hold_goes_on)
{
    pair p = {0};
    pair_shifted(&p, -HOUR_S);
    need_deadlines(&p);
    uint64_t token = rlock_token(p.s.lk);
    EXPECT(server_int(p.replica, "PTTL %s", SCENE_LOCK) > HOUR_S * 1000);
    expect_kept(&p);
    EXPECT_STATUS(rlock_lock(p.s.lk), RLOCK_OK);
    EXPECT(rlock_token(p.s.lk) > token);
    EXPECT_STATUS(rlock_unlock(p.s.lk), RLOCK_OK);
    pair_stop(&p);
}

/* --- 38: an address out of date ------------------------------------------ */

TEST(replicas, fault_038_a_replica_is_refused_when_a_client_is_made)
{
    rlock_client *cl;
    rlock_options opts = RLOCK_OPTIONS_INIT;
    scene s = scene_start(0, 0);
    expect_undisturbed(&s);
    EXPECT_STR(server_str(s.sv, "REPLICAOF 127.0.0.1 1"), "OK");
    opts.uri = server_uri(s.sv);
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "READONLY");
    scene_stop(&s);
}

/* It is asked for anew until it is right. */
TEST(replicas, fault_038_the_address_of_a_former_master_is_not_kept)
{
    pair p = {0};
    pair_start(&p, 0);
    change_roles(&p);
    int gone = atomic_load(&p.way.gone);
    waiter *w = waiter_start(p.s.lk, 20000, RLOCK_WATCHDOG);
    EVENTUALLY(10000, atomic_load(&p.way.gone) >= gone + 2);
    EXPECT(!waiter_returned(w));
    lead_to_replica(&p);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(levels(p.replica, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    pair_stop(&p);
}
