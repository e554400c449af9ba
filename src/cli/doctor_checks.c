/* What is well at a server, and what is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define SECOND_US 1000000LL

static bool told(int64_t n)
{
    return n != RLOCK_NOT_TOLD;
}

static void unknown(doctor *d, const rlock_server_info *s, const char *check,
                    const char *right)
{
    doctor_find(d, s->address, DOCTOR_UNKNOWN, check, right, "not told");
}

/* --- A master ------------------------------------------------------------- */

static void check_version(doctor *d, const rlock_server_info *s)
{
    unsigned major = 0, minor = 0;
    if (!s->version || sscanf(s->version, "%u.%u", &major, &minor) != 2) {
        unknown(d, s, "version", "let the user INFO");
        return;
    }
    bool old = major < 6 || (major == 6 && minor < 2);
    doctor_find(d, s->address, old ? DOCTOR_BAD : DOCTOR_OK, "version",
                "Redis 6.2 or newer", "%s", s->version);
}

static void check_eviction(doctor *d, const rlock_server_info *s)
{
    if (!s->eviction) {
        unknown(d, s, "eviction", "let the user INFO");
        return;
    }
    bool none = strcmp(s->eviction, "noeviction") == 0;
    doctor_find(d, s->address,
                none                 ? DOCTOR_OK
                : s->memory_max == 0 ? DOCTOR_WARN
                                     : DOCTOR_BAD,
                "eviction",
                "maxmemory-policy noeviction: locks may be dropped when "
                "memory is full",
                "%s", s->eviction);
}

static void check_memory(doctor *d, const rlock_server_info *s)
{
    if (!told(s->memory_used) || !told(s->memory_max)) {
        unknown(d, s, "memory", "let the user INFO");
        return;
    }
    if (s->memory_max == 0) {
        doctor_find(d, s->address, DOCTOR_OK, "memory", NULL, "no limit");
        return;
    }
    int64_t percent =
        (int64_t)(100.0 * (double)s->memory_used / (double)s->memory_max);
    doctor_find(d, s->address, percent < 90 ? DOCTOR_OK : DOCTOR_WARN, "memory",
                "raise maxmemory: a full server refuses locks, or drops them",
                "%lld %% of the limit", (long long)percent);
}

static void check_persistence(doctor *d, const rlock_server_info *s)
{
    if (!told(s->aof)) {
        unknown(d, s, "persistence", "let the user INFO");
    } else if (s->aof == 0) {
        doctor_find(d, s->address, DOCTOR_WARN, "persistence",
                    "appendonly yes, or a Red lock: after a crash two may "
                    "have one lock",
                    "no append-only file");
    } else if (!s->fsync) {
        unknown(d, s, "persistence", "let the user CONFIG GET");
    } else {
        bool lazy = strcmp(s->fsync, "no") == 0;
        doctor_find(d, s->address, lazy ? DOCTOR_WARN : DOCTOR_OK,
                    "persistence",
                    "appendfsync everysec, or always: a power cut loses "
                    "half a minute",
                    "append-only file, fsync %s", s->fsync);
    }
}

static void check_replicas(doctor *d, const rlock_server_info *s)
{
    int64_t wanted = d->o->client.min_replicas;
    if (!told(s->replicas)) {
        unknown(d, s, "replicas", "let the user INFO");
        return;
    }
    if (s->role == RLOCK_SERVER_REPLICA) {
        doctor_find(d, s->address, DOCTOR_BAD, "replicas",
                    "name its master: what that one has takes the place of "
                    "locks here",
                    "it is a replica itself");
        return;
    }
    if (told(s->min_replicas) && s->replicas < s->min_replicas) {
        doctor_find(d, s->address, DOCTOR_BAD, "replicas",
                    "start them, or min-replicas-to-write 0: no lock can be "
                    "had",
                    "%lld, min-replicas-to-write %lld", (long long)s->replicas,
                    (long long)s->min_replicas);
        return;
    }
    bool lacks = s->replicas<wanted, loses = s->replicas> 0 && wanted == 0;
    doctor_find(d, s->address,
                lacks   ? DOCTOR_BAD
                : loses ? DOCTOR_WARN
                        : DOCTOR_OK,
                "replicas",
                lacks ? "fewer than --min-replicas: no lock can be had"
                      : "--min-replicas 1: a failover may give a lock to two",
                "%lld, --min-replicas %lld", (long long)s->replicas,
                (long long)wanted);
}

/* Nothing can be tried at a cluster that is down, which is found by itself. */
static bool is_down(const rlock_server_info *s)
{
    return told(s->cluster_ok) && !s->cluster_ok;
}

static void check_rights(doctor *d, const rlock_server_info *s)
{
    if (is_down(s))
        return;
    if (!s->missing)
        unknown(d, s, "rights", "let the user EVAL: doc/rights.md");
    else if (*s->missing)
        doctor_find(d, s->address, DOCTOR_BAD, "rights",
                    "ACL SETUSER, as in doc/rights.md", "missing: %s",
                    s->missing);
    else
        doctor_find(d, s->address, DOCTOR_OK, "rights", NULL,
                    "all that locks need");
}

static void check_channels(doctor *d, const rlock_server_info *s)
{
    if (is_down(s))
        return;
    if (!told(s->channels))
        unknown(d, s, "wake-ups", "let the user PUBLISH and SUBSCRIBE");
    else
        doctor_find(d, s->address, s->channels ? DOCTOR_OK : DOCTOR_WARN,
                    "wake-ups",
                    "let the user PUBLISH and SUBSCRIBE: waiters look every "
                    "two seconds",
                    "%s", s->channels ? "by channels" : "none");
}

static void check_connections(doctor *d, const rlock_server_info *s)
{
    if (is_down(s))
        return;
    if (told(s->same_server) && !s->same_server)
        doctor_find(d, s->address, DOCTOR_BAD, "connections",
                    "the servers' own addresses: what is between spreads "
                    "locks over several",
                    "two lead to two servers");
    else if (told(s->own_connections) && !s->own_connections)
        doctor_find(d, s->address, DOCTOR_WARN, "connections",
                    "the server's own address: what is between knows no "
                    "WAIT and SUBSCRIBE",
                    "shared with others");
    else if (!told(s->same_server) || !told(s->own_connections))
        unknown(d, s, "connections", "let the user INFO and CLIENT ID");
    else
        doctor_find(d, s->address, DOCTOR_OK, "connections", NULL,
                    "each its own");
}

/* What is found of all masters of a client together: doctor_locks.c. */
static void note_keys(doctor *d, const rlock_server_info *s)
{
    if (!s->eviction || !told(s->volatile_keys) || !told(s->evicted)) {
        d->keys_untold = true;
        return;
    }
    d->volatile_keys += s->volatile_keys;
    d->evicted += s->evicted;
    d->evicts = d->evicts || strcmp(s->eviction, "noeviction") != 0;
}

static void check_cluster(doctor *d, const rlock_server_info *s)
{
    if (strstr(d->o->uri[0], "-cluster://") == NULL)
        return;
    if (!told(s->cluster_ok) || !told(s->cluster_slots)) {
        unknown(d, s, "cluster", "let the user CLUSTER INFO");
        return;
    }
    bool whole = s->cluster_ok && s->cluster_slots == 16384;
    doctor_find(d, s->address, whole ? DOCTOR_OK : DOCTOR_BAD, "cluster",
                "redis-cli --cluster check, and fix: some names have no server",
                "%s, %lld of 16384 slots", s->cluster_ok ? "works" : "is down",
                (long long)s->cluster_slots);
}

/* --- Any server ----------------------------------------------------------- */

static void check_clock(doctor *d, const rlock_server_info *s)
{
    if (!told(s->clock_ahead_us)) {
        unknown(d, s, "clock", "let the user TIME");
        return;
    }
    long long off = llabs((long long)s->clock_ahead_us);
    doctor_find(d, s->address,
                off > 300 * SECOND_US ? DOCTOR_BAD
                : off > SECOND_US     ? DOCTOR_WARN
                                      : DOCTOR_OK,
                "clock", "NTP on both: tokens are made of server's clocks",
                "%+.3f s against this machine",
                (double)s->clock_ahead_us / (double)SECOND_US);
}

static void note_clock(doctor *d, const rlock_server_info *s)
{
    int64_t us = s->clock_ahead_us;
    d->clockless += !told(us);
    if (!told(us))
        return;
    d->slowest_us = d->clocks && d->slowest_us < us ? d->slowest_us : us;
    d->fastest_us = d->clocks && d->fastest_us > us ? d->fastest_us : us;
    d->clocks++;
}

void doctor_compare(doctor *d)
{
    double apart_s =
        (double)(d->fastest_us - d->slowest_us) / (double)SECOND_US;
    if (d->clocks + d->clockless < 2)
        return;
    if (d->clockless)
        doctor_find(d, "all", DOCTOR_UNKNOWN, "clocks", "let the user TIME",
                    "%zu of %zu not told", d->clockless,
                    d->clocks + d->clockless);
    else
        doctor_find(d, "all",
                    apart_s > 300 ? DOCTOR_BAD
                    : apart_s > 1 ? DOCTOR_WARN
                                  : DOCTOR_OK,
                    "clocks", "NTP on all: tokens are made of their clocks",
                    "%.3f s apart at most", apart_s);
}

static void check_trips(doctor *d, const rlock_server_info *s)
{
    if (!told(s->rtt_p99_us)) {
        unknown(d, s, "round trip", "let the user TIME");
        return;
    }
    bool slow = s->rtt_p50_us > SECOND_US / 10 || s->rtt_p99_us > SECOND_US;
    doctor_find(d, s->address, slow ? DOCTOR_WARN : DOCTOR_OK, "round trip",
                "a nearer server, or longer timeouts and leases",
                "%.1f ms, the slowest %.1f", (double)s->rtt_p50_us / 1000,
                (double)s->rtt_p99_us / 1000);
}

static void check_lag(doctor *d, const rlock_server_info *s)
{
    if (!told(s->lag_s) || !told(s->lag_bytes)) {
        unknown(d, s, "lag", "let the user INFO");
        return;
    }
    bool behind = s->lag_s > 10 || s->lag_bytes > 1024 * 1024;
    doctor_find(d, s->address, behind ? DOCTOR_WARN : DOCTOR_OK, "lag",
                "look at its network and load: a failover to it loses locks",
                "%lld s, %lld bytes", (long long)s->lag_s,
                (long long)s->lag_bytes);
}

static void check_master_flags(doctor *d, const rlock_server_info *s)
{
    if (!s->master_flags) {
        unknown(d, s, "master", "let the user SENTINEL MASTER");
        return;
    }
    bool down = strstr(s->master_flags, "down") != NULL;
    doctor_find(d, s->address, down ? DOCTOR_BAD : DOCTOR_OK, "master",
                "look at that server: this Sentinel cannot reach it", "%s: %s",
                s->master ? s->master : "?", s->master_flags);
}

static void check_quorum(doctor *d, const rlock_server_info *s)
{
    if (!told(s->sentinels) || !told(s->sentinels_quorum)) {
        unknown(d, s, "quorum", "let the user SENTINEL MASTER");
        return;
    }
    bool never = s->sentinels_quorum > s->sentinels, few = s->sentinels < 3;
    doctor_find(d, s->address,
                never ? DOCTOR_BAD
                : few ? DOCTOR_WARN
                      : DOCTOR_OK,
                "quorum", "three Sentinels on three machines, quorum 2",
                "%lld of %lld Sentinels", (long long)s->sentinels_quorum,
                (long long)s->sentinels);
}

/* --- All of it ------------------------------------------------------------ */

typedef void check(doctor *d, const rlock_server_info *s);

static check *const of_master[] = {check_version,  check_eviction,
                                   check_memory,   check_persistence,
                                   check_replicas, check_rights,
                                   check_channels, check_connections,
                                   check_cluster,  check_clock,
                                   note_clock,     note_keys,
                                   check_trips,    NULL};
static check *const of_replica[] = {check_lag, NULL};
/* They have no TIME, and nothing is made of their clocks. */
static check *const of_sentinel[] = {check_master_flags, check_quorum,
                                     check_trips, NULL};

void doctor_unreached(doctor *d, const char *server, doctor_verdict v,
                      const char *error)
{
    doctor_find(d, server, v, "answers", "start it, or look at the way to it",
                "%s", error);
}

/* Of a Red lock a minority may be away, and of replicas and Sentinels, too. */
static void unreached(doctor *d, const rlock_server_info *s)
{
    bool others = d->several || s->role == RLOCK_SERVER_REPLICA ||
                  s->role == RLOCK_SERVER_SENTINEL;
    doctor_unreached(d, s->address, others ? DOCTOR_WARN : DOCTOR_BAD,
                     s->error);
}

/* A replica that was asked itself is used as if it were a master. */
static bool is_told_of(const rlock_server_info *s)
{
    return s->role == RLOCK_SERVER_REPLICA && !s->run_id;
}

void doctor_examine(doctor *d, const rlock_server_info *s)
{
    check *const *of = is_told_of(s)                      ? of_replica
                       : s->role == RLOCK_SERVER_SENTINEL ? of_sentinel
                                                          : of_master;
    if (s->status != RLOCK_OK) {
        unreached(d, s);
        return;
    }
    for (; *of; of++)
        (*of)(d, s);
}
