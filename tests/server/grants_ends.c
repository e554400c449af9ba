/*
 * With the option grants: how waits, holds and clients end beside it, and what is
 * told of that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_scene.h"
#include "grants_scene.h"

#define TOKEN "rlock_token:{" SCENE_LOCK "}"

/* The holder id of the only one who has said what it wants. */
static void read_want(server *sv, char *holder, size_t size)
{
    redisReply *r = server_cmd(sv, "HVALS " GRANTS_WHO);
    EXPECT(r->type == REDIS_REPLY_ARRAY && r->elements == 1);
    const char *at = strchr(r->element[0]->str, ' ');
    EXPECT(at != NULL);
    snprintf(holder, size, "%s", at + 1);
    holder[strcspn(holder, " ")] = '\0';
}

/* Its message is still on the way: another one had the lock in between. */
TEST(grants_ends, an_unlock_tells_of_its_loss_if_the_next_one_was_granted_it)
{
    char next[600];
    grants_scene p = grants_scene_start(true, true);
    grants_hear_bells(&p);
    EXPECT_STATUS(rlock_lock(p.s.lk), RLOCK_OK);
    waiter *w = grants_queue_up(&p, p.s.lk, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(p.s.cl).waiting_now == 1);
    EVENTUALLY(SOON, key_exists(p.s.sv, GRANTS_WHO));
    read_want(p.s.sv, next, sizeof next);
    server_cmd(p.s.sv, "DEL " SCENE_LOCK " " GRANTS_QUEUE " " GRANTS_WHO);
    server_cmd(p.s.sv, "INCR " TOKEN);
    server_cmd(p.s.sv, "HSET " SCENE_LOCK " %s 1", next);
    server_cmd(p.s.sv, "PEXPIRE " SCENE_LOCK " 3000");
    EXPECT_STATUS(rlock_unlock(p.s.lk), RLOCK_LOST);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(levels(p.s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(levels(p.s.sv, SCENE_LOCK), 0);
    grants_scene_stop(&p);
}

/* It was granted late in the look of its waiter, and renewed at once. */
TEST(grants_ends, what_is_renewed_as_soon_as_it_is_granted_is_not_told_as_late)
{
    enum { TIMES = 3 };
    rlock_options opts = RLOCK_OPTIONS_INIT;
    events *ev = events_new();
    events_hook(ev, &opts);
    opts.warn_renew_late = true;
    grants_scene p = grants_scene_with(opts);
    grants_hear_bells(&p);
    for (int i = 0; i < TIMES; i++) {
        waiter *first = grants_have_waited(&p);
        waiter *second = grants_queue_up(&p, p.o.lk, RLOCK_WATCHDOG);
        int64_t began_ms = test_now_ms();
        EVENTUALLY(SOON, test_since_ms(began_ms) >= 1700);
        EXPECT_STATUS(waiter_end(first), RLOCK_OK);
        EXPECT_STATUS(waiter_status(second, NULL), RLOCK_OK);
        EVENTUALLY(SOON, key_ttl(p.s.sv, SCENE_LOCK) > 20000);
        EXPECT_STATUS(waiter_end(second), RLOCK_OK);
    }
    EXPECT_INT(events_count(ev, RLOCK_EVENT_RENEW_LATE), 0);
    grants_scene_stop(&p);
    events_free(ev);
}

/* lua/README.md: twice the lease after the acquire, or a renewal that kept it. */
TEST(grants_ends, the_token_of_a_long_lease_is_kept_as_long_as_ever)
{
    grants_scene p = grants_scene_start(true, true);
    grants_hear_bells(&p);
    waiter *first = grants_have_waited(&p);
    waiter *second = grants_queue_up(&p, p.o.lk, 600000);
    EXPECT_STATUS(waiter_end(first), RLOCK_OK);
    EXPECT_STATUS(waiter_status(second, NULL), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(p.s.sv, SCENE_LOCK), 500000, 600000);
    EXPECT_BETWEEN(key_ttl(p.s.sv, TOKEN), 1000000, 1200000);
    EXPECT_STATUS(waiter_end(second), RLOCK_OK);
    grants_scene_stop(&p);
}

TEST(grants_ends, the_token_of_a_long_watchdog_lease_is_kept_as_long_as_ever)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 600000;
    grants_scene p = grants_scene_with(opts);
    grants_hear_bells(&p);
    waiter *first = grants_have_waited(&p);
    waiter *second = grants_queue_up(&p, p.o.lk, RLOCK_WATCHDOG);
    EXPECT_STATUS(waiter_end(first), RLOCK_OK);
    EXPECT_STATUS(waiter_status(second, NULL), RLOCK_OK);
    EVENTUALLY(SOON, key_ttl(p.s.sv, SCENE_LOCK) > 500000);
    EXPECT_BETWEEN(key_ttl(p.s.sv, TOKEN), 1000000, 1200000);
    EXPECT_STATUS(waiter_end(second), RLOCK_OK);
    grants_scene_stop(&p);
}

/* Nobody can tell it from a program of Redisson's. The ring that comes on the
   second channel may find nobody any more, and is passed on. */
TEST(grants_ends, who_listens_to_redissons_channel_while_it_waits_is_rung)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.redisson_channel = true;
    grants_scene p = grants_scene_with(opts);
    grants_hear_bells(&p);
    waiter *first = grants_have_waited(&p);
    waiter *second = grants_queue_up(&p, p.o.lk, RLOCK_WATCHDOG);
    long long before = script_calls(p.s.sv);
    EXPECT_STATUS(waiter_end(first), RLOCK_OK);
    EXPECT_STATUS(waiter_status(second, NULL), RLOCK_OK);
    EXPECT_BETWEEN(script_calls(p.s.sv) - before, 2, 3);
    EXPECT_STATUS(waiter_end(second), RLOCK_OK);
    grants_scene_stop(&p);
}

/* --- ends that race with a grant ------------------------------------------- */

static void expect_free_soon(grants_scene *p)
{
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(p->s.lk, 2000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, 1000);
    EXPECT_STATUS(rlock_unlock(p->s.lk), RLOCK_OK);
}

static intptr_t cancel_it(void *lk)
{
    rlock_cancel(lk);
    return 0;
}

TEST(grants_ends, cancels_that_come_while_it_is_granted_keep_it_from_nobody)
{
    grants_scene p = grants_scene_start(true, true);
    for (int i = 0; i < 150; i++) {
        waiter *first = grants_have_waited(&p);
        waiter *second = grants_queue_up(&p, p.o.lk, RLOCK_WATCHDOG);
        test_thread *t = test_spawn(cancel_it, p.o.lk);
        EXPECT_STATUS(waiter_end(first), RLOCK_OK);
        test_join(t);
        waiter_end(second); /* by either */
        expect_free_soon(&p);
    }
    grants_scene_stop(&p);
}

static intptr_t free_it(void *cl)
{
    rlock_client_free(cl);
    return 0;
}

TEST(grants_ends, closes_that_come_while_it_is_granted_keep_it_from_nobody)
{
    grants_scene p = grants_scene_start(true, true);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.grants = true;
    for (int i = 0; i < 60; i++) {
        waiter *first = grants_have_waited(&p);
        other_client x = other_client_join(&p.s, &opts);
        waiter *second = waiter_start(x.lk, 30000, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, queued(p.s.sv, SCENE_LOCK) == 1);
        test_thread *t = test_spawn(free_it, x.cl);
        EXPECT_STATUS(waiter_end(first), RLOCK_OK);
        test_join(t);
        rlock_status s = waiter_end(second);
        if (s != RLOCK_OK)
            expect_free_soon(&p);
        else
            server_cmd(p.s.sv, "DEL " SCENE_LOCK);
        rlock_free(x.lk);
    }
    grants_scene_stop(&p);
}

/* Another one of its client waits behind, by another handle. */
TEST(grants_ends, who_waits_behind_a_canceled_one_is_next)
{
    grants_scene p = grants_scene_start(true, true);
    grants_hear_bells(&p);
    for (int i = 0; i < 100; i++) {
        waiter *first = grants_have_waited(&p);
        rlock *other = test_lock(p.o.cl, SCENE_LOCK);
        waiter *second = grants_queue_up(&p, p.o.lk, RLOCK_WATCHDOG);
        waiter *third = waiter_start(other, 30000, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, stats_of(p.o.cl).waiting_now == 2);
        test_thread *t = test_spawn(cancel_it, p.o.lk);
        int64_t began_ms = test_now_ms(), at_ms;
        EXPECT_STATUS(waiter_end(first), RLOCK_OK);
        test_join(t);
        waiter_end(second);
        EXPECT_STATUS(waiter_status(third, &at_ms), RLOCK_OK);
        EXPECT_BETWEEN(at_ms - began_ms, 0, 1000);
        EXPECT_STATUS(waiter_end(third), RLOCK_OK);
        rlock_free(other);
    }
    grants_scene_stop(&p);
}

/* So many calls master 0 has answered with TRYAGAIN. */
static long long put_off(cluster *c)
{
    const char *at =
        strstr(cluster_cmd(c, 0, "INFO errorstats")->str, "TRYAGAIN:count=");
    return at ? strtoll(strchr(at, '=') + 1, NULL, 10) : 0;
}

/* As l->cl was, with the option. */
static void remake_with_grants(cluster_scene *l)
{
    rlock_client_free(l->cl);
    l->opts.grants = true;
    EXPECT_STATUS(rlock_client_new(&l->opts, &l->cl), RLOCK_OK);
}

/* Who waits in the queue while the slot begins to move, and does not. */
static void give_up_while_it_moves(cluster_scene *l, unsigned slot, rlock *lk,
                                   waiter *w)
{
    cluster_slot_begin(l->c, slot, 1);
    rlock_cancel(lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    long long before = put_off(l->c);
    EVENTUALLY(SOON, put_off(l->c) >= before + 8);
    for (int i = 0; i < 2; i++)
        cluster_cmd(l->c, i, "CLUSTER SETSLOT %u STABLE", slot);
}

/*
 * What is undone meanwhile may have been wanted, and its client is still there, as
 * another one waits behind it.
 */
TEST(grants_ends, who_gave_up_while_its_slot_did_not_move_is_granted_nothing)
{
    cluster_scene l, o;
    need_sharded_channels();
    cluster_scene_start(&l, 0);
    cluster_scene_join(&l, &o);
    remake_with_grants(&l);
    remake_with_grants(&o);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *mine = cluster_scene_lock(&l, name),
          *theirs = cluster_scene_lock(&o, name),
          *behind = cluster_scene_lock(&o, name);
    server *sv = cluster_server(l.c, 0);
    for (int i = 0; i < 4; i++) {
        EXPECT_STATUS(rlock_lock(theirs), RLOCK_OK);
        waiter *first = waiter_start(mine, 30000, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, queued(sv, name) == 1);
        EXPECT_STATUS(rlock_unlock(theirs), RLOCK_OK);
        EXPECT_STATUS(waiter_status(first, NULL), RLOCK_OK);
        waiter *second = waiter_start(theirs, 30000, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, queued(sv, name) == 1);
        waiter *third = waiter_start(behind, 30000, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, stats_of(o.cl).waiting_now == 2);
        give_up_while_it_moves(&l, cluster_slot(name), theirs, second);
        int64_t freed_ms = test_now_ms();
        EXPECT_STATUS(waiter_end(first), RLOCK_OK);
        waiter_expect_rung(third, freed_ms);
        EXPECT_STATUS(waiter_end(third), RLOCK_OK);
    }
    rlock_free(mine);
    rlock_free(theirs);
    rlock_free(behind);
    cluster_scene_leave(&o);
    cluster_scene_stop(&l);
}
