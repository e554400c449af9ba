/*
 * Who waits for whom, over all processes: what rlock_waits_for() tells of a
 * server's locks, and of a cluster's.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "cluster_scene.h"
#include "crossing.h"
#include "nodes.h"
#include "other_client.h"
#include "wire/keys.h"

/* What it told, copied. */
enum { SEEN_MAX = 8 };

typedef struct told {
    char name[64], client[64];
    size_t name_len;
    bool held, known;
    rlock_holder holder, waiter;
    int64_t since_us, waited_ms, rank;
    unsigned circle;
} told;

typedef struct seen {
    size_t n;
    told of[SEEN_MAX];
} seen;

static void copy(const rlock_wait *w, void *arg)
{
    seen *all = arg;
    if (all->n == SEEN_MAX)
        FAIL("more than %d wait", SEEN_MAX);
    told *t = &all->of[all->n++];
    EXPECT(w->name_len < sizeof t->name);
    memcpy(t->name, w->name, w->name_len + 1);
    t->name_len = w->name_len;
    snprintf(t->client, sizeof t->client, "%s", w->client);
    t->held = w->holder != NULL;
    t->known = w->waiter != NULL;
    if (t->held)
        t->holder = *w->holder;
    if (t->known)
        t->waiter = *w->waiter;
    t->since_us = w->since_us;
    t->waited_ms = w->waited_ms;
    t->circle = w->circle;
    t->rank = w->rank;
}

static seen look(rlock_client *cl)
{
    seen all = {0};
    EXPECT_STATUS(rlock_waits_for(cl, copy, &all), RLOCK_OK);
    return all;
}

/* So many wait, and so many of them are known, or in a circle. */
static bool sees(rlock_client *cl, size_t n, size_t known, size_t in_circle)
{
    seen all = look(cl);
    for (size_t i = 0; i < all.n; i++) {
        known -= all.of[i].known;
        in_circle -= all.of[i].circle > 0;
    }
    return all.n == n && known == 0 && in_circle == 0;
}

static told of_lock(const seen *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->of[i].name, name) == 0)
            return all->of[i];
    FAIL("nobody waits for %s", name);
}

/* --- processes ------------------------------------------------------------ */

/* One that holds a lock, and waits for another one when it is told to. */
typedef struct wish {
    const char *mine, *wanted;
    bool fair;
} wish;

static rlock *lock_of(rlock_client *cl, const char *name, bool fair)
{
    rlock *lk;
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    o.fair = fair;
    EXPECT_STATUS(rlock_new_ex(cl, name, strlen(name), &o, &lk), RLOCK_OK);
    return lk;
}

static void live(child *c, void *arg)
{
    const wish *w = arg;
    rlock_client *cl;
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = child_take_uri(c);
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_OK);
    rlock *mine = lock_of(cl, w->mine, w->fair);
    rlock *wanted = lock_of(cl, w->wanted, w->fair);
    EXPECT_STATUS(rlock_lock(mine), RLOCK_OK);
    child_tell(c, 'h');
    child_expect(c, 'w');
    EXPECT_STATUS(rlock_lock(wanted), RLOCK_OK);
    child_tell(c, 'o');
    child_expect(c, 'e');
    rlock_client_free(cl);
    rlock_free(mine);
    rlock_free(wanted);
}

static void hold(child *c, const server *sv)
{
    child_give_uri(c, sv);
    child_expect(c, 'h');
}

static void expect_process(const rlock_holder *h, pid_t pid)
{
    char host[256] = "";
    EXPECT(gethostname(host, sizeof host - 1) == 0);
    EXPECT_STR(h->host, host);
    EXPECT_INT(h->pid, pid);
    EXPECT_INT(h->tid, pid); /* its first thread */
}

static void expect_circle_of_two(bool fair)
{
    wish one = {"a", "b", fair}, two = {"b", "a", fair};
    child *c = child_start(live, &one), *d = child_start(live, &two);
    scene s = scene_start(0, 0);
    hold(c, s.sv);
    hold(d, s.sv);
    EXPECT(sees(s.cl, 0, 0, 0));
    child_tell(c, 'w');
    EVENTUALLY(SOON, sees(s.cl, 1, 1, 0));
    child_tell(d, 'w');
    EVENTUALLY(SOON, sees(s.cl, 2, 2, 2));
    seen all = look(s.cl);
    told a = of_lock(&all, "a"), b = of_lock(&all, "b");
    expect_process(&a.holder, child_pid(c));
    expect_process(&a.waiter, child_pid(d));
    expect_process(&b.holder, child_pid(d));
    expect_process(&b.waiter, child_pid(c));
    EXPECT_INT(a.circle, 1);
    EXPECT_INT(b.circle, 1);
    EXPECT_INT(a.holder.count, 1);
    EXPECT(a.holder.ttl_ms > 0);
    EXPECT_INT(a.rank, fair ? 0 : -1);
    EXPECT(b.since_us < a.since_us && b.waited_ms >= a.waited_ms);
    EXPECT(strcmp(a.client, b.client) != 0 && strlen(a.client) == 36);
    child_kill(c); /* so its lock is free when its lease is over */
    EXPECT_INT(server_int(s.sv, "DEL a"), 1);
    child_expect(d, 'o');
    child_tell(d, 'e');
    child_end(d);
    scene_stop(&s);
}

TEST_CASE(waits, a_circle_of_two_processes_is_seen, expect_circle_of_two(false))
TEST_CASE(waits, a_circle_of_two_in_lines_is_seen, expect_circle_of_two(true))

TEST(waits, a_chain_of_processes_is_no_circle)
{
    wish one = {"a", "x", false}, two = {"b", "a", false};
    child *c = child_start(live, &one), *d = child_start(live, &two);
    scene s = scene_start(0, 0);
    hold(c, s.sv);
    hold(d, s.sv);
    child_tell(d, 'w');
    rlock *b;
    EXPECT_STATUS(rlock_new(s.cl, "b", &b), RLOCK_OK);
    waiter *w = waiter_start(b, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, sees(s.cl, 2, 2, 0));
    seen all = look(s.cl);
    told of_b = of_lock(&all, "b");
    expect_process(&of_b.holder, child_pid(d));
    EXPECT_INT(of_b.waiter.pid, getpid());
    EXPECT(of_b.waiter.tid != getpid());
    rlock_cancel(b);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    rlock_free(b);
    child_kill(c);
    child_kill(d);
    scene_stop(&s);
}

/* --- what is known -------------------------------------------------------- */

TEST(waits, at_first_only_the_client_is_known)
{
    scene s = scene_held(0, 0);
    other_client r = other_client_join(&s, NULL);
    other_client_wait(&s, &r, 1, RLOCK_FOREVER);
    seen all = look(s.cl);
    EXPECT_INT(all.n, 1);
    EXPECT_STR(all.of[0].name, SCENE_LOCK);
    EXPECT(all.of[0].held && strlen(all.of[0].client) == 36);
    EXPECT(!all.of[0].known || all.of[0].waited_ms >= 1000);
    EVENTUALLY(SOON, sees(s.cl, 1, 1, 0));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(r.w), RLOCK_OK);
    r.w = NULL;
    EXPECT(sees(s.cl, 0, 0, 0));
    other_client_leave(&r);
    scene_stop(&s);
}

/* The next thread of a client does not pass for the one before. */
TEST(waits, who_was_known_under_another_ticket_is_not)
{
    scene s = scene_held(0, 0);
    other_client r = other_client_join(&s, NULL);
    other_client_wait(&s, &r, 1, RLOCK_FOREVER);
    EVENTUALLY(SOON, sees(s.cl, 1, 1, 0));
    redisReply *bell = server_cmd(s.sv, "ZRANGE rlock_queue:{job} 0 0");
    server_int(s.sv, "ZADD rlock_queue:{job} 1000 %s", bell->element[0]->str);
    seen all = look(s.cl);
    EXPECT(all.n == 1 && !all.of[0].known);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(r.w), RLOCK_OK);
    r.w = NULL;
    other_client_leave(&r);
    scene_stop(&s);
}

/* Two threads of a client, and one of another: each is known at once. */
TEST(waits, who_stands_in_line_is_told_by_thread_and_in_order)
{
    enum { N = 3 };
    scene s = scene_held(0, 0);
    other_client r = other_client_join(&s, NULL);
    rlock *mine = lock_of(s.cl, SCENE_LOCK, true);
    rlock *theirs = lock_of(r.cl, SCENE_LOCK, true);
    waiter *w[N];
    for (int i = 0; i < N; i++) {
        w[i] =
            waiter_start(i == 1 ? mine : theirs, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, look(s.cl).n == (size_t)i + 1);
    }
    seen all = look(s.cl);
    for (int i = 0; i < N; i++) {
        EXPECT_STR(all.of[i].name, SCENE_LOCK);
        EXPECT_INT(all.of[i].rank, i);
        EXPECT(all.of[i].known && all.of[i].waiter.pid == getpid());
        EXPECT(i == 0 || all.of[i].since_us > all.of[i - 1].since_us);
    }
    EXPECT_STR(all.of[0].client, all.of[2].client);
    EXPECT(strcmp(all.of[0].client, all.of[1].client) != 0);
    EXPECT(all.of[0].waiter.tid != all.of[2].waiter.tid);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    for (int i = 0; i < N; i++)
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_OK);
    rlock_free(mine);
    rlock_free(theirs);
    other_client_leave(&r);
    scene_stop(&s);
}

/* Whoever was granted the lock by a message is in the queue yet. */
TEST(waits, who_has_stood_in_line_waits_no_more)
{
    scene s = scene_start(0, 0);
    other_client r = other_client_join(&s, NULL);
    rlock *theirs = lock_of(r.cl, SCENE_LOCK, true);
    rlock *mine = lock_of(s.cl, SCENE_LOCK, true);
    EXPECT_STATUS(rlock_lock(mine), RLOCK_OK);
    waiter *w = waiter_start(theirs, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, sees(s.cl, 1, 1, 0));
    waiter *last = waiter_start(mine, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, sees(s.cl, 2, 2, 0) && queued(s.sv, SCENE_LOCK) == 2);
    EXPECT_STATUS(rlock_unlock(mine), RLOCK_OK);
    int64_t at_ms;
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 2);
    EXPECT(sees(s.cl, 1, 1, 0));
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(waiter_end(last), RLOCK_OK);
    rlock_free(mine);
    rlock_free(theirs);
    other_client_leave(&r);
    scene_stop(&s);
}

static void expect_seen_in(rlock_layout layout, bool holder_known)
{
    scene s = scene_start(0, 0);
    rlock_client *other = server_client(s.sv, NULL);
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk, *theirs;
    o.layout = layout;
    EXPECT_STATUS(rlock_new_ex(s.cl, "x{y}", 4, &o, &lk), RLOCK_OK);
    EXPECT_STATUS(rlock_new_ex(other, "x{y}", 4, &o, &theirs), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    waiter *w = waiter_start(theirs, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, sees(s.cl, 1, 1, 0));
    seen all = look(s.cl);
    EXPECT_STR(all.of[0].name, "x{y}");
    EXPECT(all.of[0].held && *all.of[0].holder.raw);
    EXPECT_INT(all.of[0].holder.pid, holder_known ? getpid() : 0);
    EXPECT_INT(all.of[0].waiter.pid, getpid());
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(lk);
    rlock_free(theirs);
    rlock_client_free(other);
    scene_stop(&s);
}

TEST_CASE(waits, for_locks_in_hashes_are_seen,
          expect_seen_in(RLOCK_LAYOUT_HASH, true))
TEST_CASE(waits, for_locks_in_strings_are_seen,
          expect_seen_in(RLOCK_LAYOUT_STRING, true))
TEST_CASE(waits, for_timestamps_are_seen_and_their_holders_have_no_name,
          expect_seen_in(RLOCK_LAYOUT_TIMESTAMP, false))

/* "a" and "{a}" have queues of their own; a name is any bytes. */
TEST(waits, names_are_told_as_they_are)
{
    static const char *const names[] = {"a",    "{a}", "{a}{}",
                                        "b\0c", "{}",  "a}"};
    static const size_t len[] = {1, 3, 5, 3, 2, 2};
    enum { NAMES = sizeof names / sizeof *names };
    scene s = scene_start(0, 0);
    for (size_t i = 0; i < NAMES; i++) {
        rl_key q = rl_key_queue(names[i], len[i]);
        server_cmd(s.sv, "ZADD %b 1000 rlock_bell:someone", q.text, q.len);
    }
    seen all = look(s.cl);
    EXPECT_INT(all.n, NAMES);
    for (size_t i = 0; i < NAMES; i++) {
        size_t found = 0;
        for (size_t k = 0; k < all.n; k++)
            found += all.of[k].name_len == len[i] &&
                     memcmp(all.of[k].name, names[i], len[i]) == 0;
        EXPECT_INT(found, 1);
        EXPECT_STR(all.of[i].client, "rlock_bell:someone");
        EXPECT(!all.of[i].held && !all.of[i].known);
    }
    scene_stop(&s);
}

TEST(waits, among_thousands_of_other_keys_are_found)
{
    scene s = scene_held(0, 0);
    other_client r = other_client_join(&s, NULL);
    server_int(s.sv, "EVAL %s 0",
               "for i = 1, 20000 do redis.call('SET', 'key:' .. i, i) end "
               "redis.call('SET', 'rlock_queue:{text}', 'x') "
               "redis.call('SADD', 'rlock_queue:{set}', 'x') return 1");
    EXPECT(sees(s.cl, 0, 0, 0));
    other_client_wait(&s, &r, 1, RLOCK_FOREVER);
    EXPECT_INT(look(s.cl).n, 1);
    EXPECT_INT(server_int(s.sv, "DBSIZE") > 20000, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(r.w), RLOCK_OK);
    r.w = NULL;
    other_client_leave(&r);
    scene_stop(&s);
}

/* --- several servers ------------------------------------------------------ */

/* Of two clients, which know nothing of each other; this one looks. */
static void expect_circle(rlock_client *cl, crossing c[2])
{
    crossing_start(c);
    EVENTUALLY(SOON, sees(cl, 2, 2, 2));
    rlock_cancel(c[0].wanted);
    crossing_end(&c[0], RLOCK_CANCELED);
    crossing_end(&c[1], RLOCK_OK);
    for (int i = 0; i < 2; i++) {
        rlock_free(c[i].mine);
        rlock_free(c[i].wanted);
    }
    EXPECT(sees(cl, 0, 0, 0));
}

/* The locks are on two masters. */
TEST(waits, a_circle_over_the_masters_of_a_cluster_is_seen)
{
    cluster_scene l, other;
    need_sharded_channels();
    cluster_scene_start(&l, 0);
    cluster_scene_join(&l, &other);
    const char *a = cluster_name_on(l.c, 0, "a");
    const char *b = cluster_name_on(l.c, 1, "b");
    crossing c[2] = {{.mine = cluster_scene_lock(&l, a),
                      .wanted = cluster_scene_lock(&l, b)},
                     {.mine = cluster_scene_lock(&other, b),
                      .wanted = cluster_scene_lock(&other, a)}};
    EXPECT(sees(l.cl, 0, 0, 0));
    expect_circle(l.cl, c);
    cluster_scene_leave(&other);
    cluster_scene_stop(&l);
}

/* And no part of the truth is told. */
TEST(waits, a_right_that_one_master_refuses_is_named)
{
    cluster_scene l;
    seen all = {0};
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 1, "a");
    cluster_int(l.c, 1, "ZADD rlock_queue:{%s} 1000 bell", name);
    EXPECT_INT(look(l.cl).n, 1);
    cluster_cmd(l.c, 1, "ACL SETUSER default -zrange");
    EXPECT_STATUS(rlock_waits_for(l.cl, copy, &all), RLOCK_ESERVER);
    char place[40];
    snprintf(place, sizeof place, "redis://127.0.0.1:%d", cluster_port(l.c, 1));
    EXPECT_CONTAINS(rlock_last_error()->message, place);
    EXPECT_INT(all.n, 0);
    cluster_scene_stop(&l);
}

/* Each node's client tells what its server knows. */
TEST(waits, a_circle_of_red_locks_is_seen_on_each_node)
{
    nodes ns = nodes_start(3);
    party p = party_clients(&ns, 0, 0), q = party_clients(&ns, 0, 0);
    crossing c[2] = {{.mine = party_lock(&p, "a", NULL),
                      .wanted = party_lock(&p, "b", NULL)},
                     {.mine = party_lock(&q, "b", NULL),
                      .wanted = party_lock(&q, "a", NULL)}};
    expect_circle(p.cl[2], c);
    for (size_t i = 0; i < 3; i++)
        EVENTUALLY(SOON, sees(p.cl[i], 0, 0, 0));
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

/* --- what goes wrong ------------------------------------------------------ */

static void never(const rlock_wait *w, void *arg)
{
    (void)arg;
    FAIL("somebody waits for %s", w->name);
}

TEST(waits, null_pointers_are_refused)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_waits_for(NULL, never, NULL), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "client");
    EXPECT_STATUS(rlock_waits_for(s.cl, NULL, NULL), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "callback");
    scene_stop(&s);
}

TEST(waits, a_forked_child_asks_nobody)
{
    scene s = scene_start(0, 0);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        EXPECT_STATUS(rlock_waits_for(s.cl, never, NULL), RLOCK_EFORKED);
        _exit(0);
    }
    EXPECT_INT(waitpid(pid, &status, 0), pid);
    EXPECT_INT(status, 0);
    scene_stop(&s);
}

TEST(waits, a_server_that_is_gone_is_named)
{
    scene s = scene_start(0, 0);
    server_kill(s.sv);
    EXPECT_STATUS(rlock_waits_for(s.cl, never, NULL), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, server_uri(s.sv));
    scene_stop(&s);
}

TEST(waits, a_right_that_is_missing_is_named)
{
    scene s = scene_start(0, 0);
    EXPECT_STR(server_str(s.sv, "ACL SETUSER default -scan"), "OK");
    EXPECT_STATUS(rlock_waits_for(s.cl, never, NULL), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "scan");
    EXPECT_STR(server_str(s.sv, "ACL SETUSER default +scan"), "OK");
    EXPECT(sees(s.cl, 0, 0, 0));
    scene_stop(&s);
}
