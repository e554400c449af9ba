/* Who holds a lock, and for how long: what is asked of a server. */
#include <string.h>

#include "base/options.h"
#include "lock/lock.h"
#include "op/verb_query.h"

/* RLOCK_NOT_HELD is an answer, or, to who needs a holder, an error. */
static rlock_status inspect(rlock *lk, rlock_holder *out, bool needed)
{
    int cancel;
    rlock_status s = rl_lock_enter(lk, &cancel);
    if (s != RLOCK_OK)
        return s;
    s = lk->kind->inspect(lk, out);
    if (s == RLOCK_NOT_HELD && needed)
        rl_lock_error(lk, s, "nobody holds it");
    rl_lock_leave(lk, cancel);
    return s;
}

/* Nothing is told until the server has answered. */
static rlock_status clear_holder(rlock_holder *out, size_t size)
{
    static const rlock_holder none;
    if (!out)
        return rl_null_pointer("out");
    if (rl_struct_fill(out, size, &none, sizeof none,
                       RL_SIZE_UP_TO(rlock_holder, owner)))
        return RLOCK_OK;
    return rl_error_set(RLOCK_EINVAL, 0,
                        "no rlock_holder has %zu bytes (use sizeof)", size);
}

rlock_status rlock_holder_info(rlock *lk, rlock_holder *out, size_t size)
{
    rlock_holder holder = {0};
    rlock_status s = clear_holder(out, size);
    if (s == RLOCK_OK)
        s = inspect(lk, &holder, true);
    if (s == RLOCK_OK)
        rl_struct_fill(out, size, &holder, sizeof holder, 0);
    return s;
}

static rlock_status read_wanted(rlock *lk, const char *holder_id,
                                rlock_holder *wanted)
{
    if (!lk || !holder_id)
        return rl_null_pointer(lk ? "the holder id" : "the lock");
    if (lk->target.layout == RLOCK_LAYOUT_TIMESTAMP)
        return rl_lock_error(lk, RLOCK_ENOTSUP, "a timestamp names no hold");
    return rl_lock_check_holder(lk, holder_id, wanted);
}

static rlock_status inspect_hold(rlock *lk, const rlock_holder *wanted,
                                 rlock_holder *out)
{
    memcpy(out->raw, wanted->raw, sizeof out->raw);
    rlock_status s = inspect(lk, out, true);
    if (s == RLOCK_OK && !rl_is_same_hold(out, wanted))
        s = rl_lock_error(lk, RLOCK_NOT_HELD, rl_not_forced_text(wanted->raw));
    return s;
}

/* The id is read first: it may be the one in *out. */
rlock_status rlock_hold_info(rlock *lk, const char *holder_id,
                             rlock_holder *out, size_t size)
{
    rlock_holder holder = {0}, wanted;
    rlock_status read = read_wanted(lk, holder_id, &wanted);
    rlock_status s = clear_holder(out, size);
    if (s == RLOCK_OK)
        s = read;
    if (s == RLOCK_OK)
        s = inspect_hold(lk, &wanted, &holder);
    if (s == RLOCK_OK)
        rl_struct_fill(out, size, &holder, sizeof holder, 0);
    return s;
}

rlock_status rlock_is_locked(rlock *lk, bool *out)
{
    rlock_holder holder = {0};
    if (!out)
        return rl_null_pointer("out");
    rlock_status s = inspect(lk, &holder, false);
    *out = s == RLOCK_OK;
    return s == RLOCK_NOT_HELD ? RLOCK_OK : s;
}

rlock_status rlock_ttl(rlock *lk, int64_t *out_ms)
{
    rlock_holder holder = {0};
    if (!out_ms)
        return rl_null_pointer("out_ms");
    rlock_status s = inspect(lk, &holder, false);
    *out_ms = s == RLOCK_OK ? holder.ttl_ms : -2;
    return s == RLOCK_NOT_HELD ? RLOCK_OK : s;
}
