/*
 * What a thread, or an owner on a loop, does: locks as programs do, in short
 * sections with and without waiting, nested ones, long ones under the watchdog,
 * some that stay longer than their lease, some that are abandoned.
 */
#include "holding.h"
#include "locks.h"
#include "loop.h"
#include "worker.h"

enum {
    OUTSTAY_MS = 50,   /* that somebody stays longer than the lease */
    RARELY_MS = 4000,  /* between a thread's long, too long, abandoned holds */
    RED_SLOWER = 4,    /* than a single lock; its leases are longer */
    THINK_US = 400000, /* at most, between holds; owners on a loop are many */
    EXTENDED_US = 2000000,  /* at most, that one stays after an extend */
    CROWDED = 6,            /* single locks, so that they are often passed on */
    WAIT_IN_LINE_MS = 3000, /* at most */
    BOTH_SIDES_ONE_IN = 6,
    EXTEND_ONE_IN = 50,
    EXTEND_ONE_OF_SEVERAL_IN = 8 /* a Red or a Multi lock */
};

/* Mostly short, or whatever somebody holds long would stop everybody. */
static int64_t some_wait_ms(uint64_t *rng)
{
    int longest_ms[] = {1, 1, 20, 20, 20, 300};
    return attack_pick(rng, longest_ms[attack_pick(rng, 6)]);
}

/* So that there are lines. */
static int64_t some_wait_in_line_ms(uint64_t *rng)
{
    int longest_ms[] = {1, 20, 300, 1000, WAIT_IN_LINE_MS, WAIT_IN_LINE_MS};
    return attack_pick(rng, longest_ms[attack_pick(rng, 6)]);
}

/* The smaller of two: some locks are wanted more than others. */
static int some_single(uint64_t *rng)
{
    if (attack_pick(rng, 25) == 0)
        return FIRST_AWAY + attack_pick(rng, AWAYS);
    int homes = me.a->turn_ms ? CROWDED : HOMES;
    int a = attack_pick(rng, homes), b = attack_pick(rng, homes);
    return a < b ? a : b;
}

static int some_red(uint64_t *rng)
{
    return FIRST_RED + attack_pick(rng, REDS);
}

static int some_set(uint64_t *rng)
{
    return FIRST_SET + attack_pick(rng, SETS);
}

static int some_of_kinds(uint64_t *rng)
{
    switch (attack_pick(rng, 3)) {
    case 0:
        return FIRST_FAIR + attack_pick(rng, FAIRS);
    case 1:
        return FIRST_RW + 2 * attack_pick(rng, RWS) + !attack_pick(rng, 3);
    default:
        return FIRST_SEMAPHORE + attack_pick(rng, SEMAPHORES);
    }
}

static int side_beside(int side)
{
    return lock_kind_of(side) == LOCK_READ ? side + 1 : side - 1;
}

/* Sometimes the other side is held already. */
static void perhaps_both_sides(plan *p, uint64_t *rng)
{
    if (attack_pick(rng, BOTH_SIDES_ONE_IN))
        return;
    p->leave_us = 0;
    p->before = side_beside(p->lock);
    p->before_first = attack_pick(rng, 2);
}

/* Sometimes a single member is held already. */
static void perhaps_hold_before(plan *p, uint64_t *rng)
{
    int members[MEMBERS_MAX];
    int member = attack_pick(rng, lock_members(p->lock, members));
    if (attack_pick(rng, 4) || lock_kind_of(members[member]) != LOCK_SINGLE)
        return;
    p->before = members[member];
    p->before_first = attack_pick(rng, 2);
}

/*
 * Longer or shorter than the lease before. Whoever has extended stays past the
 * end of what he asked for, and of several locks for long: an extend that is
 * executed late has cut the lease by then, while renewals have been answered.
 */
static void perhaps_extend(plan *p, uint64_t *rng)
{
    static const int64_t leases_ms[] = {
        RLOCK_WATCHDOG, 1500, 300, 300, 300, 300};
    bool single = lock_is_at_one(p->lock);
    p->extend =
        !attack_pick(rng, single ? EXTEND_ONE_IN : EXTEND_ONE_OF_SEVERAL_IN);
    p->extend_ms = leases_ms[attack_pick(rng, 6)];
    if (p->extend && !single)
        p->after_us = EXTENDED_US / 2 + attack_pick(rng, EXTENDED_US / 2);
    else if (p->extend && attack_pick(rng, 4) == 0)
        p->after_us = attack_pick(rng, EXTENDED_US);
}

static plan plan_for(int lock, uint64_t *rng)
{
    plan p = {.lock = lock, .levels = 1, .before = -1};
    p.wait_ms = some_wait_ms(rng);
    p.lease_ms = attack_pick(rng, 3) ? RLOCK_WATCHDOG : 1500;
    if (attack_pick(rng, 10) == 0)
        p.levels = 2 + attack_pick(rng, 2);
    if (attack_pick(rng, 100) == 0)
        p.stay_us = attack_pick(rng, 20000);
    if (lock_kind_of(lock) == LOCK_MULTI)
        perhaps_hold_before(&p, rng);
    perhaps_extend(&p, rng);
    if (me.on_loop && p.before < 0 && attack_pick(rng, 20) == 0)
        p.leave_us = 1 + attack_pick(rng, 20000);
    return p;
}

/* Who holds permits is in nobody's way, if he wants few. */
static plan plan_for_kind(int lock, uint64_t *rng)
{
    plan p = plan_for(lock, rng);
    p.wait_ms = some_wait_in_line_ms(rng);
    if (lock_kind_of(lock) == LOCK_PERMIT) {
        int most = 1 + attack_pick(rng, lock_permits(lock));
        p.permits = 1 + attack_pick(rng, most);
        p.levels = 1;
        p.leave_us = 0;
        p.extend = p.extend && !me.on_loop;
    } else if (lock_kind_of(lock) != LOCK_FAIR) {
        perhaps_both_sides(&p, rng);
    }
    return p;
}

/* A single lock costs the least; each kind is to have its share of the time. */
static plan short_plan(uint64_t *rng)
{
    if (attack_pick(rng, 100) < me.a->kinds_percent)
        return plan_for_kind(some_of_kinds(rng), rng);
    int of = attack_pick(rng, 100);
    return plan_for(of < 4   ? some_red(rng)
                    : of < 9 ? some_set(rng)
                             : some_single(rng),
                    rng);
}

static plan rare_plan(uint64_t *rng)
{
    if (attack_pick(rng, 100) < me.a->kinds_percent)
        return plan_for_kind(some_of_kinds(rng), rng);
    int of = attack_pick(rng, 5);
    return plan_for(of < 2    ? some_red(rng)
                    : of == 2 ? some_set(rng)
                              : some_single(rng),
                    rng);
}

/*
 * A release that was not answered may be executed yet. The next hold of this
 * thread is there to be hit by it.
 */
static void hold_again(plan p, int thread)
{
    p.wait_ms = LEASE_MS;
    p.lease_ms = RLOCK_WATCHDOG;
    p.stay_us = COMMAND_MS * 1000;
    hold_once(&p, thread);
}

/* The watchdog has to renew it, more than once. */
static void hold_long(plan *p, uint64_t *rng, int thread)
{
    p->lease_ms = RLOCK_WATCHDOG;
    p->stay_us = (LEASE_MS + attack_pick(rng, LEASE_MS)) * 1000;
    hold_once(p, thread);
}

/* Longer than its lease. */
static void outstay(plan *p, uint64_t *rng, int thread)
{
    int slower = lock_is_at_one(p->lock) ? 1 : RED_SLOWER;
    p->lease_ms = slower * (100 + attack_pick(rng, 200));
    p->stay_us = (p->lease_ms + OUTSTAY_MS) * 1000;
    p->extend = false;
    hold_once(p, thread);
}

static void do_something_rare(uint64_t *rng, int thread)
{
    plan p = rare_plan(rng);
    switch (attack_pick(rng, 3)) {
    case 0:
        hold_long(&p, rng, thread);
        break;
    case 1:
        outstay(&p, rng, thread);
        break;
    case 2:
        p.before = -1;
        if (lock_kind_of(p.lock) == LOCK_PERMIT) /* nobody's but the process' */
            hold_long(&p, rng, thread);
        else
            hold_and_abandon(&p);
        break;
    }
}

static int64_t next_rare_us(uint64_t *rng)
{
    int fewer = me.on_loop ? OWNERS / THREADS : 1;
    return attack_now_us() +
           attack_pick(rng, 2 * RARELY_MS * fewer) * INT64_C(1000);
}

void labour(int number)
{
    uint64_t rng = me.a->seed * 1000003 + (uint64_t)(me.life * 256 + number);
    int64_t rare_us = next_rare_us(&rng);
    while (!atomic_load(&me.a->stop)) {
        if (me.on_loop)
            loop_rest(attack_pick(&rng, THINK_US));
        if (attack_now_us() < rare_us) {
            plan p = short_plan(&rng);
            const hold *r = hold_once(&p, number);
            if (r && r->end == HOLD_UNKNOWN)
                hold_again(p, number);
        } else {
            do_something_rare(&rng, number);
            rare_us = next_rare_us(&rng);
        }
    }
}
