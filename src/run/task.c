/*
 * What a task says, and what becomes of its hold when the answer has been read.
 * Called on the loop; the mutex of the hold table is held only while
 * an answer is noted, for that one hold.
 */
#include "run/task.h"

#include "red/attempt_red.h"
#include "run/tasks.h"

/* Before a server is asked to which another one has sent us: they may send us
   to and fro. */
#define REDIRECT_US (10 * 1000)

/* --- its call --------------------------------------------------------------
 */

/* What is in doubt needs a tombstone, which cannot be had while a slot moves.
 */
static bool drops(const rl_task *t)
{
    return t->what == RL_UNDO && t->hold->split && !t->hold->unknown;
}

static void write_call(const rl_ask *a, rl_bytes *to)
{
    const rl_task *t = RL_CONTAINER(a, rl_task, ask);
    int64_t lease_ms = t->node->e->core.holds.renewal_ms;
    rl_request vote = {
        .lease_ms = lease_ms, .level = 1, .bell = "", .says_least = true};
    switch (t->what) {
    case RL_RENEW:
        rl_call_renew(to, a->whole, t->hold, lease_ms, t->compare);
        break;
    case RL_LOOK:
        rl_call_renew(to, a->whole, t->hold, 0, t->compare);
        break;
    case RL_UNDO:
        if (drops(t))
            rl_call_drop(to, a->whole, t->hold);
        else
            rl_call_release(to, a->whole, t->hold, 0, false);
        break;
    case RL_VOTE:
        vote.least = t->hold->group->token;
        rl_call_acquire(to, a->whole, t->hold, &vote);
        break;
    case RL_CONFIRM:
        rl_call_touch(to, a->whole, t->hold);
        break;
    case RL_WATCH: /* says something else */
        break;
    }
}

/* --- answers -------------------------------------------------------------- */

static bool is_sent_on(const rl_task *t)
{
    return t->ask.redirected > 0;
}

static bool has_broken(const rl_task *t)
{
    return !t->ask.line || t->ask.line->failed;
}

/*
 * When the connection broke, after the back-off; a failure that is the hold's
 * own must not be repeated at once.
 */
static int64_t next_try_us(const rl_task *t, int64_t now_us)
{
    if (is_sent_on(t))
        return now_us + rl_jitter(REDIRECT_US);
    return has_broken(t) ? rl_max(now_us, t->node->keeper.not_before_us)
                         : now_us + rl_keeper_longest_pause_us(t->node);
}

static void note_failure(rl_holds *table, const rl_task *t, const rl_fault *f)
    RL_REQUIRES(&table->mutex)
{
    table->failure = *f;
    table->failure.at = t->node->name;
}

static void undone_locked(rl_holds *table, rl_task *t, bool done,
                          int64_t now_us) RL_REQUIRES(&table->mutex)
{
    t->hold->detour = (uint16_t)t->ask.detour;
    t->hold->split = t->hold->split || t->ask.split;
    bool goes_on = !table->stopping || has_broken(t);
    if (!done && goes_on && now_us < t->hold->gone_us) {
        rl_hold_schedule_locked(table, t->hold, next_try_us(t, now_us));
        return;
    }
    /* What has run out may stay only where the clock was put back. */
    table->left += !done && now_us < t->hold->gone_us;
    rl_hold_undone_locked(table, t->hold);
}

static void note_undo(rl_task *t, const rl_reply *r, const rl_fault *f,
                      int64_t now_us)
{
    bool done =
        r ? r->top.integer < RL_UNBURIED : f->status == RLOCK_EWRONGTYPE;
    rl_holds *table = &t->node->e->core.holds;
    rl_mutex_lock(&table->mutex);
    if (!done && table->stopping)
        note_failure(table, t, f);
    undone_locked(table, t, done, now_us);
    rl_mutex_unlock(&table->mutex);
}

/* The server has it. What only looked has prolonged nothing. */
static void has_locked(rl_holds *table, const rl_task *t, int64_t now_us)
    RL_REQUIRES(&table->mutex)
{
    rl_hold *h = t->hold;
    int64_t sent_us = t->ask.sent_us;
    if (t->what == RL_RENEW) {
        rl_hold_prolong_locked(table, h, sent_us, table->renewal_ms, now_us);
        rl_add(&t->node->e->core.stats.renewals, 1);
        rl_hold_report_locked(table, h, RLOCK_EVENT_RENEWED);
    } else {
        h->confirmed_us = rl_max(h->confirmed_us, sent_us);
    }
    rl_hold_ask_next_locked(table, h, sent_us);
}

/* Of what only looked nobody is told: the lease runs on. */
static void tell_failure_locked(rl_holds *table, const rl_task *t,
                                int64_t now_us) RL_REQUIRES(&table->mutex)
{
    if (t->what != RL_RENEW)
        return;
    rl_add(&t->node->e->core.stats.renew_failures, 1);
    if (rl_due_queue_tells_locked(table, t->node->queue, now_us))
        rl_hold_report_locked(table, t->hold, RLOCK_EVENT_RENEW_FAILED);
}

/* Does the answer still matter? Not of what has been lost, released or extended
   while it was asked. */
static bool matters_locked(rl_holds *table, const rl_task *t, int64_t now_us)
    RL_REQUIRES(&table->mutex)
{
    rl_hold *h = t->hold;
    if (t->what == RL_RENEW || h->renewed)
        return rl_hold_renews_locked(table, h, now_us);
    return rl_hold_is_valid_locked(table, h, now_us);
}

static void renewed_locked(rl_holds *table, rl_task *t, rl_renewal what,
                           const rl_fault *f, int64_t now_us)
    RL_REQUIRES(&table->mutex)
{
    rl_hold *h = t->hold;
    if (!matters_locked(table, t, now_us))
        return;
    bool circles = is_sent_on(t) && h->sent_on >= RL_ASK_REDIRECTS;
    h->sent_on = (uint8_t)(what == RL_NOT_ANSWERED && is_sent_on(t) && !circles
                               ? h->sent_on + 1
                               : 0);
    if (what == RL_RENEWED) {
        has_locked(table, t, now_us);
    } else if (what == RL_NOT_HELD) {
        rl_hold_lose_locked(table, h, RL_LOSS_GONE, now_us);
    } else if (f->status == RLOCK_EWRONGTYPE) {
        rl_hold_lose_locked(table, h, RL_LOSS_FOREIGN, now_us);
    } else if (is_sent_on(t) && !circles) {
        h->detour = (uint16_t)t->ask.detour;
        rl_hold_schedule_locked(table, h, next_try_us(t, now_us));
    } else {
        rl_hold_schedule_locked(
            table, h,
            circles ? now_us + rl_keeper_longest_pause_us(t->node)
                    : next_try_us(t, now_us));
        if (circles)
            note_failure(table, t, f);
        tell_failure_locked(table, t, now_us);
    }
}

static void note_renewal(rl_task *t, rl_renewal what, const rl_fault *f,
                         int64_t now_us)
{
    rl_holds *table = &t->node->e->core.holds;
    rl_hold *h = t->hold;
    rl_mutex_lock(&table->mutex);
    if (what == RL_NOT_ANSWERED && !is_sent_on(t))
        note_failure(table, t, f);
    h->in_flight = false;
    renewed_locked(table, t, what, f, now_us);
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
    int64_t end_us = rl_hold_lease_end(h, t->ask.sent_us, table->renewal_ms);
    bool open = !table->closed && rl_hold_may_join_locked(table, h, now_us);
    if (granted && open && end_us > now_us) {
        h->lease_ms = table->renewal_ms;
        rl_group_join(g, h->member, now_us, end_us);
        rl_hold_grant_locked(table, h, g->token, t->ask.sent_us,
                             rl_group_is_renewed(g), now_us);
        h->count = rl_group_count(g);
    } else {
        h->unknown = h->unknown || granted;
        rl_hold_vacate_locked(table, h, now_us);
    }
}

/* odd: it may be granted all the same. */
static void note_vote(rl_task *t, bool granted, bool odd, int64_t now_us)
{
    rl_holds *table = &t->node->e->core.holds;
    rl_mutex_lock(&table->mutex);
    t->hold->unknown = t->hold->unknown || t->ask.unknown || odd;
    rl_hold_expect(t->hold, now_us, table->renewal_ms);
    voted_locked(table, t, granted, now_us);
    rl_hold_unref_locked(table, t->hold);
    rl_mutex_unlock(&table->mutex);
}

static void end_vote(rl_task *t, const rl_reply *r, int64_t now_us)
{
    rl_grant g;
    rl_fault f;
    bool granted = r && rl_grant_read(r, 1, &g, &f) == RL_ACQUIRED;
    if (granted && rl_task_awaits_replicas(t, now_us))
        return;
    bool odd = r && g.odd;
    if (odd && t->ask.line)
        t->ask.line->odd = true;
    note_vote(t, granted, odd, now_us);
    rl_task_put(t);
}

static rl_renewal renewal_of(const rl_reply *r)
{
    if (!r)
        return RL_NOT_ANSWERED;
    return r->top.integer >= 1 ? RL_RENEWED : RL_NOT_HELD;
}

static void done(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                 int64_t now_us)
{
    rl_task *t = RL_CONTAINER(a, rl_task, ask);
    (void)outcome;
    switch (t->what) {
    case RL_RENEW:
    case RL_LOOK:
        rl_task_renewed(t, renewal_of(r), a->fault, now_us);
        break;
    case RL_UNDO:
        note_undo(t, r, a->fault, now_us);
        rl_task_put(t);
        break;
    case RL_VOTE:
        end_vote(t, r, now_us);
        break;
    case RL_CONFIRM: /* they have ends of their own */
    case RL_WATCH:
        break;
    }
}

void rl_task_renewed(rl_task *t, rl_renewal what, const rl_fault *f,
                     int64_t now_us)
{
    if (what == RL_RENEWED && t->what == RL_RENEW &&
        rl_task_awaits_replicas(t, now_us))
        return;
    note_renewal(t, what, f, now_us);
    rl_task_put(t);
}

void rl_task_confirmed(rl_task *t, const rl_fault *f, int64_t now_us)
{
    if (t->what == RL_VOTE)
        note_vote(t, !f, f != NULL, now_us);
    else
        note_renewal(t, f ? RL_NOT_ANSWERED : RL_RENEWED, f, now_us);
    rl_task_put(t);
}

/* --- asking ----------------------------------------------------------------
 */

static rl_script_id script_of(const rl_task *t)
{
    const rl_layout *l = rl_hold_layout(t->hold);
    return t->what == RL_RENEW || t->what == RL_LOOK ? l->renew
           : drops(t)                                ? l->drop
           : t->what == RL_UNDO                      ? l->release
                                                     : l->acquire;
}

/* One that ends notes its fault at once, so one place is enough for all. */
void rl_task_begin(rl_task *t, rl_script_id script)
{
    rl_ask_init(&t->ask, script, &t->node->keeper.fault);
    t->ask.tries = 1;
    t->ask.detour = t->detour;
    t->ask.loads = &t->node->e->core.stats.script_loads;
    t->ask.redirects = t->node->e->core.redirects;
    t->ask.write = write_call;
    t->ask.done = done;
}

void rl_task_put_on_line(rl_task *t, int64_t now_us)
{
    rl_node *node = t->node;
    t->ask.until_us =
        rl_min(rl_renewal_end(&node->e->core, now_us), node->keeper.end_us);
    t->ask.send_by_us = rl_batch_send_by(t);
    rl_ask_push(&t->ask, &node->keeper.conn->line, now_us);
}

void rl_task_push(rl_task *t, int64_t now_us)
{
    rl_task_begin(t, script_of(t));
    rl_task_put_on_line(t, now_us);
}

void rl_task_refuse(rl_task *t, const rl_fault *why, int64_t now_us)
{
    rl_task_begin(t, script_of(t));
    t->node->keeper.fault = *why;
    rl_ask_refuse(&t->ask, now_us);
}
