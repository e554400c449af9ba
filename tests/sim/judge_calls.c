/*
 * Judges 6, 7 and 10: how long calls take, what they may answer in a calm
 * world, and that callbacks run with no mutex held.
 */
#include <string.h>

#include "judge.h"

static bool is_acquire(const act *a)
{
    return strcmp(a->verb, "acquire") == 0;
}

static bool is_forced(const act *a)
{
    return strcmp(a->verb, "force_unlock") == 0;
}

/* --- 6: waits ------------------------------------------------------------- */

/* Members are asked each by itself where there is no memory for a round. */
static bool is_one_by_one(const act *a)
{
    return memory_was_short(&a->o->g->p, a->began, w.now);
}

/* More than the wait: so many times command_timeout_ms, and what goes with it. */
static int64_t most_of_a_call(int64_t times)
{
    int64_t limit = times * cfg.timeout_ms * MS;
    if (cfg.min_replicas > 0)
        limit += S; /* replica_wait_ms */
    /* A connection takes as long as the callback does, and hiredis looks for a
       name twice: when there is no IPv4 address, for an IPv6 one. */
    if (cfg.contexts)
        limit += cfg.connect_ms * MS + (cfg.names_ppm > 0 ? 6 * S : 10 * MS);
    return limit + limit / 100 + judge_slack();
}

static int64_t most_of_callbacks(void)
{
    return 100 * MS + judge_callbacks();
}

static void check_took(const char *verb, const char *name, int64_t wait_ms,
                       int64_t took, int64_t limit)
{
    if (wait_ms >= 0 && took > wait_ms * MS + wait_ms * MS / 100 + limit)
        finding("judge 6: %s of %s with a wait of %lld ms took %lld us", verb,
                name, (long long)wait_ms, (long long)(took / US));
}

void judge_took(const char *verb, const char *name, int64_t wait_ms,
                int64_t took)
{
    check_took(verb, name, wait_ms, took,
               most_of_a_call(1) + most_of_callbacks());
}

/* A Multi lock has several clients: one command_timeout_ms for each, but an
   acquire, which has one. Who frees a hold by force looks who has it before. */
static void check_time(const act *a)
{
    const lock *l = &locks[a->lock];
    int64_t times = is_forced(a) ? 2 : 1;
    if (l->is_multi && !is_acquire(a))
        times = is_one_by_one(a) ? cfg.servers + l->n : cfg.servers;
    check_took(a->verb, l->name, a->wait_ms, a->took,
               most_of_a_call(times) +
                   (a->is_started ? most_of_callbacks() : 0));
    if (a->status != RLOCK_TIMEOUT)
        return;
    if (a->lasted < a->wait_ms * MS / 100 * 99)
        finding("judge 6: a wait of %lld ms ran out after %lld us",
                (long long)a->wait_ms, (long long)(a->lasted / US));
    if (cfg.calm && !a->is_started &&
        a->took > a->wait_ms * MS / 100 * 101 + 100 * MS)
        finding("judge 6: in a calm world a wait of %lld ms ran out after "
                "%lld us",
                (long long)a->wait_ms, (long long)(a->took / US));
}

/* --- memory -------------------------------------------------------------- */

static void check_memory(const act *a)
{
    if (a->status == RLOCK_ENOMEM &&
        !judge_excuses(a->o->g, a->status, a->began))
        finding("judge 7: %s of %s finds no memory, of which none was refused: "
                "%s",
                a->verb, locks[a->lock].name, rlock_last_error()->message);
}

/* --- 7: calm worlds ------------------------------------------------------- */

/* It may be lost: it has a lease of its own, or was freed by force. */
static bool may_be_lost(const act *a)
{
    const lock *l = &locks[a->lock];
    for (int i = 0; i < l->n; i++) {
        const hold *h = a->o->hold[l->member[i]];
        if (h && (!h->is_renewed || is_shaken(h) || cfg.max_hold_ms > 0))
            return true;
    }
    return false;
}

static bool were_shaken(const lock *l, int64_t since)
{
    for (int i = 0; i < l->n; i++)
        if (was_shaken(l->member[i], since))
            return true;
    return false;
}

static bool is_answer(const act *a)
{
    const lock *l = &locks[a->lock];
    switch (a->status) {
    case RLOCK_OK:
        return true;
    case RLOCK_BUSY:
        return is_acquire(a) && a->wait_ms == 0;
    case RLOCK_TIMEOUT:
    case RLOCK_EDEADLK:
        return is_acquire(a) && a->wait_ms != 0;
    case RLOCK_CANCELED:
        return is_acquire(a) && a->wait_ms != 0 &&
               (was_canceled(a->o->g, a->lock, a->began) ||
                a->o->canceled_at >= a->began);
    case RLOCK_NOT_HELD:
        return is_forced(a);
    case RLOCK_LOST:
        return may_be_lost(a);
    case RLOCK_EQUORUM:
        return l->has_red || /* split votes */
               (is_acquire(a) && a->wait_ms >= 0 && cfg.min_replicas > 0);
    case RLOCK_EIO: /* a member was taken, and lost again, until the end */
        return l->is_multi && is_acquire(a) &&
               (cfg.max_hold_ms > 0 || were_shaken(l, a->began));
    default:
        return false;
    }
}

static void called(const act *a)
{
    if (a->o->g->closing_at && a->began + a->lasted >= a->o->g->closing_at)
        return;
    check_time(a);
    check_memory(a);
    if (cfg.calm && !is_answer(a))
        finding("judge 7: in a calm world %s of %s (wait %lld ms, lease %lld "
                "ms): %s (%s)",
                a->verb, locks[a->lock].name, (long long)a->wait_ms,
                (long long)a->lease_ms, rlock_status_str(a->status),
                rlock_last_error()->message);
    if (a->is_nested && a->status == RLOCK_NOT_HELD)
        finding("%s of %s, which owner %d has taken, answers not held", a->verb,
                locks[a->lock].name, a->o->id);
}

/* A call whose hold is lost meanwhile leaves its answer behind, and the
   connection with it: an extend, or what goes one level deeper as the lease or
   max_hold_ms is over. So does who has a quorum before all that he asks for has
   been sent. */
static bool may_leave_answers(void)
{
    return cfg.extend > 0 || cfg.max_hold_ms > 0 || cfg.lease_pct > 0 ||
           cfg.short_ppm > 0;
}

/* A renewal that comes when somebody has freed the lock, or its client is being
   closed. */
static bool may_be_cut_short(const program *g)
{
    return g->closing_at || (cfg.force > 0 && cfg.min_replicas > 0);
}

static bool is_trouble(const program *g, const rlock_event *e)
{
    return (e->type == RLOCK_EVENT_RENEW_FAILED && !may_be_cut_short(g)) ||
           (e->type == RLOCK_EVENT_RECONNECTED && !may_leave_answers());
}

static void told(program *g, const rlock_event *e)
{
    if (running->mutexes > 0)
        finding("judge 10: event %d of %s is told under %d mutexes",
                (int)e->type, e->name, running->mutexes);
    if (cfg.calm && is_trouble(g, e))
        finding("judge 7: in a calm world event %d of \"%s\": %s", (int)e->type,
                e->name, e->message);
}

const judge judge_calls = {.name = "calls", .called = called, .told = told};
