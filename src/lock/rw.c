/*
 * A read-write lock is two ordinary handles, which differ in their layout
 * (wire/script.h): its scripts say what each side excludes. Here is how they are
 * made, and what is asked of both at once.
 */
#include <rlock/rw.h>

#include <string.h>

#include "base/options.h"
#include "lock/lock.h"

static rlock_status make_both(rlock_client *cl, const void *name, size_t len,
                              const rlock_lock_options *o, rlock **read,
                              rlock **write)
{
    rlock_status s = RLOCK_OK;
    if (read)
        s = rl_lock_make(cl, name, len, RL_LAYOUT_READ, o, read);
    if (write && s == RLOCK_OK)
        s = rl_lock_make(cl, name, len, RL_LAYOUT_WRITE, o, write);
    if (read && s != RLOCK_OK) {
        rlock_free(*read);
        *read = NULL;
    }
    return s;
}

rlock_status rlock_rw_new_ex(rlock_client *cl, const void *name, size_t len,
                             const rlock_lock_options *opts, rlock **read,
                             rlock **write)
{
    rlock_lock_options o;
    if (!read && !write)
        return rl_error_set(RLOCK_EINVAL, 0, "read and write are NULL");
    if (read)
        *read = NULL;
    if (write)
        *write = NULL;
    rlock_status s = rl_lock_check_new(cl, name, len);
    if (s == RLOCK_OK)
        s = rl_lock_read_options(&o, opts);
    if (s == RLOCK_OK && (o.layout != RLOCK_LAYOUT_HASH || o.no_tokens))
        s = rl_error_set(RLOCK_ENOTSUP, 0,
                         "a read-write lock is of the hash layout, and has "
                         "tokens");
    return s == RLOCK_OK ? make_both(cl, name, len, &o, read, write) : s;
}

rlock_status rlock_rw_new(rlock_client *cl, const char *name, rlock **read,
                          rlock **write)
{
    return rlock_rw_new_ex(cl, name, name ? strlen(name) : 0, NULL, read,
                           write);
}

/* --- how it is had -------------------------------------------------------- */

static rlock_status ask(rlock *lk, rlock_rw_state *out)
{
    int cancel;
    rl_part x;
    rlock_status s = rl_lock_enter(lk, &cancel);
    if (s != RLOCK_OK)
        return s;
    rl_part_rw_state(&x, rl_lock_core(lk), &lk->target, out, rl_now_us());
    s = rl_lock_ask(lk, &x);
    rl_lock_leave(lk, cancel);
    return s;
}

rlock_status rlock_rw_inspect(rlock *either, rlock_rw_state *out)
{
    rlock_rw_state state = {0};
    if (!either || !out)
        return rl_null_pointer(either ? "out" : "the lock");
    if (either->kind != &rl_single ||
        !rl_layout_is_side(rl_target_layout(&either->target)))
        return rl_error_set(RLOCK_EINVAL, 0,
                            "it is no side of a read-write lock");
    size_t size = out->size;
    state.size = size;
    if (!rl_struct_fill(out, size, &state, sizeof state, sizeof state))
        return rl_error_set(RLOCK_EINVAL, 0,
                            "no rlock_rw_state has %zu bytes (use "
                            "RLOCK_RW_STATE_INIT)",
                            size);
    rlock_status s = ask(either, &state);
    rl_struct_fill(out, size, &state, sizeof state, sizeof state);
    return s;
}
