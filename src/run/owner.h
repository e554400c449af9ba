/*
 * Who is calling: a thread, by a serial number that is never used twice, or the
 * owner that it acts as. A new thread that gets a dead one's tid, or its
 * pthread_t, does not inherit its holds.
 */
#ifndef RL_RUN_OWNER_H
#define RL_RUN_OWNER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/list.h"
#include "hold/owner.h"

/* An owner that is no thread. */
struct rlock_owner {
    rl_owner self;
    atomic_uint refs; /* the program's, of who acts as it, of operations */
    uint64_t process; /* fixed; in which it was made */
    /* The operation that it has started; guarded by the mutex of owner.c. */
    struct rl_started *_Atomic started;
    /* Who holds something: what its last operation was in. NULL: nothing. */
    void *_Atomic spare;
    /* Which thread acts as it, by its serial; 0: none. */
    atomic_uint_fast64_t user;
    char label[RLOCK_LABEL_MAX + 1]; /* fixed */
};

/* The owner that the calling thread acts as, or the thread. */
rl_owner *rl_owner_self(void);

/* One that nobody acts as: what it holds, any thread may let go of. */
rl_owner rl_owner_apart(void);

/* Whom it acts as; NULL: itself. */
rlock_owner *rl_owner_acting(void);

/*
 * Around a call that the thread drives itself: whom it acts as, NULL for itself,
 * stays until it is over; another status: it may not call as him. Another thread,
 * or a callback, may free him meanwhile: what he was granted after that is
 * abandoned, and rl_owner_end() is false.
 */
rlock_status rl_owner_begin(rlock_owner **as);
bool rl_owner_end(rlock_owner *o);

/* Was it freed, while what it has started goes on? */
bool rl_owner_has_ended(void);

/*
 * May the calling thread do something as its owner? Otherwise the thread's
 * error says why not.
 */
rlock_status rl_owner_check(void);

/*
 * An operation of the calling thread's owner begins, which goes on when the
 * call has returned: its owner is set, and counted. Otherwise it must not, and
 * the thread's error says why. rl_owner_disengage() when it is over, and told.
 */
struct rl_started;
rlock_status rl_owner_engage(struct rl_started *s);
void rl_owner_disengage(rlock_owner *o);
/* An unlock is over, and not told yet: if the owner was freed, it ends now. */
void rl_owner_has_unlocked(struct rl_started *s);
void rl_owner_unref(rlock_owner *o);

/*
 * An owner does one thing at a time, so what one operation was in is there for
 * the next: what it has got it can let go of also when memory has run out.
 * Takes what the calling thread's owner has (NULL: nothing, or the thread is
 * its own owner), and leaves it, or other memory from malloc(), in place of
 * what is there (o NULL: frees it).
 */
void *rl_owner_take_spare(void);
void rl_owner_leave_spare(rlock_owner *o, void *spare);

/*
 * For who drives an operation, or calls back: the thread is this owner until
 * rl_owner_drive_end(), whoever acts as it, and whomever the program acts as,
 * or frees, meanwhile; NULL: it is itself. Returns whom it was before, for that
 * call.
 */
rlock_owner *rl_owner_drive_as(rlock_owner *o);
void rl_owner_drive_end(rlock_owner *former);

/* The same, and no other thread may act as it. */
rlock_owner *rl_owner_act_as(rlock_owner *o);

/*
 * From here on, the calling thread's end is reported to the listeners if it has
 * any holds then. False: out of memory.
 */
bool rl_owner_watch(void);

/*
 * ended() runs on the ending thread, or on that which frees the owner or drives
 * its unlock, with the listeners' mutex held.
 */
typedef struct rl_owner_listener {
    rl_link link;
    void (*ended)(void *arg, uint64_t owner);
    void *arg;
} rl_owner_listener;

bool rl_owner_listen(rl_owner_listener *l); /* false: out of pthread keys */
void rl_owner_unlisten(rl_owner_listener *l);

/* To all listeners: this owner has ended. */
void rl_owner_report_end(uint64_t owner);

#endif
