#include "drive/watchdog.h"

#include "drive/engine.h"

#define BATCH          256
#define FIRST_PAUSE_US 10000
#define LAST_PAUSE_US  1000000

/*
 * At least three attempts, with the pauses between them, have to begin between
 * the first renewal, after a third of the lease, and its end.
 */
#define ATTEMPT_OF_LEASE 6
#define PAUSE_OF_LEASE   12

typedef enum result { FAILED, YES, NO, FOREIGN, NOSCRIPT } result;

typedef struct task {
    rl_hold *hold; /* the watchdog has a reference */
    bool undo;
    result result;
} task;

/* What is sent in one round trip. */
typedef struct batch {
    size_t count;
    bool broke;          /* the connection failed; it says nothing of a hold */
    int64_t sent_us;     /* the clock before sending */
    int64_t deadline_us; /* of the round trip */
    int64_t send_by_us;  /* the first deadline of a hold in it */
    rl_fault failure;    /* the latest */
    task task[BATCH];
} batch;

void rl_watchdog_init(rl_watchdog *w)
{
    w->pause_us = FIRST_PAUSE_US;
}

static int64_t attempt_us(const rl_engine *e)
{
    return rl_min(e->set.command_timeout_ms * 1000,
                  e->set.watchdog_lease_ms * 1000 / ATTEMPT_OF_LEASE);
}

int64_t rl_watchdog_attempt_end(const rl_engine *e)
{
    return rl_now_us() + attempt_us(e);
}

/*
 * What falls due this soon after a renewal goes with it: renewing early does
 * no harm, and holds that were taken one by one come to share round trips.
 */
#define SOON_OF_PERIOD 16

/* Takes the next that is due off the heap, or NULL. At the end all are. */
static rl_hold *next_due_locked(rl_engine *e, int64_t now_us)
    RL_REQUIRES(&e->holds.mutex)
{
    rl_heap_node *n = rl_heap_first(&e->holds.work);
    if (!n)
        return NULL;
    rl_hold *h = RL_CONTAINER(n, rl_hold, work);
    int64_t soon_us = now_us + e->holds.renewal_ms * 1000 / 3 / SOON_OF_PERIOD;
    int64_t until_us = h->state == RL_UNDOING ? now_us : soon_us;
    if (n->due_us > until_us && !e->holds.stopping)
        return NULL;
    rl_heap_remove(&e->holds.work, n);
    return h;
}

/* Puts a batch together; at the end, only of what has to be undone. */
static void collect_locked(rl_engine *e, batch *b) RL_REQUIRES(&e->holds.mutex)
{
    rl_hold *h;
    b->count = 0;
    b->sent_us = rl_now_us();
    b->deadline_us = rl_watchdog_attempt_end(e);
    b->send_by_us = RL_NEVER;
    while (b->count < BATCH && (h = next_due_locked(e, b->sent_us)) != NULL) {
        bool undo = h->state == RL_UNDOING;
        if (!undo && h->group && rl_group_is_void(h->group))
            rl_hold_lose_locked(&e->holds, h, RL_LOSS_GROUP, b->sent_us);
        if (!undo && (e->holds.stopping ||
                      !rl_hold_is_valid_locked(&e->holds, h, b->sent_us)))
            continue;
        if (!undo) {
            b->send_by_us = rl_min(b->send_by_us, h->deadline_us);
            rl_hold_expect(h, b->sent_us, e->holds.renewal_ms);
            h->in_flight = true;
            h->refs++;
        }
        b->task[b->count++] = (task){.hold = h, .undo = undo};
    }
}

static rl_script_id script_of(const task *t)
{
    const rl_layout *l = t->hold->layout;
    return t->undo ? l->release : l->renew;
}

static bool append(rl_engine *e, const task *t, bool whole)
{
    const rl_hold *h = t->hold;
    rl_hold_call c;
    if (t->undo)
        rl_call_release(&c, h, 0);
    else
        rl_call_renew(&c, h, e->set.watchdog_lease_ms);
    return rl_script_append(e->watchdog.conn, &c.call, whole);
}

static result judge(const rl_answer *a)
{
    long long code = a->reply.top.integer;
    if (a->outcome == RL_ANSWERED && code >= RL_UNBURIED)
        return FAILED;
    if (a->outcome == RL_ANSWERED)
        return code >= 1 ? YES : NO;
    if (rl_answer_is_noscript(a))
        return NOSCRIPT;
    return a->fault.status == RLOCK_EWRONGTYPE ? FOREIGN : FAILED;
}

/*
 * Sends the tasks that have this result so far, and reads what the server
 * says. Each script goes whole to a server that lacked it, once. False: the
 * connection broke.
 */
static bool round_trip(rl_engine *e, batch *b, result those)
{
    rl_conn *conn = e->watchdog.conn;
    bool sent_whole[RL_SCRIPT_COUNT] = {false};
    for (size_t i = 0; i < b->count; i++) {
        task *t = &b->task[i];
        if (t->result != those)
            continue;
        bool whole = those == NOSCRIPT && !sent_whole[script_of(t)];
        if (!append(e, t, whole)) {
            rl_fault_set(&b->failure, RLOCK_ENOMEM, 0, "out of memory");
            conn->broken = true; /* half a batch must not be sent */
            return false;
        }
        rl_add(&e->stats.script_loads, whole);
        sent_whole[script_of(t)] = true;
    }
    /* The process may have been stopped since the batch was put together. */
    if (rl_now_us() >= b->send_by_us) {
        rl_conn_discard(conn);
        return true;
    }
    if (rl_conn_flush(conn, b->deadline_us, &b->failure) != RLOCK_OK)
        return false;
    for (size_t i = 0; i < b->count; i++) {
        task *t = &b->task[i];
        if (t->result != those)
            continue;
        rl_answer a;
        rl_answer_read(conn, script_of(t), b->deadline_us, &a);
        t->result = judge(&a);
        if (t->result == FAILED)
            b->failure = a.fault;
        if (conn->broken)
            return false;
    }
    return true;
}

static bool is_connected(rl_engine *e, batch *b)
{
    rl_watchdog *w = &e->watchdog;
    if (w->conn && !w->conn->broken && rl_conn_is_stale(w->conn))
        w->conn->broken = true;
    if (w->conn && !w->conn->broken)
        return true;
    rl_source_close(e->source, w->conn);
    return rl_source_open(e->source, rl_watchdog_attempt_end(e), &w->conn,
                          &b->failure) == RLOCK_OK;
}

/* False: the connection failed; what has no answer stays FAILED. */
static bool converse(rl_engine *e, batch *b)
{
    bool lacking = false;
    if (!round_trip(e, b, FAILED))
        return false;
    for (size_t i = 0; i < b->count; i++)
        lacking = lacking || b->task[i].result == NOSCRIPT;
    return !lacking || round_trip(e, b, NOSCRIPT);
}

static int64_t longest_pause_us(const rl_engine *e)
{
    return rl_min(LAST_PAUSE_US,
                  e->set.watchdog_lease_ms * 1000 / PAUSE_OF_LEASE);
}

/*
 * While the server is away nothing is sent: a small pause first, then longer
 * ones, but short against the lease.
 */
static void back_off(rl_engine *e)
{
    rl_watchdog *w = &e->watchdog;
    int64_t pause_us = rl_min(w->pause_us, longest_pause_us(e));
    w->not_before_us = rl_now_us() + rl_jitter(pause_us * 4 / 5);
    w->pause_us = pause_us * 2;
}

/* A failure that is the hold's own must not be repeated at once. */
static int64_t next_try_us(const rl_engine *e, const batch *b)
{
    return b->broke ? e->watchdog.not_before_us
                    : rl_now_us() + longest_pause_us(e);
}

static void undone_locked(rl_engine *e, const batch *b, const task *t)
    RL_REQUIRES(&e->holds.mutex)
{
    rl_hold *h = t->hold;
    bool open = t->result == FAILED || t->result == NOSCRIPT;
    if (open && !e->holds.stopping && rl_now_us() < h->gone_us) {
        rl_hold_schedule_locked(&e->holds, h, next_try_us(e, b));
        return;
    }
    rl_hold_undone_locked(&e->holds, h);
}

static void renewed_locked(rl_engine *e, const batch *b, const task *t)
    RL_REQUIRES(&e->holds.mutex)
{
    rl_hold *h = t->hold;
    int64_t now_us = rl_now_us();
    if (!rl_hold_is_valid_locked(&e->holds, h, now_us) || !h->renewed ||
        h->paused)
        return; /* lost, released or extended while we asked */
    switch (t->result) {
    case YES:
        rl_hold_prolong_locked(&e->holds, h, b->sent_us, e->holds.renewal_ms);
        rl_hold_schedule_locked(
            &e->holds, h, b->sent_us + rl_hold_renewal_period_us(&e->holds, h));
        rl_add(&e->stats.renewals, 1);
        rl_hold_report_locked(&e->holds, h, RLOCK_EVENT_RENEWED);
        return;
    case NO:
    case FOREIGN:
        rl_hold_lose_locked(&e->holds, h,
                            t->result == NO ? RL_LOSS_GONE : RL_LOSS_FOREIGN,
                            now_us);
        return;
    case NOSCRIPT:
    case FAILED:
        rl_hold_schedule_locked(&e->holds, h, next_try_us(e, b));
        rl_add(&e->stats.renew_failures, 1);
        rl_hold_report_locked(&e->holds, h, RLOCK_EVENT_RENEW_FAILED);
    }
}

static void apply_locked(rl_engine *e, const batch *b)
    RL_REQUIRES(&e->holds.mutex)
{
    e->watchdog.failure = b->failure;
    for (size_t i = 0; i < b->count; i++) {
        const task *t = &b->task[i];
        if (t->undo) {
            undone_locked(e, b, t);
            continue;
        }
        t->hold->in_flight = false;
        renewed_locked(e, b, t);
        rl_hold_unref_locked(&e->holds, t->hold);
    }
    rl_cond_wake_all(&e->holds.landed);
}

/* Sleeps until something is due. False: stopping, and nothing is left. */
static bool wait_for_work_locked(rl_engine *e) RL_REQUIRES(&e->holds.mutex)
{
    while (!e->holds.stopping) {
        rl_heap_node *first = rl_heap_first(&e->holds.work);
        int64_t due_us = first ? first->due_us : RL_NEVER;
        due_us = rl_max(due_us, e->watchdog.not_before_us);
        if (due_us <= rl_now_us())
            return true;
        e->holds.watchdog_sleeps_us = due_us;
        rl_cond_wait_until(&e->holds.watchdog, &e->holds.mutex, due_us);
        e->holds.watchdog_sleeps_us = 0;
    }
    return e->holds.undoing > 0;
}

static void *run(void *arg)
{
    rl_engine *e = arg;
    rl_watchdog *w = &e->watchdog;
    batch b = {0};
    rl_mutex_lock(&e->holds.mutex);
    while (wait_for_work_locked(e)) {
        rl_mutex_unlock(&e->holds.mutex);
        bool connected = is_connected(e, &b);
        rl_mutex_lock(&e->holds.mutex);
        collect_locked(e, &b);
        rl_mutex_unlock(&e->holds.mutex);
        b.broke = !connected || !converse(e, &b);
        if (b.broke)
            back_off(e);
        else
            w->pause_us = FIRST_PAUSE_US;
        rl_mutex_lock(&e->holds.mutex);
        apply_locked(e, &b);
    }
    rl_mutex_unlock(&e->holds.mutex);
    return NULL;
}

bool rl_watchdog_start(rl_engine *e)
{
    rl_thread *t = &e->watchdog.thread;
    return t->started || rl_thread_start(t, "rlock-watchdog", run, e);
}

void rl_watchdog_stop(rl_engine *e)
{
    rl_thread_join(&e->watchdog.thread);
    rl_source_close(e->source, e->watchdog.conn);
    e->watchdog.conn = NULL;
}
