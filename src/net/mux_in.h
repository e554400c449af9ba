/* What the files of a mux have in common: who does what (mux.c), and how
   muxes and ports come and go (mux_port.c). */
#ifndef RL_NET_MUX_IN_H
#define RL_NET_MUX_IN_H

#include "net/mux.h"

static inline bool rl_port_waits(const rl_port *s)
{
    return atomic_load(&s->state) == RL_PORT_WAITS;
}

/* Its slot, in the mux's line. */
void rl_port_answered(rl_slot *slot, const rl_reply *r, int64_t now_us);
void rl_port_failed(rl_slot *slot, bool whole, const rl_fault *why,
                    int64_t now_us);

/* The one that waits longest leads from now on; nobody, if nobody does. */
void rl_mux_pass_lead_locked(rl_mux *h) RL_REQUIRES(&h->mutex);

/* Who is woken first wants the mutex. */
void rl_mux_unlock_and_wake(rl_mux *h) RL_RELEASES(&h->mutex);

#endif
