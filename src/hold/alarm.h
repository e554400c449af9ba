/*
 * Alarms: what rlock_lost_fd() gives out is raised when its lock is lost, and
 * closed when its hold is over. The core says when; how a descriptor is made
 * readable, or closed, the alarm knows itself (run/lost_fd.c).
 *
 * Each hold has a list of its alarms, guarded by its table's mutex; a Red lock
 * has one in its group, guarded by the group's. An alarm of a Multi lock is in
 * the lists of all members: the first that is lost raises it, and the first
 * that is over ends it. So an alarm is counted, by its lists, and has a mutex
 * of its own: nothing raises it once it is closed.
 *
 * It is known by the ids of the holds that it is about, exclusive-ored: who
 * asks again for the same holds, in whatever order, finds it.
 */
#ifndef RL_HOLD_ALARM_H
#define RL_HOLD_ALARM_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/random.h"
#include "base/thread.h"

typedef struct rl_alarm {
    atomic_uint refs;
    rl_mutex mutex;
    bool raised, over; /* guarded by the mutex */
    rl_uuid of;        /* fixed */
    /* Fixed. Each is called once at most, and raise() not after close(); from
       any thread, with mutexes of the core held, and must not call back. */
    void (*raise)(struct rl_alarm *a);
    void (*close)(struct rl_alarm *a);
} rl_alarm;

typedef struct rl_alarm_link {
    rl_alarm *alarm;
    struct rl_alarm_link *next;
} rl_alarm_link;

/* All zero: there are none. */
typedef struct rl_alarms {
    rl_alarm_link *first;
} rl_alarms;

/*
 * Looks at the alarms of one hold, under their mutex: its id, and whether it is
 * lost.
 */
typedef struct rl_alarm_visit {
    void (*at)(struct rl_alarm_visit *v, rl_alarms *l, const rl_uuid *hold,
               bool lost);
} rl_alarm_visit;

/* With one reference. Who has the last one closes it, if it is not over, and
   frees it: it comes from malloc(). */
void rl_alarm_init(rl_alarm *a, const rl_uuid *of);
void rl_alarm_unref(rl_alarm *a);

/* Its hold is over: closes it. */
void rl_alarm_end(rl_alarm *a);

/* --- the alarms of one hold: its mutex is held ---------------------------- */

/* One that is not over, referenced; NULL: there is none. */
rl_alarm *rl_alarms_find(const rl_alarms *l, const rl_uuid *of);

/* One more; lost: the hold is, so it is raised. False: out of memory. */
bool rl_alarms_add(rl_alarms *l, rl_alarm *a, bool lost);

void rl_alarms_raise(rl_alarms *l);
void rl_alarms_end(rl_alarms *l); /* there are none then */

/* They stay open as long as this list has them, too, if there is memory. */
void rl_alarms_keep(const rl_alarms *l, rl_alarms *in);

/* Raised, they stay open as long as that list has them, if there is memory: the
   hold's end closes them no more. */
void rl_alarms_hand_over(rl_alarms *l, rl_alarms *to);

/* Leaves them to the lists that have them, too. */
void rl_alarms_leave(rl_alarms *l);

#endif
