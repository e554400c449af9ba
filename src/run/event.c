/*
 * What was started at one client may be about another one, too: the members of
 * a Multi lock may be of several. Its events are told by who dispatches that
 * first client, as `done` is: nobody need ever dispatch the other. So such a
 * completion counts the client that it is about, and is told only while that
 * one is open.
 */
#include "run/event.h"

#include <stdlib.h>
#include <string.h>

#include "run/client.h"

typedef struct event_completion {
    rl_completion completion;
    rlock_client *client; /* that it is about */
    bool visits;          /* it is in the completions of another one */
    rlock_event event;
    char text[]; /* name, message and owner; each ends in a NUL */
} event_completion;

static void tell(const event_completion *e)
{
    rl_core *c = &e->client->engine.core;
    if (!atomic_load(&c->muted))
        c->set.on_event(&e->event, c->set.event_arg);
}

static void deliver(rl_completion *l)
{
    int cancel;
    event_completion *e = RL_CONTAINER(l, event_completion, completion);
    if (!e->visits) {
        tell(e);
    } else if (rl_client_enter(e->client, &cancel) == RLOCK_OK) {
        tell(e);
        rl_client_leave(e->client, cancel);
    }
    if (e->visits)
        rl_client_unref(e->client);
    free(e);
}

static event_completion *write_completion(rl_engine *about,
                                          const rlock_event *ev)
{
    size_t name = ev->name_len + 1, message = strlen(ev->message) + 1,
           owner = strlen(ev->owner) + 1;
    event_completion *e = calloc(1, sizeof *e + name + message + owner);
    if (!e)
        return NULL;
    e->completion.deliver = deliver;
    e->client = RL_CONTAINER(about, rlock_client, engine);
    e->event = *ev;
    memcpy(e->text, ev->name, ev->name_len);
    memcpy(e->text + name, ev->message, message);
    memcpy(e->text + name + message, ev->owner, owner);
    e->event.owner = e->text + name + message;
    e->event.name = e->text;
    e->event.message = e->text + name;
    return e;
}

void rl_event_post(rl_core *c, const rlock_event *ev)
{
    rl_engine *about = rl_engine_of(c);
    event_completion *e = write_completion(about, ev);
    rl_async *driven = rl_async_driven_here();
    rl_completions *to = driven && !c->set.dispatch_events
                             ? driven->completions
                             : &about->completions;
    if (!e)
        return;
    if (driven && to == driven->completions)
        e->completion.busy = rl_async_telling_here();
    e->visits = to != &about->completions;
    if (e->visits)
        rl_client_ref(e->client);
    rl_completions_post(to, &e->completion);
}

bool rl_event_is_kept(void)
{
    return rl_async_driven_here() != NULL;
}
