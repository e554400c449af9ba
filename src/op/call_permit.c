#include "op/call_permit.h"

#include "op/call_words.h"
#include "wire/keys.h"

static void put_counter(rl_bytes *to, const char *name, size_t len)
{
    rl_put_bytes(to, name, len);
    rl_put_permits_key(to, name, len);
}

/* Of what may grant to those who wait. */
static void put_semaphore(rl_bytes *to, const rl_hold *h)
{
    put_counter(to, rl_hold_name(h), h->name_len);
    rl_put_tombstone_of(to, h);
    rl_put_line_keys(to, rl_hold_name(h), h->name_len);
}

static void put_freed_channel(rl_bytes *to, const rl_hold *h)
{
    rl_put_redisson_semaphore_channel(to, rl_hold_name(h), h->name_len);
}

void rl_call_take_permits(rl_bytes *to, bool whole, const rl_hold *h,
                          const rl_request *r)
{
    bool stands = *r->bell != '\0';
    rl_put_call(to, RL_SCRIPT_PERMIT_ACQUIRE, whole, 5, stands ? 8 : 5);
    put_semaphore(to, h);
    rl_put_holder(to, h);
    rl_put_number(to, r->lease_ms);
    rl_put_number(to, h->record->weight);
    rl_put_number(to, r->permits);
    rl_put_number(to, h->record->idle_s);
    if (!stands)
        return;
    rl_put_bell_in_line(to, h, r);
    rl_put_number(to, r->ticket);
    rl_put_number(to, r->beat_us);
}

void rl_call_free_permits(rl_bytes *to, bool whole, const rl_hold *h)
{
    rl_put_call(to, RL_SCRIPT_PERMIT_RELEASE, whole, 5, 5 + h->sharded);
    put_semaphore(to, h);
    rl_put_holder(to, h);
    put_freed_channel(to, h);
    rl_put_number(to, h->record->weight);
    rl_put_number(to, h->unknown ? rl_tombstone_ms(h) : 0);
    rl_put_number(to, h->record->idle_s);
    rl_put_publish(to, h->sharded);
}

static void put_permits_of(rl_bytes *to, const rl_hold *h)
{
    rl_put_number(to, h->record->weight);
    rl_put_number(to, h->record->idle_s);
}

void rl_call_keep_permits(rl_bytes *to, rl_script_id script, bool whole,
                          const rl_hold *h, int64_t lease_ms)
{
    rl_put_call(to, script, whole, 2, 4);
    put_counter(to, rl_hold_name(h), h->name_len);
    rl_put_holder(to, h);
    rl_put_number(to, lease_ms);
    put_permits_of(to, h);
}

void rl_call_keep_many_permits(rl_bytes *to, bool whole,
                               const rl_hold *const *h, size_t n,
                               int64_t lease_ms)
{
    rl_put_call(to, RL_SCRIPT_PERMIT_RENEW_MANY, whole, 2 * (int)n,
                1 + 3 * (int)n);
    for (size_t i = 0; i < n; i++)
        put_counter(to, rl_hold_name(h[i]), h[i]->name_len);
    rl_put_number(to, lease_ms);
    for (size_t i = 0; i < n; i++) {
        rl_put_holder(to, h[i]);
        put_permits_of(to, h[i]);
    }
}

void rl_call_add_permits(rl_bytes *to, bool whole, const rl_hold *h)
{
    rl_put_call(to, RL_SCRIPT_PERMIT_ADD, whole, 5, 5 + h->sharded);
    put_semaphore(to, h);
    rl_put_number(to, (int64_t)h->token);
    rl_put_number(to, h->lease_ms);
    rl_put_number(to, h->record->idle_s);
    rl_put_number(to, RL_MARK_MS);
    put_freed_channel(to, h);
    rl_put_publish(to, h->sharded);
}

void rl_call_available(rl_bytes *to, bool whole, const rl_target *what)
{
    rl_put_call(to, RL_SCRIPT_PERMIT_AVAILABLE, whole, 2, 1);
    put_counter(to, what->name, what->len);
    rl_put_number(to, what->semaphore->permits);
}
