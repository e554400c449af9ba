/*
 * What is done to a latch, in one call each. A count-down, and a set, are
 * drafts whose uuid is their mark, so asking again changes nothing; a look
 * changes nothing but who is rung. A delete is sent once: asked twice, it could
 * take away what has been set since.
 */
#include "op/latch.h"

#include "op/call.h"
#include "op/mark.h"
#include "op/verb.h"

static void write_count_down(const rl_part *x, rl_bytes *to)
{
    rl_call_count_down(to, x->ask.whole, x->hold);
}

static void write_set(const rl_part *x, rl_bytes *to)
{
    rl_call_latch_set(to, x->ask.whole, x->hold);
}

static void write_delete(const rl_part *x, rl_bytes *to)
{
    rl_call_latch_delete(to, x->ask.whole, x->what);
}

static void write_look(const rl_part *x, rl_bytes *to)
{
    rl_call_latch_look(to, x->ask.whole, x->what, x->request.bell);
}

static void note_look(rl_part *x, const rl_reply *r, int64_t now_us)
{
    (void)now_us;
    long long left = r && r->count == 2 ? rl_item_number(&r->item[0]) : -1;
    x->ok = left >= 0;
    if (r && !x->ok)
        rl_fault_set(&x->fault, RLOCK_EIO, 0, "unexpected reply to a look");
    x->code = left;
    x->grant.rank = x->ok && rl_item_number(&r->item[1]) == 1 ? 0 : -1;
}

static const rl_verb count_down = {.write = write_count_down,
                                   .note = rl_note_code};
static const rl_verb set = {.write = write_set, .note = rl_note_code};
static const rl_verb open = {.write = write_delete, .note = rl_note_code};
static const rl_verb look = {.write = write_look, .note = note_look};

void rl_part_count_down(rl_part *x, rl_core *c, rl_hold *draft, int64_t now_us)
{
    rl_part_begin_mark(x, c, &count_down, RL_SCRIPT_LATCH_COUNT_DOWN, draft,
                       now_us);
}

void rl_part_latch_set(rl_part *x, rl_core *c, rl_hold *draft, int64_t now_us)
{
    rl_part_begin_mark(x, c, &set, RL_SCRIPT_LATCH_SET, draft, now_us);
}

void rl_part_latch_delete(rl_part *x, rl_core *c, const rl_target *what,
                          int64_t now_us)
{
    rl_part_begin(x, c, &open, RL_SCRIPT_LATCH_DELETE, now_us);
    x->ask.once = true;
    x->what = what;
}

void rl_part_latch_look(rl_part *x, rl_core *c, const rl_target *what,
                        int64_t now_us)
{
    rl_part_begin(x, c, &look, RL_SCRIPT_LATCH_LOOK, now_us);
    x->what = what;
}

bool rl_latch_is_owed(const rl_part *x)
{
    return !x->ok && (x->fault.status == RLOCK_EIO || x->fault.transient);
}
