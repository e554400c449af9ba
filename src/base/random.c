#include "base/random.h"

#include <errno.h>
#include <sys/random.h>
#include <uuid/uuid.h>

#include "base/clock.h"

/*
 * libuuid formats; the bytes are drawn here, because uuid_generate_random()
 * calls srandom(), which would change the host program's random() sequence.
 */
bool rl_uuid_new(char out[RL_UUID_LEN + 1])
{
    uuid_t id;
    ssize_t got;
    do {
        got = getrandom(id, sizeof id, 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof id)
        return false;
    id[6] = (unsigned char)((id[6] & 0x0f) | 0x40); /* RFC 4122: version 4 */
    id[8] = (unsigned char)((id[8] & 0x3f) | 0x80); /* and its variant */
    uuid_unparse_lower(id, out);
    return true;
}

static _Thread_local uint64_t jitter_state;

int64_t rl_random_below(int64_t limit)
{
    if (jitter_state == 0)
        jitter_state = (uint64_t)rl_now_us() ^ (uintptr_t)&jitter_state;
    jitter_state = jitter_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((jitter_state >> 33) % (uint64_t)limit);
}

int64_t rl_jitter(int64_t value)
{
    int64_t span = value / 4;
    return span > 0 ? value - span + rl_random_below(2 * span + 1) : value;
}
