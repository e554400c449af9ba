/*
 * The formats differ in little: OpenMetrics calls a counter's family by its name
 * without _total, tells units, and has an end. Numbers are written without
 * printf's %f, whose point is a comma in some locales.
 */
#include "client/metrics_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void flush(rl_metrics_text *t)
{
    if (t->len > 0 && !t->stopped)
        t->stopped = !t->write(t->at, t->len, t->arg);
    t->len = 0;
}

static void put(rl_metrics_text *t, const char *text)
{
    for (size_t left = strlen(text); left > 0 && !t->stopped;) {
        size_t room = sizeof t->at - t->len;
        size_t n = left < room ? left : room;
        memcpy(t->at + t->len, text, n);
        t->len += n;
        text += n;
        left -= n;
        if (t->len == sizeof t->at)
            flush(t);
    }
}

/* A bound: as a number is, but with one zero at its end at most. */
static void put_bound(rl_metrics_text *t, int64_t us)
{
    char text[48];
    size_t n = (size_t)snprintf(text, sizeof text, "%" PRId64 ".%06" PRId64,
                                us / 1000000, us % 1000000);
    while (text[n - 1] == '0' && text[n - 2] != '.')
        n--;
    text[n] = '\0';
    put(t, text);
}

static void put_number(rl_metrics_text *t, const rl_family *y, uint64_t value)
{
    char text[48];
    if (rl_family_is_seconds(y))
        snprintf(text, sizeof text, "%" PRIu64 ".%06" PRIu64, value / 1000000,
                 value % 1000000);
    else
        snprintf(text, sizeof text, "%" PRIu64, value);
    put(t, text);
}

static bool is_open(const rl_metrics_text *t)
{
    return t->format != RLOCK_METRICS_TEXT;
}

/* "# TYPE rlock_held gauge" */
static void put_about(rl_metrics_text *t, const rl_family *y, const char *what,
                      const char *text)
{
    bool total = !is_open(t) && y->type == RLOCK_METRIC_COUNTER;
    put(t, "# ");
    put(t, what);
    put(t, " ");
    put(t, y->name);
    put(t, total ? "_total " : " ");
    put(t, text);
    put(t, "\n");
}

static void put_head(rl_metrics_text *t, const rl_family *y)
{
    static const char *const types[] = {[RLOCK_METRIC_COUNTER] = "counter",
                                        [RLOCK_METRIC_GAUGE] = "gauge",
                                        [RLOCK_METRIC_HISTOGRAM] = "histogram"};
    put_about(t, y, "TYPE", types[y->type]);
    if (is_open(t) && *y->unit)
        put_about(t, y, "UNIT", y->unit);
    put_about(t, y, "HELP", y->help);
}

/* rlock_held{client="a"}, and room for the number behind it. */
static void put_name(rl_metrics_text *t, const rl_family *y, const char *suffix,
                     const char *labels)
{
    put(t, y->name);
    put(t, suffix);
    if (*labels) {
        put(t, "{");
        put(t, labels);
        put(t, "}");
    }
    put(t, " ");
}

static void put_plain(rl_metrics_text *t, const rl_sample *x,
                      const char *labels)
{
    const rl_family *y = x->family;
    put_name(t, y, y->type == RLOCK_METRIC_COUNTER ? "_total" : "", labels);
    put_number(t, y, rl_sample_value(x));
    put(t, "\n");
}

static void put_count(rl_metrics_text *t, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64 "\n", n);
    put(t, text);
}

/* So many were not above this bound; behind the last: in all. */
static void put_bucket(rl_metrics_text *t, const rl_family *y,
                       const char *labels, size_t i, uint64_t n)
{
    put(t, y->name);
    put(t, "_bucket{");
    put(t, labels);
    put(t, *labels ? ",le=\"" : "le=\"");
    if (i < RL_BUCKETS)
        put_bound(t, rl_bounds_us[i]);
    else
        put(t, "+Inf");
    put(t, "\"} ");
    put_count(t, n);
}

static void put_histogram(rl_metrics_text *t, const rl_sample *x,
                          const char *labels)
{
    const rl_family *y = x->family;
    const rl_histogram *h = rl_sample_times(x);
    uint64_t n = 0;
    for (size_t i = 0; i <= RL_BUCKETS; i++) {
        n += h->n[i];
        put_bucket(t, y, labels, i, n);
    }
    put_name(t, y, "_sum", labels);
    put_number(t, y, h->sum_us);
    put(t, "\n");
    put_name(t, y, "_count", labels);
    put_count(t, n);
}

static void put_sample(const rl_sample *x, void *arg)
{
    char labels[RL_LABELS_MAX];
    rl_labels_write(labels, x);
    if (x->family->type == RLOCK_METRIC_HISTOGRAM)
        put_histogram(arg, x, labels);
    else
        put_plain(arg, x, labels);
}

static void put_family(rl_metrics_text *t, const rl_family *y,
                       const rl_figures *of, size_t n)
{
    bool begun = false;
    for (size_t i = 0; i < n; i++) {
        if (!rl_family_is_told(y, &of[i]))
            continue;
        if (!begun)
            put_head(t, y);
        begun = true;
        rl_family_each(&of[i], y, put_sample, t);
    }
}

void rl_metrics_text_write(rl_metrics_text *t, const rl_figures *of, size_t n)
{
    for (size_t i = 0; i < rl_families_count && !t->stopped; i++)
        put_family(t, &rl_families[i], of, n);
    if (t->format == RLOCK_METRICS_OPENMETRICS)
        put(t, "# EOF\n");
    flush(t);
}
