/*
 * A script call on one connection, by a thread that waits for it there: what is
 * asked about a connection's own server, before it is used for anything else.
 */
#ifndef RL_RUN_INQUIRY_H
#define RL_RUN_INQUIRY_H

#include "net/conn.h"
#include "wire/ask.h"

struct rl_engine;

typedef struct rl_inquiry {
    rl_ask ask;
    rl_outcome outcome;
    bool over;
    rl_reply reply;  /* if it was answered */
    rl_fault fault;  /* if not */
    const void *arg; /* for write() */
} rl_inquiry;

/* write, loads: see rl_ask. True: it was answered. */
bool rl_inquire(rl_conn *c, rl_inquiry *q, rl_script_id script,
                void (*write)(const rl_ask *a, rl_bytes *to),
                atomic_uint_fast64_t *loads, int64_t deadline_us);

/*
 * Which run of the server is this? False: the connection failed, or the server
 * does not tell.
 */
bool rl_identify(struct rl_engine *e, rl_conn *c, int64_t deadline_us,
                 rl_fault *f);

#endif
