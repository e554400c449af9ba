/*
 * Confirmation by replicas: behind a call goes a WAIT, in the same write, which
 * answers how many replicas have all that its own connection has written. So
 * the call must have written something; one that may have found all as it wants
 * it goes with a touch in between, which does write. The call's reply is kept
 * until WAIT's is there, and is short if that tells too few.
 *
 * For the ask, which has one in it.
 */
#ifndef RL_WIRE_REPLICAS_H
#define RL_WIRE_REPLICAS_H

#include "wire/line.h"

typedef struct rl_ask rl_ask;

typedef struct rl_confirm {
    uint8_t replicas; /* so many have to have it; 0: WAIT is not sent */
    bool heard;       /* the call's reply has come, and is kept */
    bool untouched;   /* the touch had nothing to write */
    int acked;        /* so many have it; -1: that is not known */
    int64_t wait_ms;  /* how long they are waited for at most */
    int64_t asked_ms; /* how long they were */
    uint64_t end;     /* as of a slot: WAIT's last byte */
    rl_reply *kept;   /* room for it, while the ask is on a line */
    /* Writes a touch; NULL: the call writes by itself. */
    void (*touch)(const rl_ask *a, rl_bytes *to);
} rl_confirm;

/* The call has been put on the line: puts on what goes behind it. */
void rl_confirm_push(rl_ask *a, int64_t now_us);

/* A reply. True: another one is to come. */
bool rl_confirm_keeps(rl_ask *a, const rl_reply *r);

/* The attempt is over: the call's reply, the caller's to free; NULL: it was not
   kept. */
rl_reply *rl_confirm_end(rl_ask *a);

/* The line failed when the call's reply was there, but not WAIT's. */
void rl_confirm_broke(rl_ask *a, const rl_fault *why);

#endif
