/*
 * A round of `top`: who has what, by one scan, and who waits, by another where
 * somebody does. What a round finds is merged with what the one before had, as
 * both are in the order of names.
 */
#include <stdlib.h>
#include <string.h>

#include "os.h"
#include "top.h"

#define SHARE 80 /* one in so many of its moments the server works for us */

typedef struct round {
    locks rows;
    size_t server, asked; /* asked: servers that have answered */
    size_t waiting, circles;
    int64_t took_us;
} round;

static bool note_lock(const rlock_lock_info *l, void *arg)
{
    round *r = arg;
    r->waiting += (size_t)l->waiting;
    return locks_add(&r->rows, r->server, l);
}

static int compare_places(const void *a, const void *b)
{
    return locks_order(a, b);
}

/* NULL: it is not among them, which are in the order of their places. */
static locks_row *find(const locks *rows, const locks_row *wanted)
{
    return rows->n > 0 ? bsearch(wanted, rows->at, rows->n, sizeof *rows->at,
                                 compare_places)
                       : NULL;
}

static void note_wait(const rlock_wait *w, void *arg)
{
    round *r = arg;
    locks_row wanted = {
        .name = (char *)w->name, .len = w->name_len, .server = r->server};
    locks_row *x = find(&r->rows, &wanted);
    if (x && w->waited_ms > x->longest_ms)
        x->longest_ms = w->waited_ms;
    if (w->circle > r->circles)
        r->circles = w->circle;
}

/* From the round before. */
static void note_changes(locks *now, locks *before)
{
    if (before->n > 0)
        qsort(before->at, before->n, sizeof *before->at, compare_places);
    for (size_t i = 0; i < now->n; i++) {
        locks_row *x = &now->at[i];
        const locks_row *was = find(before, x);
        if (was)
            x->changes = was->changes + !locks_same_hold(was, x);
    }
}

static bool look_at(top *t, round *r)
{
    rlock_client *cl = t->s.client[r->server];
    size_t waiting = r->waiting;
    int64_t began_us = cli_now_us();
    if (rlock_client_ping(cl) != RLOCK_OK)
        return false;
    if (r->asked == 0)
        t->ping_us = cli_now_us() - began_us;
    return rlock_scan(cl, t->glob, 0, note_lock, r) == RLOCK_OK &&
           !r->rows.lacking &&
           (r->waiting == waiting ||
            rlock_waits_for(cl, note_wait, r) == RLOCK_OK);
}

/* One that cannot be asked tells nothing, and the others all the same. */
static void ask(top *t, round *r)
{
    size_t rows = r->rows.n, waiting = r->waiting, circles = r->circles;
    int64_t began_us = cli_now_us();
    if (look_at(t, r)) {
        r->asked++;
        r->took_us += cli_now_us() - began_us;
        return;
    }
    strcpy(t->error,
           r->rows.lacking ? "out of memory" : rlock_last_error()->message);
    locks_cut(&r->rows, rows);
    r->waiting = waiting;
    r->circles = circles;
}

bool top_look(top *t)
{
    round r = {0};
    t->error[0] = '\0';
    for (; r.server < t->s.n; r.server++)
        ask(t, &r);
    if (r.asked == 0) {
        locks_clear(&r.rows);
        return false;
    }
    note_changes(&r.rows, &t->now);
    locks_clear(&t->now);
    t->now = r.rows;
    t->held = 0;
    for (size_t i = 0; i < t->now.n; i++)
        t->held += t->now.at[i].is.n_holders > 0;
    t->waiting = r.waiting;
    t->circles = r.circles;
    t->cost_us = r.took_us < t->took_us ? r.took_us : t->took_us;
    t->took_us = r.took_us;
    top_sort(t);
    return true;
}

int64_t top_pause_us(const top *t)
{
    int64_t least_us = t->cost_us * (SHARE - 1);
    return least_us > t->pause_us ? least_us : t->pause_us;
}

/* --- Order ---------------------------------------------------------------- */

static int more_first(int64_t a, int64_t b)
{
    return (a < b) - (a > b);
}

static int by_waiting(const void *a, const void *b)
{
    const locks_row *x = a, *y = b;
    int c = more_first(x->is.waiting, y->is.waiting);
    return c ? c : compare_places(a, b);
}

static int by_longest(const void *a, const void *b)
{
    const locks_row *x = a, *y = b;
    int c = more_first(x->longest_ms, y->longest_ms);
    return c ? c : compare_places(a, b);
}

static int by_held(const void *a, const void *b)
{
    const locks_row *x = a, *y = b;
    int c = more_first(x->is.held_ms, y->is.held_ms);
    return c ? c : compare_places(a, b);
}

void top_sort(top *t)
{
    static int (*const orders[TOP_ORDERS])(const void *, const void *) = {
        by_waiting, by_longest, by_held, compare_places};
    if (t->now.n > 0)
        qsort(t->now.at, t->now.n, sizeof *t->now.at, orders[t->order]);
}
