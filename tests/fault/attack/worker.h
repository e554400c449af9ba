/*
 * A process of the attack, as its parts see it: worker.c makes it and takes
 * the events, labour.c has the ideas, holding.c carries them out, on threads or
 * on a loop (loop.c).
 */
#ifndef ATTACK_WORKER_H
#define ATTACK_WORKER_H

#include <pthread.h>

#include "history.h"

enum { RECENT = 64 }; /* holds of a lock that an event may still be about */

typedef struct recent {
    pthread_mutex_t mutex;
    hold *holds[RECENT]; /* guarded by mutex, as is n */
    unsigned n;
} recent;

typedef struct worker {
    arena *a;
    history *h;
    int proc, life;
    rlock_client *cl[SERVERS];
    rlock *outer[LOCKS], *inner[LOCKS]; /* two handles are one lock */
    rlock_semaphore *semaphores[LOCKS]; /* instead; NULL: it is a lock */
    recent recent[LOCKS];
    bool on_loop; /* see loop.h */
    bool closed;  /* the clients, for the moment; the loop's */
    /* To be compared with the clients'. */
    _Atomic uint64_t acquires[SERVERS], releases[SERVERS];
} worker;

extern worker me;

/* Who locks, a thread or an owner on a loop: what it is told by events. */
typedef struct actor {
    uint64_t granted[LOCKS];
    int64_t stood_us; /* that it has to wait */
    bool by_events;
} actor;

/* The calling thread goes on as this one; NULL: as itself. */
void act_as(actor *a);

/* Of a client of this server, but for its events. */
rlock_options worker_options(int server);

/* The clients only: what is held with them ends. And, later: new ones, and new
   handles for the old ones. */
void worker_free_clients(void);
void worker_begin_anew(void);

/* What moves a deadline may wait for replicas, too. */
int64_t worker_replicas_ms(void);
void worker_notice(note_kind kind, int lock, int64_t from_us, int64_t to_us,
                   uint64_t value);
/* An owner on a loop lets others go on meanwhile. */
void pause_us(int64_t us);

/* An event may be about this hold from now on. */
void remember(hold *r);

/* The token of the actor's last grant of a lock, also if it is lost at once; 0:
   none since all were forgotten. */
uint64_t granted_token(int lock);
/* When its acquire was told that it has to wait; 0: not since then. */
int64_t stood_us(void);
void forget_grants(void);

/* The client that counts what is done with a lock; a Multi lock has none. */
int lock_home(int lock);
/*
 * From now on the actor's acquires and releases are counted by their events:
 * what a Multi lock does with its members nobody else knows, nor what was
 * granted to an owner that is freed.
 */
void count_by_events(bool by_events);

/* What a thread of the worker, or an owner of its loop, does until the end. */
void labour(int number);

#endif
