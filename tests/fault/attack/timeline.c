/*
 * The picture. On top the whole run: grants in each moment, and all faults.
 * Below, some seconds around a fault of each of the harshest kinds, with every
 * hold: a row for each lock, in it a lane for each worker. So two holders at a
 * time would be two bars above each other in one row. Each kind of lock has a
 * ground of its own; what is held as a member of a Multi lock is paler.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "locks.h"
#include "nemesis.h"
#include "report.h"

enum {
    WIDTH = 1200,
    LEFT = 100, /* for the names of the rows */
    LANE = 3,
    ROW = PROCS * LANE + 2,
    CURVE = 90,
    FAULT_ROW = 12,
    GAP = 46,
    BEFORE_US = 1000000,
    AFTER_US = 2500000
};

static const char *const colours[] = {"#4269d0", "#d98a00", "#2f9e5b",
                                      "#9a5fd6"};

/* Of the curves, and of the ground behind the rows. */
static const char *const kind_colours[LOCK_KINDS] = {
    [LOCK_SINGLE] = "#333",   [LOCK_RED] = "#c2182b",  [LOCK_MULTI] = "#00838f",
    [LOCK_FAIR] = "#7b5200",  [LOCK_READ] = "#5b6f00", [LOCK_WRITE] = "#a03a00",
    [LOCK_PERMIT] = "#3f51b5"};

/* The faults that are shown close by, by their names' beginnings. */
static const char *const shown[] = {"worker stopped for longer",
                                    "server killed, back with its data",
                                    "server killed, back empty",
                                    "server stopped for longer",
                                    "way frozen for longer",
                                    "worker killed",
                                    "node cut off",
                                    "most nodes stopped for longer"};
enum { SHOWN = sizeof shown / sizeof *shown };

/* One stretch of time, drawn from the height y downwards. */
typedef struct panel {
    FILE *f;
    const arena *a;
    const verdict *v;
    int64_t from_us, to_us;
    int y;
} panel;

static double x_of(const panel *p, int64_t us)
{
    if (us < p->from_us)
        us = p->from_us;
    if (us > p->to_us)
        us = p->to_us;
    return LEFT + (double)(us - p->from_us) / (double)(p->to_us - p->from_us) *
                      (WIDTH - LEFT - 10);
}

static void text(const panel *p, double x, int y, const char *what)
{
    fprintf(p->f, "<text x='%.1f' y='%d'>%s</text>\n", x, y, what);
}

static void bar(const panel *p, int64_t from_us, int64_t to_us, int y, int high,
                const char *style)
{
    double x = x_of(p, from_us), wide = x_of(p, to_us) - x;
    fprintf(p->f, "<rect x='%.1f' y='%d' width='%.1f' height='%d' %s/>\n", x, y,
            wide < 0.6 ? 0.6 : wide, high, style);
}

static void fill(char *style, size_t size, const char *colour, double opacity)
{
    snprintf(style, size, "fill='%s' fill-opacity='%.2f'", colour, opacity);
}

static const char *fault_colour(const fault *f)
{
    const nemesis_kind *k = &nemesis_kinds[f->kind];
    return f->emptied ? "#d62728" : k->of_a_process ? "#555" : "#e377c2";
}

static bool is_in(const panel *p, int64_t from_us, int64_t to_us)
{
    return from_us <= p->to_us && to_us >= p->from_us;
}

/* The time axis: some round number of seconds. */
static void draw_axis(const panel *p, int y, int high)
{
    static const int steps_s[] = {1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800};
    int64_t all_s = (p->to_us - p->from_us) / 1000000;
    size_t step = 0;
    while (step + 1 < sizeof steps_s / sizeof *steps_s &&
           all_s / steps_s[step] > 12)
        step++;
    int step_s = steps_s[step];
    for (int64_t s = 0;; s += step_s) {
        int64_t us = p->a->began_us + s * 1000000;
        if (us > p->to_us)
            return;
        if (us < p->from_us)
            continue;
        char label[24];
        snprintf(label, sizeof label, "%lld s", (long long)s);
        fprintf(p->f,
                "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' stroke='#ddd'/>\n",
                x_of(p, us), x_of(p, us), y, y + high);
        text(p, x_of(p, us) + 2, y + high + 10, label);
    }
}

/* Overview. */

enum { FAULT_ROWS = 4 };

static int row_of(const fault *f)
{
    return f->emptied                            ? 1
           : nemesis_kinds[f->kind].of_a_process ? 2
           : f->servers == 1U << HOME            ? 0
                                                 : 3;
}

static void draw_faults(const panel *p)
{
    static const char *const rows[FAULT_ROWS] = {"server", "data", "workers",
                                                 "nodes"};
    char style[64];
    for (int row = 0; row < FAULT_ROWS; row++)
        text(p, 4, p->y + CURVE + (row + 1) * FAULT_ROW + 6, rows[row]);
    for (int i = 0; i < p->a->n_faults; i++) {
        const fault *f = &p->a->faults[i];
        int row = row_of(f);
        fill(style, sizeof style, fault_colour(f), 0.8);
        bar(p, f->began_us, f->ended_us, p->y + CURVE + row * FAULT_ROW + 10,
            FAULT_ROW - 3, style);
    }
}

enum { BINS = 400 };

/* The grants of one kind; the most of them in one bin. */
static unsigned count_grants(const panel *p, lock_kind kind, int64_t bin_us,
                             unsigned count[BINS])
{
    unsigned most = 1;
    for (int lock = 0; lock < LOCKS; lock++)
        for (size_t i = 0; i < p->v->n_holds[lock]; i++) {
            const hold *r = p->v->holds[lock][i].r;
            int64_t us = r->granted_us - p->from_us;
            bool wanted = lock_kind_of(lock) == kind && !r->whole;
            if (wanted && us >= 0 && us / bin_us < BINS &&
                ++count[us / bin_us] > most)
                most = count[us / bin_us];
        }
    return most;
}

/* Each kind's curve has a height of its own. */
static void draw_curve(const panel *p, lock_kind kind)
{
    unsigned count[BINS] = {0};
    int64_t bin_us = (p->to_us - p->from_us) / BINS + 1;
    unsigned most = count_grants(p, kind, bin_us, count);
    fprintf(p->f, "<polyline fill='none' stroke='%s' points='",
            kind_colours[kind]);
    for (int i = 0; i < BINS; i++)
        fprintf(p->f, "%.1f,%.1f ", x_of(p, p->from_us + i * bin_us),
                p->y + CURVE - (double)count[i] * CURVE / most);
    fprintf(p->f, "'/>\n<text x='4' y='%d' fill='%s'>%s: %.0f/s</text>\n",
            p->y + 20 + 12 * (int)kind, kind_colours[kind],
            lock_kind_names[kind], (double)most * 1e6 / (double)bin_us);
}

static int overview(FILE *f, const arena *a, const verdict *v, int y)
{
    panel p = {f, a, v, a->began_us, a->ended_us, y};
    int high = CURVE + (FAULT_ROWS + 1) * FAULT_ROW;
    draw_axis(&p, y, high);
    text(&p, 4, y + 8, "grants, up to");
    for (int kind = 0; kind < LOCK_KINDS; kind++)
        draw_curve(&p, (lock_kind)kind);
    draw_faults(&p);
    return y + high + GAP;
}

/* Close by. */

/* Until then the library said "held". */
static int64_t end_of(const panel *p, const entry *e)
{
    return e->r->end == HOLD_OPEN ? p->a->lives[e->life].ended_us
                                  : e->r->held_us;
}

static void draw_hold(const panel *p, int proc, int64_t from_us, int64_t to_us,
                      int lock, bool member)
{
    char style[64];
    fill(style, sizeof style, colours[proc % 4], member ? 0.5 : 0.9);
    bar(p, from_us, to_us, p->y + lock * ROW + proc * LANE, LANE, style);
}

static void draw_loss(const panel *p, const entry *e, int lock, int proc)
{
    fprintf(p->f, "<circle cx='%.1f' cy='%.1f' r='2.5' fill='#d62728'/>\n",
            x_of(p, e->r->over_us), p->y + lock * ROW + (proc + 0.5) * LANE);
}

/* Holds of one worker that no eye could tell apart are one bar. */
typedef struct stretch {
    int64_t from_us, to_us; /* to_us 0: none */
    bool member;            /* all of them members of Multi locks */
} stretch;

static void flush(const panel *p, stretch *s, int proc, int lock)
{
    if (s->to_us)
        draw_hold(p, proc, s->from_us, s->to_us, lock, s->member);
    s->to_us = 0;
}

static void draw_lock(const panel *p, int lock)
{
    stretch all[PROCS] = {{0}};
    int64_t near_us = 2 * (p->to_us - p->from_us) / WIDTH;
    for (size_t i = 0; i < p->v->n_holds[lock]; i++) {
        const entry *e = &p->v->holds[lock][i];
        int proc = p->a->lives[e->life].proc;
        stretch *s = &all[proc];
        int64_t end_us = end_of(p, e);
        if (!is_in(p, e->r->granted_us, end_us))
            continue;
        if (e->r->granted_us - s->to_us > near_us)
            flush(p, s, proc, lock);
        if (!s->to_us)
            *s = (stretch){e->r->granted_us, end_us, true};
        s->to_us = end_us > s->to_us ? end_us : s->to_us;
        s->member = s->member && e->r->whole;
        if (e->r->end == HOLD_LOST)
            draw_loss(p, e, lock, proc);
    }
    for (int proc = 0; proc < PROCS; proc++)
        flush(p, &all[proc], proc, lock);
}

/* So that one sees where a kind begins. */
static void draw_grounds(const panel *p)
{
    char style[64];
    for (int lock = FIRST_RED; lock < LOCKS; lock++) {
        fill(style, sizeof style, kind_colours[lock_kind_of(lock)], 0.07);
        bar(p, p->from_us, p->to_us, p->y + lock * ROW, ROW, style);
    }
}

/* In the first line that has room; else the band has to do. */
static void draw_label(const panel *p, const fault *f, double used[3])
{
    char label[FAULT_LABEL_MAX];
    fault_label(f, label);
    double x = x_of(p, f->began_us);
    for (int line = 0; line < 3; line++) {
        if (used[line] > x)
            continue;
        text(p, x, p->y - 4 - 10 * line, label);
        used[line] = x + (double)strlen(label) * 5.5;
        return;
    }
}

static void draw_bands(const panel *p, int high)
{
    char style[64];
    double used[3] = {0};
    for (int i = 0; i < p->a->n_faults; i++) {
        const fault *f = &p->a->faults[i];
        if (!is_in(p, f->began_us, f->ended_us))
            continue;
        fill(style, sizeof style, fault_colour(f), 0.13);
        bar(p, f->began_us, f->ended_us, p->y, high, style);
        draw_label(p, f, used);
    }
}

static int close_by(FILE *f, const arena *a, const verdict *v, int64_t from_us,
                    int64_t to_us, int y)
{
    int high = LOCKS * ROW;
    panel p = {f, a, v, from_us - BEFORE_US, to_us + AFTER_US, y};
    draw_grounds(&p);
    draw_axis(&p, y, high);
    draw_bands(&p, high);
    for (int lock = 0; lock < LOCKS; lock++) {
        char label[LOCK_LABEL_MAX];
        lock_label(lock, label);
        text(&p, 4, y + lock * ROW + ROW - 4, label);
        draw_lock(&p, lock);
    }
    return y + high + GAP;
}

/* What the judges have found is shown, too. */
enum { FINDINGS_SHOWN = 4 };

static int findings_shown(const verdict *v)
{
    return v->n_kept < FINDINGS_SHOWN ? (int)v->n_kept : FINDINGS_SHOWN;
}

static const fault *first_of(const arena *a, const char *beginning)
{
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        const char *name = nemesis_kinds[f->kind].name;
        if (f->done && strncmp(name, beginning, strlen(beginning)) == 0)
            return f;
    }
    return NULL;
}

static void draw_legend(FILE *f)
{
    int x = LEFT;
    for (int i = 0; i < PROCS; i++, x += 60)
        fprintf(f, "<text x='%d' y='16' fill='%s'>worker %d</text>\n", x,
                colours[i], i);
    static const char *const rest[][2] = {
        {"#d62728", "● told: lost; and faults that lose data"},
        {"#c2569f", "faults of servers"},
        {"#555", "faults of a worker, or of its way to the server"}};
    for (int i = 0; i < 3; i++, x += 240)
        fprintf(f, "<text x='%d' y='16' fill='%s'>%s</text>\n", x, rest[i][0],
                rest[i][1]);
}

void timeline(const char *path, const arena *a, const verdict *v)
{
    FILE *f = fopen(path, "w");
    if (!f)
        attack_die("%s: %s", path, strerror(errno));
    const fault *faults[SHOWN];
    int n = 0;
    for (int i = 0; i < SHOWN; i++)
        if ((faults[n] = first_of(a, shown[i])))
            n++;
    int panels = findings_shown(v) + n;
    int high = 30 + CURVE + (FAULT_ROWS + 1) * FAULT_ROW + GAP +
               panels * (LOCKS * ROW + GAP);
    fprintf(f,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
            "font-family='sans-serif' font-size='10'>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n",
            WIDTH, high);
    draw_legend(f);
    int y = overview(f, a, v, 30);
    for (int i = 0; i < findings_shown(v); i++) {
        int64_t at_us = v->kept[i].at_us;
        y = close_by(f, a, v, at_us, at_us, y);
    }
    for (int i = 0; i < n; i++)
        y = close_by(f, a, v, faults[i]->began_us, faults[i]->ended_us, y);
    fprintf(f, "</svg>\n");
    fclose(f);
}
