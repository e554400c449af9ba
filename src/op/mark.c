#include "op/mark.h"

#include "op/verb.h"

rl_hold *rl_mark_new(rl_core *c, const rl_target *what, const rl_owner *owner,
                     int64_t amount, int64_t now_us)
{
    rl_uuid mark;
    rl_owner_record *room = rl_holds_make_room(&c->holds, owner);
    if (!room || !rl_uuid_new(&mark)) {
        rl_holds_give_up_room(&c->holds, room);
        return NULL;
    }
    rl_hold *h = rl_hold_new(&c->holds, room, what, &mark);
    if (!h)
        return NULL;
    h->token = (uint64_t)amount;
    rl_hold_expect(h, now_us, RL_LATE_MS);
    return h;
}

void rl_part_begin_mark(rl_part *x, rl_core *c, const rl_verb *verb,
                        rl_script_id script, rl_hold *mark, int64_t now_us)
{
    rl_part_begin(x, c, verb, script, now_us);
    x->hold = mark;
    x->until_us = rl_min(x->until_us, mark->gone_us);
}
