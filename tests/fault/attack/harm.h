/*
 * How faults are done: to the servers (harm_servers.c), to masters that have
 * replicas (harm_masters.c), to the workers and their ways to the servers
 * (harm_workers.c). Each answers whether it has come
 * to pass, and has mended everything by then.
 */
#ifndef ATTACK_HARM_H
#define ATTACK_HARM_H

#include "nemesis.h"

enum {
    SHORT_MS = 600,          /* a hold survives it */
    LONG_MS = LEASE_MS + 700 /* no hold does */
};

void pause_ms(int64_t ms);
/* For some time, and the repair is about to begin. */
void last(fault *f, int64_t ms);
int64_t some_ms(nemesis *n, int most);

typedef bool harm(nemesis *n, fault *f);

harm commanded; /* what takes only commands */
harm server_stops_shortly, server_stops_long, server_killed, server_killed_long,
    server_restarted, server_emptied, power_cut, server_sleeps, server_busy,
    server_pauses_writes, server_pauses_all, server_crowded, bells_forged,
    other_one_emptied;
harm master_killed, master_stopped, master_relieved, replica_takes_over,
    replica_killed, slot_moved, home_made_anew;
harm lock_deleted, lock_renamed, lock_forced, lock_of_another_type,
    lease_cut_short, lease_without_end;

harm worker_killed, worker_stops_shortly, worker_stops_long, worker_signalled,
    worker_suspended, wall_clock_jumps, calls_fail, connecting_fails;
harm connections_cut, connections_refused, way_frozen_shortly, way_frozen_long,
    call_hit;

#endif
