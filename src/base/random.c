#include "base/random.h"

#include <uuid/uuid.h>

#include "base/clock.h"
#include "base/os.h"

/*
 * libuuid formats; the bytes are drawn here, because uuid_generate_random()
 * calls srandom(), which would change the host program's random() sequence.
 */
bool rl_uuid_new(rl_uuid *out)
{
    unsigned char *b = out->bytes;
    if (!rl_os_random(b, sizeof out->bytes))
        return false;
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* RFC 4122: version 4 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80); /* and its variant */
    return true;
}

void rl_uuid_write(const rl_uuid *id, char out[RL_UUID_LEN + 1])
{
    uuid_unparse_lower(id->bytes, out);
}

/* A forked child has a copy, and would draw what its siblings draw. */
static _Thread_local struct {
    uint64_t state;
    uint64_t process; /* 0: not seeded yet */
} jitter;

/* Where the kernel has none to give, when and who will do. */
static uint64_t draw_seed(void)
{
    uint64_t seed;
    if (rl_os_random(&seed, sizeof seed))
        return seed;
    return (uint64_t)rl_now_us() ^ (uint64_t)rl_os_thread_id() << 40;
}

int64_t rl_random_below(int64_t limit)
{
    uint64_t process = rl_os_process();
    if (jitter.process != process) {
        jitter.process = process;
        jitter.state = draw_seed();
    }
    jitter.state = jitter.state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((jitter.state >> 33) % (uint64_t)limit);
}

int64_t rl_jitter(int64_t value)
{
    int64_t span = value / 4;
    return span > 0 ? value - span + rl_random_below(2 * span + 1) : value;
}
