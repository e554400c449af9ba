#include "client/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void rl_facts_init(rl_facts *x, const char *address)
{
    *x = (rl_facts){
        .of = {.status = RLOCK_OK,
               .uptime_s = RLOCK_NOT_TOLD,
               .memory_used = RLOCK_NOT_TOLD,
               .memory_max = RLOCK_NOT_TOLD,
               .aof = RLOCK_NOT_TOLD,
               .replicas = RLOCK_NOT_TOLD,
               .lag_s = RLOCK_NOT_TOLD,
               .lag_bytes = RLOCK_NOT_TOLD,
               .min_replicas = RLOCK_NOT_TOLD,
               .clock_ahead_us = RLOCK_NOT_TOLD,
               .rtt_p50_us = RLOCK_NOT_TOLD,
               .rtt_p99_us = RLOCK_NOT_TOLD,
               .channels = RLOCK_NOT_TOLD,
               .scripts = RLOCK_NOT_TOLD,
               .databases = RLOCK_NOT_TOLD,
               .cluster_ok = RLOCK_NOT_TOLD,
               .cluster_slots = RLOCK_NOT_TOLD,
               .cluster_nodes = RLOCK_NOT_TOLD,
               .sentinels = RLOCK_NOT_TOLD,
               .sentinels_quorum = RLOCK_NOT_TOLD,
               .sentinel_replicas = RLOCK_NOT_TOLD,
               .keys = RLOCK_NOT_TOLD,
               .volatile_keys = RLOCK_NOT_TOLD,
               .evicted = RLOCK_NOT_TOLD,
               .same_server = RLOCK_NOT_TOLD,
               .own_connections = RLOCK_NOT_TOLD},
    };
    snprintf(x->address, sizeof x->address, "%s", address);
}

void rl_facts_fail(rl_facts *x, const rl_fault *why)
{
    char address[sizeof x->address];
    rlock_server_role role = x->of.role;
    memcpy(address, x->address, sizeof address);
    rl_facts_init(x, address);
    x->of.role = role == RLOCK_SERVER_SENTINEL ? role : RLOCK_SERVER_UNKNOWN;
    x->of.status = why->status;
    snprintf(x->error, sizeof x->error, "%s", why->text);
}

/* --- texts ---------------------------------------------------------------- */

/* Where the value of "name:" at the beginning of a line is, and its length;
   NULL: there is no such line. */
static const char *value_of(const char *text, const char *name, size_t *len)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && line[n] == ':') {
            *len = strcspn(line + n + 1, "\r\n");
            return line + n + 1;
        }
    }
    return NULL;
}

/* What does not fit is not told: half of it would be wrong. */
static void copy(char *out, size_t size, const char *value, size_t len)
{
    if (!value || len >= size)
        return;
    memcpy(out, value, len);
    out[len] = '\0';
}

static void read_text(const char *text, const char *name, char *out,
                      size_t size)
{
    size_t len = 0;
    const char *value = value_of(text, name, &len);
    copy(out, size, value, len);
}

/* Digits and nothing else. */
static int64_t number_of(const char *value)
{
    char *end;
    if (!value || *value < '0' || *value > '9')
        return RLOCK_NOT_TOLD;
    long long n = strtoll(value, &end, 10);
    return *end ? RLOCK_NOT_TOLD : n;
}

static int64_t read_number(const char *text, const char *name)
{
    char digits[24] = "";
    read_text(text, name, digits, sizeof digits);
    return number_of(digits);
}

/* --- replicas ------------------------------------------------------------- */

/* "ip=10.0.0.7,port=6379,state=online,offset=14,lag=0" */
static void read_field(const char *fields, const char *name, char *out,
                       size_t size)
{
    size_t n = strlen(name);
    for (const char *at = fields; *at; at += *at == ',') {
        size_t len = strcspn(at, ",");
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            copy(out, size, at + n + 1, len - n - 1);
        at += len;
    }
}

static int64_t number_field(const char *fields, const char *name)
{
    char digits[24] = "";
    read_field(fields, name, digits, sizeof digits);
    return number_of(digits);
}

/* Also where the master is further now than it was when that was said. */
static int64_t behind(int64_t master, int64_t replica)
{
    bool told = master != RLOCK_NOT_TOLD && replica != RLOCK_NOT_TOLD;
    return told ? rl_max(master - replica, 0) : RLOCK_NOT_TOLD;
}

bool rl_facts_read_replica(const char *info, unsigned i, const char *scheme,
                           rl_facts *out)
{
    char name[24], fields[320] = "", ip[128] = "", state[24] = "", lag[24] = "";
    snprintf(name, sizeof name, "slave%u", i);
    read_text(info, name, fields, sizeof fields);
    if (!*fields)
        return false;
    rl_facts_init(out, "");
    read_field(fields, "ip", ip, sizeof ip);
    read_field(fields, "state", state, sizeof state);
    snprintf(out->address, sizeof out->address,
             strchr(ip, ':') ? "%s://[%s]:%lld" : "%s://%s:%lld", scheme, ip,
             (long long)rl_max(number_field(fields, "port"), 0));
    out->of.role = RLOCK_SERVER_REPLICA;
    /* The server reads two clocks: -1 where a second has just begun. */
    read_field(fields, "lag", lag, sizeof lag);
    out->of.lag_s = strcmp(lag, "-1") == 0 ? 0 : number_of(lag);
    out->of.lag_bytes = behind(read_number(info, "master_repl_offset"),
                               number_field(fields, "offset"));
    if (strcmp(state, "online") == 0)
        return true;
    out->of.status = RLOCK_EIO;
    snprintf(out->error, sizeof out->error, "its master says: %s", state);
    return true;
}

static void note_lag(rl_facts *x, const char *info)
{
    rl_facts replica;
    for (unsigned i = 0; rl_facts_read_replica(info, i, "", &replica); i++) {
        x->of.lag_s = rl_max(x->of.lag_s, replica.of.lag_s);
        x->of.lag_bytes = rl_max(x->of.lag_bytes, replica.of.lag_bytes);
    }
}

/* --- a server ------------------------------------------------------------- */

static rlock_server_role role_of(const char *info)
{
    char role[16] = "";
    read_text(info, "role", role, sizeof role);
    return strcmp(role, "master") == 0  ? RLOCK_SERVER_MASTER
           : strcmp(role, "slave") == 0 ? RLOCK_SERVER_REPLICA
                                        : RLOCK_SERVER_UNKNOWN;
}

void rl_facts_read_info(rl_facts *x, const char *info)
{
    rlock_server_info *of = &x->of;
    of->role = role_of(info);
    read_text(info, "redis_version", x->version, sizeof x->version);
    read_text(info, "valkey_version", x->version, sizeof x->version);
    read_text(info, "run_id", x->run_id, sizeof x->run_id);
    read_text(info, "maxmemory_policy", x->eviction, sizeof x->eviction);
    of->uptime_s = read_number(info, "uptime_in_seconds");
    of->memory_used = read_number(info, "used_memory");
    of->memory_max = read_number(info, "maxmemory");
    of->aof = read_number(info, "aof_enabled");
    of->scripts = read_number(info, "number_of_cached_scripts");
    of->replicas = read_number(info, "connected_slaves");
    of->evicted = read_number(info, "evicted_keys");
    note_lag(x, info);
}

/* "db0:keys=7,expires=2,avg_ttl=0"; of an empty one there is no line. */
void rl_facts_read_keys(rl_facts *x, const char *info, int database)
{
    char name[16], fields[160] = "";
    size_t len;
    snprintf(name, sizeof name, "db%d", database);
    read_text(info, name, fields, sizeof fields);
    if (*fields) {
        x->of.keys = number_field(fields, "keys");
        x->of.volatile_keys = number_field(fields, "expires");
    } else if (strstr(info, "# Keyspace") && !value_of(info, name, &len)) {
        x->of.keys = x->of.volatile_keys = 0;
    }
}

void rl_facts_note_second(rl_facts *x, const char *info)
{
    char run_id[sizeof x->run_id] = "";
    read_text(info, "run_id", run_id, sizeof run_id);
    if (*run_id && *x->run_id)
        x->of.same_server = strcmp(run_id, x->run_id) == 0;
}

void rl_facts_note_ids(rl_facts *x, int64_t first, int64_t second,
                       int64_t first_again)
{
    if (first == 0 || second == 0 || first_again == 0)
        return;
    bool shared = x->of.same_server == 1 && first == second;
    x->of.own_connections = first == first_again && !shared;
}

void rl_facts_read_cluster(rl_facts *x, const char *text)
{
    char state[16] = "";
    read_text(text, "cluster_state", state, sizeof state);
    if (*state)
        x->of.cluster_ok = strcmp(state, "ok") == 0;
    x->of.cluster_slots = read_number(text, "cluster_slots_ok");
    x->of.cluster_nodes = read_number(text, "cluster_known_nodes");
}

void rl_facts_read_config(rl_facts *x, const char *name, const char *value)
{
    if (strcmp(name, "appendfsync") == 0)
        copy(x->fsync, sizeof x->fsync, value, strlen(value));
    else if (strcmp(name, "min-replicas-to-write") == 0)
        x->of.min_replicas = number_of(value);
    else if (strcmp(name, "databases") == 0 ||
             strcmp(name, "cluster-databases") == 0)
        x->of.databases = number_of(value);
}

void rl_facts_read_sentinel(rl_facts *x, const rl_table *t)
{
    if (t->count == 0)
        return;
    const char *ip = rl_table_value(t, 0, "ip");
    const char *port = rl_table_value(t, 0, "port");
    const char *flags = rl_table_value(t, 0, "flags");
    int64_t others = number_of(rl_table_value(t, 0, "num-other-sentinels"));
    if (ip && port)
        snprintf(x->master, sizeof x->master, "%s:%s", ip, port);
    if (flags)
        copy(x->master_flags, sizeof x->master_flags, flags, strlen(flags));
    x->of.sentinels = others == RLOCK_NOT_TOLD ? others : others + 1;
    x->of.sentinels_quorum = number_of(rl_table_value(t, 0, "quorum"));
    x->of.sentinel_replicas = number_of(rl_table_value(t, 0, "num-slaves"));
}

/* --- telling -------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void rl_facts_note_trips(rl_facts *x, int64_t *us, size_t n)
{
    if (n == 0)
        return;
    qsort(us, n, sizeof *us, by_size);
    x->of.rtt_p50_us = us[n / 2];
    x->of.rtt_p99_us = us[n - 1];
}

static const char *told(const char *text)
{
    return *text ? text : NULL;
}

rlock_server_info rl_facts_tell(const rl_facts *x)
{
    rlock_server_info of = x->of;
    of.address = x->address;
    of.error = x->error;
    of.version = told(x->version);
    of.run_id = told(x->run_id);
    of.eviction = told(x->eviction);
    of.fsync = told(x->fsync);
    of.missing = x->of.missing ? x->missing : NULL;
    of.master = told(x->master);
    of.master_flags = told(x->master_flags);
    return of;
}
