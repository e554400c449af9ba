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
    top_rows rows;
    size_t server;
    size_t waiting, circles;
    bool lacking; /* memory */
} round;

void top_clear(top_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        free(rows->at[i].name);
    free(rows->at);
    *rows = (top_rows){0};
}

static top_row *new_row(top_rows *rows)
{
    if (rows->n == rows->room) {
        size_t room = rows->room ? 2 * rows->room : 64;
        top_row *at = realloc(rows->at, room * sizeof *at);
        if (!at)
            return NULL;
        rows->at = at;
        rows->room = room;
    }
    return &rows->at[rows->n];
}

static bool note_lock(const rlock_lock_info *l, void *arg)
{
    round *r = arg;
    top_row *x = new_row(&r->rows);
    char *name = x ? malloc(l->name_len + 1) : NULL;
    r->lacking = !name;
    if (!name)
        return false;
    memcpy(name, l->name, l->name_len + 1);
    *x = (top_row){
        .name = name, .len = l->name_len, .server = r->server, .is = *l};
    if (l->n_holders > 0)
        x->holder = l->holders[0];
    r->waiting += (size_t)l->waiting;
    r->rows.n++;
    return true;
}

/* By server, then as rlock_scan() tells them. */
static int by_place(const top_row *a, size_t server, const char *name,
                    size_t len)
{
    if (a->server != server)
        return a->server < server ? -1 : 1;
    int c = memcmp(a->name, name, a->len < len ? a->len : len);
    return c ? c : (a->len > len) - (a->len < len);
}

static top_row *find(const top_rows *rows, size_t server, const char *name,
                     size_t len)
{
    size_t from = 0, to = rows->n;
    while (from < to) {
        size_t middle = (from + to) / 2;
        int c = by_place(&rows->at[middle], server, name, len);
        if (c == 0)
            return &rows->at[middle];
        if (c < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

static void note_wait(const rlock_wait *w, void *arg)
{
    round *r = arg;
    top_row *x = find(&r->rows, r->server, w->name, w->name_len);
    if (x && w->waited_ms > x->longest_ms)
        x->longest_ms = w->waited_ms;
    if (w->circle > r->circles)
        r->circles = w->circle;
}

static int compare_places(const void *a, const void *b)
{
    const top_row *x = a, *y = b;
    return by_place(x, y->server, y->name, y->len);
}

/* From the round before. */
static void note_changes(top_rows *now, top_rows *before)
{
    if (before->n > 0)
        qsort(before->at, before->n, sizeof *before->at, compare_places);
    for (size_t i = 0; i < now->n; i++) {
        top_row *x = &now->at[i];
        const top_row *was = find(before, x->server, x->name, x->len);
        if (was)
            x->changes =
                was->changes + (strcmp(was->holder.raw, x->holder.raw) != 0);
    }
}

static bool look_at(const top *t, round *r)
{
    rlock_client *cl = t->s.client[r->server];
    size_t waiting = r->waiting;
    return rlock_scan(cl, t->glob, 0, note_lock, r) == RLOCK_OK &&
           !r->lacking &&
           (r->waiting == waiting ||
            rlock_waits_for(cl, note_wait, r) == RLOCK_OK);
}

static bool failed(top *t, const round *r)
{
    strcpy(t->error,
           r->lacking ? "out of memory" : rlock_last_error()->message);
    return false;
}

bool top_look(top *t)
{
    round r = {0};
    int64_t began_us = cli_now_us();
    if (rlock_client_ping(t->s.client[0]) != RLOCK_OK)
        return failed(t, &r);
    t->ping_us = cli_now_us() - began_us;
    for (r.server = 0; r.server < t->s.n; r.server++) {
        if (!look_at(t, &r)) {
            failed(t, &r);
            top_clear(&r.rows);
            return false;
        }
    }
    note_changes(&r.rows, &t->now);
    top_clear(&t->now);
    t->now = r.rows;
    t->held = 0;
    for (size_t i = 0; i < t->now.n; i++)
        t->held += t->now.at[i].is.n_holders > 0;
    t->waiting = r.waiting;
    t->circles = r.circles;
    t->took_us = cli_now_us() - began_us;
    t->error[0] = '\0';
    top_sort(t);
    return true;
}

int64_t top_pause_us(const top *t)
{
    int64_t least_us = t->took_us * (SHARE - 1);
    return least_us > t->pause_us ? least_us : t->pause_us;
}

/* --- Order ---------------------------------------------------------------- */

static int more_first(int64_t a, int64_t b)
{
    return (a < b) - (a > b);
}

static int by_waiting(const void *a, const void *b)
{
    const top_row *x = a, *y = b;
    int c = more_first(x->is.waiting, y->is.waiting);
    return c ? c : compare_places(a, b);
}

static int by_longest(const void *a, const void *b)
{
    const top_row *x = a, *y = b;
    int c = more_first(x->longest_ms, y->longest_ms);
    return c ? c : compare_places(a, b);
}

static int by_held(const void *a, const void *b)
{
    const top_row *x = a, *y = b;
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
