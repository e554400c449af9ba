/*
 * A try for a lock of one server. The owner's thread calls it; the draft is its
 * own until it is granted, and is kept from one try to the next, with its
 * holder id: a try that was not answered and a later one are the same acquire
 * to the server. But a tokenless draft that is in doubt is undone, and the next try is
 * made with another (verb_acquire.c).
 *
 * With the option grants a try that queues says what it wants, and a release may
 * give it that (lua/grant.lua). Until the wait is over the server may do so at any
 * time: who gives up releases, whatever it believes.
 */
#include "hold/step.h"
#include "op/acquire.h"
#include "op/grant.h"
#include "op/handover.h"
#include "op/turn.h"

/*
 * When a lease runs out, the first in the queue looks at once; who stands
 * behind leaves him time, so that not all ask for the one grant there is.
 */
#define BEHIND_US (100 * 1000)

/* Who stands further behind looks by itself before. */
#define MOST_BEHIND 100

/*
 * A lease that ends now may not end: a server that serves others at length goes
 * by a time that is old. So it is asked again after 1, 2, 4 ... 64 ms.
 */
#define ENDS_US        1000
#define MOST_DOUBLINGS 6

/* What somebody wants is forgotten so long after his last try (lua/queue.lua). */
#define WANTED_MS 6000

static bool make_draft(rl_acquire *a)
{
    rl_core *c = a->home;
    rl_uuid id;
    if (!a->room)
        a->room = rl_holds_make_room(&c->holds, a->owner);
    if (a->room && rl_uuid_new(&id)) {
        a->draft = rl_draft(c, a->room, a->what, &id, a->lease_ms);
        a->room = NULL;
    }
    if (!a->draft)
        rl_fault_set(&a->fault, RLOCK_ENOMEM, 0, "out of memory or randomness");
    else if (a->joins)
        rl_hold_join(a->draft, a->joins);
    return a->draft != NULL;
}

/* From now on the lock may be handed over to it; or not, without memory. */
static void attend(rl_acquire *a)
{
    if (!a->draft && rl_scope_hands_over(a->what->scope))
        make_draft(a);
}

static bool handed(rl_acquire *a, int64_t now_us)
{
    if (a->waiter.claim_ms)
        return rl_attempt_granted(a, now_us);
    rl_part *x = a->one = a->op.lent;
    rl_part_acquire(x, a->home, a->draft, a->lease_ms, now_us);
    if (a->waiter.passed) {
        if (rl_note_passed(x, a->waiter.passed, now_us))
            a->draft = NULL; /* that hold is there, and takes its place */
        return true;
    }
    rl_note_handed(x, &a->waiter, now_us);
    if (x->ok)
        rl_turn_begin(&a->home->holds, a->draft, &a->waiter);
    return true;
}

/* In the queue a release may grant it the lock from now on (lua/grant.lua), with a
   token. */
static void want(rl_acquire *a)
{
    if (!a->home->set.grants || rl_target_layout(a->what)->line ||
        rl_layout_is_tokenless(rl_target_layout(a->what)) ||
        !rl_scope_hands_over(a->what->scope))
        return;
    a->one->request.wants = a->draft->stood = true;
    rl_room_stand(&a->home->rooms, &a->waiter, &a->draft->id);
}

/* What it wanted may be granted yet, until it is undone. */
static void drop_draft(rl_acquire *a, int64_t now_us)
{
    rl_hold *draft = a->draft;
    if (draft->stood)
        rl_hold_expect(draft, now_us, WANTED_MS + RL_CLAIM_MOST_MS);
    rl_hold_drop(&a->home->holds, draft, draft->unknown || draft->stood,
                 now_us);
    a->draft = NULL;
}

static bool begin(rl_acquire *a, int64_t now_us)
{
    rl_part *x = a->one = a->op.lent;
    if (a->draft && a->draft->unknown &&
        rl_layout_is_tokenless(rl_target_layout(a->what)))
        drop_draft(a, now_us);
    if (!a->draft && !make_draft(a))
        return false;
    rl_part_acquire(x, a->home, a->draft, a->lease_ms, now_us);
    x->op = &a->op;
    x->until_us = rl_min(x->until_us, a->call_until_us);
    if (a->waiter.room && !a->last_try && !a->asks_who)
        x->request.bell = rl_bell_of(a->home, a->what);
    a->with_bell = *x->request.bell != '\0';
    if (a->with_bell) {
        x->request.ticket = rl_room_ticket(&a->home->rooms, &a->waiter);
        want(a);
    }
    x->request.says_who = now_us - a->began_us >= RL_LONG_US;
    a->op.n = a->op.quorum = 1;
    return true;
}

/* After "busy": when to look again if nobody rings. */
static int64_t look_at(rl_acquire *a, const rl_grant *g, int64_t now_us)
{
    int64_t at_us =
        now_us + rl_jitter(g->foreign ? RL_FOREIGN_LOOK_US : RL_LOOK_US);
    int64_t behind_us = rl_max(rl_min(g->rank, MOST_BEHIND), 0) * BEHIND_US;
    if (g->ttl_ms != 0)
        a->overdue = 0;
    int64_t ends_us = ENDS_US << a->overdue;
    if (g->ttl_ms == 0 && a->overdue < MOST_DOUBLINGS)
        a->overdue++;
    if (g->ttl_ms >= 0)
        at_us =
            rl_min(at_us, rl_after_ms(now_us + ends_us + behind_us, g->ttl_ms));
    return at_us;
}

static rl_try judge(rl_acquire *a, int64_t now_us)
{
    rl_part *x = a->one;
    switch (x->verdict) {
    case RL_ACQUIRED:
        a->token = x->grant.token;
        if (a->draft)
            rl_take_over(x, a->token, now_us);
        a->owner->holds++;
        a->draft = NULL;
        return RL_TRY_OWNED;
    case RL_BUSY:
        a->fault = x->fault;
        a->pause_us = 0;
        a->ticket = x->grant.ticket;
        a->again_us = look_at(a, &x->grant, now_us);
        return RL_TRY_BUSY;
    default:
        a->fault = x->fault;
        return RL_TRY_FAILED;
    }
}

static bool leave(rl_acquire *a, bool queued, int64_t now_us)
{
    bool owned = a->status == RLOCK_OK;
    if (a->draft)
        drop_draft(a, now_us);
    rl_holds_give_up_room(&a->home->holds, a->room);
    a->room = NULL;
    /* An owner's lease is running: it waits for no answer. */
    rl_part *x = NULL;
    if (queued)
        x = owned ? rl_part_new_leave(a->home, a->what, now_us) : a->op.lent;
    if (!x)
        return false;
    if (!owned)
        rl_part_leave(x, a->home, a->what, now_us);
    x->op = &a->op;
    x->until_us = rl_min(x->until_us, a->call_until_us);
    x->awaited = !owned;
    a->op.n = 1;
    a->op.quorum = owned ? 0 : 1;
    a->one = x;
    return true;
}

const rl_attempt rl_attempt_one = {.begin = begin,
                                   .judge = judge,
                                   .attend = attend,
                                   .handed = handed,
                                   .leave = leave};
