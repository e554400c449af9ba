/*
 * The keeper's batches. collect() takes what is due off the queue's heap, under
 * the table's mutex; what a batch says, and what its answer means, its verb
 * knows (renew.c, undo.c, vote.c).
 *
 * What stays true: a hold is in one batch at most, because it is off the heap
 * from when it is taken until its answer is noted; nothing is sent for a hold
 * whose deadline has passed; and of memory there is enough to renew, from
 * before the first hold on.
 */
#include "run/batches.h"

#include <stdlib.h>

#include "hold/due.h"
#include "red/attempt_red.h"
#include "run/batch.h"

/* Calls in flight are limited by memory and by what waits to be sent. */
#define CHUNK        8
#define MOST_BATCHES (128 * CHUNK)
#define MOST_UNSENT  (64 * 1024)

/* In one turn: the others on the loop are not to wait for more. */
#define MOST_A_TURN (10 * RL_BATCH_MAX)

/*
 * What falls due this soon after a renewal goes with it: renewing early does
 * no harm, and holds that were taken one by one come to share round trips.
 */
#define SOON_OF_PERIOD 16

typedef struct rl_chunk {
    struct rl_chunk *next;
    rl_batch batch[CHUNK];
} rl_chunk;

/* --- memory --------------------------------------------------------------- */

static bool add_chunk(rl_keeper *k)
{
    rl_chunk *c = calloc(1, sizeof *c);
    if (!c)
        return false;
    c->next = k->chunks;
    k->chunks = c;
    k->batches += CHUNK;
    for (size_t i = 0; i < CHUNK; i++)
        rl_list_add_last(&k->idle_batches, &c->batch[i].idle);
    return true;
}

rl_batch *rl_batch_take(rl_node *node, const rl_batch_verb *verb)
{
    rl_keeper *k = &node->keeper;
    if (rl_list_is_empty(&k->idle_batches) &&
        (k->batches >= MOST_BATCHES || !add_chunk(k)))
        return NULL;
    rl_link *first = rl_list_first(&k->idle_batches);
    rl_list_remove(first);
    k->in_flight++;
    rl_batch *b = RL_CONTAINER(first, rl_batch, idle);
    b->node = node;
    b->next = NULL;
    b->verb = verb;
    b->compare = b->bare = false;
    b->replicas = 0;
    b->detour = 0;
    b->send_by_us = RL_NEVER;
    b->n = 0;
    return b;
}

void rl_batch_put(rl_batch *b)
{
    rl_keeper *k = &b->node->keeper;
    k->in_flight--;
    rl_list_add_first(&k->idle_batches, &b->idle);
}

void rl_batches_init(rl_keeper *k)
{
    rl_list_init(&k->idle_batches);
}

bool rl_batches_reserve(rl_keeper *k)
{
    return k->chunks || add_chunk(k);
}

void rl_batches_fini(rl_keeper *k)
{
    rl_chunk *next;
    for (rl_chunk *c = k->chunks; c; c = next) {
        next = c->next;
        free(c);
    }
    k->chunks = NULL;
    k->batches = 0;
    rl_list_init(&k->idle_batches);
}

/* --- what is due ---------------------------------------------------------- */

/*
 * Takes the next that is due, or will be soon, off the heap, or NULL. At the
 * end all are.
 */
static rl_hold *next_due_locked(rl_holds *t, rl_due_queue *l, int64_t now_us,
                                bool soon) RL_REQUIRES(&t->mutex)
{
    rl_heap_node *n = rl_heap_first(&l->work);
    if (!n)
        return NULL;
    rl_hold *h = RL_CONTAINER(n, rl_hold, work);
    int64_t until_us = now_us;
    if (soon && h->state == RL_HELD)
        until_us += rl_hold_renewal_period_us(t, h, now_us) / SOON_OF_PERIOD;
    if (n->due_us > until_us && !t->stopping)
        return NULL;
    rl_heap_remove(&l->work, n);
    return h;
}

/* A node of a Red lock that does not have it: may it be asked, and does it pay?
 */
static bool may_vote_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    rl_core *c = RL_CONTAINER(t, rl_core, holds);
    const rl_group *g = h->group;
    rl_fault f;
    if (!rl_hold_may_join_locked(t, h, now_us) || !rl_group_is_renewed(g))
        return false;
    if (rl_may_vote(c, g->longest_us, g->check_uptime, now_us, &f))
        return true;
    rl_hold_schedule_locked(t, h,
                            now_us + rl_hold_renewal_period_us(t, h, now_us));
    return false;
}

/* Sooner than that no answer comes. */
#define ANSWER_US 1000

/* What is over by then is left to its end, as max_hold_ms may have set it: a call
   that is not sent in time breaks the connection, for all whose renewals it has. */
static bool may_renew_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    if (h->group && rl_group_is_void(h->group))
        rl_hold_lose_locked(t, h, RL_LOSS_GROUP, now_us);
    return rl_hold_is_valid_locked(t, h, now_us) &&
           h->expiry.due_us - now_us >= ANSWER_US;
}

/* What is to be asked about this hold; NULL: nothing. */
static const rl_batch_verb *prepare_locked(rl_holds *t, rl_hold *h,
                                           int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    bool vacant = h->state == RL_VACANT;
    if (h->state == RL_UNDOING && h->scope != RL_LATCH_SCOPE)
        return &rl_batch_undo;
    if (h->state == RL_UNDOING) {
        if (now_us < h->gone_us)
            return &rl_batch_count;
        rl_hold_undone_locked(t, h); /* its mark may be gone: not once more */
        return NULL;
    }
    if (t->stopping || !(vacant ? may_vote_locked(t, h, now_us)
                                : may_renew_locked(t, h, now_us)))
        return NULL;
    bool looks = !vacant && !h->renewed;
    h->in_flight = true;
    if (!looks)
        rl_hold_expect(h, now_us, t->renewal_ms);
    h->keeps = h->renewed && rl_hold_has_to_keep_token_locked(t, h, now_us);
    h->refs++;
    return vacant ? &rl_batch_vote : looks ? &rl_batch_look : &rl_batch_renew;
}

/* The hold's call, by itself for the moment. */
static void begin_locked(rl_batch *b, const rl_holds *t,
                         const rl_batch_verb *verb, rl_hold *h)
    RL_REQUIRES(&t->mutex)
{
    (void)t;
    b->verb = verb;
    b->hold[b->n++] = h;
    b->detour = h->detour;
    h->detour = 0;
    if (verb != &rl_batch_renew && verb != &rl_batch_look)
        return;
    b->send_by_us = h->expiry.due_us;
    b->compare = rl_hold_compares_locked(h);
}

/* May others go with it? */
static bool is_shared(const rl_batch *b)
{
    return b->verb == &rl_batch_renew && !b->compare && !b->detour &&
           !b->node->keeper.one_by_one;
}

/* Of permits, each of which is a write, a call has fewer. */
#define MOST_PERMITS        100
#define MOST_PERMIT_HOLDERS 25

static bool has_room_for(const rl_batch *b, const rl_hold *h)
{
    size_t permits = h->record->weight;
    if (!h->record->weight)
        return b->n < RL_BATCH_MAX;
    for (size_t i = 0; i < b->n; i++)
        permits += b->hold[i]->record->weight;
    return b->n < MOST_PERMIT_HOLDERS && permits <= MOST_PERMITS;
}

/* A call is about one layout, and one slot of a cluster. */
static bool takes(const rl_batch *b, const rl_batch *alone)
{
    const rl_hold *h = alone->hold[0];
    return b && b->hold[0]->slot == h->slot &&
           b->hold[0]->layout == h->layout && has_room_for(b, h);
}

static void join(rl_batch *b, rl_batch *alone)
{
    b->hold[b->n++] = alone->hold[0];
    b->send_by_us = rl_min(b->send_by_us, alone->send_by_us);
    alone->n = 0;
    alone->compare = false;
    alone->send_by_us = RL_NEVER;
}

typedef struct collection {
    rl_batch *all[RL_BATCH_MAX]; /* the first is about what was due first */
    size_t n;
    size_t holds;               /* of all of them */
    rl_batch *open[RL_LAYOUTS]; /* these take others of their layout */
} collection;

/* True: it is needed no more, and may be another one. */
static bool add(collection *c, rl_batch *b)
{
    rl_batch **open = &c->open[b->hold[0]->layout];
    c->holds++;
    if (is_shared(b) && takes(*open, b)) {
        join(*open, b);
        return true;
    }
    if (is_shared(b))
        *open = b;
    c->all[c->n++] = b;
    return false;
}

/* Some of what is due, and about no more holds than so many. */
static void collect(collection *c, rl_node *node, size_t most, int64_t now_us,
                    bool soon)
{
    rl_batch *b = NULL;
    rl_holds *t = &node->e->core.holds;
    *c = (collection){.n = 0};
    most = most < RL_BATCH_MAX ? most : RL_BATCH_MAX;
    rl_mutex_lock(&t->mutex);
    while (c->holds < most && (b || (b = rl_batch_take(node, NULL)) != NULL)) {
        rl_hold *h = next_due_locked(t, node->queue, now_us, soon);
        if (!h)
            break;
        const rl_batch_verb *verb = prepare_locked(t, h, now_us);
        if (!verb)
            continue;
        begin_locked(b, t, verb, h);
        if (!add(c, b))
            b = NULL;
    }
    rl_mutex_unlock(&t->mutex);
    if (b)
        rl_batch_put(b);
}

/*
 * Who takes no more than this in one pass takes nothing again and again: at the
 * end, what fails falls due at once.
 */
static size_t on_the_heap(rl_node *node)
{
    rl_holds *t = &node->e->core.holds;
    rl_mutex_lock(&t->mutex);
    size_t n = node->queue->work.count;
    rl_mutex_unlock(&t->mutex);
    return n;
}

bool rl_batches_have_room(const rl_keeper *k)
{
    const char *bytes;
    return k->conn && !rl_conn_is_broken(k->conn) &&
           k->in_flight < MOST_BATCHES &&
           rl_line_bytes(&k->conn->line, &bytes) < MOST_UNSENT;
}

/* As far as it may be in flight; the rest in the turns that follow. */
void rl_batches_push_due(rl_node *node, int64_t now_us)
{
    collection c;
    size_t left = on_the_heap(node);
    left = left < MOST_A_TURN ? left : MOST_A_TURN;
    do {
        if (!rl_batches_have_room(&node->keeper))
            return;
        collect(&c, node, left, now_us, true);
        for (size_t i = 0; i < c.n; i++)
            rl_batch_push(c.all[i], now_us);
        left -= c.holds;
    } while (c.holds == RL_BATCH_MAX);
}

void rl_batches_fail_due(rl_node *node, const rl_fault *why, int64_t now_us)
{
    collection c;
    size_t left = on_the_heap(node);
    do {
        collect(&c, node, left, now_us, false);
        for (size_t i = 0; i < c.n; i++)
            rl_batch_refuse(c.all[i], why, now_us);
        left -= c.holds;
    } while (c.holds == RL_BATCH_MAX);
}

bool rl_batches_may_send(const rl_keeper *k, int64_t now_us)
{
    const rl_line *l = &k->conn->line;
    for (rl_link *s = rl_list_last(&l->slots); s && s != &l->slots.head;
         s = s->prev) {
        const rl_ask *a = RL_CONTAINER(s, rl_ask, slot.link);
        if (a->slot.end <= l->sent)
            return true;
        if (a->send_by_us <= now_us)
            return false;
    }
    return true;
}
