#include "net/spin.h"

#include "base/clock.h"

/* It takes so long only when somebody else gets our processor meanwhile. */
#define SLICE_US 1000

/* Waits without a spin after a lost time slice, first and at most. */
#define AFTER_LOST      64
#define MOST_AFTER_LOST 16384

/* The same after one that was in vain. */
#define MOST_IN_VAIN 255

/* More spins than there can be in a time slice. */
#define ENOUGH_ANSWERED 100

bool rl_spin_a_while(rl_spin *l, bool (*look)(void *arg), void *arg)
{
    if (!rl_spin_is_worth_it(l))
        return false;
    if (look(arg))
        return true;
    int64_t began_us = rl_now_us(), now_us;
    bool came;
    do {
        came = look(arg);
        now_us = rl_now_us();
    } while (!came && now_us - began_us < RL_SPIN_US);
    rl_spin_note(l, now_us - began_us);
    return came;
}

void rl_spin_note(rl_spin *l, int64_t took_us)
{
    if (took_us >= SLICE_US) {
        l->lost = (unsigned)rl_min(2 * l->lost + AFTER_LOST, MOST_AFTER_LOST);
        l->sleeps = l->lost;
        l->answered = 0;
    } else if (took_us >= RL_SPIN_US) {
        l->in_vain = (unsigned)rl_min(2 * l->in_vain + 1, MOST_IN_VAIN);
        l->sleeps = l->in_vain;
    } else {
        l->in_vain /= 2;
        if (++l->answered == ENOUGH_ANSWERED)
            l->lost = 0;
    }
}
