/*
 * The keeper's tasks. collect() takes what is due off the table's heap, under
 * the table's mutex; what a task says, and what its answer means, is in task.c,
 * and renewals that go together are in batch.c.
 *
 * What stays true: a hold has at most one task, because it is off the heap from
 * when it is taken until its answer is noted; and nothing is sent for a hold
 * whose deadline has passed.
 */
#include "run/tasks.h"

#include <stdlib.h>

#include "red/attempt_red.h"
#include "run/task.h"

/* Calls in flight are limited by memory and by what waits to be sent. */
#define CHUNK       256
#define MOST_TASKS  (32 * CHUNK)
#define MOST_UNSENT (64 * 1024)

/* In one turn: the others on the loop are not to wait for more. */
#define MOST_A_TURN (10 * RL_BATCH_MAX)

/*
 * What falls due this soon after a renewal goes with it: renewing early does
 * no harm, and holds that were taken one by one come to share round trips.
 */
#define SOON_OF_PERIOD 16

typedef struct rl_chunk {
    struct rl_chunk *next;
    rl_task task[CHUNK];
} rl_chunk;

/* --- tasks ---------------------------------------------------------------- */

static bool add_chunk(rl_keeper *k)
{
    rl_chunk *c = calloc(1, sizeof *c);
    if (!c)
        return false;
    c->next = k->chunks;
    k->chunks = c;
    k->tasks += CHUNK;
    for (size_t i = 0; i < CHUNK; i++)
        rl_list_add_last(&k->idle_tasks, &c->task[i].idle);
    return true;
}

rl_task *rl_task_take(rl_node *node)
{
    rl_keeper *k = &node->keeper;
    if (rl_list_is_empty(&k->idle_tasks) &&
        (k->tasks >= MOST_TASKS || !add_chunk(k)))
        return NULL;
    rl_link *first = rl_list_first(&k->idle_tasks);
    rl_list_remove(first);
    k->in_flight++;
    rl_task *t = RL_CONTAINER(first, rl_task, idle);
    t->node = node;
    t->next = NULL;
    return t;
}

void rl_task_put(rl_task *t)
{
    rl_keeper *k = &t->node->keeper;
    k->in_flight--;
    rl_list_add_first(&k->idle_tasks, &t->idle);
}

void rl_tasks_init(rl_keeper *k)
{
    rl_list_init(&k->idle_tasks);
}

bool rl_tasks_reserve(rl_keeper *k)
{
    return k->chunks || add_chunk(k);
}

void rl_tasks_fini(rl_keeper *k)
{
    rl_chunk *next;
    for (rl_chunk *c = k->chunks; c; c = next) {
        next = c->next;
        free(c);
    }
    k->chunks = NULL;
    k->tasks = 0;
    rl_list_init(&k->idle_tasks);
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
static bool may_vote_locked(rl_holds *table, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&table->mutex)
{
    rl_core *c = RL_CONTAINER(table, rl_core, holds);
    const rl_group *g = h->group;
    rl_fault f;
    if (!rl_hold_may_join_locked(table, h, now_us) || !rl_group_is_renewed(g))
        return false;
    if (rl_may_vote(c, g->longest_us, g->check_uptime, now_us, &f))
        return true;
    rl_hold_schedule_locked(
        table, h, now_us + rl_hold_renewal_period_us(table, h, now_us));
    return false;
}

static bool may_renew_locked(rl_holds *table, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&table->mutex)
{
    if (h->group && rl_group_is_void(h->group))
        rl_hold_lose_locked(table, h, RL_LOSS_GROUP, now_us);
    return rl_hold_is_valid_locked(table, h, now_us);
}

/* Is there anything to be asked about this hold? */
static bool prepare_locked(rl_holds *table, rl_hold *h, rl_task *t,
                           int64_t now_us) RL_REQUIRES(&table->mutex)
{
    bool vacant = h->state == RL_VACANT;
    t->hold = h;
    t->send_by_us = RL_NEVER;
    t->compare = false;
    t->detour = h->detour;
    h->detour = 0;
    t->what = RL_UNDO;
    if (h->state == RL_UNDOING)
        return true;
    if (table->stopping || !(vacant ? may_vote_locked(table, h, now_us)
                                    : may_renew_locked(table, h, now_us)))
        return false;
    t->what = vacant ? RL_VOTE : h->renewed ? RL_RENEW : RL_LOOK;
    if (!vacant) {
        t->send_by_us = h->expiry.due_us;
        t->compare = rl_hold_compares_locked(h);
    }
    h->in_flight = true;
    if (t->what != RL_LOOK)
        rl_hold_expect(h, now_us, table->renewal_ms);
    h->refs++;
    return true;
}

/* Some of what is due, and no more than so many. */
static size_t collect(rl_node *node, rl_task *task[RL_BATCH_MAX], size_t most,
                      int64_t now_us, bool soon)
{
    size_t n = 0;
    rl_task *t = NULL;
    rl_holds *table = &node->e->core.holds;
    most = most < RL_BATCH_MAX ? most : RL_BATCH_MAX;
    rl_mutex_lock(&table->mutex);
    while (n < most && (t || (t = rl_task_take(node)) != NULL)) {
        rl_hold *h = next_due_locked(table, node->queue, now_us, soon);
        if (!h)
            break;
        if (!prepare_locked(table, h, t, now_us))
            continue;
        task[n++] = t;
        t = NULL;
    }
    rl_mutex_unlock(&table->mutex);
    if (t)
        rl_task_put(t);
    return n;
}

/*
 * Who takes no more than this in one pass takes nothing again and again: at the
 * end, what fails falls due at once.
 */
static size_t on_the_heap(rl_node *node)
{
    rl_holds *table = &node->e->core.holds;
    rl_mutex_lock(&table->mutex);
    size_t n = node->queue->work.count;
    rl_mutex_unlock(&table->mutex);
    return n;
}

bool rl_tasks_have_room(const rl_keeper *k)
{
    const char *bytes;
    return k->conn && !rl_conn_is_broken(k->conn) &&
           k->in_flight < MOST_TASKS &&
           rl_line_bytes(&k->conn->line, &bytes) < MOST_UNSENT;
}

/* A call is about one slot of a cluster. */
static bool is_near(const rl_task *first, const rl_task *t)
{
    return !first || first->hold->slot == t->hold->slot;
}

/* Renewals of holds of one layout together; all else by itself. */
static void push_all(rl_task *task[], size_t n, int64_t now_us)
{
    rl_task *batch[RL_LAYOUTS] = {NULL};
    /* From the last on, so that a batch begins with what was due first. */
    for (size_t i = n; i-- > 0;) {
        rl_task *t = task[i];
        size_t layout = t->hold->layout;
        if (!rl_batch_may_have(t) || !is_near(batch[layout], t))
            continue;
        t->next = batch[layout];
        batch[layout] = t;
        task[i] = NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (task[i])
            rl_task_push(task[i], now_us);
    for (size_t i = 0; i < RL_LAYOUTS; i++) {
        if (batch[i] && batch[i]->next)
            rl_batch_push(batch[i], now_us);
        else if (batch[i])
            rl_task_push(batch[i], now_us);
    }
}

/* As far as it may be in flight; the rest in the turns that follow. */
void rl_tasks_push_due(rl_node *node, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    rl_task *task[RL_BATCH_MAX];
    size_t n, left = on_the_heap(node);
    left = left < MOST_A_TURN ? left : MOST_A_TURN;
    do {
        if (!rl_tasks_have_room(k))
            return;
        n = collect(node, task, left, now_us, true);
        push_all(task, n, now_us);
        left -= n;
    } while (n == RL_BATCH_MAX);
}

void rl_tasks_fail_due(rl_node *node, const rl_fault *why, int64_t now_us)
{
    rl_task *task[RL_BATCH_MAX];
    size_t n, left = on_the_heap(node);
    do {
        n = collect(node, task, left, now_us, false);
        for (size_t i = 0; i < n; i++)
            rl_task_refuse(task[i], why, now_us);
        left -= n;
    } while (n == RL_BATCH_MAX);
}

bool rl_tasks_may_send(const rl_keeper *k, int64_t now_us)
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
