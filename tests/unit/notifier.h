/* What the tests of the notifier share: a client's engine, whose events the program
   fetches. */
#ifndef UNIT_NOTIFIER_H
#define UNIT_NOTIFIER_H

#include "run/notifier.h"

#include "engine.h"

#define AGENT "agent 7"

typedef struct news {
    rlock_event_type type;
    rlock_status status;
    int count;
    uint64_t token;
    int64_t elapsed_ms;
    size_t name_len;
    char name[40], message[700], owner[RLOCK_LABEL_MAX + 1];
} news;

typedef struct desk {
    play p;
    rl_engine e;
    rl_owner owner;
    size_t told;
    news last[4];
    long tid;
    atomic_int called; /* on the thread of its own */
} desk;

static desk *at;

static inline void note(const rlock_event *ev)
{
    news *n = &at->last[at->told++ % 4];
    *n = (news){.type = ev->type,
                .status = ev->status,
                .count = ev->count,
                .token = ev->token,
                .elapsed_ms = ev->elapsed_ms,
                .name_len = ev->name_len};
    snprintf(n->name, sizeof n->name, "%s", ev->name);
    snprintf(n->message, sizeof n->message, "%s", ev->message);
    snprintf(n->owner, sizeof n->owner, "%s", ev->owner);
}

static inline void post(rl_core *c, const rlock_event *ev)
{
    EXPECT(c == &at->e.core);
    note(ev);
}

static inline rl_holds *holds(desk *d)
{
    return &d->e.core.holds;
}

static inline void open_desk(desk *d)
{
    memset(d, 0, sizeof *d);
    at = d;
    engine_open(&d->e, &d->p);
    EXPECT(rl_notifier_init(&d->e));
    d->e.core.set.dispatch_events = true;
    d->e.core.post_event = post;
    d->e.core.node = "unix:/here";
    d->owner = (rl_owner){.serial = 7, .tid = 11, .label = AGENT};
}

static inline void close_desk(desk *d)
{
    engine_close(&d->e, d->p.now_us);
    rl_notifier_fini(&d->e.notifier, false);
    play_close_core(&d->e.core);
    play_close(&d->p);
}

static inline rl_hold *hold_of(desk *d, const rl_owner *owner, rl_group *g,
                               int64_t lease_ms)
{
    rl_uuid id;
    rl_holds *t = holds(d);
    EXPECT(rl_uuid_new(&id));
    rl_owner_record *room = rl_holds_make_room(t, owner);
    rl_hold *h =
        rl_draft(&d->e.core, room, g ? &play_red : &play_job, &id, lease_ms);
    EXPECT(h);
    if (g) {
        rl_hold_join(h, g);
        rl_group_join(g, 0, d->p.now_us, RL_NEVER);
    }
    rl_mutex_lock(&t->mutex);
    rl_hold_grant_locked(t, h, 321, d->p.now_us, false, d->p.now_us);
    rl_mutex_unlock(&t->mutex);
    h->count = 3;
    return h;
}

static inline void report(desk *d, rl_hold *h, rlock_event_type type)
{
    rl_mutex_lock(&holds(d)->mutex);
    rl_hold_report_locked(holds(d), h, type);
    rl_mutex_unlock(&holds(d)->mutex);
}

static inline int64_t turn(desk *d)
{
    rl_watcher *w = &d->e.notifier.watcher;
    struct pollfd none;
    EXPECT_INT(w->look(w, &none, 1), 0);
    return w->turn(w, d->p.now_us);
}

#endif
