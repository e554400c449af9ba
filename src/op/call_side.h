/* Calls of the sides of a read-write lock: what op/call.h says, with their keys. */
#ifndef RL_OP_CALL_SIDE_H
#define RL_OP_CALL_SIDE_H

#include "op/request.h"

void rl_call_acquire_side(rl_bytes *to, bool whole, const rl_hold *h,
                          const rl_request *r);
void rl_call_release_side(rl_bytes *to, bool whole, const rl_hold *h,
                          int level);
void rl_call_lease_of_side(rl_bytes *to, rl_script_id script, bool whole,
                           const rl_hold *h, int64_t lease_ms, bool compare);
/* The same for one that writes, and has not read: its lease is the key's TTL. */
void rl_call_renew_bare(rl_bytes *to, bool whole, const rl_hold *h,
                        int64_t lease_ms);
void rl_call_force_side(rl_bytes *to, bool whole, const rl_target *what);
void rl_call_release_of_side(rl_bytes *to, bool whole, const rl_target *what,
                             const char *holder_id);

/* What a renewal of several names of each beside the lock: how many keys, and these,
   kind by kind. */
int rl_side_keys(const rl_layout *l);
void rl_put_keys_of_sides(rl_bytes *to, const rl_hold *const *h, size_t n);

#endif
