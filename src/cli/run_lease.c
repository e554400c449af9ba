/* What the keeper holds: a lock, a side of a read-write lock, or a permit. */
#include <stdio.h>
#include <string.h>

#include "run.h"

/* The number of permits is forgotten so long after the last was given back: so
   names that are made up leave nothing, and another COUNT is taken one day. */
#define IDLE_MS 60000

/* --- To begin with --- */

/* Holder ids show it, so that an administrator sees what a lock is held for. */
static const char *label(const run_options *r)
{
    const char *name = r->shell_line ? "sh" : r->command[0];
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

static rlock_status open_pool(run_lease *l, rlock_client *home,
                              const run_options *r)
{
    rlock_semaphore_options opts = RLOCK_SEMAPHORE_OPTIONS_INIT;
    opts.permits = r->permits;
    opts.idle_ms = IDLE_MS;
    return rlock_semaphore_new_ex(home, r->name, strlen(r->name), &opts,
                                  &l->pool);
}

rlock_status run_lease_open(run_lease *l, const cli_server *server,
                            const run_options *r)
{
    rlock_client *home = server->client[0];
    rlock_status s = rlock_owner_new(label(r), &l->owner);
    if (s != RLOCK_OK)
        return s;
    rlock_owner_set(l->owner);
    switch (r->kind) {
    case RLOCK_KIND_READ:
        return rlock_rw_new(home, r->name, &l->lk, &l->other);
    case RLOCK_KIND_WRITE:
        return rlock_rw_new(home, r->name, &l->other, &l->lk);
    case RLOCK_KIND_PERMIT:
        return open_pool(l, home, r);
    default:
        return cli_lock(server, r->name, &l->lk);
    }
}

/* --- Taking it --- */

rlock_status run_lease_take(run_lease *l, int64_t wait_ms)
{
    return l->pool ? rlock_semaphore_acquire(l->pool, 1, wait_ms,
                                             RLOCK_WATCHDOG, &l->permit)
                   : rlock_acquire(l->lk, wait_ms, RLOCK_WATCHDOG);
}

static void got_lock(rlock *lk, rlock_status s, void *arg)
{
    run_lease *l = arg;
    (void)lk;
    l->done(s, l->arg);
}

static void got_permit(rlock_permit *p, rlock_status s, void *arg)
{
    run_lease *l = arg;
    l->permit = p;
    l->done(s, l->arg);
}

rlock_status run_lease_start(run_lease *l, int64_t wait_ms,
                             void (*done)(rlock_status s, void *arg), void *arg)
{
    l->done = done;
    l->arg = arg;
    return l->pool ? rlock_semaphore_acquire_start(
                         l->pool, 1, wait_ms, RLOCK_WATCHDOG, got_permit, l)
                   : rlock_acquire_start(l->lk, wait_ms, RLOCK_WATCHDOG,
                                         got_lock, l);
}

void run_lease_cancel(run_lease *l)
{
    if (l->pool)
        rlock_semaphore_cancel(l->pool);
    else
        rlock_cancel(l->lk);
}

/* Who reads is in the way of a writer, and who writes of both. The owner has its
   acquire under way: a thread asks. */
static rlock_status ask_who(const run_lease *l, rlock_holder *h)
{
    rlock_owner *owner = rlock_owner_set(NULL);
    rlock_status s = rlock_holder_info(l->lk, h, sizeof *h);
    if (s == RLOCK_NOT_HELD && l->other)
        s = rlock_holder_info(l->other, h, sizeof *h);
    rlock_owner_set(owner);
    return s;
}

bool run_lease_who(const run_lease *l, char *who, size_t size)
{
    rlock_holder h;
    char id[sizeof h.host + sizeof h.owner + 30];
    if (l->pool)
        return true; /* nobody in particular */
    if (ask_who(l, &h) != RLOCK_OK)
        return false;
    snprintf(id, sizeof id, "%s:%lld%s%s", h.host, (long long)h.pid,
             h.owner[0] ? "/" : "", h.owner);
    cli_printable(who, size, h.host[0] ? id : h.raw);
    return true;
}

/* --- While it is held --- */

/* Who was let in from a line has it for a moment only, so that the dead are soon
   passed, and COMMAND would have to end at once. */
static rlock_status have_it_whole(const run_lease *l)
{
    return l->pool    ? rlock_permit_extend(l->permit, RLOCK_WATCHDOG)
           : l->other ? rlock_extend(l->lk, RLOCK_WATCHDOG)
                      : RLOCK_OK;
}

rlock_status run_lease_settle(const run_lease *l, run_shared *sh)
{
    rlock_holder h = {0};
    rlock_status s = have_it_whole(l);
    if (s == RLOCK_OK && !l->pool)
        s = rlock_holder_info(l->lk, &h, sizeof h);
    memcpy(sh->holder, h.raw, sizeof sh->holder);
    sh->token = l->pool ? 0 : rlock_token(l->lk);
    return s;
}

int64_t run_lease_valid_ms(const run_lease *l)
{
    return l->pool ? rlock_permit_valid_ms(l->permit) : rlock_valid_ms(l->lk);
}

int run_lease_lost_fd(run_lease *l)
{
    return l->pool ? rlock_permit_lost_fd(l->permit) : rlock_lost_fd(l->lk);
}

rlock_status run_lease_release(run_lease *l)
{
    return l->pool ? rlock_permit_release(l->permit) : rlock_unlock(l->lk);
}
