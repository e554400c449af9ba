#include "dialer.h"

redisContext *connect_plainly(void *path)
{
    return redisConnectUnix(path);
}

static redisContext *dial(void *arg)
{
    dialer *d = arg;
    atomic_fetch_add(&d->dialed, 1);
    while (atomic_load(&d->hangs))
        test_pause_ms(1);
    return atomic_load(&d->spoiled) ? redisConnectUnixNonBlock(d->path)
                                    : redisConnectUnix(d->path);
}

scene scene_dialed(dialer *d, int64_t lease_ms, int64_t timeout_ms)
{
    scene s = scene_server(NULL);
    snprintf(d->path, sizeof d->path, "%s", server_path(s.sv));
    s.opts.connect = dial;
    s.opts.connect_arg = d;
    scene_client(&s, lease_ms, timeout_ms);
    return s;
}
