/*
 * The keeper's tasks. collect() takes what is due off the table's heap, under
 * the table's mutex; push() puts the call on the keeper's line; done() runs
 * where the answer is read and notes it, again under the mutex, for that one
 * hold.
 *
 * What stays true: a hold has at most one task, because it is off the heap from
 * when it is taken until its answer is noted; and nothing is sent for a hold
 * whose deadline has passed.
 */
#include "drive/tasks.h"

#include <stdlib.h>

#include "core/vote.h"
#include "drive/engine.h"

/* Calls in flight are limited by memory and by what waits to be sent. */
#define CHUNK        256
#define MOST_TASKS   (32 * CHUNK)
#define MOST_UNSENT  (64 * 1024)
#define MOST_AT_ONCE 64

/*
 * What falls due this soon after a renewal goes with it: renewing early does
 * no harm, and holds that were taken one by one come to share round trips.
 */
#define SOON_OF_PERIOD 16

typedef enum task_kind { RENEW, UNDO, VOTE } task_kind;

/* One hold's call. */
typedef struct rl_task {
    rl_ask ask;
    rl_link idle;
    rl_engine *e;
    rl_hold *hold; /* with a reference */
    task_kind what;
    bool compare;       /* tokens; see rl_call_renew() */
    int64_t send_by_us; /* the hold's deadline */
} rl_task;

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

static rl_task *take_task(rl_keeper *k)
{
    if (rl_list_is_empty(&k->idle_tasks) &&
        (k->tasks >= MOST_TASKS || !add_chunk(k)))
        return NULL;
    rl_link *first = rl_list_first(&k->idle_tasks);
    rl_list_remove(first);
    k->in_flight++;
    return RL_CONTAINER(first, rl_task, idle);
}

static void put_task(rl_keeper *k, rl_task *t)
{
    k->in_flight--;
    rl_list_add_first(&k->idle_tasks, &t->idle);
}

static void write_call(const rl_ask *a, rl_bytes *to)
{
    const rl_task *t = RL_CONTAINER(a, rl_task, ask);
    int64_t lease_ms = t->e->core.holds.renewal_ms;
    rl_request vote = {
        .lease_ms = lease_ms, .level = 1, .bell = "", .says_least = true};
    switch (t->what) {
    case RENEW:
        rl_call_renew(to, a->whole, t->hold, lease_ms, t->compare);
        break;
    case UNDO:
        rl_call_release(to, a->whole, t->hold, 0, false);
        break;
    case VOTE:
        vote.least = t->hold->group->token;
        rl_call_acquire(to, a->whole, t->hold, &vote);
        break;
    }
}

bool rl_tasks_init(rl_keeper *k)
{
    rl_list_init(&k->idle_tasks);
    return add_chunk(k);
}

void rl_tasks_fini(rl_keeper *k)
{
    rl_chunk *next;
    for (rl_chunk *c = k->chunks; c; c = next) {
        next = c->next;
        free(c);
    }
    k->chunks = NULL;
}

/* --- answers -------------------------------------------------------------- */

/*
 * When the connection broke, after the back-off; a failure that is the hold's
 * own must not be repeated at once.
 */
static int64_t next_try_us(const rl_task *t, int64_t now_us)
{
    bool broke = !t->ask.line || t->ask.line->failed;
    return broke ? rl_max(now_us, t->e->keeper.not_before_us)
                 : now_us + rl_keeper_longest_pause_us(t->e);
}

static void undone_locked(rl_holds *table, rl_task *t, bool done,
                          int64_t now_us) RL_REQUIRES(&table->mutex)
{
    if (!done && !table->stopping && now_us < t->hold->gone_us)
        rl_hold_schedule_locked(table, t->hold, next_try_us(t, now_us));
    else
        rl_hold_undone_locked(table, t->hold);
}

static void note_undo(rl_task *t, const rl_reply *r, const rl_fault *f,
                      int64_t now_us)
{
    bool done =
        r ? r->top.integer < RL_UNBURIED : f->status == RLOCK_EWRONGTYPE;
    rl_holds *table = &t->e->core.holds;
    rl_mutex_lock(&table->mutex);
    undone_locked(table, t, done, now_us);
    rl_mutex_unlock(&table->mutex);
}

static void renewed_locked(rl_holds *table, rl_task *t, const rl_reply *r,
                           const rl_fault *f, int64_t now_us)
    RL_REQUIRES(&table->mutex)
{
    rl_hold *h = t->hold;
    int64_t sent_us = t->ask.sent_us;
    if (!rl_hold_is_valid_locked(table, h, now_us) || !h->renewed || h->paused)
        return; /* lost, released or extended while we asked */
    if (r && r->top.integer >= 1) {
        rl_hold_prolong_locked(table, h, sent_us, table->renewal_ms, now_us);
        rl_hold_schedule_locked(table, h,
                                sent_us + rl_hold_renewal_period_us(table, h));
        rl_add(&t->e->core.stats.renewals, 1);
        rl_hold_report_locked(table, h, RLOCK_EVENT_RENEWED);
    } else if (r || f->status == RLOCK_EWRONGTYPE) {
        rl_hold_lose_locked(table, h, r ? RL_LOSS_GONE : RL_LOSS_FOREIGN,
                            now_us);
    } else {
        rl_hold_schedule_locked(table, h, next_try_us(t, now_us));
        rl_add(&t->e->core.stats.renew_failures, 1);
        rl_hold_report_locked(table, h, RLOCK_EVENT_RENEW_FAILED);
    }
}

static void note_renewal(rl_task *t, const rl_reply *r, const rl_fault *f,
                         int64_t now_us)
{
    rl_holds *table = &t->e->core.holds;
    rl_hold *h = t->hold;
    rl_mutex_lock(&table->mutex);
    if (!r)
        t->e->keeper.failure = *f;
    h->in_flight = false;
    renewed_locked(table, t, r, f, now_us);
    if (h->landing)
        h->landing->wake(h->landing, RL_WAKE_LOOK, 0);
    h->landing = NULL;
    rl_hold_unref_locked(table, h);
    rl_mutex_unlock(&table->mutex);
}

/* A node that is back takes part again, as long as a quorum has the lock. */
static void voted_locked(rl_holds *table, rl_task *t, bool granted,
                         int64_t now_us) RL_REQUIRES(&table->mutex)
{
    rl_hold *h = t->hold;
    rl_group *g = h->group;
    h->in_flight = false;
    if (h->state != RL_VACANT) /* released meanwhile, and being undone */
        return;
    if (granted && rl_group_is_owned(g) && !table->closed &&
        rl_lease_deadline(t->ask.sent_us, table->renewal_ms) > now_us) {
        h->lease_ms = table->renewal_ms;
        rl_group_join(g, h->member, now_us);
        rl_hold_grant_locked(table, h, g->token, t->ask.sent_us,
                             rl_group_is_renewed(g), now_us);
        h->count = rl_group_count(g);
    } else {
        h->unknown = h->unknown || granted;
        rl_hold_vacate_locked(table, h, now_us);
    }
}

static void note_vote(rl_task *t, const rl_reply *r, int64_t now_us)
{
    rl_holds *table = &t->e->core.holds;
    rl_grant g;
    rl_fault f;
    bool granted = r && rl_grant_read(r, 1, &g, &f) == RL_ACQUIRED;
    rl_mutex_lock(&table->mutex);
    t->hold->unknown = t->hold->unknown || t->ask.unknown;
    rl_hold_expect(t->hold, now_us, table->renewal_ms);
    voted_locked(table, t, granted, now_us);
    rl_hold_unref_locked(table, t->hold);
    rl_mutex_unlock(&table->mutex);
}

static void done(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                 int64_t now_us)
{
    rl_task *t = RL_CONTAINER(a, rl_task, ask);
    (void)outcome;
    switch (t->what) {
    case RENEW:
        note_renewal(t, r, a->fault, now_us);
        break;
    case UNDO:
        note_undo(t, r, a->fault, now_us);
        break;
    case VOTE:
        note_vote(t, r, now_us);
        break;
    }
    put_task(&t->e->keeper, t);
}

/* --- what is due ---------------------------------------------------------- */

/*
 * Takes the next that is due, or will be soon, off the heap, or NULL. At the
 * end all are.
 */
static rl_hold *next_due_locked(rl_holds *t, int64_t now_us, bool soon)
    RL_REQUIRES(&t->mutex)
{
    rl_heap_node *n = rl_heap_first(&t->work);
    if (!n)
        return NULL;
    rl_hold *h = RL_CONTAINER(n, rl_hold, work);
    int64_t until_us = now_us;
    if (soon && h->state == RL_HELD)
        until_us += t->renewal_ms * 1000 / 3 / SOON_OF_PERIOD;
    if (n->due_us > until_us && !t->stopping)
        return NULL;
    rl_heap_remove(&t->work, n);
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
    if (!rl_group_is_owned(g) || !rl_group_is_renewed(g))
        return false;
    if (rl_may_vote(c, g->longest_us, g->check_uptime, now_us, &f))
        return true;
    rl_hold_schedule_locked(table, h,
                            now_us + rl_hold_renewal_period_us(table, h));
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
    t->what = UNDO;
    if (h->state == RL_UNDOING)
        return true;
    if (table->stopping || !(vacant ? may_vote_locked(table, h, now_us)
                                    : may_renew_locked(table, h, now_us)))
        return false;
    t->what = vacant ? VOTE : RENEW;
    if (!vacant) {
        t->send_by_us = h->deadline_us;
        t->compare = rl_hold_compares_locked(h);
    }
    h->in_flight = true;
    rl_hold_expect(h, now_us, table->renewal_ms);
    h->refs++;
    return true;
}

/* Some of what is due. */
static size_t collect(rl_engine *e, rl_task *task[MOST_AT_ONCE], int64_t now_us,
                      bool soon)
{
    size_t n = 0;
    rl_task *t = NULL;
    rl_holds *table = &e->core.holds;
    rl_mutex_lock(&table->mutex);
    while (n < MOST_AT_ONCE && (t || (t = take_task(&e->keeper)) != NULL)) {
        rl_hold *h = next_due_locked(table, now_us, soon);
        if (!h)
            break;
        if (!prepare_locked(table, h, t, now_us))
            continue;
        task[n++] = t;
        t = NULL;
    }
    rl_mutex_unlock(&table->mutex);
    if (t)
        put_task(&e->keeper, t);
    return n;
}

static rl_script_id script_of(const rl_task *t)
{
    const rl_layout *l = t->hold->layout;
    return t->what == RENEW  ? l->renew
           : t->what == UNDO ? l->release
                             : l->acquire;
}

/* One that ends notes its fault at once, so one place is enough for all. */
static void begin(rl_engine *e, rl_task *t)
{
    rl_ask_init(&t->ask, script_of(t), &e->keeper.fault);
    t->e = e;
    t->ask.tries = 1;
    t->ask.loads = &e->core.stats.script_loads;
    t->ask.write = write_call;
    t->ask.done = done;
}

static void push(rl_engine *e, rl_task *t, int64_t now_us)
{
    begin(e, t);
    t->ask.until_us =
        rl_min(rl_renewal_end(&e->core, now_us), e->keeper.end_us);
    rl_ask_push(&t->ask, &e->keeper.conn->line, now_us);
}

bool rl_tasks_have_room(const rl_keeper *k)
{
    const char *bytes;
    return k->conn && !rl_conn_is_broken(k->conn) &&
           k->in_flight < MOST_TASKS &&
           rl_line_bytes(&k->conn->line, &bytes) < MOST_UNSENT;
}

/* Everything that is due, as far as it may be in flight. */
void rl_tasks_push_due(rl_engine *e, int64_t now_us)
{
    rl_keeper *k = &e->keeper;
    rl_task *task[MOST_AT_ONCE];
    size_t n;
    do {
        if (!rl_tasks_have_room(k))
            return;
        n = collect(e, task, now_us, true);
        for (size_t i = 0; i < n; i++)
            push(e, task[i], now_us);
    } while (n == MOST_AT_ONCE);
}

void rl_tasks_fail_due(rl_engine *e, const rl_fault *why, int64_t now_us)
{
    rl_task *task[MOST_AT_ONCE];
    size_t n;
    do {
        n = collect(e, task, now_us, false);
        for (size_t i = 0; i < n; i++) {
            begin(e, task[i]);
            e->keeper.fault = *why;
            rl_ask_refuse(&task[i]->ask, now_us);
        }
    } while (n == MOST_AT_ONCE);
}

bool rl_tasks_may_send(const rl_keeper *k, int64_t now_us)
{
    const rl_line *l = &k->conn->line;
    for (rl_link *s = rl_list_last(&l->slots); s && s != &l->slots.head;
         s = s->prev) {
        const rl_slot *slot = RL_CONTAINER(s, rl_slot, link);
        const rl_task *t = RL_CONTAINER(slot, rl_task, ask.slot);
        if (slot->end <= l->sent)
            return true;
        if (t->send_by_us <= now_us)
            return false;
    }
    return true;
}
