/*
 * Faults of a master whose replicas have to have what it grants
 * (min_replicas): rows 134 to 139 of the catalogue. Each test sees first that
 * all is well without the fault.
 */
#include "client.h"
#include "layouts.h"
#include "replica_scene.h"

static void expect_well(replica_scene *f)
{
    EXPECT_STATUS(rlock_trylock(f->s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(f->s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(f->s.cl).replica_shortfalls, 0);
    /* Releases are not waited for, and what is left of this one comes back. */
    for (int i = 0; i < f->n; i++)
        EVENTUALLY(SOON, levels(f->replica[i], SCENE_LOCK) == 0);
}

static other_client rival_at(server *sv)
{
    return other_client_join(&(scene){.sv = sv}, NULL);
}

static void expect_free(server *sv)
{
    other_client b = rival_at(sv);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    other_client_leave(&b);
}

/* --- 134, 135: what was not replicated, and the master dies --------------- */

TEST(replicas_confirm,
     fault_134_a_grant_that_the_replica_has_not_got_is_nobodys)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    expect_well(&f);
    replica_scene_cut_off(&f, 0);
    EXPECT_STATUS(rlock_trylock(f.s.lk), RLOCK_EQUORUM);
    replica_scene_expect_short("0 of 1 replicas");
    EXPECT(!rlock_is_held(f.s.lk));
    server_kill(f.s.sv);
    replica_scene_promote(&f, 0);
    EXPECT_INT(levels(f.replica[0], SCENE_LOCK), 0);
    expect_free(f.replica[0]);
    replica_scene_stop(&f);
}

/* The rival comes when the holder knows that it has lost it. */
static void expect_in_turn(replica_scene *f, int64_t end_ms)
{
    int64_t at_ms;
    other_client b = rival_at(f->replica[0]);
    waiter *w = waiter_start(b.lk, SOON, RLOCK_WATCHDOG);
    events_wait(f->s.ev, RLOCK_EVENT_LOST, 1, SOON);
    int64_t lost_ms = events_time(f->s.ev, RLOCK_EVENT_LOST);
    EXPECT(!rlock_is_held(f->s.lk));
    EXPECT_BETWEEN(lost_ms, end_ms - SLACK_MS, end_ms + SLACK_MS);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT(at_ms >= lost_ms);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    other_client_leave(&b);
    expect_hold_lost(&f->s);
}

TEST(replicas_confirm,
     fault_135_a_renewal_that_the_replica_has_not_got_moves_nothing)
{
    replica_scene f = replica_scene_start(1, 1, 4000);
    EXPECT_STATUS(rlock_lock(f.s.lk), RLOCK_OK);
    expect_renewals(&f.s, 1);
    replica_scene_cut_off(&f, 0);
    int64_t end_ms = test_now_ms() + rlock_valid_ms(f.s.lk);
    events_wait(f.s.ev, RLOCK_EVENT_RENEW_FAILED, 1, SOON);
    EXPECT(rlock_valid_ms(f.s.lk) <= end_ms - test_now_ms() + 2);
    server_kill(f.s.sv);
    replica_scene_promote(&f, 0);
    expect_in_turn(&f, end_ms);
    replica_scene_stop(&f);
}

/* --- 136: what WAIT answers ------------------------------------------------
 */

static void expect_undone(replica_scene *f, const char *why)
{
    EXPECT_STATUS(rlock_trylock(f->s.lk), RLOCK_EQUORUM);
    replica_scene_expect_short(why);
    EXPECT(!rlock_is_held(f->s.lk));
    EXPECT_INT(stats_of(f->s.cl).replica_shortfalls, 1);
    EVENTUALLY(SOON, levels(f->s.sv, SCENE_LOCK) == 0);
    proxy_rule(f->s.px, NULL, 0, PROXY_CUT_BEFORE, NULL);
    EXPECT_STATUS(rlock_lock(f->s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(f->s.lk), RLOCK_OK);
    expect_all_undone(f->s.sv);
}

static void answered(unsigned min_replicas, const char *answer, const char *why)
{
    replica_scene f = replica_scene_proxied((int)min_replicas, min_replicas, 0);
    expect_well(&f);
    proxy_rule(f.s.px, "WAIT", PROXY_EVERY, PROXY_ANSWER, answer);
    expect_undone(&f, why);
    replica_scene_stop(&f);
}

TEST_CASE(replicas_confirm, fault_136_a_grant_is_undone_when_no_replica_has_it,
          answered(1, ":0\r\n", "0 of 1 replicas within 200 ms"))
TEST_CASE(replicas_confirm, fault_136_a_grant_is_undone_when_one_of_two_has_it,
          answered(2, ":1\r\n", "1 of 2 replicas within 200 ms"))
TEST_CASE(replicas_confirm, fault_136_a_grant_is_undone_after_an_error,
          answered(1, "-ERR unknown command 'WAIT'\r\n", "unknown command"))
TEST_CASE(replicas_confirm, fault_136_a_grant_is_undone_after_unblocked,
          answered(1, "-UNBLOCKED force unblock from blocking operation\r\n",
                   "UNBLOCKED"))

TEST(replicas_confirm, fault_136_a_grant_is_undone_when_the_connection_breaks)
{
    replica_scene f = replica_scene_proxied(1, 1, 0);
    expect_well(&f);
    proxy_rule(f.s.px, "WAIT", PROXY_EVERY, PROXY_CUT_BEFORE, NULL);
    expect_undone(&f, "replicas not known to have it");
    replica_scene_stop(&f);
}

TEST(replicas_confirm, fault_136_a_grant_is_undone_when_wait_is_not_answered)
{
    replica_scene f = replica_scene_servers(1);
    f.s.px = proxy_start(f.s.sv);
    f.s.opts.min_replicas = 1;
    f.s.opts.replica_wait_ms = REPLICA_SCENE_WAIT_MS;
    scene_client(&f.s, 0, 500);
    expect_well(&f);
    proxy_rule(f.s.px, "WAIT", 1, PROXY_SENT | PROXY_TIMEOUT, NULL);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_trylock(f.s.lk), began_ms, 700), RLOCK_EQUORUM);
    replica_scene_expect_short("no reply");
    EVENTUALLY(SOON, levels(f.s.sv, SCENE_LOCK) == 0);
    replica_scene_stop(&f);
}

/* It is not believed, and tried again until the deadline. */
TEST(replicas_confirm, fault_136_a_renewal_is_not_believed)
{
    replica_scene f = replica_scene_proxied(1, 1, 3000);
    EXPECT_STATUS(rlock_lock(f.s.lk), RLOCK_OK);
    expect_renewals(&f.s, 1);
    proxy_rule(f.s.px, "WAIT", PROXY_EVERY, PROXY_ANSWER, ":0\r\n");
    int64_t end_ms = test_now_ms() + rlock_valid_ms(f.s.lk);
    events_wait(f.s.ev, RLOCK_EVENT_RENEW_FAILED, 2, SOON);
    EXPECT_CONTAINS(events_message(f.s.ev, RLOCK_EVENT_RENEW_FAILED),
                    "0 of 1 replicas");
    events_wait(f.s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_BETWEEN(events_time(f.s.ev, RLOCK_EVENT_LOST), end_ms - SLACK_MS,
                   end_ms + SLACK_MS);
    EXPECT(key_exists(f.s.sv, SCENE_LOCK)); /* the master had renewed it */
    expect_hold_lost(&f.s);
    replica_scene_stop(&f);
}

/* --- 137: a server without WAIT, a user who may not ------------------------
 */

static void refused(server *sv, const char *uri, rlock_status status,
                    const char *why)
{
    rlock_client *cl;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = uri;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_OK);
    rlock_client_free(cl);
    o.min_replicas = 1;
    EXPECT_STATUS(rlock_client_new(&o, &cl), status);
    EXPECT_CONTAINS(rlock_last_error()->message, why);
    server_stop(sv);
}

TEST(replicas_confirm, fault_137_a_server_that_lacks_wait_is_not_supported)
{
    server *sv = server_start("--rename-command WAIT \"\"");
    refused(sv, server_uri(sv), RLOCK_ENOTSUP, "min_replicas needs WAIT");
}

TEST(replicas_confirm, fault_137_a_user_who_may_not_wait_lacks_a_right)
{
    char uri[200];
    server *sv = server_start(NULL);
    EXPECT_STR(server_str(sv, "ACL SETUSER app on >secret allkeys allchannels "
                              "+@all -wait"),
               "OK");
    snprintf(uri, sizeof uri, "unix://app:secret@%s", server_path(sv));
    refused(sv, uri, RLOCK_ESERVER, "lacks rights: WAIT");
}

/* --- 138: an acquire that is asked again -----------------------------------
 */

/*
 * The first attempt was executed, its answer is lost, and the second one, on
 * another connection, may have nothing to write.
 */
static void asked_again(rlock_layout layout)
{
    replica_scene f = replica_scene_proxied(1, 1, 0);
    use_layout(&f.s, layout);
    const char *acquire = script_of(layout, "acquire");
    proxy_rule(f.s.px, acquire, 1, PROXY_CUT_AFTER, NULL);
    EXPECT_STATUS(rlock_trylock(f.s.lk), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(f.s.lk), RLOCK_OK);
    bool touches = layout != RLOCK_LAYOUT_HASH;
    EXPECT_INT(proxy_count(f.s.px, proxy_sha("touch")), touches);
    replica_scene_cut_off(&f, 0);
    proxy_rule(f.s.px, acquire, 1, PROXY_CUT_AFTER, NULL);
    EXPECT_STATUS(rlock_trylock(f.s.lk), RLOCK_EQUORUM);
    replica_scene_expect_short("0 of 1 replicas");
    EVENTUALLY(SOON, !held_on_server(f.s.sv));
    replica_scene_stop(&f);
}

TEST_CASE(replicas_confirm,
          fault_138_a_hash_is_not_believed_for_a_wait_about_nothing,
          asked_again(RLOCK_LAYOUT_HASH))
TEST_CASE(replicas_confirm,
          fault_138_a_string_is_not_believed_for_a_wait_about_nothing,
          asked_again(RLOCK_LAYOUT_STRING))
TEST_CASE(replicas_confirm,
          fault_138_a_timestamp_is_not_believed_for_a_wait_about_nothing,
          asked_again(RLOCK_LAYOUT_TIMESTAMP))

/* --- 139: a master that does not know that it was replaced -----------------
 */

/* The client is led to it all the same. */
TEST(replicas_confirm, fault_139_a_replaced_master_grants_nothing)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    expect_well(&f);
    server_pause(f.s.sv);
    replica_scene_promote(&f, 0);
    server_resume(f.s.sv);
    EXPECT_STATUS(rlock_acquire(f.s.lk, 500, RLOCK_WATCHDOG), RLOCK_EQUORUM);
    replica_scene_expect_short("0 of 1 replicas");
    expect_free(f.replica[0]);
    EVENTUALLY(SOON, levels(f.s.sv, SCENE_LOCK) == 0);
    replica_scene_stop(&f);
}

TEST(replicas_confirm, fault_139_a_replaced_master_renews_nothing)
{
    replica_scene f = replica_scene_start(1, 1, 4000);
    EXPECT_STATUS(rlock_lock(f.s.lk), RLOCK_OK);
    expect_renewals(&f.s, 1);
    server_pause(f.s.sv);
    replica_scene_promote(&f, 0);
    int64_t end_ms = test_now_ms() + rlock_valid_ms(f.s.lk);
    server_resume(f.s.sv);
    expect_in_turn(&f, end_ms);
    replica_scene_stop(&f);
}
