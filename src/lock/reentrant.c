/*
 * The re-entrant lock: a Redis hash whose field is the holder and whose value
 * is the hold count.
 *
 * Every call follows the same three steps: look the thread's hold up in the
 * table, ask the server with no lock held, note the answer in the table. Only
 * the owning thread counts its hold, so between the steps nobody else changes
 * the level; the watchdog may prolong the hold or find it lost, which the last
 * step takes into account. Scripts are told the level to reach, so an answer
 * that never came can be asked for again.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lock/lock.h"

static rl_engine *engine_of(const rlock *lk)
{
    return &lk->client->engine;
}

static int64_t lease_of(const rl_engine *e, int64_t lease_ms)
{
    return lease_ms == RLOCK_WATCHDOG ? e->set.watchdog_lease_ms : lease_ms;
}

static void emit(const rlock *lk, rlock_event_type type, uint64_t token,
                 int count, int64_t elapsed_us)
{
    rlock_event ev = {.type = type,
                      .name = lk->name,
                      .name_len = lk->len,
                      .token = token,
                      .count = count,
                      .elapsed_ms = elapsed_us / 1000,
                      .message = ""};
    rl_emit(engine_of(lk), &ev);
}

/* The acquire script's call and what it refers to. */
typedef struct acquire_call {
    rl_call call;
    rl_key token, queue, tombstone;
} acquire_call;

static void acquire_call_init(acquire_call *c, const rl_hold *h,
                              int64_t lease_ms, int level, const char *bell,
                              int64_t ticket)
{
    const char *name = rl_hold_name(h);
    c->token = rl_key_token(name, h->name_len);
    c->queue = rl_key_queue(name, h->name_len);
    c->tombstone = rl_key_tombstone(name, h->name_len, h->holder);
    rl_call_init(&c->call, RL_SCRIPT_ACQUIRE, 4);
    rl_call_bytes(&c->call, name, h->name_len);
    rl_call_bytes(&c->call, c->token.text, c->token.len);
    rl_call_bytes(&c->call, c->queue.text, c->queue.len);
    rl_call_bytes(&c->call, c->tombstone.text, c->tombstone.len);
    rl_call_text(&c->call, h->holder);
    rl_call_number(&c->call, lease_ms);
    rl_call_number(&c->call, level);
    rl_call_text(&c->call, bell);
    rl_call_number(&c->call, ticket);
}

/* The acquire script's answer. */
typedef enum verdict { ACQUIRED, BUSY, GONE, FAILED } verdict;

typedef struct grant {
    uint64_t token; /* when ACQUIRED */
    int64_t ttl_ms; /* when BUSY; -1: the holder has no expiry */
    int64_t ticket;
} grant;

/* What no server of ours says: it may have done anything. */
static verdict unexpected(rl_answer *a)
{
    a->outcome = RL_UNKNOWN;
    a->open = true;
    rl_fault_set(&a->fault, RLOCK_EIO, 0, "unexpected reply to an acquire");
    a->fault.transient = false;
    return FAILED;
}

static verdict read_grant(rl_answer *a, int level, grant *g)
{
    const rl_item *item = a->reply.item;
    if (a->outcome != RL_ANSWERED)
        return FAILED;
    long long code =
        a->reply.count > 0 && rl_item_is(&item[0], REDIS_REPLY_INTEGER)
            ? item[0].integer
            : LLONG_MIN;
    if (code == 1 && a->reply.count == 2) {
        long long token = rl_item_number(&item[1]);
        g->token = (uint64_t)token;
        return token > 0 || level > 1 ? ACQUIRED : unexpected(a);
    }
    if (code == 0 && a->reply.count == 3 && level == 1) {
        g->ttl_ms = rl_item_number(&item[1]);
        g->ticket = rl_item_number(&item[2]);
        return BUSY;
    }
    if (code == -1 && level > 1)
        return GONE;
    if (code != -2)
        return unexpected(a);
    a->outcome = RL_NOT_EXECUTED;
    rl_fault_set(&a->fault, RLOCK_EIO, 0, "the acquire was given up");
    a->fault.transient = false;
    return FAILED;
}

/* --- the outermost acquire ---------------------------------------------- */

#define FIRST_PAUSE_US (20 * 1000)
#define LAST_PAUSE_US  (500 * 1000)

/* How often a waiter looks by itself, lest it missed a ring. */
#define FALLBACK_POLL_US (2000 * 1000)

typedef struct attempt {
    rlock *lk;
    rl_engine *e;
    rl_hold *hold; /* the draft */
    int64_t lease_ms;
    bool renewed;
    int64_t began_us, wait_until_us, call_until_us;
    bool contended; /* it had to wait */
    bool asked;     /* the server has been asked */
    bool rung;      /* the last wake-up was a ring */
    bool with_bell; /* the last try gave the bell */
    bool failing;   /* the last try had no answer */
    int64_t pause_us;
    rl_fault fault; /* the last failure */
} attempt;

/*
 * Notes the grant. It is worth nothing when the answer took as long as the
 * lease.
 */
static bool take_over(attempt *a, const rl_answer *ans, uint64_t token)
{
    rl_holds *t = &a->e->holds;
    if (rl_lease_deadline(ans->sent_us, a->lease_ms) <= rl_now_us()) {
        a->hold->doubtful = true;
        rl_fault_set(&a->fault, RLOCK_EIO, 0,
                     "granted, but the answer came after the lease of %lld ms "
                     "had run out",
                     (long long)a->lease_ms);
        return false;
    }
    rl_mutex_lock(&t->mutex);
    rl_hold_grant_locked(t, a->hold, token, ans->sent_us, a->renewed);
    rl_mutex_unlock(&t->mutex);
    return true;
}

static verdict try_once(attempt *a, const char *bell, int64_t ticket, grant *g)
{
    acquire_call c;
    rl_answer ans;
    acquire_call_init(&c, a->hold, a->lease_ms, 1, bell, ticket);
    int64_t until_us = rl_min(a->call_until_us, rl_command_deadline(a->e));
    rl_ask(a->e, &c.call, until_us, &ans);
    verdict v = read_grant(&ans, 1, g);
    a->asked = true;
    a->with_bell = *bell != '\0';
    a->hold->doubtful = a->hold->doubtful || ans.open;
    rl_hold_expect(a->hold, rl_now_us(), a->lease_ms);
    if (v == FAILED)
        a->fault = ans.fault;
    else if (v == ACQUIRED && !take_over(a, &ans, g->token))
        v = FAILED;
    a->failing = v == FAILED;
    return v;
}

static void contend(attempt *a)
{
    if (a->contended)
        return;
    a->contended = true;
    rl_add(&a->e->stats.acquires_contended, 1);
    rl_add(&a->e->stats.waiting_now, 1);
    emit(a->lk, RLOCK_EVENT_CONTENDED, 0, 0, 0);
}

/*
 * After a failure: when to try again, or RL_NEVER: not at all. An outage is
 * survived for as long as a lease would be.
 */
static int64_t retry_at(attempt *a, rl_waiter *w)
{
    int64_t now_us = rl_now_us();
    int64_t since_us = rl_waiter_failed(&a->e->rooms, w);
    if (!a->fault.transient ||
        now_us - since_us > a->e->set.watchdog_lease_ms * 1000)
        return RL_NEVER;
    a->pause_us =
        rl_min(rl_max(a->pause_us * 2, FIRST_PAUSE_US), LAST_PAUSE_US);
    return now_us + rl_jitter(a->pause_us);
}

/* After "busy": when to look again if nobody rings. */
static int64_t look_at(const grant *g)
{
    int64_t now_us = rl_now_us();
    int64_t at_us = now_us + rl_jitter(FALLBACK_POLL_US);
    if (g->ttl_ms >= 0)
        at_us = rl_min(at_us, rl_after_ms(now_us, g->ttl_ms + 1));
    return at_us;
}

/*
 * The front's try. RLOCK_OK: owned; RLOCK_BUSY: not now, *again_us is when to
 * look again; anything else is final.
 */
static rlock_status try_in_front(attempt *a, rl_waiter *w, int64_t *again_us)
{
    rl_engine *e = a->e;
    grant g;
    const char *bell = rl_doorbell_bell(&e->doorbell);
    int64_t ticket = *bell ? rl_waiter_ticket(&e->rooms, w) : 0;
    verdict v = try_once(a, bell, ticket, &g);
    if (v == ACQUIRED)
        return RLOCK_OK;
    if (v == FAILED) {
        *again_us = retry_at(a, w);
        return *again_us == RL_NEVER ? a->fault.status : RLOCK_BUSY;
    }
    a->pause_us = 0;
    rl_waiter_answered(&e->rooms, w);
    if (a->rung)
        rl_add(&e->stats.wakeups_futile, 1);
    if (*bell)
        rl_waiter_set_ticket(&e->rooms, w, g.ticket);
    else
        rl_doorbell_start(e);
    *again_us = look_at(&g);
    return RLOCK_BUSY;
}

/* The wait is over without success, unless the server was never asked. */
static rlock_status time_is_up(attempt *a)
{
    grant g;
    if (!a->asked && try_once(a, "", 0, &g) == ACQUIRED)
        return RLOCK_OK;
    return a->failing ? a->fault.status : RLOCK_TIMEOUT;
}

static rlock_status stand_in_line(attempt *a, rl_waiter *w)
{
    rl_rooms *rooms = &a->e->rooms;
    int64_t yield_us = rl_waiter_yields_until(rooms, w);
    for (;;) {
        int64_t until_us = a->wait_until_us;
        if (yield_us > rl_now_us()) {
            until_us = rl_min(until_us, yield_us);
        } else if (rl_waiter_is_front(rooms, w)) {
            int64_t again_us;
            rlock_status s = try_in_front(a, w, &again_us);
            if (s != RLOCK_BUSY)
                return s;
            until_us = rl_min(until_us, again_us);
            contend(a);
        } else {
            contend(a);
        }
        rl_wake why = rl_waiter_sleep(rooms, w, until_us);
        if (why == RL_WAKE_CLOSE)
            return RLOCK_ECLOSED;
        if (why == RL_WAKE_CANCEL)
            return RLOCK_CANCELED;
        a->rung = why == RL_WAKE_RUNG;
        rl_add(&a->e->stats.wakeups, a->rung);
        if (rl_now_us() >= a->wait_until_us)
            return time_is_up(a);
    }
}

static rlock_status wait_for_turn(attempt *a)
{
    rl_engine *e = a->e;
    rlock *lk = a->lk;
    rl_waiter w;
    if (!rl_waiter_enter(&e->rooms, &w, lk->name, lk->len, lk))
        return rl_fault_set(&a->fault, RLOCK_ENOMEM, 0, "out of memory");
    rlock_status s = stand_in_line(a, &w);
    if (a->contended) {
        rl_add(&e->stats.wait_us_total, (uint64_t)(rl_now_us() - a->began_us));
        rl_sub(&e->stats.waiting_now, 1);
    }
    bool unqueued = s == RLOCK_OK && a->with_bell;
    if (rl_waiter_leave(&e->rooms, &w, unqueued))
        rl_leave_queue(e, lk->name, lk->len,
                       rl_min(a->call_until_us, rl_command_deadline(e)));
    return s;
}

static rlock_status try_now(attempt *a)
{
    grant g;
    verdict v = try_once(a, "", 0, &g);
    if (v == ACQUIRED)
        return RLOCK_OK;
    return v == FAILED ? a->fault.status : RLOCK_BUSY;
}

/* What the server may have, or may yet get, of this attempt is undone. */
static void give_up(attempt *a)
{
    rl_holds *t = &a->e->holds;
    rl_mutex_lock(&t->mutex);
    if (a->hold->doubtful)
        rl_hold_undo_locked(t, a->hold, rl_now_us());
    else
        rl_hold_unref_locked(t, a->hold);
    rl_mutex_unlock(&t->mutex);
}

static rlock_status explain(const attempt *a, rlock_status s)
{
    switch (s) {
    case RLOCK_BUSY:
    case RLOCK_TIMEOUT:
    case RLOCK_CANCELED:
    case RLOCK_ECLOSED:
        return rl_lock_error(a->lk, s, rlock_status_str(s));
    default:
        return rl_lock_fail(a->lk, &a->fault);
    }
}

static rl_hold *new_draft(rlock *lk, int64_t lease_ms)
{
    rl_engine *e = engine_of(lk);
    char holder[RL_HOLDER_MAX];
    if (!rl_owner_watch() || !rl_holder_id(holder, e->set.process))
        return NULL;
    rl_hold *h = rl_hold_new(&e->holds, lk->name, lk->len, holder);
    if (h)
        h->lease_ms = lease_ms;
    return h;
}

static rlock_status acquire_first(rlock *lk, int64_t wait_ms, int64_t lease_ms)
{
    rl_engine *e = engine_of(lk);
    int64_t now_us = rl_now_us();
    attempt a = {.lk = lk,
                 .e = e,
                 .lease_ms = lease_of(e, lease_ms),
                 .renewed = lease_ms == RLOCK_WATCHDOG,
                 .began_us = now_us,
                 .wait_until_us = rl_after_ms(now_us, wait_ms)};
    a.call_until_us = rl_after_ms(a.wait_until_us, e->set.command_timeout_ms);
    if (!rl_engine_start(e))
        return rl_lock_error(lk, RLOCK_ENOMEM,
                             "the watchdog thread cannot be started");
    a.hold = new_draft(lk, a.lease_ms);
    if (!a.hold)
        return rl_lock_error(lk, RLOCK_ENOMEM, "out of memory or randomness");
    rlock_status s = wait_ms == 0 ? try_now(&a) : wait_for_turn(&a);
    if (s != RLOCK_OK) {
        give_up(&a);
        return explain(&a, s);
    }
    emit(lk, RLOCK_EVENT_ACQUIRED, a.hold->token, 1, rl_now_us() - now_us);
    return RLOCK_OK;
}

/* --- re-entry, extend, release ------------------------------------------ */

#define WAKE_UP_US       200
#define LONGEST_YIELD_US (20 * 1000)

static rlock_status lost(const rlock *lk, rl_loss why)
{
    return rl_lock_error(lk, RLOCK_LOST, rl_loss_text(why));
}

/*
 * The thread's own hold, referenced; to be put back. NULL: it has none.
 * *valid: it is not lost.
 */
static rl_hold *pick_up(const rlock *lk, bool *valid)
{
    rl_holds *t = &engine_of(lk)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold *h = rl_holds_mine_locked(t, lk->name, lk->len);
    if (h) {
        h->refs++;
        *valid = h->state == RL_HELD;
    }
    rl_mutex_unlock(&t->mutex);
    return h;
}

static void put_back(const rlock *lk, rl_hold *h)
{
    rl_holds *t = &engine_of(lk)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_unref_locked(t, h);
    rl_mutex_unlock(&t->mutex);
}

/* The server says that the hold is gone; says so, or why it was lost before. */
static rl_loss note_loss(const rlock *lk, rl_hold *h, rl_loss why)
{
    rl_holds *t = &engine_of(lk)->holds;
    int64_t now_us = rl_now_us();
    rl_mutex_lock(&t->mutex);
    if (rl_hold_is_valid_locked(t, h, now_us))
        rl_hold_lose_locked(t, h, why, now_us);
    why = h->loss;
    rl_mutex_unlock(&t->mutex);
    return why;
}

/* A call failed: because of the hold, should that have been lost meanwhile. */
static rlock_status failed(rlock *lk, rl_hold *h, const rl_fault *f)
{
    rl_holds *t = &engine_of(lk)->holds;
    if (f->status == RLOCK_EWRONGTYPE) {
        note_loss(lk, h, RL_LOSS_FOREIGN);
        return rl_lock_fail(lk, f);
    }
    rl_mutex_lock(&t->mutex);
    bool valid = rl_hold_is_valid_locked(t, h, rl_now_us());
    rl_loss why = h->loss;
    rl_mutex_unlock(&t->mutex);
    return valid ? rl_lock_fail(lk, f) : lost(lk, why);
}

static bool count_up(const rlock *lk, rl_hold *h, const rl_answer *ans,
                     int64_t lease_ms, bool renewed)
{
    rl_holds *t = &engine_of(lk)->holds;
    rl_mutex_lock(&t->mutex);
    if (renewed && !h->renewed)
        rl_hold_start_renewal_locked(t, h, ans->sent_us);
    rl_hold_prolong_locked(t, h, ans->sent_us, lease_ms);
    bool valid = rl_hold_is_valid_locked(t, h, rl_now_us());
    h->count += valid;
    rl_mutex_unlock(&t->mutex);
    return valid;
}

/* No later than the hold itself could still be believed in. */
static int64_t reentry_deadline(rl_engine *e, rl_hold *h, int64_t lease_ms)
{
    rl_mutex_lock(&e->holds.mutex);
    int64_t until_us = rl_min(h->deadline_us, rl_command_deadline(e));
    rl_hold_expect(h, until_us, lease_ms);
    rl_mutex_unlock(&e->holds.mutex);
    return until_us;
}

static rlock_status reenter(rlock *lk, rl_hold *h, int64_t lease_ms)
{
    rl_engine *e = engine_of(lk);
    int64_t began_us = rl_now_us(), lease = lease_of(e, lease_ms);
    acquire_call c;
    rl_answer ans;
    grant g;
    if (h->count == INT_MAX)
        return rl_lock_error(lk, RLOCK_EINVAL, "the hold count is at its end");
    acquire_call_init(&c, h, lease, h->count + 1, "", 0);
    rl_ask(e, &c.call, reentry_deadline(e, h, lease), &ans);
    switch (read_grant(&ans, h->count + 1, &g)) {
    case ACQUIRED:
        if (!count_up(lk, h, &ans, lease, lease_ms == RLOCK_WATCHDOG))
            return lost(lk, note_loss(lk, h, RL_LOSS_EXPIRED));
        emit(lk, RLOCK_EVENT_ACQUIRED, h->token, h->count,
             rl_now_us() - began_us);
        return RLOCK_OK;
    case BUSY:
    case GONE:
        return lost(lk, note_loss(lk, h, RL_LOSS_GONE));
    case FAILED:
        break;
    }
    return failed(lk, h, &ans.fault);
}

static rlock_status reentrant_acquire(rlock *lk, int64_t wait_ms,
                                      int64_t lease_ms)
{
    bool valid;
    rl_hold *h = pick_up(lk, &valid);
    if (!h)
        return acquire_first(lk, wait_ms, lease_ms);
    rlock_status s = valid ? reenter(lk, h, lease_ms) : lost(lk, h->loss);
    put_back(lk, h);
    return s;
}

/*
 * The first step of an unlock undoes the level, whatever comes of it. Returns
 * the level that is left, and what the hold was before. At 0 the hold is out
 * of the table and its reference the caller's.
 */
static int count_down(const rlock *lk, rl_hold *h, bool *valid)
{
    rl_holds *t = &engine_of(lk)->holds;
    int64_t now_us = rl_now_us();
    rl_mutex_lock(&t->mutex);
    *valid = rl_hold_is_valid_locked(t, h, now_us);
    int level = --h->count;
    if (level == 0) {
        rl_hold_end_locked(t, h, now_us);
        rl_owner_count(-1);
    }
    rl_mutex_unlock(&t->mutex);
    return level;
}

/* Lets go of a hold that is out of the table. */
static void discard(rl_engine *e, rl_hold *h, bool undo)
{
    rl_mutex_lock(&e->holds.mutex);
    if (undo)
        rl_hold_undo_locked(&e->holds, h, rl_now_us());
    else
        rl_hold_unref_locked(&e->holds, h);
    rl_mutex_unlock(&e->holds.mutex);
}

/* The server does not know the hold any more, after it left the table. */
static rlock_status lost_at_release(rlock *lk, rl_hold *h, rl_loss why)
{
    rl_holds *t = &engine_of(lk)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_report_loss_locked(t, h, why);
    rl_mutex_unlock(&t->mutex);
    return lost(lk, why);
}

/*
 * Another client was rung. It has the same way to the server as we, and a
 * thread to wake.
 */
static void make_way(rlock *lk, int64_t sent_us)
{
    int64_t now_us = rl_now_us();
    int64_t yield_us = rl_min(now_us - sent_us + WAKE_UP_US, LONGEST_YIELD_US);
    rl_rooms_yield(&engine_of(lk)->rooms, lk->name, lk->len, now_us + yield_us);
}

/* The last unlock. What stays open is left to the watchdog. */
static rlock_status release(rlock *lk, rl_hold *h)
{
    rl_engine *e = engine_of(lk);
    rl_release r;
    rl_answer a;
    rl_release_init(&r, h, 0);
    rl_ask(e, &r.call, rl_command_deadline(e), &a);
    if (a.outcome == RL_ANSWERED) {
        long long code = a.reply.top.integer % RL_UNBURIED;
        discard(e, h, a.reply.top.integer >= RL_UNBURIED);
        if (code == 2)
            make_way(lk, a.sent_us);
        /* Gone, after a try whose answer was lost: it was that one. */
        return code > 0 || a.open ? RLOCK_OK
                                  : lost_at_release(lk, h, RL_LOSS_GONE);
    }
    bool foreign = a.fault.status == RLOCK_EWRONGTYPE;
    discard(e, h, !foreign);
    if (foreign)
        lost_at_release(lk, h, RL_LOSS_FOREIGN);
    return rl_lock_fail(lk, &a.fault);
}

/* An unlock that leaves a level. */
static rlock_status release_level(rlock *lk, rl_hold *h, int level)
{
    rl_engine *e = engine_of(lk);
    rl_release r;
    rl_answer a;
    rl_release_init(&r, h, level);
    rl_ask(e, &r.call, rl_command_deadline(e), &a);
    if (a.outcome == RL_ANSWERED)
        return a.reply.top.integer == 1
                   ? RLOCK_OK
                   : lost(lk, note_loss(lk, h, RL_LOSS_GONE));
    return failed(lk, h, &a.fault);
}

static rlock_status unlock_lost(rlock *lk, rl_hold *h, int level)
{
    rl_engine *e = engine_of(lk);
    rl_loss why = h->loss;
    /*
     * A renewal that was given up may have kept it alive on the server, and an
     * acquire that is late would take it anew.
     */
    bool lingers = (why == RL_LOSS_EXPIRED || why == RL_LOSS_TOO_LONG) &&
                   rl_now_us() < h->gone_us;
    if (level == 0)
        discard(e, h, lingers || h->doubtful);
    return lost(lk, why);
}

static rlock_status unlock(rlock *lk, rl_hold *h)
{
    bool valid;
    int level = count_down(lk, h, &valid);
    if (!valid)
        return unlock_lost(lk, h, level);
    rlock_status s = level == 0 ? release(lk, h) : release_level(lk, h, level);
    if (s == RLOCK_OK)
        emit(lk, RLOCK_EVENT_RELEASED, h->token, level,
             rl_now_us() - h->began_us);
    return s;
}

static rlock_status reentrant_unlock(rlock *lk)
{
    bool valid;
    rl_hold *h = pick_up(lk, &valid);
    if (!h)
        return rl_lock_error(lk, RLOCK_NOT_HELD,
                             "this thread does not hold it");
    rlock_status s = unlock(lk, h);
    put_back(lk, h);
    return s;
}

/*
 * Pauses renewal, and lets one that is under way land: a renewal that overtook
 * the extend would undo it. Returns until when to ask, which is not long, or 0:
 * it did not land in time.
 */
static int64_t pause_renewal(rl_engine *e, rl_hold *h, int64_t lease_ms)
{
    rl_holds *t = &e->holds;
    rl_mutex_lock(&t->mutex);
    int64_t until_us = rl_min(h->deadline_us, rl_command_deadline(e));
    rl_hold_pause_renewal_locked(t, h);
    while (h->in_flight && rl_now_us() < until_us)
        rl_cond_wait_until(&t->landed, &t->mutex, until_us);
    if (h->in_flight)
        until_us = 0;
    else if (h->renewed)
        until_us = rl_min(until_us, rl_watchdog_attempt_end(e));
    rl_hold_expect(h, until_us, lease_ms);
    rl_mutex_unlock(&t->mutex);
    return until_us;
}

/* Goes on as before; at once, for nothing was renewed meanwhile. */
static void resume_renewal_locked(rl_holds *t, rl_hold *h)
    RL_REQUIRES(&t->mutex)
{
    if (h->renewed)
        rl_hold_start_renewal_locked(
            t, h, rl_now_us() - rl_hold_renewal_period_us(t, h));
    h->paused = false;
}

/* Puts the answer down. */
static void note_extension(rl_engine *e, rl_hold *h, const rl_answer *a,
                           int64_t before_us, int64_t lease_ms, bool renewed)
{
    rl_holds *t = &e->holds;
    rl_mutex_lock(&t->mutex);
    if (a->open)
        rl_hold_cap_locked(t, h, before_us, lease_ms);
    if (a->outcome != RL_ANSWERED || a->reply.top.integer != 1) {
        resume_renewal_locked(t, h);
    } else {
        if (renewed)
            rl_hold_start_renewal_locked(t, h, a->sent_us);
        else
            rl_hold_stop_renewal_locked(t, h);
        rl_hold_set_lease_locked(t, h, a->sent_us, lease_ms);
    }
    rl_mutex_unlock(&t->mutex);
}

static rlock_status extended(rlock *lk, rl_hold *h, int64_t lease_ms,
                             bool renewed)
{
    rl_holds *t = &engine_of(lk)->holds;
    rl_mutex_lock(&t->mutex);
    bool valid = rl_hold_is_valid_locked(t, h, rl_now_us());
    bool capped = !renewed && h->cap_ms < lease_ms;
    rl_loss why = h->loss;
    rl_mutex_unlock(&t->mutex);
    if (!valid)
        return lost(lk, why);
    if (capped)
        return rl_lock_error(lk, RLOCK_EIO,
                             "an earlier extend that was never answered may "
                             "still arrive and shorten the lease");
    return RLOCK_OK;
}

static rlock_status extend(rlock *lk, rl_hold *h, int64_t wanted_ms)
{
    rl_engine *e = engine_of(lk);
    int64_t lease_ms = lease_of(e, wanted_ms);
    bool renewed = wanted_ms == RLOCK_WATCHDOG;
    rl_call c;
    rl_answer a = {.outcome = RL_NOT_EXECUTED};
    int64_t until_us = pause_renewal(e, h, lease_ms);
    int64_t before_us = rl_now_us();
    rl_call_init(&c, RL_SCRIPT_EXTEND, 1);
    rl_call_bytes(&c, lk->name, lk->len);
    rl_call_text(&c, h->holder);
    rl_call_number(&c, lease_ms);
    if (until_us)
        rl_ask(e, &c, until_us, &a);
    else
        rl_fault_set(&a.fault, RLOCK_EIO, 0, "a renewal does not end");
    note_extension(e, h, &a, before_us, lease_ms, renewed);
    if (a.outcome == RL_ANSWERED && a.reply.top.integer == 1)
        return extended(lk, h, lease_ms, renewed);
    if (a.outcome == RL_ANSWERED)
        return lost(lk, note_loss(lk, h, RL_LOSS_GONE));
    return failed(lk, h, &a.fault);
}

static rlock_status reentrant_extend(rlock *lk, int64_t lease_ms)
{
    bool valid;
    rl_hold *h = pick_up(lk, &valid);
    if (!h)
        return rl_lock_error(lk, RLOCK_NOT_HELD,
                             "this thread does not hold it");
    rlock_status s = valid ? extend(lk, h, lease_ms) : lost(lk, h->loss);
    put_back(lk, h);
    return s;
}

/* --- what needs no hold -------------------------------------------------- */

static rlock_status reentrant_force_unlock(rlock *lk)
{
    rl_engine *e = engine_of(lk);
    rl_key queue = rl_key_queue(lk->name, lk->len);
    rl_key redisson = rl_key_redisson(lk->name, lk->len);
    rl_call c;
    rl_answer a;
    rl_call_init(&c, RL_SCRIPT_FORCE_RELEASE, 2);
    rl_call_bytes(&c, lk->name, lk->len);
    rl_call_bytes(&c, queue.text, queue.len);
    rl_call_bytes(&c, redisson.text, redisson.len);
    rl_call_bytes(&c, lk->name, lk->len);
    /* Asked twice, it could free the lock of whoever was woken by the first. */
    c.only_once = true;
    rl_ask(e, &c, rl_command_deadline(e), &a);
    if (a.outcome != RL_ANSWERED)
        return rl_lock_fail(lk, &a.fault);
    return a.reply.top.integer == 1
               ? RLOCK_OK
               : rl_lock_error(lk, RLOCK_NOT_HELD, "nobody holds it");
}

static void reentrant_cancel(rlock *lk)
{
    rl_rooms_cancel(&engine_of(lk)->rooms, lk->name, lk->len, lk);
}

static rl_view reentrant_view(rlock *lk)
{
    rl_holds *t = &engine_of(lk)->holds;
    rl_view v = {0};
    rl_mutex_lock(&t->mutex);
    rl_hold *h = rl_holds_mine_locked(t, lk->name, lk->len);
    if (h && h->state == RL_HELD) {
        v.count = h->count;
        v.valid_ms = rl_max(0, (h->deadline_us - rl_now_us()) / 1000);
        v.token = h->token;
    }
    rl_mutex_unlock(&t->mutex);
    return v;
}

/* The last colon before this one, or NULL. */
static const char *colon_before(const char *text, const char *end)
{
    while (end > text && *--end != ':')
        ;
    return end > text ? end : NULL;
}

/* host:pid:tid:uuid; false: another program wrote the field. */
static bool parse_holder(rlock_holder *out)
{
    const char *raw = out->raw, *end = raw + strlen(raw);
    const char *uuid = colon_before(raw, end);
    const char *tid = uuid ? colon_before(raw, uuid) : NULL;
    const char *pid = tid ? colon_before(raw, tid) : NULL;
    if (!pid || end - uuid - 1 != RL_UUID_LEN ||
        (size_t)(pid - raw) >= sizeof out->host)
        return false;
    char *rest;
    long long pid_number = strtoll(pid + 1, &rest, 10);
    if (rest != tid || rest == pid + 1)
        return false;
    long long tid_number = strtoll(tid + 1, &rest, 10);
    if (rest != uuid || rest == tid + 1)
        return false;
    out->pid = pid_number;
    out->tid = tid_number;
    memcpy(out->host, raw, (size_t)(pid - raw));
    memcpy(out->hold_id, uuid + 1, RL_UUID_LEN + 1);
    return true;
}

static rlock_status reentrant_inspect(rlock *lk, rlock_holder *out)
{
    rl_engine *e = engine_of(lk);
    rl_call c;
    rl_answer a;
    rl_call_init(&c, RL_SCRIPT_INSPECT, 1);
    rl_call_bytes(&c, lk->name, lk->len);
    rl_ask(e, &c, rl_command_deadline(e), &a);
    if (a.outcome != RL_ANSWERED)
        return rl_lock_fail(lk, &a.fault);
    if (a.reply.count == 0)
        return RLOCK_NOT_HELD;
    const rl_item *item = a.reply.item;
    if (a.reply.count != 3 || !item[0].str || item[0].len >= sizeof out->raw)
        return rl_lock_error(lk, RLOCK_EIO, "unexpected reply to inspect");
    memcpy(out->raw, item[0].str, item[0].len + 1);
    out->count = rl_item_number(&item[1]);
    out->ttl_ms = rl_item_number(&item[2]);
    parse_holder(out);
    return RLOCK_OK;
}

const rl_lock_kind rl_reentrant = {
    .acquire = reentrant_acquire,
    .unlock = reentrant_unlock,
    .extend = reentrant_extend,
    .force_unlock = reentrant_force_unlock,
    .cancel = reentrant_cancel,
    .view = reentrant_view,
    .inspect = reentrant_inspect,
};
