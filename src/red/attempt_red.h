/*
 * What the files of a vote share: the attempt itself (attempt_red.c), its
 * fencing token (token.c), and who may vote (eligible.c). For a part that a
 * node has granted, and one that is limited like the others.
 */
#ifndef RL_RED_ATTEMPT_RED_H
#define RL_RED_ATTEMPT_RED_H

#include "op/acquire.h"
#include "op/rule.h"

static inline bool rl_vote_is_granted(const rl_part *x)
{
    return x && x->over && x->hold && x->verdict == RL_ACQUIRED;
}

/* No part takes longer than the call, or than its lease allows. */
static inline void rl_vote_limit(const rl_acquire *a, rl_part *x)
{
    rl_part_limit(x, a->lease_ms, a->call_until_us);
}

/* --- the token ------------------------------------------------------------ */

/* The least that an acquire asks for; 0: no clock is known. */
uint64_t rl_vote_wanted_token(const rl_acquire *a, int64_t now_us);

/* How far the fastest clock is ahead, by what was just granted. */
void rl_vote_note_clocks(rl_acquire *a);

/*
 * a->token is the largest of those that granted. True: a quorum has it written
 * down; otherwise a round is made to do so, in which the votes wait.
 */
bool rl_vote_agree_on_token(rl_acquire *a, int64_t now_us);

/*
 * The end of that round: the votes are the parts again. True: the token was
 * written to a quorum; else says tells what the nodes answered.
 */
bool rl_vote_raised(rl_acquire *a, char says[RL_SAYS_MAX], int64_t now_us);

/* --- who may vote --------------------------------------------------------- */

/* Such a lease is about to be asked for, of all nodes. False: out of memory. */
bool rl_vote_note_lease(rl_core *const node[], size_t n, const rl_target *what,
                        int64_t lease_ms, int64_t now_us);

/* For so long, a server that has restarted has no vote. */
int64_t rl_vote_longest_us(const rl_acquire *a, int64_t now_us);

/* May this part of an acquire be sent? Otherwise its fault says why not. */
bool rl_vote_may_ask(rl_op *op, rl_part *x, int64_t now_us);

/* May the server of this node vote now? Otherwise *f says why not. */
bool rl_may_vote(rl_core *c, int64_t longest_us, bool check_uptime,
                 int64_t now_us, rl_fault *f);

#endif
