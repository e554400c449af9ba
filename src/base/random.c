#include "base/random.h"

#include <unistd.h>
#include <uuid/uuid.h>

#include "base/clock.h"
#include "base/os.h"

/*
 * libuuid formats; the bytes are drawn here, because uuid_generate_random()
 * calls srandom(), which would change the host program's random() sequence.
 */
bool rl_uuid_new(char out[RL_UUID_LEN + 1])
{
    uuid_t id;
    if (!rl_os_random(id, sizeof id))
        return false;
    id[6] = (unsigned char)((id[6] & 0x0f) | 0x40); /* RFC 4122: version 4 */
    id[8] = (unsigned char)((id[8] & 0x3f) | 0x80); /* and its variant */
    uuid_unparse_lower(id, out);
    return true;
}

/* A forked child has a copy, and would draw what its siblings draw. */
static _Thread_local struct {
    uint64_t state;
    pid_t pid; /* 0: not seeded yet */
} jitter;

int64_t rl_random_below(int64_t limit)
{
    pid_t pid = getpid();
    if (jitter.pid != pid) {
        jitter.pid = pid;
        jitter.state ^= (uint64_t)rl_now_us() ^ (uintptr_t)&jitter ^
                        (uint64_t)rl_os_thread_id() << 40;
    }
    jitter.state = jitter.state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((jitter.state >> 33) % (uint64_t)limit);
}

int64_t rl_jitter(int64_t value)
{
    int64_t span = value / 4;
    return span > 0 ? value - span + rl_random_below(2 * span + 1) : value;
}
