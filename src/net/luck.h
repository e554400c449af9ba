/*
 * Is it worth it to look out for an answer before sleeping? To wake up takes
 * longer than a server nearby takes to answer; so it mostly is, and what came
 * of the last look-outs tells when it is not.
 *
 * It is bad luck when somebody else wants the processor: who does not sleep
 * then waits for whole time slices. Look-outs that are bad luck become ever
 * rarer. So do those in vain, as with a server that is far away, or that needs
 * our processor to answer. But they cost little, so they are soon tried again:
 * the first answer of a server that had nothing to do takes longer than the
 * next ones.
 *
 * It belongs to a connection, and to the thread that has that.
 */
#ifndef RL_NET_LUCK_H
#define RL_NET_LUCK_H

#include <stdbool.h>
#include <stdint.h>

/* Most answers of a server nearby come sooner. */
#define RL_LOOK_OUT_US 100

typedef struct rl_luck {
    unsigned sleeps;  /* waits that are to come before the next look-out */
    unsigned bad;     /* how many there were after the last bad one */
    unsigned in_vain; /* and after the last one in vain */
    unsigned good;    /* good look-outs since the last bad one */
} rl_luck;

/* At a wait: is there to be a look-out? Counts the wait when not. */
static inline bool rl_luck_is_worth_it(rl_luck *l)
{
    if (l->sleeps == 0)
        return true;
    l->sleeps--;
    return false;
}

/*
 * A look-out took so long. An answer that was there at the first look is not
 * noted, since it teaches nothing: it came while the question was written, as
 * when the server has our processor for it, and would have been there anyway.
 */
void rl_luck_note(rl_luck *l, int64_t took_us);

#endif
