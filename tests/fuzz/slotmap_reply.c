/*
 * What a server of a cluster may answer when it is asked who has which slot:
 * whatever it is, what was read of it is within bounds, and names nobody that
 * was not named.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "route/slotmap_reply.h"

static void answered(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    (void)s, (void)r, (void)now_us;
}

static void failed(rl_slot *s, bool whole, const rl_fault *why, int64_t now_us)
{
    (void)s, (void)whole, (void)why, (void)now_us;
}

static bool ask(rl_line *l, rl_slot *s, rl_sink *into, const uint8_t *at,
                size_t n)
{
    *s = (rl_slot){.answered = answered, .failed = failed};
    l->reply.sink = into;
    rl_put_text(rl_line_begin(l), "?");
    MUST(rl_line_push(l, s));
    rl_line_sent(l, (size_t)(l->written - l->sent));
    return rl_line_feed(l, (const char *)at, n, 0);
}

static void check(const rl_slotmap_reply *c)
{
    size_t claimed = 0;
    MUST(c->count <= RL_SLOT_OWNERS && c->ends <= 2);
    for (size_t i = 0; i < c->count; i++) {
        MUST(c->node[i].id[RL_NODE_ID] == '\0');
        MUST(memchr(c->node[i].host, 0, RL_PLACE_HOST));
        MUST(c->node[i].port >= 0 && c->node[i].port <= 65535);
    }
    for (size_t i = 0; i < RL_HASH_SLOTS; i++) {
        MUST(c->owner[i] <= c->count);
        MUST(!c->owner[i] || c->node[c->owner[i] - 1].port > 0);
        claimed += c->owner[i] != 0;
    }
    MUST(claimed == c->claimed);
}

/* The first byte says how much of the rest is the first answer. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static rl_slotmap_reply c;
    rl_line l;
    rl_slot s;
    rl_fault f;
    if (size == 0)
        return 0;
    size_t first = (size - 1) * data[0] / 255;
    MUST(rl_line_init(&l));
    rl_slotmap_reply_init(&c);
    if (ask(&l, &s, &c.nodes, data + 1, first) && !rl_line_first(&l))
        ask(&l, &s, &c.slots, data + 1 + first, size - 1 - first);
    check(&c);
    rl_fault_set(&f, RLOCK_EIO, 0, "the end");
    rl_line_fail(&l, &f, 0);
    rl_line_fini(&l);
    return 0;
}
