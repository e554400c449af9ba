/*
 * The rows of the sweep: every public function, in each situation in which it
 * does something else.
 */
#ifndef TEST_FAULT_SWEEP_ROWS_H
#define TEST_FAULT_SWEEP_ROWS_H

#include "nodes.h"

#define NODES   3
#define MEMBERS 3

/* No call takes as long. */
#define TIMEOUT_MS 30000

typedef enum kind { NO_CLIENT, CLIENT, SINGLE, MULTI, RED } kind;

typedef struct row row;

/* What an act works on. What it makes or frees is put in or out here. */
typedef struct stage {
    const row *row;
    nodes *ns;
    size_t n; /* clients */
    rlock_client *cl[NODES];
    rlock *member[MEMBERS];
    rlock *lk;
    rlock_owner *owner; /* the thread acts as it; NULL: as itself */
    rlock_status told;  /* of what was started, by the last callback */
    int callbacks;
    bool refused; /* it could not be started */
} stage;

struct row {
    const char *function;
    kind kind;
    rlock_status (*act)(stage *st);
    rlock_status wanted; /* when nothing fails */
    int held;            /* levels before */
    int after;           /* levels afterwards, if it is RLOCK_OK */
    int64_t foreign_ms;  /* another program has the lock for so long */
    bool bare;           /* the act makes the handle, or the client */
    bool undone;         /* levels are as after success, whatever it answers */
    bool once;           /* what may have been executed is RLOCK_EIO */
    bool patient;        /* a fault of the connection is tried again */
    bool quiet;          /* makes no such call itself */
    bool cut;            /* connections have broken since they were used */
    bool owner;          /* done as an owner that is no thread */
    bool descriptor;     /* what the system refuses is RLOCK_ENOMEM */
};

extern const row rows[];
extern const size_t n_rows;
/* For a server on TCP, which is the first of the stage. */
extern const row by_name;

/* For a client of the stage. */
rlock_options options_for(const char *uri);
/* The handle of the stage, of its kind. */
rlock_status act_new(stage *st);
rlock_status act_multi_new(stage *st);
rlock_status act_red_new(stage *st);

#endif
