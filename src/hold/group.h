/*
 * A group: holds that together are one lock, on several servers (Red) or of
 * several names (Multi). Each hold is renewed and watched by its own client;
 * the group knows how many are needed, and notices, once, that too few are
 * left. A Multi lock needs all of them, a Red lock a quorum.
 *
 * A node of a Red lock that lost its hold is asked again, and joins again. All
 * nodes of a quorum might be flushed, and be back one after the other, so that
 * at no time enough of them are known to be gone, though somebody else had the
 * lock in between. So a hold that is gone counts as gone since its server last
 * confirmed it, and those that have joined since then were missing, too.
 * Example: of three nodes the first is flushed, and noticed, and joins again at
 * 4 s; then the second, confirmed at 2 s and silent since, turns out to have
 * been flushed, too. Between 2 s and 4 s only the third may have had it: lost.
 * (One that stays silent until its lease runs out is not found out.)
 *
 * A lease that runs out is noticed by who looks at that hold, or by its
 * client's notifier, which may be late. So the group knows until when each node
 * is believed in, and whoever asks it, loses a hold, or wants to join, counts
 * by the clock: what has run out does not count, noticed or not. Example: the
 * first node's lease has run out, its notifier is inside of on_event, and the
 * second turns out to have been flushed: lost, and the second comes back to
 * nothing.
 *
 * Holds change under their own clients' mutexes, so what they share here is
 * atomic, or has a mutex of its own, and is changed only by the functions
 * below. The states go one way:
 *
 *   FORMING -> OWNED -> LOST      too few are left; the owner is told
 *                  `--> OVER      released, or abandoned
 *
 * but that a Multi lock which has lost a member while it forms, of which nobody
 * is told, is SPOILT, and forms again when its acquire has seen that
 * (lock/multi_acquire.c). A Red member of it has a group of its own, which is
 * OWNED by then, and knows for which whole it was taken.
 */
#ifndef RL_HOLD_GROUP_H
#define RL_HOLD_GROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rlock/client.h>
#include <rlock/multi.h>

#include "hold/alarm.h"
#include "hold/stats.h"

typedef enum rl_group_state {
    RL_GROUP_FORMING,
    RL_GROUP_SPOILT, /* Multi */
    RL_GROUP_OWNED,
    RL_GROUP_LOST,
    RL_GROUP_OVER
} rl_group_state;

/* The client whose lock the whole is. It is counted, and may be closed. */
typedef struct rl_home {
    void (*ref)(struct rl_home *home);
    void (*unref)(struct rl_home *home);
    /* Delivers an event. False: the client is closed. */
    bool (*tell)(struct rl_home *home, const rlock_event *ev);
    bool has_on_event; /* there is an on_event, */
    bool calls_back;   /* which is called, and not posted for who dispatches */
    rl_stats *stats;
} rl_home;

typedef struct rl_group {
    atomic_uint refs;
    atomic_int state;       /* rl_group_state */
    size_t quorum;          /* fixed; 0: all are needed. Red: so many, and the
                               holds are nothing by themselves */
    struct rl_group *whole; /* Red: fixed; counted; the Multi lock of which it
                               was taken as a member, or NULL */
    int64_t began_us; /* Red: fixed once it is owned; when it was asked for */
    struct rl_part *spare[RLOCK_RED_MAX]; /* Red: see rl_hold_keep_spare() */
    rl_home *home;                        /* fixed; counted */
    atomic_int count;                     /* Red: the hold count; the owner's */
    atomic_bool too_old; /* it was told that it is: see age.c */
    atomic_bool renewed; /* Red: by the keepers, also what comes late */
    uint64_t token;      /* Red: fixed once it is owned */
    int64_t longest_us;  /* Red: fixed; how long a node that restarted does
                            not vote */
    bool check_uptime;   /* Red: fixed; nor one with a shorter uptime */
    rl_mutex mutex;      /* guards what follows */
    rl_alarms alarms;    /* Red: those of the lock */
    int64_t there_us[RLOCK_RED_MAX]; /* Red: since when each node has it;
                                        RL_NEVER: not */
    int64_t until_us[RLOCK_RED_MAX]; /* and until when it is believed in;
                                        RL_NEVER: it is being released */
} rl_group;

/* With one reference; NULL: out of memory. */
rl_group *rl_group_new(rl_home *home, size_t quorum);
void rl_group_ref(rl_group *g);
void rl_group_unref(rl_group *g); /* NULL is accepted */

/* From one state to the next; false: it was in another one. */
bool rl_group_move(rl_group *g, rl_group_state from, rl_group_state to);
bool rl_group_is_owned(const rl_group *g);

/* Has nobody been told of the Multi lock which it is, or was taken for? */
bool rl_group_is_forming(const rl_group *g);

/* Are its holds worth nothing any more, though they may run on? */
bool rl_group_is_void(const rl_group *g);

/*
 * Red: this node counts as one that has it, without a break, since then, until
 * its deadline. A group that is owned may be joined only if it was not lost by
 * the clock before: see rl_group_expire().
 */
void rl_group_join(rl_group *g, unsigned node, int64_t there_us,
                   int64_t until_us);

/* Red: the deadline of a node that has joined is another one now. */
void rl_group_set_until(rl_group *g, unsigned node, int64_t until_us);

/*
 * One hold less, for Red this node's, which may be gone since gone_us
 * (RL_NEVER: since now). True: with it the group is lost, which is to be
 * reported.
 */
bool rl_group_lose_one(rl_group *g, unsigned node, int64_t gone_us,
                       int64_t now_us);

/*
 * Red: are too few left by now? True: so the group is lost, from this call on,
 * which is to be reported.
 */
bool rl_group_expire(rl_group *g, int64_t now_us);

/*
 * Red: it is lost; is that to be told? Not to who never had the whole that it
 * was taken for, whose acquire has to look again now.
 */
bool rl_group_is_told(rl_group *g);

/*
 * Red: until when a quorum among these nodes, a bit for each, is believed in;
 * 0: there is none, or the group is not owned.
 */
int64_t rl_group_until(rl_group *g, unsigned nodes);
#define RL_ALL_NODES ((1u << RLOCK_RED_MAX) - 1)

/*
 * What is left to a quorum: the worst in the best one of n ends, which it
 * sorts. 0: they are too few.
 */
int64_t rl_group_quorum_end(int64_t *end, size_t n, size_t quorum);

/*
 * Red: looks at the lock's alarms, under their mutex. Whoever moves the group
 * out of OWNED raises them afterwards: so one that is added is raised then, or
 * is told now that the lock is lost.
 */
void rl_group_visit_alarms(rl_group *g, rl_alarm_visit *v, const rl_uuid *id);
void rl_group_raise(rl_group *g);
void rl_group_end_alarms(rl_group *g);     /* the last unlock */
void rl_group_abandon_alarms(rl_group *g); /* the end of the owner */
void rl_group_keep_alarms(rl_group *g, rl_alarms *in);

/* Adds the loss of the lock of this name to the home client's statistics. */
void rl_group_count_loss(rl_group *g, const char *name, size_t len);

/* Red: the levels, and whether it is renewed. */
int rl_group_count(const rl_group *g);
void rl_group_set_count(rl_group *g, int count);
bool rl_group_is_renewed(const rl_group *g);
void rl_group_set_renewed(rl_group *g, bool renewed);

/* Has its home an on_event, which is told instead of the hold's own client? */
bool rl_group_has_on_event(const rl_group *g);

/* Does who tells it call that? It may block. */
bool rl_group_calls_back(const rl_group *g);

/* Tells the home client. False: it has no on_event, or is closed. */
bool rl_group_tell(rl_group *g, const rlock_event *ev);

#endif
