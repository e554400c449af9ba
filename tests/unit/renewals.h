/*
 * What the tests of renewals share: holds that are due, and the keeper's line,
 * which leads nowhere; the test says what comes over it.
 */
#ifndef UNIT_RENEWALS_H
#define UNIT_RENEWALS_H

#include "engine.h"

#define MOST 600

/* A call as a whole. */
#define REFUSED "-NOPERM No permissions to access a key\r\n"

typedef struct round {
    play p; /* who owns the holds */
    rl_engine e;
    uint8_t replicas; /* of the next hold */
    size_t n;
    rl_hold *h[MOST];
    char name[MOST][8];
} round;

static inline rl_line *line(round *r)
{
    return engine_line(&r->e);
}

static inline rl_holds *table(round *r)
{
    return &r->e.core.holds;
}

static inline void set_due(round *r, rl_hold *h)
{
    rl_mutex_lock(&table(r)->mutex);
    rl_hold_schedule_locked(table(r), h, r->p.now_us - MOST + (int64_t)r->n);
    rl_mutex_unlock(&table(r)->mutex);
}

/* One more that is held, and whose renewal is due at once. */
static inline void add_hold(round *r, rlock_layout layout)
{
    rl_uuid id;
    rl_core *c = &r->e.core;
    char *name = r->name[r->n];
    snprintf(name, sizeof r->name[0], "%zu", r->n);
    rl_target what = {.name = name,
                      .len = strlen(name),
                      .scope = layout,
                      .layout = (uint8_t)layout};
    EXPECT(rl_uuid_new(&id));
    rl_owner_record *room = rl_holds_make_room(&c->holds, &r->p.owner);
    rl_hold *h = rl_draft(c, room, &what, &id, RLOCK_WATCHDOG);
    EXPECT(h);
    h->replicas = r->replicas;
    rl_mutex_lock(&table(r)->mutex);
    rl_hold_grant_locked(table(r), h, 100, r->p.now_us, true, r->p.now_us);
    rl_mutex_unlock(&table(r)->mutex);
    r->h[r->n++] = h;
    set_due(r, h);
}

static inline void open_round(round *r, size_t n)
{
    memset(r, 0, sizeof *r);
    engine_open(&r->e, &r->p);
    for (size_t i = 0; i < n; i++)
        add_hold(r, RLOCK_LAYOUT_HASH);
}

static inline void cut(round *r)
{
    engine_cut(&r->e, r->p.now_us);
}

static inline void close_round(round *r)
{
    engine_close(&r->e, r->p.now_us);
    play_close_core(&r->e.core);
    play_close(&r->p);
}

static inline size_t times(const char *bytes, size_t n, const char *what)
{
    size_t found = 0, len = strlen(what);
    for (const char *at = bytes, *hit;
         (hit = memmem(at, n - (size_t)(at - bytes), what, len)) != NULL;
         at = hit + len)
        found++;
    return found;
}

/* The kernel takes what is to be sent: how many calls of the script it has. */
static inline size_t sends(round *r, rl_script_id script)
{
    const char *bytes;
    size_t n = rl_line_bytes(line(r), &bytes);
    size_t calls = n > 0 ? times(bytes, n, rl_scripts[script].sha1) : 0;
    rl_line_sent(line(r), n);
    return calls;
}

static inline size_t asks(round *r, rl_script_id script)
{
    rl_batches_push_due(&r->e.node, r->p.now_us);
    return sends(r, script);
}

static inline void answer(round *r, const char *reply)
{
    rl_line_feed(line(r), reply, strlen(reply), r->p.now_us);
}

static inline uint64_t renewed(const round *r)
{
    return atomic_load(&r->e.core.stats.renewals);
}

static inline uint64_t failed(const round *r)
{
    return atomic_load(&r->e.core.stats.renew_failures);
}

#define MANY   RL_SCRIPT_HASH_RENEW_MANY
#define SINGLY RL_SCRIPT_HASH_RENEW

#endif
