/*
 * The faults that there are. Where home has replicas nothing is done that loses
 * data by itself, nor to the ways, which are no proxies there: the addresses
 * are told by the servers. The nodes are left alone then. The nodes' data is
 * lost only with their process, or a majority's at a time: a Red lock that has
 * no vote to spare would not survive that one node forgets its vote and votes
 * on. (Of a lock on fewer nodes it may still be one; the judges know:
 * .votes_on.)
 */
#include <errno.h>

#include "harm.h"

#define COMMANDS(first, then) .inject = commanded, .harm = first, .repair = then
#define FAILS(how, of, which, with)                                            \
    .inject = how, .among = of, .call = which, .err = with
#define HITS(which, of, how) OF_A_WAY, HITS_ANY(which, of, how)
/* Of whichever worker is the first. */
#define HITS_ANY(which, of, how)                                               \
    .harmless = true, .inject = call_hit, .script = which, .among = of,        \
    .action = how
#define OF_A_WAY      .of_a_process = true
#define OF_A_PROCESS  .of_a_process = true, .where = EVERYWHERE
#define OF_A_NODE     .where = AT_A_NODE
#define OF_MOST_NODES .where = AT_MOST_NODES
#define OF_A_LOCK     .of_a_lock = true
#define HARMLESS      .harmless = true
#define LOSES_DATA    .loses_data = true
#define OUTLIVES      .outlives_leases = true
#define EVERY_HOME    .homes = 1U << ALONE | 1U << WATCHED | 1U << CLUSTERED
#define WITH_REPLICAS .homes = 1U << WATCHED | 1U << CLUSTERED
#define IN_A_CLUSTER  .homes = 1U << CLUSTERED

const nemesis_kind nemesis_kinds[] = {
    {"server stopped shortly", 5, EVERY_HOME, .inject = server_stops_shortly},
    {"server stopped for longer than a lease", 6, OUTLIVES,
     .inject = server_stops_long},
    {"server killed, back with its data", 1, EVERY_HOME,
     .inject = server_killed},
    {"server down for longer than a lease", 1, OUTLIVES,
     .inject = server_killed_long},
    {"server restarted", 4, EVERY_HOME, .inject = server_restarted},
    {"server killed, back empty", 2, LOSES_DATA, .inject = server_emptied},
    {"server sleeps", 7, EVERY_HOME, .inject = server_sleeps},
    {"server busy with a script", 8, EVERY_HOME, .inject = server_busy},
    {"server pauses writes", 20, EVERY_HOME, .inject = server_pauses_writes},
    {"server pauses all", 20, EVERY_HOME, .inject = server_pauses_all},
    {"server out of memory", 16, EVERY_HOME,
     COMMANDS("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")},
    /* Of a master that does not exist: nothing is replaced. */
    {"server is a replica", 29,
     COMMANDS("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")},
    {"server misses replicas", 31,
     COMMANDS("CONFIG SET min-replicas-to-write 1",
              "CONFIG SET min-replicas-to-write 0")},
    {"server has no room for clients", 19, EVERY_HOME,
     .inject = server_crowded},
    {"scripts flushed", 22, EVERY_HOME, HARMLESS,
     COMMANDS("SCRIPT FLUSH", NULL)},
    {"connections killed", 21, EVERY_HOME,
     COMMANDS("CLIENT KILL TYPE normal SKIPME yes", NULL)},
    {"bells killed", 71, EVERY_HOME, HARMLESS,
     COMMANDS("CLIENT KILL TYPE pubsub", NULL)},
    {"bells forged", 75, .homes = 1U << ALONE | 1U << WATCHED, HARMLESS,
     .inject = bells_forged},
    {"all data flushed", 11, LOSES_DATA, COMMANDS("FLUSHALL", NULL)},
    {"lock deleted", 12, LOSES_DATA, OF_A_LOCK, .inject = lock_deleted},
    {"lock renamed", 13, LOSES_DATA, OF_A_LOCK, .inject = lock_renamed},
    {"lock forced open", 12, LOSES_DATA, OF_A_LOCK, .inject = lock_forced},
    {"lock replaced", 14, LOSES_DATA, OF_A_LOCK,
     .inject = lock_of_another_type},
    {"lease cut short", 13, LOSES_DATA, OF_A_LOCK, .inject = lease_cut_short},
    {"lease without end", 13, OF_A_LOCK, .inject = lease_without_end},
    {"worker killed", 78, EVERY_HOME, OF_A_PROCESS, .inject = worker_killed},
    {"worker stopped shortly", 79, EVERY_HOME, OF_A_PROCESS,
     .inject = worker_stops_shortly},
    {"worker stopped for longer than a lease", 79, EVERY_HOME, OF_A_PROCESS,
     OUTLIVES, .inject = worker_stops_long},
    {"signals", 63, EVERY_HOME, OF_A_PROCESS, HARMLESS,
     .inject = worker_signalled},
    {"worker suspended", 80, EVERY_HOME, OF_A_PROCESS, OUTLIVES,
     .inject = worker_suspended},
    {"wall clock jumps", 93, EVERY_HOME, OF_A_PROCESS, HARMLESS,
     .inject = wall_clock_jumps},
    {"allocations fail", 92, EVERY_HOME, OF_A_PROCESS,
     FAILS(calls_fail, 8, SHIM_ALLOC, ENOMEM)},
    {"sends fail", 61, EVERY_HOME, OF_A_PROCESS,
     FAILS(calls_fail, 8, SHIM_SEND, EPIPE)},
    {"sends are short", 64, EVERY_HOME, OF_A_PROCESS,
     FAILS(calls_fail, 8, SHIM_SEND, SHIM_SHORT)},
    {"receives fail", 49, EVERY_HOME, OF_A_PROCESS,
     FAILS(calls_fail, 8, SHIM_RECV, ECONNRESET)},
    {"receives are short", 51, EVERY_HOME, OF_A_PROCESS,
     FAILS(calls_fail, 8, SHIM_RECV, SHIM_SHORT)},
    {"polls are interrupted", 63, EVERY_HOME, OF_A_PROCESS, HARMLESS,
     FAILS(calls_fail, 8, SHIM_POLL, EINTR)},
    {"no more descriptors", 66, OF_A_PROCESS,
     FAILS(connecting_fails, 2, SHIM_SOCKET, EMFILE)},
    {"connects fail", 46, OF_A_PROCESS,
     FAILS(connecting_fails, 2, SHIM_CONNECT, ECONNREFUSED)},
    {"connections cut", 21, OF_A_WAY, .inject = connections_cut},
    {"connections refused", 46, OF_A_WAY, .inject = connections_refused},
    {"way frozen shortly", 48, OF_A_WAY, .inject = way_frozen_shortly},
    {"way frozen for longer than a lease", 48, OF_A_WAY, OUTLIVES,
     .inject = way_frozen_long},
    {"acquire cut before", 53, HITS("acquire", 20, PROXY_CUT_BEFORE)},
    {"acquire cut after", 53, HITS("acquire", 20, PROXY_CUT_AFTER)},
    {"acquire cut in its reply", 49, HITS("acquire", 20, PROXY_CUT_IN_REPLY)},
    {"acquire unanswered", 53, HITS("acquire", 20, PROXY_SWALLOW_REPLY)},
    {"acquire executed late", 56, HITS("acquire", 20, PROXY_HOLD_REQUEST)},
    {"acquire answered late", 52, HITS("acquire", 20, PROXY_HOLD_REPLY)},
    {"acquire answered slowly", 51, HITS("acquire", 20, PROXY_DRIP_REPLY)},
    {"release cut before", 54, HITS("release", 20, PROXY_CUT_BEFORE)},
    {"release cut after", 54, HITS("release", 20, PROXY_CUT_AFTER)},
    {"release cut in its reply", 49, HITS("release", 20, PROXY_CUT_IN_REPLY)},
    {"release unanswered", 54, HITS("release", 20, PROXY_SWALLOW_REPLY)},
    {"release executed late", 57, HITS("release", 20, PROXY_HOLD_REQUEST)},
    {"release answered late", 52, HITS("release", 20, PROXY_HOLD_REPLY)},
    {"leave cut before", 53, HITS("leave", 2, PROXY_CUT_BEFORE)},
    {"leave cut after", 53, HITS("leave", 2, PROXY_CUT_AFTER)},
    {"renewal cut before", 55, HITS_ANY("renew", 2, PROXY_CUT_BEFORE)},
    {"renewal cut after", 55, HITS_ANY("renew", 2, PROXY_CUT_AFTER)},
    {"renewal executed late", 57, HITS_ANY("renew", 2, PROXY_HOLD_REQUEST)},
    {"renewal answered late", 52, HITS_ANY("renew", 2, PROXY_HOLD_REPLY)},
    {"garbage answered", 62, HITS(NULL, 20, PROXY_ANSWER),
     .answer = "*3\r\n:1\r\n$-7\r\n?!\r\n"},
    {"errors answered", 10, HITS(NULL, 20, PROXY_ANSWER),
     .answer = "-LOADING Redis is loading the dataset in memory\r\n"},
    {"power cut", 3, LOSES_DATA, .inject = power_cut},
    /* Masters with replicas. */
    {"master killed, back as a replica", 129, WITH_REPLICAS,
     .inject = master_killed},
    {"master stopped over its failover", 131, WITH_REPLICAS,
     .inject = master_stopped},
    {"master relieved by hand", 132, WITH_REPLICAS, .inject = master_relieved},
    {"replica killed", 129, WITH_REPLICAS, .inject = replica_killed},
    {"replica takes over", 132, IN_A_CLUSTER, .inject = replica_takes_over},
    {"slot moved", 132, IN_A_CLUSTER, OF_A_LOCK, .inject = slot_moved},
    /* The nodes of Red locks. One is a minority: nobody may notice more of it
       than that a hold is lost which had no vote to spare. */
    {"node stopped shortly", 5, OF_A_NODE, .inject = server_stops_shortly},
    {"node stopped for longer than a lease", 6, OF_A_NODE, OUTLIVES,
     .inject = server_stops_long},
    {"node killed, back with its data", 1, OF_A_NODE, .inject = server_killed},
    {"node restarted", 4, OF_A_NODE, .inject = server_restarted},
    {"node killed, back empty", 2, OF_A_NODE, LOSES_DATA,
     .inject = server_emptied},
    {"node cut off, then another one back empty", 2, .where = AT_TWO_NODES,
     .inject = other_one_emptied},
    {"power cut at a node", 3, OF_A_NODE, LOSES_DATA, .inject = power_cut},
    {"node busy with a script", 8, OF_A_NODE, .inject = server_busy},
    {"node pauses all", 20, OF_A_NODE, .inject = server_pauses_all},
    {"node out of memory", 16, OF_A_NODE,
     COMMANDS("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")},
    {"node is a replica", 29, OF_A_NODE,
     COMMANDS("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")},
    {"node has no room for clients", 19, OF_A_NODE, .inject = server_crowded},
    {"node's scripts flushed", 22, OF_A_NODE, HARMLESS,
     COMMANDS("SCRIPT FLUSH", NULL)},
    {"node's connections killed", 21, OF_A_NODE,
     COMMANDS("CLIENT KILL TYPE normal SKIPME yes", NULL)},
    {"most nodes stopped shortly", 5, OF_MOST_NODES,
     .inject = server_stops_shortly},
    {"most nodes stopped for longer than a lease", 6, OF_MOST_NODES, OUTLIVES,
     .inject = server_stops_long},
    {"most nodes killed, back with their data", 1, OF_MOST_NODES,
     .inject = server_killed},
    {"most nodes killed, back empty", 2, OF_MOST_NODES, LOSES_DATA,
     .inject = server_emptied},
    {"most nodes flushed", 11, OF_MOST_NODES, LOSES_DATA, .votes_on = true,
     COMMANDS("FLUSHALL", NULL)},
    {"connections to a node cut", 21, OF_A_NODE, OF_A_WAY,
     .inject = connections_cut},
    {"connections to a node refused", 46, OF_A_NODE, OF_A_WAY,
     .inject = connections_refused},
    {"way to a node frozen shortly", 48, OF_A_NODE, OF_A_WAY,
     .inject = way_frozen_shortly},
    {"way to a node frozen for longer than a lease", 48, OF_A_NODE, OF_A_WAY,
     OUTLIVES, .inject = way_frozen_long},
    {"acquire at a node cut after", 53, OF_A_NODE,
     HITS("acquire", 5, PROXY_CUT_AFTER)},
    {"acquire at a node unanswered", 53, OF_A_NODE,
     HITS("acquire", 5, PROXY_SWALLOW_REPLY)},
    {"acquire at a node executed late", 56, OF_A_NODE,
     HITS("acquire", 5, PROXY_HOLD_REQUEST)},
    {"acquire at a node answered late", 52, OF_A_NODE,
     HITS("acquire", 5, PROXY_HOLD_REPLY)},
    {"release at a node unanswered", 54, OF_A_NODE,
     HITS("release", 5, PROXY_SWALLOW_REPLY)},
    {"release at a node executed late", 57, OF_A_NODE,
     HITS("release", 5, PROXY_HOLD_REQUEST)},
    {"renewal at a node cut after", 55, OF_A_NODE,
     HITS_ANY("renew", 2, PROXY_CUT_AFTER)},
    {"renewal at a node executed late", 57, OF_A_NODE,
     HITS_ANY("renew", 2, PROXY_HOLD_REQUEST)},
};
const int nemesis_n_kinds = sizeof nemesis_kinds / sizeof *nemesis_kinds;
