/*
 * The lock on one server, in any layout. Each verb is called by the owning
 * thread, inside of the client, and is one operation that it drives. What it
 * picks from the hold table it holds a reference to, because the hold may be
 * lost, and dropped from the table, at any time; but only this thread counts
 * its levels.
 */
#include "core/extend.h"
#include "core/holder.h"
#include "core/turn.h"
#include "drive/caller.h"
#include "lock/lock.h"

/* An operation of one part. */
typedef struct once {
    rl_op op;
    rl_part part;
} once;

static rlock_status drive(once *o)
{
    rl_op_init(&o->op);
    o->op.n = o->op.quorum = 1;
    o->op.part[0] = &o->part;
    o->part.op = &o->op;
    o->part.heap = false;
    rl_drive(&o->op);
    return o->part.ok ? RLOCK_OK : o->part.fault.status;
}

/* The calling thread's hold, referenced. */
static rl_hold *pick(const rlock *lk, bool *valid)
{
    return rl_holds_pick(&rl_lock_core(lk)->holds, &lk->target, rl_owner_self(),
                         rl_now_us(), valid, NULL);
}

static void put(const rlock *lk, rl_hold *h)
{
    rl_holds_put(&rl_lock_core(lk)->holds, h);
}

/* --- acquire -------------------------------------------------------------- */

static rlock_status acquire_first(rlock *lk, rl_estate *room, int64_t wait_ms,
                                  int64_t lease_ms, rl_cancel cancel,
                                  int64_t now_us)
{
    rl_acquire a = {.contest = &rl_contest_one,
                    .home = rl_lock_core(lk),
                    .what = &lk->target,
                    .handle = lk,
                    .owner = rl_owner_self(),
                    .cancel = cancel,
                    .room = room,
                    .wait_ms = wait_ms,
                    .lease_ms = lease_ms,
                    .listen = rl_lock_listen};
    rl_acquire_init(&a, now_us);
    rl_drive(&a.op);
    rl_doorbell_poke(rl_node_of(
        rl_lock_core(lk), lk->target.slot)); /* nobody may wait any more */
    if (a.status != RLOCK_OK)
        return rl_lock_fail(lk, &a.fault);
    rl_lock_emit(lk, RLOCK_EVENT_ACQUIRED, a.token, 1, rl_now_us() - now_us);
    return RLOCK_OK;
}

static rlock_status ask_for_level(rlock *lk, rl_hold *h, int64_t lease_ms,
                                  int64_t now_us)
{
    once o;
    if (!rl_part_reenter(&o.part, rl_lock_core(lk), h, lease_ms, now_us))
        return rl_lock_error(lk, RLOCK_EINVAL, "the hold count is at its end");
    return drive(&o) == RLOCK_OK ? RLOCK_OK : rl_lock_fail(lk, &o.part.fault);
}

static rlock_status reenter(rlock *lk, rl_hold *h, int64_t lease_ms,
                            int64_t now_us)
{
    bool here =
        lk->local_levels && rl_count_up(rl_lock_core(lk), h, lease_ms, now_us);
    rlock_status s = here ? RLOCK_OK : ask_for_level(lk, h, lease_ms, now_us);
    if (s != RLOCK_OK)
        return s;
    rl_lock_emit(lk, RLOCK_EVENT_ACQUIRED, h->token, h->count,
                 rl_now_us() - now_us);
    return RLOCK_OK;
}

static rlock_status single_acquire(rlock *lk, int64_t wait_ms, int64_t lease_ms,
                                   rl_cancel cancel)
{
    bool valid;
    rl_estate *room = NULL;
    int64_t now_us = rl_now_us();
    if (!rl_lock_start(lk))
        return RLOCK_ENOMEM;
    rl_hold *h = rl_holds_pick(&rl_lock_core(lk)->holds, &lk->target,
                               rl_owner_self(), now_us, &valid, &room);
    if (!h && !room)
        return rl_lock_error(lk, RLOCK_ENOMEM, "out of memory");
    if (!h)
        return acquire_first(lk, room, wait_ms, lease_ms, cancel, now_us);
    rlock_status s =
        valid ? reenter(lk, h, lease_ms, now_us) : rl_lock_lost(lk, h);
    put(lk, h);
    return s;
}

/* --- unlock and extend ---------------------------------------------------- */

static rlock_status release(rlock *lk, rl_hold *h, int level, rl_fault *f,
                            int64_t now_us)
{
    once o;
    rl_core *c = rl_lock_core(lk);
    if (level > 0 || !rl_part_hand_over(&o.part, c, h, now_us))
        rl_part_release(&o.part, c, h, level, now_us);
    rlock_status s = drive(&o);
    *f = o.part.fault;
    return s;
}

static rlock_status count_down(rlock *lk, rl_hold *h, int level, rl_fault *f,
                               int64_t now_us)
{
    rl_core *c = rl_lock_core(lk);
    if (!rl_count_down(c, h, level, now_us))
        return rl_release_lost(c, h, level, f, now_us);
    if (level > 0 && lk->local_levels)
        return RLOCK_OK;
    return release(lk, h, level, f, now_us);
}

/* When it returns, the hold may be another thread's already. */
static rlock_status unlock(rlock *lk, rl_hold *h)
{
    rl_fault f;
    int level = h->count - 1;
    uint64_t token = h->token;
    int64_t began_us = h->began_us;
    bool passed = level == 0 && rl_turn_pass(rl_lock_core(lk), h, rl_now_us);
    if (level == 0)
        rl_owner_self()->holds--;
    if (!passed && count_down(lk, h, level, &f, rl_now_us()) != RLOCK_OK)
        return rl_lock_fail(lk, &f);
    rl_lock_emit(lk, RLOCK_EVENT_RELEASED, token, level,
                 rl_now_us() - began_us);
    return RLOCK_OK;
}

static rlock_status single_unlock(rlock *lk)
{
    bool valid;
    rl_hold *h = pick(lk, &valid);
    if (!h)
        return rl_lock_not_held(lk);
    rlock_status s = unlock(lk, h);
    put(lk, h);
    return s;
}

static rlock_status extend(rlock *lk, rl_hold *h, int64_t lease_ms)
{
    rl_extend e;
    rl_part x;
    rl_op_init(&e.op);
    e.op.n = e.op.quorum = 1;
    e.op.part[0] = &x;
    x.op = &e.op;
    x.heap = false;
    x.core = rl_lock_core(lk);
    x.hold = h;
    rl_extend_init(&e, lease_ms,
                   rl_confirmed_end(x.core, h->replicas, rl_now_us()));
    rl_drive(&e.op);
    return x.ok ? RLOCK_OK : rl_lock_fail(lk, &x.fault);
}

static rlock_status single_extend(rlock *lk, int64_t lease_ms)
{
    bool valid;
    rl_hold *h = pick(lk, &valid);
    if (!h)
        return rl_lock_not_held(lk);
    rlock_status s = valid ? extend(lk, h, lease_ms) : rl_lock_lost(lk, h);
    put(lk, h);
    return s;
}

/* --- what needs no hold --------------------------------------------------- */

static rlock_status single_force_unlock(rlock *lk)
{
    once o;
    rl_part_force(&o.part, rl_lock_core(lk), &lk->target, rl_now_us());
    if (drive(&o) != RLOCK_OK)
        return rl_lock_fail(lk, &o.part.fault);
    return o.part.code == 1
               ? RLOCK_OK
               : rl_lock_error(lk, RLOCK_NOT_HELD, "nobody holds it");
}

static void single_cancel(rlock *lk)
{
    rl_rooms_cancel(&rl_lock_core(lk)->rooms, &lk->target, lk);
}

static rl_view single_view(rlock *lk)
{
    rl_holds *t = &rl_lock_core(lk)->holds;
    rl_view v = {0};
    rl_mutex_lock(&t->mutex);
    int64_t now_us = rl_now_us(); /* not before: a renewal may have come */
    rl_hold *h = rl_holds_find_locked(t, &lk->target, rl_owner_self()->serial);
    if (h && rl_hold_is_valid_locked(t, h, now_us)) {
        v.count = h->count;
        v.valid_ms = rl_max(0, (h->expiry.due_us - now_us) / 1000);
        v.token = h->token;
    }
    rl_mutex_unlock(&t->mutex);
    return v;
}

static rlock_status single_inspect(rlock *lk, rlock_holder *out)
{
    once o;
    rl_part_inspect(&o.part, rl_lock_core(lk), &lk->target, out, rl_now_us());
    if (drive(&o) != RLOCK_OK)
        return rl_lock_fail(lk, &o.part.fault);
    return o.part.code == 1 ? RLOCK_OK : RLOCK_NOT_HELD;
}

/* For a Multi lock, whose levels are the server's, too. */
static rlock *single_copy(const rlock *lk)
{
    rlock *copy = rl_lock_new(sizeof *lk, lk->kind, lk->client, lk->target.name,
                              lk->target.len, (rlock_layout)lk->target.scope);
    if (copy)
        copy->target.min_replicas = lk->target.min_replicas;
    return copy;
}

const rl_lock_kind rl_single = {
    .acquire = single_acquire,
    .unlock = single_unlock,
    .extend = single_extend,
    .force_unlock = single_force_unlock,
    .cancel = single_cancel,
    .view = single_view,
    .inspect = single_inspect,
    .copy = single_copy,
};
