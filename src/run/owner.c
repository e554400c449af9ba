/*
 * A thread acts as an owner by a thread-local pointer, and is its user by a
 * compare-and-swap: whoever else calls as that owner sees another user, and is
 * refused. The user is the only one who works with the owner's count of holds,
 * but while an operation that it has started is under way: then it is who
 * drives that.
 *
 * The end of a thread is noticed by the destructor of a pthread key, which
 * every thread sets with its first hold. The key, the list of listeners and
 * the number of the process (base/os.h) are the only state of the library that
 * belongs to the whole process. After fork() the list is emptied in the child:
 * its clients are the parent's.
 */
#include "run/owner.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/os.h"
#include "op/verb_query.h"
#include "run/async.h"

static atomic_uint_fast64_t last_serial;
static _Thread_local rl_owner self;
static _Thread_local int endings; /* how often thread_ends() has run */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t end_key;
static bool has_key;
static rl_mutex mutex = RL_MUTEX(RL_RANK_OWNERS);
static rl_list listeners; /* guarded by mutex */

/* Whom the thread acts as, referenced; NULL: as itself. */
static _Thread_local rlock_owner *acting;

static rl_owner *this_thread(void)
{
    if (self.serial == 0)
        self.serial = atomic_fetch_add(&last_serial, 1) + 1;
    if (self.tid == 0)
        self.tid = rl_os_thread_id();
    return &self;
}

rl_owner *rl_owner_self(void)
{
    return acting ? &acting->self : this_thread();
}

rl_owner rl_owner_apart(void)
{
    return (rl_owner){.serial = atomic_fetch_add(&last_serial, 1) + 1,
                      .tid = this_thread()->tid};
}

rlock_owner *rl_owner_acting(void)
{
    return acting;
}

bool rl_owner_has_ended(void)
{
    return acting && atomic_load(&acting->self.ended);
}

/* --- the end of a thread -------------------------------------------------- */

/*
 * The destructors of the program's own keys may still unlock, so we come again
 * in the next round, as long as there is one. One round is left out, since the
 * key may have been set in the first.
 */
static bool comes_again(void)
{
    return ++endings < PTHREAD_DESTRUCTOR_ITERATIONS - 1 &&
           pthread_setspecific(end_key, &self) == 0;
}

void rl_owner_report_end(uint64_t owner)
{
    rl_mutex_lock(&mutex);
    for (rl_link *k = rl_list_first(&listeners); k;
         k = rl_list_next(&listeners, k)) {
        rl_owner_listener *l = RL_CONTAINER(k, rl_owner_listener, link);
        l->ended(l->arg, owner);
    }
    rl_mutex_unlock(&mutex);
}

static void thread_ends(void *value)
{
    (void)value;
    if ((self.holds == 0 && !acting) || comes_again())
        return;
    rlock_owner_set(NULL);
    if (self.holds > 0)
        rl_owner_report_end(self.serial);
    self.holds = 0;
}

static void child_starts(void)
{
    rl_mutex_init(&mutex, RL_RANK_OWNERS);
    rl_list_init(&listeners);
    self.holds = 0;
    self.tid = 0;
}

static void set_up(void)
{
    rl_list_init(&listeners);
    has_key = pthread_key_create(&end_key, thread_ends) == 0;
    pthread_atfork(NULL, NULL, child_starts);
}

bool rl_owner_watch(void)
{
    return pthread_getspecific(end_key) ||
           pthread_setspecific(end_key, &self) == 0;
}

bool rl_owner_listen(rl_owner_listener *l)
{
    pthread_once(&once, set_up);
    if (!has_key)
        return false;
    rl_mutex_lock(&mutex);
    rl_list_add_first(&listeners, &l->link);
    rl_mutex_unlock(&mutex);
    return true;
}

void rl_owner_unlisten(rl_owner_listener *l)
{
    rl_mutex_lock(&mutex);
    rl_list_remove(&l->link);
    rl_mutex_unlock(&mutex);
}

/* --- owners that are no threads ------------------------------------------- */

void rl_owner_unref(rlock_owner *o)
{
    if (atomic_fetch_sub(&o->refs, 1) > 1)
        return;
    free(atomic_load(&o->spare));
    free(o);
}

void *rl_owner_take_spare(void)
{
    return acting ? atomic_exchange(&acting->spare, NULL) : NULL;
}

void rl_owner_leave_spare(rlock_owner *o, void *spare)
{
    free(o ? atomic_exchange(&o->spare, spare) : spare);
}

/* Is the calling thread the one that acts as it, from now on at the latest? */
static bool claim(rlock_owner *o)
{
    uint_fast64_t user = 0, me = this_thread()->serial;
    return atomic_compare_exchange_strong(&o->user, &user, me) || user == me;
}

/* Until what it has started is over, no thread is its user. */
static void claim_if_idle(rlock_owner *o)
{
    if (!atomic_load(&o->started))
        claim(o);
}

static void release(rlock_owner *o)
{
    uint_fast64_t me = this_thread()->serial;
    atomic_compare_exchange_strong(&o->user, &me, 0);
}

static void give_up(rlock_owner *o)
{
    release(o);
    rl_owner_unref(o);
}

static void copy_label(rlock_owner *o, const char *label)
{
    if (label && *label)
        snprintf(o->label, sizeof o->label, "%s", label);
    else
        snprintf(o->label, sizeof o->label, "owner-%llu",
                 (unsigned long long)o->self.serial);
    rl_holder_clean(o->label);
    o->self.label = o->label;
}

rlock_status rlock_owner_new(const char *label, rlock_owner **out)
{
    if (!out)
        return rl_error_set(RLOCK_EINVAL, 0, "out is NULL");
    *out = NULL;
    rlock_owner *o = calloc(1, sizeof *o);
    if (!o)
        return rl_error_set(RLOCK_ENOMEM, 0, "out of memory");
    pthread_once(&once, set_up);
    o->self.serial = atomic_fetch_add(&last_serial, 1) + 1;
    o->self.tid = this_thread()->tid;
    o->process = rl_os_process();
    atomic_init(&o->refs, 1);
    copy_label(o, label);
    *out = o;
    return RLOCK_OK;
}

/* Is it an unlock? That goes on. */
static bool cancel_started(rlock_owner *o)
{
    rl_mutex_lock(&mutex);
    struct rl_started *s = atomic_load(&o->started);
    bool unlocks = s && s->unlocks;
    if (s)
        rl_started_cancel(s);
    rl_mutex_unlock(&mutex);
    return unlocks;
}

void rlock_owner_cancel(rlock_owner *o)
{
    int cancel;
    if (!o || o->process != rl_os_process())
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    cancel_started(o);
    pthread_setcancelstate(cancel, NULL);
}

/*
 * The holds of an operation that is under way end when it does, and all others
 * with an unlock. In a child of fork() the parent's are none of our business.
 */
void rlock_owner_free(rlock_owner *o)
{
    int cancel;
    if (!o)
        return;
    if (acting == o)
        rlock_owner_set(NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    atomic_store(&o->self.ended, true);
    if (o->process == rl_os_process() && !cancel_started(o))
        rl_owner_report_end(o->self.serial);
    rl_owner_unref(o);
    pthread_setcancelstate(cancel, NULL);
}

/* Without memory for the key, an owner stays a dead thread's until it is freed.
 */
rlock_owner *rlock_owner_set(rlock_owner *o)
{
    rlock_owner *former = acting;
    if (former == o)
        return former;
    if (former)
        give_up(former);
    acting = o;
    if (!o)
        return former;
    atomic_fetch_add(&o->refs, 1);
    claim_if_idle(o);
    if (has_key)
        rl_owner_watch();
    return former;
}

/* Nobody is busy in a child of fork(): who was has stayed in the parent. */
bool rlock_owner_is_busy(const rlock_owner *o)
{
    if (!o || o->process != rl_os_process())
        return false;
    uint_fast64_t user = atomic_load(&o->user);
    return atomic_load(&o->started) || (user && user != this_thread()->serial);
}

static rlock_status refuse(const rlock_owner *o, const char *why)
{
    return rl_error_set(RLOCK_EINVAL, 0, "the owner '%s' %s", o->label, why);
}

rlock_status rl_owner_check(void)
{
    rlock_owner *o = acting;
    if (!o)
        return RLOCK_OK;
    if (o->process != rl_os_process())
        return rl_error_set(RLOCK_EFORKED, 0,
                            "the owner '%s' was made before fork()", o->label);
    if (atomic_load(&o->self.ended))
        return refuse(o, "has been freed");
    bool busy = atomic_load(&o->started) != NULL;
    if (!busy && !claim(o))
        return refuse(o, "is used by another thread at the moment");
    if (!busy && atomic_load(&o->started)) { /* by who was its user until now */
        release(o);
        busy = true;
    }
    return busy ? refuse(o, "has an operation under way") : RLOCK_OK;
}

rlock_status rl_owner_engage(struct rl_started *started)
{
    rlock_status s = rl_owner_check();
    if (s == RLOCK_OK && !acting)
        s = rl_error_set(RLOCK_EINVAL, 0,
                         "the thread acts as no owner: on a loop all requests "
                         "would be one, and not exclude each other (see "
                         "rlock_owner_set())");
    if (s != RLOCK_OK)
        return s;
    atomic_fetch_add(&acting->refs, 1);
    started->owner = acting;
    atomic_store(&acting->started, started);
    release(acting); /* who calls back will be its user */
    return RLOCK_OK;
}

void rl_owner_has_unlocked(struct rl_started *s)
{
    rl_mutex_lock(&mutex);
    s->unlocks = false;
    rl_mutex_unlock(&mutex);
    if (atomic_load(&s->owner->self.ended))
        rl_owner_report_end(s->owner->self.serial);
}

/* What it was granted after it had been freed is nobody's. */
void rl_owner_disengage(rlock_owner *o)
{
    rl_mutex_lock(&mutex);
    atomic_store(&o->started, NULL);
    rl_mutex_unlock(&mutex);
    if (atomic_load(&o->self.ended))
        rl_owner_report_end(o->self.serial);
}

rlock_status rl_owner_begin(rlock_owner **as)
{
    *as = acting;
    if (!acting)
        return RLOCK_OK;
    atomic_fetch_add(&acting->refs, 1);
    rlock_status s = rl_owner_check();
    if (s != RLOCK_OK)
        rl_owner_unref(acting);
    return s;
}

bool rl_owner_end(rlock_owner *o)
{
    bool ended = atomic_load(&o->self.ended);
    if (ended)
        rl_owner_report_end(o->self.serial);
    rl_owner_unref(o);
    return !ended;
}

/* What the thread was before stays referenced. */
rlock_owner *rl_owner_drive_as(rlock_owner *o)
{
    rlock_owner *former = acting;
    if (o)
        atomic_fetch_add(&o->refs, 1);
    acting = o;
    return former;
}

rlock_owner *rl_owner_act_as(rlock_owner *o)
{
    rlock_owner *former = rl_owner_drive_as(o);
    claim(o);
    return former;
}

void rl_owner_drive_end(rlock_owner *former)
{
    rlock_owner *o = acting;
    if (o && o == former)
        rl_owner_unref(o);
    else if (o)
        give_up(o);
    acting = former;
    if (former)
        claim_if_idle(former);
}
