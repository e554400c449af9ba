/*
 * The wait for a lock, as a state machine. Its driver is the owner's thread (or
 * loop); the mutex of the rooms guards what it shares with others that wait.
 *
 *   BEGIN -> TRY -> owned
 *             |--> WAIT -> TRY ...      woken, or time to look again
 *             `--> LEAVE -> done        the wait is over: out of the queue
 *
 * A lock that nobody here waits for is tried at once, and a room is entered
 * only when it is busy. Who waits is in a room; only its front tries, and gives
 * this client's bell, once somebody hears it. A ring may be lost, so all look
 * by themselves, too, if only to see whether they are the front. While it
 * sleeps, a thread that unlocks may hand the lock over to it (op/handover.c).
 */
#include "op/acquire.h"
#include "base/probe.h"
#include "hold/step.h"
#include "op/handover.h"

#define FIRST_PAUSE_US (20 * 1000)
#define LAST_PAUSE_US  (500 * 1000)

/* Who is not the front looks once more rarely for each so many who wait with him, and
   so much more rarely at most; and then at instants that are so far apart. */
#define GROUP       16
#define RAREST_LOOK 10
#define TOGETHER_US (100 * 1000)

/*
 * Before it begins to wait: or is it waited for by whom it would wait for? Who
 * holds nothing is not.
 */
static bool may_wait(rl_acquire *a, int64_t now_us)
{
    if (a->contended || a->owner->holds == 0 || a->home->set.no_deadlock_check)
        return true;
    return rl_wait_begins(&a->home->holds, a->owner, a->what, now_us, &a->wait,
                          &a->fault);
}

/*
 * Its on_event may want a connection of this client. It may acquire the lock, too,
 * as the same owner, who would wait for himself then; or free the owner.
 */
static void tell(rl_acquire *a, rlock_event_type type, int64_t elapsed_us,
                 const char *message)
{
    rlock_event ev = {.type = type,
                      .name = a->what->name,
                      .name_len = a->what->len,
                      .elapsed_ms = elapsed_us / 1000,
                      .message = message,
                      .owner = a->owner->label ? a->owner->label : "",
                      .kind = rl_target_layout(a->what)->kind};
    rl_tell(a->home, &ev);
    a->is_own = a->owner->holds > 0 && !a->home->set.no_deadlock_check &&
                rl_holds_has(&a->home->holds, a->what, a->owner, rl_now_us());
    if (a->is_own || atomic_load(&a->owner->ended))
        a->op.sleep_us = 0;
}

static void tell_contended(rl_op *op)
{
    tell(RL_CONTAINER(op, rl_acquire, op), RLOCK_EVENT_CONTENDED, 0, "");
}

/* Who is not the first here has not asked. */
static void tell_long_wait(rl_op *op)
{
    rl_acquire *a = RL_CONTAINER(op, rl_acquire, op);
    const char *who = a->asks_who || a->failing
                          ? a->fault.text
                          : "others of this client wait before it";
    rl_add(&a->home->stats.warned[RL_WARNED_WAIT], 1);
    a->warns = a->asks_who = false;
    tell(a, RLOCK_EVENT_WAITED_LONG, a->warned_us - a->began_us, who);
}

/* It is time to tell, when it has been tried once more. */
static void note_long_wait(rl_acquire *a, int64_t now_us)
{
    if (now_us < a->warn_us)
        return;
    a->warn_us = RL_NEVER;
    a->warned_us = now_us;
    a->warns = true;
}

static void contend(rl_acquire *a)
{
    if (a->contended)
        return;
    a->contended = true;
    rl_stats *s = &a->home->stats;
    rl_stats_add(s, &s->acquires_contended, a->what->name, a->what->len, 1);
    rl_stats_add(s, &s->waiting_now, a->what->name, a->what->len, 1);
    a->op.tell = tell_contended;
}

static rl_next sleep_until(rl_acquire *a, int64_t until_us)
{
    a->phase = RL_PHASE_WAIT;
    a->op.sleep_us = rl_min(rl_min(until_us, a->wait_until_us), a->warn_us);
    if (a->warns && !a->op.tell)
        a->op.tell = tell_long_wait;
    rl_room_rest(&a->home->rooms, &a->waiter, a->draft,
                 a->lease_ms == RLOCK_WATCHDOG, a->wait_until_us);
    return RL_SLEEP;
}

/*
 * Who has acquired it wakes nobody: he is to hand it over. But his hold may
 * have ended since, by another thread that has freed the owner, say, while he
 * was the front still, for whom there was nothing to do.
 */
static void call_next_if_over(rl_acquire *a, int64_t now_us)
{
    rl_core *c = a->home;
    const rl_target *what = a->what;
    if (!rl_holds_has(&c->holds, what, a->owner, now_us))
        rl_rooms_look(&c->rooms, what->name, what->len, what->scope, false);
}

/* In figures. */
static void count_end(rl_acquire *a, int64_t now_us)
{
    rl_stats *s = &a->home->stats;
    const rl_target *what = a->what;
    int64_t us = now_us - a->began_us;
    bool tried = a->joins && a->wait_ms == 0; /* by a Multi lock */
    if (a->status == RLOCK_OK && !tried)
        rl_stats_granted(s, what->name, what->len, us);
    if (!a->contended)
        return;
    rl_stats_add(s, &s->wait_us_total, what->name, what->len, us);
    rl_stats_add(s, &s->waiting_now, what->name, what->len, -1);
    a->contended = false;
}

/*
 * Whoever has acquired it leaves without waking the next one: he is to hand it
 * over, or it is granted by a message. But when nobody has asked for long, he
 * has to, for the server to know that those who stand in line here live.
 */
static bool leaves_quietly(const rl_acquire *a, int64_t now_us)
{
    if (a->status != RLOCK_OK || !a->waiter.room)
        return false;
    return a->attempt->in_line ? rl_room_was_busy(&a->home->rooms, &a->waiter,
                                                  now_us - RL_LOOK_US)
                               : rl_scope_hands_over(a->what->scope);
}

static rl_next finish(rl_acquire *a, rlock_status status, int64_t now_us)
{
    rl_core *c = a->home;
    bool unqueued = status == RLOCK_OK && a->with_bell && !a->attempt->in_line;
    bool queued = false;
    a->status = status;
    RL_PROBE(acquire_end, a->what->name, a->what->len, status,
             now_us - a->began_us);
    rl_wait_ends(&c->holds, &a->wait);
    count_end(a, now_us);
    if (a->waiter.room && status == RLOCK_OK)
        rl_room_answered(&c->rooms, &a->waiter);
    a->waiter.quiet = leaves_quietly(a, now_us);
    if (a->waiter.room) {
        queued = rl_room_leave(&c->rooms, &a->waiter, unqueued);
        if (a->waiter.quiet)
            call_next_if_over(a, now_us);
    }
    a->phase = RL_PHASE_LEAVE;
    return a->attempt->leave(a, queued, now_us) ? RL_ASK : RL_DONE;
}

/* What has been answered says more than what it comes to: who has it. */
static rl_next give_up(rl_acquire *a, rlock_status status, int64_t now_us)
{
    bool told = a->asked && (status == RLOCK_BUSY || status == RLOCK_TIMEOUT);
    if (told)
        a->fault.status = status;
    else
        rl_fault_set(&a->fault, status, 0, "%s", rlock_status_str(status));
    return finish(a, status, now_us);
}

/* Who had it while we waited may not be who has it at the end. */
static void tell_who_has_it(rl_acquire *a)
{
    const rl_part *x = a->one;
    if (a->status != RLOCK_TIMEOUT || a->red || a->op.n == 0 || !x->ok ||
        !x->what)
        return;
    a->fault = x->fault;
    a->fault.status = RLOCK_TIMEOUT;
}

static rl_next fail(rl_acquire *a, int64_t now_us)
{
    return finish(a, a->fault.status, now_us);
}

/*
 * The same as sleep_until() for who has to wait for another one. It says so
 * only when it sleeps, and may be offered the lock.
 */
static rl_next wait_until(rl_acquire *a, int64_t until_us, int64_t now_us)
{
    if (!may_wait(a, now_us))
        return fail(a, now_us);
    rl_next next = sleep_until(a, until_us);
    contend(a);
    return next;
}

/*
 * Of one server, an answer says either who has the lock, or that the client
 * stands in the queue. It stands there first: what it was rung for, or a
 * hand-over, may just have taken it out, and while it sleeps nobody would ring.
 */
static rl_next begin_try(rl_acquire *a, int64_t now_us)
{
    a->phase = RL_PHASE_TRY;
    a->asked = true;
    a->asks_who = a->warns && (a->red || a->stood);
    a->stood = false;
    a->tried_us = now_us;
    return a->attempt->begin(a, now_us) ? RL_ASK : fail(a, now_us);
}

/* A reader's mark (lua/rw/acquire.lua) does not live for ever. */
static bool has_to_ask(const rl_acquire *a, int64_t now_us)
{
    bool marked = rl_target_layout(a->what)->kind == RLOCK_KIND_READ;
    return rl_room_has_to_ask(&a->home->rooms, &a->waiter) ||
           (marked && now_us - a->tried_us > RL_MARKED_US);
}

/*
 * Who is not the front becomes it unasked: he is woken then, unless the lock is to be
 * handed over to him, so he need not look often. Among many he does so more rarely,
 * and when others do, so that the loop wakes up once for some of them: 10,000 that look
 * every 2 s, each at his own time, take 3 % of a processor. Of permits, the others may
 * come back without a ring.
 */
static int64_t next_look_us(const rl_acquire *a, int64_t now_us)
{
    if (rl_target_layout(a->what)->kind == RLOCK_KIND_PERMIT)
        return now_us + rl_jitter(RL_FOREIGN_LOOK_US);
    int64_t groups = rl_room_crowd(&a->home->rooms, &a->waiter) / GROUP;
    int64_t us =
        now_us + rl_jitter(RL_LOOK_US * rl_min(1 + groups, RAREST_LOOK));
    return groups > 0 ? us - us % TOGETHER_US : us;
}

/* In the room: what is next for who stands in line? */
static rl_next line_up(rl_acquire *a, int64_t now_us)
{
    if (rl_cancel_has_come(&a->cancel, a->home))
        return give_up(a, RLOCK_CANCELED, now_us);
    if (a->held_back_us > now_us)
        return sleep_until(a, a->held_back_us);
    if (has_to_ask(a, now_us))
        return begin_try(a, now_us);
    return wait_until(a, next_look_us(a, now_us), now_us);
}

static bool enter_room(rl_acquire *a)
{
    rl_rooms *rooms = &a->home->rooms;
    if (rl_room_enter(rooms, &a->waiter, a->what, a->handle, a->op.waker,
                      a->began_us)) {
        a->held_back_us = rl_room_held_back_until(rooms, &a->waiter);
        if (a->attempt->attend)
            a->attempt->attend(a);
        return true;
    }
    rl_fault_set(&a->fault, RLOCK_ENOMEM, 0, "out of memory");
    return false;
}

int64_t rl_wait_retry_at(rl_core *home, const rl_waiter *w, const rl_fault *f,
                         int64_t *pause_us, int64_t now_us)
{
    int64_t since_us = rl_room_failed(&home->rooms, w, now_us);
    if (!f->transient || now_us - since_us > home->set.watchdog_lease_ms * 1000)
        return RL_NEVER;
    *pause_us = rl_min(rl_max(*pause_us * 2, FIRST_PAUSE_US), LAST_PAUSE_US);
    return now_us + rl_jitter(*pause_us);
}

/*
 * It is held by another owner: those behind need not ask in the end. Who stands in
 * line and has given no bell has not said that they live.
 */
static void tell_room(rl_acquire *a)
{
    if (a->attempt->in_line && !*a->one->request.bell) {
        rl_room_answered(&a->home->rooms, &a->waiter);
        return;
    }
    rl_room_is_busy(&a->home->rooms, &a->waiter, a->with_bell ? a->ticket : 0,
                    a->tried_us);
}

static void note_busy(rl_acquire *a)
{
    rl_core *c = a->home;
    if (a->rung)
        rl_add(&c->stats.wakeups_futile, 1);
    a->rung = false;
    tell_room(a);
    a->listen(c, a->what);
}

/*
 * Whoever entered before the bell was heard is woken by it. Of a cluster there
 * is a bell for each name, which may be heard since this one asked for it.
 */
static bool hears(const rl_acquire *a)
{
    return a->waiter.heard || (a->home->hears && *rl_bell_of(a->home, a->what));
}

/* A try has failed, and there may be others. */
static rl_next wait_on(rl_acquire *a, bool busy, int64_t now_us)
{
    int64_t again_us = a->again_us;
    bool entered = a->waiter.room != NULL;
    if (!entered && !enter_room(a))
        return fail(a, now_us);
    if (busy)
        note_busy(a);
    else
        again_us = rl_wait_retry_at(a->home, &a->waiter, &a->fault,
                                    &a->pause_us, now_us);
    if (again_us == RL_NEVER)
        return fail(a, now_us);
    /* Before it entered, a cancel could not wake it. */
    if (rl_cancel_has_come(&a->cancel, a->home))
        return give_up(a, RLOCK_CANCELED, now_us);
    if (busy && a->warns && !a->asks_who) {
        a->stood = true;
        return begin_try(a, now_us);
    }
    /* Not the first; or the bell, which the try did not give, is heard. */
    if (!entered && (!rl_room_is_front(&a->home->rooms, &a->waiter) ||
                     (busy && hears(a)))) {
        if (!may_wait(a, now_us))
            return fail(a, now_us);
        contend(a);
        return line_up(a, now_us);
    }
    return wait_until(a, again_us, now_us);
}

static rl_next after_try(rl_acquire *a, int64_t now_us)
{
    rl_try result = a->attempt->judge(a, now_us);
    if (result == RL_TRY_OWNED)
        return finish(a, RLOCK_OK, now_us);
    if (result == RL_TRY_MORE)
        return RL_ASK;
    a->failing = result == RL_TRY_FAILED;
    if (a->failing && (a->last_try || a->wait_ms == 0))
        return fail(a, now_us);
    if (a->wait_ms == 0)
        return give_up(a, RLOCK_BUSY, now_us);
    if (a->last_try) {
        tell_room(a);
        return give_up(a, RLOCK_TIMEOUT, now_us);
    }
    return wait_on(a, result == RL_TRY_BUSY, now_us);
}

/* In a server's line only who does not stand there is told who has it. */
static bool asks_once_more(const rl_acquire *a)
{
    if (a->attempt->in_line)
        return !a->failing;
    return !a->asked &&
           !rl_room_was_busy(&a->home->rooms, &a->waiter, a->began_us);
}

/*
 * The wait is over without success, unless the server was never asked, for
 * this owner or for the one in front.
 */
static rl_next time_is_up(rl_acquire *a, int64_t now_us)
{
    if (asks_once_more(a)) {
        a->last_try = true;
        return begin_try(a, now_us);
    }
    return a->failing ? fail(a, now_us) : give_up(a, RLOCK_TIMEOUT, now_us);
}

/* Whatever else has come: it would be nobody's. */
static rl_next handed(rl_acquire *a, int64_t now_us)
{
    rl_add(&a->home->stats.wakeups, 1);
    a->rung = false;
    a->asked = true;
    return a->attempt->handed(a, now_us) ? after_try(a, now_us)
                                         : begin_try(a, now_us);
}

static bool is_in_vain(rl_acquire *a)
{
    bool ended = atomic_load(&a->owner->ended);
    if (ended)
        rl_fault_set(&a->fault, RLOCK_CANCELED, 0,
                     "its owner was freed meanwhile");
    else if (a->is_own)
        rl_fault_set(&a->fault, RLOCK_EDEADLK, 0,
                     "its owner has it by now, from a callback of this call, "
                     "and would wait for itself");
    return a->is_own || ended;
}

static rl_next woken(rl_acquire *a, rl_wake why, int64_t now_us)
{
    if (why == RL_WAKE_CLOSE)
        return give_up(a, RLOCK_ECLOSED, now_us);
    if (why == RL_WAKE_CANCEL)
        return give_up(a, RLOCK_CANCELED, now_us);
    if (is_in_vain(a))
        return fail(a, now_us);
    note_long_wait(a, now_us);
    if (a->attempt->look)
        a->attempt->look(a);
    if (why == RL_WAKE_LOOK)
        a->held_back_us = rl_room_held_back_until(&a->home->rooms, &a->waiter);
    a->rung = a->rung || why == RL_WAKE_RUNG;
    if (why == RL_WAKE_RUNG)
        rl_add(&a->home->stats.wakeups, 1);
    if (now_us >= a->wait_until_us)
        return time_is_up(a, now_us);
    bool asks_when = a->rung && a->attempt->rung;
    int64_t at_us = asks_when ? a->attempt->rung(a, now_us) : now_us;
    return at_us > now_us ? sleep_until(a, at_us) : line_up(a, now_us);
}

static rl_next rise(rl_acquire *a, rl_wake why, int64_t now_us)
{
    switch (rl_room_rise(&a->home->rooms, &a->waiter, why)) {
    case RL_HANDED:
        return handed(a, now_us);
    case RL_OFFERED:
        a->op.sleep_us = RL_NEVER; /* an offer is resolved, and wakes us */
        return RL_SLEEP;
    default:
        return woken(a, why, now_us);
    }
}

static rl_next begin(rl_acquire *a, int64_t now_us)
{
    if (a->wait_ms == 0)
        return begin_try(a, now_us);
    if (rl_cancel_has_come(&a->cancel, a->home))
        return give_up(a, RLOCK_CANCELED, now_us);
    if (!a->attempt->in_line && !*rl_bell_of(a->home, a->what) &&
        !rl_rooms_is_owed(&a->home->rooms, a->what, now_us))
        return begin_try(a, now_us);
    return enter_room(a) ? line_up(a, now_us) : fail(a, now_us);
}

static rl_next resume(rl_op *op, rl_wake why, int64_t now_us)
{
    rl_acquire *a = RL_CONTAINER(op, rl_acquire, op);
    switch (a->phase) {
    case RL_PHASE_BEGIN:
        return begin(a, now_us);
    case RL_PHASE_WAIT:
        return rise(a, why, now_us);
    case RL_PHASE_LEAVE:
        tell_who_has_it(a);
        if (a->red || a->one != a->op.lent)
            rl_op_let_go(&a->op);
        return RL_DONE;
    default:
        return after_try(a, now_us);
    }
}

void rl_acquire_init(rl_acquire *a, int64_t now_us)
{
    a->op.resume = resume;
    a->op.part = a->red ? a->red->part : &a->one;
    a->is_own = false;
    a->phase = RL_PHASE_BEGIN;
    a->overdue = 0;
    a->began_us = now_us;
    a->wait_until_us = rl_after_ms(now_us, a->wait_ms);
    a->call_until_us = rl_confirmed_end(
        a->home, rl_replicas_of(a->home, a->what->min_replicas),
        a->wait_until_us);
    a->again_us = now_us;
    a->warn_us = a->home->set.warn_wait_ms
                     ? rl_after_ms(now_us, a->home->set.warn_wait_ms)
                     : RL_NEVER;
    RL_PROBE(acquire_begin, a->what->name, a->what->len, a->wait_ms);
}
