/* The table of families, what it reads, and labels as they are written. */
#include "client/figures.h"

#include <errno.h>

#include "hold.h"
#include "shim.h"
#include "wait.h"

typedef struct wanted {
    const char *family, *name, *value; /* NULL: any */
    size_t found;
    rl_sample is; /* the first one */
} wanted;

static bool fits(const char *wanted, const char *is)
{
    return !wanted || (is && strcmp(wanted, is) == 0);
}

static void compare(const rl_sample *x, void *arg)
{
    wanted *w = arg;
    const rl_family *y = x->family;
    if (!fits(w->name, x->name ? x->name->name : NULL) ||
        !fits(w->value, y->label ? y->values[x->i] : NULL))
        return;
    if (w->found++ == 0)
        w->is = *x;
}

static wanted search(const rl_figures *f, const char *family, const char *name,
                     const char *value)
{
    wanted w = {.family = family, .name = name, .value = value};
    for (size_t i = 0; i < rl_families_count; i++)
        if (strcmp(rl_families[i].name, family) == 0)
            rl_family_each(f, &rl_families[i], compare, &w);
    return w;
}

static uint64_t named_figure(const rl_figures *f, const char *family,
                             const char *name, const char *value)
{
    wanted w = search(f, family, name, value);
    EXPECT(w.found > 0);
    return rl_sample_value(&w.is);
}

static uint64_t figure(const rl_figures *f, const char *family,
                       const char *value)
{
    return named_figure(f, family, NULL, value);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

TEST(figures, a_family_is_called_as_the_formats_want_it)
{
    for (size_t i = 0; i < rl_families_count; i++) {
        const rl_family *y = &rl_families[i];
        EXPECT(strncmp(y->name, "rlock_", 6) == 0);
        EXPECT(!ends_with(y->name, "_total"));
        EXPECT(rl_family_is_seconds(y) == ends_with(y->name, "_seconds"));
        EXPECT(ends_with(y->help, "."));
        EXPECT(!strpbrk(y->help, "\\\n\""));
        for (size_t k = 0; k < i; k++)
            EXPECT(strcmp(y->name, rl_families[k].name) != 0);
    }
}

/* Where families are read: no two share a counter, and none is behind the end.
 */
TEST(figures, each_sample_has_a_counter_of_its_own)
{
    rl_figures f;
    memset(&f, 0, sizeof f);
    for (size_t i = 0; i < rl_families_count; i++) {
        const rl_family *y = &rl_families[i];
        bool times = y->type == RLOCK_METRIC_HISTOGRAM;
        EXPECT(!times || (y->at < RL_TIMES && y->samples == 1));
        for (size_t k = 0; !times && k < y->samples; k++) {
            size_t at = y->at + k * sizeof(rl_counter);
            rl_sample x = {.of = &f, .family = y, .i = k};
            EXPECT(at < offsetof(rl_figures, times));
            EXPECT_INT(rl_sample_value(&x), 0);
            rl_add((rl_counter *)(void *)((char *)&f + at), 1);
            EXPECT(!y->label || *y->values[k]);
        }
    }
}

static rl_figures read_at(play *p)
{
    rl_figures f;
    EXPECT(rl_figures_read(&f, play_core(p, 0), p->now_us));
    return f;
}

TEST(figures, what_is_counted_is_told_by_its_family)
{
    play p;
    play_open(&p, 1);
    rl_stats *s = &play_core(&p, 0)->stats;
    rl_stats_acquired(s, "jobs", 4, RLOCK_TIMEOUT);
    rl_add(&s->lost[RL_LOSS_GONE], 2);
    rl_add(&s->lost[RL_LOSS_CLOSED], 3);
    rl_add(&s->replica_shortfalls, 4);
    rl_figures f = read_at(&p);
    EXPECT_INT(figure(&f, "rlock_acquires", "timeout"), 1);
    EXPECT_INT(figure(&f, "rlock_acquires", "ok"), 0);
    EXPECT_INT(figure(&f, "rlock_lost", "gone"), 2);
    EXPECT_INT(figure(&f, "rlock_lost", "closed"), 3);
    EXPECT_INT(figure(&f, "rlock_replica_shortfalls", NULL), 4);
    EXPECT_INT(figure(&f, "rlock_build_info", rlock_version()), 1);
    play_close(&p);
}

TEST(figures, the_oldest_hold_is_the_one_that_began_first)
{
    play p;
    play_open(&p, 1);
    EXPECT_INT(figure(&(rl_figures){0}, "rlock_oldest_hold_seconds", NULL), 0);
    rl_hold *first = play_hold(&p, 0, "first", LEASE_MS);
    play_pass(&p, 100 * MS);
    rl_hold *second = play_hold(&p, 0, "second", LEASE_MS);
    play_pass(&p, 30 * MS);
    rl_figures f = read_at(&p);
    EXPECT_INT(figure(&f, "rlock_oldest_hold_seconds", NULL), 130 * MS);
    end(&p, first);
    f = read_at(&p);
    EXPECT_INT(figure(&f, "rlock_oldest_hold_seconds", NULL), 30 * MS);
    end(&p, second);
    f = read_at(&p);
    EXPECT_INT(figure(&f, "rlock_oldest_hold_seconds", NULL), 0);
    play_close(&p);
}

/* Its answer was slower than that of one which was asked for later. */
TEST(figures, a_hold_that_is_granted_late_is_as_old_as_its_call)
{
    play p;
    play_open(&p, 1);
    rl_hold *early = play_draft(&p, 0, &play_job, LEASE_MS);
    play_pass(&p, 20 * MS);
    play_hold(&p, 0, "other", LEASE_MS);
    rl_holds *t = table(&p);
    rl_mutex_lock(&t->mutex);
    rl_hold_grant_locked(t, early, 1, PLAY_BEGAN_US, false, p.now_us);
    rl_mutex_unlock(&t->mutex);
    rl_figures f = read_at(&p);
    EXPECT_INT(figure(&f, "rlock_oldest_hold_seconds", NULL), 20 * MS);
    play_close(&p);
}

TEST(figures, a_hold_that_is_lost_is_not_the_oldest)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    play_pass(&p, 10 * MS);
    lose(&p, 0, h, RL_LOSS_GONE);
    rl_figures f = read_at(&p);
    EXPECT_INT(figure(&f, "rlock_oldest_hold_seconds", NULL), 0);
    EXPECT_INT(figure(&f, "rlock_lost", "gone"), 1);
    play_close(&p);
}

TEST(figures, the_longest_wait_is_since_the_call_began)
{
    wait_for w;
    open_wait(&w, 5000);
    EXPECT_INT(begin(&w), RL_ASK);
    play_pass(&w.p, 3 * MS);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    play_pass(&w.p, 40 * MS);
    rl_figures f = read_at(&w.p);
    EXPECT_INT(figure(&f, "rlock_waiting", NULL), 1);
    EXPECT_INT(figure(&f, "rlock_longest_wait_seconds", NULL), 43 * MS);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(200)), RL_DONE);
    f = read_at(&w.p);
    EXPECT_INT(figure(&f, "rlock_longest_wait_seconds", NULL), 0);
    close_wait(&w, RLOCK_OK);
}

/* --- how long things take ------------------------------------------------- */

static const rl_histogram *recorded(const rl_figures *f, const char *family,
                                    const char *name)
{
    wanted w = search(f, family, name, NULL);
    EXPECT_INT(w.found, 1);
    EXPECT_INT(w.is.family->type, RLOCK_METRIC_HISTOGRAM);
    return rl_sample_times(&w.is);
}

/* It has just one, of so long. */
static void expect_one_named(const rl_figures *f, const char *family,
                             const char *name, int64_t us)
{
    const rl_histogram *h = recorded(f, family, name);
    uint64_t n = 0;
    for (size_t i = 0; i <= RL_BUCKETS; i++)
        n += h->n[i];
    EXPECT_INT(n, 1);
    EXPECT_INT(h->sum_us, us);
    EXPECT_INT(h->n[rl_bucket(us)], 1);
}

static void expect_one(const rl_figures *f, const char *family, int64_t us)
{
    expect_one_named(f, family, NULL, us);
}

static void open_timed(wait_for *w, int64_t wait_ms)
{
    open_wait(w, wait_ms);
    EXPECT(rl_stats_time(&core(w)->stats));
}

TEST(figures, nothing_is_timed_unless_it_is_wanted)
{
    wait_for w;
    open_wait(&w, 0);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(200)), RL_DONE);
    rl_figures f = read_at(&w.p);
    for (size_t i = 0; i < rl_families_count; i++) {
        bool told = rl_families[i].type != RLOCK_METRIC_HISTOGRAM;
        wanted w = search(&f, rl_families[i].name, NULL, NULL);
        EXPECT(rl_family_is_told(&rl_families[i], &f) == told);
        EXPECT((w.found > 0) == told);
    }
    close_wait(&w, RLOCK_OK);
}

TEST(figures, an_acquire_is_timed_from_its_call_to_its_grant)
{
    wait_for w;
    open_timed(&w, 5000);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    play_pass(&w.p, 700 * MS);
    EXPECT_INT(ring(&w), RL_ASK);
    play_pass(&w.p, 3 * MS);
    EXPECT_INT(answer(&w, GRANTED(200)), RL_DONE);
    rl_figures f = read_at(&w.p);
    expect_one(&f, "rlock_acquire_wait_seconds", 703 * MS);
    close_wait(&w, RLOCK_OK);
}

TEST(figures, an_acquire_that_fails_is_not_timed)
{
    wait_for w;
    open_timed(&w, 0);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_DONE);
    rl_figures f = read_at(&w.p);
    const rl_histogram *h = recorded(&f, "rlock_acquire_wait_seconds", NULL);
    EXPECT_INT(h->sum_us, 0);
    EXPECT_INT(h->n[0], 0);
    close_wait(&w, RLOCK_BUSY);
}

TEST(figures, a_call_is_timed_from_when_it_is_sent_to_its_answer)
{
    wait_for w;
    open_timed(&w, 0);
    EXPECT_INT(begin(&w), RL_ASK);
    play_pass(&w.p, 8 * MS);
    EXPECT_INT(answer(&w, GRANTED(200)), RL_DONE);
    rl_figures f = read_at(&w.p);
    expect_one(&f, "rlock_call_seconds", 8 * MS);
    close_wait(&w, RLOCK_OK);
}

TEST(figures, a_hold_is_timed_when_it_ends)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    EXPECT(rl_stats_time(&play_core(&p, 0)->stats));
    play_pass(&p, 40 * MS);
    end(&p, h);
    rl_figures f = read_at(&p);
    expect_one(&f, "rlock_hold_seconds", 40 * MS);
    play_close(&p);
}

TEST(figures, a_hold_is_timed_when_it_is_lost)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    EXPECT(rl_stats_time(&play_core(&p, 0)->stats));
    play_pass(&p, 90 * MS);
    lose(&p, 0, h, RL_LOSS_GONE);
    rl_figures f = read_at(&p);
    expect_one(&f, "rlock_hold_seconds", 90 * MS);
    play_close(&p);
}

/* --- by name --------------------------------------------------------------- */

TEST(figures, of_locks_they_are_told_by_name_if_that_is_wanted)
{
    play p;
    play_open(&p, 1);
    rl_stats *s = &play_core(&p, 0)->stats;
    EXPECT(rl_stats_name(s, 2));
    rl_stats_acquired(s, "a", 1, RLOCK_OK);
    rl_stats_acquired(s, "b", 1, RLOCK_BUSY);
    rl_stats_acquired(s, "c", 1, RLOCK_OK);
    rl_stats_acquired(s, "d", 1, RLOCK_OK);
    rl_add(&s->reconnects, 3);
    rl_figures f = read_at(&p);
    EXPECT_INT(named_figure(&f, "rlock_acquires", "a", "ok"), 1);
    EXPECT_INT(named_figure(&f, "rlock_acquires", "a", "busy"), 0);
    EXPECT_INT(named_figure(&f, "rlock_acquires", "b", "busy"), 1);
    EXPECT_INT(named_figure(&f, "rlock_acquires", "other", "ok"), 2);
    EXPECT_INT(search(&f, "rlock_acquires", "c", "ok").found, 0);
    EXPECT_INT(search(&f, "rlock_acquires", NULL, NULL).found, 3 * RL_RESULTS);
    wanted w = search(&f, "rlock_reconnects", NULL, NULL);
    EXPECT(w.found == 1 && !w.is.name && rl_sample_value(&w.is) == 3);
    rl_figures_fini(&f);
    play_close(&p);
}

TEST(figures, before_there_is_a_name_the_others_are_told)
{
    play p;
    play_open(&p, 1);
    EXPECT(rl_stats_name(&play_core(&p, 0)->stats, 2));
    rl_figures f = read_at(&p);
    EXPECT_INT(search(&f, "rlock_held", NULL, NULL).found, 1);
    EXPECT_INT(named_figure(&f, "rlock_held", "other", NULL), 0);
    rl_figures_fini(&f);
    play_close(&p);
}

TEST(figures, without_memory_for_the_names_nothing_is_read)
{
    play p;
    rl_figures f;
    play_open(&p, 1);
    EXPECT(rl_stats_name(&play_core(&p, 0)->stats, 2));
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    bool read = rl_figures_read(&f, play_core(&p, 0), p.now_us);
    shim_clear(shim_here());
    EXPECT(!read && !f.names);
    rl_figures_fini(&f);
    play_close(&p);
}

TEST(figures, a_hold_counts_for_its_name_until_it_ends)
{
    play p;
    play_open(&p, 1);
    rl_stats *s = &play_core(&p, 0)->stats;
    EXPECT(rl_stats_time(s) && rl_stats_name(s, 2));
    rl_hold *kept = play_hold(&p, 0, "kept", LEASE_MS);
    play_pass(&p, 30 * MS);
    rl_hold *lost = play_hold(&p, 0, "lost", LEASE_MS);
    play_pass(&p, 5 * MS);
    lose(&p, 0, lost, RL_LOSS_GONE);
    rl_figures f = read_at(&p);
    EXPECT_INT(named_figure(&f, "rlock_held", "kept", NULL), 1);
    EXPECT_INT(named_figure(&f, "rlock_held", "lost", NULL), 0);
    EXPECT_INT(named_figure(&f, "rlock_lost", "lost", "gone"), 1);
    EXPECT_INT(named_figure(&f, "rlock_lost", "kept", "gone"), 0);
    expect_one_named(&f, "rlock_hold_seconds", "lost", 5 * MS);
    rl_figures_fini(&f);
    end(&p, kept);
    f = read_at(&p);
    EXPECT_INT(named_figure(&f, "rlock_held", "kept", NULL), 0);
    EXPECT_INT(named_figure(&f, "rlock_held_seconds", "kept", NULL), 35 * MS);
    expect_one_named(&f, "rlock_hold_seconds", "kept", 35 * MS);
    rl_figures_fini(&f);
    play_close(&p);
}

TEST(figures, a_wait_counts_for_its_name_until_it_ends)
{
    wait_for w;
    open_timed(&w, 5000);
    EXPECT(rl_stats_name(&core(&w)->stats, 2));
    const char *name = w.a.what->name;
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    rl_figures f = read_at(&w.p);
    EXPECT_INT(named_figure(&f, "rlock_waiting", name, NULL), 1);
    EXPECT_INT(named_figure(&f, "rlock_acquires_contended", name, NULL), 1);
    rl_figures_fini(&f);
    play_pass(&w.p, 40 * MS);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(200)), RL_DONE);
    f = read_at(&w.p);
    EXPECT_INT(named_figure(&f, "rlock_waiting", name, NULL), 0);
    EXPECT_INT(named_figure(&f, "rlock_waited_seconds", name, NULL), 40 * MS);
    expect_one_named(&f, "rlock_acquire_wait_seconds", name, 40 * MS);
    rl_figures_fini(&f);
    close_wait(&w, RLOCK_OK);
}

/* --- labels --------------------------------------------------------------- */

static const char *escaped(const char *text, size_t len)
{
    static char out[RL_ESCAPED(64)];
    EXPECT(len <= 64);
    memset(out, 'x', sizeof out);
    rl_label_escape(out, text, len);
    return out;
}

#define ESCAPES(name, text, wanted)                                            \
    TEST(figures, label_##name)                                                \
    {                                                                          \
        EXPECT_STR(escaped(text, sizeof text - 1), wanted);                    \
    }

#define UNKNOWN "\xef\xbf\xbd"
ESCAPES(plain_stays, "orders 1", "orders 1")
ESCAPES(empty_stays, "", "")
ESCAPES(quote_is_escaped, "a\"b", "a\\\"b")
ESCAPES(backslash_is_escaped, "a\\b", "a\\\\b")
ESCAPES(newline_is_escaped, "a\nb", "a\\nb")
ESCAPES(zero_is_unknown, "a\0b", "a" UNKNOWN "b")
ESCAPES(two_bytes_stay, "\xc3\xa4", "\xc3\xa4")
ESCAPES(three_bytes_stay, "\xe2\x82\xac", "\xe2\x82\xac")
ESCAPES(four_bytes_stay, "\xf0\x9f\x94\x92", "\xf0\x9f\x94\x92")
ESCAPES(last_character_stays, "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf")
ESCAPES(no_utf8_is_unknown, "a\xff\xfe", "a" UNKNOWN UNKNOWN)
ESCAPES(continuation_is_unknown, "\x80z", UNKNOWN "z")
ESCAPES(cut_character_is_unknown, "z\xe2\x82", "z" UNKNOWN UNKNOWN)
ESCAPES(broken_character_is_unknown, "\xe2\x28z", UNKNOWN "(z")
ESCAPES(long_form_is_unknown, "\xc0\xaf", UNKNOWN UNKNOWN)
ESCAPES(long_three_is_unknown, "\xe0\x80\xaf", UNKNOWN UNKNOWN UNKNOWN)
ESCAPES(surrogate_is_unknown, "\xed\xa0\x80", UNKNOWN UNKNOWN UNKNOWN)
ESCAPES(too_large_is_unknown, "\xf4\x90\x80\x80",
        UNKNOWN UNKNOWN UNKNOWN UNKNOWN)

/* Whatever is behind it. */
TEST(figures, a_character_that_ends_behind_the_text_is_unknown)
{
    EXPECT_STR(escaped("z\xe2\x82\xac", 3), "z" UNKNOWN UNKNOWN);
    EXPECT_STR(escaped("z\xc3\xa4", 2), "z" UNKNOWN);
}

static void expect_whole(const rl_sample *x, void *longest)
{
    char labels[RL_LABELS_MAX];
    rl_labels_write(labels, x);
    size_t len = strlen(labels);
    EXPECT_INT(labels[len - 1], '"');
    if (len > *(size_t *)longest)
        *(size_t *)longest = len;
}

TEST(figures, the_longest_label_has_room)
{
    play p;
    char name[RLOCK_NAME_MAX];
    size_t longest = 0;
    play_open(&p, 1);
    rl_core *c = play_core(&p, 0);
    EXPECT(rl_stats_name(&c->stats, 1));
    memset(c->set.metrics_label, 0xff, sizeof c->set.metrics_label - 1);
    memset(name, '"', sizeof name);
    rl_stats_acquired(&c->stats, name, sizeof name, RLOCK_OK);
    rl_figures f = read_at(&p);
    for (size_t i = 0; i < rl_families_count; i++)
        rl_family_each(&f, &rl_families[i], expect_whole, &longest);
    EXPECT(longest > 3 * (size_t)RL_HOST_MAX + 2 * sizeof name);
    rl_figures_fini(&f);
    play_close(&p);
}

/* --- the manual ----------------------------------------------------------- */

static const char *const types[] = {[RLOCK_METRIC_COUNTER] = "counter",
                                    [RLOCK_METRIC_GAUGE] = "gauge",
                                    [RLOCK_METRIC_HISTOGRAM] = "histogram"};

/* The family's row of the table there. */
static void write_row(char *out, size_t size, const rl_family *y)
{
    bool total = y->type == RLOCK_METRIC_COUNTER;
    int n = snprintf(out, size, "| `%s%s` | %s | ", y->name,
                     total ? "_total" : "", types[y->type]);
    bool names = rl_family_has_names(y);
    if (names)
        n += snprintf(out + n, size - (size_t)n, "`name`%s",
                      y->label ? "; " : "");
    if (y->label)
        n += snprintf(out + n, size - (size_t)n, "`%s`", y->label);
    bool named = y->label && strcmp(y->label, "version") != 0;
    for (size_t k = 0; named && k < y->samples; k++)
        n += snprintf(out + n, size - (size_t)n, "%s %s", k ? "," : ":",
                      y->values[k]);
    snprintf(out + n, size - (size_t)n, "%s| %s |\n",
             names || y->label ? " " : "", y->help);
}

TEST(figures, the_manual_has_the_table_of_families)
{
    char line[512], row[512];
    size_t n = 0;
    FILE *manual = fopen(RLOCK_SOURCE_DIR "/src/doc/metrics.md", "r");
    EXPECT(manual != NULL);
    while (fgets(line, sizeof line, manual)) {
        if (strncmp(line, "| `rlock_", 9) != 0)
            continue;
        EXPECT(n < rl_families_count);
        write_row(row, sizeof row, &rl_families[n++]);
        EXPECT_STR(line, row);
    }
    fclose(manual);
    EXPECT_INT(n, rl_families_count);
}
