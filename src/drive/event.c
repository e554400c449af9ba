#include "drive/event.h"

#include <stdlib.h>
#include <string.h>

#include "drive/engine.h"

typedef struct event_letter {
    rl_letter letter;
    rl_core *core;
    rlock_event event;
    char text[]; /* name, message and owner; each ends in a NUL */
} event_letter;

static void deliver(rl_letter *l)
{
    event_letter *e = RL_CONTAINER(l, event_letter, letter);
    if (!atomic_load(&e->core->muted))
        e->core->set.on_event(&e->event, e->core->set.event_arg);
    free(e);
}

void rl_event_post(rl_core *c, const rlock_event *ev)
{
    size_t name = ev->name_len + 1, message = strlen(ev->message) + 1,
           owner = strlen(ev->owner) + 1;
    event_letter *e = calloc(1, sizeof *e + name + message + owner);
    if (!e)
        return;
    e->letter.deliver = deliver;
    e->core = c;
    e->event = *ev;
    memcpy(e->text, ev->name, ev->name_len);
    memcpy(e->text + name, ev->message, message);
    memcpy(e->text + name + message, ev->owner, owner);
    e->event.owner = e->text + name + message;
    e->event.name = e->text;
    e->event.message = e->text + name;
    rl_outbox_post(&rl_engine_of(c)->outbox, &e->letter);
}

bool rl_event_is_kept(rl_core *c)
{
    return rl_async_is_driven_here(&rl_engine_of(c)->async);
}
