/* Figures one by one: every field of them, and what is said of wrong arguments. */
#include <rlock/metrics.h>

#include "client.h"

/* A figure, copied: the first with the name and the labels. */
typedef struct seen {
    const char *name, *labels;
    int found;
    rlock_metric m; /* without what it points to */
    char help[200], unit[20];
    double bounds[30];
    uint64_t counts[31];
} seen;

static void note(const rlock_metric *m, void *arg)
{
    seen *x = arg;
    if (strcmp(m->name, x->name) != 0 || strcmp(m->labels, x->labels) != 0)
        return;
    x->found++;
    x->m = *m;
    snprintf(x->help, sizeof x->help, "%s", m->help);
    snprintf(x->unit, sizeof x->unit, "%s", m->unit);
    EXPECT(m->n_bounds < 30);
    for (size_t i = 0; i < m->n_bounds; i++)
        x->bounds[i] = m->bounds[i];
    for (size_t i = 0; m->bounds && i <= m->n_bounds; i++)
        x->counts[i] = m->counts[i];
}

static seen look(rlock_client *cl, const char *name, const char *labels)
{
    seen x = {.name = name, .labels = labels};
    EXPECT_STATUS(rlock_metrics_each(cl, note, &x), RLOCK_OK);
    EXPECT_INT(x.found, 1);
    return x;
}

static rlock_client *timed(server *sv)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.metrics_label = "a";
    opts.metrics = true;
    return server_client(sv, &opts);
}

#define LABEL  "client=\"a\""
#define HELD_S 0.05

static void hold_once(rlock_client *cl)
{
    rlock *lk = test_lock(cl, SCENE_LOCK);
    lock_times(lk, 1);
    EVENTUALLY(SOON,
               look(cl, "rlock_oldest_hold_seconds", LABEL).m.value > HELD_S);
    unlock_times(lk, 1, RLOCK_OK);
    rlock_free(lk);
}

static void expect_kind(const seen *x, rlock_metric_type type, const char *unit,
                        const char *help)
{
    EXPECT_INT(x->m.type, type);
    EXPECT_STR(x->unit, unit);
    EXPECT_STR(x->help, help);
    EXPECT((x->m.bounds != NULL) == (type == RLOCK_METRIC_HISTOGRAM));
    EXPECT_INT(x->m.n_bounds, type == RLOCK_METRIC_HISTOGRAM ? 22 : 0);
}

TEST(metrics_each, a_counter_and_a_gauge_are_told_with_all_that_they_have)
{
    server *sv = server_start(NULL);
    rlock_client *cl = timed(sv);
    hold_once(cl);
    seen x = look(cl, "rlock_releases", LABEL);
    expect_kind(&x, RLOCK_METRIC_COUNTER, "", x.help);
    EXPECT(*x.help && x.m.value == 1);
    x = look(cl, "rlock_held", LABEL);
    expect_kind(&x, RLOCK_METRIC_GAUGE, "", "Locks that are held.");
    EXPECT(x.m.value == 0);
    x = look(cl, "rlock_held_seconds", LABEL);
    expect_kind(&x, RLOCK_METRIC_COUNTER, "seconds", x.help);
    EXPECT(x.m.value > HELD_S && x.m.value < SOON / 1e3);
    rlock_client_free(cl);
    server_stop(sv);
}

/* It is in the one bucket whose bound is the first that is not below it. */
TEST(metrics_each, a_histogram_is_told_in_seconds)
{
    server *sv = server_start(NULL);
    rlock_client *cl = timed(sv);
    hold_once(cl);
    seen x = look(cl, "rlock_hold_seconds", LABEL);
    expect_kind(&x, RLOCK_METRIC_HISTOGRAM, "seconds", x.help);
    EXPECT(*x.help && x.m.value == 1);
    EXPECT(x.m.sum > HELD_S && x.m.sum < SOON / 1e3);
    EXPECT(x.bounds[0] == 50 / 1e6 && x.bounds[21] == 300);
    for (size_t i = 0; i <= 22; i++) {
        bool above = i == 0 || x.bounds[i - 1] < x.m.sum;
        bool below = i == 22 || x.m.sum <= x.bounds[i];
        EXPECT_INT(x.counts[i], above && below);
    }
    rlock_client_free(cl);
    server_stop(sv);
}

TEST(metrics_each, without_histograms_none_is_told)
{
    scene s = scene_start(0, 0);
    seen x = {.name = "rlock_hold_seconds", .labels = ""};
    EXPECT_STATUS(rlock_metrics_each(s.cl, note, &x), RLOCK_OK);
    EXPECT_INT(x.found, 0);
    scene_stop(&s);
}

/* --- what is wrong -------------------------------------------------------- */

static bool take(const char *bytes, size_t len, void *arg)
{
    (void)bytes;
    *(size_t *)arg += len;
    return true;
}

static void expect_refused_with(rlock_status s, const char *text)
{
    EXPECT_STATUS(s, RLOCK_EINVAL);
    EXPECT_INT(rlock_last_error()->status, RLOCK_EINVAL);
    EXPECT_STR(message(), text);
}

TEST(metrics_each, what_is_wrong_with_the_arguments_is_said)
{
    scene s = scene_start(0, 0);
    size_t n = 0;
    rlock_client *one = s.cl;
    expect_refused_with(rlock_metrics_each(s.cl, NULL, NULL),
                        "the callback is NULL");
    expect_refused_with(rlock_metrics_write(&one, 1, 0, NULL, &n),
                        "write is NULL");
    expect_refused_with(rlock_metrics_write(NULL, 1, 0, take, &n),
                        "clients is NULL");
    expect_refused_with(
        rlock_metrics_write(&one, 1, (rlock_metrics_format)3, take, &n),
        "there is no such format");
    EXPECT_INT(n, 0);
    EXPECT_STATUS(rlock_metrics_write(NULL, 0, 0, take, &n), RLOCK_OK);
    EXPECT_INT(n, 0);
    scene_stop(&s);
}

/* Which of several is said, counted from 1. */
TEST(metrics_each, of_several_clients_those_that_are_alike_are_named)
{
    server *sv = server_start(NULL);
    static const char *const labels[] = {"a", "b", "c", "b"};
    rlock_client *clients[4];
    size_t n = 0;
    for (int i = 0; i < 4; i++) {
        rlock_options opts = RLOCK_OPTIONS_INIT;
        opts.metrics_label = labels[i];
        clients[i] = server_client(sv, &opts);
    }
    expect_refused_with(rlock_metrics_write(clients, 4, 0, take, &n),
                        "clients 2 and 4 have the same metrics_label, or none");
    EXPECT_INT(n, 0);
    EXPECT_STATUS(rlock_metrics_write(clients, 3, 0, take, &n), RLOCK_OK);
    EXPECT(n > 0);
    for (int i = 0; i < 4; i++)
        rlock_client_free(clients[i]);
    server_stop(sv);
}

#define OPEN "application/openmetrics-text; version=1.0.0; charset=utf-8"

TEST(metrics_each, each_format_has_its_type)
{
    EXPECT_STR(rlock_metrics_content_type(RLOCK_METRICS_TEXT),
               "text/plain; version=0.0.4; charset=utf-8");
    EXPECT_STR(rlock_metrics_content_type(RLOCK_METRICS_OPENMETRICS), OPEN);
    EXPECT_STR(rlock_metrics_content_type(RLOCK_METRICS_OPENMETRICS_PART),
               OPEN);
}
