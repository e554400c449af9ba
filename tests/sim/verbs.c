/*
 * The verbs of a lock on one server, as lock/single.c has them: what each does
 * with the hold table before and after its operation. Where single.c blocks in
 * rl_drive(), a verb ends here and goes on in the function it names.
 */
#include <string.h>

#include "core/holder.h"
#include "judge.h"
#include "owner.h"

client *owner_client(owner *o, size_t name)
{
    if (o->p->w->set.red)
        return &o->p->client[0];
    return &o->p->client[lock_server(o->p->w, name)->index];
}

const rl_target *owner_target(const owner *o, size_t name)
{
    const lock_truth *truth = &o->p->w->lock[name];
    return o->p->w->set.red ? &truth->red : &truth->what;
}

static rl_core *core_of(owner *o, size_t name)
{
    return &owner_client(o, name)->e.core;
}

static owner *owner_of(runner *r)
{
    return RL_CONTAINER(r, owner, runner);
}

static rl_hold *pick(owner *o, bool *valid, rl_estate **room)
{
    return rl_holds_pick(&core_of(o, o->name)->holds, owner_target(o, o->name),
                         o->self.serial, process_now(o->p), valid, room);
}

static void put(owner *o, rl_hold *h)
{
    rl_holds_put(&core_of(o, o->name)->holds, h);
}

/* An operation of one part. */
static void drive(owner *o, void (*done)(runner *r))
{
    rl_op_init(&o->op);
    o->op.n = o->op.quorum = 1;
    o->op.part[0] = &o->part;
    o->part.op = &o->op;
    o->part.heap = false;
    runner_start(&o->runner, &o->op, done);
}

static void begin(owner *o, verb what, size_t name)
{
    o->verb = what;
    o->name = name;
    o->names = 1u << name;
    o->began_us = process_now(o->p);
}

static void note_doubt(owner *o)
{
    if (o->part.ask.unknown || !o->part.ok)
        o->holding[o->name].unsure = true;
}

/* --- acquire -------------------------------------------------------------- */

static void acquired(runner *r)
{
    owner *o = owner_of(r);
    holding *have = &o->holding[o->name];
    client *c = owner_client(o, o->name);
    bool valid;
    if (c->doorbell.started)
        doorbell_start(c); /* nobody may wait any more */
    if (o->acquire.status == RLOCK_OK) {
        have->hold = pick(o, &valid, NULL);
        have->count = 1;
        have->unsure = have->hold && have->hold->unknown;
        judge_grant(o, o->name);
    }
    owner_is_told(o, o->acquire.status);
}

static void listen_to(rl_core *core)
{
    doorbell_start(client_of(core));
}

static void acquire_first(owner *o, rl_estate *room)
{
    rl_acquire *a = &o->acquire;
    *a = (rl_acquire){
        .contest = &rl_contest_one,
        .home = core_of(o, o->name),
        .what = owner_target(o, o->name),
        .handle = &o->handle[o->name],
        .owner = &o->self,
        .cancel = {&o->cancels[o->name], atomic_load(&o->cancels[o->name])},
        .room = room,
        .wait_ms = o->wait_ms,
        .lease_ms = o->lease_ms,
        .listen = listen_to};
    rl_acquire_init(a, o->began_us);
    runner_start(&o->runner, &a->op, acquired);
}

static void reentered(runner *r)
{
    owner *o = owner_of(r);
    if (o->part.ok)
        o->holding[o->name].count++;
    note_doubt(o);
    put(o, o->part.hold);
    owner_is_told(o, o->part.ok ? RLOCK_OK : o->part.fault.status);
}

void verb_acquire(owner *o, size_t name, int64_t wait_ms, int64_t lease_ms)
{
    bool valid;
    rl_estate *room = NULL;
    begin(o, o->holding[name].hold ? REENTER : ACQUIRE, name);
    o->wait_ms = wait_ms;
    o->lease_ms = lease_ms;
    rl_hold *h = pick(o, &valid, &room);
    if (!h) {
        acquire_first(o, room);
    } else if (!valid) {
        put(o, h);
        owner_is_told(o, RLOCK_LOST);
    } else {
        rl_part_reenter(&o->part, core_of(o, name), h, lease_ms, o->began_us);
        drive(o, reentered);
    }
}

/* --- unlock and extend ---------------------------------------------------- */

/* The hold is let go of; its end was before. */
static void let_go(owner *o)
{
    holding *have = &o->holding[o->name];
    judge_end_of_hold(o, o->name);
    put(o, have->hold);
    *have = (holding){0};
}

static void unlocked(runner *r)
{
    owner *o = owner_of(r);
    rlock_status s = o->part.ok ? RLOCK_OK : o->part.fault.status;
    note_doubt(o);
    if (o->part.level == 0 && s == RLOCK_OK)
        judge_release(o, o->name);
    if (o->part.level == 0)
        let_go(o);
    owner_is_told(o, s);
}

void verb_unlock(owner *o, size_t name)
{
    begin(o, UNLOCK, name);
    rl_core *core = core_of(o, name);
    holding *have = &o->holding[name];
    rl_hold *h = have->hold;
    bool valid;
    if (!h) {
        owner_is_told(o, RLOCK_NOT_HELD);
        return;
    }
    put(o, pick(o, &valid, NULL));
    int level = h->count - 1;
    valid = rl_count_down(core, h, level, o->began_us);
    have->count = level;
    have->releasing = level == 0;
    if (level == 0)
        o->self.holds--;
    if (valid) {
        rl_part_release(&o->part, core, h, level, o->began_us);
        drive(o, unlocked);
        return;
    }
    rl_fault f;
    rlock_status s = rl_release_lost(core, h, level, &f, o->began_us);
    if (level == 0)
        let_go(o);
    owner_is_told(o, s);
}

static void extended(runner *r)
{
    owner *o = owner_of(r);
    put(o, o->part.hold);
    owner_is_told(o, o->part.ok ? RLOCK_OK : o->part.fault.status);
}

void verb_extend(owner *o, size_t name, int64_t lease_ms)
{
    bool valid;
    begin(o, EXTEND, name);
    o->lease_ms = lease_ms;
    rl_hold *h = pick(o, &valid, NULL);
    if (!h || !valid) {
        put(o, h);
        owner_is_told(o, h ? RLOCK_LOST : RLOCK_NOT_HELD);
        return;
    }
    rl_extend *e = &o->extend;
    rl_op_init(&e->op);
    e->op.n = e->op.quorum = 1;
    e->op.part[0] = &o->part;
    o->part.op = &e->op;
    o->part.heap = false;
    o->part.core = core_of(o, name);
    o->part.hold = h;
    rl_extend_init(e, lease_ms, rl_command_end(o->part.core, o->began_us));
    runner_start(&o->runner, &e->op, extended);
}

/* --- what needs no hold --------------------------------------------------- */

static void forced(runner *r)
{
    owner *o = owner_of(r);
    owner_is_told(o, !o->part.ok         ? o->part.fault.status
                     : o->part.code == 1 ? RLOCK_OK
                                         : RLOCK_NOT_HELD);
}

void verb_force(owner *o, size_t name)
{
    begin(o, FORCE, name);
    rl_part_force(&o->part, core_of(o, name), owner_target(o, name),
                  o->began_us);
    drive(o, forced);
}

void verb_inspect(owner *o, size_t name)
{
    begin(o, INSPECT, name);
    rl_part_inspect(&o->part, core_of(o, name), owner_target(o, name),
                    &o->holder, o->began_us);
    drive(o, forced);
}

/* By anybody. */
void owner_cancel(owner *o, size_t name)
{
    atomic_fetch_add(&o->cancels[name], 1);
    rl_rooms_cancel(&core_of(o, name)->rooms, owner_target(o, name),
                    &o->handle[name]);
    if (o->multi_now && o->names >> name & 1)
        rlock_cancel(o->multi_now->lk);
}
