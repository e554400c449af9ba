/*
 * The wait for a latch, as a state machine, driven and woken as an acquire is
 * (op/acquire.c), but simpler: nothing is granted, so nothing has to be undone.
 *
 *   BEGIN -> TRY -> open
 *             |--> WAIT -> TRY ...      woken, or time to look again
 *             `--> LEAVE -> done        out of the queue
 *
 * Who waits is in a room, and only its front looks, and gives this client's
 * bell. What it has found open is open for all there who began to wait before
 * it asked, so however many wait, one look is enough.
 */
#include "op/latch.h"

/* How often who is not rung looks. */
#define POLL_US (250 * 1000)

/* What was answered so lately is not asked again at the end. */
#define FRESH_US (10 * 1000)

static rl_next sleep_until(rl_latch_wait *w, int64_t until_us)
{
    w->phase = RL_PHASE_WAIT;
    w->op.sleep_us = rl_min(until_us, w->wait_until_us);
    return RL_SLEEP;
}

/* The bell stands in the queue until this asks for it back. */
static rl_next leave_queue(rl_latch_wait *w, int64_t now_us)
{
    rl_part *x = w->op.lent;
    rl_part_leave(x, w->home, w->what, now_us);
    x->op = &w->op;
    x->until_us = rl_min(x->until_us, w->call_until_us);
    w->one = x;
    w->op.n = w->op.quorum = 1;
    return RL_ASK;
}

static rl_next finish(rl_latch_wait *w, rlock_status status, int64_t now_us)
{
    bool queued = false;
    w->status = status;
    w->phase = RL_PHASE_LEAVE;
    if (w->waiter.room)
        queued = rl_room_leave(&w->home->rooms, &w->waiter, status == RLOCK_OK);
    return queued ? leave_queue(w, now_us) : RL_DONE;
}

static rl_next give_up(rl_latch_wait *w, rlock_status status, int64_t now_us)
{
    rl_fault_set(&w->fault, status, 0, "%s", rlock_status_str(status));
    return finish(w, status, now_us);
}

static rl_next fail(rl_latch_wait *w, int64_t now_us)
{
    return finish(w, w->fault.status, now_us);
}

static rl_next look(rl_latch_wait *w, int64_t now_us)
{
    rl_part *x = w->one = w->op.lent;
    rl_part_latch_look(x, w->home, w->what, now_us);
    x->op = &w->op;
    x->until_us = rl_min(x->until_us, w->call_until_us);
    if (w->waiter.room && !w->last_try)
        x->request.bell = rl_bell_of(w->home, w->what);
    if (*x->request.bell)
        rl_room_ticket(&w->home->rooms,
                       &w->waiter); /* it has one from now on */
    w->phase = RL_PHASE_TRY;
    w->asked = true;
    w->tried_us = now_us;
    w->op.n = w->op.quorum = 1;
    return RL_ASK;
}

/* In the room: what is next for who stands in line? */
static rl_next line_up(rl_latch_wait *w, int64_t now_us)
{
    rl_rooms *rooms = &w->home->rooms;
    if (rl_room_was_open(rooms, &w->waiter))
        return finish(w, RLOCK_OK, now_us);
    if (rl_cancel_has_come(&w->cancel, w->home))
        return give_up(w, RLOCK_CANCELED, now_us);
    if (now_us < w->wait_until_us) {
        if (rl_room_is_front(rooms, &w->waiter))
            return look(w, now_us);
        return sleep_until(w, now_us + rl_jitter(RL_LOOK_US));
    }
    /* It may have opened unheard: its time is over, or the server lost it. */
    if (!w->last_try &&
        !rl_room_was_busy(rooms, &w->waiter, now_us - FRESH_US)) {
        w->last_try = true;
        return look(w, now_us);
    }
    /* What came of its look, or what is left, says more than the status. */
    return w->asked ? fail(w, now_us) : give_up(w, RLOCK_TIMEOUT, now_us);
}

static rl_next look_failed(rl_latch_wait *w, int64_t now_us)
{
    bool told = w->last_try && w->fault.status == RLOCK_TIMEOUT;
    if (!told) /* how much is left says more */
        w->fault = w->one->fault;
    if (w->last_try || !w->waiter.room)
        return fail(w, now_us);
    int64_t again_us =
        rl_wait_retry_at(w->home, &w->waiter, &w->fault, &w->pause_us, now_us);
    return again_us == RL_NEVER ? fail(w, now_us) : sleep_until(w, again_us);
}

static rl_next after_look(rl_latch_wait *w, int64_t now_us)
{
    rl_rooms *rooms = &w->home->rooms;
    const rl_part *x = w->one;
    rlock_status status = w->waiter.room ? RLOCK_TIMEOUT : RLOCK_BUSY;
    if (!x->ok)
        return look_failed(w, now_us);
    w->pause_us = 0;
    if (x->code > 0)
        rl_fault_set(&w->fault, status, 0, "%lld left to count down", x->code);
    if (!w->waiter.room)
        return finish(w, x->code > 0 ? status : RLOCK_OK, now_us);
    if (x->code == 0) {
        rl_room_is_open(rooms, &w->waiter, w->tried_us);
        return finish(w, RLOCK_OK, now_us);
    }
    rl_room_is_busy(rooms, &w->waiter, 0, w->tried_us);
    if (w->last_try || now_us >= w->wait_until_us)
        return finish(w, status, now_us);
    w->listen(w->home, w->what);
    bool queued = x->grant.rank >= 0;
    return sleep_until(w, now_us + rl_jitter(queued ? RL_LOOK_US : POLL_US));
}

static rl_next begin(rl_latch_wait *w, int64_t now_us)
{
    if (w->wait_ms == 0)
        return look(w, now_us);
    if (rl_room_enter(&w->home->rooms, &w->waiter, w->what, w->handle,
                      w->op.waker, w->began_us))
        return line_up(w, now_us);
    rl_fault_set(&w->fault, RLOCK_ENOMEM, 0, "out of memory");
    return fail(w, now_us);
}

static rl_next resume(rl_op *op, rl_wake why, int64_t now_us)
{
    rl_latch_wait *w = RL_CONTAINER(op, rl_latch_wait, op);
    switch (w->phase) {
    case RL_PHASE_BEGIN:
        return begin(w, now_us);
    case RL_PHASE_WAIT:
        if (why == RL_WAKE_CLOSE)
            return give_up(w, RLOCK_ECLOSED, now_us);
        if (why == RL_WAKE_CANCEL)
            return give_up(w, RLOCK_CANCELED, now_us);
        return line_up(w, now_us);
    case RL_PHASE_LEAVE:
        return RL_DONE;
    default:
        return after_look(w, now_us);
    }
}

void rl_latch_wait_init(rl_latch_wait *w, int64_t now_us)
{
    rl_op_init(&w->op, &w->one);
    w->op.resume = resume;
    w->phase = RL_PHASE_BEGIN;
    w->began_us = now_us;
    w->wait_until_us = rl_after_ms(now_us, w->wait_ms);
    w->call_until_us = rl_command_end(w->home, w->wait_until_us);
}
