/*
 * Renewals, and votes, that replicas have to have (min_replicas). What the
 * server has answered yes is not believed yet: it is kept, and the replicas are
 * asked once for all that has come, by a touch of one of these locks and a WAIT
 * behind it (wire/replicas.h). Whatever is answered before that WAIT is, was
 * executed before it, so one is enough for all calls that are in flight
 * together; what comes later asks again.
 *
 * What stays true: while batches are kept, the replicas are being asked, on the
 * line that these came over; so they end with the answer, or with the line.
 */
#include "op/call.h"
#include "run/batch.h"

/* What the touch of a lock has come to. */
typedef enum touching { BROKE, GONE, TOUCHED } touching;

/* They have not said of so many what this hold wants; or they were not asked,
   as it was another lock that has gone: by its owner's unlock, say. */
static bool is_asked_again(const rl_hold *h, const rl_batch *by, touching how)
{
    return how == TOUCHED ? h->replicas > by->replicas
                          : how == GONE && h != by->hold[0];
}

static void settle(rl_batch *b, const rl_batch *by, touching how,
                   const rl_fault *f, int64_t now_us)
{
    size_t n = b->n;
    b->n = 0;
    for (size_t i = 0; i < n; i++) {
        rl_hold *h = b->hold[i];
        if (is_asked_again(h, by, how)) {
            b->hold[b->n++] = h;
            continue;
        }
        bool has = how == TOUCHED && by->ask.confirm.acked >= h->replicas;
        if (!has)
            rl_add(&b->node->e->core.stats.replica_shortfalls, 1);
        b->verb->confirmed(b, h, has ? NULL : f, now_us);
    }
    if (b->n > 0)
        rl_batch_await_replicas(b, now_us);
    else
        rl_batch_put(b);
}

static void note_touch(rl_batch *by, const rl_reply *r, const rl_fault *why,
                       int64_t now_us)
{
    rl_keeper *k = &by->node->keeper;
    rl_batch *each = k->unconfirmed, *next;
    touching how = !r ? BROKE : r->top.integer == 1 ? TOUCHED : GONE;
    rl_fault f = r ? k->fault : *why; /* it is answered, and perhaps short */
    if (how == GONE)
        rl_fault_set(&f, RLOCK_EQUORUM, 0,
                     "replicas not known to have it: the lock has gone");
    k->unconfirmed = NULL;
    k->confirming = false;
    for (; each; each = next) {
        next = each->next;
        settle(each, by, how, &f, now_us);
    }
    rl_holds_put(&by->node->e->core.holds, by->hold[0]);
    by->n = 0;
}

static rl_script_id script(const rl_batch *b)
{
    return rl_touch_of(b->hold[0]);
}

static void write_touch(const rl_batch *b, rl_bytes *to)
{
    rl_call_touch(to, b->ask.whole, b->hold[0]);
}

static const rl_batch_verb touch = {
    .script = script, .write = write_touch, .note = note_touch};

/* No replica is asked: out of memory. */
static void give_up(rl_batch *b, int64_t now_us)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_ENOMEM, 0, "replicas not asked: out of memory");
    b->node->keeper.unconfirmed = NULL;
    for (size_t i = 0; i < b->n; i++)
        b->verb->confirmed(b, b->hold[i], &f, now_us);
    b->n = 0;
    rl_batch_put(b);
}

/* It has just been answered, so its first lock is there. */
static void ask(rl_batch *first, int64_t now_us)
{
    rl_node *node = first->node;
    rl_hold *h = first->hold[0];
    rl_batch *b = rl_batch_take(node, &touch);
    if (!b) {
        give_up(first, now_us);
        return;
    }
    b->detour = first->detour;
    b->hold[b->n++] = h;
    b->replicas = h->replicas;
    rl_mutex_lock(&node->e->core.holds.mutex);
    h->refs++;
    rl_mutex_unlock(&node->e->core.holds.mutex);
    node->keeper.confirming = true;
    rl_batch_push(b, now_us);
}

void rl_batch_await_replicas(rl_batch *b, int64_t now_us)
{
    rl_keeper *k = &b->node->keeper;
    b->next = k->unconfirmed;
    k->unconfirmed = b;
    if (!k->confirming)
        ask(b, now_us);
}
