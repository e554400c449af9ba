/*
 * A try for a fair lock: of one server, whose line (lua/line.lua) knows each who
 * waits by the holder id of its draft. The first try puts it there; then the
 * front of the room speaks for all, and who is next is granted the lock by a
 * message (op/grant.h), as a hand-over would grant it.
 *
 * What stays true: who gives up releases, whatever is believed, so nobody who is
 * gone stands in line, or keeps what was granted to him meanwhile. A grant is
 * good for its claim only; to go on, the keeper renews it, or, where that will
 * not do, it is confirmed before: asked for again, with the whole lease. So is
 * what is granted to who waits for a plain lock.
 */
#include "op/acquire.h"
#include "op/grant.h"
#include "op/handover.h"

/* How often the front looks while nobody hears the bell. */
#define DEAF_POLL_US (250 * 1000)

static bool begin(rl_acquire *a, int64_t now_us)
{
    if (!rl_attempt_one.begin(a, now_us))
        return false;
    rl_request *r = &a->one->request;
    r->permits = a->what->semaphore ? a->what->semaphore->permits : 0;
    if (!a->waiter.room || a->last_try || a->asks_who)
        return true;
    r->deaf = *r->bell == '\0';
    r->bell = a->home->bell;
    r->ticket = a->ticket;
    rl_room_stand(&a->home->rooms, &a->waiter, &a->draft->id);
    return true;
}

/* A client that has not asked for so long is taken for dead (lua/line.lua). */
#define STANDS_US (6000 * 1000)

/* Who cannot be told has to look, the front more often than the others. */
static void look_by_itself(rl_acquire *a, int64_t now_us)
{
    rl_rooms *rooms = &a->home->rooms;
    rl_room_stand_not(rooms, &a->waiter);
    if (!rl_room_is_front(rooms, &a->waiter))
        return;
    rl_room_stand_none(rooms, &a->waiter);
    a->again_us = rl_min(a->again_us, now_us + rl_jitter(DEAF_POLL_US));
}

/*
 * Others here may have been dropped since the last reply that said busy, and none
 * has told: one that grants does not, and one that would have may have been lost.
 * Before the first that said busy nobody stands.
 */
static bool was_silent(const rl_acquire *a, int64_t now_us)
{
    rl_rooms *rooms = &a->home->rooms;
    const rl_waiter *w = &a->waiter;
    return w->room && rl_room_was_busy(rooms, w, 1) &&
           !rl_room_was_busy(rooms, w, now_us - STANDS_US);
}

static void tell_others(const rl_acquire *a, bool anew, int64_t now_us)
{
    if (anew || was_silent(a, now_us))
        rl_room_stand_anew(&a->home->rooms, &a->waiter);
}

static rl_try judge(rl_acquire *a, int64_t now_us)
{
    int64_t ticket = a->ticket;
    const rl_part *x = a->one;
    rl_try result = rl_attempt_one.judge(a, now_us);
    if (result == RL_TRY_OWNED || !*x->request.bell) {
        a->ticket = ticket;
        if (result == RL_TRY_OWNED)
            tell_others(a, false, now_us);
        return result;
    }
    if (result != RL_TRY_BUSY)
        rl_room_stand_not(&a->home->rooms, &a->waiter);
    else if (x->request.deaf || x->grant.rank < 0)
        look_by_itself(a, now_us);
    if (result == RL_TRY_BUSY)
        tell_others(a, x->grant.anew, now_us);
    return result;
}

bool rl_attempt_granted(rl_acquire *a, int64_t now_us)
{
    const rl_waiter *w = &a->waiter;
    if (a->lease_ms != RLOCK_WATCHDOG || a->draft->replicas ||
        !rl_claim_is_good(w->sent_us, w->claim_ms, now_us))
        return false;
    rl_part *x = a->one = a->op.lent;
    rl_part_acquire(x, a->home, a->draft, a->lease_ms, now_us);
    x->request.lease_ms = a->draft->lease_ms = w->claim_ms;
    a->draft->began_us = now_us; /* the beat may be much older */
    rl_note_handed(x, w, now_us);
    return true;
}

/* It leaves the line, or frees what was granted to it meanwhile. */
static bool leave(rl_acquire *a, bool queued, int64_t now_us)
{
    rl_hold *draft = a->draft;
    bool stood = draft && a->asked && a->wait_ms != 0;
    (void)queued;
    if (a->status == RLOCK_OK || !stood)
        return rl_attempt_one.leave(a, false, now_us);
    rl_part *x = a->one = a->op.lent;
    a->draft = NULL;
    rl_holds_give_up_room(&a->home->holds, a->room);
    a->room = NULL;
    rl_part_undo(x, a->home, draft, now_us);
    x->op = &a->op;
    x->until_us = rl_min(x->until_us, a->call_until_us);
    a->op.n = a->op.quorum = 1;
    return true;
}

const rl_attempt rl_attempt_line = {.begin = begin,
                                    .judge = judge,
                                    .handed = rl_attempt_granted,
                                    .leave = leave,
                                    .in_line = true};
