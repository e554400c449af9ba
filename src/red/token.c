/*
 * Fencing tokens: nodes count by themselves, so the largest token of those that
 * granted is written back to a quorum before it is handed out; any later quorum
 * shares a node with it. Mostly that costs nothing: the acquire tells all nodes
 * the least token that it wants, a little above the fastest server clock as
 * last seen, and when they all give out just that one, it is written already.
 *
 * Called by the owner's driver, as the rest of the vote.
 */
#include "op/rule.h"
#include "red/attempt_red.h"

/* How far above the fastest clock the wanted token is: a command's way. */
#define AHEAD_US 1000

/* What a server's clock can be believed, in the year 2112. */
#define LATEST_CLOCK_US (INT64_C(1) << 52)

uint64_t rl_vote_wanted_token(const rl_acquire *a, int64_t now_us)
{
    int64_t ahead_us = atomic_load(a->red->ahead_us);
    return ahead_us ? (uint64_t)(now_us + ahead_us + AHEAD_US) : 0;
}

void rl_vote_note_clocks(rl_acquire *a)
{
    int64_t ahead_us = INT64_MIN;
    for (size_t i = 0; i < a->op.n; i++) {
        const rl_part *x = a->op.part[i];
        if (rl_vote_is_granted(x) && x->grant.clock_us > 0 &&
            x->grant.clock_us < LATEST_CLOCK_US)
            ahead_us = rl_max(ahead_us, x->grant.clock_us - x->grant.sent_us);
    }
    if (ahead_us != INT64_MIN)
        atomic_store(a->red->ahead_us, ahead_us);
}

/* In the place of the vote. */
static void add_raise(rl_acquire *a, size_t i, int64_t now_us)
{
    const rl_part *vote = a->op.part[i];
    rl_part *x = rl_op_new_part(&a->op, i);
    if (!x)
        return;
    rl_part_raise(x, vote->core, vote->hold, a->token, now_us);
    rl_vote_limit(a, x);
}

bool rl_vote_agree_on_token(rl_acquire *a, int64_t now_us)
{
    size_t have = 0;
    a->token = 0;
    for (size_t i = 0; i < a->op.n; i++)
        if (rl_vote_is_granted(a->op.part[i]) &&
            a->op.part[i]->grant.token > a->token)
            a->token = a->op.part[i]->grant.token;
    for (size_t i = 0; i < a->op.n; i++)
        have += rl_vote_is_granted(a->op.part[i]) &&
                a->op.part[i]->grant.token == a->token;
    if (have >= a->op.quorum)
        return true;
    a->step = RL_PHASE_RAISE;
    a->op.quorum = a->red->quorum - have;
    for (size_t i = 0; i < a->op.n; i++) {
        rl_part *vote = a->red->raise[i] = a->op.part[i];
        if (rl_vote_is_granted(vote) && vote->grant.token != a->token)
            add_raise(a, i, now_us);
        else
            a->op.part[i] = NULL;
    }
    return false;
}

/*
 * A vote whose connection broke during the round that wrote the token: it was
 * no part of that round, and is not asked again.
 */
static void end_vote(rl_part *vote, int64_t now_us)
{
    if (vote && !vote->over && vote->ask.next != RL_ASK_WAITS)
        rl_ask_give_up(&vote->ask, now_us);
}

bool rl_vote_raised(rl_acquire *a, char says[RL_SAYS_MAX], int64_t now_us)
{
    bool ok = rl_rule_ok(&a->op) >= a->op.quorum;
    rl_rule_tell(&a->op, says);
    for (size_t i = 0; i < a->op.n; i++) {
        rl_part_let_go(a->op.part[i]);
        a->op.part[i] = a->red->raise[i];
        end_vote(a->op.part[i], now_us);
    }
    a->op.quorum = a->red->quorum;
    return ok;
}
