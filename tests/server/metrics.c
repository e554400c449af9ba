/* Figures of clients at a real server: one by one, and as text. */
#include <rlock/metrics.h>

#include <unistd.h>

#include "client.h"
#include "nodes.h"

typedef struct text {
    char of[128 * 1024];
    size_t len, pieces, most; /* most: pieces that are wanted */
} text;

static bool take(const char *bytes, size_t len, void *arg)
{
    text *t = arg;
    EXPECT(t->len + len < sizeof t->of);
    memcpy(t->of + t->len, bytes, len);
    t->len += len;
    t->of[t->len] = '\0';
    return ++t->pieces < t->most;
}

static text written;

static rlock_status write_text(rlock_client *const clients[], size_t n,
                               rlock_metrics_format format)
{
    written = (text){.most = SIZE_MAX};
    return rlock_metrics_write(clients, n, format, take, &written);
}

static const char *text_of(rlock_client *cl)
{
    EXPECT_STATUS(write_text(&cl, 1, RLOCK_METRICS_TEXT), RLOCK_OK);
    return written.of;
}

static rlock_client *labelled(server *sv, const char *label)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.metrics_label = label;
    return server_client(sv, &opts);
}

/* With histograms, too. */
static rlock_client *timed(server *sv, const char *label)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.metrics_label = label;
    opts.metrics = true;
    return server_client(sv, &opts);
}

/* --- one by one ----------------------------------------------------------- */

TEST(metrics, each_figure_is_told_with_its_labels)
{
    scene s = scene_start(0, 0);
    rlock_client *other = labelled(s.sv, "other");
    rlock *lk = test_lock(other, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(lk, 20, 0), RLOCK_TIMEOUT);
    EXPECT_INT(figure_of(s.cl, "rlock_acquires", "result=\"ok\""), 1);
    EXPECT_INT(figure_of(s.cl, "rlock_held", ""), 1);
    EXPECT(figure_of(s.cl, "rlock_oldest_hold_seconds", "") >= 0.02);
    const char *busy = "client=\"other\",result=\"busy\"";
    EXPECT_INT(figure_of(other, "rlock_acquires", busy), 1);
    const char *timeout = "client=\"other\",result=\"timeout\"";
    EXPECT_INT(figure_of(other, "rlock_acquires", timeout), 1);
    EXPECT_INT(figure_of(other, "rlock_acquires_contended", "client=\"other\""),
               1);
    EXPECT(figure_of(other, "rlock_waited_seconds", "client=\"other\"") >=
           0.019);
    rlock_free(lk);
    rlock_client_free(other);
    scene_stop(&s);
}

TEST(metrics, a_loss_is_told_by_its_cause)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 150), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(figure_of(s.cl, "rlock_lost", "cause=\"expired\""), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "FLUSHALL");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_INT(figure_of(s.cl, "rlock_lost", "cause=\"gone\""), 1);
    EXPECT_INT(figure_of(s.cl, "rlock_lost", "cause=\"expired\""), 1);
    scene_stop(&s);
}

TEST(metrics, the_longest_wait_is_told_while_it_lasts)
{
    scene s = scene_held(0, 0);
    rlock_client *other = labelled(s.sv, NULL);
    rlock *lk = test_lock(other, SCENE_LOCK);
    test_thread *t = test_spawn(wait_and_unlock, lk);
    EVENTUALLY(SOON, figure_of(other, "rlock_waiting", "") == 1);
    EVENTUALLY(SOON, figure_of(other, "rlock_longest_wait_seconds", "") > 0.05);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
    EXPECT_INT(figure_of(other, "rlock_longest_wait_seconds", "") * 1e6, 0);
    EXPECT_INT(figure_of(other, "rlock_waiting", ""), 0);
    rlock_free(lk);
    rlock_client_free(other);
    scene_stop(&s);
}

static void free_client(const rlock_metric *m, void *arg)
{
    rlock_client **cl = arg;
    EXPECT(*m->name && *m->help);
    rlock_client_free(*cl);
    *cl = NULL;
}

TEST(metrics, who_is_told_may_free_the_client)
{
    server *sv = server_start(NULL);
    rlock_client *cl = labelled(sv, NULL);
    EXPECT_STATUS(rlock_metrics_each(cl, free_client, &cl), RLOCK_OK);
    EXPECT(!cl);
    server_stop(sv);
}

TEST(metrics, figures_ask_no_server)
{
    scene s = scene_start(0, 0);
    long long before = server_info(s.sv, "total_commands_processed");
    text_of(s.cl);
    figure_of(s.cl, "rlock_held", "");
    EXPECT_INT(server_info(s.sv, "total_commands_processed") - before, 1);
    scene_stop(&s);
}

typedef struct histogram {
    const char *name;
    double times;
    int found;
} histogram;

static void sum_up(const rlock_metric *m, void *arg)
{
    histogram *x = arg;
    if (strcmp(m->name, x->name) != 0)
        return;
    uint64_t n = 0;
    EXPECT_INT(m->type, RLOCK_METRIC_HISTOGRAM);
    EXPECT_INT(m->n_bounds, 22);
    for (size_t i = 0; i <= m->n_bounds; i++)
        n += m->counts[i];
    for (size_t i = 1; i < m->n_bounds; i++)
        EXPECT(m->bounds[i - 1] < m->bounds[i]);
    EXPECT_INT(n, m->value);
    EXPECT(m->value == 0 || m->sum > 0);
    x->times = m->value;
    x->found++;
}

/* How many a histogram has. */
static double timed_times(rlock_client *cl, const char *name)
{
    histogram x = {name, 0, 0};
    EXPECT_STATUS(rlock_metrics_each(cl, sum_up, &x), RLOCK_OK);
    EXPECT_INT(x.found, 1);
    return x.times;
}

/* An acquire, a level more, and both unlocks are calls. */
TEST(metrics, waits_holds_and_calls_are_timed)
{
    server *sv = server_start(NULL);
    rlock_client *cl = timed(sv, NULL);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    for (int i = 0; i < 3; i++) {
        lock_times(lk, 2);
        unlock_times(lk, 2, RLOCK_OK);
    }
    EXPECT_INT(timed_times(cl, "rlock_acquire_wait_seconds"), 3);
    EXPECT_INT(timed_times(cl, "rlock_hold_seconds"), 3);
    EXPECT_INT(timed_times(cl, "rlock_call_seconds"), 12);
    EXPECT_INT(timed_times(cl, "rlock_renewal_delay_seconds"), 0);
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(sv);
}

TEST(metrics, renewals_are_timed)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = BRISK_MS;
    opts.metrics = true;
    scene s = scene_with(server_start(NULL), &opts);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, timed_times(s.cl, "rlock_renewal_delay_seconds") >= 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(metrics, a_red_lock_is_timed_at_its_home_and_its_holds_at_their_clients)
{
    nodes ns = nodes_start(3);
    rlock_client *cl[3];
    rlock *lk;
    for (int i = 0; i < 3; i++)
        cl[i] = timed(ns.sv[i], NULL);
    EXPECT_STATUS(rlock_red_new(cl, 3, SCENE_LOCK, &lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    for (int i = 0; i < 3; i++) /* the last of them may be late */
        EVENTUALLY(SOON, figure_of(cl[i], "rlock_held", "") == 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(timed_times(cl[0], "rlock_acquire_wait_seconds"), 1);
    EXPECT_INT(timed_times(cl[1], "rlock_acquire_wait_seconds"), 0);
    for (int i = 0; i < 3; i++)
        EVENTUALLY(SOON, timed_times(cl[i], "rlock_hold_seconds") == 1);
    rlock_free(lk);
    for (int i = 0; i < 3; i++)
        rlock_client_free(cl[i]);
    nodes_stop(&ns);
}

enum { COUNTING = 8, ROUNDS = 60 };

static intptr_t lock_again_and_again(void *arg)
{
    rlock *lk = arg;
    for (int i = 0; i < ROUNDS; i++)
        if (rlock_lock(lk) != RLOCK_OK || rlock_unlock(lk) != RLOCK_OK)
            return i;
    return ROUNDS;
}

/* Half of them have the same lock. */
TEST(metrics, figures_may_be_asked_for_while_all_threads_count)
{
    server *sv = server_start(NULL);
    rlock_client *cl = timed(sv, NULL);
    rlock *lk[COUNTING];
    test_thread *t[COUNTING];
    char name[16];
    for (int i = 0; i < COUNTING; i++) {
        snprintf(name, sizeof name, "job%d", i < COUNTING / 2 ? 0 : i);
        lk[i] = test_lock(cl, name);
        t[i] = test_spawn(lock_again_and_again, lk[i]);
    }
    do
        text_of(cl);
    while (timed_times(cl, "rlock_hold_seconds") < COUNTING * ROUNDS);
    for (int i = 0; i < COUNTING; i++)
        EXPECT_INT(test_join(t[i]), ROUNDS);
    EXPECT_INT(figure_of(cl, "rlock_acquires", "result=\"ok\""),
               COUNTING * ROUNDS);
    EXPECT_INT(figure_of(cl, "rlock_held", ""), 0);
    for (int i = 0; i < COUNTING; i++)
        rlock_free(lk[i]);
    rlock_client_free(cl);
    server_stop(sv);
}

/* --- by name --------------------------------------------------------------- */

static rlock_client *naming(server *sv, unsigned names)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.metrics_names = names;
    opts.metrics = true;
    return server_client(sv, &opts);
}

static void use(rlock_client *cl, const char *name)
{
    rlock *lk = test_lock(cl, name);
    lock_times(lk, 2);
    unlock_times(lk, 2, RLOCK_OK);
    rlock_free(lk);
}

TEST(metrics, the_first_names_are_told_apart_and_the_others_together)
{
    server *sv = server_start(NULL);
    rlock_client *cl = naming(sv, 2);
    for (int i = 0; i < 2; i++) {
        use(cl, "a");
        use(cl, "b");
        use(cl, "c");
        use(cl, "other");
    }
    EXPECT_INT(figure_of(cl, "rlock_releases", "name=\"a\""), 4);
    EXPECT_INT(figure_of(cl, "rlock_releases", "name=\"b\""), 4);
    EXPECT_INT(figure_of(cl, "rlock_releases", "name=\"other\""), 8);
    EXPECT_INT(figure_of(cl, "rlock_acquires", "name=\"b\",result=\"ok\""), 4);
    EXPECT_INT(figure_of(cl, "rlock_hold_seconds", "name=\"a\""), 2);
    EXPECT_INT(figure_of(cl, "rlock_hold_seconds", "name=\"other\""), 4);
    EXPECT(!strstr(text_of(cl), "name=\"c\""));
    EXPECT_INT(figure_of(cl, "rlock_reconnects", ""), 0);
    rlock_client_free(cl);
    server_stop(sv);
}

TEST(metrics, who_waits_waits_for_a_name)
{
    scene s = scene_held(0, 0);
    rlock_client *other = naming(s.sv, 10);
    rlock *lk = test_lock(other, SCENE_LOCK);
    const char *label = "name=\"" SCENE_LOCK "\"";
    test_thread *t = test_spawn(wait_and_unlock, lk);
    EVENTUALLY(SOON, figure_of(other, "rlock_waiting", "name=\"other\"") == 0 &&
                         strstr(text_of(other), SCENE_LOCK "\"} 1\n"));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
    EXPECT_INT(figure_of(other, "rlock_waiting", label), 0);
    EXPECT_INT(figure_of(other, "rlock_acquires_contended", label), 1);
    EXPECT(figure_of(other, "rlock_waited_seconds", label) > 0);
    rlock_free(lk);
    rlock_client_free(other);
    scene_stop(&s);
}

TEST(metrics, a_lock_of_several_counts_by_name_where_it_counts)
{
    nodes ns = nodes_start(3);
    rlock_client *cl[3];
    rlock *lk;
    for (int i = 0; i < 3; i++)
        cl[i] = naming(ns.sv[i], 1);
    EXPECT_STATUS(rlock_red_new(cl, 3, "r", &lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    for (int i = 0; i < 3; i++)
        EVENTUALLY(SOON, strstr(text_of(cl[i]), "rlock_held{name=\"r\"} 1\n"));
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(figure_of(cl[0], "rlock_acquires", "name=\"r\",result=\"ok\""),
               1);
    EXPECT_INT(figure_of(cl[0], "rlock_releases", "name=\"r\""), 1);
    for (int i = 0; i < 3; i++)
        EVENTUALLY(SOON, figure_of(cl[i], "rlock_held", "name=\"r\"") == 0);
    rlock_free(lk);
    for (int i = 0; i < 3; i++)
        rlock_client_free(cl[i]);
    nodes_stop(&ns);
}

TEST(metrics, at_most_1000_names_are_told)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.metrics_names = 1001;
    expect_refused(&opts, RLOCK_EINVAL);
    EXPECT_CONTAINS(message(), "metrics_names (at most 1000)");
}

/* --- as text -------------------------------------------------------------- */

TEST(metrics, a_closed_client_among_several_leaves_nothing_written)
{
    server *sv = server_start(NULL);
    rlock_client *clients[] = {labelled(sv, "a"), labelled(sv, "b"),
                               labelled(sv, "c")};
    rlock *keeps_it = test_lock(clients[1], SCENE_LOCK);
    EXPECT_STATUS(write_text(clients, 3, RLOCK_METRICS_TEXT), RLOCK_OK);
    EXPECT(written.len > 0);
    rlock_client_free(clients[1]);
    EXPECT_STATUS(write_text(clients, 3, RLOCK_METRICS_TEXT), RLOCK_ECLOSED);
    EXPECT_INT(written.pieces, 0);
    rlock_free(keeps_it);
    rlock_client_free(clients[0]);
    rlock_client_free(clients[2]);
    server_stop(sv);
}

static void expect_alike(server *sv, const char *one, const char *other)
{
    rlock_client *clients[] = {labelled(sv, one), labelled(sv, other)};
    EXPECT_STATUS(write_text(clients, 2, RLOCK_METRICS_TEXT), RLOCK_EINVAL);
    EXPECT_CONTAINS(message(), "clients 1 and 2 have the same metrics_label");
    EXPECT_INT(written.pieces, 0);
    rlock_client_free(clients[0]);
    rlock_client_free(clients[1]);
}

/* The last two are the same once they are written. */
TEST(metrics, clients_that_nobody_could_tell_apart_are_refused)
{
    server *sv = server_start(NULL);
    expect_alike(sv, "orders", "orders");
    expect_alike(sv, NULL, NULL);
    expect_alike(sv, "\xfe", "\xff");
    server_stop(sv);
}

TEST(metrics, one_client_without_a_label_may_be_among_others)
{
    server *sv = server_start(NULL);
    rlock_client *clients[] = {labelled(sv, NULL), labelled(sv, "b")};
    EXPECT_STATUS(write_text(clients, 2, RLOCK_METRICS_TEXT), RLOCK_OK);
    EXPECT_CONTAINS(written.of, "\nrlock_held 0\nrlock_held{client=\"b\"} 0\n");
    rlock_client_free(clients[0]);
    rlock_client_free(clients[1]);
    server_stop(sv);
}

static bool free_both(const char *bytes, size_t len, void *arg)
{
    rlock_client **clients = arg;
    (void)bytes;
    for (size_t i = 0; i < 2; i++) {
        rlock_client_free(clients[i]);
        clients[i] = NULL;
    }
    return len > 0;
}

TEST(metrics, who_writes_may_free_the_clients)
{
    server *sv = server_start(NULL);
    rlock_client *clients[] = {labelled(sv, "a"), labelled(sv, "b")};
    EXPECT_STATUS(
        rlock_metrics_write(clients, 2, RLOCK_METRICS_TEXT, free_both, clients),
        RLOCK_OK);
    EXPECT(!clients[0]);
    server_stop(sv);
}

TEST(metrics, who_wants_no_more_is_not_asked_again)
{
    scene s = scene_start(0, 0);
    text_of(s.cl);
    size_t pieces = written.pieces;
    EXPECT(pieces > 0);
    written = (text){.most = 1};
    EXPECT_STATUS(rlock_metrics_write(&s.cl, 1, RLOCK_METRICS_OPENMETRICS, take,
                                      &written),
                  RLOCK_OK);
    EXPECT_INT(written.pieces, 1);
    scene_stop(&s);
}

TEST(metrics, wrong_arguments_are_refused)
{
    scene s = scene_start(0, 0);
    rlock_client *none = NULL;
    rlock_metrics_format strange = (rlock_metrics_format)3;
    EXPECT_STATUS(write_text(NULL, 1, RLOCK_METRICS_TEXT), RLOCK_EINVAL);
    EXPECT_STATUS(write_text(&none, 1, RLOCK_METRICS_TEXT), RLOCK_EINVAL);
    EXPECT_STATUS(write_text(&s.cl, 1, strange), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_metrics_write(&s.cl, 1, 0, NULL, NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_metrics_each(NULL, sum_up, NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_metrics_each(s.cl, NULL, NULL), RLOCK_EINVAL);
    EXPECT_STATUS(write_text(NULL, 0, RLOCK_METRICS_OPENMETRICS), RLOCK_OK);
    EXPECT_STR(written.of, "# EOF\n");
    EXPECT(!rlock_metrics_content_type(strange));
    EXPECT_CONTAINS(rlock_metrics_content_type(RLOCK_METRICS_TEXT),
                    "text/plain; version=0.0.4");
    scene_stop(&s);
}

static void expect_label_refused(const char *label)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.metrics_label = label;
    expect_refused(&opts, RLOCK_EINVAL);
    EXPECT_CONTAINS(message(), "metrics_label (1 to 255 bytes)");
}

TEST(metrics, a_label_has_1_to_255_bytes)
{
    char label[257] = "";
    server *sv = server_start(NULL);
    expect_label_refused("");
    memset(label, 'x', 256);
    expect_label_refused(label);
    label[255] = '\0';
    rlock_client *cl = labelled(sv, label);
    EXPECT_CONTAINS(text_of(cl), label);
    rlock_client_free(cl);
    server_stop(sv);
}

/* --- read back ------------------------------------------------------------ */

/* A Python that has Prometheus' client; or the test is skipped. */
static const char *python(void)
{
    static const char *const all[] = {"python3", "/usr/bin/python3"};
    char command[120];
    for (size_t i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "%s -c 'import prometheus_client' 2>/dev/null", all[i]);
        if (system(command) == 0)
            return all[i];
    }
    SKIP("no python3 with prometheus_client");
}

/* What it makes of the text that was written; in written. */
static void read_back(const char *with, const char *format)
{
    char path[] = "/tmp/rlock.metrics.XXXXXX", command[600];
    int fd = mkstemp(path);
    EXPECT(fd >= 0 &&
           write(fd, written.of, written.len) == (ssize_t)written.len);
    close(fd);
    snprintf(command, sizeof command,
             "%s " RLOCK_SOURCE_DIR "/tests/server/metrics/read.py %s %s", with,
             format, path);
    FILE *out = popen(command, "re");
    EXPECT(out != NULL);
    written.len = fread(written.of, 1, sizeof written.of - 1, out);
    written.of[written.len] = '\0';
    int status = pclose(out);
    unlink(path);
    EXPECT_INT(status, 0);
}

#define HOSTILE "a \"b\\\n\xff} 1\n# \xf0\x9f\x94\x92"
#define AS_JSON "\"a \\\"b\\\\\\n\\ufffd} 1\\n# \\ud83d\\udd12\""

static void expect_read_back(rlock_metrics_format format, const char *name)
{
    const char *with = python();
    server *sv = server_start(NULL);
    rlock_client *clients[] = {timed(sv, HOSTILE), timed(sv, "b")};
    rlock *lk = test_lock(clients[0], SCENE_LOCK);
    lock_times(lk, 2);
    EXPECT_STATUS(write_text(clients, 2, format), RLOCK_OK);
    read_back(with, name);
    EXPECT_CONTAINS(written.of,
                    " counter - rlock_acquires_total {client=" AS_JSON
                    ",result=\"ok\"} 2.0\n");
    EXPECT_CONTAINS(written.of, " rlock_acquires_total {client=\"b\","
                                "result=\"ok\"} 0.0\n");
    EXPECT_CONTAINS(written.of,
                    "rlock_held gauge - rlock_held {client=" AS_JSON "} 1.0\n");
    EXPECT_CONTAINS(written.of,
                    " rlock_acquire_wait_seconds_bucket {client=" AS_JSON
                    ",le=\"300.0\"} 1.0\n");
    EXPECT_CONTAINS(written.of,
                    " rlock_acquire_wait_seconds_bucket {client=" AS_JSON
                    ",le=\"+Inf\"} 1.0\n");
    EXPECT_CONTAINS(written.of,
                    " rlock_hold_seconds_count {client=\"b\"} 0.0\n");
    unlock_times(lk, 2, RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(clients[0]);
    rlock_client_free(clients[1]);
    server_stop(sv);
}

TEST(metrics, prometheus_reads_its_format_also_with_a_hostile_label)
{
    expect_read_back(RLOCK_METRICS_TEXT, "text");
}

#define STRANGE         "a \"b\\\n} 1\n# \xf0\x9f\x94\x92"
#define STRANGE_AS_JSON "\"a \\\"b\\\\\\n} 1\\n# \\ud83d\\udd12\""

/* Two names that would be the same label are none of their own. */
TEST(metrics, openmetrics_is_read_also_with_hostile_names)
{
    const char *with = python();
    server *sv = server_start(NULL);
    rlock_client *cl = naming(sv, 1000);
    use(cl, STRANGE);
    use(cl, "a\xff");
    use(cl, "a\xfe");
    EXPECT_STATUS(write_text(&cl, 1, RLOCK_METRICS_OPENMETRICS), RLOCK_OK);
    read_back(with, "openmetrics");
    EXPECT_CONTAINS(written.of,
                    " rlock_releases_total {name=" STRANGE_AS_JSON "} 2.0\n");
    EXPECT_CONTAINS(written.of, " rlock_releases_total {name=\"other\"} 4.0\n");
    EXPECT_CONTAINS(written.of,
                    " rlock_hold_seconds_count {name=" STRANGE_AS_JSON
                    "} 1.0\n");
    rlock_client_free(cl);
    server_stop(sv);
}

TEST(metrics, openmetrics_is_read_also_with_a_hostile_label)
{
    expect_read_back(RLOCK_METRICS_OPENMETRICS, "openmetrics");
    EXPECT_CONTAINS(written.of, "rlock_held_seconds counter seconds ");
    EXPECT_CONTAINS(written.of, "rlock_hold_seconds histogram seconds ");
}
