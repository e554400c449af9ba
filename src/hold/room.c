/*
 * The waiting rooms. Called by the acquiring owners; by the doorbells, on the
 * loop, which wake them; by who frees the client, and by who reads that a leave
 * was answered.
 *
 * What stays true, under the rooms' mutex: a room is in the map exactly while
 * it has waiters, and its first waiter is its front; who becomes the front is
 * woken to look, so no wake-up ends with a waiter who goes away.
 */
#include "hold/room.h"

#include <rlock/lock.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

typedef struct key {
    const void *name;
    size_t len;
    uint64_t scope;
} key;

static bool same(const rl_map_node *n, const void *wanted)
{
    const rl_room *room = RL_CONTAINER(n, rl_room, node);
    const key *k = wanted;
    return room->scope == k->scope && room->name_len == k->len &&
           memcmp(room->name, k->name, k->len) == 0;
}

bool rl_rooms_init(rl_rooms *r)
{
    rl_mutex_init(&r->mutex, RL_RANK_ROOMS);
    rl_list_init(&r->waiters);
    bool ok = rl_map_init(&r->map, same);
    return rl_map_init(&r->listeners, NULL) && ok;
}

void rl_rooms_fini(rl_rooms *r, bool forked)
{
    rl_map_fini(&r->listeners);
    rl_map_fini(&r->map);
    if (!forked)
        rl_mutex_fini(&r->mutex);
}

static rl_room *find_locked(rl_rooms *r, const void *name, size_t len,
                            uint64_t scope) RL_REQUIRES(&r->mutex)
{
    key k = {name, len, scope};
    rl_map_node *n = rl_map_find(&r->map, rl_hash(name, len, 0), &k);
    return n ? RL_CONTAINER(n, rl_room, node) : NULL;
}

rl_room *rl_room_in_line_locked(rl_rooms *r, const void *name, size_t len,
                                uint64_t room)
{
    return rl_room_lines_up(room) ? find_locked(r, name, len, room) : NULL;
}

static rl_room *add_locked(rl_rooms *r, const rl_target *what)
    RL_REQUIRES(&r->mutex)
{
    rl_room *room = calloc(1, sizeof *room + what->len);
    if (!room)
        return NULL;
    rl_list_init(&room->waiters);
    room->scope = rl_target_room(what);
    room->line = rl_room_lines_up(room->scope);
    r->lines += room->line;
    atomic_fetch_add(&r->occupied, 1);
    room->name_len = what->len;
    memcpy(room->name, what->name, what->len);
    rl_map_add(&r->map, &room->node, rl_hash(what->name, what->len, 0));
    return room;
}

static void remove_locked(rl_rooms *r, rl_room *room) RL_REQUIRES(&r->mutex)
{
    rl_map_remove(&r->map, &room->node);
    r->lines -= room->line;
    atomic_fetch_sub(&r->occupied, 1);
    free(room);
}

static rl_waiter *front_of(const rl_room *room)
{
    rl_link *first = rl_list_first(&room->waiters);
    return first ? RL_CONTAINER(first, rl_waiter, link) : NULL;
}

void rl_waiter_wake_locked(rl_rooms *r, rl_waiter *w, rl_wake why)
{
    (void)r;
    w->ends = w->ends || why >= RL_WAKE_CANCEL;
    if (w->rest == RL_OFFERED || w->rest == RL_HANDED) {
        w->withheld = why > w->withheld ? why : w->withheld;
        return;
    }
    w->rest = RL_AWAKE;
    w->waker->wake(w->waker, why, 0);
}

rl_waiter *rl_room_front_locked(rl_rooms *r, const void *name, size_t len,
                                uint64_t scope)
{
    const rl_room *room = find_locked(r, name, len, scope);
    return room ? front_of(room) : NULL;
}

/* Mostly nobody has begun later. */
static void enter_locked(rl_rooms *r, rl_waiter *w) RL_REQUIRES(&r->mutex)
{
    rl_link *at = &r->waiters.head;
    rl_list_add_last(&w->room->waiters, &w->link);
    w->room->crowd++;
    if (w->room->scope == RL_LATCH_SCOPE)
        return;
    while (at->prev != &r->waiters.head &&
           RL_CONTAINER(at->prev, rl_waiter, aged)->began_us > w->began_us)
        at = at->prev;
    rl_list_add_before(at, &w->aged);
}

bool rl_room_enter(rl_rooms *r, rl_waiter *w, const rl_target *what,
                   const void *handle, rl_waker *waker, int64_t began_us)
{
    *w = (rl_waiter){.handle = handle, .waker = waker, .began_us = began_us};
    rl_mutex_lock(&r->mutex);
    w->heard = atomic_load(&r->hears);
    w->room = find_locked(r, what->name, what->len, rl_target_room(what));
    if (!w->room)
        w->room = add_locked(r, what);
    if (w->room)
        enter_locked(r, w);
    w->stands = w->room && !w->room->line;
    if (w->room && r->closed)
        rl_waiter_wake_locked(r, w, RL_WAKE_CLOSE);
    rl_mutex_unlock(&r->mutex);
    return w->room != NULL;
}

void rl_room_unqueue_locked(rl_rooms *r, rl_room *room)
{
    room->queued = false;
    room->ticket = 0;
    for (uint64_t i = 0; r->lines > 0 && i < RL_LAYOUTS; i++) {
        rl_room *line =
            rl_room_in_line_locked(r, room->name, room->name_len, i);
        if (line)
            line->queued = false;
    }
}

bool rl_room_leave(rl_rooms *r, rl_waiter *w, bool acquired)
{
    rl_room *room = w->room;
    bool must_leave = false;
    rl_mutex_lock(&r->mutex);
    bool was_front = front_of(room) == w;
    rl_list_remove(&w->link);
    room->crowd--;
    rl_list_remove(&w->aged);
    if (acquired)
        rl_room_unqueue_locked(r, room);
    rl_waiter *next = front_of(room);
    if (next) {
        if (was_front && !w->quiet)
            rl_waiter_wake_locked(r, next, RL_WAKE_LOOK);
    } else {
        must_leave = room->queued;
        remove_locked(r, room);
    }
    rl_mutex_unlock(&r->mutex);
    w->room = NULL;
    return must_leave;
}

void rl_room_rest(rl_rooms *r, rl_waiter *w, struct rl_hold *draft,
                  bool renewed, int64_t until_us)
{
    rl_mutex_lock(&r->mutex);
    w->rest = RL_ASLEEP;
    w->draft = draft;
    w->renewed = renewed;
    w->passed = NULL;
    w->claim_ms = 0;
    w->until_us = until_us;
    if (w->withheld >= RL_WAKE_CANCEL) /* came while it was handed in vain */
        rl_waiter_wake_locked(r, w, w->withheld);
    rl_mutex_unlock(&r->mutex);
}

rl_rest rl_room_rise(rl_rooms *r, rl_waiter *w, rl_wake why)
{
    rl_mutex_lock(&r->mutex);
    rl_rest rest = w->rest == RL_ASLEEP ? RL_AWAKE : w->rest;
    if (rest == RL_OFFERED)
        w->withheld = why > w->withheld ? why : w->withheld;
    else
        w->rest = RL_AWAKE;
    rl_mutex_unlock(&r->mutex);
    return rest;
}

bool rl_room_is_front(rl_rooms *r, const rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    bool front = front_of(w->room) == w;
    rl_mutex_unlock(&r->mutex);
    return front;
}

bool rl_room_has_to_ask(rl_rooms *r, const rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    bool has_to = front_of(w->room) == w || !w->stands;
    rl_mutex_unlock(&r->mutex);
    return has_to;
}

size_t rl_room_crowd(rl_rooms *r, const rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    size_t crowd = w->room->line ? 0 : w->room->crowd;
    rl_mutex_unlock(&r->mutex);
    return crowd;
}

int64_t rl_room_ticket(rl_rooms *r, const rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    w->room->queued = true;
    int64_t ticket = w->room->ticket;
    rl_mutex_unlock(&r->mutex);
    return ticket;
}

void rl_room_is_busy(rl_rooms *r, const rl_waiter *w, int64_t ticket,
                     int64_t asked_us)
{
    rl_mutex_lock(&r->mutex);
    w->room->busy_us = asked_us;
    w->room->outage_us = 0;
    if (ticket)
        w->room->ticket = ticket;
    rl_mutex_unlock(&r->mutex);
}

int64_t rl_room_failed(rl_rooms *r, const rl_waiter *w, int64_t now_us)
{
    rl_mutex_lock(&r->mutex);
    if (w->room->outage_us == 0)
        w->room->outage_us = now_us;
    int64_t since_us = w->room->outage_us;
    rl_mutex_unlock(&r->mutex);
    return since_us;
}

void rl_room_answered(rl_rooms *r, const rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    w->room->outage_us = 0;
    rl_mutex_unlock(&r->mutex);
}

bool rl_room_was_busy(rl_rooms *r, const rl_waiter *w, int64_t since_us)
{
    rl_mutex_lock(&r->mutex);
    bool busy = w->room->busy_us >= since_us;
    rl_mutex_unlock(&r->mutex);
    return busy;
}

void rl_room_is_open(rl_rooms *r, const rl_waiter *w, int64_t asked_us)
{
    rl_room *room = w->room;
    rl_mutex_lock(&r->mutex);
    room->open_us = asked_us;
    room->outage_us = 0;
    for (rl_link *k = rl_list_first(&room->waiters); k;
         k = rl_list_next(&room->waiters, k)) {
        rl_waiter *other = RL_CONTAINER(k, rl_waiter, link);
        if (other != w)
            rl_waiter_wake_locked(r, other, RL_WAKE_LOOK);
    }
    rl_mutex_unlock(&r->mutex);
}

bool rl_room_was_open(rl_rooms *r, const rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    bool open = w->room->open_us && w->room->open_us >= w->began_us;
    rl_mutex_unlock(&r->mutex);
    return open;
}

void rl_rooms_hold_back(rl_rooms *r, const void *name, size_t len,
                        int64_t until_us)
{
    uint64_t hash = rl_hash(name, len, 0);
    rl_mutex_lock(&r->mutex);
    r->courtesy[hash % RL_COURTESIES] = (rl_courtesy){hash, until_us};
    if (until_us > atomic_load(&r->courteous_us))
        atomic_store(&r->courteous_us, until_us);
    rl_mutex_unlock(&r->mutex);
}

static int64_t held_back_until_locked(rl_rooms *r, uint64_t hash)
    RL_REQUIRES(&r->mutex)
{
    rl_courtesy c = r->courtesy[hash % RL_COURTESIES];
    return c.hash == hash ? c.until_us : 0;
}

int64_t rl_rooms_longest(rl_rooms *r)
{
    rl_mutex_lock(&r->mutex);
    const rl_link *first = rl_list_first(&r->waiters);
    int64_t us =
        first ? RL_CONTAINER(first, rl_waiter, aged)->began_us : RL_NEVER;
    rl_mutex_unlock(&r->mutex);
    return us;
}

bool rl_rooms_have(rl_rooms *r, const rl_target *what)
{
    rl_mutex_lock(&r->mutex);
    bool have =
        find_locked(r, what->name, what->len, rl_target_room(what)) != NULL;
    rl_mutex_unlock(&r->mutex);
    return have;
}

bool rl_rooms_is_owed(rl_rooms *r, const rl_target *what, int64_t now_us)
{
    if (rl_rooms_are_empty(r) && atomic_load(&r->courteous_us) <= now_us)
        return false;
    uint64_t hash = rl_hash(what->name, what->len, 0);
    rl_mutex_lock(&r->mutex);
    bool owed = r->closed ||
                find_locked(r, what->name, what->len, rl_target_room(what)) ||
                held_back_until_locked(r, hash) > now_us;
    rl_mutex_unlock(&r->mutex);
    return owed;
}

int64_t rl_room_held_back_until(rl_rooms *r, const rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    int64_t until_us =
        w->room->line ? 0 : held_back_until_locked(r, w->room->node.hash);
    rl_mutex_unlock(&r->mutex);
    return until_us;
}

static void wake_to_look(const rl_listener *l)
{
    l->waker->wake(l->waker, RL_WAKE_LOOK, l->index);
}

void rl_rooms_attend(rl_rooms *r, rl_listener *l)
{
    rl_mutex_lock(&r->mutex);
    rl_map_add(&r->listeners, &l->node,
               rl_hash(l->what->name, l->what->len, 0));
    if (r->closed)
        wake_to_look(l);
    rl_mutex_unlock(&r->mutex);
    l->attends = true;
}

void rl_rooms_listen(rl_rooms *r, rl_listener *l)
{
    rl_mutex_lock(&r->mutex);
    l->listens = true;
    rl_mutex_unlock(&r->mutex);
}

void rl_rooms_unlisten(rl_rooms *r, rl_listener *l)
{
    if (!l->attends)
        return;
    rl_mutex_lock(&r->mutex);
    rl_map_remove(&r->listeners, &l->node);
    rl_mutex_unlock(&r->mutex);
    l->attends = l->listens = false;
}

bool rl_rooms_is_closed(rl_rooms *r)
{
    rl_mutex_lock(&r->mutex);
    bool closed = r->closed;
    rl_mutex_unlock(&r->mutex);
    return closed;
}

/* --- waking --------------------------------------------------------------- */

typedef struct ring {
    const void *name;
    size_t len;
    rl_wake why;
    bool heard;
} ring;

static void wake_listener(rl_map_node *n, void *arg)
{
    const rl_listener *l = RL_CONTAINER(n, rl_listener, node);
    ring *it = arg;
    if (!l->listens)
        return;
    if (it->name && (l->what->len != it->len ||
                     memcmp(l->what->name, it->name, it->len) != 0))
        return;
    it->heard = true;
    l->waker->wake(l->waker, it->why, l->index);
}

/* The front; and when it is to look, all who stand in line. */
static void wake_room_locked(rl_rooms *r, rl_room *room, rl_wake why)
    RL_REQUIRES(&r->mutex)
{
    if (room->line && why == RL_WAKE_LOOK)
        rl_room_stand_anew_locked(r, room, NULL);
    else
        rl_waiter_wake_locked(r, front_of(room), why);
}

bool rl_rooms_wake(rl_rooms *r, const void *name, size_t len, rl_wake why)
{
    ring it = {name, len, why, false};
    rl_mutex_lock(&r->mutex);
    for (uint64_t scope = 0; scope < RL_SINGLE_SCOPES; scope++) {
        rl_room *room = find_locked(r, name, len, scope);
        if (room)
            wake_room_locked(r, room, why);
        it.heard = it.heard || room;
    }
    rl_map_each_of(&r->listeners, rl_hash(name, len, 0), wake_listener, &it);
    rl_mutex_unlock(&r->mutex);
    return it.heard;
}

void rl_rooms_left_queue_locked(rl_rooms *r, const void *name, size_t len,
                                const rl_waiter *granted)
{
    ring it = {name, len, RL_WAKE_LOOK, false};
    for (uint64_t scope = 0; scope < RL_SINGLE_SCOPES; scope++) {
        rl_waiter *w = rl_room_front_locked(r, name, len, scope);
        if (w && w != granted)
            rl_waiter_wake_locked(r, w, RL_WAKE_LOOK);
    }
    rl_map_each_of(&r->listeners, rl_hash(name, len, 0), wake_listener, &it);
}

static void look_again(rl_map_node *n, void *rooms) RL_UNCHECKED
{
    wake_room_locked(rooms, RL_CONTAINER(n, rl_room, node), RL_WAKE_LOOK);
}

static void look_locked(rl_rooms *r) RL_REQUIRES(&r->mutex)
{
    ring it = {.why = RL_WAKE_LOOK};
    rl_map_each(&r->map, look_again, r);
    rl_map_each(&r->listeners, wake_listener, &it);
}

void rl_rooms_look_all(rl_rooms *r)
{
    rl_mutex_lock(&r->mutex);
    look_locked(r);
    rl_mutex_unlock(&r->mutex);
}

static void look_front_locked(rl_rooms *r, const rl_room *room, bool rings)
    RL_REQUIRES(&r->mutex)
{
    if (room && !(rings && room->queued))
        rl_waiter_wake_locked(r, front_of(room), RL_WAKE_LOOK);
}

void rl_rooms_look(rl_rooms *r, const void *name, size_t len, uint64_t scope,
                   bool rings)
{
    if (scope >= RL_SINGLE_SCOPES || /* one node is not the lock */
        rl_rooms_are_empty(r))
        return;
    rl_mutex_lock(&r->mutex);
    if (!rl_room_lines_up(scope))
        look_front_locked(r, find_locked(r, name, len, scope), rings);
    for (uint64_t i = 0; r->lines > 0 && i < RL_LAYOUTS; i++)
        look_front_locked(r, rl_room_in_line_locked(r, name, len, i), rings);
    rl_mutex_unlock(&r->mutex);
}

/* --- the doorbell, and the end --------------------------------------------- */

void rl_rooms_hear(rl_rooms *r)
{
    rl_mutex_lock(&r->mutex);
    atomic_store(&r->hears, true);
    look_locked(r);
    rl_mutex_unlock(&r->mutex);
}

void rl_rooms_hear_no_more(rl_rooms *r)
{
    atomic_store(&r->hears, false);
}

void rl_rooms_cancel(rl_rooms *r, const rl_target *what, const void *handle)
{
    rl_mutex_lock(&r->mutex);
    const rl_room *room =
        find_locked(r, what->name, what->len, rl_target_room(what));
    for (rl_link *k = room ? rl_list_first(&room->waiters) : NULL; k;
         k = rl_list_next(&room->waiters, k)) {
        rl_waiter *w = RL_CONTAINER(k, rl_waiter, link);
        if (w->handle == handle)
            rl_waiter_wake_locked(r, w, RL_WAKE_CANCEL);
    }
    rl_mutex_unlock(&r->mutex);
}

typedef struct waking {
    rl_rooms *rooms;
    rl_wake why;
} waking;

static void wake_room(rl_map_node *n, void *arg) RL_UNCHECKED
{
    const rl_room *room = RL_CONTAINER(n, rl_room, node);
    const waking *it = arg;
    for (rl_link *k = rl_list_first(&room->waiters); k;
         k = rl_list_next(&room->waiters, k))
        rl_waiter_wake_locked(it->rooms, RL_CONTAINER(k, rl_waiter, link),
                              it->why);
}

void rl_rooms_cancel_all(rl_rooms *r)
{
    waking it = {r, RL_WAKE_CANCEL};
    rl_mutex_lock(&r->mutex);
    rl_map_each(&r->map, wake_room, &it);
    rl_mutex_unlock(&r->mutex);
}

static void wake_attending(rl_map_node *n, void *arg)
{
    (void)arg;
    wake_to_look(RL_CONTAINER(n, rl_listener, node));
}

void rl_rooms_close(rl_rooms *r)
{
    waking it = {r, RL_WAKE_CLOSE};
    rl_mutex_lock(&r->mutex);
    r->closed = true;
    atomic_fetch_add(&r->occupied, 1);
    rl_map_each(&r->map, wake_room, &it);
    rl_map_each(&r->listeners, wake_attending, NULL);
    rl_mutex_unlock(&r->mutex);
}
