/*
 * What an operation does to a hold in one step, with the table's mutex, which
 * each of these takes by itself.
 */
#ifndef RL_HOLD_STEP_H
#define RL_HOLD_STEP_H

#include "hold/hold.h"

/* --- what is so ----------------------------------------------------------- */

/* Is the hold HELD, and its deadline not passed? Otherwise it is LOST from here
   on, and *why (if not NULL) says why. */
bool rl_hold_is_valid(rl_holds *t, rl_hold *h, rl_loss *why, int64_t now_us);

/* Has the owner a hold of this name that is valid? */
bool rl_holds_has(rl_holds *t, const rl_target *what, const rl_owner *owner,
                  int64_t now_us);

/* Until when a hold is valid; 0: not any more. */
int64_t rl_hold_deadline(rl_holds *t, rl_hold *h, int64_t now_us);

bool rl_hold_is_renewed(rl_holds *t, const rl_hold *h);

/* See rl_hold_compares_locked(). */
bool rl_hold_compares(rl_holds *t, const rl_hold *h);

/* See rl_hold_has_ended_locked(). */
bool rl_hold_has_ended(rl_holds *t, const rl_hold *h);

/*
 * Its owner is about to extend it: is no renewal of the hold under way any more?
 * Otherwise the waker is told when it has ended; NULL: nobody waits any more.
 * Without memory for what may come of that (h->extra stays NULL) none is waited
 * for.
 */
bool rl_hold_has_landed(rl_holds *t, rl_hold *h, rl_waker *waker);

/* --- what is noted -------------------------------------------------------- */

/* One reference more, which rl_holds_put() takes back. */
void rl_hold_ref(rl_holds *t, rl_hold *h);

/* The line that has the hold's latest call, for rl_hold_line(); NULL: the call
   is answered. */
void rl_hold_set_line(rl_holds *t, rl_hold *h, const struct rl_line *line);

/* A copy of a call may be executed yet. An acquire says so by `unknown`. */
void rl_hold_go_astray(rl_holds *t, rl_hold *h);

/* The server may count more than one level; astray: or may do so later. */
void rl_hold_go_deep(rl_holds *t, rl_hold *h, bool astray);

/* The server counts one level again. */
void rl_hold_come_up(rl_holds *t, rl_hold *h);

/* As rl_hold_keep_spare(), for a part that was late: only if the hold is HELD. */
bool rl_hold_keep_late_spare(rl_holds *t, rl_hold *h, struct rl_part *x);

/* A draft is about to be granted by a command that was sent then: if there is
   memory, its owner's turn begins. left: see rl_extra. */
void rl_hold_begin_turn(rl_holds *t, rl_hold *draft, int64_t sent_us,
                        unsigned left);

/* --- what becomes of it --------------------------------------------------- */

/*
 * The server has answered a call, sent at sent_us, that it does not have the
 * hold: it is LOST, and the answer is why. A node of a Red lock may have granted
 * it anew since; a late answer is not about that.
 */
rl_loss rl_hold_note_gone(rl_holds *t, rl_hold *h, rl_loss why, int64_t sent_us,
                          int64_t now_us);

/* See the functions of these names in hold.h. */
void rl_hold_report_loss(rl_holds *t, rl_hold *h, rl_loss why, int64_t now_us);
void rl_hold_pause_renewal(rl_holds *t, rl_hold *h);
int64_t rl_hold_lower(rl_holds *t, rl_hold *h, int64_t sent_us,
                      int64_t lease_ms);
void rl_hold_undo(rl_holds *t, rl_hold *h, int64_t due_us);
void rl_hold_drop(rl_holds *t, rl_hold *h, bool undo, int64_t due_us);

/* Renews the hold no more, if it was renewed: it ends with its lease. */
void rl_hold_lapse(rl_holds *t, rl_hold *h);

/* The thread has woken to whom the hold was passed: it is found from now on.
   False: it has been lost meanwhile, and is OVER. */
bool rl_hold_arrive(rl_holds *t, rl_hold *h, int64_t now_us);

/* Puts the hold of a node into the table, though the node does not have it, or
   has not answered yet: it may join its group later. */
void rl_hold_list_absent(rl_holds *t, rl_hold *h, bool answered,
                         int64_t now_us);

/* Renews the hold of a node, or does no more, as the group has it. */
void rl_hold_set_policy(rl_holds *t, rl_hold *h, bool renewed, int64_t now_us);

#endif
