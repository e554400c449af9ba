/*
 * A read-write lock, of which owners who hold nothing take a side for a while, and
 * perhaps the other one, too; and judge 18: that nobody writes while others read or
 * write, that tokens never fall, and that nobody is refused what he may have.
 *
 * A section counts if its owner believes in it at its end, as he then has had it all
 * the time. Those that have begun before a server has lost its data do not, and
 * where that may be at any time, or a replica takes over, nothing is judged but what
 * calls answer.
 */
#include <string.h>

#include "judge.h"

#define SHARED "shared"

typedef struct section {
    const owner *o;
    int64_t asked, from, to; /* asked for by then, owned from then on */
    uint64_t token;
    bool writes;
    bool wrote_too; /* who reads, or has tried to: by a call without an answer
                       others may have a later token than his */
} section;

/* The latest; older ones have nothing in common with what is being done. */
#define KEPT 256
static section kept[KEPT];
static size_t sections_n;
static int64_t forgotten_at;

static bool is_judged(void)
{
    return cfg.replicas == 0 && cfg.cluster == 0 && cfg.sentinel == 0;
}

/* It has lost its data, just now. */
void rw_forget(int server)
{
    if (server == 0)
        forgotten_at = w.now;
}

static void compare(const section *a, const section *b)
{
    bool apart = a->to <= b->from || b->to <= a->from;
    if (!apart && a->o != b->o && (a->writes || b->writes))
        finding("judge 18: owner %d writes while owner %d %s",
                a->writes ? a->o->id : b->o->id,
                a->writes ? b->o->id : a->o->id,
                a->writes && b->writes ? "does, too" : "reads");
    bool readers = !a->writes && !b->writes && !a->wrote_too && !b->wrote_too;
    if (!apart && readers && a->token != b->token)
        finding("judge 18: owners %d and %d read at one time, and have tokens "
                "that differ",
                a->o->id, b->o->id);
    bool falls = b->token > a->token || (a->writes && b->token == a->token);
    if (b->to <= a->from && falls)
        finding("judge 18: the token of owner %d falls behind that of owner %d",
                a->o->id, b->o->id);
}

/* What was granted before data were lost may have been told of after that. */
static void note(const owner *o, rlock *lk, bool writes, bool wrote_too,
                 int64_t asked, int64_t from)
{
    section s = {o, asked, from, w.now, rlock_token(lk), writes, wrote_too};
    if (!rlock_is_held(lk) || !is_judged() || asked <= forgotten_at)
        return;
    for (size_t i = 0; i < KEPT && i < sections_n; i++)
        if (kept[i].asked > forgotten_at)
            compare(&s, &kept[i]);
    kept[sections_n++ % KEPT] = s;
}

/* --- what calls answer ---------------------------------------------------- */

static bool may_answer(const owner *o, const char *verb, int64_t wait_ms,
                       rlock_status s, int64_t began)
{
    bool acquires = strncmp(verb, "unlock", 6) != 0;
    switch (s) {
    case RLOCK_OK:
        return true;
    case RLOCK_BUSY:
        return acquires && wait_ms == 0;
    case RLOCK_TIMEOUT:
        return acquires && wait_ms > 0;
    case RLOCK_CANCELED:
        return acquires && wait_ms != 0;
    case RLOCK_EDEADLK:
        return strcmp(verb, "upgrade") == 0;
    case RLOCK_LOST:
        return !acquires && (!cfg.calm || cfg.max_hold_ms > 0);
    case RLOCK_ENOMEM:
        return judge_excuses(o->g, s, began);
    case RLOCK_EWRONGTYPE:
    case RLOCK_NOT_HELD:
        return false;
    default:
        return !cfg.calm;
    }
}

static rlock_status check(owner *o, const char *verb, int64_t wait_ms,
                          rlock_status s, int64_t began)
{
    trace("owner %d: shared: %s: %s%s%s, after %lld us", o->id, verb,
          rlock_status_str(s), s ? ": " : "",
          s ? rlock_last_error()->message : "",
          (long long)((w.now - began) / US));
    if (!o->g->closing_at)
        judge_took(verb, SHARED, wait_ms < 0 ? 0 : wait_ms, w.now - began);
    if (!o->g->closing_at && !may_answer(o, verb, wait_ms, s, began))
        finding("judge 7: %s of a read-write lock (wait %lld ms): %s (%s)",
                verb, (long long)wait_ms, rlock_status_str(s),
                rlock_last_error()->message);
    return s;
}

/* --- what is done --------------------------------------------------------- */

static usage used = {.name = SHARED};

void rw_died(const program *g)
{
    usage_died(&used, g);
}

/* Longer than the key of a token lives that is not kept. */
static bool is_long(void)
{
    return cfg.hold_ms > 300000;
}

/* When it was asked for what is owned now; 0: it is not. */
static int64_t take(owner *o, const char *verb, rlock *lk, int64_t wait_ms)
{
    int64_t began = w.now;
    bool is_renewed = chance_below(&o->dice, 4) || is_long();
    int64_t lease_ms = is_renewed ? RLOCK_WATCHDOG : 20000;
    usage_asks(&used, o, lease_ms ? lease_ms : cfg.watchdog_ms);
    rlock_status s = rlock_acquire(lk, wait_ms, lease_ms);
    usage_answered(&used, o, began, s);
    return check(o, verb, wait_ms, s, began) == RLOCK_OK ? began : 0;
}

static void give_back(owner *o, const char *verb, rlock *lk)
{
    int64_t began = w.now;
    usage_ends(&used, o, check(o, verb, 0, rlock_unlock(lk), began));
}

static int64_t draw_wait(owner *o)
{
    if (chance_below(&o->dice, 3) == 0)
        return 0;
    return chance_skewed(&o->dice, death_leaves_leases() ? 20000 : 3000);
}

/* Now and then until leases have been renewed; an explicit one lasts. */
static void dwell(owner *o)
{
    int64_t most_ms = chance_below(&o->dice, 10) ? 100 : 2 * cfg.watchdog_ms;
    if (most_ms > 9000)
        most_ms = 9000;
    if (is_long() && chance_below(&o->dice, 3) == 0)
        most_ms = 2 * cfg.hold_ms;
    sleep_for(chance_skewed(&o->dice, most_ms) * MS);
}

static void upgrade(owner *o)
{
    rlock *write = o->g->shared[1];
    int64_t asked = take(o, "upgrade", write, 2000), from = w.now;
    if (!asked)
        return;
    dwell(o);
    note(o, write, true, false, asked, from);
    give_back(o, "unlock write", write);
}

static void read_on(owner *o, int64_t asked)
{
    rlock *read = o->g->shared[0];
    int64_t from = w.now;
    if (!asked)
        return;
    dwell(o);
    bool tries = chance_below(&o->dice, 4) == 0;
    if (tries)
        upgrade(o);
    note(o, read, false, tries, asked, from);
    give_back(o, "unlock read", read);
}

static void write_on(owner *o, int64_t asked)
{
    rlock *read = o->g->shared[0], *write = o->g->shared[1];
    int64_t from = w.now, reads = 0;
    if (!asked)
        return;
    dwell(o);
    if (chance_below(&o->dice, 3) == 0)
        reads = take(o, "read", read, 0);
    note(o, write, true, false, asked, from);
    give_back(o, "unlock write", write);
    read_on(o, reads);
}

static void ask(owner *o)
{
    rlock_rw_state now = RLOCK_RW_STATE_INIT;
    int64_t began = w.now;
    rlock_status s =
        check(o, "inspect", -1, rlock_rw_inspect(o->g->shared[0], &now), began);
    if (s == RLOCK_OK && ((now.mode == 0) != (now.holders == 0) ||
                          (now.mode == 2 && now.holders != 1)))
        finding("judge 18: mode %d, with %lld holders", now.mode,
                (long long)now.holders);
}

void act_rw(owner *o)
{
    int64_t wait_ms = draw_wait(o);
    switch (chance_below(&o->dice, 8)) {
    case 0:
        ask(o);
        return;
    case 1:
    case 2:
    case 3:
        write_on(o, take(o, "write", o->g->shared[1], wait_ms));
        return;
    default:
        read_on(o, take(o, "read", o->g->shared[0], wait_ms));
    }
}

/* --- handles -------------------------------------------------------------- */

bool rw_is(const char *name)
{
    return strcmp(name, SHARED) == 0;
}

static rlock_status make(program *g)
{
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    o.local_levels = cfg.local_levels;
    return cfg.plain ? rlock_rw_new(g->client[0], SHARED, &g->shared[0],
                                    &g->shared[1])
                     : rlock_rw_new_ex(g->client[0], SHARED, strlen(SHARED), &o,
                                       &g->shared[0], &g->shared[1]);
}

void rw_make(program *g)
{
    rlock_status s;
    for (int64_t since = w.now; (s = make(g)) != RLOCK_OK; since = w.now) {
        if (!judge_excuses(g, s, since))
            finding("no handles of a read-write lock: %s (%s)",
                    rlock_status_str(s), rlock_last_error()->message);
        sleep_for(MS);
    }
}
