/*
 * A semaphore of three permits, that owners who hold nothing take, keep for a while,
 * and give back, and judge 18: that no more are believed in at a time than there are,
 * and that at the end all are free again.
 *
 * A permit that is held when its owner looks was held since it was granted. So each
 * one taken is a stretch of time, and the judge adds up those that overlap. What was
 * granted before the server lost its data says nothing of what is granted after.
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"

#define POOL      "pool"
#define TOTAL     3
#define STRETCHES 4096
#define COUNTER   POOL
#define PERMITS   "{" POOL "}:timeout"

typedef struct stretch {
    int64_t from, to;
    int n, era;
} stretch;

static stretch stretches[STRETCHES];
static int stretches_n, era;

static bool is_judged(void)
{
    return cfg.replicas == 0 && cfg.cluster == 0;
}

/* The server has lost its data, just now. */
void semaphore_forget(int server)
{
    era += server == 0;
}

void semaphore_told(const rlock_event *e)
{
    if (e->token != 0 || strcmp(e->name, POOL) != 0)
        finding("judge 18: an event of permits of %s has token %llu", e->name,
                (unsigned long long)e->token);
}

/* --- what is believed ----------------------------------------------------- */

/* How many are believed in at the moment when this one was granted. */
static void check_stretch(const stretch *x)
{
    int n = 0;
    for (int i = 0; i < stretches_n; i++) {
        const stretch *y = &stretches[i];
        n += y->era == x->era && y->from <= x->from && y->to >= x->from ? y->n
                                                                        : 0;
    }
    if (n > TOTAL)
        finding("judge 18: %d permits of %d are held at %lld us", n, TOTAL,
                (long long)(x->from / US));
}

static void ended(void)
{
    for (int i = 0; i < stretches_n && is_judged(); i++)
        check_stretch(&stretches[i]);
}

/* Those that nobody keeps any more: their leases have run out by now. */
static void check_free(void)
{
    store *s = &servers[0].store;
    word counter = {COUNTER, strlen(COUNTER)}, key = {PERMITS, strlen(PERMITS)};
    const entry *e = store_find(s, &counter), *held = store_find(s, &key);
    long long value = 0;
    if (!e || !is_judged())
        return;
    word text = {e->value.at, e->value.len};
    if (!word_number(&text, &value) ||
        value + (held ? (long long)held->count : 0) != TOTAL)
        finding("judge 18: of %d permits %lld are free, and %zu held", TOTAL,
                value, held ? held->count : 0);
}

/* Without an idle time they stay. */
size_t semaphore_keys(int server)
{
    word counter = {COUNTER, strlen(COUNTER)}, key = {PERMITS, strlen(PERMITS)};
    store *s = &servers[server].store;
    if (!cfg.plain)
        return 0;
    return (store_find(s, &counter) != NULL) + (store_find(s, &key) != NULL);
}

/* --- what calls answer ---------------------------------------------------- */

static bool may_answer(const owner *o, const char *verb, int64_t wait_ms,
                       rlock_status s, int64_t began)
{
    bool takes = strncmp(verb, "acquire", 7) == 0;
    switch (s) {
    case RLOCK_OK:
        return true;
    case RLOCK_BUSY:
        return takes && wait_ms == 0;
    case RLOCK_TIMEOUT:
    case RLOCK_CANCELED:
        return takes && wait_ms != 0;
    case RLOCK_LOST:
        return !takes;
    case RLOCK_ENOMEM:
        return judge_excuses(o->g, s, began);
    case RLOCK_EWRONGTYPE:
        return false;
    default:
        return !cfg.calm;
    }
}

static void check(const owner *o, const char *verb, int64_t wait_ms,
                  rlock_status s, int64_t began)
{
    trace("owner %d: permits: %s: %s%s%s, after %lld us", o->id, verb,
          rlock_status_str(s), s ? ": " : "",
          s ? rlock_last_error()->message : "",
          (long long)((w.now - began) / US));
    if (!o->g->closing_at)
        judge_took(verb, POOL, wait_ms, w.now - began);
    if (!o->g->closing_at && !may_answer(o, verb, wait_ms, s, began))
        finding("judge 7: %s of permits (wait %lld ms): %s (%s)", verb,
                (long long)wait_ms, rlock_status_str(s),
                rlock_last_error()->message);
}

/* --- what is started ------------------------------------------------------ */

typedef struct started {
    bool is_told;
    rlock_status status;
    rlock_permit *p;
} started;

static void told(rlock_permit *p, rlock_status s, void *arg)
{
    started *x = arg;
    if (x->is_told)
        finding("judge 4: a call about permits is called back twice");
    if (running->mutexes > 0)
        finding(
            "judge 10: a call about permits is called back under %d mutexes",
            running->mutexes);
    *x = (started){true, s, p};
}

/* Whoever dispatches calls back; if it has no loop, the one that waits. */
static rlock_status await(const owner *o, rlock_status s, started *x)
{
    if (s != RLOCK_OK)
        return s;
    while (!x->is_told) {
        rlock_client_dispatch(o->g->client[0]);
        sleep_for(MS);
    }
    return x->status;
}

/* No call with a client that is being closed. */
static bool may_start(owner *o)
{
    return cfg.close_at_ms == 0 && !o->is_task &&
           chance_below(&o->dice, 3) == 0;
}

static rlock_status acquire(owner *o, int n, int64_t wait_ms, int64_t lease_ms,
                            rlock_permit **out)
{
    started x = {.is_told = false};
    rlock_semaphore *s = o->g->pool;
    if (!may_start(o))
        return rlock_semaphore_acquire(s, n, wait_ms, lease_ms, out);
    rlock_status status = await(
        o, rlock_semaphore_acquire_start(s, n, wait_ms, lease_ms, told, &x),
        &x);
    *out = x.p;
    return status;
}

static rlock_status release(owner *o, rlock_permit *p)
{
    started x = {.is_told = false};
    if (!may_start(o))
        return rlock_permit_release(p);
    rlock_status s = rlock_permit_release_start(p, told, &x);
    return s == RLOCK_OK ? await(o, s, &x) : rlock_permit_release(p);
}

/* --- what is done --------------------------------------------------------- */

static usage used = {.name = POOL};

static int64_t draw_wait(owner *o)
{
    if (o->is_task || chance_below(&o->dice, 3) == 0)
        return 0;
    return chance_skewed(&o->dice, death_leaves_leases() ? 9000 : 3000);
}

/* For a while it keeps them, and looks now and then. */
static void keep(owner *o, rlock_permit *p, stretch *x)
{
    int looks = (int)chance_below(&o->dice, 6);
    if (chance_below(&o->dice, 4) == 0)
        rlock_permit_lost_fd(p);
    for (int i = 0; i < looks; i++) {
        if (!o->is_task)
            sleep_for(chance_skewed(&o->dice, 300 * MS));
        int64_t now = w.now;
        if (!rlock_permit_is_held(p) || rlock_permit_valid_ms(p) == 0)
            return;
        x->to = now;
        if (chance_below(&o->dice, 6) > 0)
            continue;
        usage_asks(&used, o, cfg.watchdog_ms);
        check(o, "extend", 0, rlock_permit_extend(p, RLOCK_WATCHDOG), now);
    }
}

void semaphore_died(const program *g)
{
    usage_died(&used, g);
}

static void take(owner *o)
{
    int n = (int)chance_between(&o->dice, 1, TOTAL), began_in = era;
    int64_t wait_ms = draw_wait(o), began = w.now;
    int64_t lease_ms = chance_below(&o->dice, 3) ? RLOCK_WATCHDOG : 700;
    rlock_permit *p;
    usage_asks(&used, o, lease_ms ? lease_ms : cfg.watchdog_ms);
    rlock_status s = acquire(o, n, wait_ms, lease_ms, &p);
    usage_answered(&used, o, began, s);
    check(o, "acquire", wait_ms, s, began);
    if (s != RLOCK_OK)
        return;
    stretch x = {.from = w.now, .to = w.now, .n = n, .era = era};
    bool is_sure = rlock_permit_is_held(p) && began_in == era;
    keep(o, p, &x);
    if (stretches_n == STRETCHES)
        finding("the world has too many permits");
    if (is_sure)
        stretches[stretches_n++] = x;
    began = w.now;
    s = release(o, p);
    usage_ends(&used, o, s);
    check(o, "release", 0, s, began);
}

static void count(owner *o)
{
    int64_t n, began = w.now;
    rlock_status s = rlock_semaphore_available(o->g->pool, &n);
    check(o, "available", 0, s, began);
    if (s == RLOCK_OK && is_judged() && (n < 0 || n > TOTAL))
        finding("judge 18: %lld of %d permits are free", (long long)n, TOTAL);
}

void act_permits(owner *o)
{
    int64_t began = w.now;
    switch (chance_below(&o->dice, 12)) {
    case 0:
        count(o);
        return;
    case 1:
        check(o, "add", 0, rlock_semaphore_add(o->g->pool, 0), began);
        return;
    case 2:
        rlock_semaphore_cancel(o->g->pool);
        return;
    default:
        take(o);
    }
}

static rlock_status make(program *g)
{
    rlock_semaphore_options o = RLOCK_SEMAPHORE_OPTIONS_INIT;
    if (cfg.plain)
        return rlock_semaphore_new(g->client[0], POOL, TOTAL, &g->pool);
    o.permits = TOTAL;
    o.idle_ms = 600000;
    o.min_replicas = cfg.spelled ? (int)cfg.min_replicas : 0;
    return rlock_semaphore_new_ex(g->client[0], POOL, strlen(POOL), &o,
                                  &g->pool);
}

bool semaphore_is(const char *name)
{
    return strcmp(name, POOL) == 0;
}

void semaphore_make(program *g)
{
    rlock_status s;
    int64_t since = w.now;
    while ((s = make(g)) != RLOCK_OK) {
        if (!judge_excuses(g, s, since))
            finding("no handle of a semaphore: %s (%s)", rlock_status_str(s),
                    rlock_last_error()->message);
        sleep_for(MS);
        since = w.now;
    }
}

static void at_the_end(void)
{
    ended();
    check_free();
}

const judge judge_semaphores = {.name = "semaphores", .ended = at_the_end};
