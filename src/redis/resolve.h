/* Name look-up with a deadline, which getaddrinfo() does not have. */
#ifndef RL_REDIS_RESOLVE_H
#define RL_REDIS_RESOLVE_H

#include <netdb.h>

#include "base/error.h"

/*
 * RLOCK_OK: *out is to be freed with freeaddrinfo(); RLOCK_EIO: no such host,
 * or not in time.
 */
rlock_status rl_resolve(const char *host, int port, int64_t deadline_us,
                        struct addrinfo **out, rl_fault *f);

#endif
