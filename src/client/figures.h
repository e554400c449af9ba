/*
 * What a client has to tell in figures. One table has each family: what it is
 * called, what it means, and where it is read; both formats of text,
 * rlock_metrics_each() and metrics.md come from it.
 */
#ifndef RL_CLIENT_FIGURES_H
#define RL_CLIENT_FIGURES_H

#include <rlock/metrics.h>

#include "base/histogram.h"
#include "op/core.h"

/* Room for a label that was escaped: of a byte may become three. */
#define RL_ESCAPED(bytes) (3 * (bytes) + 1)

/* Those of one name; or of all that have none of their own. */
typedef struct rl_name_figures {
    rl_counter counted[RL_NAMED_COUNTERS]; /* as `counted` of rl_figures */
    rl_histogram times[RL_NAMED_TIMES];
    char name[RL_ESCAPED(RLOCK_NAME_MAX)];
} rl_name_figures;

/* A client's, read at one time. */
typedef struct rl_figures {
    rl_stats counted;
    rl_counter oldest_hold_us, longest_wait_us, one;
    rl_histogram times[RL_TIMES]; /* if `timed` */
    bool timed;
    rl_name_figures *names; /* instead of what `counted` and `times` have of all
                               together; its own; NULL: that is told */
    size_t n_names;
    char client[RL_ESCAPED(RL_HOST_MAX)]; /* its metrics_label, escaped */
} rl_figures;

/* False: out of memory. */
bool rl_figures_read(rl_figures *to, rl_core *c, int64_t now_us);
void rl_figures_fini(rl_figures *f);

typedef struct rl_family {
    const char *name; /* without _total */
    const char *help;
    const char *unit; /* "seconds": in microseconds here; or "" */
    rlock_metric_type type;
    const char *label; /* its samples differ by it; NULL: there is one */
    const char *const *values; /* of that label; for each sample */
    size_t samples;
    /* Where the first one's counter is in rl_figures; the others follow. Of a
       histogram, the rl_time. */
    size_t at;
} rl_family;

extern const rl_family rl_families[];
extern const size_t rl_families_count;

static inline bool rl_family_is_seconds(const rl_family *y)
{
    return *y->unit != '\0';
}

/* Does the client tell it? */
static inline bool rl_family_is_told(const rl_family *y, const rl_figures *f)
{
    return y->type != RLOCK_METRIC_HISTOGRAM || f->timed;
}

/* May it be told by name? */
static inline bool rl_family_has_names(const rl_family *y)
{
    return y->type == RLOCK_METRIC_HISTOGRAM
               ? y->at < RL_NAMED_TIMES
               : y->at < RL_NAMED_COUNTERS * sizeof(rl_counter);
}

/* The names of its samples, of which each has all others of its labels, too; 0:
   it is not told by name. */
static inline size_t rl_family_names(const rl_family *y, const rl_figures *f)
{
    return rl_family_has_names(y) ? f->n_names : 0;
}

/* One sample. */
typedef struct rl_sample {
    const rl_figures *of;
    const rl_family *family;
    const rl_name_figures *name; /* NULL: of all together */
    size_t i;                    /* which of its label's values it has */
} rl_sample;

/* Each that is told of a family. */
void rl_family_each(const rl_figures *f, const rl_family *y,
                    void (*each)(const rl_sample *x, void *arg), void *arg);

const rl_histogram *rl_sample_times(const rl_sample *x);
uint64_t rl_sample_value(const rl_sample *x); /* of no histogram */

/* What the labels of a sample can be at most. */
#define RL_LABELS_MAX                                                          \
    (RL_ESCAPED(RL_HOST_MAX) + RL_ESCAPED(RLOCK_NAME_MAX) + 64)

/* As they stand in braces; "": it has none. */
void rl_labels_write(char out[RL_LABELS_MAX], const rl_sample *x);

/*
 * As the value of a label: what would end it is escaped, and each byte that is
 * no part of UTF-8 becomes U+FFFD. out: room for RL_ESCAPED(len).
 */
void rl_label_escape(char *out, const char *text, size_t len);

#endif
