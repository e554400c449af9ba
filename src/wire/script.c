#include "wire/script.h"

#include <rlock/lock.h>

/* The scripts of a folder, but for acquire and release. */
#define REST_OF(L)                                                             \
    .renew = RL_SCRIPT_##L##_RENEW, .renew_many = RL_SCRIPT_##L##_RENEW_MANY,  \
    .extend = RL_SCRIPT_##L##_EXTEND,                                          \
    .force_release = RL_SCRIPT_##L##_FORCE_RELEASE,                            \
    .inspect = RL_SCRIPT_##L##_INSPECT, .drop = RL_SCRIPT_##L##_DROP,          \
    .guard = RL_GUARD_##L

#define ALL_OF(L)                                                              \
    .acquire = RL_SCRIPT_##L##_ACQUIRE, .release = RL_SCRIPT_##L##_RELEASE,    \
    REST_OF(L)

#define BUNDLES(L)                                                             \
    .take_many = RL_SCRIPT_##L##_TAKE_MANY,                                    \
    .free_many = RL_SCRIPT_##L##_FREE_MANY

#define NO_BUNDLES .take_many = RL_SCRIPT_COUNT, .free_many = RL_SCRIPT_COUNT

/* A bundle would pass the line. */
#define IN_LINE NO_BUNDLES, .line = true

const rl_layout rl_layouts[RL_LAYOUTS] = {
    [RLOCK_LAYOUT_HASH] = {ALL_OF(HASH), BUNDLES(HASH),
                           .scope = RLOCK_LAYOUT_HASH},
    [RLOCK_LAYOUT_STRING] = {ALL_OF(STRING), BUNDLES(STRING),
                             .scope = RLOCK_LAYOUT_STRING},
    [RLOCK_LAYOUT_TIMESTAMP] = {ALL_OF(TIMESTAMP), NO_BUNDLES,
                                .scope = RLOCK_LAYOUT_TIMESTAMP},
    [RL_LAYOUT_FAIR] = {.acquire = RL_SCRIPT_FAIR_ACQUIRE,
                        .release = RL_SCRIPT_FAIR_RELEASE,
                        REST_OF(HASH),
                        IN_LINE,
                        .scope = RLOCK_LAYOUT_HASH},
    [RL_LAYOUT_READ] = {ALL_OF(READ), IN_LINE, .scope = RL_LAYOUT_READ,
                        .kind = RLOCK_KIND_READ},
    [RL_LAYOUT_WRITE] = {ALL_OF(WRITE), IN_LINE, .scope = RL_LAYOUT_WRITE,
                         .kind = RLOCK_KIND_WRITE},
    [RL_LAYOUT_PERMIT] = {.acquire = RL_SCRIPT_PERMIT_ACQUIRE,
                          .release = RL_SCRIPT_PERMIT_RELEASE,
                          .renew = RL_SCRIPT_PERMIT_RENEW,
                          .renew_many = RL_SCRIPT_PERMIT_RENEW_MANY,
                          .extend = RL_SCRIPT_PERMIT_EXTEND,
                          .force_release = RL_SCRIPT_COUNT,
                          .inspect = RL_SCRIPT_COUNT,
                          .drop = RL_SCRIPT_COUNT,
                          .guard = RL_GUARD_COUNT,
                          IN_LINE,
                          .scope = RL_LAYOUT_PERMIT,
                          .kind = RLOCK_KIND_PERMIT},
    [RL_LAYOUT_TOKENLESS] = {.acquire = RL_SCRIPT_TOKENLESS_ACQUIRE,
                             .release = RL_SCRIPT_HASH_RELEASE,
                             REST_OF(HASH),
                             .take_many = RL_SCRIPT_COUNT,
                             .free_many = RL_SCRIPT_HASH_FREE_MANY,
                             .scope = RLOCK_LAYOUT_HASH}};

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
