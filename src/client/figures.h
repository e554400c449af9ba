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

/* A client's, read at one time. */
typedef struct rl_figures {
    rl_stats counted;
    rl_counter oldest_hold_us, longest_wait_us, one;
    rl_histogram times[RL_TIMES]; /* if `timed` */
    bool timed;
    char client[RL_ESCAPED(RL_HOST_MAX)]; /* its metrics_label, escaped */
} rl_figures;

void rl_figures_read(rl_figures *to, rl_core *c, int64_t now_us);

typedef struct rl_family {
    const char *name; /* without _total */
    const char *help;
    const char *unit; /* "seconds": in microseconds here; or "" */
    rlock_metric_type type;
    const char *label; /* its samples differ by it; NULL: there is one */
    const char *const *values; /* of that label; for each sample */
    size_t samples;
    /* The first one's counter, or histogram, in rl_figures; the others follow.
     */
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

static inline const rl_histogram *rl_sample_times(const rl_figures *f,
                                                  const rl_family *y)
{
    return (const rl_histogram *)(const void *)((const char *)f + y->at);
}

static inline uint64_t rl_sample(const rl_figures *f, const rl_family *y,
                                 size_t i)
{
    const char *first = (const char *)f + y->at;
    return rl_count_of((const rl_counter *)(const void *)first + i);
}

/* What the labels of a sample can be at most. */
#define RL_LABELS_MAX (RL_ESCAPED(RL_HOST_MAX) + 64)

/* As they stand in braces; "": it has none. */
void rl_labels_write(char out[RL_LABELS_MAX], const rl_figures *f,
                     const rl_family *y, size_t i);

/*
 * As the value of a label: what would end it is escaped, and each byte that is
 * no part of UTF-8 becomes U+FFFD. out: room for RL_ESCAPED(len).
 */
void rl_label_escape(char *out, const char *text, size_t len);

#endif
