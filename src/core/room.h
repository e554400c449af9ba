/*
 * Waiting rooms: the threads of this process that want one lock, first come,
 * first served. Only the one in front talks to the server and is represented
 * in the lock's queue there, by this client's bell; the others sleep until it
 * is their turn. So the server's queue has one entry for each client, and a
 * release wakes one thread of one process.
 *
 * The rooms' mutex guards all members below that are not marked "fixed". A
 * waiter lives on its thread's stack; a room exists while it has waiters.
 */
#ifndef RL_CORE_ROOM_H
#define RL_CORE_ROOM_H

#include <sys/queue.h>

#include "base/map.h"
#include "base/thread.h"
#include "core/target.h"

typedef struct rl_room rl_room;

/* Why a waiter should look again; the larger ones win. */
typedef enum rl_wake {
    RL_WAKE_NONE,
    RL_WAKE_LOOK,   /* it has become the front, or rings may have been missed */
    RL_WAKE_RUNG,   /* a release rang for it */
    RL_WAKE_CANCEL, /* rlock_cancel() */
    RL_WAKE_CLOSE   /* rlock_client_free() */
} rl_wake;

typedef struct rl_waiter {
    TAILQ_ENTRY(rl_waiter) link;
    rl_room *room;      /* fixed */
    const void *handle; /* fixed; whose rlock_cancel() ends the wait */
    rl_cond cond;
    rl_wake wake;
} rl_waiter;

struct rl_room {
    rl_map_node node;
    TAILQ_HEAD(, rl_waiter) waiters; /* the first is the front */
    int64_t ticket; /* the client's place in the server's queue; 0: none yet */
    int64_t outage_us; /* since when the server fails; 0: it answers */
    bool listened;     /* the doorbell knows that somebody waits here */
    bool queued;       /* the client's bell may be in that queue */
    uint64_t scope;    /* fixed */
    size_t name_len;   /* fixed */
    char name[];       /* fixed */
};

/*
 * Names for which another client has just been rung. A few are enough: one
 * that is forgotten costs that client a wake-up in vain.
 */
#define RL_MANNERS 64

typedef struct rl_manners {
    uint64_t hash; /* of the name */
    int64_t until_us;
} rl_manners;

typedef struct rl_rooms {
    rl_mutex mutex;
    rl_map map;
    rl_manners manners[RL_MANNERS];
    bool closed;
} rl_rooms;

bool rl_rooms_init(rl_rooms *r);
void rl_rooms_fini(rl_rooms *r, bool forked);

/* Lines up. False: out of memory. */
bool rl_waiter_enter(rl_rooms *r, rl_waiter *w, const rl_target *what,
                     const void *handle);

/*
 * Goes away; the next in line is woken to take over. acquired: the script has
 * taken the client out of the server's queue. True: nobody is left in the
 * room, the server's queue may still have this client, and the caller has to
 * take it out (or to pass on a ring that was meant for it).
 */
bool rl_waiter_leave(rl_rooms *r, rl_waiter *w, bool acquired);

bool rl_waiter_is_front(rl_rooms *r, const rl_waiter *w);

/*
 * Sleeps until woken or until the deadline, and takes the reason with it;
 * RL_WAKE_NONE: the deadline. A cancel or a close stays for the next call.
 */
rl_wake rl_waiter_sleep(rl_rooms *r, rl_waiter *w, int64_t deadline_us);

/*
 * For the front only: its place in the server's queue, before a try with a
 * bell, after which the client may be in that queue; and the ticket that the
 * server gave it.
 */
int64_t rl_waiter_ticket(rl_rooms *r, rl_waiter *w);
void rl_waiter_set_ticket(rl_rooms *r, rl_waiter *w, int64_t ticket);

/*
 * For the front: its try failed. Returns since when tries have, also those of
 * the ones who stood in front before; and ends that.
 */
int64_t rl_waiter_failed(rl_rooms *r, rl_waiter *w);
void rl_waiter_answered(rl_rooms *r, rl_waiter *w);

/* Does somebody wait here, or is the next comer held back? */
bool rl_rooms_is_owed(rl_rooms *r, const rl_target *what);

/*
 * Holds the next comer for a name back until then: a release rang another
 * client, which has a longer way to the lock than this one and would lose
 * against it time and again.
 */
void rl_rooms_yield(rl_rooms *r, const void *name, size_t len,
                    int64_t until_us);
int64_t rl_waiter_yields_until(rl_rooms *r, const rl_waiter *w);

/*
 * For a client that listens on Redisson's channels: goes through the names
 * that are waited for, under the mutex; and whether that has happened since
 * this waiter's room was made.
 */
void rl_rooms_listen(rl_rooms *r,
                     void (*fn)(const char *name, size_t len, void *arg),
                     void *arg);
bool rl_waiter_is_listened_for(rl_rooms *r, const rl_waiter *w);

/*
 * Wakes the front of each room of a single lock of that name. False: nobody
 * here wants the name.
 */
bool rl_rooms_wake(rl_rooms *r, const void *name, size_t len, rl_wake why);
void rl_rooms_wake_all(rl_rooms *r); /* every front, to look again */
void rl_rooms_cancel(rl_rooms *r, const rl_target *what, const void *handle);
void rl_rooms_close(rl_rooms *r); /* every waiter, now and later */

#endif
