/* Figures as text: Prometheus' own format, and OpenMetrics. */
#ifndef RL_CLIENT_METRICS_TEXT_H
#define RL_CLIENT_METRICS_TEXT_H

#include "client/figures.h"

/* What is on its way to the program. */
typedef struct rl_metrics_text {
    rlock_metrics_format format;
    rlock_write_fn *write;
    void *arg;
    bool stopped; /* the program wants no more */
    size_t len;
    char at[4096];
} rl_metrics_text;

/* The figures of n clients, family by family; to the end, or until the program
   wants no more. */
void rl_metrics_text_write(rl_metrics_text *t, const rl_figures *of, size_t n);

#endif
