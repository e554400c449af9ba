/* The verbs of permits that the calling thread drives to their end. */
#include "lock/permit.h"

#include <stdlib.h>
#include <string.h>

#include "run/caller.h"
#include "run/owner.h"

rlock_permit *rl_permit_new(rlock_semaphore *s, int n)
{
    rlock_permit *p = malloc(sizeof *p);
    if (!p)
        return NULL;
    bool fits = n > 0 && n <= UINT16_MAX;
    *p = (rlock_permit){.of = s, .as = s->as};
    p->as.owner = rl_owner_apart();
    p->as.weight = fits ? (uint16_t)n : 0;
    rl_lock_ref(&s->handle);
    return p;
}

void rl_permit_free(rlock_permit *p)
{
    rlock_semaphore_free(p->of);
    free(p);
}

void rl_permit_as_lock(rlock *lk, rlock_permit *p)
{
    const rlock *handle = &p->of->handle;
    memset(lk, 0, sizeof *lk);
    lk->kind = &rl_permits;
    lk->client = handle->client;
    lk->target = handle->target;
    lk->target.semaphore = &p->as;
}

rl_job_args rl_permit_acquire_args(rlock_semaphore *s, int64_t wait_ms,
                                   int64_t lease_ms)
{
    return (rl_job_args){
        .verb = RL_JOB_ACQUIRE,
        .wait_ms = wait_ms,
        .lease_ms = lease_ms,
        .waits_as = &s->handle,
        .cancel = {&s->handle.cancels, atomic_load(&s->handle.cancels)}};
}

/* The calling thread drives it to its end. */
static rlock_status perform(rlock_permit *p, const rl_job_args *w)
{
    rlock lk;
    rl_lock_job j;
    _Alignas(max_align_t) char room[RL_MEMBER_ROOM];
    rl_permit_as_lock(&lk, p);
    return rl_drive_job(rl_lock_begin(&j, &lk, w, room));
}

rlock_status rlock_semaphore_acquire(rlock_semaphore *s, int n, int64_t wait_ms,
                                     int64_t lease_ms, rlock_permit **out)
{
    if (!out)
        return rl_null_pointer("out");
    *out = NULL;
    if (!s)
        return rl_null_pointer("the semaphore");
    rl_job_args w = rl_permit_acquire_args(s, wait_ms, lease_ms);
    rlock_permit *p = rl_permit_new(s, n);
    if (!p)
        return rl_error_set(RLOCK_ENOMEM, 0, "out of memory");
    rlock_status status = perform(p, &w);
    if (status == RLOCK_OK)
        *out = p;
    else
        rl_permit_free(p);
    return status;
}

rlock_status rlock_permit_release(rlock_permit *p)
{
    if (!p)
        return rl_null_pointer("the permit");
    rlock_status s = perform(p, &(rl_job_args){.verb = RL_JOB_UNLOCK});
    rl_permit_free(p);
    return s;
}

rlock_status rlock_permit_extend(rlock_permit *p, int64_t lease_ms)
{
    if (!p)
        return rl_null_pointer("the permit");
    return perform(p,
                   &(rl_job_args){.verb = RL_JOB_EXTEND, .lease_ms = lease_ms});
}

static rl_view view(const rlock_permit *p)
{
    rlock lk;
    if (!p)
        return (rl_view){0};
    rl_permit_as_lock(&lk, (rlock_permit *)p);
    return rl_lock_view(&lk);
}

bool rlock_permit_is_held(const rlock_permit *p)
{
    return view(p).count > 0;
}

int64_t rlock_permit_valid_ms(const rlock_permit *p)
{
    return view(p).valid_ms;
}

int rlock_permit_lost_fd(rlock_permit *p)
{
    rlock lk;
    if (!p) {
        rl_null_pointer("the permit");
        return -1;
    }
    rl_permit_as_lock(&lk, p);
    return rlock_lost_fd(&lk);
}
