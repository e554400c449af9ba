/*
 * Plays close_client() of src/client.c: a thread of the program frees a client
 * while others wait and hold. It comes back when no call is inside any more,
 * which is judged, and the keeper has made its last try.
 *
 * What stays true: whoever looks into a client's tables asks first whether it
 * is closed; what owners held there has been forgotten by then.
 */
#include "judge.h"
#include "owner.h"

#define LOOK_US (1 * MS)

static client *client_of_closer(task *t)
{
    return RL_CONTAINER(t, client, closer);
}

bool client_is_open(const client *c)
{
    return !atomic_load(&c->handle.closing);
}

rl_hold *client_find(client *c, const rl_target *what, uint64_t serial)
{
    if (c->stage == CLIENT_CLOSED)
        return NULL;
    return rl_holds_find_locked(&c->e.core.holds, what, serial);
}

/* --- what owners have there ----------------------------------------------- */

/* A Red lock is held without it, as long as there are others. */
static bool move_to_other_node(owner *o, size_t name, size_t closed)
{
    holding *have = &o->holding[name];
    for (size_t i = 0; have->group && i < o->p->w->set.servers; i++) {
        client *c = &o->p->client[i];
        rl_hold *h =
            i == closed ? NULL
                        : client_find(c, owner_target(o, name), o->self.serial);
        if (!h || h->group != have->group)
            continue;
        h->refs++;
        rl_holds_put(&o->p->client[closed].e.core.holds, have->hold);
        have->hold = h;
        have->at = i;
        return true;
    }
    return false;
}

static void forget_holds(client *c)
{
    process *p = c->p;
    for (size_t i = 0; i < p->owners; i++)
        for (size_t name = 0; name < c->w->set.names; name++)
            if (p->owner[i]->holding[name].hold &&
                p->owner[i]->holding[name].at == c->s->index &&
                !move_to_other_node(p->owner[i], name, c->s->index))
                owner_forgets(p->owner[i], name);
}

/* --- its end -------------------------------------------------------------- */

/*
 * Each call has its command timeout, and what it takes to leave; both by the
 * process' clock, which may be slow.
 */
static void judge_calls(client *c)
{
    world *w = c->w;
    int64_t since_us = rl_max(c->closing_us, c->p->resumed_us);
    int64_t bound_us = 2 * w->set.timeout_ms * MS + 20 * judge_latency_us(w);
    bound_us =
        bound_us * 1000000 / (1000000 + rl_min(c->p->clock.drift_ppm, 0));
    if (w->now_us > since_us + bound_us && !c->p->is_dead)
        judge_fail(w, "judge 5: process %u closes a client, and calls stay in",
                   c->p->index);
}

static void stop(client *c)
{
    rl_holds *t = &c->e.core.holds;
    doorbell_close(c);
    rl_holds_close(t, &c->handle.home, client_now(c));
    rl_holds_stop(t);
    keeper_stop(c);
    c->stage = CLIENT_STOPPING;
}

static void close_it(client *c)
{
    notifier_finish(c);
    forget_holds(c);
    if (c->e.core.rooms.map.count > 0 || c->e.core.rooms.listeners.count > 0)
        judge_fail(c->w, "judge 4: process %u closes a client with rooms",
                   c->p->index);
    client_end(c);
    client_fini(c);
    c->stage = CLIENT_CLOSED;
    trace(c->w, "process %u has closed its client of server %u", c->p->index,
          c->s->index);
}

static void run(task *t)
{
    client *c = client_of_closer(t);
    if (c->stage == CLIENT_CLOSING && atomic_load(&c->handle.calls) > 0)
        judge_calls(c);
    else if (c->stage == CLIENT_CLOSING && !c->doorbell.runner.op)
        stop(c);
    else if (c->stage == CLIENT_STOPPING && c->keeper.has_stopped)
        close_it(c);
    if (c->stage == CLIENT_CLOSING || c->stage == CLIENT_STOPPING)
        task_sleep(t, client_now(c) + LOOK_US);
}

void closer_open(client *c)
{
    task_init(&c->closer, c->p, run, "closer");
}

void closer_close(client *c)
{
    task_fini(&c->closer);
}

void client_free(client *c)
{
    if (!client_is_open(c))
        return;
    trace(c->w, "process %u frees its client of server %u", c->p->index,
          c->s->index);
    c->stage = CLIENT_CLOSING;
    c->closing_us = c->w->now_us;
    atomic_store(&c->handle.closing, true);
    rl_rooms_close(&c->e.core.rooms);
    task_wake(&c->closer);
}

/* Is the owner told that it has nothing, as what it has it by is closed? */
bool owner_is_closed(const owner *o, size_t name)
{
    return !client_is_open(owner_client(o, name));
}

bool process_is_open(const process *p)
{
    for (size_t i = 0; i < p->w->set.servers; i++)
        if (!client_is_open(&p->client[i]))
            return false;
    return true;
}
