/*
 * A latch, that owners who hold nothing set, count down, wait for, and open, and
 * judge 17: that a count-down is counted once, whoever asks for it again; that
 * nobody is let go before it is open, and in a calm world all are soon after.
 *
 * What is so is seen at the server, with each script; of a server that is replaced,
 * or whose slots move, nothing is judged but what calls take and answer.
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"

#define GATE      "gate"
#define MARKS_MAX 8192

/* So long the latch lives, and longer than any wait. */
#define LIVES_MS 600000

static struct {
    int64_t closed_since; /* 0: it is open, or that is not known */
    int64_t opened_at;    /* 0: not yet */
    long long before;     /* what was left when a script began */
} gate;

static char marks[MARKS_MAX][80];
static int marks_n;

static bool is_judged(void)
{
    return cfg.replicas == 0 && cfg.cluster == 0;
}

static long long left_at(server *s)
{
    word key = {GATE, strlen(GATE)};
    long long left = 0;
    const entry *e = store_find(&s->store, &key);
    word value = e ? (word){e->value.at, e->value.len} : key;
    return word_number(&value, &left) ? left : 0;
}

static bool is_about_it(const call *c)
{
    return is_judged() && c->s->index == 0 &&
           strncmp(c->script, "latch/", 6) == 0;
}

static void note_counted(const call *c)
{
    char mark[sizeof marks[0]];
    snprintf(mark, sizeof mark, "%.*s", (int)c->words[2].len, c->words[2].at);
    for (int i = 0; i < marks_n; i++)
        if (strcmp(marks[i], mark) == 0)
            finding("judge 17: a count-down is counted twice: %s", mark);
    if (marks_n == MARKS_MAX)
        finding("the world has too many count-downs");
    memcpy(marks[marks_n++], mark, sizeof mark);
}

/* Whoever stands in the queue is rung. */
static void check_rung(const call *c)
{
    const entry *queue = store_find(&c->s->store, &c->words[1]);
    if (queue)
        finding("judge 17: a latch opens, and %zu clients are not rung",
                queue->count);
}

static void executing(const call *c)
{
    if (is_about_it(c))
        gate.before = left_at(c->s);
}

static void executed(const call *c, const text *reply)
{
    (void)reply;
    if (!is_about_it(c))
        return;
    long long after = left_at(c->s);
    bool counts = strcmp(c->script, "latch/count_down") == 0;
    if (counts && after != gate.before)
        note_counted(c);
    if (after == 0 && gate.before > 0)
        check_rung(c);
    if (after > 0 && (gate.before == 0 || !gate.closed_since))
        gate.closed_since = w.now;
    if (after == 0 && gate.before > 0)
        gate.opened_at = w.now;
    if (after == 0)
        gate.closed_since = 0;
}

/* A server that has lost its data has an open latch, and no marks. */
void latch_forget(int server)
{
    if (server != 0)
        return;
    gate.closed_since = 0;
    marks_n = 0;
}

/* --- what calls answer ---------------------------------------------------- */

static bool may_answer(const owner *o, const char *verb, int64_t wait_ms,
                       rlock_status s, int64_t began)
{
    bool waits = strncmp(verb, "wait", 4) == 0;
    switch (s) {
    case RLOCK_OK:
        return true;
    case RLOCK_BUSY:
        return strcmp(verb, "set") == 0 || (waits && wait_ms == 0);
    case RLOCK_TIMEOUT:
        return waits && wait_ms > 0;
    case RLOCK_CANCELED:
        return waits && wait_ms != 0;
    case RLOCK_NOT_HELD:
        return strcmp(verb, "delete") == 0;
    case RLOCK_ENOMEM:
        return judge_excuses(o->g, s, began);
    case RLOCK_EWRONGTYPE:
        return false;
    default:
        return !cfg.calm;
    }
}

static void check_wait(rlock_status s, int64_t began)
{
    int64_t soon = 400 * MS + judge_slack();
    bool open = gate.closed_since == 0;
    if (!is_judged())
        return;
    if (s == RLOCK_OK && !open && gate.closed_since < began &&
        left_at(&servers[0]) > 0)
        finding("judge 17: who waits for a latch is let go, and it has been "
                "closed since before");
    if (cfg.calm && s == RLOCK_TIMEOUT && open && gate.opened_at &&
        w.now - gate.opened_at > soon)
        finding("judge 17: a latch is open, and who waits for it is not woken");
    if (cfg.calm && s == RLOCK_OK && open && gate.opened_at > began &&
        w.now - gate.opened_at > soon)
        finding("judge 17: a latch is open for %lld us when who waits for it "
                "goes on",
                (long long)((w.now - gate.opened_at) / US));
}

static void check(owner *o, const char *verb, int64_t wait_ms, rlock_status s,
                  int64_t began)
{
    program *g = o->g;
    trace("owner %d: latch: %s: %s%s%s, after %lld us", o->id, verb,
          rlock_status_str(s), s ? ": " : "",
          s ? rlock_last_error()->message : "",
          (long long)((w.now - began) / US));
    if (g->closing_at)
        return;
    judge_took(verb, "a latch", wait_ms, w.now - began);
    if (!may_answer(o, verb, wait_ms, s, began))
        finding("judge 7: %s of a latch (wait %lld ms): %s (%s)", verb,
                (long long)wait_ms, rlock_status_str(s),
                rlock_last_error()->message);
    if (strncmp(verb, "wait", 4) == 0)
        check_wait(s, began);
}

/* --- what is done --------------------------------------------------------- */

typedef struct started {
    bool is_told;
    rlock_status status;
} started;

static void told(rlock_latch *l, rlock_status s, void *arg)
{
    started *x = arg;
    (void)l;
    if (x->is_told)
        finding("judge 4: a wait for a latch is called back twice");
    if (running->mutexes > 0)
        finding("judge 10: a wait for a latch is called back under %d mutexes",
                running->mutexes);
    x->is_told = true;
    x->status = s;
}

/* Whoever dispatches calls back; if it has no loop, the one that waits. */
static rlock_status start_wait(owner *o, int64_t wait_ms)
{
    started x = {.is_told = false};
    rlock_status s = rlock_latch_wait_start(o->g->gate, wait_ms, told, &x);
    if (s != RLOCK_OK)
        return s;
    while (!x.is_told) {
        rlock_client_dispatch(o->g->client[0]);
        sleep_for(MS);
    }
    return x.status;
}

/* No call with a client that is being closed. */
static bool may_start(const owner *o)
{
    return cfg.close_at_ms == 0 && !o->is_task;
}

static int64_t draw_wait(owner *o)
{
    return chance_below(&o->dice, 3) == 0 ? 0 : chance_skewed(&o->dice, 3000);
}

static void count(owner *o, rlock_latch *l)
{
    int64_t left, began = w.now;
    rlock_status s = rlock_latch_count(l, &left);
    check(o, "count", 0, s, began);
    if (s == RLOCK_OK && (left < 0 || left > 3))
        finding("judge 17: %lld are left of three", (long long)left);
}

void act_latch(owner *o)
{
    rlock_latch *l = o->g->gate;
    int64_t began = w.now, wait_ms = draw_wait(o);
    switch (chance_below(&o->dice, 12)) {
    case 0:
    case 1:
    case 2:
        check(o, "set", 0,
              rlock_latch_set(l, chance_between(&o->dice, 1, 3), LIVES_MS),
              began);
        return;
    case 3:
    case 4:
    case 5:
    case 6:
        check(o, "count_down", 0,
              rlock_latch_count_down(l, chance_between(&o->dice, 1, 2)), began);
        return;
    case 7:
        count(o, l);
        return;
    case 8:
        if (chance_below(&o->dice, 4) == 0)
            rlock_latch_cancel(l);
        else
            check(o, "delete", 0, rlock_latch_delete(l), began);
        return;
    case 9:
        if (may_start(o)) {
            rlock_status s = start_wait(o, wait_ms);
            check(o, "wait_start", wait_ms, s, began);
        }
        return;
    default:
        check(o, "wait", wait_ms, rlock_latch_wait(l, wait_ms), began);
    }
}

bool latch_is(const char *name)
{
    return strcmp(name, GATE) == 0;
}

void latch_make(program *g)
{
    rlock_status s;
    int64_t since = w.now;
    bool plain = cfg.plain;
    while ((s = plain ? rlock_latch_new(g->client[0], GATE, &g->gate)
                      : rlock_latch_new_n(g->client[0], GATE, strlen(GATE),
                                          &g->gate)) != RLOCK_OK) {
        if (!judge_excuses(g, s, since))
            finding("no handle of a latch: %s (%s)", rlock_status_str(s),
                    rlock_last_error()->message);
        sleep_for(MS);
        since = w.now;
    }
}

const judge judge_latches = {
    .name = "latches", .executing = executing, .executed = executed};
