/*
 * What the files of Multi locks share: the handle (multi_new.c), a round of a
 * verb on its members (multi_round.c), the verbs (multi.c), and acquire, which
 * is the one that waits (multi_acquire.c).
 */
#ifndef RL_LOCK_MULTI_H
#define RL_LOCK_MULTI_H

#include "core/extend.h"
#include "lock/lock.h"

typedef struct rl_member {
    rlock *lk;       /* a handle of our own, so that cancels are ours */
    size_t position; /* in the caller's list, from 1 */
} rl_member;

typedef struct rl_multi {
    rlock base;
    atomic_bool one_by_one; /* a server has refused to be asked for several */
    size_t n;
    rl_member member[RLOCK_MULTI_MAX]; /* in the global order */
} rl_multi;

extern const rl_lock_kind rl_multi_kind;

void rl_multi_free(rlock *lk);

/* Are they locks of one name? They may be on different servers. */
bool rl_multi_same_name(const rlock *a, const rlock *b);

/* --- a call --------------------------------------------------------------- */

/* What a verb does with one member. */
typedef struct rl_multi_part {
    rlock *lk;
    size_t position;
    int cancel;    /* the thread's state, while inside of the client */
    bool wanted;   /* to be done in the next round */
    bool inside;   /* of the client, for this round */
    bool held;     /* taken by this call, or to be released by it */
    bool fresh;    /* taken by this call, and not held before */
    bool left;     /* not taken, for another one of its server was busy */
    rl_hold *hold; /* referenced, while inside; NULL: the call has none */
    rl_part it;
} rl_multi_part;

/* A verb of the whole in progress. */
typedef struct rl_multi_call {
    rl_multi *m;
    int64_t lease_ms;  /* as asked for */
    int64_t fresh_ms;  /* for now, of what is taken anew */
    int64_t until_us;  /* of the call */
    rlock_error worst; /* what to report */
    size_t n;
    rl_multi_part *part;
    rl_extend op;
} rl_multi_call;

/*
 * One verb for the members that are wanted. begin() makes the member's part;
 * otherwise it sets the thread's error and answers a status. end() says what
 * came of it, if there is anything to say. Neither calls back into the program:
 * events come afterwards.
 */
typedef struct rl_multi_verb {
    rlock_status (*begin)(rl_multi_call *p, rl_multi_part *x, bool valid,
                          int64_t now_us);
    void (*end)(rl_multi_call *p, rl_multi_part *x,
                int64_t now_us); /* or NULL */
    rlock_event_type event;      /* of a member that is ok; 0: none */
    bool extends;
} rl_multi_verb;

/* False: out of memory, and the thread's error is set. */
bool rl_multi_begin(rl_multi_call *p, rlock *lk);
void rl_multi_end(rl_multi_call *p);

/* The verb, for the members that are wanted and are no Red locks. */
void rl_multi_round(rl_multi_call *p, const rl_multi_verb *v);

/* A member's status; the thread's error is about it. */
void rl_multi_note(rlock_error *worst, size_t position, rlock_status s);

/* Sets the thread's error to the worst, and returns its status. */
rlock_status rl_multi_report(const rlock_error *worst);

/* Releases the members from this one on that are marked as held. */
void rl_multi_let_go(rl_multi_call *p, size_t from);

/* Sets the lease of the members that are wanted to p->fresh_ms. */
void rl_multi_extend_wanted(rl_multi_call *p);

rlock_status rl_multi_acquire(rlock *lk, int64_t wait_ms, int64_t lease_ms,
                              rl_cancel cancel);

/* A Red lock goes by its own verbs. */
static inline bool rl_multi_is_single(const rlock *lk)
{
    return lk->kind == &rl_single;
}

#endif
