#include "op/core.h"

#include "wire/hash_slot.h"

uint16_t rl_slot_of(const rl_core *c, const void *name, size_t len)
{
    return c->redirects ? (uint16_t)rl_hash_slot(name, len) : 0;
}

void rl_tell(rl_core *c, const rlock_event *ev)
{
    if (!c->set.on_event)
        return;
    if (c->set.dispatch_events || (c->keeps_events && c->keeps_events()))
        c->post_event(c, ev);
    else
        c->set.on_event(ev, c->set.event_arg);
}
