#include "core/call.h"

static void add_key(rl_hold_call *c, int i, rl_key key)
{
    c->key[i] = key;
    rl_call_bytes(&c->call, c->key[i].text, key.len);
}

void rl_call_acquire(rl_hold_call *c, const rl_hold *h, int64_t lease_ms,
                     int level, const char *bell, int64_t ticket,
                     const uint64_t *least)
{
    const char *name = rl_hold_name(h);
    rl_call_init(&c->call, h->layout->acquire, 4);
    rl_call_bytes(&c->call, name, h->name_len);
    add_key(c, 0, rl_key_token(name, h->name_len));
    add_key(c, 1, rl_key_queue(name, h->name_len));
    add_key(c, 2, rl_key_tombstone(name, h->name_len, h->holder));
    rl_call_text(&c->call, h->holder);
    rl_call_number(&c->call, lease_ms);
    rl_call_number(&c->call, level);
    rl_call_text(&c->call, bell);
    rl_call_number(&c->call, ticket);
    if (least)
        rl_call_number(&c->call, (int64_t)*least);
}

void rl_call_release(rl_hold_call *c, const rl_hold *h, int level)
{
    const char *name = rl_hold_name(h);
    bool bury = level == 0 && h->doubtful;
    rl_call_init(&c->call, h->layout->release, 3);
    rl_call_bytes(&c->call, name, h->name_len);
    add_key(c, 0, rl_key_queue(name, h->name_len));
    add_key(c, 1, rl_key_tombstone(name, h->name_len, h->holder));
    rl_call_text(&c->call, h->holder);
    rl_call_number(&c->call, level);
    rl_call_number(&c->call, 0);
    rl_call_number(&c->call, bury ? rl_max(h->lease_ms, RL_DOUBT_MS) : 0);
    add_key(c, 2, rl_key_redisson(name, h->name_len));
    rl_call_bytes(&c->call, name, h->name_len);
}

static void about_lease(rl_hold_call *c, const rl_hold *h, rl_script_id script,
                        int64_t lease_ms)
{
    rl_call_init(&c->call, script, 1);
    rl_call_bytes(&c->call, rl_hold_name(h), h->name_len);
    rl_call_text(&c->call, h->holder);
    rl_call_number(&c->call, lease_ms);
}

void rl_call_renew(rl_hold_call *c, const rl_hold *h, int64_t lease_ms)
{
    about_lease(c, h, h->layout->renew, lease_ms);
}

void rl_call_extend(rl_hold_call *c, const rl_hold *h, int64_t lease_ms)
{
    about_lease(c, h, h->layout->extend, lease_ms);
}

void rl_call_raise(rl_hold_call *c, const rl_hold *h, uint64_t token)
{
    rl_call_init(&c->call, RL_SCRIPT_RAISE, 1);
    add_key(c, 0, rl_key_token(rl_hold_name(h), h->name_len));
    rl_call_number(&c->call, (int64_t)token);
}

void rl_call_inspect(rl_hold_call *c, const rl_target *what)
{
    rl_call_init(&c->call, what->layout->inspect, 1);
    rl_call_bytes(&c->call, what->name, what->len);
}

void rl_call_force_release(rl_hold_call *c, const rl_target *what)
{
    rl_call_init(&c->call, what->layout->force_release, 2);
    rl_call_bytes(&c->call, what->name, what->len);
    add_key(c, 0, rl_key_queue(what->name, what->len));
    add_key(c, 1, rl_key_redisson(what->name, what->len));
    rl_call_bytes(&c->call, what->name, what->len);
    /* Asked twice, it could free the lock of whoever was woken by the first. */
    c->call.only_once = true;
}
