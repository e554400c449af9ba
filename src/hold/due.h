/*
 * What is due at a server, and what is held there, for its keeper: a hold is
 * put into the due queue of the server that has its slot.
 */
#ifndef RL_HOLD_DUE_H
#define RL_HOLD_DUE_H

#include "hold/hold.h"

/*
 * One more server of a cluster; false: out of memory. The due queue stays with
 * the table until its end.
 */
bool rl_holds_add_due_queue(rl_holds *t, rl_due_queue *l);

/*
 * There is another server, which may not know what the one before has granted
 * last: whatever is held there is asked about within a moment, and not all at
 * once. In a cluster that is what queue_of() says to be elsewhere now. told: it
 * is an event of its own.
 */
void rl_holds_failed_over(rl_holds *t, bool told, int64_t now_us);

/*
 * The server of a due queue is another run of it, to which since_us was sent:
 * what was confirmed to earlier calls is asked about now.
 */
void rl_holds_doubt(rl_holds *t, rl_due_queue *l, int64_t since_us);

/* For the keeper: when the hold's next renewal, look or undoing is due. */
void rl_hold_schedule_locked(rl_holds *t, rl_hold *h, int64_t due_us)
    RL_REQUIRES(&t->mutex);

/*
 * It is HELD from now on, at the server that has its slot, and not any more:
 * that server is watched as long as something is.
 */
void rl_hold_enter_queue_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex);
void rl_hold_leave_queue_locked(rl_holds *t, const rl_hold *h)
    RL_REQUIRES(&t->mutex);

/* Of the failures of renewals at one server, one in a second is told. */
bool rl_due_queue_tells_locked(rl_holds *t, rl_due_queue *l, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/*
 * When it is asked about next: now, if its server may not know what it has
 * confirmed; else that is its renewal, if it is renewed, counted from sent_us.
 * No effect on what is not HELD.
 */
void rl_hold_ask_next_locked(rl_holds *t, rl_hold *h, int64_t sent_us)
    RL_REQUIRES(&t->mutex);

/* Nothing has come of the extend for which renewals paused: they go on now, and
   the next one has been due since when it was. */
void rl_hold_resume_renewal_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/* Half of its lease is over, of which a third should have been: is told, once
   until it is renewed, if the program wants that. */
void rl_hold_warn_if_late_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/* The same of all that are held, if one may be late by now; says when the next
   one may be. */
void rl_holds_warn_late_locked(rl_holds *t, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/* Nothing of it is due. */
void rl_hold_unschedule_locked(rl_holds *t, rl_hold *h) RL_REQUIRES(&t->mutex);

/* Room for one more hold in every due queue, and among the deadlines. */
bool rl_due_queues_reserve(rl_holds *t)
    RL_REQUIRES(&t->mutex); /* false: none */
void rl_due_queues_unreserve(rl_holds *t);

/* Wakes a keeper that would look later than that. */
void rl_due_queue_nudge_locked(rl_holds *t, rl_due_queue *l, int64_t due_us)
    RL_REQUIRES(&t->mutex);

#endif
