/*
 * What is behind an rlock *: a kind of lock is a table of functions over the
 * same handle. What may wait is a job of the kind's (op/job.h), which the
 * calling thread drives, or, started, the client's own (run/async.h). The
 * public functions check arguments and enter the client before.
 */
#ifndef RL_LOCK_LOCK_H
#define RL_LOCK_LOCK_H

#include <rlock/async.h>
#include <rlock/multi.h>

#include "op/acquire.h"
#include "op/job.h"
#include "run/owner.h"

/* What the calling thread may believe, by the clock. */
typedef struct rl_view {
    int count; /* 0: not held, and the rest is 0 too */
    int64_t valid_ms;
    uint64_t token;
    bool renewed;
} rl_view;

/* What is asked of a lock, and may be started to go on by itself. */
typedef enum rl_job_args_verb {
    RL_JOB_ACQUIRE,
    RL_JOB_UNLOCK,
    RL_JOB_EXTEND,
    RL_JOB_GUARD /* a script of the program, executed while it is held */
} rl_job_args_verb;

typedef struct rl_job_args {
    rl_job_args_verb verb;
    int64_t wait_ms;       /* of an acquire */
    int64_t lease_ms;      /* of an acquire or extend */
    rl_guarded *guarded;   /* of a guarded call; there until the end */
    const rl_fault *wrong; /* why that cannot be sent, unless RLOCK_OK */
    rl_cancel cancel;      /* of an acquire */
    const rlock *waits_as; /* whose rlock_cancel() ends it; NULL: its own */
    rl_group *joins;  /* the same, of a member: its lock's group; or NULL */
    bool lapses;      /* of an unlock: what is left is not renewed any more */
    int64_t until_us; /* of a member: its whole's call is over then; or 0 */
    int64_t asked_us; /* of what was started: its time runs from then on, also
                         while it stands in line. 0: from its first step on */
} rl_job_args;

static inline int64_t rl_job_args_began(const rl_job_args *w)
{
    return w->asked_us ? w->asked_us : rl_now_us();
}

/* No kind's job needs more; and no member's of a Multi lock. */
#define RL_JOB_ROOM    6144
#define RL_MEMBER_ROOM 3584

/*
 * Called inside the client, with arguments that are in range. A kind that has
 * several clients enters them by itself, and counts its calls in rlock_stats.
 */
typedef struct rl_lock_kind {
    const char *noun; /* what messages call it; NULL: a lock */
    bool several;
    bool has_home; /* of several, but one lock: its home counts its calls */
    bool guards;   /* it has one server, which can look before a script runs */
    size_t job_size;
    /* In room of so many bytes. */
    rl_job *(*begin)(rlock *lk, const rl_job_args *w, void *room);
    /* Only the hold with this holder id; NULL: whosever it is. */
    rlock_status (*force_unlock)(rlock *lk, const char *holder_id);
    void (*cancel)(rlock *lk); /* wakes; the handle's count says why */
    rl_view (*view)(rlock *lk);
    /* out->raw: as of rl_part_inspect(). RLOCK_NOT_HELD: nobody does; but for
       that, *out and the thread's error are left */
    rlock_status (*inspect)(rlock *lk, rlock_holder *out);
    /* Each hold of the calling thread that the lock is, of Red the whole as
       one. Another status: there is none, or not of all members */
    rlock_status (*visit_alarms)(rlock *lk, rl_alarm_visit *v);
    rlock *(*copy)(const rlock *lk); /* another handle of the same lock */
    void (*free)(rlock *lk);         /* NULL: nothing but the handle */
} rl_lock_kind;

/* Kinds that know more embed it as their first member. */
struct rlock {
    const rl_lock_kind *kind;
    rlock_client *client; /* counted; of several, the home */
    rl_target target;     /* its name is the handle's, and ends in a NUL */
    atomic_uint cancels;
    atomic_uint refs; /* the program's, and of what it has started */
};

/* rl_permits: of a semaphore, by an owner of their own (lock/semaphore.c). */
extern const rl_lock_kind rl_single, rl_permits;

/*
 * A handle of size bytes, at least an rlock's, the rest zero; layout: as of
 * rl_layouts. NULL: out of memory, and the thread's error says so.
 */
void *rl_lock_new(size_t size, const rl_lock_kind *kind, rlock_client *cl,
                  const void *name, size_t len, unsigned layout);

/* Permits are an owner of their own; of a lock it is whoever calls, or acts. */
static inline rl_owner *rl_lock_owner(const rlock *lk)
{
    rl_semaphore *s = lk->target.semaphore;
    return s && s->owner.serial ? &s->owner : rl_owner_self();
}

/* Until rlock_free(), which takes one back. */
static inline void rl_lock_ref(rlock *lk)
{
    atomic_fetch_add(&lk->refs, 1);
}

/* Its client, to an op, and to a group of holds. */
rl_core *rl_lock_core(const rlock *lk);
rl_home *rl_lock_home(const rlock *lk);

/* In its client's figures: a call to acquire ends so; an unlock succeeded. */
void rl_lock_count_acquire(const rlock *lk, const rl_group *joins,
                           rlock_status s);
void rl_lock_count_release(const rlock *lk);

/* Is it a name for a lock? Otherwise the thread's error says why. */
rlock_status rl_lock_check_name(const void *name, size_t len);

/* The same, of a lock of this client alone, which may be NULL. */
rlock_status rl_lock_check_new(const rlock_client *cl, const void *name,
                               size_t len);

/* Enters its client, unless the kind has several, and leaves it again: the thread
   cannot be canceled in between. Otherwise its error says why not. */
rlock_status rl_lock_enter(const rlock *lk, int *cancel);
void rl_lock_leave(const rlock *lk, int cancel);

/* A handle of a single lock. */
rlock_status rl_lock_make(rlock_client *cl, const void *name, size_t len,
                          unsigned layout, const rlock_lock_options *o,
                          rlock **out);

/* NULL: all defaults. Otherwise the thread's error says which is not in range. */
rlock_status rl_lock_read_options(rlock_lock_options *to,
                                  const rlock_lock_options *from);

/*
 * What is asked for, as a job: checks it, enters the client, has the kind do
 * it, counts, and leaves.
 */
typedef struct rl_lock_job {
    rl_job job;
    rlock *lk;
    rl_job_args args;
    void *room;
    rl_job *it; /* the kind's */
    int cancel; /* the thread's state, while inside */
    /* Of a call: may it call the program back? Has that changed whom its thread
       acts as? */
    bool calls_back, strayed;
    rlock_owner *as;
} rl_lock_job;

/* Is it in range? Otherwise the thread's error says what is not. */
rlock_status rl_lock_check_args(const rlock *lk, const rl_job_args *w);

/* room: of the kind's job_size. */
rl_job *rl_lock_begin(rl_lock_job *j, rlock *lk, const rl_job_args *w,
                      void *room);

/* rlock_lost_fd(), inside the client, unless the kind has several. */
int rl_lock_lost_fd(rlock *lk);

/* A member's visit_alarms(), inside its client. */
rlock_status rl_lock_visit_alarms(rlock *lk, rl_alarm_visit *v);

/* The calling thread drives it to its end; NULL is no lock. */
rlock_status rl_lock_perform(rlock *lk, const rl_job_args *w);

/* As the functions of async.h do; the arguments are copied. */
rlock_status rl_lock_start_job(rlock *lk, rl_job_args *w, rlock_done *done,
                               void *arg);

/* Asking changes what is seen: a deadline that has passed makes it lost. */
rl_view rl_lock_view(const rlock *lk);

/*
 * Sets the thread's error, naming the lock and its server, and returns its
 * status. Inside the client, unless the kind has several.
 */
rlock_status rl_lock_fail(const rlock *lk, const rl_fault *f);
rlock_status rl_lock_error(const rlock *lk, rlock_status status,
                           const char *what);
rlock_status rl_null_pointer(const char *what);

/* The calling thread drives a part to its end, and says how that was. */
rlock_status rl_lock_ask(const rlock *lk, rl_part *x);

const char *rl_not_held_text(void);
const char *rl_not_forced_text(const char *holder_id);

/* As rl_read_holder_id(). Otherwise the thread's error is set. */
rlock_status rl_lock_check_holder(const rlock *lk, const char *holder_id,
                                  rlock_holder *out);
rlock_status rl_lock_not_held(const rlock *lk);
rlock_status rl_lock_lost(const rlock *lk, const rl_hold *h);

/* The threads that a hold needs run. Otherwise the thread's error is set. */
bool rl_lock_start(const rlock *lk);

/* Delivers one of the events that belong to a call: how long after began_us? */
void rl_lock_emit(const rlock *lk, rlock_event_type type, uint64_t token,
                  int count, int64_t began_us);

/* Waiting begins: the doorbell listens, also for Redisson's channels. */
void rl_lock_listen(rl_core *c, const rl_target *what);

#endif
