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
        if (s == RLOCK_OK && chance_below(&o->dice, 2))
            s = rlock_hold_info(lk, h.raw, &h, sizeof h);
    }
    trace("owner %d asks about %s: %s", o->id, locks[lock].name,
          rlock_status_str(s));
}

/* What else is waited for is told of, too: a latch by its queue, others by their
   lines. */
static bool is_known(const char *name)
{
    return thing_of(name) >= 0 || (cfg.latch && latch_is(name)) ||
           (cfg.rw && rw_is(name)) || (cfg.permits && semaphore_is(name)) ||
           (cfg.used && used_is(name));
}

/* As what is told; of a latch that has just opened nothing is there. */
static bool is_of_its_kind(const rlock_wait *x)
{
    if (cfg.latch && latch_is(x->name))
        return (x->kind == RLOCK_KIND_LATCH || x->kind == RLOCK_KIND_LOCK) &&
               x->n_holders == 0;
    if (cfg.rw && rw_is(x->name))
        return x->kind == RLOCK_KIND_READ || x->kind == RLOCK_KIND_WRITE;
    if (cfg.permits && semaphore_is(x->name))
        return x->kind == RLOCK_KIND_PERMIT;
    return x->kind == RLOCK_KIND_LOCK && x->n_holders <= 1;
}

/* Of a calm world's locks, and none that waits is older than the world. */
static void check_wait(const rlock_wait *x, void *arg)
{
    const owner *o = arg;
    if (!is_known(x->name) || x->waited_ms < 0 ||
        x->waited_ms > (w.now - BEGIN) / MS + 1000)
        finding("owner %d is told that somebody waits for %s, for %lld ms",
                o->id, x->name, (long long)x->waited_ms);
    if (!is_of_its_kind(x))
        finding("owner %d is told that %s is of kind %d, and %zu have it",
                o->id, x->name, x->kind, x->n_holders);
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
    bool permits = cfg.permits && semaphore_is(x->name);
    if (!is_known(x->name) || x->waiting < 0 || x->n_holders > 1 ||
        (x->n_holders == 0) != (x->holders == NULL))
        finding("owner %d is told of a lock %s, which %zu hold", o->id, x->name,
                x->n_holders);
    if (permits != (x->kind == RLOCK_KIND_PERMIT))
        finding("owner %d is told that %s is of kind %d", o->id, x->name,
                x->kind);
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

/* None is below 0; and what lasts is no older than the world. */
static void check_figure(const rlock_metric *m, void *arg)
{
    const owner *o = arg;
    bool lasts = m->type == RLOCK_METRIC_GAUGE && *m->unit;
    if (m->value < 0 || (lasts && m->value > (double)(w.now - BEGIN) / 1e6 + 1))
        finding("owner %d is told that %s{%s} is %g", o->id, m->name, m->labels,
                m->value);
}

static bool count_bytes(const char *bytes, size_t len, void *n)
{
    *(size_t *)n += len;
    return bytes[len - 1] == '\n' || len >= 4096;
}

static rlock_status ask_figures(owner *o, rlock_client *cl)
{
    size_t n = 0;
    rlock_stats stats;
    rlock_metrics_format format = RLOCK_METRICS_OPENMETRICS;
    rlock_status s = rlock_client_stats(cl, &stats, sizeof stats);
    if (s == RLOCK_OK)
        s = rlock_metrics_each(cl, check_figure, o);
    if (s == RLOCK_OK)
        s = rlock_metrics_write(&cl, 1, format, count_bytes, &n);
    if ((s == RLOCK_OK) != (n > 0) || !rlock_metrics_content_type(format))
        finding("owner %d is told figures in %zu bytes: %s", o->id, n,
                rlock_status_str(s));
    return s;
}

static void ask_client(owner *o, rlock_client *cl)
{
    rlock_status s =
        chance_below(&o->dice, 2) ? rlock_client_ping(cl) : ask_figures(o, cl);
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
