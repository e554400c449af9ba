/*
 * What a process writes down about its holds, in a mapped file: what it has
 * written is there also after kill -9. Nothing is ever moved or removed, so
 * writers need no lock but the counters of the head.
 */
#ifndef ATTACK_HISTORY_H
#define ATTACK_HISTORY_H

#include "attack.h"

typedef enum hold_end {
    HOLD_OPEN,      /* the process was killed meanwhile */
    HOLD_RELEASED,  /* the last unlock said OK */
    HOLD_LOST,      /* the library told so */
    HOLD_UNKNOWN,   /* the last unlock failed; the hold is over nevertheless */
    HOLD_ABANDONED, /* the thread ended, or the owner */
    HOLD_CLOSED,    /* the client was freed meanwhile */
    HOLD_ENDS
} hold_end;

/*
 * One hold, from its outermost acquire to its end. A Multi lock's is written
 * down as a whole and for each member that it took anew.
 */
typedef struct hold {
    _Atomic uint64_t token; /* 0: not written yet */
    int64_t asked_us;       /* before the acquire */
    int64_t granted_us;     /* after it */
    int64_t entered_us;     /* after the first look at the counter */
    int64_t held_us; /* the last time before which the library was not asked,
                        and then said "held" */
    int64_t over_us; /* after it was told that it is over */
    int64_t lease_ms;
    int64_t
        stood_us; /* its acquire was told that it has to wait; 0: it did not */
    uint32_t writes; /* updates of the counter */
    _Atomic uint8_t lost_events, abandoned_events;
    uint8_t lock, thread;
    uint8_t end; /* hold_end */
    uint8_t levels;
    uint8_t permits; /* of a semaphore */
    bool joined;     /* whose owner has the other side of the lock as well */
    _Atomic uint32_t told_ms; /* from granted_us to the first event; 0: none */
    uint32_t whole; /* the Multi lock's hold that tells of this one's end: its
                       index, from 1; 0: it is told by itself */
    bool shared;    /* let go of together with others, so that how it ended is
                       not always known */
    bool late;      /* it was over when its holder was told of it */
    bool mixed;     /* a Multi lock with members that are told by themselves */
} hold;

/* Something that a judge has to look at. */
typedef enum note_kind {
    NOTE_STALL, /* from, to: the process, or the machine, did not run */
    /* From, to: deadline and end of a call; value: how long it had to wait for
       a processor. */
    NOTE_LATE_ACQUIRE,
    NOTE_LATE_UNLOCK,
    NOTE_LATE_EXTEND,
    NOTE_LATE_END,  /* from, to: freeing the client; value: likewise */
    NOTE_OVERLAP,   /* "held", with another one inside since; from: asked for */
    NOTE_MISMATCH,  /* an update of the counter was lost; value: how many */
    NOTE_STALE,     /* the resource took a write after a newer holder's */
    NOTE_REENTRY,   /* a re-entry changed the token or the count */
    NOTE_LARGEST,   /* a Multi lock's token, to, is not its members' largest,
                       value */
    NOTE_OVERTIME,  /* "held" past the end of an explicit lease */
    NOTE_REVIVED,   /* unlocked well after "not held" */
    NOTE_EARLY_END, /* an event about a hold that is not written down yet;
                       value: its token; from: is it lost? */
    NOTE_TAKEN,     /* a Multi lock had this member, and let go of it before it
                       was granted; value: its token; 0: its client was being
                       closed, and it may have had it */
    NOTE_COUNT,     /* the client's statistics tell from, in fact it is to */
    NOTE_LEFT,      /* from, to: a lock was still there of a thread that had let
                       go of it */
    NOTE_UNHEARD,   /* of a grant, from, to, no event has told its owner */
    NOTE_TOLD_TWICE, /* a start was called back again, or before it returned;
                        value: with that status */
    NOTE_UNTOLD,     /* it was not called back; from: its limit; to: given up */
    NOTE_REFUSED, /* a start was, that was none too many; value: 0 if later */
    NOTE_REST,    /* from, to: a client held, and did nothing; value: a
                     rest_end */
    NOTE_TOLD,    /* an event about the end of a hold of a lock that is shared;
                     from: is it lost? */
    NOTE_KINDS
} note_kind;

typedef struct note {
    int64_t at_us, from_us, to_us;
    uint64_t value;
    uint32_t kind;
    uint32_t lock;
} note;

/* How a holder at rest learned of the end of its hold. */
typedef enum rest_end {
    REST_RELEASED, /* there was none: its unlock said OK */
    REST_TOLD,     /* by an event */
    REST_UNTOLD    /* by its unlock, no event had come before */
} rest_end;

enum { HOLDS_MAX = 6000000, NOTES_MAX = 1000000 };

typedef struct history {
    _Atomic uint32_t n_holds, n_notes;
    note notes[NOTES_MAX];
    hold holds[HOLDS_MAX];
} history;

/* What concerns all lives is in a history of its own. */
enum { MACHINE = LIVES_MAX };

/* DIR/history.LIFE; the file is sparse. What is not created, but read, is a
   copy: changes stay in memory. */
history *history_map(const char *dir, int life, bool create);
bool history_exists(const char *dir, int life);
void history_unmap(history *h);

/* Room for one more. Ends the process when there is none left. */
hold *history_hold(history *h);
void history_note(history *h, const note *n);

#endif
