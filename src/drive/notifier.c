#include "drive/notifier.h"

#include <stdio.h>

#include "drive/engine.h"

void rl_emit(const rl_engine *e, const rlock_event *ev)
{
    if (e->set.on_event)
        e->set.on_event(ev, e->set.event_arg);
}

const char *rl_loss_text(rl_loss why)
{
    switch (why) {
    case RL_LOSS_NONE:
        break;
    case RL_LOSS_EXPIRED:
        return "its lease ran out";
    case RL_LOSS_GONE:
        return "the server no longer knows it: force-unlocked, deleted, or "
               "the server lost its data";
    case RL_LOSS_FOREIGN:
        return "the key is no lock any more";
    case RL_LOSS_GROUP:
        return "too few nodes are left that hold it";
    case RL_LOSS_CLOSED:
        return "its client was closed";
    case RL_LOSS_TOO_LONG:
        return "it was held longer than max_hold_ms";
    }
    return "";
}

/* What the callback gets to see; the hold is referenced meanwhile. */
typedef struct report {
    rlock_event event;
    rl_hold *hold;
    rl_group *group; /* NULL: it is none's */
    bool closed;     /* lost with its client */
    char message[256];
} report;

static void describe_locked(rl_engine *e, report *r, rlock_event_type type)
    RL_REQUIRES(&e->holds.mutex)
{
    const rl_hold *h = r->hold;
    const rl_fault *failure = &e->watchdog.failure;
    rlock_event *ev = &r->event;
    *ev = (rlock_event){.type = type,
                        .name = rl_hold_name(h),
                        .name_len = h->name_len,
                        .token = h->token,
                        .count = h->count,
                        .message = r->message};
    r->message[0] = '\0';
    switch (type) {
    case RLOCK_EVENT_LOST:
        ev->status = RLOCK_LOST;
        ev->elapsed_ms = (h->ended_us - h->began_us) / 1000;
        snprintf(r->message, sizeof r->message, "%s%s",
                 h->group && h->group->quorum
                     ? "too few nodes are left that hold it; the last one: "
                     : "",
                 rl_loss_text(h->loss));
        break;
    case RLOCK_EVENT_ABANDONED:
        ev->elapsed_ms = (h->ended_us - h->began_us) / 1000;
        snprintf(r->message, sizeof r->message,
                 "the owning thread ended while holding it");
        break;
    case RLOCK_EVENT_RENEW_FAILED:
        ev->status = failure->status;
        snprintf(r->message, sizeof r->message, "%s: %s", e->source->server,
                 failure->text);
        break;
    default:
        break;
    }
}

/* The first hold with something to report; others have been released. */
static rl_hold *first_report_locked(rl_holds *t) RL_REQUIRES(&t->mutex)
{
    rl_hold *h;
    while ((h = TAILQ_FIRST(&t->reports)) != NULL && !h->reports) {
        rl_hold_unqueue_locked(t, h);
        rl_hold_unref_locked(t, h);
    }
    return h;
}

static bool next_report_locked(rl_engine *e, report *r)
    RL_REQUIRES(&e->holds.mutex)
{
    rl_hold *h = first_report_locked(&e->holds);
    if (!h)
        return false;
    unsigned type = 0;
    while (!(h->reports & 1u << type))
        type++;
    h->reports &= ~(1u << type);
    r->hold = h;
    r->group = h->group;
    r->closed = h->loss == RL_LOSS_CLOSED;
    describe_locked(e, r, (rlock_event_type)type);
    if (h->reports)
        h->refs++;
    else
        rl_hold_unqueue_locked(&e->holds, h);
    return true;
}

static void deliver_reconnected(rl_engine *e)
{
    rlock_event ev = {.type = RLOCK_EVENT_RECONNECTED,
                      .name = "",
                      .message = e->source->server};
    rl_emit(e, &ev);
}

/* What is the group's goes to its home, if anybody there wants to know. */
static void tell(rl_engine *e, const report *r)
{
    rl_group *g = r->group;
    bool of_group = r->event.type == RLOCK_EVENT_LOST ||
                    r->event.type == RLOCK_EVENT_ABANDONED;
    bool told = g && of_group && rl_group_tell(g, &r->event);
    if (!told && !r->closed)
        rl_emit(e, &r->event);
}

/* Delivers one event, unlocked. False: there was none. */
static bool deliver_locked(rl_engine *e) RL_REQUIRES(&e->holds.mutex)
{
    report r;
    if (e->holds.reconnected) {
        e->holds.reconnected = false;
        rl_mutex_unlock(&e->holds.mutex);
        deliver_reconnected(e);
        rl_mutex_lock(&e->holds.mutex);
        return true;
    }
    if (!next_report_locked(e, &r))
        return false;
    rl_mutex_unlock(&e->holds.mutex);
    tell(e, &r);
    rl_mutex_lock(&e->holds.mutex);
    rl_hold_unref_locked(&e->holds, r.hold);
    return true;
}

static void *run(void *arg)
{
    rl_engine *e = arg;
    rl_mutex_lock(&e->holds.mutex);
    for (;;) {
        rl_holds_expire_locked(&e->holds, rl_now_us());
        if (deliver_locked(e))
            continue;
        if (e->holds.stopping)
            break;
        rl_heap_node *first = rl_heap_first(&e->holds.expiry);
        e->holds.notifier_sleeps_us = first ? first->due_us : RL_NEVER;
        rl_cond_wait_until(&e->holds.notifier, &e->holds.mutex,
                           e->holds.notifier_sleeps_us);
        e->holds.notifier_sleeps_us = 0;
    }
    rl_mutex_unlock(&e->holds.mutex);
    return NULL;
}

bool rl_notifier_start(rl_engine *e)
{
    rl_thread *t = &e->notifier.thread;
    return t->started || rl_thread_start(t, "rlock-notifier", run, e);
}

void rl_notifier_stop(rl_engine *e)
{
    rl_thread_join(&e->notifier.thread);
}
