#include "op/call_side.h"

#include <string.h>

#include "op/call_words.h"
#include "wire/keys.h"

/* Only a reader has a mark. */
static bool is_marked(const rl_layout *l)
{
    return l->kind == RLOCK_KIND_READ;
}

int rl_side_keys(const rl_layout *l)
{
    return 1 + is_marked(l);
}

static void put_mark_of(rl_bytes *to, const rl_hold *h)
{
    char id[RL_HOLDER_MAX];
    if (!is_marked(rl_hold_layout(h)))
        return;
    rl_hold_write_id(h, id);
    rl_put_mark_key(to, rl_hold_name(h), h->name_len, id);
}

void rl_put_keys_of_sides(rl_bytes *to, const rl_hold *const *h, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rl_put_leases_key(to, rl_hold_name(h[i]), h[i]->name_len);
    for (size_t i = 0; i < n; i++)
        put_mark_of(to, h[i]);
}

/* Of acquire and release. */
static void put_keys(rl_bytes *to, const rl_hold *h)
{
    const char *name = rl_hold_name(h);
    rl_put_bytes(to, name, h->name_len);
    rl_put_token_key(to, name, h->name_len);
    rl_put_tombstone_of(to, h);
    rl_put_line_keys(to, name, h->name_len);
    rl_put_leases_key(to, name, h->name_len);
    put_mark_of(to, h);
}

/* Both sides of an owner are holds of its own; their ids begin alike. */
static void put_field(rl_bytes *to, const rl_hold *h, const rl_uuid *id,
                      bool writes)
{
    char field[RL_HOLDER_MAX + sizeof ":write"];
    size_t len = rl_hold_id_len(h);
    rl_hold_write_id(h, field);
    rl_uuid_write(id, field + len - RL_UUID_LEN);
    if (writes) {
        memcpy(field + len, ":write", 6);
        len += 6;
    }
    rl_put_bytes(to, field, len);
}

void rl_call_acquire_side(rl_bytes *to, bool whole, const rl_hold *h,
                          const rl_request *r)
{
    const rl_layout *l = rl_hold_layout(h);
    bool brief = r->level == 1 && !*r->bell && !r->joins;
    rl_put_call(to, l->acquire, whole, 6 + is_marked(l),
                brief ? 2 : 6 + r->joins);
    put_keys(to, h);
    rl_put_holder(to, h);
    rl_put_number(to, r->lease_ms);
    if (brief)
        return;
    rl_put_number(to, r->level);
    if (*r->bell)
        rl_put_bell_in_line(to, h, r);
    else
        rl_put_text(to, "");
    rl_put_number(to, r->ticket);
    rl_put_number(to, r->beat_us);
    if (r->joins)
        put_field(to, h, &r->other, l->kind == RLOCK_KIND_READ);
}

void rl_call_release_side(rl_bytes *to, bool whole, const rl_hold *h, int level)
{
    const rl_layout *l = rl_hold_layout(h);
    bool bury = level == 0 && h->unknown;
    bool brief = level == 0 && !bury && !h->sharded;
    rl_put_call(to, l->release, whole, 6 + is_marked(l),
                brief ? 2 : 4 + h->sharded);
    put_keys(to, h);
    rl_put_holder(to, h);
    rl_put_redisson_rw_channel(to, rl_hold_name(h), h->name_len);
    if (brief)
        return;
    rl_put_number(to, level);
    rl_put_number(to, bury ? rl_tombstone_ms(h) : 0);
    rl_put_publish(to, h->sharded);
}

void rl_call_lease_of_side(rl_bytes *to, rl_script_id script, bool whole,
                           const rl_hold *h, int64_t lease_ms, bool compare)
{
    const char *name = rl_hold_name(h);
    rl_put_call(to, script, whole, 3 + is_marked(rl_hold_layout(h)),
                compare ? 3 : 2);
    rl_put_bytes(to, name, h->name_len);
    rl_put_token_key(to, name, h->name_len);
    rl_put_leases_key(to, name, h->name_len);
    put_mark_of(to, h);
    rl_put_holder(to, h);
    rl_put_number(to, lease_ms);
    if (compare)
        rl_put_number(to, (int64_t)h->token);
}

void rl_call_renew_bare(rl_bytes *to, bool whole, const rl_hold *h,
                        int64_t lease_ms)
{
    rl_put_call(to, RL_SCRIPT_HASH_RENEW, whole, 1, 2);
    rl_put_bytes(to, rl_hold_name(h), h->name_len);
    put_field(to, h, &h->id, true);
    rl_put_number(to, lease_ms);
}

void rl_call_force_side(rl_bytes *to, bool whole, const rl_target *what)
{
    rl_put_call(to, rl_target_layout(what)->force_release, whole, 5,
                1 + what->sharded);
    rl_put_bytes(to, what->name, what->len);
    rl_put_token_key(to, what->name, what->len);
    rl_put_line_keys(to, what->name, what->len);
    rl_put_leases_key(to, what->name, what->len);
    rl_put_redisson_rw_channel(to, what->name, what->len);
    rl_put_publish(to, what->sharded);
}

/* No tombstone is asked for, so any key of the slot may stand in its place. */
void rl_call_release_of_side(rl_bytes *to, bool whole, const rl_target *what,
                             const char *holder_id)
{
    bool brief = !what->sharded, marked = is_marked(rl_target_layout(what));
    rl_put_call(to, rl_target_layout(what)->release, whole, 6 + marked,
                brief ? 2 : 5);
    rl_put_bytes(to, what->name, what->len);
    rl_put_token_key(to, what->name, what->len);
    rl_put_leases_key(to, what->name, what->len);
    rl_put_line_keys(to, what->name, what->len);
    rl_put_leases_key(to, what->name, what->len);
    if (marked)
        rl_put_mark_key(to, what->name, what->len, holder_id);
    rl_put_text(to, holder_id);
    rl_put_redisson_rw_channel(to, what->name, what->len);
    if (brief)
        return;
    rl_put_number(to, 0);
    rl_put_number(to, 0);
    rl_put_publish(to, what->sharded);
}
