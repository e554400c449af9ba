/* The script calls, written as words. whole: to a server that lacks it. */
#ifndef RL_OP_CALL_H
#define RL_OP_CALL_H

#include "op/request.h"

/* Fills g->sha1, for a hold of this layout; compare and strict are set. */
void rl_guarded_sum(rl_guarded *g, const rl_layout *layout);

void rl_call_acquire(rl_bytes *to, bool whole, const rl_hold *h,
                     const rl_request *r);

/* The release script's replies: somebody was rung; somebody has it now; from here on
   the tombstone is missing. */
#define RL_RUNG     2
#define RL_GRANTED  3
#define RL_UNBURIED 10

/*
 * Frees a hold, or counts it down to a level. When an acquire of the hold may
 * still arrive, freeing it leaves a tombstone. quiet: nobody is rung, for what
 * is freed was never more than a vote. bell: what the hold may have wanted by
 * that is not granted any more; "": it wants nothing.
 */
void rl_call_release(rl_bytes *to, bool whole, const rl_hold *h, int level,
                     bool quiet, const char *bell);

/* Frees it, by the one key that can be had while its slot moves. */
void rl_call_drop(rl_bytes *to, bool whole, const rl_hold *h);

/*
 * Frees a hold and grants another, a draft, in its place; or only frees it,
 * should somebody have waited for longer than patience_us. bell: as in a
 * request; it leaves the queue.
 */
void rl_call_hand_over(rl_bytes *to, bool whole, const rl_hold *h,
                       const rl_hold *next, const rl_request *r,
                       int64_t patience_us);

/*
 * compare: a late copy of the hold's own acquire may make the server believe in
 * it again, after it has been forced and others had the lock. The tokens tell:
 * such a hold says its own, and is gone if there is a later one. A renewal
 * names the token's key of a hold that keeps it, too.
 */
void rl_call_renew(rl_bytes *to, bool whole, const rl_hold *h, int64_t lease_ms,
                   bool compare);
void rl_call_extend(rl_bytes *to, bool whole, const rl_hold *h,
                    int64_t lease_ms, bool compare);

/* Writes what the server has of a hold's lock once more; by this script. */
rl_script_id rl_touch_of(const rl_hold *h);
void rl_call_touch(rl_bytes *to, bool whole, const rl_hold *h);

/* Of many holds of one layout, none of which compares. */
void rl_call_renew_many(rl_bytes *to, bool whole, const rl_hold *const *h,
                        size_t n, int64_t lease_ms);

/* All of them or none, whose layout has the script; and all. */
void rl_call_take_many(rl_bytes *to, bool whole, const rl_hold *const *h,
                       size_t n, int64_t lease_ms);
void rl_call_free_many(rl_bytes *to, bool whole, const rl_hold *const *h,
                       size_t n);

/*
 * Of a latch: counts it down by h->token, or sets it to that, to live for
 * h->lease_ms (0: for ever), with the draft's uuid as the mark; tells how far
 * it is; opens it.
 */
void rl_call_count_down(rl_bytes *to, bool whole, const rl_hold *h);
void rl_call_latch_set(rl_bytes *to, bool whole, const rl_hold *h);
void rl_call_latch_look(rl_bytes *to, bool whole, const rl_target *what,
                        const char *bell);
void rl_call_latch_delete(rl_bytes *to, bool whole, const rl_target *what);

/* Writes a token back that another server has minted. */
void rl_call_raise(rl_bytes *to, bool whole, const rl_hold *h, uint64_t token);

/* The hold's lock goes behind the script's own keys, and so its holder. */
void rl_call_guarded(rl_bytes *to, bool whole, const rl_hold *h,
                     const rl_guarded *g);

/* Tells who holds a lock of this name, and who waits for it, also in a line; kind:
   for what. */
void rl_call_waits(rl_bytes *to, bool whole, const char *name, size_t len,
                   bool in_line, rlock_kind kind);

/* Tells what there is of a lock of this name, and of its line; permits: or of a
   semaphore. */
void rl_call_survey(rl_bytes *to, bool whole, const char *name, size_t len,
                    bool in_line, bool permits);

/* Tells how a read-write lock is had, whichever side that is. */
void rl_call_rw_state(rl_bytes *to, bool whole, const rl_target *what);

/* Tells who holds a lock; of a side that holder, if he does (NULL: nobody in
   particular). */
void rl_call_inspect(rl_bytes *to, bool whole, const rl_target *what,
                     const char *holder_id);

/* Frees a lock, whoever holds it. */
void rl_call_force_release(rl_bytes *to, bool whole, const rl_target *what);

/* Frees a lock if the hold with this holder id has it, whosever that is. */
void rl_call_release_of(rl_bytes *to, bool whole, const rl_target *what,
                        const char *holder_id);

/*
 * Takes a client out of a lock's queue; if it had been rung already, for a lock
 * that is still free, the next client is rung. wants: some of the client may
 * have said what they want.
 */
void rl_call_leave(rl_bytes *to, bool whole, const char *name, size_t len,
                   const char *bell, bool wants);

#endif
