/*
 * The faults of the attack. Each kind does its harm to the server, to the way
 * between it and a worker, or to a worker's process, and mends it again; the
 * arena keeps when, for the judge.
 */
#ifndef ATTACK_NEMESIS_H
#define ATTACK_NEMESIS_H

#include <sys/types.h>

#include "home.h"
#include "proxy.h"

typedef struct nemesis {
    arena *a;
    home *home;
    server *sv[SERVERS]; /* at home: the master that the next fault is about */
    proxy *px[PROCS][SERVERS]; /* a worker's ways to them; NULL: no proxy */
    uint64_t deck_rng, rng;    /* which fault, and how */
    rlock_client *cl;          /* an administrator's of one server */
    /* Of a worker's present process. */
    pid_t (*pid_of)(int proc);
    void (*kill_worker)(int proc); /* and start another one */
    int kinds[KINDS_MAX], n_kinds; /* that it may deal; see nemesis_choose() */
    int deck[KINDS_MAX], left;     /* kinds still to come in this round */
} nemesis;

/* Whose the harm is. */
typedef enum nemesis_where {
    AT_HOME,       /* the server's that has most locks, or the way's to it */
    AT_A_NODE,     /* one node's, and no Red lock depends on one */
    AT_TWO_NODES,  /* of those that all Red locks have */
    AT_MOST_NODES, /* three's: a majority of five, mostly of three, too */
    EVERYWHERE
} nemesis_where;

typedef struct nemesis_kind {
    const char *name;
    int row; /* of the catalogue in faults.md */
    nemesis_where where;
    unsigned homes;  /* where it makes sense, a bit for each home_kind; 0: only
                        with one server */
    bool loses_data; /* the servers forget what they had promised */
    bool votes_on;   /* and run on, so that nobody can tell */
    bool outlives_leases; /* what was held when it began is lost when it is
                             mended */
    bool of_a_process, of_a_lock;
    bool harmless; /* nobody may lose a hold by it */
    /* false: it has not come to pass this time */
    bool (*inject)(nemesis *n, fault *f);
    /* For those that take no more than commands to the server; */
    const char *harm, *repair;
    /* a call of a script that is hit, one among so many; */
    const char *script, *answer; /* script NULL: any command */
    proxy_action action;
    int among;
    /* calls of a worker's process that fail. */
    shim_call call;
    int err;
} nemesis_kind;

extern const nemesis_kind nemesis_kinds[];
extern const int nemesis_n_kinds;

enum { FAULT_LABEL_MAX = 100 };

/* What a person calls it: the kind, and whom it has hit. */
void fault_label(const fault *f, char label[FAULT_LABEL_MAX]);

/* Does it make sense there? */
bool nemesis_fits(int kind, home_kind home);

/* This kind, too, and none that is not chosen. Is there such a kind? */
bool nemesis_choose(nemesis *n, const char *name);
/* All that make sense there. */
void nemesis_choose_all(nemesis *n, home_kind home);

/* The next fault of the shuffled deck, from harm to repair. Every kind comes
   once before any comes again. */
void nemesis_strike(nemesis *n);

#endif
