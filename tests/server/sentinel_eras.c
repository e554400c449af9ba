/*
 * redis-sentinel://: Sentinels whose epochs go back, as they were told to watch
 * another master, and Sentinels that do not agree. All of them are real.
 */
#include "scene.h"
#include "sentinels.h"

enum { SENTINELS = 3 };

/*
 * The replica has become the master: its epoch is above that of a new start.
 * The client logs in as somebody of his own, whose connections can be cut.
 */
typedef struct fleet {
    server *first, *second, *other; /* the second is in office */
    sentinels *s;
    const char *login; /* what the URI has of it; "": the options have it */
    char uri[300];
    rlock_options opts;
    scene one;
} fleet;

static server *server_with_user(server *sv)
{
    EXPECT_STR(server_str(sv, "ACL SETUSER app on >hush ~* &* +@all"), "OK");
    return sv;
}

static void connect_client(fleet *f, server *sv, const char *sentinels)
{
    snprintf(f->uri, sizeof f->uri, "redis-sentinel://%s%s", f->login,
             sentinels);
    f->opts.uri = f->uri;
    f->one = scene_with(sv, &f->opts);
}

static int look_up(rlock_credentials *out, void *arg)
{
    (void)arg;
    *out = (rlock_credentials){.user = "app", .password = "hush"};
    return 1;
}

static fleet *fleet_start_as(const char *login)
{
    fleet *f = calloc(1, sizeof *f);
    EXPECT(f);
    f->login = login;
    f->opts = (rlock_options)RLOCK_OPTIONS_INIT;
    f->opts.credentials = *login ? NULL : look_up;
    f->first = server_with_user(server_start_tcp(NULL));
    f->second = server_with_user(replica_start(f->first));
    f->other = server_with_user(server_start_tcp(NULL));
    f->s = sentinels_start(f->first, SENTINELS);
    connect_client(f, f->first,
                   sentinels_uri(f->s) + strlen("redis-sentinel://"));
    sentinels_await_client(f->s, SENTINELS);
    EXPECT(sentinels_fail_over(f->s, f->second, 60000));
    sentinels_await(f->s, f->second, SENTINELS);
    EVENTUALLY(SOON, stats_of(f->one.cl).failovers == 1);
    EXPECT_STATUS(rlock_acquire(f->one.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_INT(levels(f->second, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(f->one.lk), RLOCK_OK);
    EXPECT(sentinels_epoch(f->s) > 0);
    return f;
}

static fleet *fleet_start(void)
{
    return fleet_start_as("app:hush@");
}

static void fleet_stop(fleet *f)
{
    scene_leave(&f->one);
    sentinels_stop(f->s);
    server_stop(f->other);
    server_stop(f->second);
    server_stop(f->first);
    free(f);
}

/* All of them first: one that remembers would tell the others. */
static void forget(fleet *f)
{
    for (int i = 0; i < SENTINELS; i++)
        sentinels_forget(f->s, i);
}

static void monitor_other(fleet *f)
{
    forget(f);
    for (int i = 0; i < SENTINELS; i++)
        sentinels_monitor(f->s, i, f->other);
}

/* Is it the one in office, as far as the client knows by now? */
static bool lock_is_at(fleet *f, server *sv)
{
    EXPECT_STATUS(rlock_acquire(f->one.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    bool there = levels(sv, SCENE_LOCK) == 1;
    return rlock_unlock(f->one.lk) == RLOCK_OK && there;
}

static void expect_lock_at(fleet *f, server *sv)
{
    EXPECT(lock_is_at(f, sv));
}

/* --- eras ----------------------------------------------------------------- */

TEST(sentinel_eras, a_master_that_is_monitored_anew_replaces_one_that_is_dead)
{
    fleet *f = fleet_start();
    uint64_t before = stats_of(f->one.cl).failovers;
    server_kill(f->second);
    monitor_other(f);
    expect_lock_at(f, f->other);
    EXPECT_INT(stats_of(f->one.cl).failovers, before + 1);
    fleet_stop(f);
}

/*
 * By then they are asked every two seconds or so; once the dead one was not
 * there in one asking, the others follow within a moment.
 */
TEST(sentinel_eras, after_long_trouble_the_dead_is_replaced_as_soon)
{
    fleet *f = fleet_start();
    forget(f);
    server_kill(f->second);
    EXPECT(rlock_acquire(f->one.lk, 5000, RLOCK_WATCHDOG) != RLOCK_OK);
    int64_t since_ms = test_now_ms();
    for (int i = 0; i < SENTINELS; i++)
        sentinels_monitor(f->s, i, f->other);
    expect_lock_at(f, f->other);
    EXPECT(test_since_ms(since_ms) < 2500 + SLACK_MS);
    fleet_stop(f);
}

/* What was held at the old one is not at the new one. */
TEST(sentinel_eras, a_hold_of_the_era_before_is_lost_soon)
{
    fleet *f = fleet_start();
    EXPECT_STATUS(rlock_lock(f->one.lk), RLOCK_OK);
    int told = events_count(f->one.ev, RLOCK_EVENT_FAILOVER);
    server_kill(f->second);
    monitor_other(f);
    events_wait(f->one.ev, RLOCK_EVENT_FAILOVER, told + 1, SOON);
    int64_t since_ms = test_now_ms();
    events_wait(f->one.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(test_since_ms(since_ms) < 1000 + SLACK_MS);
    EXPECT_STATUS(rlock_unlock(f->one.lk), RLOCK_LOST);
    fleet_stop(f);
}

TEST(sentinel_eras, a_master_that_says_it_is_none_is_replaced)
{
    fleet *f = fleet_start();
    monitor_other(f);
    server_cmd(f->second, "REPLICAOF 127.0.0.1 %d", server_port(f->other));
    expect_lock_at(f, f->other);
    fleet_stop(f);
}

static bool locks(rlock *lk)
{
    return rlock_acquire(lk, 1000, RLOCK_WATCHDOG) == RLOCK_OK;
}

/* It knows nobody of our name. */
static void expect_stranger_left(fleet *f)
{
    char args[40];
    server_kill(f->second);
    snprintf(args, sizeof args, "--port %d", server_port(f->second));
    server *stranger = server_start(args);
    monitor_other(f);
    EVENTUALLY(SOON, locks(f->one.lk));
    EXPECT_INT(levels(f->other, SCENE_LOCK), 1);
    server_stop(stranger);
    fleet_stop(f);
}

TEST(sentinel_eras, a_stranger_at_the_address_of_the_dead_is_no_master)
{
    expect_stranger_left(fleet_start());
}

TEST(sentinel_eras, a_stranger_that_takes_no_looked_up_password_is_no_master)
{
    expect_stranger_left(fleet_start_as(""));
}

TEST(sentinel_eras, a_failover_of_the_new_era_is_followed)
{
    fleet *f = fleet_start();
    server_kill(f->second);
    forget(f); /* they would have it follow the dead one */
    server_cmd(f->first, "REPLICAOF 127.0.0.1 %d", server_port(f->other));
    EVENTUALLY(SOON, replica_follows(f->other));
    monitor_other(f);
    expect_lock_at(f, f->other);
    EVENTUALLY(SOON, sentinels_agree(f->s, f->other));
    server_kill(f->other);
    expect_lock_at(f, f->first);
    fleet_stop(f);
}

/* --- contradictions ------------------------------------------------------- */

/* So many askings more. */
static void have_them_asked(fleet *f, server *sv, unsigned more)
{
    uint64_t before = stats_of(f->one.cl).refreshes;
    while (stats_of(f->one.cl).refreshes < before + more) {
        server_cmd(sv, "CLIENT KILL USER app");
        expect_lock_at(f, sv);
        test_pause_ms(10);
    }
}

TEST(sentinel_eras, a_master_that_is_there_stays_though_all_name_another)
{
    fleet *f = fleet_start();
    uint64_t before = stats_of(f->one.cl).failovers;
    monitor_other(f);
    have_them_asked(f, f->second, 6);
    EXPECT_INT(stats_of(f->one.cl).failovers, before);
    fleet_stop(f);
}

/* It is full, which passes. */
TEST(sentinel_eras, a_master_that_refuses_us_for_the_moment_stays)
{
    fleet *f = fleet_start();
    uint64_t failovers = stats_of(f->one.cl).failovers;
    monitor_other(f);
    uint64_t asked = stats_of(f->one.cl).refreshes;
    EXPECT_STR(server_str(f->second, "CONFIG SET maxclients 1"), "OK");
    while (stats_of(f->one.cl).refreshes < asked + 6) {
        server_cmd(f->second, "CLIENT KILL USER app");
        EXPECT(rlock_acquire(f->one.lk, 300, RLOCK_WATCHDOG) != RLOCK_OK);
    }
    EXPECT_INT(stats_of(f->one.cl).failovers, failovers);
    EXPECT_STR(server_str(f->second, "CONFIG SET maxclients 1000"), "OK");
    expect_lock_at(f, f->second);
    fleet_stop(f);
}

/*
 * One of them never hears of the others, as they do not know it. If it is the
 * first to answer it is believed, until the others have answered too.
 */
TEST(sentinel_eras, sentinels_that_contradict_each_other_are_told_of_once)
{
    fleet *f = fleet_start();
    server *copy = replica_start(f->other);
    sentinels *alien = sentinels_start(f->other, 1);
    char all[100], named[40], in_use[40];
    snprintf(all, sizeof all, "127.0.0.1:%d,127.0.0.1:%d/" SENTINELS_MASTER,
             sentinels_port(alien, 0), sentinels_port(f->s, 0));
    snprintf(named, sizeof named, "127.0.0.1:%d", server_port(f->other));
    snprintf(in_use, sizeof in_use, "127.0.0.1:%d", server_port(f->second));
    scene_leave(&f->one);
    connect_client(f, f->second, all);
    sentinels_await_client(alien, 1);
    sentinels_await_client(f->s, SENTINELS);
    EVENTUALLY(SOON, lock_is_at(f, f->second));
    events_wait(f->one.ev, RLOCK_EVENT_WARNING, 1, SOON);
    const char *text = events_message(f->one.ev, RLOCK_EVENT_WARNING);
    EXPECT_CONTAINS(text, named);
    EXPECT_CONTAINS(text, in_use);
    uint64_t before = stats_of(f->one.cl).failovers;
    have_them_asked(f, f->second, 6);
    EXPECT_INT(events_count(f->one.ev, RLOCK_EVENT_WARNING), 1);
    EXPECT_INT(stats_of(f->one.cl).failovers, before);
    sentinels_stop(alien);
    server_stop(copy);
    fleet_stop(f);
}
