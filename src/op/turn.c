/*
 * Turns (turn_ms). A hand-over costs one call of the server for each section;
 * with turns, one for many. Who is handed the lock begins a turn: the server
 * has reserved tokens for it (none for who wants none), and for turn_ms whoever
 * unlocks passes the hold itself to the next thread that waits here, if that
 * wants a token, too, or none either. To the server nothing happens: it knows
 * one holder, whom the thread that began the turn is named in, and the
 * keeper renews one hold, whoever owns it. For example, three threads wait
 * while A unlocks:
 *
 *   A: unlock    handover(A, B): B's token is 1000, those to 1063 are reserved
 *   B: unlock    gives its hold to C, whose token is 1001
 *   C: unlock    turn_ms are over: handover(B, D)
 *
 * The thread that unlocks does all of it, under the mutexes of the table and,
 * inside of that, of the rooms: whoever looks sees one owner. C is woken, and
 * puts the hold into the table as its own. Until then nobody finds it there,
 * for C may be inside a callback that calls the library; the keeper renews it,
 * and it may even be lost, which nobody is told: C goes on waiting.
 *
 * What stays true: nothing that a former owner has sent can hurt a later one. A
 * hold is not passed on when its acquire, an extend or a count may be executed
 * late, nor while the server may count more than one level or keeps it for
 * longer than a lease; renewals may come late, for they say nothing that is not
 * true of the next owner, too.
 * Others get their turn: a pass does not prolong the turn, and is not made
 * while this client stands in the server's queue itself.
 */
#include "op/turn.h"

#include <stdlib.h>

#include "base/probe.h"
#include "hold/step.h"
#include "op/handover.h"

/* So much of its lease the next owner finds: percent. */
#define LEAST_LEASE 60

void rl_turn_begin(rl_holds *t, rl_hold *draft, const rl_waiter *w)
{
    if (w->kept)
        rl_hold_begin_turn(t, draft, w->sent_us, w->kept);
}

/* May it become another's as it is, now? */
static bool is_free_to_go_locked(rl_core *c, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&c->holds.mutex)
{
    int64_t lease_ms = c->set.watchdog_lease_ms;
    int64_t left_us = h->expiry.due_us - now_us;
    return h->extra->left > 0 && !h->group && !h->unknown && !h->astray &&
           !h->deep && !rl_hold_was_capped(h) &&
           rl_hold_renews_locked(&c->holds, h, now_us) &&
           left_us >= lease_ms * 1000 / 100 * LEAST_LEASE &&
           h->expiry.due_us <= rl_lease_deadline(now_us, lease_ms);
}

/* As if it had been granted just now; what it was before is over. */
static void change_owner_locked(rl_holds *t, rl_hold *h, rl_owner_record *to,
                                int64_t now_us) RL_REQUIRES(&t->mutex)
{
    rl_alarms_end(&h->extra->alarms);
    rl_add(&t->stats->passes, 1);
    rl_stats_held(t->stats, h->name, h->name_len, now_us - h->began_us);
    rl_hold_give_locked(t, h, to);
    h->extra->left--;
    h->token += h->token > 0;
    rl_hold_count_in_row(h);
    h->count = 1;
    h->reports = 0;
    h->passing = true;
    rl_hold_begin_anew_locked(t, h, now_us);
    RL_PROBE(pass, &h->name[0], h->name_len, h->token);
}

static bool give_to_front_locked(rl_core *c, rl_hold *h,
                                 int64_t (*clock_us)(void))
    RL_REQUIRES(&c->holds.mutex)
{
    rl_rooms *r = &c->rooms;
    rl_mutex_lock(&r->mutex);
    int64_t now_us = clock_us();
    rl_waiter *w =
        rl_room_front_locked(r, rl_hold_name(h), h->name_len, h->scope);
    bool takes_it = rl_waiter_takes_locked(r, w, now_us) && w->renewed &&
                    !w->room->queued && w->draft->layout == h->layout &&
                    now_us - h->extra->turn_us < c->set.turn_us;
    if (takes_it) {
        change_owner_locked(&c->holds, h, w->draft->record, now_us);
        w->passed = h;
        w->withheld = RL_WAKE_LOOK;
        w->rest = RL_HANDED;
        w->waker->wake(w->waker, RL_WAKE_LOOK, 0);
    }
    rl_mutex_unlock(&r->mutex);
    return takes_it;
}

bool rl_turn_pass(rl_core *c, rl_hold *h, int64_t (*clock_us)(void))
{
    const rl_extra *x = h->extra;
    if (!x || !x->starter)
        return false;
    rl_mutex_lock(&c->holds.mutex);
    bool passes = is_free_to_go_locked(c, h, clock_us()) &&
                  give_to_front_locked(c, h, clock_us);
    rl_mutex_unlock(&c->holds.mutex);
    return passes;
}

/* It was lost meanwhile, and nobody was told that it was there. */
static void let_go_of_lost(rl_part *x, rl_hold *passed, int64_t now_us)
{
    rl_fault ignored;
    rl_release_lost(x->core, passed, 0, &ignored, now_us);
    x->verdict = RL_BUSY;
    x->grant = (rl_grant){.ttl_ms = 0}; /* so it looks again soon */
    rl_fault_set(&x->fault, RLOCK_BUSY, 0, "held by another");
}

bool rl_note_passed(rl_part *x, rl_hold *passed, int64_t now_us)
{
    rl_core *c = x->core;
    x->ok = rl_hold_arrive(&c->holds, passed, now_us);
    if (!x->ok) {
        let_go_of_lost(x, passed, now_us);
        return false;
    }
    x->verdict = RL_ACQUIRED;
    rl_give_up(c, x->hold, now_us);
    x->hold = passed;
    x->grant.token = passed->token;
    return true;
}
