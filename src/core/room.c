#include "core/room.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

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
    rl_mutex_init(&r->mutex);
    return rl_map_init(&r->map, same);
}

void rl_rooms_fini(rl_rooms *r, bool forked)
{
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

static rl_room *add_locked(rl_rooms *r, const rl_target *what)
    RL_REQUIRES(&r->mutex)
{
    rl_room *room = calloc(1, sizeof *room + what->len);
    if (!room)
        return NULL;
    TAILQ_INIT(&room->waiters);
    room->scope = what->scope;
    room->name_len = what->len;
    memcpy(room->name, what->name, what->len);
    rl_map_add(&r->map, &room->node, rl_hash(what->name, what->len, 0));
    return room;
}

/* Reasons are taken away only by the waiter, and a stronger one stays. */
static void wake_locked(rl_rooms *r, rl_waiter *w, rl_wake why)
    RL_REQUIRES(&r->mutex)
{
    (void)r;
    if (w->wake < why)
        w->wake = why;
    rl_cond_wake(&w->cond);
}

bool rl_waiter_enter(rl_rooms *r, rl_waiter *w, const rl_target *what,
                     const void *handle)
{
    *w = (rl_waiter){.handle = handle};
    rl_cond_init(&w->cond);
    rl_mutex_lock(&r->mutex);
    w->room = find_locked(r, what->name, what->len, what->scope);
    if (!w->room)
        w->room = add_locked(r, what);
    if (w->room)
        TAILQ_INSERT_TAIL(&w->room->waiters, w, link);
    if (r->closed)
        w->wake = RL_WAKE_CLOSE;
    rl_mutex_unlock(&r->mutex);
    if (!w->room)
        rl_cond_fini(&w->cond);
    return w->room != NULL;
}

bool rl_waiter_leave(rl_rooms *r, rl_waiter *w, bool acquired)
{
    rl_room *room = w->room;
    bool must_leave = false;
    rl_mutex_lock(&r->mutex);
    bool was_front = TAILQ_FIRST(&room->waiters) == w;
    TAILQ_REMOVE(&room->waiters, w, link);
    if (acquired) {
        room->queued = false;
        room->ticket = 0;
    }
    rl_waiter *next = TAILQ_FIRST(&room->waiters);
    if (next) {
        if (was_front)
            wake_locked(r, next, RL_WAKE_LOOK);
    } else {
        must_leave = room->queued;
        rl_map_remove(&r->map, &room->node);
        free(room);
    }
    rl_mutex_unlock(&r->mutex);
    rl_cond_fini(&w->cond);
    return must_leave;
}

bool rl_waiter_is_front(rl_rooms *r, const rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    bool front = TAILQ_FIRST(&w->room->waiters) == w;
    rl_mutex_unlock(&r->mutex);
    return front;
}

rl_wake rl_waiter_sleep(rl_rooms *r, rl_waiter *w, int64_t deadline_us)
{
    rl_mutex_lock(&r->mutex);
    while (w->wake == RL_WAKE_NONE && rl_now_us() < deadline_us)
        rl_cond_wait_until(&w->cond, &r->mutex, deadline_us);
    rl_wake why = w->wake;
    if (why < RL_WAKE_CANCEL)
        w->wake = RL_WAKE_NONE;
    rl_mutex_unlock(&r->mutex);
    return why;
}

int64_t rl_waiter_ticket(rl_rooms *r, rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    w->room->queued = true;
    int64_t ticket = w->room->ticket;
    rl_mutex_unlock(&r->mutex);
    return ticket;
}

void rl_waiter_set_ticket(rl_rooms *r, rl_waiter *w, int64_t ticket)
{
    rl_mutex_lock(&r->mutex);
    w->room->ticket = ticket;
    rl_mutex_unlock(&r->mutex);
}

int64_t rl_waiter_failed(rl_rooms *r, rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    if (w->room->outage_us == 0)
        w->room->outage_us = rl_now_us();
    int64_t since_us = w->room->outage_us;
    rl_mutex_unlock(&r->mutex);
    return since_us;
}

void rl_waiter_answered(rl_rooms *r, rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    w->room->outage_us = 0;
    rl_mutex_unlock(&r->mutex);
}

void rl_rooms_yield(rl_rooms *r, const void *name, size_t len, int64_t until_us)
{
    uint64_t hash = rl_hash(name, len, 0);
    rl_mutex_lock(&r->mutex);
    r->manners[hash % RL_MANNERS] = (rl_manners){hash, until_us};
    rl_mutex_unlock(&r->mutex);
}

static int64_t yields_until_locked(rl_rooms *r, uint64_t hash)
    RL_REQUIRES(&r->mutex)
{
    rl_manners m = r->manners[hash % RL_MANNERS];
    return m.hash == hash ? m.until_us : 0;
}

bool rl_rooms_is_owed(rl_rooms *r, const rl_target *what)
{
    uint64_t hash = rl_hash(what->name, what->len, 0);
    rl_mutex_lock(&r->mutex);
    bool owed = find_locked(r, what->name, what->len, what->scope) ||
                yields_until_locked(r, hash) > rl_now_us();
    rl_mutex_unlock(&r->mutex);
    return owed;
}

int64_t rl_waiter_yields_until(rl_rooms *r, const rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    int64_t until_us = yields_until_locked(r, w->room->node.hash);
    rl_mutex_unlock(&r->mutex);
    return until_us;
}

typedef struct listing {
    void (*fn)(const char *name, size_t len, void *arg);
    void *arg;
} listing;

static void listen_for(rl_map_node *n, void *arg)
{
    rl_room *room = RL_CONTAINER(n, rl_room, node);
    const listing *l = arg;
    room->listened = true;
    l->fn(room->name, room->name_len, l->arg);
}

void rl_rooms_listen(rl_rooms *r,
                     void (*fn)(const char *name, size_t len, void *arg),
                     void *arg)
{
    listing l = {fn, arg};
    rl_mutex_lock(&r->mutex);
    rl_map_each(&r->map, listen_for, &l);
    rl_mutex_unlock(&r->mutex);
}

bool rl_waiter_is_listened_for(rl_rooms *r, const rl_waiter *w)
{
    rl_mutex_lock(&r->mutex);
    bool listened = w->room->listened;
    rl_mutex_unlock(&r->mutex);
    return listened;
}

bool rl_rooms_wake(rl_rooms *r, const void *name, size_t len, rl_wake why)
{
    bool wanted = false;
    rl_mutex_lock(&r->mutex);
    for (uint64_t scope = 0; scope < RL_SINGLE_SCOPES; scope++) {
        rl_room *room = find_locked(r, name, len, scope);
        if (room)
            wake_locked(r, TAILQ_FIRST(&room->waiters), why);
        wanted = wanted || room;
    }
    rl_mutex_unlock(&r->mutex);
    return wanted;
}

static void look_again(rl_map_node *n, void *arg) RL_UNCHECKED
{
    rl_room *room = RL_CONTAINER(n, rl_room, node);
    wake_locked(arg, TAILQ_FIRST(&room->waiters), RL_WAKE_LOOK);
}

void rl_rooms_wake_all(rl_rooms *r)
{
    rl_mutex_lock(&r->mutex);
    rl_map_each(&r->map, look_again, r);
    rl_mutex_unlock(&r->mutex);
}

void rl_rooms_cancel(rl_rooms *r, const rl_target *what, const void *handle)
{
    rl_waiter *w;
    rl_mutex_lock(&r->mutex);
    rl_room *room = find_locked(r, what->name, what->len, what->scope);
    if (room) {
        TAILQ_FOREACH (w, &room->waiters, link) {
            if (w->handle == handle)
                wake_locked(r, w, RL_WAKE_CANCEL);
        }
    }
    rl_mutex_unlock(&r->mutex);
}

static void close_room(rl_map_node *n, void *arg) RL_UNCHECKED
{
    rl_waiter *w;
    TAILQ_FOREACH (w, &RL_CONTAINER(n, rl_room, node)->waiters, link) {
        wake_locked(arg, w, RL_WAKE_CLOSE);
    }
}

void rl_rooms_close(rl_rooms *r)
{
    rl_mutex_lock(&r->mutex);
    r->closed = true;
    rl_map_each(&r->map, close_room, r);
    rl_mutex_unlock(&r->mutex);
}
