/*
 * Is it worth it to spin for an answer before sleeping: to read again and again
 * for some microseconds, as a spin lock does? To wake up takes longer than a
 * server nearby takes to answer; so it mostly is, and what came of the last
 * spins tells when it is not.
 *
 * A spin costs dear when somebody else wants the processor: who does not sleep
 * then waits for a whole time slice. After such a one there are many waits
 * without, ever more of them. One that is in vain, as with a server that is far
 * away, or that needs our processor to answer, costs little: so after the first
 * there is one wait without, then three, seven and so on; and each that is
 * answered in time halves them. The first answer of a server that had nothing
 * to do takes longer than the next ones; that alone must not end spins.
 *
 * It belongs to a connection, and to the thread that has that.
 */
#ifndef RL_NET_SPIN_H
#define RL_NET_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* Most answers of a server nearby come sooner. */
#define RL_SPIN_US 100

typedef struct rl_spin {
    unsigned sleeps;   /* waits that are to come before the next spin */
    unsigned lost;     /* how many there were after the last lost time slice */
    unsigned in_vain;  /* and after the last one in vain */
    unsigned answered; /* spins that were, since the last lost slice */
} rl_spin;

/* At a wait: is it worth it to spin? Counts the wait when not. */
static inline bool rl_spin_is_worth_it(rl_spin *l)
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
bool rl_spin_a_while(rl_spin *l, bool (*look)(void *arg), void *arg);

/* It took so long. */
void rl_spin_note(rl_spin *l, int64_t took_us);

#endif
