#include "op/call.h"

#include <string.h>

#include "op/call_permit.h"
#include "op/call_side.h"
#include "op/call_words.h"
#include "wire/keys.h"

static void call_acquire_in_line(rl_bytes *to, bool whole, const rl_hold *h,
                                 const rl_request *r)
{
    if (h->record->weight) {
        rl_call_take_permits(to, whole, h, r);
        return;
    }
    if (rl_layout_is_side(rl_hold_layout(h))) {
        rl_call_acquire_side(to, whole, h, r);
        return;
    }
    const char *name = rl_hold_name(h);
    bool brief = r->level == 1 && !*r->bell;
    rl_put_call(to, rl_hold_layout(h)->acquire, whole, brief ? 5 : 6,
                brief ? 2 : 6);
    rl_put_bytes(to, name, h->name_len);
    rl_put_token_key(to, name, h->name_len);
    rl_put_tombstone_of(to, h);
    rl_put_line_keys(to, name, h->name_len);
    if (!brief)
        rl_put_queue_key(to, name, h->name_len);
    rl_put_holder(to, h);
    rl_put_number(to, r->lease_ms);
    if (brief)
        return;
    rl_put_number(to, r->level);
    rl_put_bell_in_line(to, h, r);
    rl_put_number(to, r->ticket);
    rl_put_number(to, r->beat_us);
}

void rl_call_acquire(rl_bytes *to, bool whole, const rl_hold *h,
                     const rl_request *r)
{
    const rl_layout *l = rl_hold_layout(h);
    if (l->line) {
        call_acquire_in_line(to, whole, h, r);
        return;
    }
    const char *name = rl_hold_name(h);
    bool brief = r->level == 1 && !*r->bell && !r->says_least;
    bool wants = r->wants && *r->bell;
    bool says_who = wants || (r->says_who && *r->bell);
    bool mints = !rl_layout_is_tokenless(l);
    int args = brief ? 2 : wants ? 7 : r->says_least ? 6 : 5;
    int keys = (brief ? 2 : says_who ? 4 : 3) + mints;
    rl_put_call(to, l->acquire, whole, keys, args);
    rl_put_bytes(to, name, h->name_len);
    if (mints)
        rl_put_token_key(to, name, h->name_len);
    rl_put_tombstone_of(to, h);
    if (!brief)
        rl_put_queue_key(to, name, h->name_len);
    if (says_who)
        rl_put_waits_key(to, name, h->name_len);
    rl_put_holder(to, h);
    rl_put_number(to, r->lease_ms);
    if (brief)
        return;
    rl_put_number(to, r->level);
    rl_put_bell(to, name, h->name_len, r->bell);
    rl_put_number(to, r->ticket);
    if (r->says_least)
        rl_put_number(to, (int64_t)r->least);
    else if (wants)
        rl_put_text(to, "");
    if (wants)
        rl_put_number(to, r->beat_us);
}

/* The queue of a quiet release is a key that is none. */
static void put_queue(rl_bytes *to, const rl_hold *h, bool quiet)
{
    if (quiet)
        rl_put_tombstone_of(to, h);
    else
        rl_put_queue_key(to, rl_hold_name(h), h->name_len);
}

static void put_channel(rl_bytes *to, const rl_hold *h, bool quiet)
{
    if (quiet)
        rl_put_text(to, "");
    else
        rl_put_redisson_channel(to, rl_hold_name(h), h->name_len);
}

/* What a release needs that grants to the first in line. */
static void put_keys_to_grant(rl_bytes *to, const char *name, size_t len)
{
    rl_put_token_key(to, name, len);
    rl_put_line_keys(to, name, len);
}

/* What a release needs that may grant to the first in the queue. */
static void put_keys_to_pass(rl_bytes *to, const char *name, size_t len)
{
    rl_put_waits_key(to, name, len);
    rl_put_token_key(to, name, len);
}

/* Counted down for the last time, and to whom it is granted then. */
static void call_release_that_grants(rl_bytes *to, bool whole, const rl_hold *h,
                                     const char *bell)
{
    const char *name = rl_hold_name(h);
    rl_put_call(to, rl_hold_layout(h)->release, whole, 5, 6);
    rl_put_bytes(to, name, h->name_len);
    put_queue(to, h, false);
    rl_put_tombstone_of(to, h);
    put_keys_to_pass(to, name, h->name_len);
    rl_put_holder(to, h);
    put_channel(to, h, false);
    rl_put_number(to, 0);
    rl_put_number(to, h->unknown ? rl_tombstone_ms(h) : 0);
    rl_put_text(to, h->sharded ? "SPUBLISH" : "PUBLISH");
    rl_put_bell(to, name, h->name_len, bell);
}

void rl_call_release(rl_bytes *to, bool whole, const rl_hold *h, int level,
                     bool quiet, const char *bell)
{
    if (h->record->weight) {
        rl_call_free_permits(to, whole, h);
        return;
    }
    if (h->stood && level == 0 && !quiet) {
        call_release_that_grants(to, whole, h, bell);
        return;
    }
    bool bury = level == 0 && h->unknown;
    bool brief = level == 0 && !bury && !h->sharded;
    const rl_layout *l = rl_hold_layout(h);
    if (l->line && rl_layout_is_side(l)) {
        rl_call_release_side(to, whole, h, level);
        return;
    }
    int keys = l->line ? 6 : brief ? 2 : 3;
    rl_put_call(to, l->release, whole, keys, brief ? 2 : 4 + h->sharded);
    rl_put_bytes(to, rl_hold_name(h), h->name_len);
    put_queue(to, h, quiet);
    if (l->line || !brief)
        rl_put_tombstone_of(to, h);
    if (l->line)
        put_keys_to_grant(to, rl_hold_name(h), h->name_len);
    rl_put_holder(to, h);
    put_channel(to, h, quiet);
    if (brief)
        return;
    rl_put_number(to, level);
    rl_put_number(to, bury ? rl_tombstone_ms(h) : 0);
    rl_put_publish(to, h->sharded);
}

void rl_call_drop(rl_bytes *to, bool whole, const rl_hold *h)
{
    rl_put_call(to, rl_hold_layout(h)->drop, whole, 1, 1);
    rl_put_bytes(to, rl_hold_name(h), h->name_len);
    rl_put_holder(to, h);
}

void rl_call_hand_over(rl_bytes *to, bool whole, const rl_hold *h,
                       const rl_hold *next, const rl_request *r,
                       int64_t patience_us)
{
    const char *name = rl_hold_name(h);
    bool mints = !rl_layout_is_tokenless(rl_hold_layout(next));
    int args = h->sharded ? 8 : r->keep || !mints ? 7 : 6;
    bool grants = h->stood || next->stood;
    rl_put_call(to, RL_SCRIPT_HASH_HANDOVER, whole, 4 + grants, args);
    rl_put_bytes(to, name, h->name_len);
    rl_put_token_key(to, name, h->name_len);
    rl_put_tombstone_of(to, next);
    rl_put_queue_key(to, name, h->name_len);
    if (grants)
        rl_put_waits_key(to, name, h->name_len);
    rl_put_holder(to, h);
    rl_put_holder(to, next);
    rl_put_number(to, r->lease_ms);
    rl_put_number(to, patience_us);
    put_channel(to, h, false);
    rl_put_bell(to, name, h->name_len, r->bell);
    if (!mints)
        rl_put_text(to, "-");
    else if (args > 6)
        rl_put_number(to, r->keep);
    rl_put_publish(to, h->sharded);
}

static void put_lease_call(rl_bytes *to, rl_script_id script, bool whole,
                           const rl_hold *h, int64_t lease_ms, bool compare,
                           bool keeps)
{
    if (h->record->weight) {
        rl_call_keep_permits(to, script, whole, h, lease_ms);
        return;
    }
    bool names_token = compare || keeps;
    const rl_layout *l = rl_hold_layout(h);
    if (l->line && rl_layout_is_side(l)) {
        rl_call_lease_of_side(to, script, whole, h, lease_ms, compare);
        return;
    }
    rl_put_call(to, script, whole, names_token ? 2 : 1, compare ? 3 : 2);
    rl_put_bytes(to, rl_hold_name(h), h->name_len);
    if (names_token)
        rl_put_token_key(to, rl_hold_name(h), h->name_len);
    rl_put_holder(to, h);
    rl_put_number(to, lease_ms);
    if (compare)
        rl_put_number(to, (int64_t)h->token);
}

void rl_call_renew(rl_bytes *to, bool whole, const rl_hold *h, int64_t lease_ms,
                   bool compare)
{
    put_lease_call(to, rl_hold_layout(h)->renew, whole, h, lease_ms, compare,
                   h->keeps);
}

rl_script_id rl_touch_of(const rl_hold *h)
{
    return h->record->weight ? RL_SCRIPT_PERMIT_TOUCH : RL_SCRIPT_TOUCH;
}

void rl_call_touch(rl_bytes *to, bool whole, const rl_hold *h)
{
    rl_put_call(to, rl_touch_of(h), whole, 1, 0);
    rl_put_bytes(to, rl_hold_name(h), h->name_len);
}

static void put_names(rl_bytes *to, const rl_hold *const *h, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rl_put_bytes(to, rl_hold_name(h[i]), h[i]->name_len);
}

static void put_holders(rl_bytes *to, const rl_hold *const *h, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rl_put_holder(to, h[i]);
}

void rl_call_renew_many(rl_bytes *to, bool whole, const rl_hold *const *h,
                        size_t n, int64_t lease_ms)
{
    if (h[0]->record->weight) {
        rl_call_keep_many_permits(to, whole, h, n, lease_ms);
        return;
    }
    const rl_layout *l = rl_hold_layout(h[0]);
    int sides = l->line && rl_layout_is_side(l) ? rl_side_keys(l) : 0, kept = 0;
    for (size_t i = 0; i < n; i++)
        kept += h[i]->keeps;
    rl_put_call(to, l->renew_many, whole, (int)n * (1 + sides) + kept,
                (int)n + 1);
    put_names(to, h, n);
    if (sides)
        rl_put_keys_of_sides(to, h, n);
    for (size_t i = 0; i < n; i++)
        if (h[i]->keeps)
            rl_put_token_key(to, rl_hold_name(h[i]), h[i]->name_len);
    rl_put_number(to, lease_ms);
    put_holders(to, h, n);
}

void rl_call_take_many(rl_bytes *to, bool whole, const rl_hold *const *h,
                       size_t n, int64_t lease_ms)
{
    rl_put_call(to, rl_hold_layout(h[0])->take_many, whole, 3 * (int)n,
                (int)n + 1);
    put_names(to, h, n);
    for (size_t i = 0; i < n; i++)
        rl_put_tombstone_of(to, h[i]);
    for (size_t i = 0; i < n; i++)
        rl_put_token_key(to, rl_hold_name(h[i]), h[i]->name_len);
    rl_put_number(to, lease_ms);
    put_holders(to, h, n);
}

void rl_call_free_many(rl_bytes *to, bool whole, const rl_hold *const *h,
                       size_t n)
{
    bool sharded = h[0]->sharded;
    rl_put_call(to, rl_hold_layout(h[0])->free_many, whole, 2 * (int)n,
                2 * (int)n + sharded);
    put_names(to, h, n);
    for (size_t i = 0; i < n; i++)
        put_queue(to, h[i], false);
    put_holders(to, h, n);
    for (size_t i = 0; i < n; i++)
        put_channel(to, h[i], false);
    rl_put_publish(to, sharded);
}

void rl_call_extend(rl_bytes *to, bool whole, const rl_hold *h,
                    int64_t lease_ms, bool compare)
{
    put_lease_call(to, rl_hold_layout(h)->extend, whole, h, lease_ms, compare,
                   false);
}

void rl_call_raise(rl_bytes *to, bool whole, const rl_hold *h, uint64_t token)
{
    rl_put_call(to, RL_SCRIPT_RAISE, whole, 1, 1);
    rl_put_token_key(to, rl_hold_name(h), h->name_len);
    rl_put_number(to, (int64_t)token);
}

void rl_call_waits(rl_bytes *to, bool whole, const char *name, size_t len,
                   bool in_line, rlock_kind kind)
{
    bool sides = kind == RLOCK_KIND_READ || kind == RLOCK_KIND_WRITE;
    bool permits = kind == RLOCK_KIND_PERMIT;
    rl_put_call(to, RL_SCRIPT_WAITS, whole,
                (in_line ? 5 : 3) + (sides || permits), 0);
    rl_put_bytes(to, name, len);
    rl_put_queue_key(to, name, len);
    rl_put_waits_key(to, name, len);
    if (in_line)
        rl_put_line_keys(to, name, len);
    if (sides)
        rl_put_leases_key(to, name, len);
    if (permits)
        rl_put_permits_key(to, name, len);
}

void rl_call_survey(rl_bytes *to, bool whole, const char *name, size_t len,
                    bool in_line, bool permits)
{
    bool line = in_line || permits;
    rl_put_call(to, RL_SCRIPT_SURVEY, whole, (line ? 5 : 3) + permits, 0);
    rl_put_bytes(to, name, len);
    rl_put_queue_key(to, name, len);
    rl_put_token_key(to, name, len);
    if (line)
        rl_put_line_keys(to, name, len);
    if (permits)
        rl_put_permits_key(to, name, len);
}

void rl_call_inspect(rl_bytes *to, bool whole, const rl_target *what,
                     const char *holder_id)
{
    bool side = rl_layout_is_side(rl_target_layout(what)),
         one = side && holder_id;
    rl_put_call(to, rl_target_layout(what)->inspect, whole, 1 + side, one);
    rl_put_bytes(to, what->name, what->len);
    if (side)
        rl_put_leases_key(to, what->name, what->len);
    if (one)
        rl_put_text(to, holder_id);
}

void rl_call_force_release(rl_bytes *to, bool whole, const rl_target *what)
{
    if (rl_layout_is_side(rl_target_layout(what))) {
        rl_call_force_side(to, whole, what);
        return;
    }
    rl_put_call(to, rl_target_layout(what)->force_release, whole, 2,
                1 + what->sharded);
    rl_put_bytes(to, what->name, what->len);
    rl_put_queue_key(to, what->name, what->len);
    rl_put_redisson_channel(to, what->name, what->len);
    rl_put_publish(to, what->sharded);
}

void rl_call_rw_state(rl_bytes *to, bool whole, const rl_target *what)
{
    rl_put_call(to, RL_SCRIPT_RW_STATE, whole, 3, 0);
    rl_put_bytes(to, what->name, what->len);
    rl_put_line_key(to, what->name, what->len);
    rl_put_leases_key(to, what->name, what->len);
}

/* No tombstone is asked for, so any key of the slot may stand in its place. */
void rl_call_release_of(rl_bytes *to, bool whole, const rl_target *what,
                        const char *holder_id)
{
    if (rl_layout_is_side(rl_target_layout(what))) {
        rl_call_release_of_side(to, whole, what, holder_id);
        return;
    }
    bool brief = !what->sharded, line = rl_target_layout(what)->line;
    int keys = line ? 6 : brief ? 2 : 3;
    rl_put_call(to, rl_target_layout(what)->release, whole, keys,
                brief ? 2 : 5);
    rl_put_bytes(to, what->name, what->len);
    rl_put_queue_key(to, what->name, what->len);
    if (line || !brief)
        rl_put_queue_key(to, what->name, what->len);
    if (line)
        put_keys_to_grant(to, what->name, what->len);
    rl_put_text(to, holder_id);
    rl_put_redisson_channel(to, what->name, what->len);
    if (brief)
        return;
    rl_put_number(to, 0);
    rl_put_number(to, 0);
    rl_put_publish(to, what->sharded);
}

void rl_call_leave(rl_bytes *to, bool whole, const char *name, size_t len,
                   const char *bell, bool wants)
{
    rl_put_call(to, RL_SCRIPT_LEAVE, whole, 3 + wants, 1);
    rl_put_bytes(to, name, len);
    rl_put_queue_key(to, name, len);
    rl_put_token_key(to, name, len);
    if (wants)
        rl_put_waits_key(to, name, len);
    rl_put_bell(to, name, len, bell);
}

/* --- latches -------------------------------------------------------------- */

static void put_latch_channel(rl_bytes *to, const char *name, size_t len,
                              bool sharded)
{
    rl_put_redisson_latch_channel(to, name, len);
    rl_put_publish(to, sharded);
}

void rl_call_count_down(rl_bytes *to, bool whole, const rl_hold *h)
{
    const char *name = rl_hold_name(h);
    rl_put_call(to, RL_SCRIPT_LATCH_COUNT_DOWN, whole, 3, 3 + h->sharded);
    rl_put_bytes(to, name, h->name_len);
    rl_put_queue_key(to, name, h->name_len);
    rl_put_tombstone_of(to, h);
    rl_put_number(to, (int64_t)h->token);
    rl_put_number(to, RL_MARK_MS);
    put_latch_channel(to, name, h->name_len, h->sharded);
}

void rl_call_latch_set(rl_bytes *to, bool whole, const rl_hold *h)
{
    const char *name = rl_hold_name(h);
    rl_put_call(to, RL_SCRIPT_LATCH_SET, whole, 2, 4 + h->sharded);
    rl_put_bytes(to, name, h->name_len);
    rl_put_tombstone_of(to, h);
    rl_put_number(to, (int64_t)h->token);
    rl_put_number(to, h->lease_ms);
    rl_put_number(to, RL_MARK_MS);
    put_latch_channel(to, name, h->name_len, h->sharded);
}

void rl_call_latch_look(rl_bytes *to, bool whole, const rl_target *what,
                        const char *bell)
{
    rl_put_call(to, RL_SCRIPT_LATCH_LOOK, whole, 2, 1);
    rl_put_bytes(to, what->name, what->len);
    rl_put_queue_key(to, what->name, what->len);
    rl_put_bell(to, what->name, what->len, bell);
}

void rl_call_latch_delete(rl_bytes *to, bool whole, const rl_target *what)
{
    rl_put_call(to, RL_SCRIPT_LATCH_DELETE, whole, 2, 1 + what->sharded);
    rl_put_bytes(to, what->name, what->len);
    rl_put_queue_key(to, what->name, what->len);
    put_latch_channel(to, what->name, what->len, what->sharded);
}
