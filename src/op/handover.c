/*
 * Hand-over inside a process. Without it each section of a lock that threads of
 * one client share costs two calls: one frees it, and one takes it for the next
 * thread. Here the unlock says who is next, and the server puts that holder
 * into the place of the old one:
 *
 *   A: unlock      front B sleeps: offers it the lock, sends handover(A, B),
 *                  reads the token, resolves the offer
 *   B: acquire     wakes, and owns
 *
 * So who acquires wakes nobody, and who ends a hold, in whatever way, either
 * hands it over or sees to it that the front looks (rl_rooms_look()). Who
 * unlocks and who waits share the members of rl_waiter, under the rooms' mutex:
 *
 *   AWAKE --rest--> ASLEEP --offer--> OFFERED --resolve--> HANDED
 *     ^               |                  `-------------------.
 *     `---- woken ----'------------------------------------> AWAKE
 *
 * What stays true: only the front is offered anything, so the first to come is
 * the first served. While it is OFFERED its draft belongs to the unlocking
 * thread, it does not leave the room, and what would wake it is kept back: a
 * grant is stronger than a cancel and a close, or it would be nobody's. That
 * lasts for one command at most, and begins before the wait is over, so a call
 * takes no longer than its wait and one command.
 *
 * Only a draft without doubt is offered. If the answer does not come, B's draft
 * is in doubt, as after a try of its own: it asks for level 1 by the same
 * holder id, or gives up, and is undone with a tombstone. Of A's hold the
 * keeper goes on with releases, as after an unlock that was not answered. So a
 * hand-over that is executed late finds either A gone, and does nothing, or B
 * asking for it, or B's tombstone, and frees the lock.
 *
 * B believes in its lease from before the call was sent: the clock of whoever
 * sent it is B's, too.
 *
 * What replicas have to confirm is not handed over: the next owner asks.
 *
 * Others must get their turn. Who stands first in the server's queue may wait
 * for PATIENCE_US, by the server's clock, and while MOST_IN_A_ROW sections are
 * done here one after the other. That number lets two clients whose sections
 * are short have as many each, however fast either is; the time is for long
 * ones. Programs that stand in no queue get a chance when the lock is freed
 * after STREAK_US.
 */
#include "op/handover.h"

#include "op/call.h"
#include "op/verb.h"

/*
 * So many short sections take about a millisecond. In less, who has just made
 * way would not be back in the queue, and the others would go on meanwhile.
 */
#define MOST_IN_A_ROW 32

/* So many sections of up to 0.3 ms are done by then: it is for longer ones. */
#define PATIENCE_US 10000
#define STREAK_US   50000

/* Tokens behind the first one for those to whom the lock is passed on; of what has
   none, so many. With turns, all that have one are in a row. */
#define KEPT_TOKENS 63

/* --- the waiter ------------------------------------------------------------
 */

bool rl_waiter_takes_locked(rl_rooms *r, const rl_waiter *w, int64_t now_us)
{
    (void)r;
    return w && w->rest == RL_ASLEEP && !w->ends && w->draft &&
           !w->draft->unknown && !w->draft->replicas && now_us < w->until_us;
}

void rl_note_handed(rl_part *x, const rl_waiter *w, int64_t now_us)
{
    x->grant = (rl_grant){.token = w->token, .sent_us = w->sent_us};
    rl_note_granted(x, now_us);
}

/* --- who ends a hold --------------------------------------------------------
 */

/* Is it time to free the lock, for those whom no server rings? */
static bool streak_is_over(rl_room *room, int64_t now_us)
{
    if (room->streak_us == 0)
        room->streak_us = now_us;
    bool over = now_us - room->streak_us > STREAK_US;
    if (over)
        room->streak_us = 0;
    return over;
}

/* *queued: the client's bell may be in the server's queue. */
static rl_waiter *offer(rl_rooms *r, const rl_hold *h, int64_t now_us,
                        bool *queued)
{
    if (rl_rooms_are_empty(r))
        return NULL;
    rl_mutex_lock(&r->mutex);
    rl_waiter *w =
        rl_room_front_locked(r, rl_hold_name(h), h->name_len, h->scope);
    bool takes_it = rl_waiter_takes_locked(r, w, now_us) &&
                    !streak_is_over(w->room, now_us);
    if (takes_it) {
        w->rest = RL_OFFERED;
        w->withheld = RL_WAKE_LOOK;
        *queued = w->room->queued;
    }
    rl_mutex_unlock(&r->mutex);
    return takes_it ? w : NULL;
}

/* The call has ended; from here on the waiter is its own again. */
static void resolve(rl_rooms *r, rl_waiter *w, const rl_grant *g,
                    long long code)
{
    rl_mutex_lock(&r->mutex);
    rl_room *room = w->room;
    bool handed = g->token > 0;
    if (code >= 0)
        room->outage_us = 0;
    if (code > 0 || handed)
        rl_room_unqueue_locked(r, room);
    if (handed)
        room->busy_us = g->sent_us;
    else
        room->streak_us = w->draft->in_a_row = 0;
    w->token = g->token;
    w->kept = g->kept;
    w->sent_us = g->sent_us;
    w->rest = handed ? RL_HANDED : RL_AWAKE;
    w->waker->wake(w->waker, handed ? RL_WAKE_LOOK : w->withheld, 0);
    rl_mutex_unlock(&r->mutex);
}

/* Is it another client's turn, if one waits? */
static bool is_long_enough(const rl_core *c, const rl_hold *h)
{
    int most = c->set.turn_us ? KEPT_TOKENS + 1 : MOST_IN_A_ROW;
    return h->in_a_row + 1 >= most;
}

bool rl_part_hand_over(rl_part *x, rl_core *c, rl_hold *h, int64_t now_us)
{
    bool queued;
    if (!rl_scope_hands_over(h->scope) || rl_hold_layout(h)->line || h->group ||
        h->unknown)
        return false;
    rl_waiter *w = offer(&c->rooms, h, now_us, &queued);
    if (!w)
        return false;
    rl_part_release(x, c, h, 0, now_us);
    x->ask.script = RL_SCRIPT_HASH_HANDOVER;
    x->heir = w;
    x->request.lease_ms = w->draft->lease_ms;
    x->request.keep = c->set.turn_us && w->renewed ? KEPT_TOKENS : 0;
    x->request.bell = queued ? c->bell : "";
    x->request.makes_way = is_long_enough(c, h);
    w->draft->in_a_row = h->in_a_row;
    rl_hold_count_in_row(w->draft);
    rl_hold_expect(w->draft, x->until_us, x->request.lease_ms);
    return true;
}

void rl_part_take_back(rl_part *x)
{
    const rl_grant none = {.token = 0};
    resolve(&x->core->rooms, x->heir, &none, -1);
    x->heir = NULL;
}

void rl_hand_over_write(const rl_part *x, rl_bytes *to)
{
    rl_call_hand_over(to, x->ask.whole, x->hold, x->heir->draft, &x->request,
                      x->request.makes_way ? 0 : PATIENCE_US);
}

static long long read_token(const rl_item *i, unsigned kept, rl_grant *g)
{
    long long token = rl_item_number(i);
    g->token = (uint64_t)rl_max(token, 0);
    g->kept = kept;
    return token > 0 ? 1 : -1;
}

/* As of a release: what became of the old hold. -1: no script says so. */
static long long read_code(const rl_reply *r, unsigned kept, rl_grant *g)
{
    if (rl_reply_is(r, REDIS_REPLY_STRING))
        return read_token(&r->top, 0, g);
    if (!rl_reply_is_array(r, 1) ||
        !rl_item_is(&r->item[0], REDIS_REPLY_INTEGER))
        return -1;
    long long code = r->item[0].integer;
    if (code == 3 && r->count == 2)
        return read_token(&r->item[1], kept, g);
    if (code == 5 && r->count == 2)
        return read_token(&r->item[1], 0, g) < 0 ? -1 : 0;
    if (code == 4)
        return RL_GRANTED;
    return code >= 0 && code <= RL_RUNG ? code : -1;
}

void rl_note_hand_over(rl_part *x, const rl_reply *r, int64_t now_us)
{
    rl_waiter *w = x->heir;
    rl_grant g = {.sent_us = x->ask.sent_us};
    long long code = r ? read_code(r, x->request.keep, &g) : -1;
    if (r && code < 0) {
        x->ask.unknown = true;
        rl_fault_set(&x->fault, RLOCK_EIO, 0,
                     "unexpected reply to a hand-over");
    }
    if (code < 0)
        w->draft->unknown = x->ask.unknown;
    if (code > 0 && rl_layout_is_tokenless(rl_hold_layout(w->draft)))
        g.kept = x->request.keep; /* there is nothing to reserve */
    if (g.token > 0 && x->hold->stood)
        w->draft->stood = true;
    rl_hold_expect(w->draft, now_us, x->request.lease_ms);
    rl_note_free(x, code, now_us);
    x->heir = NULL;
    resolve(&x->core->rooms, w, &g, code);
}
