/*
 * The steps of which every kind of lock is made: what one verb means for one
 * hold on one server. A step begins by looking at the hold table, and ends by
 * noting the answer; its call is made in between, with no lock held: by itself,
 * in a pipeline with others, or on several servers at once.
 *
 * Only the owning thread counts its hold, so between the two nobody else
 * changes the level; the watchdog may prolong the hold or find it lost, which
 * the end takes into account. Scripts are told the level to reach, so an answer
 * that never came can be asked for again.
 */
#ifndef RL_LOCK_STEP_H
#define RL_LOCK_STEP_H

#include "drive/engine.h"

typedef enum rl_verb {
    RL_VERB_ACQUIRE,
    RL_VERB_REENTER,
    RL_VERB_RELEASE,
    RL_VERB_UNDO, /* a release of what may have been granted */
    RL_VERB_EXTEND
} rl_verb;

typedef struct rl_step {
    rl_verb verb;
    rl_engine *e;
    rl_hold *hold; /* the caller's reference */
    int level;     /* to reach, or to leave */
    int64_t lease_ms;
    bool renewed;     /* RLOCK_WATCHDOG */
    int64_t until_us; /* when to stop asking */
    int64_t began_us;
    const char *bell; /* of an acquire; "": do not queue */
    int64_t ticket;
    bool minds_token; /* an acquire that says the least token */
    uint64_t token;   /* that */
} rl_step;

/* Puts the step's call together. */
void rl_step_call(const rl_step *s, rl_hold_call *c);

/* Makes it, as rl_ask() does, until the step's until_us. */
void rl_step_ask(const rl_step *s, rl_answer *a);

/* The thread's hold of what, referenced, or NULL; *valid: it is not lost. */
rl_hold *rl_pick_up(rl_engine *e, const rl_target *what, bool *valid);
void rl_put_back(rl_engine *e, rl_hold *h); /* NULL is accepted */

/* --- acquire ------------------------------------------------------------- */

typedef enum rl_verdict {
    RL_ACQUIRED,
    RL_BUSY,
    RL_GONE, /* a level more was asked for, and the hold is lost */
    RL_FAILED
} rl_verdict;

typedef struct rl_grant {
    uint64_t token; /* when acquired */
    int64_t sent_us;
    int64_t ttl_ms; /* when busy; -1: the holder has no expiry */
    int64_t ticket;
    int64_t clock_us; /* the server's, when acquired and it was asked; or 0 */
    bool foreign;     /* the holder is no client of ours, and rings nobody */
} rl_grant;

/* Reads an acquire's answer, for a level. */
rl_verdict rl_grant_read(rl_answer *a, int level, rl_grant *g);

/* A new draft; NULL: out of memory or randomness. holder may be NULL: new. */
rl_hold *rl_draft(rl_engine *e, const rl_target *what, const char *holder,
                  int64_t lease_ms);

/* The outermost acquire, of a draft. lease_ms as in rlock_acquire(). */
void rl_acquire_begin(rl_step *s, rl_engine *e, rl_hold *draft,
                      int64_t lease_ms);

/* What became of it; RL_FAILED fills *f. The hold stays a draft. */
rl_verdict rl_acquire_end(rl_step *s, rl_answer *a, rl_grant *g, rl_fault *f);

/* The grant is accepted: the table takes over the reference. */
void rl_take_over(rl_step *s, const rl_grant *g, uint64_t token);

/* What the server may have, or may yet get, of a draft is undone. */
void rl_give_up(rl_engine *e, rl_hold *draft);

/* A draft that was granted is released: a step at the caller's expense. */
void rl_undo_begin(rl_step *s, rl_engine *e, rl_hold *draft);
void rl_undo_end(rl_step *s, const rl_answer *a);

/* One level more. False: there are too many. */
bool rl_reenter_begin(rl_step *s, rl_engine *e, rl_hold *h, int64_t lease_ms);
rlock_status rl_reenter_end(rl_step *s, rl_answer *a, rl_fault *f);

/* --- release ------------------------------------------------------------- */

/*
 * Counts down to a level locally, whatever comes of it. False: the hold was
 * not good any more. At 0 it is out of the table and its reference the
 * caller's, until the end of the step.
 */
bool rl_count_down(rl_engine *e, rl_hold *h, int level);

void rl_release_begin(rl_step *s, rl_engine *e, rl_hold *h, int level);

/* *rung: another client has been woken. */
rlock_status rl_release_end(rl_step *s, const rl_answer *a, bool *rung,
                            rl_fault *f);

/* Instead of both, when the hold was not good any more. */
rlock_status rl_release_lost(rl_engine *e, rl_hold *h, int level, rl_fault *f);

/* --- extend -------------------------------------------------------------- */

/*
 * Pauses renewal, and waits until one that is under way has landed. False: it
 * has not by then.
 */
void rl_extend_pause(rl_engine *e, rl_hold *h);
bool rl_extend_wait(rl_engine *e, rl_hold *h, int64_t until_us);

/*
 * Both, with patience until patience_us. False: a renewal is under way still,
 * and rl_extend_fail() is to follow, instead of the call and its end.
 */
bool rl_extend_begin(rl_step *s, rl_engine *e, rl_hold *h, int64_t lease_ms,
                     int64_t patience_us);
rlock_status rl_extend_end(rl_step *s, const rl_answer *a, rl_fault *f);
rlock_status rl_extend_fail(rl_step *s, rl_fault *f);

#endif
