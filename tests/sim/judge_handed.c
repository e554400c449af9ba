/*
 * The judge of what threads hand over to each other: it goes past nobody who
 * has waited elsewhere for longer than the patience, and in a calm world whom
 * it was given to has it before long, or the server has it no more.
 */
#include <string.h>

#include "base/hash.h"
#include "judge.h"

/* Of lua/README.md. */
#define PATIENCE_US 2000

static void judge_patience(server *s, size_t name)
{
    world *w = s->w;
    rl_key key = rl_key_queue(w->lock[name].name, strlen(w->lock[name].name));
    word k = {key.text, key.len};
    const entry *e = store_find(&s->store, &k);
    double us = e && e->kind == KIND_ZSET
                    ? (double)server_now(s) - e->items[0].score
                    : 0;
    if (us > PATIENCE_US)
        judge_fail(w, "judge 5: %s is handed over, and one waits for %.0f us",
                   judge_name_of(w, name), us);
}

void judge_handing_over(owner *o, size_t name, const word *holder)
{
    handed *h = &o->handed[name];
    judge_patience(lock_server(o->p->w, name), name);
    memcpy(h->uuid, holder->at + holder->len - RL_UUID_LEN, RL_UUID_LEN);
    h->since_us = o->p->w->now_us;
}

static bool has_been_told(const owner *o, const handed *h)
{
    for (size_t i = o->count; i > 0; i--)
        if (memcmp(o->accounts[i - 1].uuid, h->uuid, RL_UUID_LEN) == 0)
            return true;
    return false;
}

static bool server_has(world *w, size_t name, const handed *h)
{
    server *s = lock_server(w, name);
    word key = {w->lock[name].name, strlen(w->lock[name].name)};
    s->store.now_us = server_now(s);
    const entry *e = store_find(&s->store, &key);
    for (size_t i = 0; e && e->kind == KIND_HASH && i < e->count; i++) {
        const text *t = &e->items[i].name;
        if (t->len > RL_UUID_LEN &&
            memcmp(t->at + t->len - RL_UUID_LEN, h->uuid, RL_UUID_LEN) == 0)
            return true;
    }
    return false;
}

/* A Multi lock tells its program when it has all members. */
void judge_handed(owner *o, size_t name)
{
    world *w = o->p->w;
    handed *h = &o->handed[name];
    if (h->since_us == 0)
        return;
    if (!w->set.calm || w->set.multi || has_been_told(o, h) ||
        !server_has(w, name, h))
        h->since_us = 0;
    else if (w->now_us - h->since_us >
             4 * (w->set.delay_us + w->set.latency_us) + 30 * MS)
        judge_fail(w,
                   "judge 1: %s was handed over to owner %u, who is not told",
                   judge_name_of(w, name), o->number);
}
