/*
 * Judge 12: when its clients are freed, no thread of the library is left, no
 * descriptor and no block of memory; when leases and tokens have run out, no
 * key. And what a client was to release with its close, it has released.
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"

static const text *holder_of(const entry *e)
{
    if (e->kind == KIND_STRING)
        return &e->value;
    return e->kind == KIND_HASH && e->count > 0 ? &e->items[0].name : NULL;
}

static bool begins(const text *id, const char *with, int n)
{
    return id->len > (size_t)n && memcmp(id->at, with, (size_t)n) == 0;
}

/* What a thread, or an owner, that has ended has left runs out by itself. */
static bool is_held_by(const program *g, int t, const entry *e)
{
    char of[100];
    const text *id = holder_of(e);
    int n = snprintf(of, sizeof of, "%s:%d:", g->p.host, g->p.pid);
    if (!id || !begins(id, of, n))
        return false;
    for (const hold *h = holds[t]; h; h = h->next)
        if (h->is_abandoned && is_holder(h, id))
            return false;
    return true;
}

/*
 * A Red lock is released with a quorum, and what the other nodes are asked may
 * be under way when the client is closed. That is known, and not judged.
 */
static void closed(program *g, int client, rlock_status status)
{
    if (!cfg.release_held || status != RLOCK_OK)
        return;
    for (int t = 0; t < things_n; t++) {
        server *s = server_in_office(client, things[t].name);
        server_set_clock(s);
        word key = {things[t].name, strlen(things[t].name)};
        const entry *e = store_find(&s->store, &key);
        /* What was released may come back with a replica. */
        if (e && !things[t].is_red && is_held_by(g, t, e) &&
            !was_shaken(t, w.now - 10 * S) &&
            !judge_was_replaced(t, w.now - 10 * S))
            finding("judge 12: %s is still held at server %d by a client that "
                    "was closed, and has released all",
                    things[t].name, client);
    }
}

static void ended(void)
{
    for (int i = 1; i < threads_n; i++)
        if (threads[i]->state != DONE)
            finding("judge 12: the thread %s is left", threads[i]->name);
    descriptors_tell();
    if (descriptors_open() > 0)
        finding("judge 12: %d descriptors are left open", descriptors_open());
    for (int i = 0; i < servers_n; i++)
        if (server_keys(&servers[i]) > 0)
            finding("judge 12: %zu keys are left at server %d",
                    server_keys(&servers[i]), i);
    if (memory_blocks() != 0)
        finding("judge 12: the library has %lld blocks of memory",
                (long long)memory_blocks());
}

const judge judge_rest = {.name = "rest", .closed = closed, .ended = ended};
