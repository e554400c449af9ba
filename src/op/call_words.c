#include "op/call_words.h"

#include <string.h>

#include "wire/keys.h"

void rl_put_holder(rl_bytes *to, const rl_hold *h)
{
    char id[RL_HOLDER_MAX];
    rl_hold_write_id(h, id);
    rl_put_bytes(to, id, rl_hold_id_len(h));
}

void rl_put_tombstone_of(rl_bytes *to, const rl_hold *h)
{
    char uuid[RL_UUID_LEN + 1];
    rl_uuid_write(&h->id, uuid);
    rl_put_tombstone_key(to, rl_hold_name(h), h->name_len, uuid);
}

void rl_put_bell_in_line(rl_bytes *to, const rl_hold *h, const rl_request *r)
{
    char text[sizeof(rl_key) + 1] = "-";
    rl_key k = rl_key_bell(rl_hold_name(h), h->name_len, r->bell);
    memcpy(text + r->deaf, k.text, k.len);
    rl_put_bytes(to, text, k.len + r->deaf);
}

void rl_put_publish(rl_bytes *to, bool sharded)
{
    if (sharded)
        rl_put_text(to, "SPUBLISH");
}

int64_t rl_tombstone_ms(const rl_hold *h)
{
    return rl_min(rl_max(h->lease_ms, RL_LATE_MS), RL_TOMB_MOST_MS);
}
