/*
 * The outermost acquire: one way to wait, whatever is asked for. How an attempt
 * is made and judged is a table of functions: of one server (op/attempt_one.c),
 * in the line for a fair lock there (op/attempt_line.c), or a vote of several
 * (red/attempt_red.c).
 */
#ifndef RL_OP_ACQUIRE_H
#define RL_OP_ACQUIRE_H

#include "hold/deadlock.h"
#include "op/op.h"

typedef struct rl_acquire rl_acquire;

/* What became of an attempt. */
typedef enum rl_try {
    RL_TRY_OWNED,
    RL_TRY_BUSY,   /* again_us: when to look again if nobody rings */
    RL_TRY_FAILED, /* status and fault: why */
    RL_TRY_MORE    /* another round is needed to know */
} rl_try;

/* How often a waiter looks by itself, lest it missed something. */
#define RL_LOOK_US (2000 * 1000)

/* The same when the holder is a program that does not ring. */
#define RL_FOREIGN_LOOK_US (250 * 1000)

/* How often who waits to read asks by himself, to keep his mark. */
#define RL_MARKED_US (20 * 1000 * 1000)

/* Who has waited for so long says who it is, for rlock_waits_for(). */
#define RL_LONG_US (1000 * 1000)

typedef struct rl_attempt {
    /* Makes the parts of a try. Otherwise status and fault say why not. */
    bool (*begin)(rl_acquire *a, int64_t now_us);
    /* After each round of it. Unless owned, nothing stays taken. */
    rl_try (*judge)(rl_acquire *a, int64_t now_us);
    /* It waits in the room from now on; NULL: nothing else is to wake it. */
    void (*attend)(rl_acquire *a);
    /* It was woken; what concerns it elsewhere? NULL with attend. */
    void (*look)(rl_acquire *a);
    /* A try that another thread made has been granted, or one of its own by a
       message: judge() is next. False: it has to ask about that. NULL: nobody
       grants anything so. */
    bool (*handed)(rl_acquire *a, int64_t now_us);
    /* A ring came; when to try. NULL: at once. */
    int64_t (*rung)(rl_acquire *a, int64_t now_us);
    /* The wait is over: who is to be told? True: a round has been made. */
    bool (*leave)(rl_acquire *a, bool queued, int64_t now_us);
    bool in_line; /* it enters the room before it asks for the first time */
} rl_attempt;

/*
 * Cancels of a handle are counted, so that one that comes after the call has
 * begun, but before it waits, is not lost.
 */
typedef struct rl_cancel {
    const atomic_uint *count;
    unsigned seen;
} rl_cancel;

static inline bool rl_cancel_has_come(const rl_cancel *x, const rl_core *home)
{
    return atomic_load(x->count) != x->seen || atomic_load(&home->canceled);
}

/*
 * For who waits in a room, after a failure: when to try again, or RL_NEVER: not
 * at all. An outage is survived for as long as a lease would be. *pause_us: the
 * latest pause; 0: there was none since the last answer.
 */
int64_t rl_wait_retry_at(rl_core *home, const rl_waiter *w, const rl_fault *f,
                         int64_t *pause_us, int64_t now_us);

/* The nodes of a Red lock, as an acquire needs them. */
typedef struct rl_red_attempt {
    size_t n, quorum;
    rl_core *node[RLOCK_RED_MAX]; /* NULL: its client is closed */
    /* Called once for a node whose client is being freed: lets go of it. The
       acquire has nothing there any more. */
    void (*drop)(struct rl_red_attempt *b, size_t i);
    rl_home *home;
    int64_t longest_lease_ms; /* as told; 0: what was used */
    bool check_uptime;
    /* By how much the fastest server's clock is ahead of ours; 0: unknown. */
    atomic_int_least64_t *ahead_us;
    /* The acquire's: */
    rl_part *part[RLOCK_RED_MAX], *raise[RLOCK_RED_MAX];
    int64_t ticket[RLOCK_RED_MAX];
    unsigned queued; /* nodes that have not granted what is owned now, and may
                        have queued it: a bit for each */
    const rl_line *asked_on[RLOCK_RED_MAX]; /* who may queue it yet */
    rl_listener listener[RLOCK_RED_MAX];
    unsigned few_rings; /* tries after rings of fewer than a quorum, in a row */
} rl_red_attempt;

typedef enum rl_phase {
    RL_PHASE_BEGIN,
    RL_PHASE_TRY,
    RL_PHASE_VOTE,  /* of several: asking, */
    RL_PHASE_RAISE, /* writing the token back, */
    RL_PHASE_UNDO,  /* or undoing what was granted */
    RL_PHASE_WAIT,
    RL_PHASE_LEAVE
} rl_phase;

struct rl_acquire {
    rl_op op;
    const rl_attempt *attempt;
    rl_core *home;
    const rl_target *what;
    const void *handle; /* whose rlock_cancel() ends the wait */
    rl_owner *owner;
    rl_cancel cancel;
    int64_t wait_ms, lease_ms; /* as asked for */
    /* Starts the doorbell; the driver's. */
    void (*listen)(rl_core *c, const rl_target *what);

    rl_phase phase, step; /* step: of a try of several */
    int64_t began_us, wait_until_us, call_until_us;
    int64_t warn_us; /* when it has waited for long; RL_NEVER: it was told so */
    int64_t warned_us; /* when that was noticed */
    rl_waiter waiter;
    rl_owner_record *room; /* for the first draft; NULL: made anew */
    rl_awaited wait;       /* noted, while it waits, for circles */
    bool last_try;         /* whatever comes of this one, there is no other */
    bool asked;            /* the server has been asked */
    bool contended;        /* it had to wait */
    bool rung;             /* the last wake-up was a ring */
    bool with_bell;        /* the last try gave the bell */
    bool failing;          /* the last try had no answer */
    bool warns;            /* it has, and tells so when it sleeps again */
    bool stood;            /* so it has just been told: the next try, */
    bool asks_who;         /* or the last one, asks who has the lock */
    bool is_own;           /* on_event has acquired it, as its owner */
    uint8_t overdue;       /* so often the lease that ended did not, in a row */
    int64_t held_back_us, tried_us, again_us, pause_us, rung_us;
    rlock_status status; /* when it is done */
    rl_fault fault;      /* of the last failure */
    uint64_t token;      /* when owned */

    int64_t ticket; /* that the server gave with the last answer */

    rl_part *one; /* of one server: the part that is asked */
    rl_hold *draft;
    rl_group *joins; /* the Multi lock's, of a member; or NULL */

    rl_red_attempt *red; /* of several */
    rl_group *group;
};

/*
 * Begins; what is set before: attempt, home, what, handle, owner, cancel, room,
 * wait_ms, lease_ms, listen, joins, op.waker, op.lent, and red.
 */
void rl_acquire_init(rl_acquire *a, int64_t now_us);

/* Handed by a message: see op/grant.h. False: it has to ask about that. */
bool rl_attempt_granted(rl_acquire *a, int64_t now_us);

extern const rl_attempt rl_attempt_one, rl_attempt_line, rl_attempt_vote;

#endif
