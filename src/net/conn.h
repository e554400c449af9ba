/*
 * One connection: a line on a transport. hiredis' blocking calls are not used:
 * they begin their time limit anew with every byte and every signal, raise
 * SIGPIPE, and believe any size that the server announces.
 *
 * What holds here instead: a total deadline for every operation; no SIGPIPE;
 * bounded replies; and a connection that failed or timed out is broken and
 * never used again.
 *
 * A connection belongs to one thread at a time. Slots that others have left on
 * it end on whichever thread reads.
 */
#ifndef RL_NET_CONN_H
#define RL_NET_CONN_H

#include <stdatomic.h>

#include "net/spin.h"
#include "net/transport.h"
#include "wire/line.h"

typedef struct rl_conn {
    rl_line line;
    rl_transport io;
    int64_t made_us;    /* then; the run of its server had begun before */
    bool known;         /* its server has been identified */
    int64_t expires_us; /* its login; RL_NEVER: does not */
    uint64_t nth;       /* the place it leads to, as rl_dialer.locate counts */
    /* The master is elsewhere now: what still comes is not believed. */
    atomic_bool forsaken;
    int64_t heard_us;   /* when something last came */
    unsigned arrivals;  /* how often something has come */
    int64_t rested_us;  /* when it was last given back */
    int64_t patient_us; /* until when what it owes is waited for */
    rl_spin spin;       /* when one is worth it */
    rl_link idle;       /* in the pool's list of idle ones */
    rl_link open;       /* in the list of all that are open */
} rl_conn;

/* Takes over the transport, also when it fails. NULL: out of memory. */
rl_conn *rl_conn_new(rl_transport io);
void rl_conn_free(rl_conn *c); /* its slots have ended; NULL is accepted */

/* It is used no more: every slot ends. */
void rl_conn_break(rl_conn *c, const rl_fault *why);
void rl_conn_time_out(rl_conn *c);

static inline bool rl_conn_is_broken(const rl_conn *c)
{
    return c->line.failed;
}

/*
 * It is better made anew: its login has been used for long, or the master is
 * elsewhere.
 */
static inline bool rl_conn_is_outdated(const rl_conn *c, int64_t now_us)
{
    return now_us >= c->expires_us || atomic_load(&c->forsaken);
}

/*
 * What its transport reads, unless that is not to be believed any more. Then
 * io.again: read on, for poll may not tell of the rest.
 */
ssize_t rl_conn_read(rl_conn *c, char *bytes, size_t room, rl_fault *f);

/* Sends what the kernel takes now. False: it is broken, as c->line says. */
bool rl_conn_send(rl_conn *c);

/* Reads what has come, and ends the slots that are answered. */
bool rl_conn_receive(rl_conn *c);

/*
 * Stays awake for a moment and reads what comes, if that is worth it
 * (net/spin.h). False: the caller has to sleep until something comes.
 */
bool rl_conn_spin(rl_conn *c);

/* What a driver has to wait for. */
short rl_conn_events(const rl_conn *c);

/*
 * Sends, waits for something to come, and reads it. False: it is broken, also
 * because the deadline has passed.
 */
bool rl_conn_step(rl_conn *c, int64_t deadline_us);

/* A command of C strings, and its reply. */
typedef struct rl_question {
    rl_slot slot;
    unsigned replies; /* that fit, as rl_slot has it; 0: any */
    bool subscribes;  /* likewise */
    bool over;
    rlock_status status;
    rl_reply reply; /* RLOCK_OK: this, which may be an error */
    rl_fault fault;
} rl_question;

/* Writes it; what is written together goes together. */
void rl_conn_put(rl_conn *c, rl_question *q, int argc, const char **argv);

/* Until all that were written are over; of the first one that failed, why. */
rlock_status rl_conn_await(rl_conn *c, int64_t deadline_us, rl_question *q,
                           size_t n, rl_fault *f);

/* One command and its reply, which is copied to *into. */
rlock_status rl_conn_ask(rl_conn *c, int64_t deadline_us, rl_reply *into,
                         rl_fault *f, int argc, const char **argv);

/* A sign of life. An error is RLOCK_ESERVER; what is none breaks it. */
rlock_status rl_conn_ping(rl_conn *c, int64_t deadline_us, rl_fault *f);

/*
 * Looks whether the server has closed it, or sent something that nobody asked
 * for. True: it is broken.
 */
bool rl_conn_is_stale(rl_conn *c);

#endif
