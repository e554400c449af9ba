/* The verb `exporter`: what servers have, as text for Prometheus. */
#ifndef CLI_EXPORTER_H
#define CLI_EXPORTER_H

#include "top.h"

typedef struct exporter {
    cli_options *o;
    cli_server s;
    const char *listen, *textfile;
    int64_t pause_us;
    long rounds;                     /* 0: until it is ended */
    char *server[RLOCK_RED_MAX];     /* URIs without passwords; owned */
    struct top round[RLOCK_RED_MAX]; /* of each server */
    int64_t next_us[RLOCK_RED_MAX];  /* before that it is not asked again */
} exporter;

/* What the servers have now, to be freed; NULL: no memory. One thread at a
   time. */
char *exporter_text(exporter *x, size_t *len);

/* --- exporter_http.c --- */

/* Serves it at x->listen until a signal comes. The exit status. */
int exporter_serve(exporter *x);

#endif
