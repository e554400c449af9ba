/*
 * Questions: what holds nothing and frees nothing, asked of any lock at any
 * time. What they answer is another one's, and may be old; so only those of a
 * lock that is held, and was not shaken, are judged.
 */
#include <string.h>

#include "judge.h"

static void check_holder(const owner *o, int lock, const rlock_holder *h)
{
    const hold *has = locks[lock].n == 1 ? o->hold[lock] : NULL;
    if (!has || !cfg.calm || !has->is_renewed || is_shaken(has) ||
        cfg.max_hold_ms > 0 || cfg.turn_ms > 0 || o->g->closing_at)
        return;
    text id = {(char *)h->raw, strlen(h->raw), 0};
    if (judge_names_holder(has) && !has->is_gone && !is_holder(has, &id))
        finding("judge 2: owner %d has %s, and %s is said to hold it", o->id,
                locks[lock].name, h->raw);
}

static void ask_lock(owner *o, int lock)
{
    rlock *lk = owner_handle(o, lock);
    rlock_holder h;
    int64_t ttl;
    bool is_locked;
    rlock_status s;
    switch (chance_below(&o->dice, 3)) {
    case 0:
        s = rlock_is_locked(lk, &is_locked);
        break;
    case 1:
        s = rlock_ttl(lk, &ttl);
        break;
    default:
        s = rlock_holder_info(lk, &h, sizeof h);
        if (s == RLOCK_OK)
            check_holder(o, lock, &h);
    }
    trace("owner %d asks about %s: %s", o->id, locks[lock].name,
          rlock_status_str(s));
}

/* Of a calm world's locks, and none that waits is older than the world. */
static void check_wait(const rlock_wait *x, void *arg)
{
    const owner *o = arg;
    if (thing_of(x->name) < 0 || x->waited_ms < 0 ||
        x->waited_ms > (w.now - BEGIN) / MS + 1000)
        finding("owner %d is told that somebody waits for %s, for %lld ms",
                o->id, x->name, (long long)x->waited_ms);
}

static void ask_who_waits(owner *o, rlock_client *cl)
{
    rlock_status s = rlock_waits_for(cl, check_wait, o);
    trace("owner %d asks who waits: %s", o->id, rlock_status_str(s));
    if (cfg.calm && s && !o->g->closing_at)
        finding("judge 7: in a calm world nobody is told who waits: %s (%s)",
                rlock_status_str(s), rlock_last_error()->message);
}

/* Each lock is one of the world's, and has no more holders than one. */
static bool check_found(const rlock_lock_info *x, void *arg)
{
    const owner *o = arg;
    int thing = thing_of(x->name);
    if (thing < 0 || x->waiting < 0 || x->n_holders > 1 ||
        (x->n_holders == 0) != (x->holders == NULL))
        finding("owner %d is told of a lock %s, which %zu hold", o->id, x->name,
                x->n_holders);
    return true;
}

static void ask_which_locks(owner *o, rlock_client *cl)
{
    unsigned flags = (unsigned)chance_below(&o->dice, 4);
    rlock_status s = rlock_scan(cl, NULL, flags, check_found, o);
    trace("owner %d asks which locks there are: %s", o->id,
          rlock_status_str(s));
    if (cfg.calm && s && !o->g->closing_at)
        finding("judge 7: in a calm world nobody is told which locks there "
                "are: %s (%s)",
                rlock_status_str(s), rlock_last_error()->message);
}

static void ask_client(owner *o, rlock_client *cl)
{
    rlock_stats stats;
    rlock_status s = chance_below(&o->dice, 2)
                         ? rlock_client_ping(cl)
                         : rlock_client_stats(cl, &stats, sizeof stats);
    trace("owner %d asks a client: %s", o->id, rlock_status_str(s));
    if (cfg.calm && s && !o->g->closing_at)
        finding("judge 7: in a calm world a client answers %s (%s)",
                rlock_status_str(s), rlock_last_error()->message);
}

void act_ask(owner *o)
{
    rlock_client *cl = o->g->client[chance_below(&o->dice, cfg.servers)];
    switch (chance_below(&o->dice, 5)) {
    case 0:
        if (chance_below(&o->dice, 2))
            ask_who_waits(o, cl);
        else
            ask_which_locks(o, cl);
        break;
    case 1:
    case 2:
        ask_client(o, cl);
        break;
    default:
        ask_lock(o, (int)chance_below(&o->dice, locks_n));
    }
    look_at_all(o);
}
