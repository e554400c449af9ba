/*
 * Figures are read first, each client's inside of it, and told afterwards, when
 * the program may do what it likes.
 */
#include <rlock/metrics.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/metrics_text.h"
#include "run/client.h"

static rlock_status no_memory(void)
{
    return rl_error_set(RLOCK_ENOMEM, 0, "out of memory");
}

static rlock_status read_one(rl_figures *to, rlock_client *cl)
{
    int cancel;
    rlock_status s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    if (!rl_figures_read(to, &cl->engine.core, rl_now_us()))
        s = no_memory();
    rl_client_leave(cl, cancel);
    return s;
}

/* Otherwise nobody could tell which of them is which. */
static rlock_status check_label(const rl_figures *of, size_t last)
{
    for (size_t i = 0; i < last; i++)
        if (strcmp(of[i].client, of[last].client) == 0)
            return rl_error_set(RLOCK_EINVAL, 0,
                                "clients %zu and %zu have the same "
                                "metrics_label, or none",
                                i + 1, last + 1);
    return RLOCK_OK;
}

static rlock_status read_all(rl_figures *to, rlock_client *const clients[],
                             size_t n)
{
    rlock_status s = RLOCK_OK;
    for (size_t i = 0; i < n && s == RLOCK_OK; i++) {
        s = read_one(&to[i], clients[i]);
        if (s == RLOCK_OK)
            s = check_label(to, i);
    }
    return s;
}

static rl_figures *make_room(size_t n)
{
    rl_figures *room = calloc(n ? n : 1, sizeof *room);
    if (!room)
        no_memory();
    return room;
}

static void free_all(rl_figures *figures, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rl_figures_fini(&figures[i]);
    free(figures);
}

rlock_status rlock_metrics_write(rlock_client *const clients[], size_t n,
                                 rlock_metrics_format format,
                                 rlock_write_fn *write, void *arg)
{
    if (!write || (n > 0 && !clients))
        return rl_error_set(RLOCK_EINVAL, 0, "%s is NULL",
                            write ? "clients" : "write");
    if (!rlock_metrics_content_type(format))
        return rl_error_set(RLOCK_EINVAL, 0, "there is no such format");
    rl_figures *figures = make_room(n);
    if (!figures)
        return RLOCK_ENOMEM;
    rlock_status s = read_all(figures, clients, n);
    if (s == RLOCK_OK) {
        rl_metrics_text t = {.format = format, .write = write, .arg = arg};
        rl_metrics_text_write(&t, figures, n);
    }
    free_all(figures, n);
    return s;
}

const char *rlock_metrics_content_type(rlock_metrics_format format)
{
    switch (format) {
    case RLOCK_METRICS_TEXT:
        return "text/plain; version=0.0.4; charset=utf-8";
    case RLOCK_METRICS_OPENMETRICS:
    case RLOCK_METRICS_OPENMETRICS_PART:
        return "application/openmetrics-text; version=1.0.0; charset=utf-8";
    }
    return NULL;
}

/* --- one by one ----------------------------------------------------------- */

typedef void each_fn(const rlock_metric *m, void *arg);

static void fill_histogram(rlock_metric *m, const rl_histogram *h,
                           double bounds[], uint64_t counts[])
{
    m->value = 0;
    for (size_t i = 0; i <= RL_BUCKETS; i++) {
        counts[i] = h->n[i];
        m->value += (double)counts[i];
    }
    for (size_t i = 0; i < RL_BUCKETS; i++)
        bounds[i] = (double)rl_bounds_us[i] / 1e6;
    m->bounds = bounds;
    m->counts = counts;
    m->n_bounds = RL_BUCKETS;
    m->sum = (double)h->sum_us / 1e6;
}

typedef struct listener {
    each_fn *each;
    void *arg;
} listener;

static void tell(const rl_sample *x, void *arg)
{
    char labels[RL_LABELS_MAX];
    double bounds[RL_BUCKETS];
    uint64_t counts[RL_BUCKETS + 1];
    const listener *to = arg;
    const rl_family *y = x->family;
    double unit = rl_family_is_seconds(y) ? 1e6 : 1;
    rlock_metric m = {.name = y->name,
                      .help = y->help,
                      .unit = y->unit,
                      .type = y->type,
                      .labels = labels};
    rl_labels_write(labels, x);
    if (y->type == RLOCK_METRIC_HISTOGRAM)
        fill_histogram(&m, rl_sample_times(x), bounds, counts);
    else
        m.value = (double)rl_sample_value(x) / unit;
    to->each(&m, to->arg);
}

rlock_status rlock_metrics_each(rlock_client *cl, each_fn *each, void *arg)
{
    if (!each)
        return rl_error_set(RLOCK_EINVAL, 0, "the callback is NULL");
    rl_figures *figures = make_room(1);
    if (!figures)
        return RLOCK_ENOMEM;
    listener to = {each, arg};
    rlock_status s = read_one(figures, cl);
    for (size_t i = 0; s == RLOCK_OK && i < rl_families_count; i++)
        rl_family_each(figures, &rl_families[i], tell, &to);
    free_all(figures, 1);
    return s;
}
