/*
 * What is asked about a semaphore in one call: what is added is a draft whose uuid
 * is its mark (op/mark.h), so asking again changes nothing. Permits are taken,
 * kept and given back as locks are (verb_acquire.c, verb_extend.c, verb_release.c).
 */
#include "op/permit.h"

#include "op/call_permit.h"
#include "op/mark.h"
#include "op/verb.h"

static void write_add(const rl_part *x, rl_bytes *to)
{
    rl_call_add_permits(to, x->ask.whole, x->hold);
}

static void write_available(const rl_part *x, rl_bytes *to)
{
    rl_call_available(to, x->ask.whole, x->what);
}

static const rl_verb add = {.write = write_add, .note = rl_note_code};
static const rl_verb available = {.write = write_available,
                                  .note = rl_note_code};

void rl_part_add_permits(rl_part *x, rl_core *c, rl_hold *draft, int64_t now_us)
{
    rl_part_begin_mark(x, c, &add, RL_SCRIPT_PERMIT_ADD, draft, now_us);
}

void rl_part_available(rl_part *x, rl_core *c, const rl_target *what,
                       int64_t now_us)
{
    rl_part_begin(x, c, &available, RL_SCRIPT_PERMIT_AVAILABLE, now_us);
    x->what = what;
}
