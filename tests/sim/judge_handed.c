/*
 * The judge of what threads hand over to each other: it goes past nobody who
 * has waited elsewhere for longer than the patience, or while so many of them
 * had it one after the other; and in a calm world whom it was given to has it
 * before long, or the server has it no more.
 */
#include <string.h>

#include "base/hash.h"
#include "judge.h"

/* Of lua/README.md. */
#define PATIENCE_US   10000
#define MOST_IN_A_ROW 32
#define MOST_OF_TURNS 64

static void judge_patience(server *s, size_t name)
{
    world *w = s->w;
    unsigned before = ++w->lock[name].handed_over;
    unsigned most = w->set.turn_ms > 0 ? MOST_OF_TURNS : MOST_IN_A_ROW;
    rl_key key = rl_key_queue(w->lock[name].name, strlen(w->lock[name].name));
    word k = {key.text, key.len};
    const entry *e = store_find(&s->store, &k);
    bool waits = e && e->kind == KIND_ZSET;
    double us = waits ? (double)server_now(s) - e->items[0].score : 0;
    /* The server's clock does not move on in every step. */
    if (us > 0 && before >= most)
        judge_fail(w, "judge 5: %s is handed over, after %u, and one waits",
                   judge_name_of(w, name), before);
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
