/* The verb `top`: rounds of looks, and how one is shown. */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include "locks.h"

typedef enum top_order {
    TOP_BY_WAITING,
    TOP_BY_LONGEST,
    TOP_BY_HELD,
    TOP_BY_NAME,
    TOP_ORDERS
} top_order;

typedef struct top {
    cli_options *o;
    cli_server s;
    const char *glob;
    bool batch;
    long rounds; /* 0: until it is ended */
    int64_t pause_us;

    /* The last round: */
    locks now; /* in order */
    top_order order;
    size_t held, waiting, circles; /* waiting: processes */
    int64_t ping_us;
    int64_t took_us; /* by those who have answered */
    int64_t cost_us; /* as believed: one round may be slow by chance */
    char error[sizeof((rlock_error *)0)->message]; /* "": all have answered */
} top;

/* --- top_look.c --- */

/* A round; t->error says why a server could not be asked. False: none could, and
   what was there before stays. */
bool top_look(top *t);
void top_sort(top *t);
/* What is to pass before the next round, so that the server works for us one
   moment in eighty at most. */
int64_t top_pause_us(const top *t);

/* --- top_text.c --- */

enum { TOP_WIDTH_MAX = 300 };

/* So wide at most; printable. Both return to. */
char *top_summary(const top *t, char *to, size_t width);
/* A row; NULL: the heads. */
char *top_line(const locks_row *r, char *to, size_t width);

/* --- top_screen.c --- */

/* Until q. False: this terminal has no screen. */
bool top_screen(top *t, int *status);

#endif
