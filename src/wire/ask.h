/*
 * An ask: one script call until its final answer. This is the only place that
 * knows what NOSCRIPT is, when an outcome is unknown, and whether a call is
 * made again.
 *
 * Every outcome is an answer, a definite no, or unknown: the command may have
 * been executed, or may be yet, however late. Scripts are told the state to
 * reach, so an unknown one is asked again, by the same words, unless a second
 * execution would do harm.
 *
 * It has no clock and sends nothing: its driver puts it on a line, and after
 * each of the line's steps looks at what is next.
 */
#ifndef RL_WIRE_ASK_H
#define RL_WIRE_ASK_H

#include <stdatomic.h>

#include "wire/line.h"
#include "wire/script.h"

typedef enum rl_outcome {
    RL_ANSWERED,     /* executed; the reply is there, and is no error */
    RL_NOT_EXECUTED, /* certainly not executed, now or later */
    RL_UNKNOWN       /* may have been, or may yet be, executed */
} rl_outcome;

typedef enum rl_ask_next {
    RL_ASK_IDLE,  /* to be put on a line */
    RL_ASK_WAITS, /* on a line, for its reply */
    RL_ASK_AGAIN, /* to be put on a line again: a new connection's, best */
    RL_ASK_FINAL  /* done() has been called */
} rl_ask_next;

typedef struct rl_ask rl_ask;

struct rl_ask {
    rl_slot slot;
    rl_ask_next next;
    bool once;     /* a second execution would do harm */
    bool whole;    /* the server lacks the script: it goes with the call */
    bool last;     /* it cannot be written any more */
    bool unknown;  /* an attempt may have been executed, or may yet be */
    uint8_t tries; /* attempts that are left */
    rl_script_id script;
    int64_t sent_us;  /* the lease clock before the latest attempt was sent */
    int64_t until_us; /* when the latest attempt ends; for the driver */
    rl_line *line;    /* of the latest attempt */
    rl_fault *fault;  /* the latest failure is put there; the owner's */
    atomic_uint_fast64_t *loads; /* counts scripts sent whole; or NULL */
    /* Writes the call. */
    void (*write)(const rl_ask *a, rl_bytes *to);
    /* The end; r is the reply if RL_ANSWERED. May free the ask. */
    void (*done)(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                 int64_t now_us);
};

#define RL_ASK_TRIES 3

/* Of a new ask, what its owner has not set is zero. */
void rl_ask_init(rl_ask *a, rl_script_id script, rl_fault *fault);

/* Puts it on the line. Out of memory is an end, too. */
void rl_ask_push(rl_ask *a, rl_line *l, int64_t now_us);

/* It is not, or not any more, to be put on a line. */
void rl_ask_give_up(rl_ask *a, int64_t now_us);

/* No connection could be had for this attempt; *fault says why. */
void rl_ask_miss(rl_ask *a, int64_t now_us);

/* The same for one that was never sent, for a reason that *fault tells. */
void rl_ask_refuse(rl_ask *a, int64_t now_us);

/*
 * Has the server refused the call as such, not for the moment only, or answered
 * what makes no sense? What was asked together fares better by itself then. For
 * done().
 */
bool rl_ask_is_refused(const rl_ask *a, rl_outcome outcome);

#endif
