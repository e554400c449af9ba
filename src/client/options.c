/* What the program asked for: checked, and with defaults filled in. */
#include "client/options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/options.h"
#include "hold/stats.h"
#include "net/tls.h"
#include "op/verb_query.h"

#define CONNECT_TIMEOUT_MS 1000
#define COMMAND_TIMEOUT_MS 3000
#define WATCHDOG_LEASE_MS  30000
#define REPLICA_WAIT_MS    1000

#define SHORTEST_WATCHDOG_LEASE_MS 100
#define LONGEST_TURN_MS            1000

static rlock_status invalid(const char *what)
{
    return rl_error_set(RLOCK_EINVAL, 0, "bad option: %s", what);
}

/* NULL: it is called nothing. */
static bool may_be_called(const char *name)
{
    return !name || (*name && strlen(name) <= RL_HOST_MAX);
}

static bool is_time(int64_t ms)
{
    return ms >= 0 && ms <= RLOCK_LEASE_MAX_MS;
}

/* NULL: none is. */
static const char *wrong_time(const rlock_options *o)
{
    return !is_time(o->connect_timeout_ms)   ? "connect_timeout_ms"
           : !is_time(o->command_timeout_ms) ? "command_timeout_ms"
           : !is_time(o->replica_wait_ms)    ? "replica_wait_ms"
           : !is_time(o->warn_hold_ms)       ? "warn_hold_ms"
           : !is_time(o->warn_wait_ms)       ? "warn_wait_ms"
                                             : NULL;
}

rlock_status rl_client_options_read(rlock_options *to,
                                    const rlock_options *from)
{
    if (!rl_options_read(to, sizeof *to, from))
        return invalid("size (use RLOCK_OPTIONS_INIT; or the program was "
                       "built for a newer rlock)");
    if (to->uri && to->connect)
        return invalid("uri and connect are both given");
    if (to->connect && (to->credentials || rl_tls_is_asked_for(to)))
        return invalid("connect, with tls_... or credentials");
    if (to->tls_server_name &&
        (!*to->tls_server_name || *to->tls_server_name == '.' ||
         strlen(to->tls_server_name) > RL_HOST_MAX))
        return invalid("tls_server_name (1 to 255 bytes, not . first)");
    if ((unsigned)to->tls_verify > RLOCK_TLS_VERIFY_NONE)
        return invalid("tls_verify");
    if (wrong_time(to))
        return invalid(wrong_time(to));
    if (to->watchdog_lease_ms != 0 &&
        (to->watchdog_lease_ms < SHORTEST_WATCHDOG_LEASE_MS ||
         to->watchdog_lease_ms > RLOCK_LEASE_MAX_MS))
        return invalid("watchdog_lease_ms (at least 100)");
    if (to->max_hold_ms < 0)
        return invalid("max_hold_ms");
    if (to->min_replicas > RL_REPLICAS_MAX)
        return invalid("min_replicas (at most 16)");
    if (to->turn_ms < 0 || to->turn_ms > LONGEST_TURN_MS)
        return invalid("turn_ms (at most 1000)");
    if (!may_be_called(to->host_id))
        return invalid("host_id (1 to 255 bytes)");
    if (!may_be_called(to->metrics_label))
        return invalid("metrics_label (1 to 255 bytes)");
    if (to->metrics_names > RL_NAMES_MAX)
        return invalid("metrics_names (at most 1000)");
    return RLOCK_OK;
}

static void set_process(rl_settings *set, const char *host_id)
{
    char host[RL_HOST_MAX + 1] = "";
    if (host_id)
        strcpy(host, host_id);
    else if (gethostname(host, sizeof host - 1) != 0 || !*host)
        strcpy(host, "unknown");
    rl_holder_clean(host);
    snprintf(set->process, sizeof set->process, "%s:%ld", host, (long)getpid());
}

static int64_t or_default(int64_t value, int64_t otherwise)
{
    return value ? value : otherwise;
}

void rl_settings_read(rl_settings *set, const rlock_options *o)
{
    set->connect_timeout_ms =
        or_default(o->connect_timeout_ms, CONNECT_TIMEOUT_MS);
    set->command_timeout_ms =
        or_default(o->command_timeout_ms, COMMAND_TIMEOUT_MS);
    set->watchdog_lease_ms =
        or_default(o->watchdog_lease_ms, WATCHDOG_LEASE_MS);
    set->turn_us = o->turn_ms * 1000;
    set->warn_wait_ms = o->warn_wait_ms;
    set->min_replicas = (uint8_t)o->min_replicas;
    set->replica_wait_ms = or_default(o->replica_wait_ms, REPLICA_WAIT_MS);
    set->redisson_channel = o->redisson_channel;
    set->grants = o->grants;
    set->no_deadlock_check = o->no_deadlock_check;
    set->on_event = o->on_event;
    set->event_arg = o->event_arg;
    set->dispatch_events = o->dispatch_events;
    strcpy(set->metrics_label, o->metrics_label ? o->metrics_label : "");
    set_process(set, o->host_id);
}
