/* What the files of a share have in common: who does what (share.c), and how
   shares and seats come and go (share_open.c). */
#ifndef RL_NET_MUX_IN_H
#define RL_NET_MUX_IN_H

#include "net/mux.h"

static inline bool rl_seat_waits(const rl_seat *s)
{
    return atomic_load(&s->state) == RL_SEAT_WAITS;
}

/* Its slot, in the share's line. */
void rl_seat_answered(rl_slot *slot, const rl_reply *r, int64_t now_us);
void rl_seat_failed(rl_slot *slot, bool whole, const rl_fault *why,
                    int64_t now_us);

/* The one that waits longest leads from now on; nobody, if nobody does. */
void rl_share_pass_lead_locked(rl_share *h) RL_REQUIRES(&h->mutex);

/* Who is woken first wants the mutex. */
void rl_share_unlock_and_wake(rl_share *h) RL_RELEASES(&h->mutex);

#endif
