#include "client/figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/named.h"
#include "base/utf8.h"
#include "hold/name_stats.h"

_Static_assert(offsetof(rl_figures, counted) == 0 &&
                   offsetof(rl_name_figures, counted) == 0,
               "a family's counters are as far from the beginning of both");

/* Since when something has lasted; RL_NEVER: there is none. */
static void put_age(rl_counter *to, int64_t since_us, int64_t now_us)
{
    rl_add(to, (uint64_t)(since_us < now_us ? now_us - since_us : 0));
}

static void copy_counters(rl_counter *to, const rl_counter *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rl_add(&to[i], rl_count_of(&from[i]));
}

static void read_name(rl_name_figures *to, const rl_named_one *one)
{
    const rl_name_stats *from = one->bytes;
    copy_counters(to->counted, from->counted, RL_NAMED_COUNTERS);
    for (size_t i = 0; i < RL_NAMED_TIMES; i++)
        rl_histogram_copy(&to->times[i], &from->times[i]);
    rl_label_escape(to->name, one->name, one->len);
}

/* Those that come meanwhile are left to the next time. */
static bool read_names(rl_figures *to, const rl_named *from)
{
    size_t n = 0;
    const rl_named_one *x;
    for (x = rl_named_first(from); x; x = atomic_load(&x->next))
        n++;
    to->names = calloc(n, sizeof *to->names);
    if (!to->names)
        return false;
    to->n_names = n;
    x = rl_named_first(from);
    for (size_t i = 0; i < n; i++, x = atomic_load(&x->next))
        read_name(&to->names[i], x);
    return true;
}

bool rl_figures_read(rl_figures *to, rl_core *c, int64_t now_us)
{
    memset(to, 0, sizeof *to);
    copy_counters((rl_counter *)&to->counted, (const rl_counter *)&c->stats,
                  RL_COUNTERS);
    to->timed = c->stats.times != NULL;
    for (size_t i = 0; to->timed && i < RL_TIMES; i++)
        rl_histogram_copy(&to->times[i], &c->stats.times[i]);
    put_age(&to->oldest_hold_us, rl_holds_oldest(&c->holds), now_us);
    put_age(&to->longest_wait_us, rl_rooms_longest(&c->rooms), now_us);
    rl_add(&to->one, 1);
    rl_label_escape(to->client, c->set.metrics_label,
                    strlen(c->set.metrics_label));
    return !c->stats.named || read_names(to, c->stats.named);
}

void rl_figures_fini(rl_figures *f)
{
    free(f->names);
}

void rl_family_each(const rl_figures *f, const rl_family *y,
                    void (*each)(const rl_sample *x, void *arg), void *arg)
{
    size_t names = rl_family_names(y, f);
    rl_sample x = {.of = f, .family = y};
    if (!rl_family_is_told(y, f))
        return;
    for (size_t k = 0; k < (names ? names : 1); k++) {
        x.name = names ? &f->names[k] : NULL;
        for (x.i = 0; x.i < y->samples; x.i++)
            each(&x, arg);
    }
}

const rl_histogram *rl_sample_times(const rl_sample *x)
{
    return &(x->name ? x->name->times : x->of->times)[x->family->at];
}

uint64_t rl_sample_value(const rl_sample *x)
{
    const char *from = x->name ? (const char *)x->name : (const char *)x->of;
    const void *first = from + x->family->at;
    return rl_count_of((const rl_counter *)first + x->i);
}

static size_t put_label(char out[RL_LABELS_MAX], size_t n, const char *label,
                        const char *value)
{
    return n + (size_t)snprintf(out + n, RL_LABELS_MAX - n, "%s%s=\"%s\"",
                                n ? "," : "", label, value);
}

void rl_labels_write(char out[RL_LABELS_MAX], const rl_sample *x)
{
    size_t n = 0;
    const rl_family *y = x->family;
    *out = '\0';
    if (*x->of->client)
        n = put_label(out, n, "client", x->of->client);
    if (x->name)
        n = put_label(out, n, "name", x->name->name);
    if (y->label)
        put_label(out, n, y->label, y->values[x->i]);
}

void rl_label_escape(char *out, const char *text, size_t len)
{
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = rl_utf8_character(text + i, len - i);
        if (n == 0) {
            memcpy(out, "\xef\xbf\xbd", 3);
            out += 3;
            continue;
        }
        if (text[i] == '\\' || text[i] == '"' || text[i] == '\n')
            *out++ = '\\';
        memcpy(out, text[i] == '\n' ? "n" : text + i, n);
        out += n;
    }
    *out = '\0';
}
