/* Words that the calls of several kinds are made of. */
#ifndef RL_OP_CALL_WORDS_H
#define RL_OP_CALL_WORDS_H

#include "op/request.h"

void rl_put_holder(rl_bytes *to, const rl_hold *h);
void rl_put_tombstone_of(rl_bytes *to, const rl_hold *h);

/* Of who stands in line: "-" before it says that he hears nothing, and he is granted
   what he wants all the same. */
void rl_put_bell_in_line(rl_bytes *to, const rl_hold *h, const rl_request *r);

/* By which command a script publishes: the last argument, if not as usual. */
void rl_put_publish(rl_bytes *to, bool sharded);

/* What counts only once is asked for again for RL_LATE_MS, and the last copy may be
   as late as that: so long its mark stands. */
#define RL_MARK_MS (2 * RL_LATE_MS)

int64_t rl_tombstone_ms(const rl_hold *h);

#endif
