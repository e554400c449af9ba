/*
 * The whole client against a server that answers what the input says, and
 * calls of the public functions as the input says. Whatever the server does:
 * no crash and no leak, calls end in time, and
 *
 * - who is told that he owns a lock was sent a grant for it, one from each
 *   server that it needs;
 * - a hold has the levels that were taken and not given back, or is lost, for
 *   good, until the last of them is given back;
 * - nothing is held once it is released, or its client freed;
 * - no more is reported as lost than was as acquired;
 * - what was started is called back once, by the end of the client.
 *
 * The library's time runs faster than ours, so that the watchdog renews, the
 * doorbell reconnects and leases run out while we look.
 */
#include <pthread.h>
#include <rlock/rlock.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "fuzz.h"
#include "pace.h"
#include "peer.h"

/* All times are the library's. */
#define PACE       20
#define TIMEOUT_MS 60
#define LEASE_MS   120
#define PAUSE_US   (LEASE_MS * 1000 / 3)
#define CALLS_MAX  64

/* Twenty times as much as it seems: the machine may be busy. */
#define OVERRUN_MS 40000

typedef enum kind { HASH, STRING, TIMESTAMP, MULTI, MULTI_APART, RED } kind;

typedef struct session {
    peer *p;
    kind kind;
    rlock_client *client[3];
    rlock *member[2];
    rlock *lk;
    unsigned clients, members;
    unsigned worth; /* grants that it takes to own lk */
    atomic_uint owned, acquired, losses;
    int level;  /* of this thread's hold */
    bool lost;  /* it is known to be */
    bool ended; /* the clients are freed */
    uint64_t token;
    int64_t longest_ms;
    pthread_t other;
    bool has_other;
    rlock_owner *owner; /* of what is started */
    unsigned starts, callbacks;
} session;

/* --- what has to hold ---------------------------------------------------- */

static void must_be_in_time(int64_t began_us, int64_t wait_ms, unsigned clients)
{
    int64_t limit_ms = wait_ms + (2 + clients) * TIMEOUT_MS + OVERRUN_MS;
    MUST(rl_now_us() - began_us <= limit_ms * 1000);
}

static rlock_status must_explain(rlock_status s)
{
    const rlock_error *e = rlock_last_error();
    MUST(s == RLOCK_OK || (e->status == s && *e->message));
    return s;
}

static void look_at_hold(session *s)
{
    int count = rlock_hold_count(s->lk);
    uint64_t token = rlock_token(s->lk);
    MUST(count == 0 || (count == s->level && !s->lost && !s->ended));
    MUST(token == 0 || count > 0);
    MUST(token == 0 || s->token == 0 || token == s->token);
    MUST(rlock_valid_ms(s->lk) <= s->longest_ms);
    s->token = token ? token : s->token;
    s->lost = s->level > 0 && count == 0;
    MUST(!s->lost || !rlock_is_held(s->lk));
}

static void note_owned(session *s)
{
    unsigned owned = atomic_fetch_add(&s->owned, s->worth) + s->worth;
    MUST(owned <= peer_grants(s->p));
}

static void on_event(const rlock_event *ev, void *arg)
{
    session *s = arg;
    MUST(ev->message && ev->name && strlen(ev->name) == ev->name_len);
    if (ev->type == RLOCK_EVENT_LOST)
        atomic_fetch_add(&s->losses, 1);
    if (ev->type == RLOCK_EVENT_ACQUIRED && ev->count == 1)
        atomic_fetch_add(&s->acquired, 1);
}

/* --- calls --------------------------------------------------------------- */

static void acquire(session *s, int64_t wait_ms, int64_t lease_ms)
{
    int64_t began_us = rl_now_us();
    int64_t longest_ms = lease_ms > LEASE_MS ? lease_ms : LEASE_MS;
    if (longest_ms > s->longest_ms)
        s->longest_ms = longest_ms;
    bool was_lost = s->lost;
    rlock_status status = must_explain(rlock_acquire(s->lk, wait_ms, lease_ms));
    must_be_in_time(began_us, wait_ms, s->clients);
    MUST(status != RLOCK_OK || (!was_lost && !s->ended));
    if (status == RLOCK_OK) {
        note_owned(s);
        s->level++;
    }
    look_at_hold(s);
}

static void unlock(session *s)
{
    int64_t began_us = rl_now_us();
    rlock_status status = must_explain(rlock_unlock(s->lk));
    must_be_in_time(began_us, 0, s->clients);
    MUST(status != RLOCK_OK || (s->level > 0 && !s->lost));
    MUST(status != RLOCK_NOT_HELD || s->level == 0 || s->ended);
    s->level -= s->level > 0;
    if (s->level == 0) {
        s->token = 0;
        s->lost = false;
    }
    look_at_hold(s);
}

static void extend(session *s, int64_t lease_ms)
{
    int64_t began_us = rl_now_us();
    if (lease_ms > s->longest_ms)
        s->longest_ms = lease_ms;
    rlock_status status = must_explain(rlock_extend(s->lk, lease_ms));
    must_be_in_time(began_us, 0, s->clients);
    MUST(status != RLOCK_OK || (s->level > 0 && !s->lost && !s->ended));
    MUST(status != RLOCK_LOST || !rlock_is_held(s->lk));
    look_at_hold(s);
}

static void ask(session *s)
{
    bool locked;
    int64_t ttl_ms;
    rlock_holder h;
    int64_t began_us = rl_now_us();
    must_explain(rlock_is_locked(s->lk, &locked));
    must_explain(rlock_ttl(s->lk, &ttl_ms));
    if (must_explain(rlock_holder_info(s->lk, &h, sizeof h)) == RLOCK_OK)
        MUST(strlen(h.raw) < sizeof h.raw && strlen(h.host) < sizeof h.host);
    must_be_in_time(began_us, 0, 3 * s->clients);
    look_at_hold(s);
}

static void look_at_client(session *s)
{
    rlock_stats stats;
    rlock_client *cl = s->client[0];
    if (s->ended)
        return;
    must_explain(rlock_client_ping(cl));
    MUST(rlock_client_stats(cl, &stats, sizeof stats) == RLOCK_OK);
    MUST(stats.waiting_now <= 2); /* the other thread, and what is started */
}

/* Another thread that wants it too. */
static void *compete(void *arg)
{
    session *s = arg;
    int64_t began_us = rl_now_us();
    rlock_status status = must_explain(rlock_acquire(s->lk, 2 * LEASE_MS, 0));
    must_be_in_time(began_us, 2 * LEASE_MS, s->clients);
    if (status == RLOCK_OK) {
        note_owned(s);
        must_explain(rlock_unlock(s->lk));
    }
    MUST(!rlock_is_held(s->lk));
    return NULL;
}

static void join_other(session *s)
{
    if (s->has_other)
        pthread_join(s->other, NULL);
    s->has_other = false;
}

static void start_other(session *s)
{
    join_other(s);
    s->has_other = pthread_create(&s->other, NULL, compete, s) == 0;
    pace_pause_us(PAUSE_US); /* it asks first */
}

/* An owner that acquires, and then unlocks, on this thread's loop. */
static void called_back(rlock *lk, rlock_status status, void *arg)
{
    session *s = arg;
    MUST(lk == s->lk && s->callbacks < s->starts);
    s->callbacks++;
    must_explain(status);
    MUST(!s->ended || !rlock_is_held(lk));
}

static void acquired(rlock *lk, rlock_status status, void *arg)
{
    session *s = arg;
    called_back(lk, status, arg);
    if (status != RLOCK_OK)
        return;
    note_owned(s);
    s->starts +=
        must_explain(rlock_unlock_start(lk, called_back, s)) == RLOCK_OK;
}

static void start_or_dispatch(session *s, bool start)
{
    int64_t began_us = rl_now_us();
    if (start && s->callbacks == s->starts) {
        rlock_owner_set(s->owner);
        s->starts +=
            must_explain(rlock_acquire_start(s->lk, LEASE_MS, RLOCK_WATCHDOG,
                                             acquired, s)) == RLOCK_OK;
        rlock_owner_set(NULL);
    } else {
        MUST(rlock_client_dispatch(s->client[0]) == RLOCK_OK);
    }
    must_be_in_time(began_us, 0, 0);
}

static void take_or_give(session *s, unsigned what)
{
    switch (what) {
    default:
        acquire(s, 0, RLOCK_WATCHDOG);
        break;
    case 5:
        acquire(s, LEASE_MS, RLOCK_WATCHDOG);
        break;
    case 6:
        acquire(s, 0, peer_number(s->p) & INT32_MAX);
        break;
    case 7:
    case 8:
    case 9:
        unlock(s);
        break;
    case 10:
        extend(s, RLOCK_WATCHDOG);
        break;
    case 11:
        extend(s, peer_number(s->p) & INT32_MAX);
        break;
    }
}

static void call(session *s)
{
    unsigned what = peer_choice(s->p, 20);
    switch (what) {
    default:
        take_or_give(s, what);
        break;
    case 12:
        must_explain(rlock_force_unlock(s->lk));
        break;
    case 13:
        ask(s);
        break;
    case 14:
        look_at_client(s);
        break;
    case 15:
        start_other(s);
        break;
    case 16:
        rlock_cancel(s->lk);
        break;
    case 17:
        pace_pause_us(PAUSE_US);
        break;
    case 18:
    case 19:
        start_or_dispatch(s, what == 18);
        break;
    }
    look_at_hold(s);
}

/* --- from begin to end --------------------------------------------------- */

static bool make_client(session *s, unsigned flags)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    void *door = peer_door(s->p);
    if (flags & 32) { /* threads share its connections */
        o.uri = peer_uri(door);
    } else {
        o.connect = peer_connect;
        o.connect_arg = door;
    }
    o.connect_timeout_ms = TIMEOUT_MS;
    o.command_timeout_ms = TIMEOUT_MS;
    o.watchdog_lease_ms = LEASE_MS;
    o.max_hold_ms = flags & 1 ? 3 * LEASE_MS : 0;
    o.redisson_channel = flags & 2;
    o.pool_size = flags & 4 ? 1 : 0;
    o.turn_ms = flags & 64 ? LEASE_MS : 0;
    o.on_event = flags & 8 ? NULL : on_event;
    o.event_arg = s;
    rlock_status status =
        must_explain(rlock_client_new(&o, &s->client[s->clients]));
    s->clients += status == RLOCK_OK;
    return status == RLOCK_OK;
}

static void free_clients(session *s)
{
    join_other(s);
    for (unsigned i = 0; i < s->clients; i++)
        rlock_client_free(s->client[i]);
    s->ended = true;
    MUST(s->callbacks == s->starts);
}

static rlock_status make_multi(session *s)
{
    for (unsigned i = 0; i < 2; i++) {
        char name[] = {(char)('a' + i), '\0'};
        rlock_client *cl = s->client[s->kind == MULTI_APART ? i : 0];
        rlock_status status = rlock_new(cl, name, &s->member[i]);
        if (status != RLOCK_OK)
            return status;
        s->members++;
    }
    s->worth = 2;
    return rlock_multi_new(s->member, 2, &s->lk);
}

static rlock_status make_lock(session *s)
{
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    s->worth = 1;
    switch (s->kind) {
    case HASH:
    case STRING:
    case TIMESTAMP:
        o.layout = (rlock_layout)s->kind;
        return rlock_new_ex(s->client[0], PEER_LOCK, strlen(PEER_LOCK), &o,
                            &s->lk);
    case MULTI:
    case MULTI_APART:
        return make_multi(s);
    case RED:
        break;
    }
    s->worth = 2;
    return rlock_red_new(s->client, 3, PEER_LOCK, &s->lk);
}

static void use_lock(session *s)
{
    for (int i = 0; i < CALLS_MAX && !peer_is_done(s->p); i++)
        call(s);
    if (peer_choice(s->p, 2) == 0) {
        while (s->level > 0)
            unlock(s);
    }
    free_clients(s);
    MUST(s->losses <= s->acquired);
    look_at_hold(s);
    unlock(s);
    rlock_free(s->lk);
}

static void run(session *s, unsigned flags)
{
    static const unsigned clients[] = {1, 1, 1, 1, 2, 3};
    bool ok = true;
    for (unsigned i = 0; i < clients[s->kind] && ok; i++)
        ok = make_client(s, flags);
    if (ok && must_explain(make_lock(s)) == RLOCK_OK)
        use_lock(s);
    else
        free_clients(s);
    while (s->members > 0)
        rlock_free(s->member[--s->members]);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    pace_set(PACE);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    feed in = {data, size};
    session s = {.kind = (kind)feed_choice(&in, RED + 1)};
    unsigned flags = feed_byte(&in);
    feed background = feed_part(&in);
    s.p = peer_start(in, background, !(flags & 16));
    MUST(rlock_owner_new("fuzz", &s.owner) == RLOCK_OK);
    run(&s, flags);
    rlock_owner_free(s.owner);
    peer_stop(s.p);
    return 0;
}
