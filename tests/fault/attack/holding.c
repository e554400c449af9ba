#include "holding.h"

#include <string.h>

#include "calls.h"
#include "locks.h"
#include "loop.h"
#include "queued.h"
#include "witness.h"
#include "worker.h"

enum {
    STAY_CHECK_US = 10000,
    OUTSTAY_MS = 50,     /* that somebody stays longer than the lease */
    LATE_US = 50000,     /* of an answer */
    LINGER_US = 1000000, /* an undoing or a renewal ends meanwhile */
    VISITS_MAX = 1 + MEMBERS_MAX
};

/*
 * What a thread holds by one acquire. A Multi lock is a visit to the whole and
 * to each member that was not held before; all end together.
 */
typedef struct holding {
    const plan *p;
    int n;
    visit visit[VISITS_MAX];
    rlock_permit *permit; /* of a semaphore */
} holding;

/* --- what was not granted ------------------------------------------------ */

/* Who asks does not hold the lock: what it finds is to be undone soon. */
static void look_for_left_over(int lock)
{
    rlock_holder first, again;
    int64_t from_us = attack_now_us();
    if (!call_is_mine(lock, &first))
        return;
    pause_us(LINGER_US);
    if (call_is_mine(lock, &again) && strcmp(first.hold_id, again.hold_id) == 0)
        worker_notice(NOTE_LEFT, lock, from_us, attack_now_us(), 0);
}

/*
 * It may have been lost, or abandoned, before it was let go of, which is told
 * then. With which token it was granted, a client that is closed does not tell.
 */
static void note_taken(int lock)
{
    uint64_t token = granted_token(lock);
    if (token || me.closed)
        worker_notice(NOTE_TAKEN, lock, 0, 0, token);
}

/* Nothing of it stays taken but what was held before. */
static void look_for_left_overs(const plan *p)
{
    int members[MEMBERS_MAX];
    int n = lock_members(p->lock, members);
    if (lock_kind_of(p->lock) == LOCK_PERMIT) /* whose they are, nobody tells */
        return;
    note_taken(p->lock);
    if (n == 0)
        look_for_left_over(p->lock);
    for (int i = 0; i < n; i++) {
        note_taken(members[i]);
        if (members[i] != p->before)
            look_for_left_over(members[i]);
    }
}

/* --- writing it down ----------------------------------------------------- */

/* How a hold begins, but for its token. */
static hold *new_hold(const plan *p, int lock, int thread, int64_t asked_us)
{
    hold *r = history_hold(me.h);
    r->asked_us = asked_us;
    r->granted_us = r->held_us = attack_now_us();
    r->lease_ms = p->lease_ms;
    r->stood_us = stood_us();
    r->permits = (uint8_t)p->permits;
    r->lock = (uint8_t)lock;
    r->thread = (uint8_t)thread;
    r->levels = 1;
    return r;
}

static void add_visit(holding *all, hold *r)
{
    visit *v = &all->visit[all->n++];
    *v = (visit){.a = me.a, .h = me.h, .r = r, .lk = me.outer[all->p->lock]};
    v->permit = all->permit;
    v->me = (uint64_t)(me.life + 1) << 32 | (uint64_t)(r - me.h->holds);
}

/*
 * Of each grant an event tells whom it was granted to. If there was no memory for
 * it, the lock tells its token. 0: it has been lost meanwhile.
 */
static uint64_t token_of(int lock)
{
    uint64_t token = granted_token(lock);
    return token ? token : rlock_token(me.outer[lock]);
}

static void begin_one(holding *all, hold *r)
{
    if (!granted_token(r->lock))
        worker_notice(NOTE_UNHEARD, r->lock, r->asked_us, r->granted_us, 0);
    atomic_store(&r->token, token_of(r->lock));
    remember(r);
    add_visit(all, r);
}

/* Permits have no token: it is a number of ours. */
static void begin_permits(holding *all, hold *r)
{
    atomic_store(&r->token, (uint64_t)(r - me.h->holds) + 1);
    add_visit(all, r);
}

/* A Red lock among the members tells of its end by itself. */
static void begin_member(holding *all, int member, hold *whole)
{
    hold *r = new_hold(all->p, member, whole->thread, whole->asked_us);
    r->granted_us = r->held_us = whole->granted_us;
    if (lock_kind_of(member) == LOCK_RED)
        r->shared = whole->mixed = true;
    else
        r->whole = (uint32_t)(whole - me.h->holds) + 1;
    begin_one(all, r);
}

static void begin_members(holding *all, hold *whole)
{
    int members[MEMBERS_MAX];
    int n = lock_members(all->p->lock, members);
    uint64_t largest = 0, token = rlock_token(me.outer[all->p->lock]);
    bool unknown = false;
    for (int i = 0; i < n; i++) {
        uint64_t one = token_of(members[i]);
        unknown = unknown || !one;
        if (one > largest)
            largest = one;
    }
    if (token && token != largest && !unknown)
        worker_notice(NOTE_LARGEST, all->p->lock, 0, (int64_t)token, largest);
    whole->shared = true;
    /* Whose the loss of an unknown one was, its event does not tell. */
    whole->mixed = all->p->before >= 0 || unknown;
    atomic_store(&whole->token, largest);
    add_visit(all, whole);
    for (int i = 0; i < n; i++)
        if (members[i] != all->p->before)
            begin_member(all, members[i], whole);
}

static void begin_all(holding *all, hold *r)
{
    switch (lock_kind_of(r->lock)) {
    case LOCK_MULTI:
        begin_members(all, r);
        break;
    case LOCK_PERMIT:
        begin_permits(all, r);
        break;
    default:
        begin_one(all, r);
    }
    for (int i = 0; i < all->n; i++)
        witness_enter(&all->visit[i]);
}

/* The outermost acquire; false: not granted. */
static bool begin_holding(holding *all, const plan *p, int thread)
{
    all->p = p;
    all->n = 0;
    all->permit = NULL;
    forget_grants();
    int64_t asked_us = attack_now_us();
    rlock_status s = lock_kind_of(p->lock) == LOCK_PERMIT
                         ? call_take(p, &all->permit)
                         : call_acquire(me.outer[p->lock], p, false);
    if (s != RLOCK_OK) {
        look_for_left_overs(p);
        return false;
    }
    hold *r = new_hold(p, p->lock, thread, asked_us);
    atomic_fetch_add(&me.a->grants[lock_kind_of(p->lock)], 1);
    if (me.on_loop)
        atomic_fetch_add(&me.a->loop_grants[lock_kind_of(p->lock)], 1);
    begin_all(all, r);
    return true;
}

/* --- while it is held ---------------------------------------------------- */

/* Each visit has something to say about it. */
static bool check(holding *all)
{
    bool held = true;
    for (int i = 0; i < all->n; i++)
        held = witness_check(&all->visit[i]) && held;
    return held;
}

static void prolong(holding *all)
{
    for (int i = 0; i < all->n; i++)
        witness_prolong(&all->visit[i]);
}

static void stay(holding *all, int64_t us)
{
    int64_t until_us = attack_now_us() + us;
    while (check(all) && attack_now_us() < until_us &&
           !atomic_load(&me.a->stop)) {
        pause_us(STAY_CHECK_US);
    }
}

static void work(holding *all)
{
    stay(all, all->p->stay_us);
    if (!check(all))
        return;
    for (int i = 0; i < all->n; i++)
        witness_update(&all->visit[i]);
    check(all);
}

static void extend(holding *all)
{
    rlock_status s = call_extend(me.outer[all->p->lock], all->permit, all->p);
    for (int i = 0; i < all->n; i++)
        witness_extended(&all->visit[i], all->p->extend_ms, s == RLOCK_OK);
    stay(all, all->p->after_us);
}

/* A function that locks, called by one that has the lock. */
static void nest(holding *all, int level)
{
    const plan *p = all->p;
    hold *r = all->visit[0].r;
    rlock *lk = me.inner[p->lock];
    if (level == p->levels || call_acquire(lk, p, true) != RLOCK_OK) {
        work(all);
        return;
    }
    prolong(all);
    atomic_fetch_add(&me.a->reentries[lock_kind_of(p->lock)], 1);
    r->levels = (uint8_t)(level + 1);
    uint64_t token = rlock_token(lk);
    int count = rlock_hold_count(lk);
    uint64_t known = atomic_load(&r->token); /* 0: no event told of the grant */
    bool wrong = (known && token != known) || count != level + 1;
    if (wrong && check(all))
        worker_notice(NOTE_REENTRY, p->lock, 0, (int64_t)token,
                      (uint64_t)count);
    nest(all, level + 1);
    call_unlock(lk, p->lock);
    work(all); /* the lock is still ours */
}

/* --- letting go ---------------------------------------------------------- */

static void end_hold(visit *v, rlock_status s)
{
    hold *r = v->r;
    if (s == RLOCK_OK && v->lost)
        worker_notice(NOTE_REVIVED, r->lock, 0, 0, 1);
    if (!v->lost)
        r->over_us = attack_now_us();
    r->end = s == RLOCK_OK                              ? HOLD_RELEASED
             : me.closed                                ? HOLD_CLOSED
             : s == RLOCK_LOST || s == RLOCK_EWRONGTYPE ? HOLD_LOST
             : v->lost                                  ? HOLD_LOST
                                                        : HOLD_UNKNOWN;
}

/*
 * One that is let go of together with others. Their answer, if it is not OK,
 * may be about any of them; what this one knows by itself it has been asked
 * before.
 */
static void end_shared(visit *v, rlock_status s, bool held)
{
    hold *r = v->r;
    v->lost = !held;
    r->over_us = attack_now_us();
    r->end = me.closed       ? HOLD_CLOSED
             : !held         ? HOLD_LOST
             : s == RLOCK_OK ? HOLD_RELEASED
                             : HOLD_UNKNOWN;
}

/* Ends by itself, though its unlock is that of a Multi lock? */
static bool ends_apart(const visit *v)
{
    return v->r->shared && lock_kind_of(v->r->lock) != LOCK_MULTI;
}

static void end_holding(holding *all)
{
    bool held[VISITS_MAX];
    for (int i = 0; i < all->n; i++) {
        witness_leave(&all->visit[i]);
        held[i] = rlock_is_held(me.outer[all->visit[i].r->lock]);
    }
    rlock_status s = all->permit
                         ? call_give_back(all->permit, all->p->lock)
                         : call_unlock(me.outer[all->p->lock], all->p->lock);
    for (int i = 0; i < all->n; i++) {
        if (ends_apart(&all->visit[i]))
            end_shared(&all->visit[i], s, held[i]);
        else
            end_hold(&all->visit[i], s);
    }
}

/*
 * Whoever had to wait long for the answer stays to the end of the lease, which
 * had begun long before.
 */
static void stay_if_late(plan *p, const hold *r)
{
    bool late = r->granted_us - r->asked_us > p->wait_ms * 1000 + LATE_US;
    if (late && p->lease_ms > 0)
        p->stay_us = (p->lease_ms + OUTSTAY_MS) * 1000;
}

/* What is lost stays lost, whatever a renewal is answered now. */
static void linger(holding *all)
{
    int64_t until_us = attack_now_us() + LINGER_US;
    while (!check(all) && attack_now_us() < until_us && !me.closed &&
           !atomic_load(&me.a->stop))
        pause_us(STAY_CHECK_US);
}

static void go_through(holding *all)
{
    nest(all, 1);
    if (all->p->extend && check(all))
        extend(all);
    if (check(all))
        return;
    for (int i = 0; i < all->n; i++)
        witness_write(&all->visit[i]);
    if (all->p->lease_ms == RLOCK_WATCHDOG)
        linger(all);
}

static const hold *hold_lock(plan p, int thread)
{
    holding all;
    if (!begin_holding(&all, &p, thread))
        return NULL;
    stay_if_late(&p, all.visit[0].r);
    go_through(&all);
    end_holding(&all);
    return all.visit[0].r;
}

/* What the plan takes before its lock, by itself: alone is for that, and stays the
   caller's as long as it is held. */
static bool begin_before(holding *one, plan *alone, const plan *p, int thread)
{
    *alone = *p;
    alone->lock = p->before;
    alone->before = -1;
    if (!begin_holding(one, alone, thread))
        return false;
    work(one);
    return true;
}

/*
 * A member by itself, and then the whole of which it is one. It is unlocked
 * twice, and free with the second time, whichever that is. An extend is one of
 * both, so it gives no other lease than the member was taken with.
 */
static const hold *hold_member_before(plan p, int thread)
{
    holding one, all;
    plan alone;
    p.extend_ms = p.lease_ms;
    if (!begin_before(&one, &alone, &p, thread))
        return NULL;
    bool both = begin_holding(&all, &p, thread);
    if (!both) {
        end_holding(&one);
        return one.visit[0].r;
    }
    prolong(&one);
    go_through(&all);
    prolong(&one); /* a level more, or an extend, was of both */
    work(&one);
    if (!p.before_first) {
        end_holding(&all);
        work(&one);
        end_holding(&one);
        return all.visit[0].r;
    }
    call_unlock(me.outer[alone.lock], alone.lock);
    bool held = check(&one);
    witness_leave(&one.visit[0]);
    one.visit[0].r->shared = true;
    end_holding(&all);
    end_shared(&one.visit[0],
               all.visit[0].r->end == HOLD_RELEASED ? RLOCK_OK : RLOCK_EIO,
               held);
    return all.visit[0].r;
}

/* Who writes and begins to read has it at once, and who reads alone and wants to
   write; who reads beside others reads on. */
static void join(holding *one, holding *all)
{
    visit *before = &one->visit[0], *then = &all->visit[0];
    before->r->joined = then->r->joined = true;
    if (lock_kind_of(before->r->lock) == LOCK_READ)
        witness_join(before, then);
}

/* One side of a read-write lock, and then the other one as well. */
static const hold *hold_both_sides(plan p, int thread)
{
    holding one, all;
    plan alone;
    if (!begin_before(&one, &alone, &p, thread))
        return NULL;
    if (!begin_holding(&all, &p, thread)) {
        end_holding(&one);
        return one.visit[0].r;
    }
    join(&one, &all);
    go_through(&all);
    holding *first = p.before_first ? &one : &all;
    holding *last = p.before_first ? &all : &one;
    end_holding(first);
    work(last);
    end_holding(last);
    return last->visit[0].r;
}

const hold *hold_once(const plan *p, int thread)
{
    return p->before < 0 ? hold_lock(*p, thread)
           : lock_kind_of(p->lock) == LOCK_MULTI
               ? hold_member_before(*p, thread)
               : hold_both_sides(*p, thread);
}

static void hold_and_leave(const plan *p)
{
    holding all;
    if (!begin_holding(&all, p, THREADS))
        return;
    work(&all);
    for (int i = 0; i < all.n; i++) {
        hold *r = all.visit[i].r;
        witness_leave(&all.visit[i]);
        r->over_us = attack_now_us();
        r->end = me.closed ? HOLD_CLOSED : HOLD_ABANDONED;
    }
}

static void *abandon(void *arg)
{
    queued_begin();
    hold_and_leave(arg);
    queued_end();
    return NULL;
}

void hold_and_abandon(const plan *p)
{
    pthread_t thread;
    if (me.on_loop) {
        hold_and_leave(p);
        loop_free_owner();
    } else if (pthread_create(&thread, NULL, abandon, (void *)p) == 0) {
        pthread_join(thread, NULL);
    }
}
