/*
 * What stays true: the slot is on the line until the last of the replies has
 * come, and its end is that of the command whose reply is next; so what the
 * line's failure means for the call is known as without a confirmation.
 */
#include "wire/replicas.h"

#include <stdlib.h>

#include "base/clock.h"
#include "wire/error.h"

/* As much of an attempt's time is left to the call itself. */
#define SHARE 2

static void fall_short(rl_confirm *c, rl_fault *f, const char *why)
{
    c->acked = -1;
    rl_fault_set(f, RLOCK_EQUORUM, 0, "replicas not known to have it: %s", why);
    f->transient = true;
}

static void put_wait(const rl_confirm *c, rl_bytes *to)
{
    rl_put_array(to, 3);
    rl_put_text(to, "WAIT");
    rl_put_number(to, c->replicas);
    rl_put_number(to, c->asked_ms);
}

void rl_confirm_push(rl_confirm *c, rl_slot *call, int64_t left_ms)
{
    rl_line *l = call->line;
    c->acked = -1;
    c->heard = c->untouched = false;
    c->asked_ms = rl_max(1, rl_min(c->wait_ms, left_ms / SHARE));
    c->kept = malloc(sizeof *c->kept);
    if (!c->kept)
        return;
    if (c->touch)
        c->touch(call, rl_line_begin(l));
    put_wait(c, rl_line_begin(l));
    if (rl_line_push(l, NULL))
        call->more = c->touch ? 2 : 1;
    c->end = l->written;
}

/* The call's own; behind it integers are to come. */
static void keep(rl_confirm *c, rl_slot *call, const rl_reply *r)
{
    c->heard = true;
    rl_reply_copy(c->kept, r);
    call->end = c->end;
    call->replies = RL_REPLY_BIT(REDIS_REPLY_INTEGER);
}

/* WAIT's, or an error in its place. */
static void count(rl_confirm *c, const rl_reply *r, rl_fault *f)
{
    rl_fault why;
    if (rl_reply_is(r, REDIS_REPLY_ERROR)) {
        rl_error_reply(r, &why);
        fall_short(c, f, why.text);
        return;
    }
    if (c->untouched) {
        fall_short(c, f, "there was nothing to write");
        return;
    }
    c->acked = (int)rl_max(0, rl_min(r->top.integer, INT16_MAX));
    if (rl_confirm_is_enough(c))
        return;
    rl_fault_set(f, RLOCK_EQUORUM, 0, "%d of %d replicas within %lld ms",
                 c->acked, c->replicas, (long long)c->asked_ms);
    f->transient = true;
}

bool rl_confirm_keeps(rl_confirm *c, rl_slot *call, const rl_reply *r,
                      rl_fault *f)
{
    bool more = call->line != NULL;
    if (!c->heard && more)
        keep(c, call, r);
    else if (!c->heard)
        fall_short(c, f, "out of memory");
    else if (more && r->top.integer != 1)
        c->untouched = true;
    else if (!more)
        count(c, r, f);
    return more;
}

rl_reply *rl_confirm_end(rl_confirm *c)
{
    rl_reply *kept = c->kept;
    bool heard = c->heard;
    c->kept = NULL;
    c->heard = false;
    if (heard)
        return kept;
    free(kept);
    return NULL;
}

void rl_confirm_broke(rl_confirm *c, const rl_fault *why, rl_fault *f)
{
    rl_fault line = *why;
    fall_short(c, f, line.text);
}
