/*
 * The second judge. It has the histories of all processes and the list of
 * faults, and no word from Redis. What it asks of each lock:
 *
 *   The times at which the library said "held" do not overlap. A hold counts
 *   from after its acquire has returned until before the last question that
 *   was answered "held": all that can be known for certain.
 *   A hold that was asked for after another one had been granted has the
 *   larger token.
 *   A hold that was lost is reported as lost once, one that was released
 *   never; and there is a reason for each loss: that a single call was hit, or
 *   the way to be woken, is none.
 *   What a thread has let go of is not found in Redis a while later.
 *   Nobody still has what he had before a fault that outlives every lease, or
 *   what has been reported to him as lost.
 *   No call goes on past its own deadline while its process runs.
 *   What was started on an event loop is called back once.
 *   Nobody writes while others read, who have one token as long as nobody writes
 *   between them. Never more permits are held than there are. Who stands in line
 *   is not passed by who asks later.
 *   A client that does nothing is told within REST_MS what its server has lost
 *   by its end (but not by a command), and loses nothing otherwise.
 *
 * A Multi lock is judged as a whole, whose loss has one report and one cause;
 * and as each of its members, which has to keep everybody else out while the
 * whole says "held". A Red lock that some of its nodes forget is still to keep
 * others out: only a majority's loss of data is an excuse, also for its tokens.
 *
 * It also decides on what the first judge has noticed: an overlap is excused
 * when the server lost the lock meanwhile, a lost update when somebody whose
 * hold was lost or who was killed may have written. Nothing excuses a stale
 * write that the resource has taken.
 */
#ifndef ATTACK_JUDGE_H
#define ATTACK_JUDGE_H

#include "history.h"

typedef enum offence {
    OVERLAP_SEEN, /* by the first judge */
    OVERLAP,      /* by this one */
    LOST_UPDATE,
    STALE_WRITE,
    TOKEN_ORDER,
    REENTRY,
    LARGEST,
    TOLD_LATE,     /* "held" after the end of all leases */
    REPORTED_LATE, /* a loss, after its holder knew of it otherwise */
    UNREPORTED,    /* a loss, or an end by its thread's */
    REPORTED_TWICE,
    WITHOUT_CAUSE,
    OVERRUN,
    NOT_ENDED,   /* a hold whose process ended well */
    LEFT_BEHIND, /* a lock, in Redis */
    MISCOUNTED,
    UNHEARD,    /* grants */
    TOLD_TWICE, /* what had been started, on a loop */
    UNTOLD,
    REFUSED,
    REST_LATE, /* a loss, to a client at rest */
    BESIDE_WRITER,
    READERS_APART, /* with different tokens at a time */
    PERMITS_OVER,
    PASSED, /* who stood in line */
    OFFENCES
} offence;

extern const char *const offence_names[OFFENCES];

typedef struct entry {
    hold *r; /* NULL: about none */
    int life;
    int lock; /* -1: about none */
} entry;

typedef struct finding {
    offence what;
    int lock;
    int life;
    int64_t at_us;
    char text[120];
} finding;

enum { FINDINGS_KEPT = 200 };

typedef struct verdict {
    history **histories; /* of each life; NULL: it never got that far */
    int n_histories;
    history *machine; /* stalls that concern everybody; NULL: unknown */
    const fault *outliving[FAULTS_MAX]; /* faults that no hold outlives */
    int n_outliving;
    entry *holds[LOCKS]; /* by granted_us */
    size_t n_holds[LOCKS];
    uint64_t ends[LOCK_KINDS][HOLD_ENDS];
    uint64_t writes;
    uint64_t waits_judged; /* in lines */
    uint64_t found[OFFENCES], excused[OFFENCES];
    uint64_t overlaps_by[KINDS_MAX]; /* excused ones, by the kind of fault */
    int64_t longest_overrun_us;      /* stalls of the machine taken off */
    int64_t longest_stall_us;
    finding kept[FINDINGS_KEPT];
    size_t n_kept;
    /* Told by main.c. */
    int left_over; /* keys in Redis */
    int leaked;    /* permits */
    int died;      /* workers, by themselves */
} verdict;

verdict *judge(const char *dir, arena *a);
void verdict_free(verdict *v);
/* Nothing found? */
bool verdict_is_clean(const verdict *v);

#endif
