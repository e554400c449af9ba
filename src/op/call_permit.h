/* Calls of permits: what op/call.h says, with their keys. */
#ifndef RL_OP_CALL_PERMIT_H
#define RL_OP_CALL_PERMIT_H

#include "op/request.h"

void rl_call_take_permits(rl_bytes *to, bool whole, const rl_hold *h,
                          const rl_request *r);
void rl_call_free_permits(rl_bytes *to, bool whole, const rl_hold *h);
void rl_call_keep_permits(rl_bytes *to, rl_script_id script, bool whole,
                          const rl_hold *h, int64_t lease_ms);
void rl_call_keep_many_permits(rl_bytes *to, bool whole,
                               const rl_hold *const *h, size_t n,
                               int64_t lease_ms);

/*
 * Of a semaphore: makes h->token permits more, or fewer, of what is h->lease_ms if
 * nobody has said yet, with the draft's uuid as the mark; tells how many are free.
 */
void rl_call_add_permits(rl_bytes *to, bool whole, const rl_hold *h);
void rl_call_available(rl_bytes *to, bool whole, const rl_target *what);

#endif
