/* What threatens locks at the servers of a client: for people, and for
   monitoring. */
#ifndef RLOCK_SERVERS_H
#define RLOCK_SERVERS_H

#include <rlock/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A number that was not told, because the user may not ask for it, or the
   server does not know it: never the same as a good one. */
#define RLOCK_NOT_TOLD INT64_MIN

typedef enum rlock_server_role {
    RLOCK_SERVER_UNKNOWN = 0, /* it could not be asked, or does not say */
    RLOCK_SERVER_MASTER = 1,
    RLOCK_SERVER_REPLICA = 2, /* of the master before it, which tells of it */
    RLOCK_SERVER_SENTINEL = 3
} rlock_server_role;

/*
 * A server. Texts that were not told are NULL, numbers RLOCK_NOT_TOLD. Valid
 * during the callback only; it grows at its end (base.h).
 */
typedef struct rlock_server_info {
    const char *address;    /* as in messages; never NULL */
    rlock_server_role role; /* as it says itself; as its master, or who is
                               asked for one, says of a replica or Sentinel */
    rlock_status status;    /* RLOCK_OK: it was asked; else why it was not, and
                               nothing below is told */
    const char *error;      /* the message of that; else "" */

    const char *version;  /* "7.0.15" */
    const char *run_id;   /* new with each start */
    int64_t uptime_s;     /* since its start */
    const char *eviction; /* maxmemory-policy: what is none of "noeviction" and
                             "volatile-..." may drop locks, the latter too */
    int64_t memory_used;  /* bytes */
    int64_t memory_max;   /* bytes; 0: no limit */
    int64_t aof;          /* 1: commands are appended to a file; 0: a crash
                             loses what the last snapshot lacks */
    const char *fsync;    /* appendfsync: "always", "everysec", "no" */

    int64_t replicas;     /* connected ones, of a master */
    int64_t lag_s;        /* of a replica: since it was last heard of; of a
                             master: that of the one that lags the most */
    int64_t lag_bytes;    /* the same: what it has not confirmed yet */
    int64_t min_replicas; /* min-replicas-to-write */

    int64_t clock_ahead_us; /* of this machine's; wrong by half of rtt_p50_us */
    int64_t rtt_p50_us;     /* round trips: the middle one, and */
    int64_t rtt_p99_us;     /* the slowest of up to 32 */

    const char *missing; /* rights that locks need: "ZADD, PEXPIRE"; "" none */
    int64_t channels;    /* 1: waiters may be rung; 0: they poll, as a right is
                            missing, or the cluster's servers are too old */
    int64_t scripts;     /* in its cache */
    int64_t databases;   /* that it has; in a cluster told by Valkey alone */

    int64_t cluster_ok;    /* 1: it says that the cluster works; 0: not */
    int64_t cluster_slots; /* that are served, of 16384 */
    int64_t cluster_nodes; /* that it knows */

    const char *master;        /* of a Sentinel: where it says the master is */
    const char *master_flags;  /* "master", with "s_down" or "o_down" if bad */
    int64_t sentinels;         /* that it knows, with itself */
    int64_t sentinels_quorum;  /* that have to agree that the master is down */
    int64_t sentinel_replicas; /* that it knows of the master */

    int64_t keys;          /* in the client's database */
    int64_t volatile_keys; /* of these, that have an end */
    int64_t evicted;     /* keys that were dropped for lack of memory, since its
                         start */
    int64_t same_server; /* 1: a second connection leads to the same run_id;
                            0: to another, so what is between spreads them */
    int64_t own_connections; /* 1: a connection is one at the server, and no
                                other's; 0: what is between shares them out */
} rlock_server_info;

/* False: no more are to be told. */
typedef bool rlock_servers_fn(const rlock_server_info *s, void *arg);

/*
 * Calls back for each server of the client: on the calling thread, at the end,
 * with no lock of the library held; the callback may call the library. A master
 * (in a cluster: each that has slots), behind it its replicas, as it knows
 * them, and at last the Sentinels of the client's URI.
 *
 * Each is asked over a connection of its own, one after the other, and a master
 * over a second one: each takes connect_timeout_ms at most, and then
 * command_timeout_ms for each question, of which there are about fifteen, and
 * up to 32 round trips, a second in all. Leaves nothing behind. A server that
 * cannot be asked, or refuses, is told as such.
 *
 * What is told depends on rights: INFO (most), CONFIG GET (fsync, min_replicas,
 * databases), CLUSTER INFO, TIME, CLIENT ID (own_connections); at a Sentinel
 * SENTINEL MASTER.
 *
 * RLOCK_OK        all were told, well or not
 * RLOCK_EIO       also: where the servers are is not known: no Sentinel, or no
 *                 server of the cluster, has told. None was told
 * RLOCK_ECLOSED   also: the client was freed meanwhile
 * RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_servers(rlock_client *cl, rlock_servers_fn *each,
                                     void *arg);

#ifdef __cplusplus
}
#endif
#endif
