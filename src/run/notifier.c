/*
 * A turn on the loop, under the mutex of the hold table: holds whose deadline
 * has passed become lost, then what is to be told is told. For each event one
 * report is taken off the queue and described, and who is to know is called
 * without the mutex, on a copy, with a reference to the hold.
 *
 * What stays true: the loop calls nobody who may block. Where an on_event is to
 * be called, and not posted for who dispatches, a thread of the notifier's own
 * delivers, from then on everything; so events keep their order.
 */
#include "run/notifier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hold/due.h"
#include "run/engine.h"

/* What the callback gets to see; the hold is referenced meanwhile. */
typedef struct report {
    rlock_event event;
    rl_hold *hold;
    rl_group *group; /* NULL: it is none's */
    bool closed;     /* lost with its client */
    char message[256], owner[RLOCK_LABEL_MAX + 1];
} report;

static void write_label(const rl_hold *h, char out[RLOCK_LABEL_MAX + 1])
{
    const char *text;
    size_t len;
    if (!rl_owner_record_owner(h->record, &text, &len))
        len = 0;
    memcpy(out, text, len);
    out[len] = '\0';
}

/* Red: the node's hold stands for the whole. */
static const rl_group *red_of(const rl_hold *h)
{
    return h->group && h->group->quorum ? h->group : NULL;
}

static void say_why_locked(const rl_engine *e, report *r)
    RL_REQUIRES(&e->core.holds.mutex)
{
    const rl_fault *failure = &e->core.holds.failure;
    size_t size = sizeof r->message;
    switch (r->event.type) {
    case RLOCK_EVENT_LOST:
        snprintf(r->message, size, "%s%s",
                 red_of(r->hold)
                     ? "too few nodes are left that hold it; the last one: "
                     : "",
                 rl_loss_text(r->hold->loss));
        break;
    case RLOCK_EVENT_ABANDONED:
        snprintf(r->message, size, "the owner ended while holding it");
        break;
    case RLOCK_EVENT_HELD_LONG:
        snprintf(r->message, size, "it is held for longer than %lld ms",
                 (long long)(e->core.holds.warn_us / 1000));
        break;
    case RLOCK_EVENT_RENEW_LATE:
        snprintf(r->message, size,
                 "it was not renewed before half of its lease was over");
        break;
    case RLOCK_EVENT_RENEW_FAILED:
        r->event.status = failure->status;
        snprintf(r->message, size, "%s: %s",
                 failure->at ? failure->at : atomic_load(&e->core.node),
                 failure->text);
        break;
    default:
        r->message[0] = '\0';
    }
}

static void describe_locked(const rl_engine *e, report *r,
                            rlock_event_type type)
    RL_REQUIRES(&e->core.holds.mutex)
{
    const rl_hold *h = r->hold;
    const rl_group *red = red_of(h);
    bool over = type == RLOCK_EVENT_LOST || type == RLOCK_EVENT_ABANDONED;
    int64_t began_us = red ? red->began_us : h->began_us;
    r->event =
        (rlock_event){.type = type,
                      .status = type == RLOCK_EVENT_LOST ? RLOCK_LOST : 0,
                      .name = rl_hold_name(h),
                      .name_len = h->name_len,
                      .token = red ? red->token : h->token,
                      .count = red ? rl_group_count(red) : h->count,
                      .message = r->message,
                      .owner = r->owner,
                      .kind = rl_hold_layout(h)->kind};
    if (over)
        r->event.elapsed_ms = (h->ended_us - began_us) / 1000;
    else if (type == RLOCK_EVENT_HELD_LONG)
        r->event.elapsed_ms = (rl_now_us() - began_us) / 1000;
    write_label(h, r->owner);
    say_why_locked(e, r);
}

/* One that was late, and is renewed by now, was late before that. */
static unsigned first_type(const rl_hold *h)
{
    unsigned type = 0;
    if (!h->late && h->reports & 1u << RLOCK_EVENT_RENEW_LATE)
        return RLOCK_EVENT_RENEW_LATE;
    while (!(h->reports & 1u << type))
        type++;
    return type;
}

static bool next_report_locked(rl_engine *e, report *r)
    RL_REQUIRES(&e->core.holds.mutex)
{
    rl_hold *h = rl_holds_first_report_locked(&e->core.holds);
    if (!h)
        return false;
    unsigned type = first_type(h);
    h->reports &= ~(1u << type);
    r->hold = h;
    r->group = h->group;
    r->closed = h->loss == RL_LOSS_CLOSED;
    describe_locked(e, r, (rlock_event_type)type);
    if (h->reports)
        h->refs++;
    else
        rl_holds_unqueue_locked(&e->core.holds);
    return true;
}

static void deliver_reconnected(rl_engine *e)
{
    rlock_event ev = {.type = RLOCK_EVENT_RECONNECTED,
                      .name = "",
                      .message = atomic_load(&e->core.node),
                      .owner = ""};
    rl_tell(&e->core, &ev);
}

void rl_notifier_failover(rl_engine *e, const char *text)
{
    struct rl_notes *notes = e->notifier.notes;
    rl_mutex_lock(&e->core.holds.mutex);
    if (notes)
        snprintf(notes->failover, sizeof notes->failover, "%s", text);
    rl_mutex_unlock(&e->core.holds.mutex);
    rl_holds_failed_over(&e->core.holds, true, rl_now_us());
}

void rl_notifier_warn(rl_engine *e, const char *text)
{
    rl_holds *t = &e->core.holds;
    struct rl_notes *notes = e->notifier.notes;
    rl_mutex_lock(&t->mutex);
    if (notes)
        snprintf(notes->warning, sizeof notes->warning, "%s", text);
    e->notifier.warned = t->wants_reports;
    rl_holds_nudge_locked(t, 0);
    rl_mutex_unlock(&t->mutex);
}

/* On a copy: another one may come meanwhile. */
static void deliver_text_locked(rl_engine *e, rlock_event_type type,
                                const char *kept)
    RL_REQUIRES(&e->core.holds.mutex)
{
    char text[sizeof e->notifier.notes->failover];
    rlock_event ev = {.type = type, .name = "", .message = text, .owner = ""};
    strcpy(text, kept);
    rl_mutex_unlock(&e->core.holds.mutex);
    rl_tell(&e->core, &ev);
    rl_mutex_lock(&e->core.holds.mutex);
}

/* What is the group's goes to its home, if anybody there wants to know. */
static void tell(rl_engine *e, const report *r)
{
    rl_group *g = r->group;
    bool of_group = r->event.type == RLOCK_EVENT_LOST ||
                    r->event.type == RLOCK_EVENT_ABANDONED ||
                    r->event.type == RLOCK_EVENT_HELD_LONG;
    bool told = g && of_group && rl_group_tell(g, &r->event);
    if (!told && !r->closed)
        rl_tell(&e->core, &r->event);
}

/* Delivers one event, unlocked. False: there was none. */
static bool deliver_locked(rl_engine *e) RL_REQUIRES(&e->core.holds.mutex)
{
    report r;
    if (e->core.holds.failed_over) {
        e->core.holds.failed_over = false;
        deliver_text_locked(e, RLOCK_EVENT_FAILOVER,
                            e->notifier.notes->failover);
        return true;
    }
    if (e->notifier.warned) {
        e->notifier.warned = false;
        deliver_text_locked(e, RLOCK_EVENT_WARNING, e->notifier.notes->warning);
        return true;
    }
    if (e->core.holds.reconnected) {
        e->core.holds.reconnected = false;
        rl_mutex_unlock(&e->core.holds.mutex);
        deliver_reconnected(e);
        rl_mutex_lock(&e->core.holds.mutex);
        return true;
    }
    if (!next_report_locked(e, &r))
        return false;
    rl_mutex_unlock(&e->core.holds.mutex);
    tell(e, &r);
    rl_mutex_lock(&e->core.holds.mutex);
    rl_hold_unref_locked(&e->core.holds, r.hold);
    return true;
}

/* --- who delivers --------------------------------------------------------- */

/* Holds that become lost in one turn, and events that it tells: others on the
   loop are not to wait for more. */
#define MOST_AT_ONCE 64

#define RETRY_US 10000

static bool has_news_locked(rl_engine *e) RL_REQUIRES(&e->core.holds.mutex)
{
    const rl_holds *t = &e->core.holds;
    return t->failed_over || e->notifier.warned || t->reconnected ||
           rl_holds_first_report_locked(&e->core.holds);
}

/* May somebody be called who blocks? */
static bool may_block_locked(rl_engine *e) RL_REQUIRES(&e->core.holds.mutex)
{
    const rl_hold *h = rl_holds_first_report_locked(&e->core.holds);
    return rl_calls_back(&e->core) ||
           (h && h->group && rl_group_calls_back(h->group));
}

static void *run(void *arg)
{
    rl_engine *e = arg;
    rl_mutex_lock(&e->core.holds.mutex);
    for (;;) {
        if (deliver_locked(e))
            continue;
        if (e->core.holds.stopping)
            break;
        rl_cond_wait_until(&e->notifier.wake, &e->core.holds.mutex, RL_NEVER);
    }
    rl_mutex_unlock(&e->core.holds.mutex);
    return NULL;
}

static bool start_thread(rl_engine *e)
{
    rl_thread *t = &e->notifier.thread;
    return t->started || rl_thread_start(t, "rlock-notifier", run, e);
}

/* False: there is more, which its thread is to tell, and that does not run. */
static bool tell_locked(rl_engine *e, size_t *told)
    RL_REQUIRES(&e->core.holds.mutex)
{
    *told = 0;
    if (e->notifier.thread.started) {
        rl_cond_wake(&e->notifier.wake);
        return true;
    }
    while (*told < MOST_AT_ONCE && has_news_locked(e)) {
        if (may_block_locked(e))
            return false;
        deliver_locked(e);
        ++*told;
    }
    return true;
}

static int64_t next_due_us_locked(const rl_holds *t) RL_REQUIRES(&t->mutex)
{
    const rl_heap_node *first = rl_heap_first(&t->expiry);
    return rl_min(first ? first->due_us : RL_NEVER, rl_holds_age_due_locked(t));
}

static int64_t turn(rl_watcher *w, int64_t now_us)
{
    rl_notifier *n = RL_CONTAINER(w, rl_notifier, watcher);
    rl_engine *e = RL_CONTAINER(n, rl_engine, notifier);
    rl_holds *t = &e->core.holds;
    size_t told;
    rl_mutex_lock(&e->core.holds.mutex);
    bool more = rl_holds_expire_locked(&e->core.holds, MOST_AT_ONCE, now_us);
    more = rl_holds_warn_locked(&e->core.holds, MOST_AT_ONCE, now_us) || more;
    bool all = tell_locked(e, &told);
    more = more || told == MOST_AT_ONCE;
    bool ends = t->stopping && !more;
    t->sleeps_us = more ? 0 : next_due_us_locked(&e->core.holds);
    int64_t due_us = t->sleeps_us;
    rl_mutex_unlock(&e->core.holds.mutex);
    bool ok = all || start_thread(e);
    if (ends && (all || !ok)) /* at the end nobody tries again */
        return RL_LOOP_LEAVE;
    return all ? due_us : ok ? now_us : now_us + RETRY_US;
}

static size_t look(rl_watcher *w, struct pollfd *p, size_t room)
{
    (void)w;
    (void)p;
    (void)room;
    return 0;
}

static void wake(rl_holds *t)
{
    rl_engine *e = rl_engine_of(RL_CONTAINER(t, rl_core, holds));
    rl_loop_nudge(&e->loop, &e->notifier.watcher);
}

bool rl_notifier_init(rl_engine *e)
{
    rl_notifier *n = &e->notifier;
    rl_cond_init(&n->wake);
    n->watcher = (rl_watcher){.turn = turn, .look = look};
    e->core.holds.wake = wake;
    bool wanted = e->core.holds.wants_reports;
    n->notes = wanted ? calloc(1, sizeof *n->notes) : NULL;
    return n->notes || !wanted;
}

void rl_notifier_fini(rl_notifier *n, bool forked)
{
    free(n->notes);
    if (!forked)
        rl_cond_fini(&n->wake);
}

bool rl_notifier_start(rl_engine *e)
{
    return (!rl_calls_back(&e->core) || start_thread(e)) &&
           rl_loop_add(&e->loop, &e->notifier.watcher);
}

void rl_notifier_stop(rl_engine *e)
{
    rl_loop_await_end(&e->loop, &e->notifier.watcher);
    rl_mutex_lock(&e->core.holds.mutex);
    rl_cond_wake(&e->notifier.wake);
    rl_mutex_unlock(&e->core.holds.mutex);
    rl_thread_join(&e->notifier.thread);
}
