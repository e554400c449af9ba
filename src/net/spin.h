/*
 * Is it worth it to look out for an answer before sleeping? To wake up takes
 * longer than a server nearby takes to answer; so it mostly is, and what came
 * of the last look-outs tells when it is not.
 *
 * A look-out costs dear when somebody else wants the processor: who does not
 * sleep then waits for a whole time slice. After such a one there are many
 * waits without, ever more of them. One that is in vain, as with a server that
 * is far away, or that needs our processor to answer, costs little: so after
 * the first there is one wait without, then three, seven and so on; and each
 * that is answered in time halves them. The first answer of a server that had
 * nothing to do takes longer than the next ones; that alone must not end
 * look-outs.
 *
 * It belongs to a connection, and to the thread that has that.
 */
#ifndef RL_NET_SPIN_H
#define RL_NET_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* Most answers of a server nearby come sooner. */
#define RL_LOOK_OUT_US 100

typedef struct rl_lookout {
    unsigned sleeps;   /* waits that are to come before the next look-out */
    unsigned lost;     /* how many there were after the last lost time slice */
    unsigned in_vain;  /* and after the last one in vain */
    unsigned answered; /* look-outs that were, since the last lost slice */
} rl_lookout;

/* At a wait: is there to be a look-out? Counts the wait when not. */
static inline bool rl_lookout_is_worth_it(rl_lookout *l)
{
    if (l->sleeps == 0)
        return true;
    l->sleeps--;
    return false;
}

/*
 * At a wait: looks until look() says that something came, or for a moment, if
 * that is worth it. False: nothing did, and the caller has to sleep.
 *
 * What was there at the first look is not counted, since it teaches nothing: it
 * came while the question was written, as when the server has our processor for
 * it, and would have been there anyway.
 */
bool rl_look_out(rl_lookout *l, bool (*look)(void *arg), void *arg);

/* A look-out took so long. */
void rl_lookout_note(rl_lookout *l, int64_t took_us);

#endif
