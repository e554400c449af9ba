/*
 * What stays true: the slot is on the line until the last of the replies has
 * come, and its end is that of the command whose reply is next; so what the
 * line's failure means for the call is known as without a confirmation.
 */
#include "wire/replicas.h"

#include <stdlib.h>

#include "base/clock.h"
#include "wire/ask.h"
#include "wire/error.h"

/* As much of an attempt's time is left to the call itself. */
#define SHARE 2

static void fall_short(rl_ask *a, const char *why)
{
    a->confirm.acked = -1;
    rl_fault_set(a->fault, RLOCK_EQUORUM, 0,
                 "replicas not known to have it: %s", why);
    a->fault->transient = true;
}

static void put_wait(const rl_confirm *c, rl_bytes *to)
{
    rl_put_array(to, 3);
    rl_put_text(to, "WAIT");
    rl_put_number(to, c->replicas);
    rl_put_number(to, c->asked_ms);
}

void rl_confirm_push(rl_ask *a, int64_t now_us)
{
    rl_confirm *c = &a->confirm;
    rl_line *l = a->line;
    int64_t left_ms = (a->until_us - now_us) / 1000;
    c->acked = -1;
    c->heard = c->untouched = false;
    c->asked_ms = rl_max(1, rl_min(c->wait_ms, left_ms / SHARE));
    c->kept = malloc(sizeof *c->kept);
    if (!c->kept)
        return;
    if (c->touch)
        c->touch(a, rl_line_begin(l));
    put_wait(c, rl_line_begin(l));
    if (rl_line_push(l, NULL))
        a->slot.more = c->touch ? 2 : 1;
    c->end = l->written;
}

/* The call's own; behind it integers are to come. */
static void keep(rl_ask *a, const rl_reply *r)
{
    a->confirm.heard = true;
    rl_reply_copy(a->confirm.kept, r);
    a->slot.end = a->confirm.end;
    a->slot.replies = RL_REPLY_BIT(REDIS_REPLY_INTEGER);
}

/* WAIT's, or an error in its place. */
static void count(rl_ask *a, const rl_reply *r)
{
    rl_confirm *c = &a->confirm;
    rl_fault f;
    if (rl_reply_is(r, REDIS_REPLY_ERROR)) {
        rl_error_reply(r, &f);
        fall_short(a, f.text);
        return;
    }
    if (c->untouched) {
        fall_short(a, "there was nothing to write");
        return;
    }
    c->acked = (int)rl_max(0, rl_min(r->top.integer, INT16_MAX));
    if (rl_ask_is_durable(a))
        return;
    rl_fault_set(a->fault, RLOCK_EQUORUM, 0, "%d of %d replicas within %lld ms",
                 c->acked, c->replicas, (long long)c->asked_ms);
    a->fault->transient = true;
}

bool rl_confirm_keeps(rl_ask *a, const rl_reply *r)
{
    rl_confirm *c = &a->confirm;
    bool more = a->slot.line != NULL;
    if (!c->heard && more)
        keep(a, r);
    else if (!c->heard)
        fall_short(a, "out of memory");
    else if (more && r->top.integer != 1)
        c->untouched = true;
    else if (!more)
        count(a, r);
    return more;
}

rl_reply *rl_confirm_end(rl_ask *a)
{
    rl_reply *kept = a->confirm.kept;
    bool heard = a->confirm.heard;
    a->confirm.kept = NULL;
    a->confirm.heard = false;
    if (heard)
        return kept;
    free(kept);
    return NULL;
}

void rl_confirm_broke(rl_ask *a, const rl_fault *why)
{
    rl_fault f = *why;
    fall_short(a, f.text);
}
