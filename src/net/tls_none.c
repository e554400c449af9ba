/* Built without OpenSSL: rediss:// is refused. */
#include "net/tls.h"
#include "rlock_config.h"

#ifndef RL_HAS_OPENSSL

rlock_status rl_tls_new(const rlock_options *o, rl_tls **out, rl_fault *f)
{
    (void)o;
    *out = NULL;
    return rl_fault_set(
        f, RLOCK_ENOTSUP, 0,
        "TLS (rediss://): this rlock was built without OpenSSL");
}

void rl_tls_free(rl_tls *t)
{
    (void)t;
}

void rl_tls_explain(rl_tls *t, rl_fault *f)
{
    (void)t, (void)f;
}

rlock_status rl_tls_shake_hands(rl_tls *t, int fd, const char *host,
                                int64_t deadline_us, rl_transport *out,
                                rl_fault *f)
{
    (void)t, (void)fd, (void)host, (void)deadline_us, (void)out;
    return rl_fault_set(f, RLOCK_ENOTSUP, 0, "built without OpenSSL");
}

#endif
