/*
 * The lock on one server, in any layout. Each verb is a job of one operation at
 * most. What it picks from the hold table it holds a reference to, because the
 * hold may be lost, and dropped from the table, at any time; but only its owner
 * counts its levels, and does one thing at a time.
 */
#include "hold/level.h"
#include "lock/lock.h"
#include "op/extend.h"
#include "op/handover.h"
#include "op/turn.h"
#include "op/verb_guard.h"
#include "run/caller.h"
#include "run/owner.h"

/* A verb of the owner's. */
typedef struct single_job {
    rl_job job;
    rlock *lk;
    rl_owner *owner;
    rl_job_args args;
    rl_hold *hold; /* referenced; NULL: an acquire that finds none */
    int64_t began_us;
    int level; /* of an unlock: to leave */
    uint64_t token;
    union {
        rl_acquire acquire;
        rl_extend extend;
        rl_op once;
    } op;
} single_job;

static single_job *of(rl_job *j)
{
    return RL_CONTAINER(j, single_job, job);
}

static void put(const rlock *lk, rl_hold *h)
{
    rl_holds_put(&rl_lock_core(lk)->holds, h);
}

static rl_op *over(single_job *j, rlock_status s)
{
    put(j->lk, j->hold);
    return rl_job_over(&j->job, s);
}

/* An operation of one part, the one that is lent. */
static rl_op *ask_once(single_job *j, rl_op *(*then)(rl_job *j))
{
    rl_op *op = &j->op.once;
    rl_op_init(op, &op->lent);
    op->n = op->quorum = 1;
    j->job.lent->op = op;
    return rl_job_ask(&j->job, op, then);
}

/* Who stood in line has less time left. */
static rl_op *ask_in_time(single_job *j, rl_op *(*then)(rl_job *j))
{
    rl_part *x = j->job.lent;
    if (j->args.asked_us)
        x->until_us =
            rl_min(x->until_us, rl_confirmed_end(x->core, j->hold->replicas,
                                                 j->args.asked_us));
    return ask_once(j, then);
}

static rlock_status status_of(const rlock *lk, const rl_part *x)
{
    return x->ok ? RLOCK_OK : rl_lock_fail(lk, &x->fault);
}

/* A verb of one call, which ends with its answer. */
static rl_op *answered(rl_job *job)
{
    single_job *j = of(job);
    return over(j, status_of(j->lk, job->lent));
}

/* --- acquire -------------------------------------------------------------- */

static rl_op *first_acquired(rl_job *job)
{
    single_job *j = of(job);
    const rl_acquire *a = &j->op.acquire;
    if (a->status != RLOCK_OK)
        return over(j, rl_lock_fail(j->lk, &a->fault));
    rl_lock_emit(j->lk, RLOCK_EVENT_ACQUIRED, a->token, 1, j->began_us);
    return over(j, RLOCK_OK);
}

static rl_op *acquire_first(single_job *j, rl_owner_record *room)
{
    rlock *lk = j->lk;
    rl_acquire *a = &j->op.acquire;
    *a = (rl_acquire){.attempt = rl_target_layout(&lk->target)->line
                                     ? &rl_attempt_line
                                     : &rl_attempt_one,
                      .home = rl_lock_core(lk),
                      .what = &lk->target,
                      .handle = j->args.waits_as ? j->args.waits_as : lk,
                      .owner = j->owner,
                      .cancel = j->args.cancel,
                      .room = room,
                      .joins = j->args.joins,
                      .wait_ms = j->args.wait_ms,
                      .lease_ms = j->args.lease_ms,
                      .listen = rl_lock_listen};
    rl_acquire_init(a, j->began_us);
    return rl_job_ask(&j->job, &a->op, first_acquired);
}

static rl_op *level_told(single_job *j)
{
    rl_lock_emit(j->lk, RLOCK_EVENT_ACQUIRED, j->hold->token, j->hold->count,
                 j->began_us);
    return over(j, RLOCK_OK);
}

static rl_op *level_asked(rl_job *job)
{
    single_job *j = of(job);
    rlock_status s = status_of(j->lk, job->lent);
    return s == RLOCK_OK ? level_told(j) : over(j, s);
}

static rl_op *reenter(single_job *j, int64_t now_us)
{
    rlock *lk = j->lk;
    rl_core *c = rl_lock_core(lk);
    if (lk->target.local_levels &&
        rl_hold_count_up(&c->holds, j->hold, j->args.lease_ms, now_us))
        return level_told(j);
    if (!rl_part_reenter(j->job.lent, c, j->hold, j->args.lease_ms, now_us))
        return over(
            j, rl_lock_error(lk, RLOCK_EINVAL, "the hold count is at its end"));
    return ask_in_time(j, level_asked);
}

static rl_op *acquire(rl_job *job)
{
    single_job *j = of(job);
    rlock *lk = j->lk;
    bool valid;
    rl_owner_record *room = NULL;
    int64_t now_us = rl_now_us();
    j->began_us = j->args.asked_us ? j->args.asked_us : now_us;
    if (!rl_lock_start(lk))
        return over(j, RLOCK_ENOMEM);
    j->hold = rl_holds_pick(&rl_lock_core(lk)->holds, &lk->target, j->owner,
                            now_us, &valid, &room);
    if (!j->hold && !room)
        return over(j, rl_lock_error(lk, RLOCK_ENOMEM, "out of memory"));
    if (!j->hold)
        return acquire_first(j, room);
    return valid ? reenter(j, now_us) : over(j, rl_lock_lost(lk, j->hold));
}

/* --- unlock --------------------------------------------------------------- */

/* By now the hold may be another thread's. */
static rl_op *level_undone(single_job *j)
{
    rl_lock_emit(j->lk, RLOCK_EVENT_RELEASED, j->token, j->level, j->began_us);
    return over(j, RLOCK_OK);
}

static rl_op *released(rl_job *job)
{
    single_job *j = of(job);
    rlock_status s = status_of(j->lk, job->lent);
    return s == RLOCK_OK ? level_undone(j) : over(j, s);
}

/* now_us: of before the hold was picked. One that has ended since, the server does
   not release either, and says so. */
static rl_op *release(single_job *j, int64_t now_us)
{
    rl_core *c = rl_lock_core(j->lk);
    rl_part *x = j->job.lent;
    rl_fault f;
    rl_counted found = rl_hold_count_down(&c->holds, j->hold, j->level, now_us);
    if (found == RL_COUNTED_OVER)
        return over(j, rl_lock_not_held(j->lk));
    if (found == RL_COUNTED_LOST) {
        rl_release_lost(c, j->hold, j->level, &f, now_us);
        return over(j, rl_lock_fail(j->lk, &f));
    }
    if (j->level > 0 && j->lk->target.local_levels)
        return level_undone(j);
    if (j->level > 0 || !rl_part_hand_over(x, c, j->hold, now_us))
        rl_part_release(x, c, j->hold, j->level, now_us);
    return ask_in_time(j, released);
}

static bool pick(single_job *j, int64_t now_us, bool *valid)
{
    j->hold = rl_holds_pick(&rl_lock_core(j->lk)->holds, &j->lk->target,
                            j->owner, now_us, valid, NULL);
    return j->hold != NULL;
}

static rl_op *unlock(rl_job *job)
{
    single_job *j = of(job);
    bool valid;
    int64_t now_us = rl_now_us();
    if (!pick(j, now_us, &valid))
        return over(j, rl_lock_not_held(j->lk));
    j->level = j->hold->count - 1;
    j->token = j->hold->token;
    j->began_us = j->hold->began_us;
    bool passed =
        j->level == 0 && rl_turn_pass(rl_lock_core(j->lk), j->hold, rl_now_us);
    if (j->level == 0)
        j->owner->holds--;
    return passed ? level_undone(j) : release(j, now_us);
}

/* --- extend --------------------------------------------------------------- */

static void set_part(single_job *j)
{
    rl_part *x = j->op.extend.op.lent;
    x->op = &j->op.extend.op;
    x->core = rl_lock_core(j->lk);
    x->hold = j->hold;
}

static rl_next resume_extend(rl_op *op, rl_wake why, int64_t now_us)
{
    single_job *j = RL_CONTAINER(op, single_job, op.extend.op);
    if (!j->op.extend.asked)
        set_part(j);
    return rl_extend_resume(op, why, now_us);
}

static rl_op *extend(rl_job *job)
{
    single_job *j = of(job);
    rl_extend *e = &j->op.extend;
    rl_core *c = rl_lock_core(j->lk);
    bool valid;
    if (!pick(j, rl_now_us(), &valid))
        return over(j, rl_lock_not_held(j->lk));
    if (!valid)
        return over(j, rl_lock_lost(j->lk, j->hold));
    rl_op_init(&e->op, &e->op.lent);
    e->op.n = e->op.quorum = 1;
    e->op.lent = job->lent;
    set_part(j);
    rl_extend_init(
        e, j->args.lease_ms,
        rl_confirmed_end(c, j->hold->replicas, rl_job_args_began(&j->args)));
    e->op.resume = resume_extend;
    return rl_job_ask(job, &e->op, answered);
}

/* --- a guarded call ------------------------------------------------------- */

/* What began it runs from the start, also while it stands in line. */
static rl_op *guard(rl_job *job)
{
    single_job *j = of(job);
    bool valid;
    if (!pick(j, rl_now_us(), &valid))
        return over(j, rl_lock_not_held(j->lk));
    if (!valid)
        return over(j, rl_lock_lost(j->lk, j->hold));
    rl_part_guard(job->lent, rl_lock_core(j->lk), j->hold, j->args.guarded,
                  rl_job_args_began(&j->args));
    rl_op *op = ask_once(j, answered);
    op->may_ask = rl_guard_may_ask;
    return op;
}

/* --- jobs ----------------------------------------------------------------- */

_Static_assert(sizeof(single_job) <= RL_MEMBER_ROOM, "room for a job");

static rl_job *single_begin(rlock *lk, const rl_job_args *w, void *room)
{
    static rl_op *(*const first[])(rl_job * j) = {[RL_JOB_ACQUIRE] = acquire,
                                                  [RL_JOB_UNLOCK] = unlock,
                                                  [RL_JOB_EXTEND] = extend,
                                                  [RL_JOB_GUARD] = guard};
    single_job *j = room;
    j->job = (rl_job){.next = first[w->verb]};
    j->lk = lk;
    j->owner = rl_lock_owner(lk);
    j->args = *w;
    j->hold = NULL;
    return &j->job;
}

/* --- what needs no hold --------------------------------------------------- */

/* Of several readers the caller is told of itself, if it is one. */
static void name_own(const rlock *lk, rlock_holder *out, int64_t now_us)
{
    bool valid;
    rl_hold *h = rl_holds_pick(&rl_lock_core(lk)->holds, &lk->target,
                               rl_lock_owner(lk), now_us, &valid, NULL);
    if (h)
        rl_hold_write_id(h, out->raw);
    put(lk, h);
}

static rlock_status inspect(const rlock *lk, rlock_holder *out, int64_t now_us)
{
    rl_part x;
    if (rl_layout_is_side(rl_target_layout(&lk->target)) && !out->raw[0])
        name_own(lk, out, now_us);
    rl_part_inspect(&x, rl_lock_core(lk), &lk->target, out, now_us);
    rlock_status s = rl_lock_ask(lk, &x);
    return s == RLOCK_OK && x.code != 1 ? RLOCK_NOT_HELD : s;
}

static rlock_status single_inspect(rlock *lk, rlock_holder *out)
{
    return inspect(lk, out, rl_now_us());
}

/* A hash may be a lock of another kind, in which that hold is called the same. */
static rlock_status check_forced(const rlock *lk, const char *holder_id,
                                 rlock_holder *hold, int64_t now_us)
{
    rlock_holder ignored = {0};
    rlock_status s = rl_lock_check_holder(lk, holder_id, hold);
    if (s == RLOCK_OK && inspect(lk, &ignored, now_us) == RLOCK_EWRONGTYPE)
        s = RLOCK_EWRONGTYPE;
    return s;
}

static rlock_status single_force_unlock(rlock *lk, const char *holder_id)
{
    rl_part x;
    rlock_holder hold;
    int64_t now_us = rl_now_us();
    rlock_status s = RLOCK_OK;
    if (holder_id)
        s = check_forced(lk, holder_id, &hold, now_us);
    if (s != RLOCK_OK)
        return s;
    rl_part_force(&x, rl_lock_core(lk), &lk->target,
                  holder_id ? hold.raw : NULL, now_us);
    s = rl_lock_ask(lk, &x);
    if (s != RLOCK_OK || x.code == 1)
        return s;
    return rl_lock_error(lk, RLOCK_NOT_HELD, rl_not_forced_text(holder_id));
}

static void single_cancel(rlock *lk)
{
    rl_rooms_cancel(&rl_lock_core(lk)->rooms, &lk->target, lk);
}

static rl_view single_view(rlock *lk)
{
    rl_holds *t = &rl_lock_core(lk)->holds;
    const rl_owner *owner = rl_lock_owner(lk);
    rl_view v = {0};
    rl_mutex_lock(&t->mutex);
    int64_t now_us = rl_now_us(); /* not before: a renewal may have come */
    rl_hold *h = rl_holds_find_locked(t, &lk->target, owner->serial);
    if (h && rl_hold_is_valid_locked(t, h, now_us)) {
        v.count = h->count;
        v.valid_ms = rl_max(0, (h->expiry.due_us - now_us) / 1000);
        v.token = h->token;
        v.renewed = h->renewed;
    }
    rl_mutex_unlock(&t->mutex);
    return v;
}

static rlock_status single_visit_alarms(rlock *lk, rl_alarm_visit *v)
{
    rl_holds *t = &rl_lock_core(lk)->holds;
    const rl_owner *owner = rl_lock_owner(lk);
    rl_mutex_lock(&t->mutex);
    rl_hold *h = rl_holds_find_locked(t, &lk->target, owner->serial);
    rl_extra *x = h ? rl_hold_make_extra(h) : NULL;
    if (x)
        v->at(v, &x->alarms, &h->id,
              !rl_hold_is_valid_locked(t, h, rl_now_us()));
    rl_mutex_unlock(&t->mutex);
    if (!h)
        return rl_lock_not_held(lk);
    return x ? RLOCK_OK : rl_lock_error(lk, RLOCK_ENOMEM, "out of memory");
}

/* For a Multi lock, whose levels are the server's, too. */
static rlock *single_copy(const rlock *lk)
{
    rlock *copy = rl_lock_new(sizeof *lk, lk->kind, lk->client, lk->target.name,
                              lk->target.len, lk->target.layout);
    if (!copy)
        return NULL;
    copy->target.min_replicas = lk->target.min_replicas;
    return copy;
}

const rl_lock_kind rl_single = {
    .guards = true,
    .job_size = sizeof(single_job),
    .begin = single_begin,
    .force_unlock = single_force_unlock,
    .cancel = single_cancel,
    .view = single_view,
    .inspect = single_inspect,
    .visit_alarms = single_visit_alarms,
    .copy = single_copy,
};

const rl_lock_kind rl_permits = {
    .noun = "semaphore",
    .job_size = sizeof(single_job),
    .begin = single_begin,
    .cancel = single_cancel,
    .view = single_view,
    .visit_alarms = single_visit_alarms,
};
