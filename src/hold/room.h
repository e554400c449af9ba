/*
 * Waiting rooms: the owners of this process that want one lock, first come,
 * first served. Only the one in front talks to the server and is represented
 * in the lock's queue there, by this client's bell; the others sleep until it
 * is their turn. So the server's queue has one entry for each client, and a
 * release wakes one waiter of one process.
 *
 * Those who stand in a line of the server's (lua/line.lua) are in rooms of their
 * own: of one name several, as those who want to read, and to write, stand in one
 * line. The server knows each of them: each asks once, and from then on the front
 * gives the sign of life for all; what they are granted comes as a message. When
 * some may have been dropped from the line, or a message may have been missed, all
 * who stand there for the name ask again.
 *
 * Who waits for a Red lock attends at all nodes' clients, to hear when one is
 * closed; the front also listens there, for their bells stand in those nodes'
 * queues.
 *
 * The rooms' mutex guards all members below that are not marked "fixed". A
 * waiter and a listener live with their acquire; a room exists while it has
 * waiters. Who is to be woken is called with the mutex held.
 */
#ifndef RL_HOLD_ROOM_H
#define RL_HOLD_ROOM_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/map.h"
#include "base/random.h"
#include "base/thread.h"
#include "hold/target.h"
#include "hold/waker.h"

typedef struct rl_room rl_room;

/* Of a waiter, for who unlocks here; see op/handover.c. */
typedef enum rl_rest {
    RL_AWAKE,   /* it looks by itself */
    RL_ASLEEP,  /* the lock may be offered to it */
    RL_OFFERED, /* it waits for what comes of that; nothing wakes it */
    RL_HANDED   /* the lock is its own, or was granted by a message; nothing
                   wakes it but that */
} rl_rest;

typedef struct rl_waiter {
    rl_link link;
    rl_link aged;       /* among all who want a lock, by began_us */
    rl_room *room;      /* fixed; NULL: it is in none */
    int64_t began_us;   /* fixed; since when it wants the lock */
    const void *handle; /* fixed; whose rlock_cancel() ends the wait */
    rl_waker *waker;    /* fixed */
    bool heard;         /* fixed; the bell was heard when it entered */
    bool quiet;         /* its owner's: when it leaves, nobody is woken */
    bool ends;          /* a cancel or a close has come */
    rl_rest rest;
    rl_wake withheld;       /* while offered or handed: what has come */
    struct rl_hold *draft;  /* while asleep: what can be granted; or NULL */
    bool renewed;           /* while asleep: its hold would be */
    int64_t until_us;       /* while asleep: when the wait is over */
    struct rl_hold *passed; /* once handed: the hold, which has its turn (see
                               op/turn.c); NULL: it was granted */
    uint64_t token;         /* of the grant; */
    unsigned kept;          /* so many more are reserved behind it; */
    int64_t sent_us;        /* and when that was asked for */
    int64_t claim_ms;       /* by a message: for how long; 0: by a thread */
    rl_uuid id;             /* once it has said what it wants: of its hold */
    bool stands;            /* it need not ask by itself; always so, unless it
                               is in line */
} rl_waiter;

struct rl_room {
    rl_map_node node;
    rl_list waiters; /* the first is the front */
    size_t crowd;    /* how many there are */
    int64_t ticket;  /* the client's place in the server's queue; 0: none yet */
    int64_t outage_us; /* since when the server fails; 0: it answers */
    int64_t busy_us;   /* when the server last said that it is held; in line, to
                          who stands there */
    int64_t open_us;   /* of a latch: when it was last asked and found open */
    int64_t streak_us; /* since when it is handed over here; 0: it is not */
    bool queued;       /* the client's bell may be in that queue */
    bool line;         /* fixed; see rl_room_lines_up() */
    uint64_t scope;    /* fixed; see rl_target_room() */
    size_t name_len;   /* fixed */
    char name[];       /* fixed */
};

/* Hears of a client what concerns a waiter of another one. */
typedef struct rl_listener {
    rl_map_node node;
    const rl_target *what; /* fixed */
    rl_waker *waker;       /* fixed */
    unsigned index;        /* fixed; which node of the Red lock this is */
    bool attends;          /* the acquiring owner's own: it is in the map */
    bool listens;          /* also to the rings for the name */
} rl_listener;

/*
 * Names for which another client has just been rung. A few are enough: one
 * that is forgotten costs that client a wake-up in vain.
 */
#define RL_COURTESIES 64

typedef struct rl_courtesy {
    uint64_t hash; /* of the name */
    int64_t until_us;
} rl_courtesy;

typedef struct rl_rooms {
    rl_mutex mutex;
    rl_map map;
    rl_list waiters; /* of all rooms; who has waited for longest first */
    rl_map listeners;
    rl_courtesy courtesy[RL_COURTESIES];
    /* Also read without the mutex: how many rooms there are, and one more once it
       is closed; and when the last courtesy ends. */
    atomic_size_t occupied;
    atomic_int_least64_t courteous_us;
    size_t lines; /* how many rooms of those in line there are */
    bool closed;
    atomic_bool hears; /* the doorbell is subscribed, as far as is known */
} rl_rooms;

bool rl_rooms_init(rl_rooms *r);
void rl_rooms_fini(rl_rooms *r, bool forked);

/* Lines up, who wants the lock since began_us. False: out of memory. */
bool rl_room_enter(rl_rooms *r, rl_waiter *w, const rl_target *what,
                   const void *handle, rl_waker *waker, int64_t began_us);

/*
 * Goes away; the next in line is woken to take over, unless w->quiet: who ends
 * the hold will think of it. acquired: the script has taken the client out of
 * the server's queue. True: nobody is left in the room, the server's queue may
 * still have this client, and the caller has to take it out (or to pass on a
 * ring that was meant for it).
 */
bool rl_room_leave(rl_rooms *r, rl_waiter *w, bool acquired);

/*
 * For a waiter that sleeps from now on: until until_us the lock may be granted
 * to its draft (NULL: may not), which is not its own meanwhile.
 */
void rl_room_rest(rl_rooms *r, rl_waiter *w, struct rl_hold *draft,
                  bool renewed, int64_t until_us);

/*
 * For a waiter whose sleep has ended, for this reason. RL_OFFERED: it sleeps
 * on, until it is woken; the reason is kept. RL_HANDED: the lock is its own,
 * and what w has to say of that is there. RL_AWAKE: neither.
 */
rl_rest rl_room_rise(rl_rooms *r, rl_waiter *w, rl_wake why);

bool rl_room_is_front(rl_rooms *r, const rl_waiter *w);

/* Is it to ask: the front, or one in line who does not stand? */
bool rl_room_has_to_ask(rl_rooms *r, const rl_waiter *w);

/* How many wait with it; 0: in line, where each looks whether it stands yet. */
size_t rl_room_crowd(rl_rooms *r, const rl_waiter *w);

/*
 * For one in line: with its next try it stands there, for the hold with this id;
 * it does not, so it asks again when it looks, and the same of all of its room,
 * as nobody would hear a grant; and all others in line for the name are to ask
 * again now, for any may have been dropped.
 */
void rl_room_stand(rl_rooms *r, rl_waiter *w, const rl_uuid *id);
void rl_room_stand_not(rl_rooms *r, rl_waiter *w);
void rl_room_stand_none(rl_rooms *r, const rl_waiter *w);
void rl_room_stand_anew(rl_rooms *r, const rl_waiter *w);
/* The same; without `but`, all of them. */
void rl_room_stand_anew_locked(rl_rooms *r, const rl_room *room,
                               const rl_waiter *but) RL_REQUIRES(&r->mutex);

/* The server has granted a lock to who stands in line for it. */
typedef struct rl_notice {
    const char *name;
    size_t len;
    rl_uuid id; /* of the hold */
    uint64_t token;
    int64_t beat_us, claim_ms; /* see op/grant.h */
} rl_notice;

/* Hands it over, in line or as the front that has said what it wants. Who has
   given up has released it, or does so. */
void rl_rooms_grant(rl_rooms *r, const rl_notice *n);

/* Of that name, if they stand in line there; NULL: nobody does. */
rl_room *rl_room_in_line_locked(rl_rooms *r, const void *name, size_t len,
                                uint64_t room) RL_REQUIRES(&r->mutex);

/* What was granted has taken the client out of the queue for that name: the fronts
   of its other rooms, and who listens, are to stand there again. */
void rl_rooms_left_queue_locked(rl_rooms *r, const void *name, size_t len,
                                const rl_waiter *granted)
    RL_REQUIRES(&r->mutex);

/* The client's bell is not in the server's queue, so whoever of it stands in line
   for the name has none there either. */
void rl_room_unqueue_locked(rl_rooms *r, rl_room *room) RL_REQUIRES(&r->mutex);

/* The front of that room; NULL: nobody waits there. */
rl_waiter *rl_room_front_locked(rl_rooms *r, const void *name, size_t len,
                                uint64_t scope) RL_REQUIRES(&r->mutex);

/* Wakes it, or keeps that back until an offer is resolved. */
void rl_waiter_wake_locked(rl_rooms *r, rl_waiter *w, rl_wake why)
    RL_REQUIRES(&r->mutex);

/*
 * For the front only: its place in the server's queue, before a try with a
 * bell, after which the client may be in that queue; and the server's answer,
 * that the lock is held, with the ticket that it gave.
 */
int64_t rl_room_ticket(rl_rooms *r, const rl_waiter *w);
void rl_room_is_busy(rl_rooms *r, const rl_waiter *w, int64_t ticket,
                     int64_t asked_us);

/*
 * For the front: its try failed. Returns since when all tries have, also those
 * of earlier fronts. An answer ends such an outage.
 */
int64_t rl_room_failed(rl_rooms *r, const rl_waiter *w, int64_t now_us);
void rl_room_answered(rl_rooms *r, const rl_waiter *w);

/* Has the server said that it is held, when asked at that time or later? */
bool rl_room_was_busy(rl_rooms *r, const rl_waiter *w, int64_t since_us);

/*
 * For the front of a latch's room, which has found it open, asked at that time:
 * all others look. And for these: has anybody found it open, asked since they
 * began to wait?
 */
void rl_room_is_open(rl_rooms *r, const rl_waiter *w, int64_t asked_us);
bool rl_room_was_open(rl_rooms *r, const rl_waiter *w);

/* Since when the one has waited who wants a lock for longest; RL_NEVER: nobody
   does. */
int64_t rl_rooms_longest(rl_rooms *r);

/*
 * Nobody waits, and they are not closed: mostly so, and then the mutex is not
 * needed. Who enters meanwhile comes later than this look, as he would if it had
 * been made with the mutex.
 */
static inline bool rl_rooms_are_empty(const rl_rooms *r)
{
    return atomic_load(&r->occupied) == 0;
}

/* Does somebody wait here? */
bool rl_rooms_have(rl_rooms *r, const rl_target *what);

/* The same, or is the next comer held back? */
bool rl_rooms_is_owed(rl_rooms *r, const rl_target *what, int64_t now_us);

/*
 * Holds the next comer for a name back until then: a release rang another
 * client, which has a longer way to the lock than this one and would lose
 * against it time and again.
 */
void rl_rooms_hold_back(rl_rooms *r, const void *name, size_t len,
                        int64_t until_us);
int64_t rl_room_held_back_until(rl_rooms *r, const rl_waiter *w);

/*
 * It is woken to look when the client is closed, now or later. After
 * rl_rooms_listen() rings wake it, too. rl_rooms_unlisten() ends both; without
 * rl_rooms_attend() it does nothing.
 */
void rl_rooms_attend(rl_rooms *r, rl_listener *l);
void rl_rooms_listen(rl_rooms *r, rl_listener *l);
void rl_rooms_unlisten(rl_rooms *r, rl_listener *l);
bool rl_rooms_is_closed(rl_rooms *r);

/* There is another server: all who ask are to ask again, now. */
void rl_rooms_look_all(rl_rooms *r);

/*
 * The doorbell is subscribed, or is so no more. When it begins, rings may have
 * been missed, so every front and listener looks again. `hears` is set under
 * the mutex: the first in a room is either woken by it, or entered as `heard`.
 */
void rl_rooms_hear(rl_rooms *r);
void rl_rooms_hear_no_more(rl_rooms *r);

/*
 * A hold has ended here, and was not handed over: the front looks. rings: the
 * server has rung who stood first in its queue, or may have; if this client may
 * be there, its front is left to that. A queue that is empty rings nobody,
 * whatever the client believes: a slot that moved may have left it behind.
 */
void rl_rooms_look(rl_rooms *r, const void *name, size_t len, uint64_t scope,
                   bool rings);

/*
 * Wakes the front of each room of a single lock of that name, and who listens
 * for it. False: nobody here wants the name.
 */
bool rl_rooms_wake(rl_rooms *r, const void *name, size_t len, rl_wake why);
void rl_rooms_cancel(rl_rooms *r, const rl_target *what, const void *handle);
void rl_rooms_cancel_all(rl_rooms *r);
/* Every waiter, now and later; and who attends, to look. */
void rl_rooms_close(rl_rooms *r);

#endif
