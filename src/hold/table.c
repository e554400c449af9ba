/*
 * The table of holds: who has what, what is due, what is to be reported.
 * Called by every thread of the client; the table's mutex guards it, and no
 * call here waits or does I/O.
 *
 * What stays true: a hold in the table has room in both heaps and in its
 * owner's record, all of it reserved before the server was asked, so that a
 * grant cannot fail for lack of memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "hold/due.h"
#include "hold/hold.h"
#include "hold/side.h"
#include "wire/bytes.h"

/* One owner's hold of a name; or, of owner 0, that of whoever holds it now. */
typedef struct key {
    const rl_target *what;
    uint64_t owner;
    int64_t now_us;
} key;

/* Is the lock its owner's? Of a Red lock, one node may not have it. */
static bool has_lock(const rl_hold *h, int64_t now_us)
{
    if (h->group && h->group->quorum)
        return rl_group_until(h->group, RL_ALL_NODES) > now_us;
    return h->state == RL_HELD && now_us < h->expiry.due_us;
}

static uint64_t scope_of(const rl_hold *h)
{
    return h->scope < RL_SINGLE_SCOPES ? h->scope : h->extra->scope;
}

static bool same_hold(const rl_map_node *n, const void *wanted)
{
    const rl_hold *h = RL_CONTAINER(n, rl_hold, node);
    const key *k = wanted;
    return scope_of(h) == k->what->scope && h->name_len == k->what->len &&
           memcmp(h->name, k->what->name, h->name_len) == 0 &&
           (k->owner ? rl_hold_owner(h) == k->owner : has_lock(h, k->now_us));
}

static bool same_owner(const rl_map_node *n, const void *owner)
{
    return RL_CONTAINER(n, rl_owner_record, node)->owner ==
           *(const uint64_t *)owner;
}

/* Of the owner only where many hold one name at a time: of a lock few have holds,
   most of them lost. */
static uint64_t hash_of(const char *name, size_t len, uint64_t scope,
                        uint64_t owner)
{
    return rl_hash(name, len, scope == RL_LAYOUT_PERMIT ? owner : scope);
}

bool rl_holds_init(rl_holds *t, rl_stats *stats, struct rl_rooms *rooms,
                   const char *process, int64_t renewal_ms, int64_t max_hold_ms,
                   bool wants_reports)
{
    rl_mutex_init(&t->mutex, RL_RANK_HOLDS);
    rl_list_init(&t->held);
    rl_list_init(&t->too_old);
    t->sleeps_us = t->first.sleeps_us = RL_NEVER;
    t->queues = &t->first;
    t->stats = stats;
    t->rooms = rooms;
    t->process = process;
    t->renewal_ms = renewal_ms;
    t->max_hold_ms = max_hold_ms;
    t->wants_reports = wants_reports;
    bool ok = rl_map_init(&t->map, same_hold);
    return rl_map_init(&t->records, same_owner) && ok;
}

static void record_unref(rl_holds *t, rl_owner_record *x)
{
    if (--x->refs > 0)
        return;
    rl_map_remove(&t->records, &x->node);
    free(x);
}

static void give_up_room(rl_holds *t, rl_owner_record *room)
{
    rl_due_queues_unreserve(t);
    record_unref(t, room);
}

static void extra_free(rl_holds *t, rl_extra *x)
{
    if (x && x->starter)
        record_unref(t, x->starter);
    if (x)
        rl_alarms_leave(&x->alarms);
    free(x);
}

static void hold_free(rl_holds *t, rl_hold *h)
{
    extra_free(t, h->extra);
    give_up_room(t, h->record);
    free(rl_hold_take_spare(h));
    rl_group_unref(h->group);
    free(h);
}

static void drop(rl_map_node *n, void *arg)
{
    hold_free(arg, RL_CONTAINER(n, rl_hold, node));
}

static void drop_queue(rl_holds *t) RL_UNCHECKED
{
    while (t->first_report)
        rl_hold_unref_locked(t, rl_holds_unqueue_locked(t));
}

static void drop_undoing(rl_holds *t, rl_due_queue *l)
{
    rl_heap_node *n;
    while ((n = rl_heap_first(&l->work)) != NULL) {
        rl_hold *h = RL_CONTAINER(n, rl_hold, work);
        rl_heap_remove(&l->work, n);
        if (h->state == RL_UNDOING)
            hold_free(t, h);
    }
}

/* Threads have ended: each hold is in the table or in a due queue. */
void rl_holds_fini(rl_holds *t, bool forked)
{
    if (t->map.buckets && t->records.buckets) {
        drop_queue(t);
        for (rl_due_queue *l = t->queues; l; l = l->next)
            drop_undoing(t, l);
        rl_map_each(&t->map, drop, t);
    }
    rl_map_fini(&t->map);
    rl_map_fini(&t->records);
    for (rl_due_queue *l = t->queues; l; l = l->next)
        rl_heap_fini(&l->work);
    rl_heap_fini(&t->expiry);
    if (!forked)
        rl_mutex_fini(&t->mutex);
}

void rl_owner_record_unref_locked(rl_holds *t, rl_owner_record *x)
{
    record_unref(t, x);
}

rl_owner_record *rl_holds_record_locked(rl_holds *t, uint64_t owner)
{
    rl_map_node *n = rl_map_find(&t->records, owner, &owner);
    return n ? RL_CONTAINER(n, rl_owner_record, node) : NULL;
}

/* process:tid: or process:tid/label: and how long that is. Without snprintf(), as
   each first hold of an owner needs it. */
static size_t write_name(char *out, const char *process, const rl_owner *owner)
{
    char *at = stpcpy(out, process);
    *at++ = ':';
    at = rl_write_digits(at, (uint64_t)owner->tid);
    if (owner->label) {
        *at++ = '/';
        at = stpcpy(at, owner->label);
    }
    *at++ = ':';
    return (size_t)(at - out);
}

static rl_owner_record *record_new_locked(rl_holds *t, const rl_owner *owner)
    RL_REQUIRES(&t->mutex)
{
    char name[RL_HOLDER_MAX];
    size_t len = write_name(name, t->process, owner);
    rl_owner_record *x = calloc(1, sizeof *x + len);
    if (!x)
        return NULL;
    x->owner = owner->serial;
    x->name_len = (uint16_t)len;
    memcpy(x->name, name, len);
    rl_list_init(&x->holds);
    rl_map_add(&t->records, &x->node, x->owner); /* a number, which spreads */
    return x;
}

static rl_owner_record *make_room_locked(rl_holds *t, const rl_owner *owner)
    RL_REQUIRES(&t->mutex)
{
    if (!rl_due_queues_reserve(t))
        return NULL;
    rl_owner_record *x = rl_holds_record_locked(t, owner->serial);
    if (!x)
        x = record_new_locked(t, owner);
    if (x) {
        x->refs++;
        return x;
    }
    rl_due_queues_unreserve(t);
    return NULL;
}

const struct rl_line *rl_hold_line(rl_holds *t, const rl_hold *h)
{
    rl_mutex_lock(&t->mutex);
    const struct rl_line *line = h->asked_on;
    rl_mutex_unlock(&t->mutex);
    return line;
}

rl_owner_record *rl_holds_make_room(rl_holds *t, const rl_owner *owner)
{
    rl_mutex_lock(&t->mutex);
    rl_owner_record *room = make_room_locked(t, owner);
    rl_mutex_unlock(&t->mutex);
    return room;
}

void rl_holds_give_up_room(rl_holds *t, rl_owner_record *room)
{
    if (!room)
        return;
    rl_mutex_lock(&t->mutex);
    give_up_room(t, room);
    rl_mutex_unlock(&t->mutex);
}

/* An owner of this alone, whose first hold that is: nobody else knows it yet. */
static void note_permits(rl_owner_record *x, const rl_semaphore *s)
{
    if (!s || (x->weight == s->weight && x->idle_s == s->idle_s))
        return;
    x->weight = s->weight;
    x->idle_s = s->idle_s;
}

rl_hold *rl_hold_new(rl_holds *t, rl_owner_record *room, const rl_target *what,
                     const rl_uuid *id)
{
    /* The struct may end in padding, where the name begins. */
    size_t size = offsetof(rl_hold, name) + what->len + 1;
    rl_hold *h = calloc(1, size < sizeof *h ? sizeof *h : size);
    bool single = what->scope < RL_SINGLE_SCOPES;
    if (!h || !(single || rl_hold_make_extra(h))) {
        rl_mutex_lock(&t->mutex);
        give_up_room(t, room);
        rl_mutex_unlock(&t->mutex);
        free(h);
        return NULL;
    }
    h->scope = single ? what->scope : RL_SINGLE_SCOPES;
    if (!single)
        h->extra->scope = what->scope;
    memcpy(h->name, what->name, what->len);
    h->layout = what->layout;
    h->id = *id;
    h->name_len = (uint16_t)what->len;
    h->slot = what->slot;
    h->sharded = what->sharded;
    h->queue = &t->first;
    h->record = room;
    note_permits(room, what->semaphore);
    h->refs = 1;
    return h;
}

void rl_hold_unref_locked(rl_holds *t, rl_hold *h)
{
    if (--h->refs == 0)
        hold_free(t, h);
}

void rl_holds_nudge_locked(rl_holds *t, int64_t due_us)
{
    if (due_us >= t->sleeps_us)
        return;
    t->sleeps_us = due_us;
    if (t->wake)
        t->wake(t);
}

static void queue_locked(rl_holds *t, rl_hold *h) RL_REQUIRES(&t->mutex)
{
    if (t->first_report)
        t->last_report->next_report = h;
    else
        t->first_report = h;
    t->last_report = h;
    h->queued = true;
    h->refs++;
}

void rl_hold_report_locked(rl_holds *t, rl_hold *h, rlock_event_type type)
{
    if (!t->wants_reports && !(h->group && rl_group_has_on_event(h->group)))
        return;
    if (!h->queued)
        queue_locked(t, h);
    h->reports |= 1u << type;
    rl_holds_nudge_locked(t, 0);
}

rl_hold *rl_holds_unqueue_locked(rl_holds *t)
{
    rl_hold *h = t->first_report;
    t->first_report = h->next_report;
    h->next_report = NULL;
    h->queued = false;
    return h;
}

/* What has been released meanwhile has nothing to report. */
rl_hold *rl_holds_first_report_locked(rl_holds *t)
{
    while (t->first_report && !t->first_report->reports)
        rl_hold_unref_locked(t, rl_holds_unqueue_locked(t));
    return t->first_report;
}

void rl_holds_reconnected(rl_holds *t)
{
    rl_mutex_lock(&t->mutex);
    t->reconnected = t->wants_reports;
    rl_holds_nudge_locked(t, 0);
    rl_mutex_unlock(&t->mutex);
}

bool rl_holds_expire_locked(rl_holds *t, size_t most, int64_t now_us)
{
    rl_heap_node *n;
    while ((n = rl_heap_first(&t->expiry)) != NULL && n->due_us <= now_us) {
        if (most-- == 0)
            return true;
        rl_hold_is_valid_locked(t, RL_CONTAINER(n, rl_hold, expiry), now_us);
    }
    return false;
}

static rl_hold *find_locked(rl_holds *t, const key *k) RL_REQUIRES(&t->mutex)
{
    const rl_target *what = k->what;
    rl_map_node *n = rl_map_find(
        &t->map, hash_of(what->name, what->len, what->scope, k->owner), k);
    return n ? RL_CONTAINER(n, rl_hold, node) : NULL;
}

rl_hold *rl_holds_find_locked(rl_holds *t, const rl_target *what,
                              uint64_t owner)
{
    key k = {.what = what, .owner = owner};
    return find_locked(t, &k);
}

typedef struct holders {
    key key;
    void (*fn)(rl_owner_record *x, void *arg);
    void *arg;
} holders;

static void visit_holder(rl_map_node *n, void *arg)
{
    const holders *it = arg;
    if (same_hold(n, &it->key))
        it->fn(RL_CONTAINER(n, rl_hold, node)->record, it->arg);
}

static void each_of_scope_locked(rl_holds *t, const rl_target *what,
                                 holders *it) RL_REQUIRES(&t->mutex)
{
    it->key.what = what;
    rl_map_each_of(&t->map, hash_of(what->name, what->len, what->scope, 0),
                   visit_holder, it);
}

void rl_holds_each_holder_locked(rl_holds *t, const rl_target *what,
                                 int64_t now_us,
                                 void (*fn)(rl_owner_record *x, void *arg),
                                 void *arg)
{
    holders it = {.key.now_us = now_us, .fn = fn, .arg = arg};
    rl_target other = *what;
    each_of_scope_locked(t, what, &it);
    if (!rl_scope_is_side(what->scope))
        return;
    other.scope = rl_other_side(what->scope);
    each_of_scope_locked(t, &other, &it);
}

rl_hold *rl_holds_pick(rl_holds *t, const rl_target *what,
                       const rl_owner *owner, int64_t now_us, bool *valid,
                       rl_owner_record **room)
{
    rl_mutex_lock(&t->mutex);
    rl_hold *h = rl_holds_find_locked(t, what, owner->serial);
    *valid = h && rl_hold_is_valid_locked(t, h, now_us);
    if (h)
        h->refs++;
    else if (room)
        *room = make_room_locked(t, owner);
    rl_mutex_unlock(&t->mutex);
    return h;
}

void rl_holds_put(rl_holds *t, rl_hold *h)
{
    if (!h)
        return;
    rl_mutex_lock(&t->mutex);
    rl_hold_unref_locked(t, h);
    rl_mutex_unlock(&t->mutex);
}

void rl_hold_list_locked(rl_holds *t, rl_hold *h)
{
    if (rl_link_is_in(&h->owned))
        return;
    rl_list_add_last(&h->record->holds, &h->owned);
    rl_map_add(&t->map, &h->node,
               hash_of(h->name, h->name_len, scope_of(h), h->record->owner));
}

void rl_hold_unlist_locked(rl_holds *t, rl_hold *h)
{
    if (!rl_link_is_in(&h->owned))
        return;
    rl_list_remove(&h->owned);
    rl_map_remove(&t->map, &h->node);
}

void rl_hold_give_locked(rl_holds *t, rl_hold *h, rl_owner_record *to)
{
    rl_hold_unlist_locked(t, h);
    to->refs++;
    record_unref(t, h->record);
    h->record = to;
}

/* Whoever polls for its owner, who is gone, is woken before they are closed. */
static void wake_pollers(rl_hold *h)
{
    if (h->extra)
        rl_alarms_raise(&h->extra->alarms);
    if (h->group)
        rl_group_abandon_alarms(h->group);
}

/* May the server have it? Not what it has said to be gone. */
static bool may_be_there(const rl_hold *h) RL_UNCHECKED
{
    bool vacant = h->state == RL_VACANT && !h->in_flight;
    return h->unknown || !(vacant || rl_loss_is_seen(h->loss));
}

/* Of a Multi lock that nobody has yet nothing stays taken. */
static bool is_to_release(const rl_holds *t, const rl_hold *h)
    RL_REQUIRES(&t->mutex)
{
    return t->releasing || (h->group && rl_group_is_forming(h->group));
}

/* Its owner may have ended before its client did. */
static void release_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    bool undo = may_be_there(h);
    rl_hold_end_locked(t, h, now_us);
    rl_hold_call_next_locked(t, h, true);
    rl_hold_drop_locked(t, h, undo, now_us);
}

/* Its lease runs out by itself; then an acquire that is late is buried. */
static void leave_behind_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    bool held = rl_hold_is_valid_locked(t, h, now_us);
    h->unknown = h->unknown || h->state == RL_DRAFT ||
                 (h->state == RL_VACANT && h->in_flight);
    rl_hold_end_locked(t, h, now_us);
    rl_hold_call_next_locked(t, h, false);
    /* The holds of a group are one lock, and are reported as one. */
    if (held &&
        (!h->group || rl_group_move(h->group, RL_GROUP_OWNED, RL_GROUP_OVER)))
        rl_hold_report_locked(t, h, RLOCK_EVENT_ABANDONED);
    rl_hold_drop_locked(t, h, h->unknown, h->gone_us);
}

static void abandon_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    wake_pollers(h);
    if (is_to_release(t, h))
        release_locked(t, h, now_us);
    else
        leave_behind_locked(t, h, now_us);
}

void rl_holds_abandon(rl_holds *t, uint64_t owner, int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    rl_owner_record *x = rl_holds_record_locked(t, owner);
    if (x) {
        rl_link *k;
        x->refs++; /* its last hold takes it along */
        while ((k = rl_list_first(&x->holds)) != NULL)
            abandon_locked(t, RL_CONTAINER(k, rl_hold, owned), now_us);
        record_unref(t, x);
    }
    rl_mutex_unlock(&t->mutex);
}

typedef struct closing {
    rl_holds *holds;
    const rl_home *home;
    int64_t now_us;
} closing;

/*
 * The owner's thread may be about to poll, and knows nothing yet: a descriptor
 * stays open, and readable, until the handles of the client are freed.
 */
static void keep_alarms(rl_holds *t, rl_hold *h)
{
    if (h->extra)
        rl_alarms_hand_over(&h->extra->alarms, &t->kept);
    if (h->group)
        rl_group_keep_alarms(h->group, &t->kept);
}

/* Of a lock that is held elsewhere, too. */
static void leave_group(rl_hold *h, const closing *c) RL_UNCHECKED
{
    if (h->group->home == c->home) {
        /* A Red lock ends with its home; of a Multi lock, others may tell. */
        if (h->group->quorum) {
            rl_group_move(h->group, RL_GROUP_OWNED, RL_GROUP_OVER);
            rl_group_raise(h->group);
        }
        return;
    }
    if (h->state == RL_HELD)
        rl_hold_lose_locked(c->holds, h, RL_LOSS_CLOSED, c->now_us);
}

static void close_hold(rl_map_node *n, void *arg) RL_UNCHECKED
{
    const closing *c = arg;
    rl_hold *h = RL_CONTAINER(n, rl_hold, node);
    keep_alarms(c->holds, h);
    if (h->group)
        leave_group(h, c);
    if (is_to_release(c->holds, h))
        release_locked(c->holds, h, c->now_us);
}

size_t rl_holds_left(rl_holds *t, rl_fault *why)
{
    rl_mutex_lock(&t->mutex);
    size_t n = t->undoing + t->left;
    *why = t->failure;
    rl_mutex_unlock(&t->mutex);
    return n;
}

void rl_holds_release(rl_holds *t)
{
    rl_mutex_lock(&t->mutex);
    t->releasing = true;
    rl_mutex_unlock(&t->mutex);
}

void rl_holds_close(rl_holds *t, const rl_home *home, int64_t now_us)
{
    closing c = {t, home, now_us};
    rl_mutex_lock(&t->mutex);
    t->closed = true;
    rl_map_each(&t->map, close_hold, &c);
    rl_mutex_unlock(&t->mutex);
}

void rl_holds_stop(rl_holds *t)
{
    rl_mutex_lock(&t->mutex);
    t->stopping = true;
    for (rl_due_queue *l = t->queues; l; l = l->next)
        rl_due_queue_nudge_locked(t, l, 0);
    rl_holds_nudge_locked(t, 0);
    rl_mutex_unlock(&t->mutex);
}
