/*
 * A round of an operation, for whoever drives it: which parts are asked now,
 * which are slow, silent or out of time, what is waited for, and when it is
 * over. A driver brings connections, bytes and the time.
 *
 * A round that is decided (op/rule.h) is over, but for a grace: a node whose
 * connection is just being made may still be asked, since the more hold a Red
 * lock the better; and without a quorum, what the others have to say is waited
 * for.
 */
#ifndef RL_OP_ROUND_H
#define RL_OP_ROUND_H

#include "op/op.h"

/* A round that is decided waits so long for what is about to come. */
#define RL_GRACE_US 5000

/* A driver's way to the server of one or more parts. */
struct rl_way {
    rl_line *line; /* of its connection; NULL: it has none */
    /*
     * Since when its server could answer, if only by letting us connect;
     * RL_NEVER: it stands in line for a connection.
     */
    int64_t ready_us;
    bool expecting; /* a connection is on its way */
    bool slow;      /* and takes long: no grace for it */
    bool down;      /* left out, unless nothing goes without it */
    bool shared;    /* others ask on the same line, and wait there */
};

/* Is the part to be asked, or not answered yet? */
static inline bool rl_part_is_open(const rl_part *x)
{
    return x && x->due && !x->over;
}

/* Can it be written to and read? */
static inline bool rl_way_is_good(const rl_way *w)
{
    return w->line && !w->line->failed;
}

/* Is there something to be asked on it? */
bool rl_way_is_wanted(const rl_op *op, const rl_way *w);

/* Its parts that cannot be asked: this time, or not any more. */
void rl_way_fail(rl_op *op, const rl_way *w, const rl_fault *why,
                 void (*how)(rl_ask *a, int64_t now_us), int64_t now_us);

/* When the last of its parts stops asking. */
int64_t rl_way_until(const rl_op *op, const rl_way *w);

/* Which line has the earlier calls that its parts must not overtake? */
const rl_line *rl_way_behind(const rl_op *op, const rl_way *w);

void rl_round_begin(rl_op *op);

/* Does a part rest before it is asked again? Whose rest is over does not. */
bool rl_round_rests(const rl_op *op);
void rl_round_wake(rl_op *op, int64_t now_us);

/* What can be asked now is put on its way's line. */
void rl_round_push(rl_op *op, int64_t now_us);

/*
 * Who is slow or silent from now on, and whose time is over? A silent server
 * may be down: suspect() is told, once for each part.
 */
void rl_round_expire(rl_op *op, int64_t now_us,
                     void (*suspect)(rl_way *w, const rl_fault *why));

/*
 * Is there a part to be asked that has no connection, and none on its way? The
 * next pass gets it one: do not wait.
 */
bool rl_round_has_work(const rl_op *op);

/* How long to wait for news at most. */
int64_t rl_round_wait_end(const rl_op *op);

bool rl_round_is_over(rl_op *op, int64_t now_us);

/* Who was not asked by then is not asked any more. */
void rl_round_end(rl_op *op, int64_t now_us);

#endif
