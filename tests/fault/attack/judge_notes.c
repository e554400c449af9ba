#include "excuse.h"
#include "judging.h"
#include "rest.h"

enum {
    AFTERMATH_US = 3000000, /* tries come at intervals */
    HARM_US = 100000,       /* enough for one to fail */
    /* So long a lease is believed in, at least: clocks differ. */
    VALID_AT_REST_US = LEASE_AT_REST_MS * 10 * 98,
    REST_MS = 1500 /* as client.h promises, and what a busy machine
                               takes */
};

/* The same as for the second judge; who the other one was is not known. */
static bool overlap_excused(const verdict *v, const arena *a, const entry *e,
                            const note *n)
{
    int64_t from_us = n->from_us;
    for (size_t i = 0; i < v->n_holds[e->lock]; i++) {
        const entry *x = &v->holds[e->lock][i];
        if (x->r->granted_us <= n->at_us && over_us(a, x) >= n->from_us)
            from_us = earlier(from_us, x->r->asked_us);
    }
    return data_loss(a, e->lock, from_us, n->at_us);
}

/* Of a younger hold whose token had to begin anew. */
static bool stale_excused(const verdict *v, const arena *a, const entry *e,
                          const note *n)
{
    (void)v;
    return tokens_may_restart(a, e->lock, n->from_us, n->at_us);
}

/* May it have written while the lock was no longer its own? */
static bool may_write_late(const arena *a, const entry *e)
{
    if (e->r->end == HOLD_OPEN) /* or half of it */
        return true;
    return e->r->writes > 0 &&
           (e->r->end == HOLD_LOST || e->r->end == HOLD_CLOSED ||
            data_loss(a, e->lock, e->r->asked_us, over_us(a, e)));
}

/*
 * Somebody who was lost, killed or without the server's protection may have
 * written since the holder before this one looked.
 */
static bool update_excused(const verdict *v, const arena *a, const entry *e,
                           const note *n)
{
    int64_t before_us = 0;
    const entry *holds = v->holds[e->lock];
    for (size_t i = 0; i < v->n_holds[e->lock]; i++) {
        int64_t entered_us = holds[i].r->entered_us;
        if (entered_us < n->at_us && entered_us > before_us)
            before_us = entered_us;
    }
    for (size_t i = 0; i < v->n_holds[e->lock]; i++)
        if (holds[i].r->granted_us <= n->at_us &&
            over_us(a, &holds[i]) >= before_us && may_write_late(a, &holds[i]))
            return true;
    return false;
}

/* Something kept the library from undoing it, or had just done so. */
static bool leaving_excused(const verdict *v, const arena *a, const entry *e,
                            const note *n)
{
    return harm_us(v, a, e, n->from_us - AFTERMATH_US, n->to_us) > HARM_US;
}

static bool event_excused(const verdict *v, const arena *a, const entry *e,
                          const note *n)
{
    return may_lack_events(a, e, n->from_us, n->to_us) ||
           closed_meanwhile(v, e, n->at_us);
}

/* Of all events of the process. */
static bool count_excused(const verdict *v, const arena *a, const entry *e,
                          const note *n)
{
    (void)v;
    return may_lack_events(a, e, a->lives[e->life].began_us, n->at_us);
}

static const char *const late_calls[NOTE_KINDS] = {
    [NOTE_LATE_ACQUIRE] = "acquire",
    [NOTE_LATE_UNLOCK] = "unlock",
    [NOTE_LATE_EXTEND] = "extend",
    [NOTE_LATE_END] = "the client's end"};

static void judge_late_call(verdict *v, const arena *a, const entry *e,
                            const note *n)
{
    int64_t stop_us = stopped_us(a, e, n->from_us, n->to_us);
    int64_t stalled_us = stall_us(v, e->life, n->from_us, n->to_us) - stop_us;
    int64_t queued_us = (int64_t)n->value; /* may be a part of the stalls */
    int64_t late_us = n->to_us - n->from_us - stop_us;
    late_us -= stalled_us > queued_us ? stalled_us : queued_us;
    if (n->kind == NOTE_LATE_END)
        late_us -= client_end_us(a);
    if (late_us > v->longest_overrun_us)
        v->longest_overrun_us = late_us;
    if (late_us > OVERRUN_MS * 1000)
        find(v, OVERRUN, e, n->to_us, "%s, by %lld us", late_calls[n->kind],
             (long long)late_us);
    else if (n->to_us - n->from_us > OVERRUN_MS * 1000)
        v->excused[OVERRUN]++;
}

/*
 * The lease is longer than any rest, so nothing ends the hold but a server that
 * forgets it, or a machine that sleeps again and again while nobody is awake for long
 * enough to renew. What was lost by a command the next renewal finds, or the unlock;
 * where there was one in the rest, or before the answer to the acquire, it may be
 * what has ended the hold.
 */
static void judge_rest(verdict *v, const arena *a, const entry *e,
                       const note *n)
{
    int64_t rest_us = n->to_us - n->from_us;
    if (n->value == REST_RELEASED ||
        home_emptied(a, n->from_us - COMMAND_MS * 1000, n->to_us, true) ||
        rest_us + suspended_us(a, e, n->from_us, n->to_us) >= VALID_AT_REST_US)
        return;
    const fault *loss = home_emptied(a, n->from_us, n->to_us, false);
    if (!loss) {
        find(v, WITHOUT_CAUSE, e, n->to_us, "at rest");
        return;
    }
    int64_t late_us = n->to_us - loss->ended_us;
    if (late_us > 0)
        late_us -= silence_us(v, a, e, loss->ended_us, n->to_us);
    if (late_us > REST_MS * 1000)
        find(v, REST_LATE, e, n->to_us, "%lld us after its server's end",
             (long long)late_us);
}

/* What the other notes mean, if nothing excuses them. */
static const struct meaning {
    bool guilty;
    offence what;
    bool (*excused)(const verdict *v, const arena *a, const entry *e,
                    const note *n);
} meanings[NOTE_KINDS] = {
    [NOTE_OVERLAP] = {true, OVERLAP_SEEN, overlap_excused},
    [NOTE_MISMATCH] = {true, LOST_UPDATE, update_excused},
    [NOTE_STALE] = {true, STALE_WRITE, stale_excused},
    [NOTE_REENTRY] = {true, REENTRY, NULL},
    [NOTE_LARGEST] = {true, LARGEST, NULL},
    [NOTE_OVERTIME] = {true, TOLD_LATE, NULL},
    [NOTE_REVIVED] = {true, TOLD_LATE, NULL},
    [NOTE_COUNT] = {true, MISCOUNTED, count_excused},
    [NOTE_UNHEARD] = {true, UNHEARD, event_excused},
    [NOTE_TOLD_TWICE] = {true, TOLD_TWICE, NULL},
    [NOTE_UNTOLD] = {true, UNTOLD, NULL},
    [NOTE_REFUSED] = {true, REFUSED, NULL},
    [NOTE_LEFT] = {true, LEFT_BEHIND, leaving_excused},
};

void judge_note(verdict *v, const arena *a, int life, const note *n)
{
    const entry e = {NULL, life, (int)n->lock};
    const struct meaning *m = &meanings[n->kind];
    if (n->kind == NOTE_STALL && n->to_us - n->from_us > v->longest_stall_us)
        v->longest_stall_us = n->to_us - n->from_us;
    if (late_calls[n->kind])
        judge_late_call(v, a, &e, n);
    else if (n->kind == NOTE_REST)
        judge_rest(v, a, &e, n);
    else if (m->guilty && m->excused && m->excused(v, a, &e, n))
        v->excused[m->what]++;
    else if (m->guilty)
        find(v, m->what, &e, n->at_us, "from %lld to %lld, %llu",
             (long long)n->from_us, (long long)n->to_us,
             (unsigned long long)n->value);
}
