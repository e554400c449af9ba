/*
 * Those who stand in a line of the server's: who has to ask by himself, and who is
 * granted what he wants by a message, as the front for a plain lock may be. Called
 * by the acquiring owners, and, on the loop, by the doorbell.
 */
#include <rlock/lock.h>

#include <string.h>

#include "hold/room.h"

void rl_room_stand(rl_rooms *r, rl_waiter *w, const rl_uuid *id)
{
    rl_mutex_lock(&r->mutex);
    w->id = *id;
    w->stands = true;
    rl_mutex_unlock(&r->mutex);
}

void rl_room_stand_not(rl_rooms *r, rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    w->stands = false;
    rl_mutex_unlock(&r->mutex);
}

void rl_room_stand_none(rl_rooms *r, const rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    const rl_list *all = &w->room->waiters;
    for (rl_link *k = rl_list_first(all); k; k = rl_list_next(all, k))
        RL_CONTAINER(k, rl_waiter, link)->stands = false;
    rl_mutex_unlock(&r->mutex);
}

void rl_room_stand_anew_locked(rl_rooms *r, const rl_room *room,
                               const rl_waiter *but)
{
    for (rl_link *k = rl_list_first(&room->waiters); k;
         k = rl_list_next(&room->waiters, k)) {
        rl_waiter *w = RL_CONTAINER(k, rl_waiter, link);
        if (w == but)
            continue;
        w->stands = false;
        rl_waiter_wake_locked(r, w, RL_WAKE_LOOK);
    }
}

void rl_room_stand_anew(rl_rooms *r, const rl_waiter *w)
{
    const rl_room *own = w->room;
    rl_mutex_lock(&r->mutex);
    for (uint64_t i = 0; i < RL_LAYOUTS; i++) {
        const rl_room *room =
            rl_room_in_line_locked(r, own->name, own->name_len, i);
        if (room)
            rl_room_stand_anew_locked(r, room, w);
    }
    rl_mutex_unlock(&r->mutex);
}

/* Mostly it is the first. */
static rl_waiter *find_in_room(const rl_room *room, const rl_uuid *id)
{
    for (rl_link *k = room ? rl_list_first(&room->waiters) : NULL; k;
         k = rl_list_next(&room->waiters, k)) {
        rl_waiter *w = RL_CONTAINER(k, rl_waiter, link);
        if (memcmp(&w->id, id, sizeof w->id) == 0)
            return w;
    }
    return NULL;
}

static rl_waiter *find_waiter_locked(rl_rooms *r, const rl_notice *n)
    RL_REQUIRES(&r->mutex)
{
    rl_waiter *w = NULL;
    for (uint64_t i = 0; !w && i < RL_LAYOUTS; i++)
        w = find_in_room(rl_room_in_line_locked(r, n->name, n->len, i), &n->id);
    if (w)
        return w;
    w = rl_room_front_locked(r, n->name, n->len, RLOCK_LAYOUT_HASH);
    return w && memcmp(&w->id, &n->id, sizeof w->id) == 0 ? w : NULL;
}

static void hand_locked(rl_rooms *r, rl_waiter *w, const rl_notice *n)
    RL_REQUIRES(&r->mutex)
{
    (void)r;
    w->token = n->token;
    w->sent_us = n->beat_us;
    w->claim_ms = n->claim_ms;
    w->withheld = RL_WAKE_LOOK;
    w->rest = RL_HANDED;
    if (!w->room->line) { /* it was taken out of the queue */
        w->room->queued = false;
        w->room->ticket = 0;
    }
    w->waker->wake(w->waker, RL_WAKE_LOOK, 0);
}

/* Who is awake is just asking, perhaps for the last time before it. */
void rl_rooms_grant(rl_rooms *r, const rl_notice *n)
{
    rl_mutex_lock(&r->mutex);
    rl_waiter *w = find_waiter_locked(r, n);
    if (w && w->rest == RL_ASLEEP) {
        hand_locked(r, w, n);
    } else if (w) {
        w->stands = !w->room->line;
        rl_waiter_wake_locked(r, w, RL_WAKE_LOOK);
    }
    if (w && !w->room->line)
        rl_rooms_left_queue_locked(r, n->name, n->len, w);
    rl_mutex_unlock(&r->mutex);
}
