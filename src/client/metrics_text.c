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
    static const char *const types[] = {
        [RLOCK_METRIC_COUNTER] = "counter", [RLOCK_METRIC_GAUGE] = "gauge"};
    put_about(t, y, "TYPE", types[y->type]);
    if (is_open(t) && *y->unit)
        put_about(t, y, "UNIT", y->unit);
    put_about(t, y, "HELP", y->help);
}

static void put_sample(rl_metrics_text *t, const rl_family *y,
                       const rl_figures *f, size_t i)
{
    char labels[RL_LABELS_MAX];
    rl_labels_write(labels, f, y, i);
    put(t, y->name);
    put(t, y->type == RLOCK_METRIC_COUNTER ? "_total" : "");
    if (*labels) {
        put(t, "{");
        put(t, labels);
        put(t, "}");
    }
    put(t, " ");
    put_number(t, y, rl_sample(f, y, i));
    put(t, "\n");
}

static void put_family(rl_metrics_text *t, const rl_family *y,
                       const rl_figures *of, size_t n)
{
    put_head(t, y);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < y->samples; k++)
            put_sample(t, y, &of[i], k);
}

void rl_metrics_text_write(rl_metrics_text *t, const rl_figures *of, size_t n)
{
    for (size_t i = 0; n > 0 && i < rl_families_count && !t->stopped; i++)
        put_family(t, &rl_families[i], of, n);
    if (t->format == RLOCK_METRICS_OPENMETRICS)
        put(t, "# EOF\n");
    flush(t);
}
