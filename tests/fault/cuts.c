/*
 * The cut-point matrix: each request that a lock makes, cut at each point of
 * its life, in each way. A row of the table below is a request at a point, its
 * columns are the ways, and every cell is a test of its own:
 * acquire_sent_reset_is_asked_again. All go over a Unix socket; those that end
 * a connection go over TCP as well, for the two kinds of sockets end
 * differently.
 *
 * The points:
 *   before     the connection has failed before the request is sent on it
 *   sent       the client has sent it; the server never gets it
 *   executed   the server has executed it; no byte of its reply arrives
 *   mid_reply  half of the reply's bytes arrive
 *
 * The ways:
 *   timeout    nothing is answered any more, and the connection is closed when
 *              the client has closed it
 *   reset      the connection is reset
 *   closed     it is closed
 *   stalled    no byte moves any more, and nobody learns of anything; for the
 *              client the same as timeout
 *   late       what did not arrive is kept back, and let go when the caller has
 *              given up, or gone on, and somebody else has the lock. Of a reply
 *              nothing can arrive then, for its connection is closed: at
 *              executed and mid_reply the same as timeout
 *
 * In every cell one request fails once. The call ends in its time with the
 * status that the table says; a level is counted once or not at all; somebody
 * else can have the lock then, and keeps it whatever comes late; nobody is told
 * of a loss; and nothing is left in Redis. The control of each row is the same
 * script of calls through the same proxy without a fault.
 */
#include "scene.h"

/* Command timeouts: in cells that wait for it, and in the others. */
#define SHORT_MS 300
#define LONG_MS  10000

#define SOMEBODYS_LEASE_MS 60000

/* Enough for two renewals that fail, on a busy machine. */
#define RENEWED_LEASE_MS 3000

typedef enum point { before, sent, executed, mid_reply } point;
typedef enum way { timeout, reset, closed, stalled, late, no_fault } way;

typedef enum outcome {
    goes_well,      /* the control */
    is_sent_anew,   /* it has not been sent for sure: on a new connection, and
                       nothing is in doubt */
    is_asked_again, /* on a new connection, and the call succeeds */
    is_given_up,    /* the call ends, without success, after its timeout */
    is_tried_again  /* later; it is no caller's request */
} outcome;

typedef struct play {
    point point;
    way way;
    outcome outcome;
    int64_t timeout_ms; /* of a command */
    bool doubt;         /* tombstones may be left */
    scene s;            /* its client is behind the proxy */
    rlock_client *somebody;
    rlock *theirs;
    int asked; /* requests of the kind before the one that is cut */
    int64_t began_ms;
} play;

/* --- set-up and outcome -------------------------------------------------- */

static void set_rule(play *p, const char *predecessor, const char *request)
{
    static const proxy_action points[] = {PROXY_ANSWERED, PROXY_SENT,
                                          PROXY_EXECUTED, PROXY_MID_REPLY};
    static const proxy_action ways[] = {
        PROXY_TIMEOUT, PROXY_RESET, PROXY_CLOSED, PROXY_STALLED, PROXY_LATE};
    const char *needle = p->point == before ? predecessor : request;
    if (p->way != no_fault)
        proxy_rule(p->s.px, needle, 1, points[p->point] | ways[p->way], NULL);
}

static bool has_struck(const play *p)
{
    return p->way == no_fault || proxy_fired(p->s.px);
}

/*
 * The client's next call of this script meets the fault. There is one
 * connection for all calls, and an is_locked() is the last before.
 */
static void meet(play *p, const char *script)
{
    bool locked;
    set_rule(p, proxy_sha("inspect"), proxy_sha(script));
    EXPECT_STATUS(rlock_is_locked(p->s.lk, &locked), RLOCK_OK);
    if (p->point == before && p->way != late)
        EVENTUALLY(SOON, has_struck(p));
    p->asked = proxy_count(p->s.px, proxy_sha(script));
    p->began_ms = test_now_ms();
}

/* The call has ended as it should; did it succeed? */
static bool succeeded(play *p, rlock_status status, const char *script)
{
    int64_t took_ms = test_now_ms() - p->began_ms;
    bool given_up = p->outcome == is_given_up;
    EXPECT_STATUS(status, given_up ? RLOCK_EIO : RLOCK_OK);
    EXPECT_BETWEEN(took_ms, given_up ? p->timeout_ms - 10 : 0,
                   p->timeout_ms + SLACK_MS);
    EVENTUALLY(SOON, has_struck(p));
    if (!given_up) {
        bool twice = p->way != no_fault && p->point != before;
        EXPECT_INT(proxy_count(p->s.px, proxy_sha(script)) - p->asked,
                   1 + twice);
    }
    return !given_up;
}

/* Has the server executed the request, though the caller got no answer? */
static bool was_executed(const play *p)
{
    return p->point == executed || p->point == mid_reply;
}

static int64_t ttl_ms(play *p)
{
    return server_int(p->s.sv, "PTTL %s", SCENE_LOCK);
}

static long long tombstones(play *p)
{
    return (long long)server_cmd(p->s.sv, "KEYS rlock_undone:*")->elements;
}

/*
 * Lets go of what is late, which changes nothing of somebody's hold: that has
 * no expiry for the moment, so that none can be set without being seen.
 */
static void expect_no_harm(play *p)
{
    server *sv = p->s.sv;
    char *holder =
        strdup(server_cmd(sv, "HKEYS %s", SCENE_LOCK)->element[0]->str);
    EXPECT(holder);
    EXPECT_INT(server_int(sv, "PERSIST %s", SCENE_LOCK), 1);
    proxy_let_go(p->s.px);
    EXPECT_INT(levels(sv, SCENE_LOCK), 1);
    EXPECT_INT(server_int(sv, "HEXISTS %s %s", SCENE_LOCK, holder), 1);
    EXPECT_INT(ttl_ms(p), -1);
    EXPECT(rlock_is_held(p->theirs));
    free(holder);
}

static void expect_free_for_all(play *p)
{
    rlock *ours = p->s.lk;
    EXPECT_STATUS(rlock_acquire(p->theirs, SOON, SOMEBODYS_LEASE_MS), RLOCK_OK);
    expect_no_harm(p);
    EXPECT_STATUS(rlock_unlock(p->theirs), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(ours, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_INT(levels(p->s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(ours), RLOCK_OK);
}

static void expect_nothing_lost_or_left(play *p)
{
    scene *s = &p->s;
    EXPECT_INT(stats_of(s->cl).lost, 0);
    EXPECT_INT(stats_of(s->cl).held_now, 0);
    scene_free_client(s);
    EXPECT_INT(events_count(s->ev, RLOCK_EVENT_LOST), 0);
    proxy_stop(s->px); /* and with it what is stalled */
    s->px = NULL;
    EVENTUALLY(SOON, server_cmd(s->sv, "PUBSUB CHANNELS")->elements == 0);
    if (p->doubt)
        expect_all_undone(s->sv);
    else
        expect_nothing_left(s->sv);
}

/* --- the scripts of calls ------------------------------------------------ */

static void play_acquire(play *p)
{
    scene *s = &p->s;
    meet(p, "acquire");
    p->doubt = p->outcome == is_asked_again || p->outcome == is_given_up;
    if (succeeded(p, rlock_trylock(s->lk), "acquire")) {
        EXPECT_INT(levels(s->sv, SCENE_LOCK), 1);
        EXPECT_INT(rlock_hold_count(s->lk), 1);
        EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
        EXPECT_INT(tombstones(p), p->doubt);
    } else {
        EXPECT(!rlock_is_held(s->lk));
        EVENTUALLY(SOON, tombstones(p) == 1);
        EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_NOT_HELD);
    }
    EXPECT_INT(levels(s->sv, SCENE_LOCK), 0);
}

static void play_nested(play *p)
{
    scene *s = &p->s;
    EXPECT_STATUS(rlock_acquire(s->lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    uint64_t token = rlock_token(s->lk);
    meet(p, "acquire");
    if (succeeded(p, rlock_lock(s->lk), "acquire")) {
        EXPECT_INT(levels(s->sv, SCENE_LOCK), 2);
        EXPECT_INT(rlock_hold_count(s->lk), 2);
        EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    } else {
        EXPECT_INT(levels(s->sv, SCENE_LOCK), was_executed(p) ? 2 : 1);
    }
    EXPECT_INT(rlock_hold_count(s->lk), 1);
    EXPECT(rlock_is_held(s->lk));
    EXPECT(rlock_token(s->lk) == token);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT_INT(levels(s->sv, SCENE_LOCK), 0);
}

/* The watchdog's connection is its own, and a renewal follows a renewal. */
static void play_renew(play *p)
{
    scene *s = &p->s;
    EXPECT_STATUS(rlock_acquire(s->lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    set_rule(p, proxy_sha("renew"), proxy_sha("renew"));
    EVENTUALLY(SOON, has_struck(p));
    if (p->outcome == is_tried_again)
        events_wait(s->ev, RLOCK_EVENT_RENEW_FAILED, 1, SOON);
    uint64_t renewals = stats_of(s->cl).renewals;
    EVENTUALLY(SOON, stats_of(s->cl).renewals > renewals);
    if (p->outcome != is_tried_again)
        EXPECT_INT(stats_of(s->cl).renew_failures, 0);
    EXPECT(rlock_is_held(s->lk));
    EXPECT_INT(levels(s->sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT_INT(levels(s->sv, SCENE_LOCK), 0);
}

/* Relies on the longer lease only if the server has confirmed it. */
static void play_extend(play *p)
{
    scene *s = &p->s;
    EXPECT_STATUS(rlock_acquire(s->lk, SOON, 30000), RLOCK_OK);
    meet(p, "extend");
    bool extended = succeeded(p, rlock_extend(s->lk, 90000), "extend");
    EXPECT_BETWEEN(rlock_valid_ms(s->lk), extended ? 30001 : 1,
                   extended ? 90000 : 30000);
    extended = extended || was_executed(p);
    EXPECT_BETWEEN(ttl_ms(p), extended ? 30001 : 1, extended ? 90000 : 30000);
    EXPECT_INT(levels(s->sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT_INT(levels(s->sv, SCENE_LOCK), 0);
}

static void play_release(play *p)
{
    scene *s = &p->s;
    EXPECT_STATUS(rlock_acquire(s->lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    meet(p, "release");
    if (succeeded(p, rlock_unlock(s->lk), "release"))
        EXPECT_INT(levels(s->sv, SCENE_LOCK), 0);
    EXPECT(!rlock_is_held(s->lk));
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_NOT_HELD);
    EVENTUALLY(SOON, levels(s->sv, SCENE_LOCK) == 0);
}

/* A third client waits, and has the lock as soon as somebody frees it: a ring
   for the one that gave up is not lost. */
static void expect_handed_on(play *p)
{
    scene *s = &p->s;
    rlock_client *third = server_client(s->sv, NULL);
    rlock *lk = test_lock(third, SCENE_LOCK);
    int64_t before_ms;
    long long ahead = queued(s->sv, SCENE_LOCK);
    waiter *w = waiter_start(lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s->sv, (int)ahead + 1, third, 1);
    expect_no_harm(p);
    before_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(p->theirs), RLOCK_OK);
    waiter_expect_rung(w, before_ms);
    EXPECT_INT(levels(s->sv, SCENE_LOCK), 1);
    waiter_end(w);
    rlock_free(lk);
    rlock_client_free(third);
}

/*
 * A client's first wait looks again when its doorbell begins to hear, at a time
 * of the doorbell's choice. A later wait asks once, and sleeps.
 */
static void hear_the_bell(play *p)
{
    scene *s = &p->s;
    waiter *first = waiter_start(s->lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s->sv, 1, s->cl, 1);
    rlock_cancel(s->lk);
    EXPECT_STATUS(waiter_end(first), RLOCK_CANCELED);
    EXPECT_INT(queued(s->sv, SCENE_LOCK), 0);
}

/* Its answer is nobody's concern: the wait is over either way. */
static void play_leave(play *p)
{
    scene *s = &p->s;
    int64_t at_ms;
    EXPECT_STATUS(rlock_acquire(p->theirs, 0, SOMEBODYS_LEASE_MS), RLOCK_OK);
    hear_the_bell(p);
    waiter *w = waiter_start(s->lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s->sv, 1, s->cl, 1);
    meet(p, "leave");
    rlock_cancel(s->lk);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_CANCELED);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    EXPECT_BETWEEN(at_ms - p->began_ms,
                   p->outcome == is_given_up ? p->timeout_ms - 10 : 0,
                   p->timeout_ms + SLACK_MS);
    EVENTUALLY(SOON, has_struck(p));
    bool stays = p->outcome == is_given_up && !was_executed(p);
    EXPECT_INT(queued(s->sv, SCENE_LOCK), stays);
    expect_handed_on(p);
}

/* A doorbell's connection begins with a PING. */
static void play_subscribe(play *p)
{
    scene *s = &p->s;
    bool locked;
    int64_t before_ms;
    EXPECT_STATUS(rlock_acquire(p->theirs, 0, SOMEBODYS_LEASE_MS), RLOCK_OK);
    EXPECT_STATUS(rlock_is_locked(s->lk, &locked), RLOCK_OK); /* connects */
    set_rule(p, "PING", "SUBSCRIBE");
    waiter *w = waiter_start(s->lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, has_struck(p));
    waiters_settle(s->sv, 1, s->cl, 1);
    expect_no_harm(p);
    before_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(p->theirs), RLOCK_OK);
    waiter_expect_rung(w, before_ms);
    EXPECT_INT(levels(s->sv, SCENE_LOCK), 1);
    waiter_end(w);
}

/* --- the table ----------------------------------------------------------- */

typedef void script(play *p);
typedef proxy *start_fn(server *sv);

static void run(script *act, start_fn *start, play p)
{
    bool waits = p.outcome == is_given_up || p.outcome == is_tried_again;
    p.timeout_ms = waits ? SHORT_MS : LONG_MS;
    p.doubt = waits; /* what takes so long may be asked for again */
    p.s = scene_server(NULL);
    p.s.px = start(p.s.sv);
    p.s.opts.pool_size = 1;
    scene_client(&p.s, act == play_renew ? RENEWED_LEASE_MS : 0, p.timeout_ms);
    p.somebody = server_client(p.s.sv, NULL);
    p.theirs = test_lock(p.somebody, SCENE_LOCK);
    act(&p);
    expect_free_for_all(&p);
    rlock_free(p.theirs);
    rlock_client_free(p.somebody);
    expect_nothing_lost_or_left(&p);
    scene_stop(&p.s);
}

#define CELL(suite, start, verb, at, how, what)                                \
    TEST(suite, verb##_##at##_##how##_##what)                                  \
    {                                                                          \
        run(play_##verb, start,                                                \
            (play){.point = at, .way = how, .outcome = what});                 \
    }

#define UNIX(verb, point, way, outcome)                                        \
    CELL(cuts_unix, proxy_start, verb, point, way, outcome)
#define TCP(verb, point, way, outcome)                                         \
    CELL(cuts_tcp, proxy_start_tcp, verb, point, way, outcome)

#define ROW(verb, point, on_timeout, on_reset, on_closed, on_stalled, on_late) \
    UNIX(verb, point, timeout, on_timeout)                                     \
    UNIX(verb, point, reset, on_reset)                                         \
    UNIX(verb, point, closed, on_closed)                                       \
    UNIX(verb, point, stalled, on_stalled)                                     \
    UNIX(verb, point, late, on_late)                                           \
    TCP(verb, point, reset, on_reset)

/* Where it makes no difference what is closed. */
#define SAME(verb, point, on_timeout, on_reset, on_closed, ...)                \
    ROW(verb, point, on_timeout, on_reset, on_closed, __VA_ARGS__)             \
    TCP(verb, point, closed, on_closed)

#define CONTROL(verb)                                                          \
    UNIX(verb, before, no_fault, goes_well)                                    \
    TCP(verb, before, no_fault, goes_well)

/* clang-format off */

/* Columns: timeout, reset, closed, stalled, late. */

/* A socket that was closed by the other side refuses what is sent; but TCP
   takes it once, and so leaves it in doubt. */
CONTROL(acquire)
ROW(acquire, before,
    is_given_up, is_sent_anew, is_sent_anew, is_given_up, is_given_up)
TCP(acquire, before, closed, is_asked_again)
SAME(acquire, sent,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(acquire, executed,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(acquire, mid_reply,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)

CONTROL(nested)
SAME(nested, before,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(nested, sent,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(nested, executed,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(nested, mid_reply,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)

/* The watchdog looks at its connection before it sends. */
CONTROL(renew)
SAME(renew, before,
    is_tried_again, is_sent_anew, is_sent_anew, is_tried_again, is_tried_again)
SAME(renew, sent,
    is_tried_again, is_tried_again, is_tried_again, is_tried_again,
    is_tried_again)
SAME(renew, executed,
    is_tried_again, is_tried_again, is_tried_again, is_tried_again,
    is_tried_again)
SAME(renew, mid_reply,
    is_tried_again, is_tried_again, is_tried_again, is_tried_again,
    is_tried_again)

CONTROL(extend)
SAME(extend, before,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(extend, sent,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(extend, executed,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(extend, mid_reply,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)

CONTROL(release)
SAME(release, before,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(release, sent,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(release, executed,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(release, mid_reply,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)

CONTROL(leave)
SAME(leave, before,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(leave, sent,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(leave, executed,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)
SAME(leave, mid_reply,
    is_given_up, is_asked_again, is_asked_again, is_given_up, is_given_up)

/* The doorbell has no caller: it connects again after a pause. */
CONTROL(subscribe)
SAME(subscribe, before,
    is_tried_again, is_tried_again, is_tried_again, is_tried_again,
    is_tried_again)
SAME(subscribe, sent,
    is_tried_again, is_tried_again, is_tried_again, is_tried_again,
    is_tried_again)
SAME(subscribe, executed,
    is_tried_again, is_tried_again, is_tried_again, is_tried_again,
    is_tried_again)
SAME(subscribe, mid_reply,
    is_tried_again, is_tried_again, is_tried_again, is_tried_again,
    is_tried_again)
