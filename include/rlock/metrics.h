/*
 * Figures of clients, collected when they are asked for: as text for Prometheus
 * and what reads its formats, or one by one for OpenTelemetry, statsd, JSON.
 * There is no registry, no thread and no port: the program's HTTP server calls
 * rlock_metrics_write(). Which there are, and what they mean: metrics.md.
 *
 * No lock's name is told, as what reads figures keeps a series for each, unless
 * the program asks for some (metrics_names in options.h): then figures of locks
 * have a label name="...", which is the lock's if it was one of the first to be
 * used, and "other" if not, or if the name is no UTF-8.
 */
#ifndef RLOCK_METRICS_H
#define RLOCK_METRICS_H

#include <rlock/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Formats of text; numbers are part of the ABI. */
typedef enum rlock_metrics_format {
    RLOCK_METRICS_TEXT = 0,        /* Prometheus' own, 0.0.4 */
    RLOCK_METRICS_OPENMETRICS = 1, /* OpenMetrics 1.0 */
    /* The same without the # EOF, to go in front of what the program has. */
    RLOCK_METRICS_OPENMETRICS_PART = 2
} rlock_metrics_format;

/* Takes a piece of the text, which is valid during the call only. False: no
   more is wanted. */
typedef bool rlock_write_fn(const char *bytes, size_t len, void *arg);

/*
 * Writes the figures of some clients as one text, in which each family stands
 * once: the samples of a client with a metrics_label (options.h) have the label
 * client="...". Bytes of it that are no UTF-8 become U+FFFD.
 *
 * clients  n of them; 0: a text without figures
 * write    called on this thread, for some kilobytes at a time, after all has
 *          been read: it may call anything, and free the clients, too
 *
 * Without I/O of its own. Counters that change together may be seen one apart.
 *
 * RLOCK_OK        all was written, or `write` has answered false; with any
 *                 other status nothing was
 * RLOCK_EINVAL    also: a format that there is not; two of the clients have the
 *                 same metrics_label, or none, so nobody could tell which is
 *                 which
 * RLOCK_ECLOSED   one of them is closed, or is being closed
 * RLOCK_ENOMEM, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_metrics_write(rlock_client *const clients[],
                                           size_t n,
                                           rlock_metrics_format format,
                                           rlock_write_fn *write, void *arg);

/* The Content-Type of a format: constant. NULL: there is no such format. */
RLOCK_API const char *rlock_metrics_content_type(rlock_metrics_format format);

/* How a figure is to be read; numbers are part of the ABI. */
typedef enum rlock_metric_type {
    RLOCK_METRIC_COUNTER = 0, /* since the client was made; never falls */
    RLOCK_METRIC_GAUGE = 1,   /* as it is now */
    RLOCK_METRIC_HISTOGRAM = 2
} rlock_metric_type;

/* One sample. It and all that it points to are valid during the callback only;
   it grows at its end (base.h). */
typedef struct rlock_metric {
    const char *name; /* of its family, without _total: "rlock_acquires" */
    const char *help; /* what the family counts, a sentence */
    const char *unit; /* "seconds"; "" for a plain number */
    rlock_metric_type type;
    const char *labels; /* as in the text: client="a",result="ok"; or "" */
    double value;       /* of a histogram: how many there were */
    /* Of a histogram; NULL, 0 otherwise. counts[i]: how many were above
       bounds[i - 1], and not above bounds[i]; counts[n_bounds]: the rest. */
    const double *bounds;
    const uint64_t *counts;
    size_t n_bounds;
    double sum; /* of all that were recorded */
} rlock_metric;

/*
 * Calls back for each sample, family by family: on the calling thread, after
 * all has been read, so the callback may call anything. Without I/O.
 *
 * RLOCK_OK        all were told; with any other status none
 * RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_metrics_each(rlock_client *cl,
                                          void (*each)(const rlock_metric *m,
                                                       void *arg),
                                          void *arg);

#ifdef __cplusplus
}
#endif
#endif
