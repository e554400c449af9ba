/*
 * A reply of any shape, for the few questions whose answers are larger than
 * rl_reply: what Sentinels tell. Its cells lie in the order in which they come,
 * an array before what is in it. It is bounded: what comes beyond that is left
 * out; only what is nested too deeply is refused, and its connection fails.
 */
#ifndef RL_WIRE_TABLE_H
#define RL_WIRE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/* As much as sixteen Sentinels have to say, and then some. */
#define RL_TABLE_CELLS 1024
#define RL_TABLE_TEXT  (16 * 1024)
#define RL_TABLE_DEPTH 4

typedef struct rl_cell {
    int type; /* REDIS_REPLY_... */
    int depth;
    long long integer; /* an integer's value; an array's length */
    const char *str;   /* a text, with a NUL behind it; or NULL */
} rl_cell;

typedef struct rl_table {
    size_t count, used;
    rl_cell beyond; /* gets what is left out */
    rl_cell cell[RL_TABLE_CELLS];
    char text[RL_TABLE_TEXT];
} rl_table;

/* The next cell; NULL: that is nested too deeply. */
rl_cell *rl_table_add(rl_table *t, int type, int depth);
/* The same with a text. */
rl_cell *rl_table_add_text(rl_table *t, int type, int depth, const char *text,
                           size_t len);

/*
 * In a list of names and values that begins behind this cell, the value of a
 * name; NULL: there is none.
 */
const char *rl_table_value(const rl_table *t, size_t list, const char *name);

#endif
