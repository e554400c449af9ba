/*
 * Row 108 of the catalogue: during a rolling upgrade clients of two versions
 * share the locks. The other version is played here by its scripts, as they
 * were when it was released (scripts-VERSION/, never to be changed), sent in
 * the way that lua/README.md says. Both directions are tried: each finds the
 * other as holder, as waiter, and as the one who frees a lock. Row 124: the
 * same, while threads here hand the lock over to each other.
 */
#include <stdatomic.h>
#include <sys/time.h>

#include "busy.h"
#include "scene.h"
#include "wire/script.h"

/* The control: a client that speaks as this library does. */
#define THIS_VERSION ""

#define UUID   "6f1e1e0c-5d07-4f36-9a4e-0123456789ab"
#define HOLDER "old:7:8:" UUID
#define BELL   "rlock_bell:" UUID

typedef struct peer {
    server *sv;
    const char *version;
    redisContext *bell;
    unsigned long long token;
    char ticket[24];
} peer;

static char *read_file(const char *path)
{
    char *text = calloc(1, 16384);
    FILE *f = fopen(path, "re");
    EXPECT(text && f);
    EXPECT(fread(text, 1, 16383, f) > 0);
    fclose(f);
    return text;
}

static char *own_script(const char *name)
{
    char full[40];
    snprintf(full, sizeof full, "hash/%s", name);
    for (int i = 0; i < RL_SCRIPT_COUNT; i++) {
        if (strcmp(rl_scripts[i].name, full) == 0)
            return strdup(rl_scripts[i].body);
    }
    FAIL("no script is called \"%s\"", full);
}

static bool is_current(const peer *p)
{
    return strcmp(p->version, THIS_VERSION) == 0;
}

static bool is_first(const peer *p)
{
    return strcmp(p->version, "0.1.0") == 0;
}

/* To be freed. */
static char *script(const peer *p, const char *name)
{
    char path[400];
    if (is_current(p))
        return own_script(name);
    snprintf(path, sizeof path, "%s/tests/fault/scripts-%s/%s.lua",
             RLOCK_SOURCE_DIR, p->version, name);
    return read_file(path);
}

static peer peer_join(server *sv, const char *version)
{
    peer p = {.sv = sv, .version = version, .ticket = "0"};
    p.bell = redisConnectUnix(server_path(sv));
    EXPECT(p.bell && !p.bell->err);
    EXPECT_INT(redisSetTimeout(p.bell, (struct timeval){20, 0}), REDIS_OK);
    redisReply *r = redisCommand(p.bell, "SUBSCRIBE %s", BELL);
    EXPECT(r && r->type == REDIS_REPLY_ARRAY);
    freeReplyObject(r);
    return p;
}

static void peer_leave(peer *p)
{
    redisFree(p->bell);
}

/* Two of its keys have changed places since 0.1.0. */
static redisReply *call_acquire(peer *p, int level)
{
    static const char token[] = "rlock_token:{" SCENE_LOCK "}",
                      queue[] = "rlock_queue:{" SCENE_LOCK "}",
                      tombstone[] = "rlock_undone:{" SCENE_LOCK "}:" UUID;
    char *body = script(p, "acquire");
    redisReply *r = server_cmd(
        p->sv, "EVAL %s 4 %s %s %s %s %s 30000 %d %s %s", body, SCENE_LOCK,
        token, !is_first(p) ? tombstone : queue,
        !is_first(p) ? queue : tombstone, HOLDER, level, BELL, p->ticket);
    free(body);
    return r;
}

/* 1 acquired, 0 busy, and then it is queued. */
static long long peer_acquire(peer *p, int level)
{
    const redisReply *r = call_acquire(p, level);
    bool is_array = r->type == REDIS_REPLY_ARRAY;
    if (r->type != REDIS_REPLY_STRING && !is_array)
        FAIL("acquire: %s", r->str ? r->str : "no array");
    long long code = is_array ? r->element[0]->integer : 1;
    if (code == 1)
        p->token = strtoull(is_array ? r->element[1]->str : r->str, NULL, 10);
    if (code == 0)
        snprintf(p->ticket, sizeof p->ticket, "%s", r->element[2]->str);
    return code;
}

static long long peer_release(peer *p, int level)
{
    static const char queue[] = "rlock_queue:{" SCENE_LOCK "}",
                      tombstone[] = "rlock_undone:{" SCENE_LOCK "}:" UUID,
                      channel[] = "redisson_lock__channel:{" SCENE_LOCK "}";
    char *body = script(p, "release");
    long long code =
        !is_first(p)
            ? server_int(p->sv, "EVAL %s 3 %s %s %s %s %s %d 0", body,
                         SCENE_LOCK, queue, tombstone, HOLDER, channel, level)
            : server_int(p->sv, "EVAL %s 3 %s %s %s %s %d 0 0 %s %s", body,
                         SCENE_LOCK, queue, tombstone, HOLDER, level, channel,
                         SCENE_LOCK);
    free(body);
    return code;
}

static long long peer_renew(peer *p)
{
    char *body = script(p, "renew");
    long long code =
        server_int(p->sv, "EVAL %s 1 %s %s 60000", body, SCENE_LOCK, HOLDER);
    free(body);
    return code;
}

static long long peer_force_release(peer *p)
{
    char *body = script(p, "force_release");
    long long code =
        server_int(p->sv, "EVAL %s 2 %s %s %s %s", body, SCENE_LOCK,
                   "rlock_queue:{" SCENE_LOCK "}",
                   "redisson_lock__channel:{" SCENE_LOCK "}", SCENE_LOCK);
    free(body);
    return code;
}

/* Waits for its bell. */
static void peer_is_rung(peer *p)
{
    redisReply *r = NULL;
    EXPECT_INT(redisGetReply(p->bell, (void **)&r), REDIS_OK);
    EXPECT_INT(r->elements, 3);
    EXPECT_STR(r->element[0]->str, "message");
    EXPECT_STR(r->element[2]->str, SCENE_LOCK);
    freeReplyObject(r);
}

/* --- the other version holds --------------------------------------------- */

static void honour_its_hold(const char *version)
{
    scene s = scene_start(0, 0);
    peer p = peer_join(s.sv, version);
    rlock_holder h;
    EXPECT_INT(peer_acquire(&p, 1), 1);
    EXPECT_INT(peer_acquire(&p, 2), 1);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_STR(h.host, "old");
    EXPECT_STR(h.hold_id, UUID);
    EXPECT_INT(h.count, 2);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_INT(peer_release(&p, 1), 1);
    EXPECT_INT(peer_renew(&p), 1);
    EXPECT(!waiter_returned(w));
    int64_t freed_ms = test_now_ms();
    EXPECT_INT(peer_release(&p, 0), 2); /* and it rang the waiter */
    waiter_expect_rung(w, freed_ms);
    EXPECT(strtoull(server_str(s.sv, "GET rlock_token:{%s}", SCENE_LOCK), NULL,
                    10) > p.token);
    waiter_end(w);
    peer_leave(&p);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(versions, fault_108_a_hold_of_another_version_is_honoured)
{
    honour_its_hold(THIS_VERSION);
    honour_its_hold("0.1.0");
    honour_its_hold("0.2.0");
}

/* --- this one holds ------------------------------------------------------ */

static void be_honoured(const char *version)
{
    scene s = scene_start(1500, 0);
    peer p = peer_join(s.sv, version);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    EXPECT_INT(peer_acquire(&p, 1), 0);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 1);
    EXPECT_INT(peer_renew(&p), 0);
    EXPECT_INT(peer_release(&p, 0), 0);
    expect_renewals(&s, 2);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    EXPECT_INT(peer_acquire(&p, 1), 0); /* or its place is forgotten */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    peer_is_rung(&p);
    EXPECT_INT(peer_acquire(&p, 1), 1);
    EXPECT(p.token > token);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_INT(peer_release(&p, 0), 1);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    peer_leave(&p);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(versions, fault_108_another_version_honours_a_hold)
{
    be_honoured(THIS_VERSION);
    be_honoured("0.1.0");
    be_honoured("0.2.0");
}

/* --- locks that are forced ----------------------------------------------- */

static void force_each_other(const char *version)
{
    scene s = scene_start(0, 0);
    peer p = peer_join(s.sv, version);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(peer_force_release(&p), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_INT(peer_acquire(&p, 1), 1);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(peer_renew(&p), 0);
    EXPECT_INT(peer_release(&p, 0), 0);
    peer_leave(&p);
    scene_stop(&s);
}

TEST(versions, fault_108_versions_can_force_each_others_locks)
{
    force_each_other(THIS_VERSION);
    force_each_other("0.1.0");
    force_each_other("0.2.0");
}

/* --- 124: threads here hand over ------------------------------------------ */

enum { TURNS = 20 };

typedef struct contest {
    busy b;
    atomic_bool peer_inside;
    atomic_int overlaps;
} contest;

static void look(busy *b)
{
    contest *c = (contest *)(void *)b;
    for (int i = 0; i < 2; i++)
        c->overlaps += atomic_load(&c->peer_inside);
}

/* Busy: it waits for its bell, which rings in far less than a poll. */
static void take_turn(peer *p, contest *c)
{
    unsigned long long last = p->token;
    while (peer_acquire(p, 1) == 0)
        peer_is_rung(p);
    atomic_store(&c->peer_inside, true);
    EXPECT(p->token > last);
    EXPECT_INT(peer_renew(p), 1);
    atomic_store(&c->peer_inside, false);
    EXPECT(peer_release(p, 0) > 0);
}

static void get_its_turns(const char *version)
{
    scene s = scene_start(0, 0);
    peer p = peer_join(s.sv, version);
    contest c = {.b = {.lk = s.lk, .inside = look}};
    busy_start(&c.b, 200);
    int64_t began_ms = test_now_ms();
    for (int i = 0; i < TURNS; i++)
        take_turn(&p, &c);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 0, TURNS * 100 + SLACK_MS);
    busy_stop(&c.b);
    EXPECT_INT(atomic_load(&c.overlaps), 0);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    peer_leave(&p);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(versions, fault_124_another_version_gets_what_threads_here_hand_over)
{
    get_its_turns("0.1.0");
    get_its_turns("0.2.0");
}
