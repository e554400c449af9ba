/*
 * A server that is a table: where a client's connections lead, and each command is
 * answered at once, on the thread that asks. Time passes only where a row says so.
 *
 *     stub b;
 *     stub_open(&b, client);
 *     stub_say(&b, "CONFIG GET", "-NOPERM no\r\n");
 *     EXPECT_STATUS(rlock_servers(client, ...), RLOCK_OK);
 *     EXPECT_INT(stub_asked(&b, "CONFIG GET"), 3);
 *     stub_close(&b);
 */
#ifndef UNIT_STUB_H
#define UNIT_STUB_H

#include "run/client.h"
#include "test.h"

#define STUB_ROWS  48
#define STUB_CONNS 8
#define STUB_LOG   (256 * 1024)

/* How a command begins, and what is answered to it. A script goes by its name:
   "EVALSHA probe". */
typedef struct stub_row {
    const char *words;
    const char *answer; /* NULL: the server hangs up; "": it says nothing */
    int nth;            /* to this one alone, 1 is the next; 0: to each */
    int64_t ms;         /* that pass before it */
    int seen;
} stub_row;

typedef struct stub_conn {
    rl_conn *of;
    int peer;
    bool hung_up;
    size_t len;
    char in[16 * 1024]; /* what is no whole command yet */
} stub_conn;

typedef struct stub {
    rlock_client *cl;
    stub_row row[STUB_ROWS]; /* later ones come first */
    size_t rows;
    int conns; /* that were made */
    bool away; /* no more can be */
    stub_conn conn[STUB_CONNS];
    /* Is called with each command before it is answered; or NULL. */
    void (*hear)(struct stub *b, const char *words);
    void *arg;
    int64_t passed_ms;
    void (*met)(void *arg, rl_conn *c);
    void *met_arg;
    char *text[16]; /* of answers */
    size_t texts;
    size_t len; /* of what has been asked: a line each, each behind a '\n' */
    char log[STUB_LOG];
} stub;

/* All is well there: the rows for that are the first. */
void stub_open(stub *b, rlock_client *cl);
void stub_close(stub *b); /* and the client */

/* The same for another of its nodes. */
void stub_lead(stub *b, rl_node *n);

/* What it answers from now on. */
void stub_say(stub *b, const char *words, const char *answer);
void stub_row_add(stub *b, stub_row row);
/* The same: a text, of any length. */
void stub_say_text(stub *b, const char *words, const char *text, int nth);
/* From now on it hangs up. */
void stub_hang_up(stub *b, const char *words, int nth);

/* A connection of nobody's. */
rl_conn *stub_connect(stub *b);

/* How many commands have begun so; "": all. */
int stub_asked(const stub *b, const char *words);
/* All of them, a line each. */
const char *stub_heard(const stub *b);
void stub_forget(stub *b);

/* What a probe answers. */
#define STUB_PROBED(missing, warning, old, mode)                               \
    "*6\r\n" missing warning "$5\r\nrun-1\r\n$2\r\n61\r\n" old mode
#define STUB_WELL                                                              \
    STUB_PROBED(STUB_NO, STUB_NO, STUB_NO, "$10\r\nstandalone\r\n")
#define STUB_NO "$0\r\n\r\n"

/* Tells what the client's program is told; it is the client's arg. */
typedef struct stub_events {
    int n;
    rlock_event_type type[16];
    char message[16][600];
} stub_events;

/* While it is made, a way may take so long; after that, what its options say. */
#define STUB_WAY_MS 20

/* A lazy client of nobody, with these options beside. */
rlock_client *stub_client(stub_events *told, rlock_options o);

#endif
