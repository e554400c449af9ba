/*
 * The attack: several processes, with several threads or with an event loop,
 * work on locks of all kinds while a nemesis injects faults, and two judges
 * outside Redis watch.
 *
 *   main.c      starts everything, ends everything, asks for the verdict
 *   locks.c     what is locked: single, Red, Multi, fair and read-write locks,
 *               permits of semaphores; and where they are
 *   home.c      one server, or masters with replicas
 *   nemesis.c   deals faults from a seed; kinds.c: which there are;
 *               harm_servers.c, harm_masters.c, harm_workers.c: how they are
 *               done
 *   worker.c    a process that locks; started anew when it was killed
 *   labour.c    what its threads do, hold by hold; holding.c: one hold;
 *               calls.c: one call, timed; queued.c: who waited for a processor
 *   loop.c      the worker that has one thread and an event loop, with hundreds
 *               of owners that do the same; fiber.c: a stack for each;
 *               clerk.c: what would block
 *   rest.c      a thread of each that holds, and does nothing
 *   witness.c   the first judge: live, in shared memory
 *   history.c   what each process writes down, in a mapped file of its own
 *   judge.c     the second judge: reads all histories afterwards;
 *               judge_locks.c, judge_rw.c, judge_permits.c, judge_line.c,
 *               judge_notes.c: what it asks
 *   excuse.c    what the faults explain, and the machine
 *   metronome.c whether a process runs at all
 *   left.c      what is left in Redis
 *   report.c, timeline.c   what a person looks at
 *
 * All of them share the arena, a mapped file; so nothing is lost with a
 * process that is killed. Times are CLOCK_MONOTONIC in microseconds, which is
 * one clock for all processes of a machine.
 */
#ifndef ATTACK_H
#define ATTACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rlock/rlock.h>

#include "shim.h"
#include "test.h"

/* The servers: one for itself, and the nodes of the Red locks. */
enum { HOME, NODES = 5, SERVERS = 1 + NODES };

/* What home is. */
typedef enum home_kind {
    ALONE,     /* one server */
    WATCHED,   /* a master with a replica, and Sentinels */
    CLUSTERED, /* three masters with a replica each */
    HOME_KINDS
} home_kind;

/* The locks, in this order. */
enum {
    HOMES = 40, /* single ones at home */
    AWAYS = 4,  /* single ones at the first node, with names of home */
    REDS = 6,
    SETS = 6, /* Multi locks, of those before */
    FAIRS = 4,
    RWS = 4, /* read-write locks: of each the read side, and the write side */
    SEMAPHORES = 4,
    FIRST_AWAY = HOMES,
    FIRST_RED = FIRST_AWAY + AWAYS,
    FIRST_SET = FIRST_RED + REDS,
    FIRST_FAIR = FIRST_SET + SETS,
    FIRST_RW = FIRST_FAIR + FAIRS,
    FIRST_SEMAPHORE = FIRST_RW + 2 * RWS,
    LOCKS = FIRST_SEMAPHORE + SEMAPHORES,
    MEMBERS_MAX = 8 /* of a Multi lock */
};

typedef enum lock_kind {
    LOCK_SINGLE,
    LOCK_RED,
    LOCK_MULTI,
    LOCK_FAIR, /* from here on: who waits stands in a line */
    LOCK_READ,
    LOCK_WRITE,
    LOCK_PERMIT, /* some of a semaphore */
    LOCK_KINDS
} lock_kind;

enum {
    PROCS = 4,
    LOOPS = 1, /* of these, the last: event loops */
    THREADS = 4,
    OWNERS = 200,     /* on a loop */
    LIVES_MAX = 4096, /* processes in all, with those that were killed */
    FAULTS_MAX = 8192,
    KINDS_MAX = 128,
    STATUSES = RLOCK_EDEADLK + 1,
    LEASE_MS = 2000, /* of the watchdog */
    COMMAND_MS = 500,
    /* A call goes from thread to thread a dozen times, and waits each time for a
       processor, which no witness counts; under a sanitizer for longer. */
    SLOWER = SANITIZED ? 8 : 1,
    OVERRUN_MS = 50 * SLOWER, /* that a call may take past its own deadline */
    REPLICAS_MS = 500,        /* that is waited for replicas */
    LEAVE_MS = 250,           /* of a client, to take leave of its servers; */
    LAST_TRY_MS = 1000        /* to undo what it may have left */
};

/* What the first judge keeps of one lock. */
typedef struct lock_word {
    _Atomic uint64_t inside;  /* the hold that is in the section; 0: none */
    _Atomic uint64_t counter; /* read, and later written, by the holder */
    _Atomic uint64_t updates; /* what the counter should be */
    _Atomic uint64_t token;   /* the resource's: the largest it has seen */
    _Atomic int64_t asked_us; /* when the youngest hold that wrote was asked
                                 for */
} lock_word;

/* A process from its start to its end. */
typedef struct life {
    int proc;
    int64_t began_us, ended_us;
    bool killed;
} life;

typedef struct fault {
    int kind;         /* index of nemesis_kinds[] */
    int proc, lock;   /* whom it concerns; -1: all */
    unsigned servers; /* and which servers, or the ways to them; a bit each */
    unsigned emptied; /* those that forget what they had promised */
    bool done;        /* has it come to pass? */
    int64_t began_us, mended_us, ended_us;
} fault;

typedef struct arena {
    uint64_t seed;
    home_kind home;
    unsigned min_replicas; /* of the workers' clients at home; 1 is all that a
                              master has here. With 0 a failover may lose what
                              was granted last, as replication is asynchronous:
                              overlaps by that are excused, and counted */
    int64_t began_us, ended_us;
    int64_t turn_ms;   /* of the workers' clients */
    int kinds_percent; /* of the sections: under fair and read-write locks and
                          semaphores */
    char uri[PROCS][SERVERS][256]; /* the worker's ways to the servers */
    _Atomic bool stop;
    /* By kind of lock: outermost acquires that succeeded, and answers. */
    _Atomic uint64_t grants[LOCK_KINDS], reentries[LOCK_KINDS];
    _Atomic uint64_t loop_grants[LOCK_KINDS]; /* those of owners on loops */
    _Atomic uint64_t acquired[LOCK_KINDS][STATUSES];
    _Atomic uint64_t released[LOCK_KINDS][STATUSES];
    _Atomic uint64_t writes_refused; /* by the resource */
    lock_word locks[LOCKS];
    shim_panel panels[PROCS]; /* a worker's calls that fail, its clocks */
    int n_lives;
    life lives[LIVES_MAX];
    int n_faults;
    fault faults[FAULTS_MAX];
} arena;

/* Makes or opens DIR/arena. Ends the process if it cannot. */
arena *arena_map(const char *dir, bool create);

/* Grants of all kinds of locks; those to owners on loops; and those of fair and
   read-write locks and semaphores. */
uint64_t arena_grants(const arena *a);
uint64_t arena_loop_grants(const arena *a);
uint64_t arena_kinds_grants(const arena *a);

/* A worker's whole life, which ends with its parent's. */
int worker_main(const char *dir, int proc, int life, pid_t parent);

int64_t attack_now_us(void);
/* One more of the pseudo-random numbers that begin with *state. */
uint64_t attack_random(uint64_t *state);
/* One of 0 .. n - 1. */
int attack_pick(uint64_t *state, int n);
_Noreturn void attack_die(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

#endif
