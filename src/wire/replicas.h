/*
 * Confirmation by replicas: behind a call goes a WAIT, in the same write, which
 * answers how many replicas have all that its own connection has written. So
 * the call must have written something; one that may have found all as it wants
 * it goes with a touch in between, which does write. The call's reply is kept
 * until WAIT's is there, and is short if that tells too few.
 *
 * For the ask, which has one in it, beside the slot of the call.
 */
#ifndef RL_WIRE_REPLICAS_H
#define RL_WIRE_REPLICAS_H

#include "wire/line.h"

typedef struct rl_confirm {
    uint8_t replicas; /* so many have to have it; 0: WAIT is not sent */
    bool heard;       /* the call's reply has come, and is kept */
    bool untouched;   /* the touch had nothing to write */
    int acked;        /* so many have it; -1: that is not known */
    int64_t wait_ms;  /* how long they are waited for at most */
    int64_t asked_ms; /* how long they were */
    uint64_t end;     /* as of a slot: WAIT's last byte */
    rl_reply *kept;   /* room for it, while the call is on a line */
    /* Writes a touch; NULL: the call writes by itself. */
    void (*touch)(const rl_slot *call, rl_bytes *to);
} rl_confirm;

/* Have as many replicas as were asked for what the answered call has written?
 */
static inline bool rl_confirm_is_enough(const rl_confirm *c)
{
    return c->acked >= c->replicas;
}

/* The call has been put on its line, and has left_ms for an answer: puts on
   what goes behind it. */
void rl_confirm_push(rl_confirm *c, rl_slot *call, int64_t left_ms);

/* A reply. True: another one is to come. False: *f tells if that was short. */
bool rl_confirm_keeps(rl_confirm *c, rl_slot *call, const rl_reply *r,
                      rl_fault *f);

/* The attempt is over: the call's reply, the caller's to free; NULL: it was not
   kept. */
rl_reply *rl_confirm_end(rl_confirm *c);

/* The line failed, as *why says, when the call's reply was there, but not
   WAIT's. */
void rl_confirm_broke(rl_confirm *c, const rl_fault *why, rl_fault *f);

#endif
