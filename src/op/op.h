/*
 * An operation: a public verb in progress, and the parts it is made of. A part
 * is what the verb means for one hold on one server: it begins by looking at
 * the hold table, makes one call (an ask), and ends by noting the answer, on
 * whichever thread reads it.
 *
 * The operation decides and its driver acts. resume() looks at what has come of
 * the last round, or why a sleep ended, and says what is next: ask the parts
 * that are due, sleep, or nothing more. It has no clock, sends nothing, and
 * never waits; so the calling thread can drive it, or a loop, or a test.
 *
 * When a round is over, op/rule.h and op/round.h say. A part that has not
 * been answered by then is left: it is late, ends by itself when its answer
 * comes, and frees itself. An operation of which parts may be late has them on
 * the heap, and lets them go before it says that it is done, or sleeps: then
 * its driver gives up their connections.
 *
 * Only its owner works with an operation; of a part that is late, only who has
 * its connection.
 */
#ifndef RL_OP_OP_H
#define RL_OP_OP_H

#include <rlock/multi.h>

#include "op/core.h"
#include "op/request.h"
#include "wire/ask.h"

#define RL_PARTS_MAX 64

typedef struct rl_verb rl_verb;

/* What came of an acquire. */
typedef enum rl_verdict {
    RL_ACQUIRED,
    RL_BUSY,
    RL_GONE, /* a level more was asked for, and the hold is lost */
    RL_FAILED
} rl_verdict;

typedef struct rl_grant {
    uint64_t token; /* when acquired */
    unsigned kept;  /* by a hand-over: so often it may be passed on; tokens
                       behind it are reserved */
    int64_t sent_us;
    int64_t ttl_ms; /* when busy; -1: the holder has no expiry */
    int64_t ticket;
    int64_t rank;     /* when busy: how many stand before us; -1: unknown */
    int64_t clock_us; /* the server's, when acquired and it was asked; or 0 */
    bool anew;        /* when busy, in line: others may have been dropped */
    bool foreign;     /* the holder is no client of ours, and rings nobody */
    bool odd;         /* no script of ours answers so: it may be granted */
} rl_grant;

typedef struct rl_op rl_op;
typedef struct rl_way rl_way; /* op/round.h */

typedef struct rl_part {
    rl_ask ask;
    rl_op *op;     /* NULL: it is late */
    rl_core *core; /* of the client whose server is asked */
    const rl_verb *verb;
    rl_hold *hold;         /* referenced, or a draft; NULL: the verb has none */
    const rl_target *what; /* of the verbs that have no hold */
    const rl_line *behind; /* the one to follow; NULL: the hold's */
    rl_request request;    /* of an acquire, re-entry or extend */
    bool renewed;          /* RLOCK_WATCHDOG */
    bool quiet;            /* of an undo: nobody is rung */
    bool drops;            /* of a release: see rl_call_drop() */
    bool compare;          /* of an extend: tokens; see op/call.h */
    bool moves;            /* of a re-entry: the deadline, perhaps */
    int level;             /* to leave, of a release */
    rl_waiter *heir;       /* of a release: who is offered the lock; NULL: none,
                              it is freed */
    int64_t began_us;
    int64_t until_us;  /* when to stop asking */
    int64_t before_us; /* of an extend: the hold's deadline before; 0: it was
                          not sent yet */
    /*
     * Among several: after limit_us it is slow, and a round that can do without
     * it does; after patience_us, none waits for it. RL_NEVER: until_us. In a
     * cluster a part that is by itself has a patience, too, after which its
     * server is suspected.
     */
    int64_t limit_us, patience_us;
    int64_t way_us;    /* its patience while a connection is being made */
    unsigned position; /* for messages and the program: which part it is */
    /* For the round: */
    bool due;             /* it is to be asked, or has been */
    bool awaited;         /* the round is not over without it, unless decided */
    bool slow;            /* it took longer than its limit, */
    bool silent;          /* and longer than its patience */
    bool over;            /* it has ended */
    bool heap;            /* it frees itself when it is late */
    bool counted;         /* late: it has a reference to its hold */
    rl_way *way;          /* the driver's, to its server */
    struct rl_part *next; /* in the bundle that this one's ask is about */
    bool refused;         /* the bundle's call was; each asks by itself */
    /* What came of it, once it is over: */
    bool ok;
    rl_outcome outcome;
    rl_verdict verdict;
    rl_grant grant;
    long long code; /* an integer that was answered */
    rl_fault fault; /* when not ok; status RLOCK_OK: it was not asked */
    union {
        rlock_holder *holder;         /* of an inspect: is filled */
        struct rlock_rw_state *state; /* the same, of both sides */
        rl_guarded *guarded;
        const char *holder_id; /* of a force: see rl_part_force() */
    };
} rl_part;

/*
 * A verb, to a part, a bundle and a round, which know none: what is written, and
 * what an answer means. One for each, in its file (op/verb_*.c).
 */
struct rl_verb {
    void (*write)(const rl_part *x, rl_bytes *to);
    /* r: the answer; NULL: there was none, as the fault says. */
    void (*note)(rl_part *x, const rl_reply *r, int64_t now_us);
    /* The last thing before it is sent, each time; NULL: nothing. */
    void (*ready)(rl_part *x, int64_t now_us);
    /* The op goes on without it; NULL: that means nothing to the hold. */
    void (*is_late_locked)(rl_part *x, rl_holds *t);
    bool grants;      /* its hold is a draft, and becomes one by it */
    bool ends_hold;   /* down to level 0 the hold's reference is its own */
    bool for_owner;   /* of no use once the owner has ended */
    bool writes_anew; /* also what an earlier try has written already */
    bool has_name;    /* what it is about stays when its caller goes */
};

extern const rl_verb rl_verb_acquire, rl_verb_release;

typedef enum rl_next { RL_ASK, RL_SLEEP, RL_DONE } rl_next;

struct rl_op {
    rl_next (*resume)(rl_op *op, rl_wake why, int64_t now_us);
    size_t n, quorum;
    rl_part **part; /* the array is its user's; NULL: that one takes no part */
    /*
     * One that the driver lends, from before resume() until the op sleeps or is
     * done: a wait that sleeps needs none.
     */
    rl_part *lent;
    bool asked;   /* of an operation of one round */
    bool several; /* servers may be asked at once */
    bool early;   /* a round ends with a quorum, or without hope of one */
    bool insist;  /* nodes that are down are tried if there is none else */
    int64_t decided_us; /* when the grace of this round began; 0: it has none */
    int64_t sleep_us;   /* when a sleep ends by itself */
    unsigned rung;      /* nodes of a Red lock that have rung: a bit for each */
    unsigned late;      /* parts of nodes that have not answered: the same */
    unsigned closed;    /* parts whose client is closed: the same */
    unsigned lacking;   /* parts that there was no memory for */
    /* Last word before a part is sent; false: its fault says why. May be NULL.
     */
    bool (*may_ask)(rl_op *op, rl_part *x, int64_t now_us);
    /* Do the answers say it, whatever the other nodes answer? NULL: those of a
       quorum do. */
    bool (*settles)(const rl_op *op);
    rl_waker *waker; /* the driver's; wakes a sleep */
    /* What the program is to be told before it sleeps, when its driver has no
       connection of it any more; NULL: nothing. */
    void (*tell)(rl_op *op);
};

static inline void rl_op_tell(rl_op *op)
{
    void (*tell)(rl_op * op) = op->tell;
    op->tell = NULL;
    if (tell)
        tell(op);
}

/* An operation of one round, with room for its parts. */
void rl_op_init(rl_op *op, rl_part **part);

/* A part on the heap, which may be late; NULL: out of memory. */
rl_part *rl_part_new(void);

/* The same, as the i-th of an op; NULL: it lacks one. */
rl_part *rl_op_new_part(rl_op *op, size_t i);

/*
 * The parts of a verb. Each is ready to be asked when it is due. lease_ms as
 * in rlock_acquire().
 */
void rl_part_acquire(rl_part *x, rl_core *c, rl_hold *draft, int64_t lease_ms,
                     int64_t now_us);
/* False: the hold count is at its end. */
bool rl_part_reenter(rl_part *x, rl_core *c, rl_hold *h, int64_t lease_ms,
                     int64_t now_us);
void rl_part_release(rl_part *x, rl_core *c, rl_hold *h, int level,
                     int64_t now_us);
void rl_part_undo(rl_part *x, rl_core *c, rl_hold *draft, int64_t now_us);
/* The hold has its `extra`, for what may come of that. */
void rl_part_extend(rl_part *x, rl_core *c, rl_hold *h, int64_t lease_ms,
                    int64_t until_us, int64_t now_us);
void rl_part_raise(rl_part *x, rl_core *c, rl_hold *h, uint64_t token,
                   int64_t now_us);
/* A leave that may be late, with its name; NULL: out of memory. */
rl_part *rl_part_new_leave(rl_core *c, const rl_target *what, int64_t now_us);

/* These have no hold; `what` has to stay until the end. */
void rl_part_leave(rl_part *x, rl_core *c, const rl_target *what,
                   int64_t now_us);
/* out->raw: of several readers that one is told, if he reads; "": anyone. */
void rl_part_inspect(rl_part *x, rl_core *c, const rl_target *what,
                     rlock_holder *out, int64_t now_us);
/* How both sides of a read-write lock are had; its size is left as it is. */
void rl_part_rw_state(rl_part *x, rl_core *c, const rl_target *what,
                      struct rlock_rw_state *out, int64_t now_us);
/* Only the hold of this holder id, which has to stay, too; NULL: whoever's. Code
   1: it was freed. */
void rl_part_force(rl_part *x, rl_core *c, const rl_target *what,
                   const char *holder_id, int64_t now_us);

/* Of what it is about. */
static inline unsigned rl_part_slot(const rl_part *x)
{
    return x->hold ? x->hold->slot : x->what->slot;
}

/* Puts the part's call on a line. */
void rl_part_push(rl_part *x, rl_line *l, int64_t now_us);

/* How long a part among several is waited for, for a verb about this lease, in a
   call that is over at until_us. */
void rl_part_limit(rl_part *x, int64_t lease_ms, int64_t until_us);

/*
 * The op goes on without the part: it is freed, or frees itself when its answer
 * comes. NULL is accepted.
 */
void rl_part_let_go(rl_part *x);

/* All of them; and those that have not answered. */
void rl_op_let_go(rl_op *op);
void rl_op_leave_late(rl_op *op);

/* --- what a verb does to a hold (op/verb_*.c) ---------------------------- */

/* A new draft; NULL: out of memory. */
rl_hold *rl_draft(rl_core *c, rl_owner_record *room, const rl_target *what,
                  const rl_uuid *id, int64_t lease_ms);

/* Reads an acquire's reply, for a level; RL_FAILED fills *f. */
rl_verdict rl_grant_read(const rl_reply *r, int level, rl_grant *g,
                         rl_fault *f);

/* A grant has come for the part's draft: is it in time for its lease? */
void rl_note_granted(rl_part *x, int64_t now_us);

/* The grant is accepted: the table takes over the draft's reference. */
void rl_take_over(rl_part *x, uint64_t token, int64_t now_us);

/* What the server may have, or may yet get, of a draft is undone. */
void rl_give_up(rl_core *c, rl_hold *draft, int64_t now_us);

/* Instead of a release, when the hold was not good any more. */
rlock_status rl_release_lost(rl_core *c, rl_hold *h, int level, rl_fault *f,
                             int64_t now_us);

/* --- several in one call (op/bundle.c) ---------------------------------- */

/*
 * Lets x go in one call with the first of a bundle, which may be the only one
 * so far: then only the first is a part of the op's round, which has room for
 * all. False: they cannot, and nothing has changed.
 */
bool rl_bundle_join(rl_part *first, rl_part *x);

/* For parts that are the first of a bundle. */
void rl_bundle_write(const rl_part *first, rl_bytes *to);
void rl_bundle_end(rl_part *first, const rl_reply *r, int64_t now_us);

/* For parts: an ask of their own; their call is written, and their answer
   noted. */
void rl_part_begin_ask(rl_part *x, rl_script_id script);

/* Is it a level, or a lease, for an owner that has ended? Not to be sent. */
bool rl_part_is_moot(rl_part *x);
void rl_part_write(const rl_ask *a, rl_bytes *to);
void rl_part_note(rl_part *x, const rl_reply *r, int64_t now_us);

#endif
