/* What few holds have, behind one pointer of theirs. */
#ifndef RL_HOLD_EXTRA_H
#define RL_HOLD_EXTRA_H

#include "hold/alarm.h"
#include "hold/waker.h"

struct rl_hold;
struct rl_owner_record;

#define RL_NO_CAP UINT32_MAX /* a lease above 49 days is capped to 49 */

/*
 * It is made for a draft, or by what its owner asks for, which may fail for lack
 * of memory: so what comes of that is always noted.
 */
typedef struct rl_extra {
    uint64_t scope; /* fixed; of a node of a Red lock */
    /* What a hand-over is worth to the process: whose host:pid:tid the server
       knows it by (NULL: it was not handed over, or there are no turns), when
       the command that was granted was sent, and how often it may be passed on.
       But for that, fixed once it is held; see op/turn.c. */
    struct rl_owner_record *starter;
    int64_t turn_us;
    unsigned left;
    rl_alarms alarms;     /* none of a Red lock: its group has them */
    rl_waker *landing;    /* who waits for in_flight to end */
    uint32_t cap_ms;      /* an extend to this lease may still arrive: no lease
                             can be relied on for longer */
    uint32_t late_cap_ms; /* the same of what was sent before late_us */
    uint32_t owed_cap_ms; /* extends that are late are not answered yet: */
    unsigned owed;        /* as long as there are some, this is a cap, too */
    int64_t late_us;      /* when the last one was that was answered late */
} rl_extra;

/*
 * That of the hold, made if there is none. Of a draft, which is the caller's
 * alone, or with the mutex. NULL: out of memory.
 */
rl_extra *rl_hold_make_extra(struct rl_hold *h);

#endif
