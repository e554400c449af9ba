/*
 * How `top` writes a round, as wide as there is room. Columns are left out
 * where there is not; names and holders share what the others leave.
 */
#include <stdio.h>
#include <string.h>

#include "top.h"

enum { NAME, KIND, HOLDER, LEVELS, HELD, WAITING, LONGEST, LEASE, CHANGES };

typedef struct column {
    const char *head;
    size_t width; /* 0: what is left */
    size_t from;  /* it is shown where there is so much room */
} column;

static const column columns[] = {
    [NAME] = {"LOCK", 0, 0},        [KIND] = {"KIND", 9, 110},
    [HOLDER] = {"HOLDER", 0, 60},   [LEVELS] = {"LVL", 4, 100},
    [HELD] = {"HELD", 8, 30},       [WAITING] = {"WAITING", 7, 20},
    [LONGEST] = {"LONGEST", 8, 70}, [LEASE] = {"LEASE", 8, 80},
    [CHANGES] = {"CHANGES", 7, 90},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

static const char *cell(const locks_row *r, int column, look_text *to)
{
    const rlock_lock_info *l = &r->is;
    size_t size = sizeof to->text;
    bool held = l->n_holders > 0;
    switch (column) {
    case NAME:
        return cli_printable_n(to->text, size, r->name, r->len);
    case KIND:
        return held ? look_kind(l->kind, l->layout) : "free";
    case HOLDER:
        return look_holders(to, held ? &r->holder : NULL, l->holders_in_all);
    case LEVELS:
        snprintf(to->text, size, "%lld", held ? (long long)r->holder.count : 0);
        return to->text;
    case HELD:
        return cli_duration(to->text, size, l->held_ms);
    case WAITING:
        snprintf(to->text, size, "%lld", (long long)l->waiting);
        return to->text;
    case LONGEST:
        return l->waiting > 0 ? cli_duration(to->text, size, r->longest_ms)
                              : "-";
    case LEASE:
        return held ? look_ttl(to->text, size, l->ttl_ms) : "-";
    default:
        snprintf(to->text, size, "%u", r->changes);
        return to->text;
    }
}

/* What names and holders have. */
static size_t left_for(int column, size_t width)
{
    size_t left = width;
    for (int i = 0; i < COLUMNS; i++) {
        if (columns[i].width > 0 && columns[i].from <= width)
            left -= columns[i].width + 2;
    }
    if (columns[HOLDER].from > width)
        return left;
    size_t name = (left - 2) * 2 / 5;
    return column == NAME ? name : left - 2 - name;
}

char *top_line(const locks_row *r, char *to, size_t width)
{
    size_t n = 0;
    look_text text;
    if (width > TOP_WIDTH_MAX)
        width = TOP_WIDTH_MAX;
    to[0] = '\0';
    for (int i = 0; i < COLUMNS; i++) {
        if (columns[i].from > width)
            continue;
        size_t w = columns[i].width ? columns[i].width : left_for(i, width);
        n += (size_t)snprintf(to + n, TOP_WIDTH_MAX + 1 - n, "%s%-*.*s",
                              n > 0 ? "  " : "", (int)w, (int)w,
                              r ? cell(r, i, &text) : columns[i].head);
    }
    while (n > 0 && to[n - 1] == ' ')
        to[--n] = '\0';
    return to;
}

char *top_summary(const top *t, char *to, size_t width)
{
    static const char *const orders[] = {"waiting", "longest", "held", "name"};
    char text[2 * TOP_WIDTH_MAX], round[40];
    if (width > TOP_WIDTH_MAX)
        width = TOP_WIDTH_MAX;
    snprintf(text, sizeof text,
             "%zu held, %zu waiting, %zu circle%s; ping %.1f ms; a round %s; "
             "by %s%s%s",
             t->held, t->waiting, t->circles, t->circles == 1 ? "" : "s",
             (double)t->ping_us / 1000,
             cli_duration(round, sizeof round, top_pause_us(t) / 1000),
             orders[t->order], t->error[0] ? "; " : "", t->error);
    cli_printable(to, width + 1, text);
    return to;
}
