#include "wire/script.h"

#define LAYOUT(L, TAKE_MANY, FREE_MANY)                                        \
    {                                                                          \
        RL_SCRIPT_##L##_ACQUIRE, RL_SCRIPT_##L##_RELEASE,                      \
            RL_SCRIPT_##L##_RENEW, RL_SCRIPT_##L##_RENEW_MANY,                 \
            RL_SCRIPT_##L##_EXTEND, RL_SCRIPT_##L##_FORCE_RELEASE,             \
            RL_SCRIPT_##L##_INSPECT, RL_SCRIPT_##L##_DROP, TAKE_MANY,          \
            FREE_MANY, RL_GUARD_##L, false                                     \
    }

const rl_layout rl_layouts[RL_LAYOUTS] = {
    LAYOUT(HASH, RL_SCRIPT_HASH_TAKE_MANY, RL_SCRIPT_HASH_FREE_MANY),
    LAYOUT(STRING, RL_SCRIPT_STRING_TAKE_MANY, RL_SCRIPT_STRING_FREE_MANY),
    LAYOUT(TIMESTAMP, RL_SCRIPT_COUNT, RL_SCRIPT_COUNT),
    {RL_SCRIPT_FAIR_ACQUIRE, RL_SCRIPT_FAIR_RELEASE, RL_SCRIPT_HASH_RENEW,
     RL_SCRIPT_HASH_RENEW_MANY, RL_SCRIPT_HASH_EXTEND,
     RL_SCRIPT_HASH_FORCE_RELEASE, RL_SCRIPT_HASH_INSPECT, RL_SCRIPT_HASH_DROP,
     RL_SCRIPT_COUNT, RL_SCRIPT_COUNT, RL_GUARD_HASH, true}};

void rl_put_call(rl_bytes *to, rl_script_id script, bool whole, int keys,
                 int args)
{
    const rl_script *s = &rl_scripts[script];
    rl_put_array(to, (size_t)(3 + keys + args));
    if (whole) {
        rl_put_bytes(to, "EVAL", 4);
        rl_put_bytes(to, s->body, s->len);
    } else {
        rl_put_bytes(to, "EVALSHA", 7);
        rl_put_bytes(to, s->sha1, 40);
    }
    rl_put_number(to, keys);
}
