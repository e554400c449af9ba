/*
 * How a Multi lock is acquired.
 *
 * A try asks all members at once, those on one client in one round trip. If
 * some are busy, only those before the first busy one, in the global order,
 * are kept while that one is waited for: whoever waits holds nothing that comes
 * later in the order, so nobody waits in a circle.
 *
 * The order of locks of one name is that of their servers, and a server that
 * restarts is another one: for a moment two programs may see it differently. So
 * another lock of that name is kept for a short wait only. It is kept at all,
 * because two that let go of it at once would swap what they have, and each
 * find the other's gone, time and again.
 *
 * What was taken may be lost again before all are held, with its server's data
 * or in a hang. Nobody was told of it, so nobody is told of its loss, and it is
 * missing as any other: those behind it are let go of, and it is waited for.
 * What the owner had before, it had; a level more of that is not waited for,
 * and its loss is told.
 *
 * Called by the owning thread. Whatever fails, what this call has taken is
 * released before it returns.
 */
#include "base/random.h"
#include "hold/step.h"
#include "lock/multi.h"
#include "run/owner.h"

/* How long a lock is kept while another one of its name is waited for. */
#define KEEP_US 50000

/* How long after what was held could not be kept it is tried anew. */
#define PAUSE_US 20000

/* About a member whose client nobody is inside of: it may have been freed. */
static rlock_status say(const rl_multi_part *x, rlock_status s,
                        const char *what)
{
    int cancel;
    rlock_status entered = rl_member_enter(x->lk, &cancel);
    if (entered != RLOCK_OK)
        return entered;
    rl_lock_error(x->lk, s, what);
    rl_member_leave(x->lk, cancel);
    return s;
}

/* The same, of one that was held; had it before, its owner has lost it. */
static rlock_status say_lost(const rl_multi_part *x)
{
    int cancel;
    bool valid;
    rl_fault f;
    rlock_status s = rl_member_enter(x->lk, &cancel);
    if (s != RLOCK_OK)
        return s;
    rl_holds *t = &rl_lock_core(x->lk)->holds;
    rl_hold *h = rl_holds_pick(t, &x->lk->target, rl_owner_self(), rl_now_us(),
                               &valid, NULL);
    rl_fault_set(&f, x->fresh ? RLOCK_EIO : RLOCK_LOST, 0,
                 "lost before all members were held%s%s", h ? ": " : "",
                 h ? rl_loss_text(h->loss) : "");
    rl_holds_put(t, h);
    s = rl_lock_fail(x->lk, &f);
    rl_member_leave(x->lk, cancel);
    return s;
}

static bool is_mine(const rlock *lk)
{
    return rl_lock_view(lk).count > 0;
}

/* Has the owner got it already, and for how long? */
static void look_before(rl_multi_part *x)
{
    rl_view v = rl_lock_view(x->lk);
    x->fresh = v.count == 0;
    x->lapses = v.count > 0 && !v.renewed;
}

static rl_hold *new_draft(const rl_multi_call *p, const rl_multi_part *x)
{
    rl_core *c = rl_lock_core(x->lk);
    rl_uuid id;
    rl_hold *h = NULL;
    if (!rl_lock_start(x->lk))
        return NULL;
    rl_owner_record *room = rl_holds_make_room(&c->holds, rl_owner_self());
    if (room && rl_uuid_new(&id))
        h = rl_draft(c, room, &x->lk->target, &id, p->fresh_ms);
    else
        rl_holds_give_up_room(&c->holds, room);
    if (!h)
        rl_lock_error(x->lk, RLOCK_ENOMEM, "out of memory or randomness");
    else
        rl_hold_join(h, p->group);
    return h;
}

/* A hold that was there before keeps what the caller gave it. */
static int64_t lease_of(const rl_multi_call *p, const rl_multi_part *x)
{
    return x->fresh ? p->fresh_ms : p->lease_ms;
}

static rlock_status begin_acquire(rl_multi_call *p, rl_multi_part *x,
                                  bool valid, int64_t now_us)
{
    rl_core *c = rl_lock_core(x->lk);
    x->fresh = !x->hold;
    x->lapses = x->hold && !rl_hold_is_renewed(&c->holds, x->hold);
    if (x->hold && !valid)
        return rl_lock_lost(x->lk, x->hold);
    if (x->hold)
        return rl_part_reenter(&x->it, c, x->hold, lease_of(p, x), now_us)
                   ? RLOCK_OK
                   : rl_lock_error(x->lk, RLOCK_EINVAL,
                                   "the hold count is at its end");
    x->hold = new_draft(p, x);
    if (!x->hold)
        return RLOCK_ENOMEM;
    rl_part_acquire(&x->it, c, x->hold, p->fresh_ms, now_us);
    return RLOCK_OK;
}

/* A draft that was granted is the table's; one reference stays for the event.
 */
static void end_fresh(rl_multi_part *x, int64_t now_us)
{
    rl_core *c = rl_lock_core(x->lk);
    if (!x->it.ok) {
        rl_give_up(c, x->hold, now_us);
        x->hold = NULL;
        return;
    }
    rl_hold_ref(&c->holds, x->hold);
    rl_take_over(&x->it, x->it.grant.token, now_us);
    rl_owner_self()->holds++;
}

static void end_acquire(rl_multi_call *p, rl_multi_part *x, int64_t now_us)
{
    (void)p;
    x->left = !x->it.ok && x->it.fault.status == RLOCK_OK;
    if (x->fresh)
        end_fresh(x, now_us);
    x->held = x->it.ok;
    if (x->held)
        rl_lock_count_acquire(x->lk, p->group, RLOCK_OK);
    else if (x->fresh && x->it.verdict == RL_BUSY)
        rl_fault_set(&x->it.fault, RLOCK_BUSY, 0, "another owner holds it");
}

/* Of two levels more that were refused, the first counts. */
static void note_failed(rl_multi_call *p, const rl_multi_part *x,
                        rlock_status s)
{
    if (x->fresh) {
        rl_multi_note(&p->worst, x->position, s);
    } else if (!p->refused) {
        p->why.status = RLOCK_OK;
        rl_multi_note(&p->why, x->position, s);
        p->refused = true;
    }
}

static const rl_multi_verb acquire_verb = {.begin = begin_acquire,
                                           .end = end_acquire,
                                           .failed = note_failed,
                                           .event = RLOCK_EVENT_ACQUIRED};

/*
 * Is it the turn of others? Then nothing is asked from here on: what is taken
 * behind a gap would only be in their way.
 */
static bool is_owed(const rl_multi_part *x)
{
    int cancel;
    if (!rl_member_enter_quietly(x->lk, &cancel))
        return false;
    bool owed = rl_rooms_is_owed(&rl_lock_core(x->lk)->rooms, &x->lk->target,
                                 rl_now_us());
    rl_member_leave(x->lk, cancel);
    return owed && !is_mine(x->lk);
}

/*
 * Of one server all are taken or none. Those before the first that is busy may
 * be free, and are asked for again without it; then another one may be, further
 * in front.
 */
static bool wants_left(rl_multi_call *p, size_t from)
{
    bool any = false;
    for (size_t i = from; i < p->n; i++) {
        rl_multi_part *x = &p->part[i];
        if (!x->held && !x->left)
            break;
        x->wanted = x->left;
        any = any || x->left;
    }
    return any;
}

static rl_multi_step try_next, settled;

/* A Red lock, which is tried by itself. */
static rl_op *one_tried(rl_multi_call *p)
{
    rl_multi_part *x = &p->part[p->at - 1];
    x->held = p->alone == RLOCK_OK;
    p->gap = !x->held;
    if (!x->held)
        note_failed(p, x, p->alone);
    return try_next(p);
}

static rl_op *try_alone(rl_multi_call *p, rl_multi_part *x)
{
    look_before(x);
    rl_job_args now = {.verb = RL_JOB_ACQUIRE,
                       .lease_ms = lease_of(p, x),
                       .cancel = p->args.cancel,
                       .joins = p->group};
    return rl_multi_ask_alone(p, x->lk, &now, one_tried);
}

static rl_op *round_tried(rl_multi_call *p)
{
    if (p->args.wait_ms != 0 && wants_left(p, p->from))
        return rl_multi_ask(p, &acquire_verb, round_tried);
    return settled(p);
}

static rl_op *try_next(rl_multi_call *p)
{
    bool may_wait = p->args.wait_ms != 0;
    while (p->at < p->n) {
        rl_multi_part *x = &p->part[p->at++];
        bool single = rl_multi_is_single(x->lk);
        x->left = false;
        if (x->held)
            continue;
        p->gap = p->gap || (may_wait && single && is_owed(x));
        x->wanted = single && !p->gap;
        if (!single && !p->gap)
            return try_alone(p, x);
    }
    return rl_multi_ask(p, &acquire_verb, round_tried);
}

/* One try of the members from this one on that are missing. */
static rl_op *try_missing(rl_multi_call *p, size_t from)
{
    p->gap = false;
    p->worst.status = RLOCK_OK;
    p->at = p->from = from;
    return try_next(p);
}

/* The first member that has this one's name. */
static size_t first_of_name(const rl_multi_call *p, size_t i)
{
    while (i > 0 && rl_multi_same_name(p->part[i - 1].lk, p->part[i].lk))
        i--;
    return i;
}

/* --- the end -------------------------------------------------------------- */

static rl_op *undone(rl_multi_call *p)
{
    return rl_multi_over(p, rl_multi_report(&p->why));
}

/* As `why` says. Nothing stays taken. */
static rl_op *refuse(rl_multi_call *p)
{
    return rl_multi_let_go(p, 0, undone);
}

/* --- the whole ------------------------------------------------------------ */

/*
 * What was waited for has joined when it was a draft, unless it was passed on
 * in a turn. A Red member is a group of its own, which knows the whole.
 */
static void join(const rl_multi_call *p, const rl_multi_part *x)
{
    int cancel;
    if (!x->fresh || !rl_multi_is_single(x->lk) ||
        !rl_member_enter_quietly(x->lk, &cancel))
        return;
    rl_holds *t = &rl_lock_core(x->lk)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold *h =
        rl_holds_find_locked(t, &x->lk->target, rl_owner_self()->serial);
    if (h && !h->group && rl_hold_is_valid_locked(t, h, rl_now_us()))
        rl_hold_join(h, p->group);
    rl_mutex_unlock(&t->mutex);
    rl_member_leave(x->lk, cancel);
}

/* The first that is held no more; n: none. */
static size_t find_lost(const rl_multi_call *p)
{
    size_t i = 0;
    while (i < p->n && is_mine(p->part[i].lk))
        i++;
    return i;
}

/*
 * From here on the loss of a member is the loss of the whole. False: one has
 * been lost. (What was lost, and has been taken anew since, is found to be
 * there.)
 */
static bool unite(rl_multi_call *p)
{
    do {
        if (find_lost(p) < p->n)
            return false;
    } while (!rl_group_move(p->group, RL_GROUP_FORMING, RL_GROUP_OWNED) &&
             rl_group_move(p->group, RL_GROUP_SPOILT, RL_GROUP_FORMING));
    return true;
}

/*
 * May what could not be kept be tried anew? As with a server that cannot be
 * reached: until the wait is over, but no longer than a lease in a row.
 */
static bool may_start_over(rl_multi_call *p, int64_t now_us)
{
    const rl_core *home = rl_lock_core(&p->m->base);
    int64_t most_us = home->set.watchdog_lease_ms * 1000;
    if (now_us - p->failed_us > most_us)
        p->failing_us = now_us;
    p->failed_us = now_us;
    bool passes = p->why.status == RLOCK_EIO || p->why.status == RLOCK_EQUORUM;
    return passes && now_us < p->wait_us && now_us - p->failing_us <= most_us;
}

static rl_next rest(rl_op *op, rl_wake why, int64_t now_us)
{
    bool over = op->asked;
    (void)why;
    (void)now_us;
    op->asked = true;
    return over ? RL_DONE : RL_SLEEP;
}

static rl_multi_step behind_let_go;

static rl_op *rested(rl_job *j)
{
    return behind_let_go(RL_CONTAINER(j, rl_multi_call, job));
}

static rl_op *pause_a_little(rl_multi_call *p)
{
    rl_op *op = &p->op.op;
    rl_op_init(op, p->asked);
    op->resume = rest;
    op->sleep_us = rl_now_us() + rl_jitter(PAUSE_US);
    return rl_job_ask(&p->job, op, rested);
}

/*
 * What was held could not be kept, as `worst` says, or one of it is lost. What
 * is missing was not held.
 */
static rl_op *start_over(rl_multi_call *p)
{
    size_t lost = find_lost(p), held = p->missing;
    p->missing = lost < held ? lost : 0;
    p->why = p->worst;
    if (lost < held) {
        p->why.status = RLOCK_OK;
        rl_multi_note(&p->why, p->part[lost].position,
                      say_lost(&p->part[lost]));
    }
    if (!may_start_over(p, rl_now_us()))
        return refuse(p);
    p->waited = false; /* what is kept may have the lease that was asked for */
    return rl_multi_let_go(p, p->missing, pause_a_little);
}

static rl_op *all_held(rl_multi_call *p)
{
    return unite(p) ? rl_multi_over(p, RLOCK_OK) : start_over(p);
}

/* The lease of what this call has taken anew. */
static rl_op *set_lease(rl_multi_call *p, int64_t lease_ms, rl_multi_step *back)
{
    p->worst.status = RLOCK_OK;
    p->fresh_ms = lease_ms;
    for (size_t i = 0; i < p->n; i++)
        p->part[i].wanted = p->part[i].held && p->part[i].fresh;
    return rl_multi_extend_wanted(p, back);
}

static rl_op *lease_set(rl_multi_call *p)
{
    return p->worst.status == RLOCK_OK ? all_held(p) : start_over(p);
}

/* --- waiting for one ------------------------------------------------------ */

static void note_why(rl_multi_call *p, rlock_status s)
{
    p->why.status = RLOCK_OK;
    rl_multi_note(&p->why, p->part[p->missing].position, s);
}

static rl_op *one_awaited(rl_multi_call *p)
{
    rl_multi_part *x = &p->part[p->missing];
    x->held = p->alone == RLOCK_OK;
    if (x->held)
        join(p, x);
    else
        note_why(p, p->alone);
    return p->back(p);
}

static rl_op *end_wait(rl_multi_call *p, rlock_status s, const char *what)
{
    note_why(p, say(&p->part[p->missing], s, what));
    p->alone = p->why.status;
    return p->back(p);
}

/* What has failed stays the reason; who was only busy may be closed by now. */
static rl_op *wait_is_over(rl_multi_call *p)
{
    rlock_status s = p->why.status;
    if (s == RLOCK_OK || s == RLOCK_BUSY || s == RLOCK_TIMEOUT)
        return end_wait(p, RLOCK_TIMEOUT, "the wait ran out");
    p->alone = s;
    return p->back(p);
}

/* The client of any member may be, also that of one which is held. */
static bool is_canceled(const rl_multi_call *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (rl_cancel_has_come(&p->args.cancel, rl_lock_core(p->part[i].lk)))
            return true;
    return false;
}

static rl_op *wait_until(rl_multi_call *p, int64_t until_us,
                         rl_multi_step *back)
{
    rl_multi_part *x = &p->part[p->missing];
    int64_t now_us = rl_now_us();
    rl_job_args args = {.verb = RL_JOB_ACQUIRE,
                        .wait_ms = until_us == RL_NEVER
                                       ? RLOCK_FOREVER
                                       : (until_us - now_us + 999) / 1000,
                        .cancel = p->args.cancel,
                        .joins = p->group};
    p->back = back;
    if (is_canceled(p))
        return end_wait(p, RLOCK_CANCELED, rlock_status_str(RLOCK_CANCELED));
    if (rl_owner_has_ended())
        return end_wait(p, RLOCK_CANCELED, "its owner was freed meanwhile");
    if (now_us >= until_us)
        return wait_is_over(p);
    look_before(x);
    args.lease_ms = lease_of(p, x);
    return rl_multi_ask_alone(p, x->lk, &args, one_awaited);
}

static rl_op *awaited(rl_multi_call *p)
{
    if (p->alone != RLOCK_OK)
        return refuse(p);
    return try_missing(p, first_of_name(p, p->missing));
}

static rl_op *others_let_go(rl_multi_call *p)
{
    return wait_until(p, p->wait_us, awaited);
}

/* It may be had yet, when others have given way, or the server is back. */
static bool may_be_had(rlock_status s)
{
    return s == RLOCK_TIMEOUT || s == RLOCK_EIO || s == RLOCK_ESERVER ||
           s == RLOCK_EQUORUM;
}

static rl_op *kept_for_long_enough(rl_multi_call *p)
{
    if (!may_be_had(p->alone) || p->kept_us >= p->wait_us)
        return awaited(p);
    return rl_multi_let_go(p, first_of_name(p, p->missing), others_let_go);
}

/*
 * Waits for a member that is missing. Those of its name are kept for long
 * enough that one who is to give way has done so.
 */
static rl_op *wait_for_missing(rl_multi_call *p)
{
    p->waited = true;
    p->fresh_ms = RLOCK_WATCHDOG;
    if (first_of_name(p, p->missing) == p->missing)
        return wait_until(p, p->wait_us, awaited);
    p->kept_us = rl_now_us() + KEEP_US + rl_random_below(KEEP_US);
    return wait_until(p, rl_min(p->kept_us, p->wait_us), kept_for_long_enough);
}

static rl_op *renewed(rl_multi_call *p)
{
    return p->worst.status == RLOCK_OK ? wait_for_missing(p) : start_over(p);
}

/* What is behind the first that is missing has been released again. */
static rl_op *behind_let_go(rl_multi_call *p)
{
    bool explicit = p->lease_ms != RLOCK_WATCHDOG;
    if (p->args.wait_ms == 0)
        return refuse(p);
    if (!p->waited && explicit && p->missing > 0)
        return set_lease(p, RLOCK_WATCHDOG, renewed);
    return wait_for_missing(p);
}

/*
 * A try is over. Waits for one member after the other; meanwhile those that are
 * held are renewed, whatever lease was asked for: it begins when all are.
 */
static rl_op *settled(rl_multi_call *p)
{
    if (p->refused)
        return refuse(p);
    for (p->missing = 0; p->missing < p->n && p->part[p->missing].held;)
        p->missing++;
    if (p->missing == p->n)
        return p->waited && p->lease_ms != RLOCK_WATCHDOG
                   ? set_lease(p, p->lease_ms, lease_set)
                   : all_held(p);
    p->why = p->worst;
    return rl_multi_let_go(p, p->missing, behind_let_go);
}

static int64_t longest_timeout_ms(const rl_multi *m)
{
    int64_t ms = 0;
    for (size_t i = 0; i < m->n; i++) {
        const rlock *lk = m->member[i].lk;
        const rl_core *c = rl_lock_core(lk);
        unsigned replicas = rl_replicas_of(c, lk->target.min_replicas);
        ms = rl_max(ms, rl_confirmed_end(c, replicas, 0) / 1000);
    }
    return ms;
}

rl_op *rl_multi_acquire(rl_job *j)
{
    rl_multi_call *p = RL_CONTAINER(j, rl_multi_call, job);
    if (p->part)
        p->group = rl_group_new(rl_lock_home(&p->m->base), 0);
    if (!p->group)
        return rl_multi_over(
            p, rl_lock_error(&p->m->base, RLOCK_ENOMEM, "out of memory"));
    p->wait_us = rl_after_ms(rl_job_args_began(&p->args), p->args.wait_ms);
    p->until_us = rl_after_ms(p->wait_us, longest_timeout_ms(p->m));
    p->lease_ms = p->fresh_ms = p->args.lease_ms;
    p->waited = p->refused = false;
    p->failed_us = p->failing_us = 0;
    return try_missing(p, 0);
}
