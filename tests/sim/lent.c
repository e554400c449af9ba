/*
 * Owners that a thread acts as for one wait, while another thread may free them.
 * Then that wait ends as by a cancel, and what is granted all the same is nobody's:
 * judges 6 and 3. Whether such a lock is free again some time, judges 12 and 15
 * look at the end.
 *
 * What stays true: an owner is freed by who has set its place to NULL, and so
 * once. By another thread it is only while its own one sleeps in the call: before
 * that has begun the manual forbids it.
 */
#include <string.h>

#include "judge.h"

/* "When it looks next, as a rule within 3 s." */
#define LOOKS (5 * S)
/* The call may have been about to return. */
#define RETURNS (100 * MS)

typedef struct lent {
    rlock_owner *self; /* NULL: it is freed */
    const thread *by;  /* who is in the call; NULL: nobody */
    const program *g;
    int64_t freed;
} lent;

static lent lents[OWNERS_MAX]; /* of the owner that acts as it */

static bool sleeps_in_call(const lent *l)
{
    return l->self && l->by && l->by->state == BLOCKED &&
           strcmp(l->by->waits_in, "mutex") != 0;
}

static void free_one(const owner *o)
{
    int from = (int)chance_below(&w.dice, OWNERS_MAX);
    for (int i = 0; i < OWNERS_MAX; i++) {
        lent *l = &lents[(from + i) % OWNERS_MAX];
        if (l->g != o->g || !sleeps_in_call(l))
            continue;
        rlock_owner *self = l->self;
        trace("owner %d frees the one that owner %d acts as", o->id,
              (from + i) % OWNERS_MAX);
        l->self = NULL;
        l->freed = w.now;
        rlock_owner_free(self);
        return;
    }
}

static void check_freed(const lent *l, const owner *o, int lock, rlock_status s)
{
    int64_t since = w.now - l->freed;
    if (!cfg.calm || o->g->closing_at)
        return;
    if (since > LOOKS + judge_slack())
        finding("judge 6: the owner was freed as which owner %d waits for %s, "
                "and it waited on for %lld ms",
                o->id, locks[lock].name, (long long)(since / MS));
    if (s == RLOCK_OK && since > RETURNS + judge_slack())
        finding("judge 3: acquire of %s is ok, whose owner was freed %lld ms "
                "before",
                locks[lock].name, (long long)(since / MS));
}

static void give_back(const owner *o, rlock *lk, int lock)
{
    rlock_status s = rlock_unlock(lk);
    if (s == RLOCK_NOT_HELD && !o->g->closing_at)
        finding("judge 3: unlock of %s, which owner %d has just acquired as "
                "another one, finds nothing",
                locks[lock].name, o->id);
}

static void wait_as(owner *o, lent *l)
{
    int lock = (int)chance_below(&o->dice, locks_n);
    rlock *lk = owner_handle(o, lock);
    int64_t wait_ms = chance_skewed(&o->dice, 20000);
    trace("owner %d waits for %s as another one, for %lld ms", o->id,
          locks[lock].name, (long long)wait_ms);
    rlock_owner_set(l->self);
    l->by = running;
    rlock_status s = rlock_acquire(lk, wait_ms, RLOCK_WATCHDOG);
    l->by = NULL;
    trace("owner %d: %s", o->id, rlock_status_str(s));
    if (!l->self)
        check_freed(l, o, lock, s);
    else if (s == RLOCK_OK)
        give_back(o, lk, lock);
    rlock_owner_set(NULL);
}

static void act_as_lent(owner *o)
{
    lent *l = &lents[o->id];
    int64_t since = w.now;
    *l = (lent){.g = o->g};
    rlock_status s = rlock_owner_new(LENT, &l->self);
    if (s && !judge_excuses(o->g, s, since))
        finding("no owner: %s", rlock_status_str(s));
    if (s)
        return;
    wait_as(o, l);
    rlock_owner *self = l->self;
    l->self = NULL;
    rlock_owner_free(self);
}

void act_lend(owner *o)
{
    if (chance_below(&o->dice, 2))
        act_as_lent(o);
    else
        free_one(o);
}
