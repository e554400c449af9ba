/* Figures as text, in each format. */
#include "client/metrics_text.h"

#include "test.h"

typedef struct reader {
    char text[64 * 1024];
    size_t len, pieces, most; /* most: pieces that it wants */
} reader;

static bool take(const char *bytes, size_t len, void *arg)
{
    reader *r = arg;
    EXPECT(r->len + len < sizeof r->text);
    memcpy(r->text + r->len, bytes, len);
    r->len += len;
    return ++r->pieces < r->most;
}

static reader r;

static const char *text_of(rlock_metrics_format format, const rl_figures *of,
                           size_t n)
{
    r = (reader){.most = SIZE_MAX};
    rl_metrics_text t = {.format = format, .write = take, .arg = &r};
    rl_metrics_text_write(&t, of, n);
    r.text[r.len] = '\0';
    return r.text;
}

static rl_figures figures_of(const char *client)
{
    rl_figures f = {.one = 1, .oldest_hold_us = 2500000};
    rl_add(&f.counted.acquires[RL_RESULT_BUSY], 7);
    rl_add(&f.counted.hold_us_total, 61000001);
    rl_label_escape(f.client, client, strlen(client));
    return f;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

TEST(metrics_text, prometheus_calls_a_counter_by_its_sample)
{
    rl_figures f = figures_of("");
    const char *text = text_of(RLOCK_METRICS_TEXT, &f, 1);
    EXPECT_CONTAINS(text, "# TYPE rlock_acquires_total counter\n"
                          "# HELP rlock_acquires_total Calls to acquire");
    EXPECT_CONTAINS(text, "\nrlock_acquires_total{result=\"busy\"} 7\n");
    EXPECT_CONTAINS(text, "\nrlock_held_seconds_total 61.000001\n");
    EXPECT_CONTAINS(text, "\nrlock_oldest_hold_seconds 2.500000\n");
    EXPECT_INT(count(text, "# UNIT"), 0);
    EXPECT_INT(count(text, "# EOF"), 0);
}

TEST(metrics_text, openmetrics_calls_it_by_its_family_and_tells_units)
{
    rl_figures f = figures_of("");
    const char *text = text_of(RLOCK_METRICS_OPENMETRICS, &f, 1);
    EXPECT_CONTAINS(text, "# TYPE rlock_held_seconds counter\n"
                          "# UNIT rlock_held_seconds seconds\n"
                          "# HELP rlock_held_seconds Time");
    EXPECT_CONTAINS(text, "\nrlock_held_seconds_total 61.000001\n");
    EXPECT_STR(text + strlen(text) - 7, "\n# EOF\n");
}

TEST(metrics_text, a_part_is_openmetrics_without_its_end)
{
    static char whole[sizeof r.text];
    rl_figures f = figures_of("a");
    strcpy(whole, text_of(RLOCK_METRICS_OPENMETRICS, &f, 1));
    const char *part = text_of(RLOCK_METRICS_OPENMETRICS_PART, &f, 1);
    whole[strlen(whole) - strlen("# EOF\n")] = '\0';
    EXPECT_STR(part, whole);
}

TEST(metrics_text, a_family_stands_once_for_all_clients)
{
    rl_figures f[] = {figures_of("a"), figures_of("b\"")};
    const char *text = text_of(RLOCK_METRICS_TEXT, f, 2);
    EXPECT_INT(count(text, "# TYPE rlock_acquires_total "), 1);
    EXPECT_INT(count(text, "# HELP rlock_acquires_total "), 1);
    EXPECT_CONTAINS(text,
                    "rlock_acquires_total{client=\"a\",result=\"busy\"} 7\n");
    EXPECT_CONTAINS(
        text, "rlock_acquires_total{client=\"b\\\"\",result=\"busy\"} 7\n");
    EXPECT_CONTAINS(text, "rlock_held{client=\"a\"} 0\n"
                          "rlock_held{client=\"b\\\"\"} 0\n");
}

static const char its_begin[] =
    "rlock_hold_seconds_bucket{client=\"a\",le=\"0.00005\"} 0\n"
    "rlock_hold_seconds_bucket{client=\"a\",le=\"0.0001\"} 2\n"
    "rlock_hold_seconds_bucket{client=\"a\",le=\"0.0002\"} 2\n";
static const char its_end[] =
    "rlock_hold_seconds_bucket{client=\"a\",le=\"100.0\"} 2\n"
    "rlock_hold_seconds_bucket{client=\"a\",le=\"200.0\"} 2\n"
    "rlock_hold_seconds_bucket{client=\"a\",le=\"300.0\"} 3\n"
    "rlock_hold_seconds_bucket{client=\"a\",le=\"+Inf\"} 4\n"
    "rlock_hold_seconds_sum{client=\"a\"} 801.000200\n"
    "rlock_hold_seconds_count{client=\"a\"} 4\n";

TEST(metrics_text, a_histogram_counts_what_is_not_above_each_bound)
{
    rl_figures f[] = {figures_of("a"), figures_of("b")};
    f[0].timed = true;
    rl_histogram *h = &f[0].times[RL_TIME_HOLD];
    rl_histogram_record(h, 100);
    rl_histogram_record(h, 100);
    rl_histogram_record(h, 300000000);
    rl_histogram_record(h, 501000000);
    const char *text = text_of(RLOCK_METRICS_TEXT, f, 2);
    EXPECT_CONTAINS(text, "# TYPE rlock_hold_seconds histogram\n");
    EXPECT_CONTAINS(text, its_begin);
    EXPECT_CONTAINS(text, its_end);
    EXPECT_INT(count(text, "rlock_hold_seconds_bucket{client=\"b\""), 0);
}

static const char by_name[] =
    "rlock_acquires_total{client=\"a\",name=\"other\",result=\"error\"} 0\n"
    "rlock_acquires_total{client=\"a\",name=\"x\\\"\\\\\\n\",result=\"ok\"} 4\n"
    "rlock_acquires_total{client=\"a\",name=\"x\\\"\\\\\\n\",result=\"busy\"} "
    "0\n";
static const char held_by_name[] =
    "# HELP rlock_held Locks that are held.\n"
    "rlock_held{client=\"a\",name=\"other\"} 0\n"
    "rlock_held{client=\"a\",name=\"x\\\"\\\\\\n\"} 0\n"
    "rlock_held{client=\"b\"} 0\n";

/* One client tells names, the other does not. */
TEST(metrics_text, a_name_is_a_label_of_what_is_told_by_name)
{
    static rl_name_figures names[2];
    rl_figures f[] = {figures_of("a"), figures_of("b")};
    rl_label_escape(names[0].name, "other", 5);
    rl_label_escape(names[1].name, "x\"\\\n", 4);
    names[1].counted[RL_RESULT_OK] = 4;
    f[0].names = names;
    f[0].n_names = 2;
    f[0].timed = true;
    rl_histogram_record(&names[1].times[RL_TIME_HOLD], 100);
    const char *text = text_of(RLOCK_METRICS_TEXT, f, 2);
    EXPECT_CONTAINS(text, by_name);
    EXPECT_CONTAINS(text, held_by_name);
    EXPECT_CONTAINS(text, "\nrlock_hold_seconds_bucket{client=\"a\","
                          "name=\"x\\\"\\\\\\n\",le=\"0.0001\"} 1\n");
    EXPECT_CONTAINS(text, "\nrlock_call_seconds_count{client=\"a\"} 0\n");
    EXPECT_CONTAINS(text, "\nrlock_renewals_total{client=\"a\"} 0\n");
    EXPECT_INT(count(text, "rlock_acquires_total{client=\"a\",result"), 0);
}

TEST(metrics_text, without_histograms_nothing_is_said_of_them)
{
    rl_figures f = figures_of("a");
    const char *text = text_of(RLOCK_METRICS_OPENMETRICS, &f, 1);
    EXPECT_INT(count(text, "histogram"), 0);
}

TEST(metrics_text, of_no_client_there_is_nothing_but_the_end)
{
    EXPECT_STR(text_of(RLOCK_METRICS_TEXT, NULL, 0), "");
    EXPECT_INT(r.pieces, 0);
    EXPECT_STR(text_of(RLOCK_METRICS_OPENMETRICS, NULL, 0), "# EOF\n");
    EXPECT_INT(r.pieces, 1);
    EXPECT_STR(text_of(RLOCK_METRICS_OPENMETRICS_PART, NULL, 0), "");
    EXPECT_INT(r.pieces, 0);
}

TEST(metrics_text, who_wants_no_more_gets_no_more)
{
    rl_figures f[6];
    for (size_t i = 0; i < 6; i++)
        f[i] = figures_of("a");
    text_of(RLOCK_METRICS_TEXT, f, 6);
    EXPECT(r.pieces > 2);
    for (size_t most = 1; most <= 2; most++) {
        r = (reader){.most = most};
        rl_metrics_text t = {.write = take, .arg = &r};
        rl_metrics_text_write(&t, f, 6);
        EXPECT_INT(r.pieces, most);
        EXPECT_INT(r.len, most * sizeof t.at);
    }
}

TEST(metrics_text, the_largest_numbers_are_whole)
{
    rl_figures f = figures_of("");
    f.counted.releases = UINT64_MAX;
    f.counted.wait_us_total = UINT64_MAX;
    const char *text = text_of(RLOCK_METRICS_TEXT, &f, 1);
    EXPECT_CONTAINS(text, "\nrlock_releases_total 18446744073709551615\n");
    EXPECT_CONTAINS(text,
                    "\nrlock_waited_seconds_total 18446744073709.551615\n");
}

/* It goes in pieces, wherever these end. */
TEST(metrics_text, of_many_clients_each_line_is_whole)
{
    static char lines[sizeof r.text];
    rl_figures f[6];
    for (size_t i = 0; i < 6; i++)
        f[i] = figures_of("a");
    strcpy(lines, text_of(RLOCK_METRICS_TEXT, f, 1));
    const char *text = text_of(RLOCK_METRICS_TEXT, f, 6);
    EXPECT(r.pieces > 2);
    char *rest = lines;
    size_t len = 0;
    for (char *line; (line = strtok_r(rest, "\n", &rest)) != NULL;) {
        size_t n = *line == '#' ? 1 : 6;
        EXPECT_INT(count(text, line), n);
        len += n * (strlen(line) + 1);
    }
    EXPECT_INT(r.len, len);
}

/* Of so many more bytes, as numbers have more digits. */
static size_t length_with(rl_figures *f, size_t more)
{
    for (size_t i = 0; i < RL_RESULTS; i++) {
        uint64_t n = 1;
        for (; more > 0 && n < UINT64_MAX / 10; more--)
            n *= 10;
        f->counted.acquires[i] = n;
    }
    text_of(RLOCK_METRICS_TEXT, f, 1);
    return r.len;
}

TEST(metrics_text, a_last_byte_that_is_alone_is_told)
{
    char client[120] = "";
    for (size_t i = 0; i < sizeof client - 1; i++) {
        rl_figures f = figures_of(client);
        size_t len = length_with(&f, 0),
               piece = sizeof((rl_metrics_text *)0)->at;
        size_t more = (piece + 1 - len % piece) % piece;
        if (more < 18 * RL_RESULTS) {
            EXPECT_INT(length_with(&f, more), len + more);
            EXPECT_INT(r.text[r.len - 1], '\n');
            return;
        }
        client[i] = 'a';
    }
    EXPECT(false); /* it has been so for one of them */
}
