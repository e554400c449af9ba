/*
 * Whatever is under way on the connection is a question already, so a sign of
 * life is asked for only where nothing is; its answer is waited for as long as
 * a renewal's. Well before that ends, who knows of other servers is told that
 * this one is silent: mostly it takes longer to replace a server than to ask.
 */
#include "run/watch.h"

#include <string.h>

#include "hold/due.h"
#include "run/batch.h"

/* An answer is late after that, or after twice the time of the one before. */
#define PATIENCE_US         (150 * 1000)
#define LONGEST_PATIENCE_US (1000 * 1000)

#define TELL_US (1000 * 1000)

/* --- which run ------------------------------------------------------------ */

/* One that does not tell may be any. */
static void learn(rl_node *node, const char *run_id)
{
    rl_keeper *k = &node->keeper;
    char *known = k->watch.run_id;
    if (*run_id && strcmp(known, run_id) == 0)
        return;
    memcpy(known, run_id, strlen(run_id) + 1);
    rl_holds_doubt(&node->e->core.holds, node->queue, k->conn->made_us);
}

static rl_script_id identify(const rl_batch *b)
{
    (void)b;
    return RL_SCRIPT_IDENTIFY;
}

static void write_identify(const rl_batch *b, rl_bytes *to)
{
    rl_put_call(to, RL_SCRIPT_IDENTIFY, b->ask.whole, 0, 0);
}

static void identified(rl_batch *b, const rl_reply *r, const rl_fault *f,
                       int64_t now_us)
{
    bool told =
        r && r->count == 2 && r->item[0].str && r->item[0].len < RL_RUN_ID_MAX;
    (void)f;
    (void)now_us;
    if (!b->ask.line || !b->ask.line->failed) /* else the next one asks */
        learn(b->node, told ? r->item[0].str : "");
}

static const rl_batch_verb asks_who = {
    .script = identify, .write = write_identify, .note = identified};

/* Who opened the connection may have asked already. */
static void meet(rl_node *node, int64_t now_us)
{
    rl_watch *w = &node->keeper.watch;
    if (node->keeper.conn->known) {
        rl_run run = rl_server_run_read(&node->e->core.server_run);
        w->met = true;
        learn(node, run.id);
        return;
    }
    rl_batch *b = rl_batch_take(node, &asks_who);
    if (!b)
        return; /* out of memory; it is tried again before long */
    w->met = true;
    rl_batch_push(b, now_us);
}

/* --- a sign of life -------------------------------------------------------
 *
 * It is a write of nothing, beside something that is held: one that is a
 * replica now, has given the slot away, or is cut off from its cluster says so,
 * and the ask looks elsewhere for us.
 */

/* Whatever it answers, it lives. */
static void lives(rl_batch *b, const rl_reply *r, const rl_fault *f,
                  int64_t now_us)
{
    (void)f;
    if (r)
        b->node->keeper.watch.trip_us = now_us - b->ask.sent_us;
    rl_holds_put(&b->node->e->core.holds, b->hold[0]);
    b->n = 0;
}

/* A tombstone of no acquire. */
static void write_sign(const rl_batch *b, rl_bytes *to)
{
    static const char nobody[] = "00000000-0000-0000-0000-000000000000";
    const rl_hold *h = b->hold[0];
    rl_put_array(to, 3);
    rl_put_text(to, "PEXPIRE");
    rl_put_tombstone_key(to, rl_hold_name(h), h->name_len, nobody);
    rl_put_text(to, "1");
}

static const rl_batch_verb sign = {
    .script = identify, .write = write_sign, .note = lives};

/* Referenced. NULL: nothing is held there any more. */
static rl_hold *take_some_hold(rl_node *node)
{
    rl_holds *t = &node->e->core.holds;
    rl_hold *found = NULL;
    rl_mutex_lock(&t->mutex);
    for (size_t i = 0; i < t->expiry.count && !found; i++) {
        rl_hold *h = RL_CONTAINER(t->expiry.nodes[i], rl_hold, expiry);
        if (h->queue == node->queue)
            found = h;
    }
    if (found)
        found->refs++;
    rl_mutex_unlock(&t->mutex);
    return found;
}

static void ask_for_sign(rl_node *node, int64_t now_us)
{
    rl_hold *h = take_some_hold(node);
    rl_batch *b = h ? rl_batch_take(node, &sign) : NULL;
    if (!b) {
        rl_holds_put(&node->e->core.holds, h);
        return;
    }
    b->hold[b->n++] = h;
    rl_batch_push(b, now_us);
    b->ask.slot.replies = 0; /* it is no script */
}

void rl_watch_ask(rl_node *node, bool holds, bool due, int64_t now_us)
{
    const rl_conn *c = node->keeper.conn;
    bool looks = due && now_us >= c->heard_us + RL_WATCH_US;
    if (!node->keeper.watch.met)
        meet(node, now_us);
    if (holds && c->line.pending == 0 &&
        (looks || rl_pool_may_have_lost(node->pool, c)))
        ask_for_sign(node, now_us);
}

/* --- silence -------------------------------------------------------------- */

/* When it is alarming that the first answer has not come. */
static int64_t alarming_us(const rl_node *node, const rl_slot *first)
{
    const rl_keeper *k = &node->keeper;
    int64_t asked_us = RL_CONTAINER(first, rl_ask, slot)->sent_us;
    int64_t trips_us = rl_min(2 * k->watch.trip_us, LONGEST_PATIENCE_US);
    int64_t us =
        rl_max(asked_us, k->conn->heard_us) + rl_max(PATIENCE_US, trips_us);
    return rl_max(us, k->watch.told_us + TELL_US);
}

bool rl_watch_is_alarmed(rl_node *node, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    const rl_slot *first = rl_line_first(&k->conn->line);
    if (!first || now_us < alarming_us(node, first))
        return false;
    k->watch.told_us = now_us;
    return true;
}

int64_t rl_watch_due_us(const rl_node *node)
{
    const rl_conn *c = node->keeper.conn;
    const rl_slot *first = rl_line_first(&c->line);
    return first ? alarming_us(node, first) : c->heard_us + RL_WATCH_US;
}
