/*
 * The public functions: each checks its arguments, enters the client (of a lock
 * of several: the kind does, each of its clients), calls the kind, and counts.
 * Nothing here knows how a lock works. What stays true: between enter and leave
 * the client's engine is there and the thread cannot be canceled.
 */
#include "lock/lock.h"

#include <rlock/semaphore.h>

#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "op/verb_query.h"
#include "run/caller.h"
#include "run/client.h"
#include "wire/hash_slot.h"
#include "wire/keys.h"

/* Room for a name in a message that has to hold the cause, too. */
#define NAME_SHOWN 65

rlock_status rl_lock_fail(const rlock *lk, const rl_fault *f)
{
    char name[NAME_SHOWN];
    /* Of several servers none is to blame, and the client may be closed; nor is
       one for owners that wait for each other. */
    bool names_none = lk->kind->several || f->status == RLOCK_EDEADLK;
    const char *at = names_none ? "" : " at ";
    const char *server = names_none ? ""
                         : f->at    ? f->at
                                    : atomic_load(&rl_lock_core(lk)->node);
    rl_printable(name, sizeof name, lk->target.name, lk->target.len);
    return rl_error_set(f->status, f->sys_errno, "%s '%s'%s%s: %s",
                        lk->kind->noun ? lk->kind->noun : "lock", name, at,
                        server, f->text);
}

rlock_status rl_lock_error(const rlock *lk, rlock_status status,
                           const char *what)
{
    rl_fault f;
    rl_fault_set(&f, status, 0, "%s", what);
    return rl_lock_fail(lk, &f);
}

rlock_status rl_lock_ask(const rlock *lk, rl_part *x)
{
    rl_drive_part(x);
    return x->ok ? RLOCK_OK : rl_lock_fail(lk, &x->fault);
}

void rl_lock_emit(const rlock *lk, rlock_event_type type, uint64_t token,
                  int count, int64_t began_us)
{
    if (!rl_lock_core(lk)->set.on_event)
        return;
    const rl_owner *owner = rl_lock_owner(lk);
    rlock_event ev = {.type = type,
                      .name = lk->target.name,
                      .name_len = lk->target.len,
                      .token = token,
                      .count = count,
                      .elapsed_ms = (rl_now_us() - began_us) / 1000,
                      .message = "",
                      .owner = owner->label ? owner->label : "",
                      .kind = rl_target_layout(&lk->target)->kind};
    rl_tell(rl_lock_core(lk), &ev);
}

const char *rl_not_held_text(void)
{
    return rl_owner_acting() ? "this owner does not hold it"
                             : "this thread does not hold it";
}

rlock_status rl_lock_check_holder(const rlock *lk, const char *holder_id,
                                  rlock_holder *out)
{
    rlock_layout layout = lk->target.layout;
    if (rl_read_holder_id(layout, holder_id, out))
        return RLOCK_OK;
    return rl_lock_error(lk, RLOCK_EINVAL,
                         "that is no holder id: rlock_holder.raw has one");
}

const char *rl_not_forced_text(const char *holder_id)
{
    return holder_id ? "that hold does not have it" : "nobody holds it";
}

rlock_status rl_lock_not_held(const rlock *lk)
{
    return rl_lock_error(lk, RLOCK_NOT_HELD, rl_not_held_text());
}

rlock_status rl_lock_lost(const rlock *lk, const rl_hold *h)
{
    return rl_lock_error(lk, RLOCK_LOST, rl_loss_text(h->loss));
}

bool rl_lock_start(const rlock *lk)
{
    const char *lacking = NULL;
    if (!rl_engine_start(&lk->client->engine, lk->target.slot))
        lacking = "the watchdog thread, or memory for it, cannot be had";
    else if (!rl_owner_watch())
        lacking = "out of memory";
    if (lacking)
        rl_lock_error(lk, RLOCK_ENOMEM, lacking);
    return !lacking;
}

void rl_lock_listen(rl_core *c, const rl_target *what)
{
    rl_doorbell_listen(rl_node_of(c, what->slot), what);
}

rlock_status rl_null_pointer(const char *what)
{
    return rl_error_set(RLOCK_EINVAL, 0, "%s is NULL", what);
}

rlock_status rl_lock_enter(const rlock *lk, int *cancel)
{
    if (!lk)
        return rl_null_pointer("the lock");
    if (!lk->kind->several)
        return rl_client_begin(lk->client, cancel);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
    return RLOCK_OK;
}

void rl_lock_leave(const rlock *lk, int cancel)
{
    if (!lk->kind->several)
        rl_client_leave(lk->client, cancel);
    else
        pthread_setcancelstate(cancel, NULL);
}

/* The same for what sets no error. */
static bool enter_quietly(const rlock *lk, int *cancel)
{
    if (!lk)
        return false;
    if (!lk->kind->several)
        return rl_client_enter(lk->client, cancel) == RLOCK_OK;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
    return true;
}

rl_core *rl_lock_core(const rlock *lk)
{
    return &lk->client->engine.core;
}

rl_home *rl_lock_home(const rlock *lk)
{
    return &lk->client->home;
}

void rl_lock_count_acquire(const rlock *lk, const rl_group *joins,
                           rlock_status s)
{
    if (joins && s != RLOCK_OK)
        return;
    rl_stats_acquired(&rl_lock_core(lk)->stats, lk->target.name, lk->target.len,
                      s);
}

void rl_lock_count_release(const rlock *lk)
{
    rl_stats *stats = &rl_lock_core(lk)->stats;
    rl_stats_add(stats, &stats->releases, lk->target.name, lk->target.len, 1);
}

void *rl_lock_new(size_t size, const rl_lock_kind *kind, rlock_client *cl,
                  const void *name, size_t len, unsigned layout)
{
    rlock *lk = calloc(1, size + len + 1);
    if (!lk) {
        rl_error_set(RLOCK_ENOMEM, 0, "out of memory");
        return NULL;
    }
    char *copy = (char *)lk + size;
    memcpy(copy, name, len);
    lk->kind = kind;
    lk->client = cl;
    atomic_init(&lk->refs, 1);
    lk->target = (rl_target){.name = copy,
                             .len = len,
                             .scope = rl_layouts[layout].scope,
                             .layout = (uint8_t)layout,
                             .slot = rl_slot_of(rl_lock_core(lk), name, len),
                             .sharded = cl->engine.cluster != NULL};
    rl_client_ref(cl);
    return lk;
}

rlock_status rl_lock_check_name(const void *name, size_t len)
{
    if (!name)
        return rl_null_pointer("the name");
    if (len < 1 || len > RLOCK_NAME_MAX)
        return rl_error_set(RLOCK_EINVAL, 0,
                            "a lock's name has 1 to %d bytes, not %zu",
                            RLOCK_NAME_MAX, len);
    const char *prefix = rl_name_reserved(name, len);
    if (prefix)
        return rl_error_set(RLOCK_EINVAL, 0,
                            "a lock's name must not begin with \"%s\", as the "
                            "library's own keys do",
                            prefix);
    return RLOCK_OK;
}

/* Scripts may only name keys of one slot. */
static rlock_status check_slot(const rlock_client *cl, const void *name,
                               size_t len)
{
    if (!cl->engine.cluster || rl_hash_slot_fits(name, len))
        return RLOCK_OK;
    return rl_error_set(RLOCK_EINVAL, 0,
                        "in a cluster a name with braces must have something "
                        "in its first ones, as in \"a{b}c\", and one without "
                        "{ must not have a }: or the keys of its lock would "
                        "lie in several slots");
}

rlock_status rl_lock_check_new(const rlock_client *cl, const void *name,
                               size_t len)
{
    if (!cl)
        return rl_null_pointer("the client");
    rlock_status s = rl_lock_check_name(name, len);
    return s == RLOCK_OK ? check_slot(cl, name, len) : s;
}

rlock_status rl_lock_read_options(rlock_lock_options *to,
                                  const rlock_lock_options *from)
{
    if (!rl_options_read(to, sizeof *to, from))
        return rl_error_set(RLOCK_EINVAL, 0,
                            "bad option: size (use RLOCK_LOCK_OPTIONS_INIT)");
    if ((unsigned)to->layout > RLOCK_LAYOUT_TIMESTAMP)
        return rl_error_set(RLOCK_EINVAL, 0, "bad option: layout");
    if (to->fair && to->layout != RLOCK_LAYOUT_HASH)
        return rl_error_set(RLOCK_ENOTSUP, 0,
                            "only a lock of the hash layout can be fair");
    if (to->no_tokens && (to->fair || to->layout != RLOCK_LAYOUT_HASH))
        return rl_error_set(RLOCK_ENOTSUP, 0,
                            "only a lock of the hash layout that is not fair "
                            "can do without tokens");
    if (to->min_replicas < -1 || to->min_replicas > RL_REPLICAS_MAX)
        return rl_error_set(RLOCK_EINVAL, 0,
                            "bad option: min_replicas (-1 to 16)");
    return RLOCK_OK;
}

/* After a failover two may hold it, and each would believe that it is alone. */
static rlock_status check_tokenless(const rlock_client *cl,
                                    const rlock_lock_options *o)
{
    const rl_engine *e = &cl->engine;
    if (!o->no_tokens || (!e->cluster && !e->sentinels &&
                          rl_replicas_of(&e->core, o->min_replicas) == 0))
        return RLOCK_OK;
    return rl_error_set(RLOCK_ENOTSUP, 0,
                        "a lock without tokens is one server's: where another "
                        "may take over, two may hold it for a moment, and only "
                        "their tokens tell who is the later one");
}

rlock_status rl_lock_make(rlock_client *cl, const void *name, size_t len,
                          unsigned layout, const rlock_lock_options *o,
                          rlock **out)
{
    int cancel;
    rlock_status s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    *out = rl_lock_new(sizeof **out, &rl_single, cl, name, len, layout);
    if (*out) {
        (*out)->target.local_levels = o->local_levels;
        (*out)->target.min_replicas = (int8_t)o->min_replicas;
    }
    rl_client_leave(cl, cancel);
    return *out ? RLOCK_OK : RLOCK_ENOMEM;
}

rlock_status rlock_new_ex(rlock_client *cl, const void *name, size_t len,
                          const rlock_lock_options *opts, rlock **out)
{
    rlock_lock_options o;
    if (!out)
        return rl_null_pointer("out");
    *out = NULL;
    rlock_status s = rl_lock_check_new(cl, name, len);
    if (s == RLOCK_OK)
        s = rl_lock_read_options(&o, opts);
    if (s == RLOCK_OK)
        s = check_tokenless(cl, &o);
    if (s != RLOCK_OK)
        return s;
    unsigned layout = o.fair        ? RL_LAYOUT_FAIR
                      : o.no_tokens ? RL_LAYOUT_TOKENLESS
                                    : (unsigned)o.layout;
    return rl_lock_make(cl, name, len, layout, &o, out);
}

rlock_status rlock_new_n(rlock_client *cl, const void *name, size_t len,
                         rlock **out)
{
    return rlock_new_ex(cl, name, len, NULL, out);
}

rlock_status rlock_new(rlock_client *cl, const char *name, rlock **out)
{
    return rlock_new_n(cl, name, name ? strlen(name) : 0, out);
}

void rlock_free(rlock *lk)
{
    if (!lk || atomic_fetch_sub(&lk->refs, 1) != 1)
        return;
    if (lk->kind->free)
        lk->kind->free(lk);
    rl_client_unref(lk->client);
    free(lk);
}

/* --- jobs ----------------------------------------------------------------- */

static void count_outcome(const rlock *lk, const rl_job_args *w, rlock_status s)
{
    if (lk->kind->several)
        return;
    if (w->verb == RL_JOB_ACQUIRE)
        rl_lock_count_acquire(lk, w->joins, s);
    else if (w->verb == RL_JOB_UNLOCK && s == RLOCK_OK)
        rl_lock_count_release(lk);
}

static rl_op *leave_job(rl_lock_job *j, rlock_status s)
{
    count_outcome(j->lk, &j->args, s);
    rl_lock_leave(j->lk, j->cancel);
    return rl_job_over(&j->job, s);
}

/* Before its kind has begun, and could count. */
static rl_op *refuse_job(rl_lock_job *j, rlock_status s)
{
    if (j->lk->kind->has_home && j->args.verb == RL_JOB_ACQUIRE)
        rl_lock_count_acquire(j->lk, j->args.joins, s);
    return leave_job(j, s);
}

/* Whomever a callback has made the thread act as, the call goes on as before. */
static rl_op *go_on(rl_job *job)
{
    rl_lock_job *j = RL_CONTAINER(job, rl_lock_job, job);
    if (j->calls_back && rlock_owner_set(j->as) != j->as)
        j->strayed = true;
    j->it->lent = job->lent;
    rl_op *op = j->it->next(j->it);
    return op ? op : leave_job(j, j->it->status);
}

static rlock_status check_guarded(const rlock *lk, const rl_job_args *w)
{
    if (w->wrong->status != RLOCK_OK)
        return rl_lock_fail(lk, w->wrong);
    if (!lk->kind->guards)
        return rl_lock_error(lk, RLOCK_ENOTSUP,
                             "a lock of several has no one server that could "
                             "check it; see rlock_token()");
    return RLOCK_OK;
}

rlock_status rl_lock_check_args(const rlock *lk, const rl_job_args *w)
{
    if (w->verb == RL_JOB_GUARD)
        return check_guarded(lk, w);
    if (w->verb == RL_JOB_ACQUIRE && w->wait_ms < RLOCK_FOREVER)
        return rl_lock_error(lk, RLOCK_EINVAL, "wait_ms is negative");
    if (lk->target.semaphore &&
        (lk->target.semaphore->weight < 1 ||
         lk->target.semaphore->weight > RLOCK_PERMITS_MAX))
        return rl_lock_error(lk, RLOCK_EINVAL, "n is out of range (1 to 1000)");
    if (w->lease_ms != RLOCK_WATCHDOG &&
        (w->lease_ms < RLOCK_LEASE_MIN_MS || w->lease_ms > RLOCK_LEASE_MAX_MS))
        return rl_lock_error(lk, RLOCK_EINVAL,
                             "lease_ms is out of range (0, or 3 to 2^52)");
    return RLOCK_OK;
}

/* What a client that is being closed acquired would be nobody's. */
static bool comes_too_late(const rl_lock_job *j)
{
    return j->args.verb == RL_JOB_ACQUIRE &&
           rl_client_is_draining(j->lk->client);
}

static rl_op *enter_job(rl_job *job)
{
    rl_lock_job *j = RL_CONTAINER(job, rl_lock_job, job);
    rlock_status s = rl_lock_enter(j->lk, &j->cancel);
    if (s != RLOCK_OK)
        return rl_job_over(job, s);
    s = rl_lock_check_args(j->lk, &j->args);
    if (atomic_load(&j->lk->client->closing) && comes_too_late(j))
        s = rl_lock_error(j->lk, RLOCK_ECLOSED,
                          "the client was closed before it began");
    if (s == RLOCK_OK && j->args.verb != RL_JOB_UNLOCK &&
        !j->lk->target.semaphore && rl_owner_has_ended())
        s = rl_lock_error(j->lk, RLOCK_CANCELED,
                          "the owner was freed before it began");
    if (s != RLOCK_OK)
        return refuse_job(j, s);
    j->it = j->lk->kind->begin(j->lk, &j->args, j->room);
    job->next = go_on;
    return go_on(job);
}

rl_job *rl_lock_begin(rl_lock_job *j, rlock *lk, const rl_job_args *w,
                      void *room)
{
    j->job = (rl_job){.next = enter_job};
    j->lk = lk;
    j->args = *w;
    j->room = room;
    j->calls_back = j->strayed = false;
    return &j->job;
}

/* What it was granted is nobody's, if its owner was freed meanwhile; then the
   thread that has done so acts as itself. */
static rlock_status end_as_owner(rl_lock_job *j, rlock_status s)
{
    bool stays = rl_owner_end(j->as);
    if (!stays && j->strayed && rl_owner_acting() == j->as)
        rlock_owner_set(NULL);
    if (!stays && s == RLOCK_OK && j->args.verb == RL_JOB_ACQUIRE)
        return rl_lock_error(j->lk, RLOCK_CANCELED,
                             "the owner was freed meanwhile, and what it was "
                             "granted is abandoned");
    return s;
}

/* Of several locks, a member that could not be had at first leaves its error behind,
   which is no success's. A callback of the call may free the handle. */
rlock_status rl_lock_perform(rlock *lk, const rl_job_args *w)
{
    rl_lock_job j;
    _Alignas(max_align_t) char room[RL_JOB_ROOM];
    rlock_error before = {.status = RLOCK_OK};
    rlock_owner *as = NULL;
    rlock_status s = lk ? rl_owner_begin(&as) : rl_null_pointer("the lock");
    if (s != RLOCK_OK)
        return s;
    if (lk->kind->several)
        before = *rlock_last_error();
    rl_lock_begin(&j, lk, w, room);
    j.as = as;
    j.calls_back = lk->kind->several || lk->client->engine.core.set.on_event;
    if (j.calls_back)
        rl_lock_ref(lk);
    s = rl_drive_job(&j.job);
    if (s == RLOCK_OK && lk->kind->several)
        rl_error_put(&before);
    if (as)
        s = end_as_owner(&j, s);
    if (j.calls_back)
        rlock_free(lk);
    return s;
}

rlock_status rlock_acquire(rlock *lk, int64_t wait_ms, int64_t lease_ms)
{
    rl_job_args w = {
        .verb = RL_JOB_ACQUIRE, .wait_ms = wait_ms, .lease_ms = lease_ms};
    if (lk)
        w.cancel = (rl_cancel){&lk->cancels, atomic_load(&lk->cancels)};
    return rl_lock_perform(lk, &w);
}

rlock_status rlock_lock(rlock *lk)
{
    return rlock_acquire(lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
}

rlock_status rlock_trylock(rlock *lk)
{
    return rlock_acquire(lk, 0, RLOCK_WATCHDOG);
}

rlock_status rlock_unlock(rlock *lk)
{
    return rl_lock_perform(lk, &(rl_job_args){.verb = RL_JOB_UNLOCK});
}

rlock_status rlock_extend(rlock *lk, int64_t lease_ms)
{
    return rl_lock_perform(
        lk, &(rl_job_args){.verb = RL_JOB_EXTEND, .lease_ms = lease_ms});
}

/* --- the rest ------------------------------------------------------------- */

static rlock_status force_unlock(rlock *lk, const char *holder_id)
{
    int cancel;
    rlock_status s = rl_lock_enter(lk, &cancel);
    if (s != RLOCK_OK)
        return s;
    s = lk->kind->force_unlock(lk, holder_id);
    rl_lock_leave(lk, cancel);
    return s;
}

rlock_status rlock_force_unlock(rlock *lk)
{
    return force_unlock(lk, NULL);
}

rlock_status rlock_force_unlock_hold(rlock *lk, const char *holder_id)
{
    return holder_id ? force_unlock(lk, holder_id)
                     : rl_null_pointer("the holder id");
}

void rlock_cancel(rlock *lk)
{
    int cancel;
    if (!enter_quietly(lk, &cancel))
        return;
    atomic_fetch_add(&lk->cancels, 1);
    lk->kind->cancel(lk);
    rl_lock_leave(lk, cancel);
}

rl_view rl_lock_view(const rlock *lk)
{
    int cancel;
    if (!enter_quietly(lk, &cancel))
        return (rl_view){0};
    rl_view v = lk->kind->view((rlock *)lk);
    rl_lock_leave(lk, cancel);
    return v;
}

bool rlock_is_held(const rlock *lk)
{
    return rl_lock_view(lk).count > 0;
}

int rlock_hold_count(const rlock *lk)
{
    return rl_lock_view(lk).count;
}

int64_t rlock_valid_ms(const rlock *lk)
{
    return rl_lock_view(lk).valid_ms;
}

uint64_t rlock_token(const rlock *lk)
{
    return rl_lock_view(lk).token;
}

int rlock_lost_fd(rlock *lk)
{
    int cancel;
    if (rl_lock_enter(lk, &cancel) != RLOCK_OK)
        return -1;
    int fd = rl_lock_lost_fd(lk);
    rl_lock_leave(lk, cancel);
    return fd;
}

rlock_status rl_lock_visit_alarms(rlock *lk, rl_alarm_visit *v)
{
    int cancel;
    rlock_status s = rl_lock_enter(lk, &cancel);
    if (s != RLOCK_OK)
        return s;
    s = lk->kind->visit_alarms(lk, v);
    rl_lock_leave(lk, cancel);
    return s;
}
