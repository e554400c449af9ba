/*
 * What the files of Multi locks share: the handle (multi_new.c), a round of a
 * verb on its members (multi_round.c), the verbs (multi.c), and acquire, which
 * is the one that waits (multi_acquire.c).
 */
#ifndef RL_LOCK_MULTI_H
#define RL_LOCK_MULTI_H

#include "lock/lock.h"
#include "op/extend.h"

typedef struct rl_member {
    rlock *lk;        /* a handle of our own, so that cancels are ours */
    size_t position;  /* in the caller's list, from 1 */
    rl_link follower; /* of its client */
    rlock *whole;
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

/*
 * Into a member's client (of a Red lock, its home's), and out of it. Otherwise
 * the thread's error says why not; quietly, nothing does.
 */
rlock_status rl_member_enter(const rlock *lk, int *cancel);
bool rl_member_enter_quietly(const rlock *lk, int *cancel);
void rl_member_leave(const rlock *lk, int cancel);

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
    bool lapses;   /* held before with a lease that is not renewed */
    bool left;     /* not taken, for another one of its server was busy */
    rl_hold *hold; /* referenced, while inside; NULL: the call has none */
    rl_part it;
} rl_multi_part;

typedef struct rl_multi_call rl_multi_call;
typedef struct rl_multi_verb rl_multi_verb;

/* Where a verb of the whole goes on. */
typedef rl_op *rl_multi_step(rl_multi_call *p);

/*
 * A verb of the whole in progress. Its steps are functions that call each
 * other; what has to be asked in between is a round of members, or the job of
 * one of them, after which it goes on with `then`. A part of a verb that
 * several steps have in common goes back to `back`.
 */
struct rl_multi_call {
    rl_job job;
    rl_job_args args;
    rl_multi *m;
    rl_multi_step *then, *back;
    int64_t lease_ms;  /* as asked for */
    int64_t fresh_ms;  /* for now, of what is taken anew */
    int64_t until_us;  /* of the call */
    rlock_error worst; /* of this round: what to report */
    size_t n;
    rl_multi_part *part;       /* NULL: there was no memory */
    size_t at;                 /* the member that is the next one's turn */
    const rl_multi_verb *verb; /* of the round under way */
    rl_extend op;
    rl_part *asked[RLOCK_MULTI_MAX]; /* its parts */
    /* Of an acquire: */
    rl_group *group;   /* of what is taken anew; forming until all are held */
    size_t from;       /* the first member of this try */
    size_t missing;    /* the first that is not held */
    bool gap;          /* what is behind is not asked for */
    bool waited;       /* for one that was missing */
    bool refused;      /* a level more was, as `why` says */
    int64_t wait_us;   /* the end of the wait, */
    int64_t kept_us;   /* and of how long others of its name are kept */
    int64_t failed_us; /* when what was held could not be kept the last time, */
    int64_t failing_us; /* and since when that has been so again and again */
    rlock_error why;    /* the last try, or wait for one, has failed */
    /* The job of a member that is asked by itself; `alone` says what came. */
    rl_lock_job member;
    rlock_status alone;
    _Alignas(max_align_t) char room[RL_MEMBER_ROOM];
};

/*
 * One verb for the members that are wanted. begin() makes the member's part;
 * otherwise it sets the thread's error and answers a status. end() says what
 * came of it, if there is anything to say. failed() is told the status of one
 * that failed, whose detail is the thread's error; without it, it is noted as
 * one of the round. None calls back into the program: events come afterwards.
 */
struct rl_multi_verb {
    rlock_status (*begin)(rl_multi_call *p, rl_multi_part *x, bool valid,
                          int64_t now_us);
    void (*end)(rl_multi_call *p, rl_multi_part *x,
                int64_t now_us); /* or NULL */
    void (*failed)(rl_multi_call *p, const rl_multi_part *x, rlock_status s);
    rlock_event_type event; /* of a member that is ok; 0: none */
    bool extends;
};

/* False: out of memory, and the thread's error is set. */
bool rl_multi_begin(rl_multi_call *p, rlock *lk);
void rl_multi_end(rl_multi_call *p);
/* The end of a job. */
rl_op *rl_multi_over(rl_multi_call *p, rlock_status s);

/* The verb, for the members that are wanted and are no Red locks. */
rl_op *rl_multi_ask(rl_multi_call *p, const rl_multi_verb *v,
                    rl_multi_step *then);
/* The same, now, by the calling thread. */
void rl_multi_round(rl_multi_call *p, const rl_multi_verb *v);

/* What is wished of one lock, by itself. */
rl_op *rl_multi_ask_alone(rl_multi_call *p, rlock *lk, const rl_job_args *w,
                          rl_multi_step *then);

/* A member's status; the thread's error is about it. */
void rl_multi_note(rlock_error *worst, size_t position, rlock_status s);

/* Sets the thread's error to the worst, and returns its status. */
rlock_status rl_multi_report(const rlock_error *worst);

/* Releases the members from this one on that are marked as held. */
rl_op *rl_multi_let_go(rl_multi_call *p, size_t from, rl_multi_step *back);

/* Sets the lease of the members that are wanted to p->fresh_ms. */
rl_op *rl_multi_extend_wanted(rl_multi_call *p, rl_multi_step *back);

/* The first step of an acquire. */
rl_op *rl_multi_acquire(rl_job *j);

/* A Red lock goes by its own verbs. */
static inline bool rl_multi_is_single(const rlock *lk)
{
    return lk->kind == &rl_single;
}

#endif
