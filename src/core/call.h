/* The script calls about a hold, put together. */
#ifndef RL_CORE_CALL_H
#define RL_CORE_CALL_H

#include "core/hold.h"
#include "wire/keys.h"
#include "wire/script.h"

typedef struct rl_hold_call {
    rl_call call;
    rl_key key[3]; /* what the call refers to */
} rl_hold_call;

/* least: of the token; NULL: none is given, nor the clock wanted */
void rl_call_acquire(rl_hold_call *c, const rl_hold *h, int64_t lease_ms,
                     int level, const char *bell, int64_t ticket,
                     const uint64_t *least);

/* The release script's replies from here on: the tombstone is missing. */
#define RL_UNBURIED 10

/*
 * Frees a hold, or counts it down to a level. When an acquire of the hold may
 * still arrive, freeing it leaves a tombstone.
 */
void rl_call_release(rl_hold_call *c, const rl_hold *h, int level);

void rl_call_renew(rl_hold_call *c, const rl_hold *h, int64_t lease_ms);
void rl_call_extend(rl_hold_call *c, const rl_hold *h, int64_t lease_ms);

/* Writes a token back that another server has minted. */
void rl_call_raise(rl_hold_call *c, const rl_hold *h, uint64_t token);

/* Tells who holds a lock. */
void rl_call_inspect(rl_hold_call *c, const rl_target *what);

/* Frees a lock, whoever holds it. */
void rl_call_force_release(rl_hold_call *c, const rl_target *what);

#endif
