#include "net/luck.h"

#include "base/clock.h"

/* It takes so long only when somebody else gets our processor meanwhile. */
#define SLICE_US 1000

/* Waits without a look-out after bad luck, first and at most. */
#define BAD_LUCK      64
#define MOST_BAD_LUCK 16384

/* The same after one that was in vain; the first is followed by one wait. */
#define MOST_IN_VAIN 255

/* More look-outs than there can be in a time slice. */
#define ENOUGH_LUCK 100

void rl_luck_note(rl_luck *l, int64_t took_us)
{
    if (took_us >= SLICE_US) {
        l->bad = (unsigned)rl_min(2 * l->bad + BAD_LUCK, MOST_BAD_LUCK);
        l->sleeps = l->bad;
        l->good = 0;
    } else if (took_us >= RL_LOOK_OUT_US) {
        l->in_vain = (unsigned)rl_min(2 * l->in_vain + 1, MOST_IN_VAIN);
        l->sleeps = l->in_vain;
    } else {
        l->in_vain = 0;
        if (++l->good == ENOUGH_LUCK)
            l->bad = 0;
    }
}
