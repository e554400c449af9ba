#include "excuse.h"

#include "harm.h"
#include "locks.h"

enum {
    THIRD_US = LEASE_MS * 1000 / 3,  /* a renewal is due so often */
    TOLD_US = 2 * COMMAND_MS * 1000, /* a call that still runs may last so long,
                                        and only then one is told of a loss */
    MARGIN_US = 100000
};

bool concerns(const fault *f, int proc, int lock)
{
    if (f->proc >= 0 && proc >= 0 && f->proc != proc)
        return false;
    if (lock < 0)
        return true;
    if (f->lock >= 0)
        return f->lock == lock || lock_has_member(lock, f->lock);
    return f->servers & lock_servers(lock);
}

/*
 * Some server has forgotten what it knew of the lock. For as long as a turn it
 * may be granted all the same, to who asks after that.
 */
static bool is_loss(const arena *a, const fault *f, int lock, int64_t from_us,
                    int64_t to_us)
{
    return f->emptied & lock_servers(lock) && concerns(f, -1, lock) &&
           f->began_us <= to_us && f->ended_us + a->turn_ms * 1000 >= from_us;
}

/*
 * Nodes that may have had no part in a hold that was asked for then: out of
 * reach, or not tried again yet. With its next renewal they have.
 */
static unsigned absent(const arena *a, int lock, int64_t asked_us)
{
    unsigned servers = 0;
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        if (!nemesis_kinds[f->kind].harmless && concerns(f, -1, lock) &&
            f->began_us <= asked_us + THIRD_US &&
            f->ended_us + COMMAND_MS * 1000 >= asked_us)
            servers |= f->servers;
    }
    return servers;
}

/* A Red lock of which one node was away is lost with one more. */
const fault *data_loss(const arena *a, int lock, int64_t from_us, int64_t to_us)
{
    const fault *last = NULL;
    unsigned emptied = 0;
    bool votes_on = false;
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        if (is_loss(a, f, lock, from_us, to_us)) {
            emptied |= f->emptied;
            votes_on = votes_on || nemesis_kinds[f->kind].votes_on;
            last = f;
        }
    }
    if (votes_on)
        emptied |= absent(a, lock, from_us);
    return lock_needs(lock, emptied) ? last : NULL;
}

/* A Red lock that has no vote to spare is lost with a single node, and so is a
   token that just a quorum knows. */
static bool any_loss(const arena *a, int lock, int64_t from_us, int64_t to_us)
{
    for (int i = 0; i < a->n_faults; i++)
        if (is_loss(a, &a->faults[i], lock, from_us, to_us))
            return true;
    return false;
}

bool tokens_may_restart(const arena *a, int lock, int64_t from_us,
                        int64_t to_us)
{
    int members[MEMBERS_MAX];
    int n = lock_members(lock, members);
    for (int i = 0; i < n; i++)
        if (tokens_may_restart(a, members[i], from_us, to_us))
            return true;
    if (lock_kind_of(lock) == LOCK_RED)
        return any_loss(a, lock, from_us, to_us);
    return (a->turn_ms || lock_kind_of(lock) == LOCK_READ) &&
           data_loss(a, lock, from_us, to_us);
}

static int64_t overlap_us(int64_t a_us, int64_t b_us, int64_t from_us,
                          int64_t to_us)
{
    int64_t begin_us = a_us > from_us ? a_us : from_us;
    int64_t end_us = b_us < to_us ? b_us : to_us;
    return end_us > begin_us ? end_us - begin_us : 0;
}

static int64_t stalls_in(const history *h, int64_t from_us, int64_t to_us)
{
    int64_t sum_us = 0;
    for (uint32_t i = 0; h && i < h->n_notes; i++) {
        const note *n = &h->notes[i];
        if (n->kind == NOTE_STALL)
            sum_us += overlap_us(n->from_us, n->to_us, from_us, to_us);
    }
    return sum_us;
}

int64_t stall_us(const verdict *v, int life, int64_t from_us, int64_t to_us)
{
    int64_t own_us = stalls_in(v->histories[life], from_us, to_us);
    int64_t all_us = stalls_in(v->machine, from_us, to_us);
    return own_us > all_us ? own_us : all_us;
}

int64_t harm_us(const verdict *v, const arena *a, const entry *e,
                int64_t from_us, int64_t to_us)
{
    int64_t sum_us = stall_us(v, e->life, from_us, to_us);
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        if (!nemesis_kinds[f->kind].harmless &&
            concerns(f, a->lives[e->life].proc, e->lock))
            sum_us += overlap_us(f->began_us, f->ended_us + COMMAND_MS * 1000,
                                 from_us, to_us);
    }
    return sum_us;
}

const fault *home_emptied(const arena *a, int64_t from_us, int64_t to_us,
                          bool by_command)
{
    const fault *last = NULL;
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        bool command = nemesis_kinds[f->kind].harm != NULL;
        if (f->emptied & 1U << HOME && f->lock < 0 && command == by_command &&
            f->began_us <= to_us && f->ended_us >= from_us)
            last = f;
    }
    return last;
}

int64_t silence_us(const verdict *v, const arena *a, const entry *e,
                   int64_t from_us, int64_t to_us)
{
    int64_t sum_us = stall_us(v, e->life, from_us, to_us);
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        if (!nemesis_kinds[f->kind].harmless && f->servers & 1U << HOME &&
            concerns(f, a->lives[e->life].proc, -1))
            sum_us += overlap_us(f->began_us, f->ended_us, from_us, to_us);
    }
    return sum_us;
}

int64_t client_end_us(const arena *a)
{
    int64_t replicas_ms = a->min_replicas ? REPLICAS_MS : 0;
    return (COMMAND_MS + replicas_ms + LEAVE_MS + LAST_TRY_MS) * 1000;
}

int64_t stopped_us(const arena *a, const entry *e, int64_t from_us,
                   int64_t to_us)
{
    int64_t sum_us = 0;
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        const nemesis_kind *k = &nemesis_kinds[f->kind];
        if ((k->inject == worker_stops_shortly ||
             k->inject == worker_stops_long) &&
            f->proc == a->lives[e->life].proc)
            sum_us += overlap_us(f->began_us, f->mended_us, from_us, to_us);
    }
    return sum_us;
}

int64_t suspended_us(const arena *a, const entry *e, int64_t from_us,
                     int64_t to_us)
{
    int64_t sum_us = 0;
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        if (nemesis_kinds[f->kind].inject == worker_suspended &&
            concerns(f, a->lives[e->life].proc, -1) && f->began_us <= to_us &&
            f->ended_us >= from_us)
            sum_us += LONG_MS * 1000;
    }
    return sum_us;
}

bool closed_meanwhile(const verdict *v, const entry *e, int64_t at_us)
{
    const history *h = v->histories[e->life];
    for (uint32_t k = 0; k < h->n_holds; k++) {
        const hold *r = &h->holds[k];
        if (!r->token && r->whole && r->end == HOLD_CLOSED &&
            (r->lock == e->lock || lock_twin(r->lock) == e->lock) &&
            r->asked_us <= at_us && r->over_us >= at_us)
            return true;
    }
    return false;
}

bool lacked_memory(const arena *a, const entry *e, int64_t from_us,
                   int64_t to_us)
{
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        const nemesis_kind *k = &nemesis_kinds[f->kind];
        if (k->err && k->call == SHIM_ALLOC &&
            f->proc == a->lives[e->life].proc &&
            overlap_us(f->began_us, f->ended_us, from_us, to_us))
            return true;
    }
    return false;
}

static bool outlived(const arena *a, const entry *e)
{
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        if (nemesis_kinds[f->kind].outlives_leases &&
            concerns(f, a->lives[e->life].proc, e->lock) &&
            f->began_us <= e->r->over_us && f->ended_us >= e->r->asked_us)
            return true;
    }
    return false;
}

/*
 * The server lost it, or its lease was as long as was asked for, or it was not
 * renewed for a lease: at least a third of that is somebody's fault, as three
 * renewals are tried.
 */
/*
 * What a replica has acknowledged outlives a failover, so a hold of which no
 * data was lost is good for one lease at least, whatever happens to its master.
 */
static bool is_acknowledged_and_young(const arena *a, const entry *e)
{
    const hold *r = e->r;
    int64_t lease_us = (r->lease_ms ? r->lease_ms : LEASE_MS) * INT64_C(1000);
    return a->home != ALONE && a->min_replicas > 0 && lock_is_at_one(e->lock) &&
           r->over_us < r->asked_us + lease_us - MARGIN_US;
}

bool loss_has_cause(const verdict *v, const arena *a, const entry *e)
{
    const hold *r = e->r;
    int64_t lease_us = r->lease_ms * 1000;
    if (lease_us && r->over_us >= r->asked_us + lease_us - MARGIN_US)
        return true;
    if (any_loss(a, e->lock, r->asked_us, r->over_us) || outlived(a, e))
        return true;
    if (is_acknowledged_and_young(a, e))
        return false;
    int64_t from_us = r->over_us - LEASE_MS * 1000 - TOLD_US;
    return harm_us(v, a, e, from_us, r->over_us) >= THIRD_US;
}

bool may_lack_events(const arena *a, const entry *e, int64_t from_us,
                     int64_t to_us)
{
    return a->lives[e->life].proc >= PROCS - LOOPS &&
           lacked_memory(a, e, from_us, to_us);
}
