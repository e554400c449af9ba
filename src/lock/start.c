/*
 * Jobs that are started: the same as those that the calling thread drives
 * (lock.c), in one piece of memory with all they need, given to the client's
 * loop. When one is over it becomes a completion, and whoever dispatches calls
 * back.
 *
 * What stays true: from the start until the callback the owner is busy, and
 * both the handle and the owner are counted, so the program may free them.
 */
#include <rlock/async.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lock/lock.h"
#include "run/client.h"

typedef struct started_lock {
    rl_started started;
    rl_completion completion;
    rl_lock_job job;
    rlock_done *done;
    void *arg;
    size_t room_size;
    /* Of the kind; and when it is over, what went wrong. */
    _Alignas(max_align_t) char room[];
} started_lock;

/* --- the end -------------------------------------------------------------- */

/*
 * Of an owner that was freed meanwhile, what it has and gets is abandoned: by
 * then it was not lost, and is not held. What a guarded call has written stays.
 */
static bool is_canceled(const started_lock *s)
{
    rlock_status status = s->job.job.status;
    rl_job_args_verb verb = s->job.args.verb;
    bool kept = status == RLOCK_OK && verb == RL_JOB_GUARD;
    return atomic_load(&s->started.owner->self.ended) &&
           verb != RL_JOB_UNLOCK && !kept &&
           (status == RLOCK_OK || status == RLOCK_LOST ||
            status == RLOCK_NOT_HELD);
}

/* `done` may start the next thing as the same owner. Who holds something keeps
   the memory, so that he can always unlock it. */
static void deliver(rl_completion *l)
{
    started_lock *s = RL_CONTAINER(l, started_lock, completion);
    const rlock_error *why = (const rlock_error *)s->room;
    rlock_owner *owner = s->started.owner;
    rlock *lk = s->job.lk;
    rlock_done *done = s->done;
    void *arg = s->arg;
    rlock_status status = s->job.job.status;
    bool canceled = is_canceled(s);
    rlock_owner *former = rl_owner_act_as(owner);
    rl_owner_disengage(owner);
    if (canceled)
        status = rl_lock_error(lk, RLOCK_CANCELED,
                               "the owner was freed before it was over");
    else if (status != RLOCK_OK)
        rl_error_set(why->status, why->sys_errno, "%s", why->message);
    if (owner->self.holds > 0)
        rl_owner_leave_spare(owner, s);
    else
        free(s);
    if (done)
        done(lk, status, arg);
    rl_owner_drive_end(former);
    rl_owner_unref(owner);
    rlock_free(lk);
}

/* By who drives. The kind needs its room no more. */
static void over(rl_started *started)
{
    started_lock *s = RL_CONTAINER(started, started_lock, started);
    if (s->job.job.status != RLOCK_OK)
        *(rlock_error *)s->room = *rlock_last_error();
    if (started->unlocks)
        rl_owner_has_unlocked(started);
    rl_started_post(started, &s->completion);
}

/* --- the start ------------------------------------------------------------ */

/* As much as is asked for, or more. What is too small stays unless there is
   other memory: what the owner holds can be unlocked in it. */
static started_lock *make_room(size_t size)
{
    started_lock *spare = rl_owner_take_spare();
    if (spare && spare->room_size >= size)
        return spare;
    started_lock *s = malloc(sizeof *s + size);
    if (!s) {
        rl_owner_leave_spare(rl_owner_acting(), spare);
        return NULL;
    }
    free(spare);
    s->room_size = size;
    return s;
}

static started_lock *make(rlock *lk, const rl_job_args *w, rlock_done *done,
                          void *arg)
{
    size_t size = lk->kind->job_size;
    started_lock *s =
        make_room(size < sizeof(rlock_error) ? sizeof(rlock_error) : size);
    if (!s)
        return NULL;
    s->started =
        (rl_started){.over = over, .unlocks = w->verb == RL_JOB_UNLOCK};
    s->completion = (rl_completion){.deliver = deliver};
    s->started.job = rl_lock_begin(&s->job, lk, w, s->room);
    s->done = done;
    s->arg = arg;
    return s;
}

/* Inside the client. */
static rlock_status begin(rlock *lk, const rl_job_args *w, rlock_done *done,
                          void *arg)
{
    rl_async *a = &lk->client->engine.async;
    rlock_status status = rl_lock_check_args(lk, w);
    if (status != RLOCK_OK)
        return status;
    started_lock *s = rl_async_run(a) ? make(lk, w, done, arg) : NULL;
    if (!s)
        return rl_lock_error(lk, RLOCK_ENOMEM,
                             "out of memory, or no thread can be had");
    status = rl_owner_engage(&s->started);
    if (status != RLOCK_OK) {
        rl_owner_leave_spare(rl_owner_acting(), s);
        return status;
    }
    rl_lock_ref(lk);
    rlock_error before = *rlock_last_error();
    rl_async_start(a, &s->started);
    rl_error_put(&before);
    return RLOCK_OK;
}

rlock_status rl_lock_start_job(rlock *lk, rl_job_args *w, rlock_done *done,
                               void *arg)
{
    int cancel;
    if (!lk)
        return rl_null_pointer("the lock");
    rlock_status s = rl_client_begin(lk->client, &cancel);
    if (s != RLOCK_OK)
        return s;
    w->asked_us = rl_now_us();
    w->cancel = (rl_cancel){&lk->cancels, atomic_load(&lk->cancels)};
    s = begin(lk, w, done, arg);
    rl_client_leave(lk->client, cancel);
    return s;
}

rlock_status rlock_acquire_start(rlock *lk, int64_t wait_ms, int64_t lease_ms,
                                 rlock_done *done, void *arg)
{
    rl_job_args w = {
        .verb = RL_JOB_ACQUIRE, .wait_ms = wait_ms, .lease_ms = lease_ms};
    return rl_lock_start_job(lk, &w, done, arg);
}

rlock_status rlock_unlock_start(rlock *lk, rlock_done *done, void *arg)
{
    return rl_lock_start_job(lk, &(rl_job_args){.verb = RL_JOB_UNLOCK}, done,
                             arg);
}

rlock_status rlock_extend_start(rlock *lk, int64_t lease_ms, rlock_done *done,
                                void *arg)
{
    rl_job_args w = {.verb = RL_JOB_EXTEND, .lease_ms = lease_ms};
    return rl_lock_start_job(lk, &w, done, arg);
}

/* --- dispatching ---------------------------------------------------------- */

int rlock_client_fd(rlock_client *cl)
{
    int cancel;
    if (rl_client_begin(cl, &cancel) != RLOCK_OK)
        return -1;
    int fd = rl_completions_fd(&cl->engine.completions);
    if (fd < 0)
        rl_error_set(RLOCK_ENOMEM, errno, "no descriptor: %s", strerror(errno));
    rl_client_leave(cl, cancel);
    return fd;
}

rlock_status rlock_client_dispatch(rlock_client *cl)
{
    int cancel;
    rlock_status s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    rl_async_dispatch(&cl->engine.async);
    rl_client_leave(cl, cancel);
    return RLOCK_OK;
}
