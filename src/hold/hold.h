/*
 * The hold table: what this client's threads hold, as far as the client may
 * believe it. One record for each (lock name, owner).
 *
 * States. A hold begins as DRAFT, made before the server is asked so that no
 * allocation can fail afterwards. Granted, it is HELD and in the table. Past
 * its deadline, or when the server no longer knows it, it is LOST: still in
 * the table, so that the owner's unlocks pair, but never HELD again. With the
 * last unlock it leaves the table and is OVER. A draft or an over hold that
 * the server may still have is UNDOING: the keeper sends releases for it
 * until the server says that it is gone, or its lease has run out.
 *
 *   DRAFT -> HELD -> LOST -> OVER
 *     |        |       `---> UNDOING -> OVER
 *     |        |-----------> OVER
 *     `--------'-----------> UNDOING
 *
 * On a node of a Red lock a hold may also be VACANT: the lock is held on a
 * majority of other nodes, and this one's client asks for it again with each
 * renewal. A DRAFT that is in the table is a grant that is late.
 *
 *   DRAFT <-> VACANT -> OVER;   HELD -> VACANT
 *
 * Two kinds of heap order what is due: `work` for the keeper (renewals of HELD
 * holds that are renewed, a look at others whose server may not have them any
 * more, releases of UNDOING ones, acquires of VACANT ones), one for each server
 * of a cluster, and `expiry`, one in all, for the notifier (deadlines of HELD
 * holds). They are apart because a loss must be reported at the deadline,
 * whatever the keeper is at. A sleeper is woken only when something falls due
 * earlier than it would have looked, so a quick lock and unlock wakes nobody.
 *
 * The table's mutex guards everything in it, the holds' members that are not
 * marked "fixed", all heaps and the queue of reports. Only its owner grants,
 * counts or ends a hold; the keeper and the notifier prolong it or lose it.
 * Nothing here reads a clock: now_us is an argument.
 */
#ifndef RL_HOLD_HOLD_H
#define RL_HOLD_HOLD_H

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/random.h"
#include "base/thread.h"
#include "hold/extra.h"
#include "hold/group.h"
#include "hold/owner.h"
#include "hold/stats.h"
#include "hold/target.h"

typedef enum rl_state {
    RL_DRAFT,
    RL_VACANT,
    RL_HELD,
    RL_LOST,
    RL_UNDOING,
    RL_OVER
} rl_state;

const char *rl_loss_text(rl_loss why);

/* Has the server said so? Then nobody releases it. */
static inline bool rl_loss_is_seen(rl_loss why)
{
    return why == RL_LOSS_GONE || why == RL_LOSS_FOREIGN;
}

struct rl_part;
struct rl_holds;

/* A server at which something is held is not left silent for longer. */
#define RL_WATCH_US (850 * 1000)

/*
 * What is due at one server, for the keeper that asks it, and whether that has
 * to be watched. A client of a cluster has one for each server it knows; a hold
 * is in that of the server which had its slot when it was granted, or
 * scheduled.
 */
typedef struct rl_due_queue {
    rl_heap work;
    size_t held;       /* how many holds are HELD there */
    int64_t since_us;  /* what calls have confirmed that were sent before, the
                          server may not know: it is asked again */
    int64_t look_us;   /* when its keeper looks after the server; in the past:
                          it does not, as nothing was held */
    int64_t told_us;   /* when a renewal that failed there was last told */
    int64_t sleeps_us; /* until when its keeper sleeps; 0: it is awake */
    /* Wakes it; called with the mutex held. Fixed; NULL: nobody sleeps. */
    void (*wake)(struct rl_due_queue *l);
    void *arg;                 /* fixed; whose it is */
    struct rl_due_queue *next; /* of the table's */
} rl_due_queue;

/*
 * What one owner has in a table, so that its end needs no search, and what all
 * its holds have in common; with one reference for each hold and draft.
 */
typedef struct rl_owner_record {
    rl_map_node node;
    uint64_t owner;
    size_t refs;
    rl_list holds; /* those in the table */
    struct rl_awaited
        *waits; /* what its owner waits for; NULL: nothing, or it was
                              not noted (hold/deadlock.h) */
    uint16_t name_len;
    uint16_t weight; /* of an owner that is permits: how many; 0: of others */
    uint32_t idle_s; /* the same: as of rl_semaphore */
    char name[];     /* fixed; host:pid:tid: that its holder ids begin with */
} rl_owner_record;

typedef struct rl_hold {
    rl_map_node node;
    rl_heap_node work;
    rl_heap_node expiry; /* due at the deadline: so long the client believes */
    struct rl_hold *next_report; /* in the queue of reports */
    rl_link owned; /* in its owner's record, as long as it is in the map */
    rl_link aged;  /* while it is HELD: among those, by began_us */
    rl_owner_record *record;
    /* NULL: it has nothing of that. It is read without the mutex, too: but for
       a draft, it is only made. */
    rl_extra *_Atomic extra;
    unsigned refs;
    int count;
    uint16_t reports;    /* bit set of rlock_event_type */
    uint8_t state;       /* rl_state */
    uint8_t loss;        /* rl_loss */
    uint8_t member : 4;  /* fixed; Red: which node this is */
    uint8_t scope : 4;   /* fixed; RL_SINGLE_SCOPES: it is a node's */
    uint8_t layout : 6;  /* fixed; rlock_layout */
    bool sharded : 1;    /* fixed; its channels are, in a cluster */
    bool stood : 1;      /* fixed once held; its release grants (grant.lua) */
    uint8_t : 0;         /* these three are read without the mutex */
    uint8_t sent_on : 6; /* so often in a row its renewal was, by redirects */
    bool claimed : 1;    /* lease_ms is less than a renewal's, and all it has */
    bool paired : 1;     /* a side: its owner has asked for the other, too */
    uint8_t replicas;    /* fixed; so many must have what moves the deadline */
    uint8_t in_a_row;    /* so many here had it, each from the one before */
    uint16_t name_len;   /* fixed */
    uint16_t slot;       /* fixed; of a cluster */
    uint16_t detour;     /* who is asked next, once (rl_redirects.ask); or 0 */
    bool unknown;        /* an acquire may still arrive: leave a tombstone */
    bool split;          /* its undoing was put off, as its slot moves */
    bool keeps;          /* the renewal in flight keeps its token's key */
    bool renewed : 1;    /* by the keeper; all in this byte with the mutex */
    bool paused : 1;     /* but not now: an extend is under way */
    bool in_flight : 1;  /* the keeper has asked and waits for the answer */
    bool astray : 1;     /* another command than its acquire may still arrive */
    bool queued : 1;     /* in the queue of reports */
    bool passing : 1;    /* to an owner whose thread has not woken yet */
    bool late : 1;       /* it was told that its renewal is */
    bool deep : 1;       /* its owner's: the server may count more than one */
    uint32_t kept_s;     /* when its token's key was last kept, in seconds */
    int64_t lease_ms;    /* of the outermost acquire */
    int64_t gone_us;     /* every lease that was asked for has run out by
                            then, unless its command is executed even later */
    int64_t began_us;
    union {
        int64_t renewal_us; /* HELD and renewed: when its next renewal is due,
                               whenever that is tried */
        int64_t ended_us;   /* once it is not HELD any more */
    };
    int64_t confirmed_us; /* when what last showed that it is there was sent */
    uint64_t token;       /* of what is done to a latch: by how many */
    const struct rl_line *asked_on; /* the latest call's, while it has no
                                       answer; only compared */
    rl_group *group;                /* NULL: it is a lock by itself; counted */
    rl_due_queue *queue;            /* in which it is scheduled, or was last */
    rl_uuid id;                     /* fixed; the end of its holder id */
    char name[];                    /* fixed; ends in a NUL */
} rl_hold;

typedef struct rl_holds {
    rl_mutex mutex;
    rl_map map;
    rl_map records;
    rl_heap expiry;
    rl_list held, too_old; /* those that are HELD: see age.c */
    rl_due_queue first;    /* of the only server; or of none in a cluster */
    rl_due_queue *queues;  /* all, newest first; only grows */
    /* In which of them is what is due for a hold? NULL: in the first. Fixed;
       called with the mutex held. */
    rl_due_queue *(*queue_of)(struct rl_holds *t, const rl_hold *h);
    rl_hold *first_report, *last_report; /* the queue; each is referenced */
    int64_t sleeps_us; /* until when the notifier sleeps; 0: it is awake */
    /* Wakes it; called with the mutex held. Fixed; NULL: nobody sleeps. */
    void (*wake)(struct rl_holds *t);
    rl_fault failure; /* the latest of a renewal, or of an undo at the end */
    bool reconnected, failed_over, stopping;
    bool closed;            /* what is granted from now on is nobody's */
    bool wants_reports;     /* fixed: there is an on_event */
    int64_t renewal_ms;     /* fixed; lease that a renewal asks for */
    int64_t max_hold_ms;    /* fixed; 0: no limit */
    int64_t warn_us;        /* fixed; older than that is too old; 0: none is */
    int64_t late_due_us;    /* none is late before that; 0: nobody is told */
    rl_stats *stats;        /* fixed */
    struct rl_rooms *rooms; /* fixed; where the next ones wait */
    const char *process;    /* fixed; host:pid, of holder ids */
    size_t undoing;         /* how many holds are */
    size_t left, uncounted; /* given up at the end; of both, count-downs */
    uint64_t walks;         /* so often circles were looked for */
    bool releasing;         /* it is being closed with what is held */
    rl_alarms kept; /* of holds that ended with the client; its struct's */
} rl_holds;

bool rl_holds_init(rl_holds *t, rl_stats *stats, struct rl_rooms *rooms,
                   const char *process, int64_t renewal_ms, int64_t max_hold_ms,
                   bool wants_reports);
/*
 * Drops what is left; nobody else may use the table any more. forked: in a
 * child, where threads that are not there still seem to wait on the mutex.
 */
void rl_holds_fini(rl_holds *t, bool forked);

/* --- the table (table.c) -------------------------------------------------- */

/*
 * The owner's hold of a name, referenced; *valid: it is held. A deadline that
 * has passed by now makes it lost. NULL: there is none; then *room (if not
 * NULL) is what a new one needs, or NULL: out of memory.
 */
rl_hold *rl_holds_pick(rl_holds *t, const rl_target *what,
                       const rl_owner *owner, int64_t now_us, bool *valid,
                       rl_owner_record **room);
void rl_holds_put(rl_holds *t, rl_hold *h); /* NULL is accepted */

/* Which line has the hold's latest call? NULL: it is answered. */
const struct rl_line *rl_hold_line(rl_holds *t, const rl_hold *h);

/* Room by itself; and back, if no draft has been made of it. */
rl_owner_record *rl_holds_make_room(rl_holds *t, const rl_owner *owner);
void rl_holds_give_up_room(rl_holds *t, rl_owner_record *room); /* NULL: none */

/*
 * A draft of the owner's hold, with one reference, the caller's. It takes over
 * the room, also when it fails: NULL, out of memory.
 */
rl_hold *rl_hold_new(rl_holds *t, rl_owner_record *room, const rl_target *what,
                     const rl_uuid *id);
void rl_hold_unref_locked(rl_holds *t, rl_hold *h) RL_REQUIRES(&t->mutex);

/* The owner's hold of a name, or NULL. */
rl_hold *rl_holds_find_locked(rl_holds *t, const rl_target *what,
                              uint64_t owner) RL_REQUIRES(&t->mutex);

/* What the owner has here. NULL: nothing. */
rl_owner_record *rl_holds_record_locked(rl_holds *t, uint64_t owner)
    RL_REQUIRES(&t->mutex);
void rl_owner_record_unref_locked(rl_holds *t, rl_owner_record *x)
    RL_REQUIRES(&t->mutex);

/*
 * Into the table, so that its owner finds it there; the table takes over the
 * caller's reference. No effect when it is in.
 */
void rl_hold_list_locked(rl_holds *t, rl_hold *h) RL_REQUIRES(&t->mutex);

/* It is to be another owner's, and is found by nobody until it is listed. */
void rl_hold_give_locked(rl_holds *t, rl_hold *h, rl_owner_record *to)
    RL_REQUIRES(&t->mutex);

/* Out of it, if it is in; the caller gets the table's reference. */
void rl_hold_unlist_locked(rl_holds *t, rl_hold *h) RL_REQUIRES(&t->mutex);

/* The owner has ended: its holds are reported, and renewed no more. */
void rl_holds_abandon(rl_holds *t, uint64_t owner, int64_t now_us);

/* Holds whose deadline has passed become LOST, so many at most. True: there are
   more. */
bool rl_holds_expire_locked(rl_holds *t, size_t most, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/*
 * The client is about to be closed: of a hold that ends with its owner, or with
 * the client, the keeper undoes all that the server may have.
 */
void rl_holds_release(rl_holds *t);

/*
 * The client is being closed. Its holds end by themselves, but those of locks
 * that are held elsewhere, too, are lost to these, or, at their home, with
 * them.
 */
void rl_holds_close(rl_holds *t, const rl_home *home, int64_t now_us);

/*
 * Keepers have ended: so many holds that the server may have were not undone.
 * *why: the latest failure, if there was one.
 */
size_t rl_holds_left(rl_holds *t, rl_fault *why);

void rl_holds_stop(rl_holds *t);        /* keeper and notifier end */
void rl_holds_reconnected(rl_holds *t); /* an event of its own */

/* For the notifier: an event of this hold is to be delivered. */
void rl_hold_report_locked(rl_holds *t, rl_hold *h, rlock_event_type type)
    RL_REQUIRES(&t->mutex);

/* The first hold of the queue with something to report. NULL: there is none,
   and the queue is empty. */
rl_hold *rl_holds_first_report_locked(rl_holds *t) RL_REQUIRES(&t->mutex);

/* Takes off the first of the queue, whose reference the caller gets. */
rl_hold *rl_holds_unqueue_locked(rl_holds *t) RL_REQUIRES(&t->mutex);

void rl_holds_nudge_locked(rl_holds *t, int64_t due_us) RL_REQUIRES(&t->mutex);

/* --- how old they are (age.c) --------------------------------------------- */

/* It is HELD since began_us; and not any more. */
void rl_hold_begin_age_locked(rl_holds *t, rl_hold *h, int64_t began_us)
    RL_REQUIRES(&t->mutex);
void rl_hold_end_age_locked(rl_holds *t, rl_hold *h) RL_REQUIRES(&t->mutex);

/* Since when the oldest one has been held; RL_NEVER: nothing is held. */
int64_t rl_holds_oldest(rl_holds *t);

/* When the next one may get too old (warn_us), or late; RL_NEVER: none does. */
int64_t rl_holds_age_due_locked(const rl_holds *t) RL_REQUIRES(&t->mutex);

/* Of those that are is told, of so many too old at most. True: there are more. */
bool rl_holds_warn_locked(rl_holds *t, size_t most, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/* --- one hold (hold.c) ---------------------------------------------------- */

static inline const char *rl_hold_name(const rl_hold *h)
{
    return h->name;
}

static inline const rl_layout *rl_hold_layout(const rl_hold *h)
{
    return &rl_layouts[h->layout];
}

/* It is one of a Multi lock. Of a draft, which is the caller's alone, or with
   the mutex. */
void rl_hold_join(rl_hold *h, rl_group *g);

/* One thread here has it from another; more than that need not be known. */
static inline void rl_hold_count_in_row(rl_hold *h)
{
    h->in_a_row = (uint8_t)(h->in_a_row + (h->in_a_row < UINT8_MAX));
}

/*
 * Red: the part that will release it, without more memory. Keeping answers
 * false if there is one already, or no group for which to keep it.
 */
bool rl_hold_keep_spare(rl_hold *h, struct rl_part *x);
struct rl_part *rl_hold_take_spare(rl_hold *h); /* NULL: none */

static inline uint64_t rl_hold_owner(const rl_hold *h)
{
    return h->record->owner;
}

/* Is the hold OVER, or being undone? Of one in doubt the undoing waits for the
   lease, which nothing prolongs. */
static inline bool rl_hold_has_ended_locked(const rl_hold *h)
{
    return h->state == RL_OVER || h->state == RL_UNDOING;
}

/*
 * May a late copy of the hold's acquire have got a later token? Those of a
 * quorum are not compared, because each node's may be larger than what they
 * agreed on. What is tokenless has no such copy (op/verb_acquire.c).
 */
static inline bool rl_hold_compares_locked(const rl_hold *h)
{
    bool agreed = h->group && h->group->quorum;
    return !agreed && h->unknown && h->token > 0;
}

/* What people call an owner. True: it is a label; false: the id of a thread. */
bool rl_owner_record_owner(const rl_owner_record *x, const char **text,
                           size_t *len);

/* Its holder id, as text; and how long that is. */
void rl_hold_write_id(const rl_hold *h, char *out);
size_t rl_hold_id_len(const rl_hold *h);

/*
 * A draft was granted its lease by a command sent at sent_us, and its deadline
 * is still to come: the table takes over the caller's reference.
 */
void rl_hold_grant_locked(rl_holds *t, rl_hold *h, uint64_t token,
                          int64_t sent_us, bool renewed, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/*
 * The server confirmed a lease whose command was sent at sent_us. A deadline
 * that has passed meanwhile is not revived: the hold is LOST then.
 */
void rl_hold_prolong_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                            int64_t lease_ms, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/*
 * Its token's key, which lives for some minutes after a grant
 * (lua/token_ttl.lua), lives for as long again from sent_us on; is it time to
 * keep it so, as half of that is over?
 */
void rl_hold_keep_token_locked(rl_holds *t, rl_hold *h, int64_t sent_us)
    RL_REQUIRES(&t->mutex);
bool rl_hold_has_to_keep_token_locked(const rl_holds *t, const rl_hold *h,
                                      int64_t now_us) RL_REQUIRES(&t->mutex);

/* The same, but the deadline may also become earlier. */
void rl_hold_set_lease_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                              int64_t lease_ms, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/*
 * An extend that began to be sent at sent_us has no answer, and may set its
 * lease at any time from then on.
 */
void rl_hold_cap_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                        int64_t lease_ms) RL_REQUIRES(&t->mutex);

/*
 * The same of one that is late, as long as its end is not known. Meanwhile the
 * keeper renews: its connection is not the extend's, so what it sends later may
 * be executed before.
 */
void rl_hold_owe_extend_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                               int64_t lease_ms) RL_REQUIRES(&t->mutex);
/*
 * Now it is. It has set its lease by then, before or after what else was sent;
 * RL_NEVER: it may at any time; 0: it certainly does not.
 */
void rl_hold_settle_extend_locked(rl_holds *t, rl_hold *h, int64_t lease_ms,
                                  int64_t by_us) RL_REQUIRES(&t->mutex);

/*
 * An extend to this lease is about to be sent, and may be executed before its
 * answer is here: a deadline that is later is not believed from now on. Answers
 * the deadline before, for when it was certainly not executed.
 */
int64_t rl_hold_lower_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                             int64_t lease_ms) RL_REQUIRES(&t->mutex);
void rl_hold_restore_locked(rl_holds *t, rl_hold *h, int64_t deadline_us,
                            int64_t now_us) RL_REQUIRES(&t->mutex);

/* The longest lease that a command which was sent then can be relied on for. */
int64_t rl_hold_cap_ms(const rl_hold *h, int64_t sent_us);

/* Until when a lease that a command which was sent then has set is good. */
int64_t rl_hold_lease_end(const rl_hold *h, int64_t sent_us, int64_t lease_ms);

/* Is it capped, or was it? */
bool rl_hold_was_capped(const rl_hold *h);

/*
 * Turns renewal on, or goes on with it: the lease now running was sent for at
 * sent_us. An explicit lease that the hold has keeps its end, also past
 * max_hold_ms. No effect on a hold that is lost.
 */
void rl_hold_start_renewal_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                                  int64_t now_us) RL_REQUIRES(&t->mutex);
/* A renewed hold counts as one that begins now: how long it may be renewed. */
void rl_hold_begin_anew_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex);
void rl_hold_pause_renewal_locked(rl_holds *t, rl_hold *h)
    RL_REQUIRES(&t->mutex);
void rl_hold_stop_renewal_locked(rl_holds *t, rl_hold *h)
    RL_REQUIRES(&t->mutex);

/*
 * The lease that a renewal gives which was sent then, and how long before the
 * next one.
 */
int64_t rl_hold_renewal_ms(const rl_holds *t, const rl_hold *h,
                           int64_t sent_us);
int64_t rl_hold_renewal_period_us(const rl_holds *t, const rl_hold *h,
                                  int64_t sent_us);

/*
 * A command that may set this lease is about to be sent, or has just been. For
 * a draft, which is the caller's alone, the mutex is not needed.
 */
void rl_hold_expect(rl_hold *h, int64_t now_us, int64_t lease_ms);

/* HELD, and the deadline not passed; else it is LOST from here on. */
bool rl_hold_is_valid_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/* The same, and the keeper is to renew it, and no extend is under way. */
bool rl_hold_renews_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/* The node does not have it; its client asks again with the next renewals. */
void rl_hold_vacate_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex);

void rl_hold_lose_locked(rl_holds *t, rl_hold *h, rl_loss why, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/*
 * Counts and reports a loss. By itself for a hold that is OVER, and turns out
 * to have been lost before its release.
 */
void rl_hold_report_loss_locked(rl_holds *t, rl_hold *h, rl_loss why,
                                int64_t now_us) RL_REQUIRES(&t->mutex);

/*
 * The hold of a node that does not have it: may it join its group? If that has
 * been lost by the clock, which nobody has noticed yet, it is lost from here
 * on, and reported.
 */
bool rl_hold_may_join_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/*
 * A node has answered for its hold, asked at sent_us for this lease: granted,
 * the hold joins its group, to which it belongs since since_us. False: it does
 * not, also because its group or its lease is over.
 */
bool rl_hold_join_late_locked(rl_holds *t, rl_hold *h, bool granted,
                              int64_t since_us, int64_t sent_us,
                              int64_t lease_ms, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/*
 * Who waits for it here sleeps, and counts on who has it to hand it over, which
 * is not to be. rings: see rl_rooms_look().
 */
void rl_hold_call_next_locked(rl_holds *t, const rl_hold *h, bool rings)
    RL_REQUIRES(&t->mutex);

/*
 * Takes the hold out of the table, if it is there; the caller gets the table's
 * reference.
 */
void rl_hold_end_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex);

/*
 * Hands the caller's reference to the keeper, which from due_us on makes the
 * hold go away on the server.
 */
void rl_hold_undo_locked(rl_holds *t, rl_hold *h, int64_t due_us)
    RL_REQUIRES(&t->mutex);

/*
 * Lets go of a hold that is out of the table: to the keeper, if the server may
 * have it, else for good.
 */
void rl_hold_drop_locked(rl_holds *t, rl_hold *h, bool undo, int64_t due_us)
    RL_REQUIRES(&t->mutex);

/* What may still arrive is undone for at least this long. */
#define RL_LATE_MS 60000

/*
 * A tombstone stands as long as the lease, within these bounds. How late an
 * acquire may arrive has nothing to do with its lease: who closes a connection
 * leaves its bytes to the kernel, which repeats them for some minutes at most,
 * and those that a stopped server has received are executed when it goes on, as
 * is what writes the tombstone. What a longer lease changes is only the harm of
 * one that is late all the same, for which ten times RL_LATE_MS is left.
 */
#define RL_TOMB_MOST_MS (10 * RL_LATE_MS)

/*
 * It was lost, but the server may have it still: a renewal that was given up
 * may have kept it alive, or the server's clock was put back, and then no lease
 * says for how long; of several permits, some may be there. Its uuid is its own,
 * so a release of it harms nobody.
 */
bool rl_hold_lingers(const rl_hold *h);

/* The keeper is done with it. */
void rl_hold_undone_locked(rl_holds *t, rl_hold *h) RL_REQUIRES(&t->mutex);

#endif
