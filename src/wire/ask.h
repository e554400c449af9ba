/*
 * An ask: one script call until its final answer. This is the only place that
 * knows what NOSCRIPT is, when an outcome is unknown, and whether a call is
 * made again.
 *
 * Every outcome is an answer, a definite no, or unknown: the command may have
 * been executed, or may be yet, however late. Scripts are told the state to
 * reach, so an unknown one is asked again, by the same words, unless a second
 * execution would do harm. What a script of the program answers is an answer,
 * be it an error, unless the server says that it has not begun to execute it.
 *
 * In a cluster a server may say that the slot is elsewhere; there, and where
 * Sentinels watch, a server that is gone, or cannot answer now, is about to be
 * replaced. Then the ask goes on, there or after a pause, until its driver
 * gives it up.
 *
 * It has no clock and sends nothing: its driver puts it on a line, and after
 * each of the line's steps looks at what is next.
 */
#ifndef RL_WIRE_ASK_H
#define RL_WIRE_ASK_H

#include <stdatomic.h>

#include "wire/line.h"
#include "wire/replicas.h"
#include "wire/script.h"

typedef enum rl_outcome {
    RL_ANSWERED,     /* executed; the reply is there, and is no error */
    RL_NOT_EXECUTED, /* certainly not executed, now or later */
    RL_UNKNOWN       /* may have been, or may yet be, executed */
} rl_outcome;

enum rl_ask_next {
    RL_ASK_IDLE,  /* to be put on a line */
    RL_ASK_WAITS, /* on a line, for its reply */
    RL_ASK_AGAIN, /* to be put on a line again: a new connection's, best */
    RL_ASK_RESTS, /* the same, but not before rest_until_us */
    RL_ASK_FINAL  /* done() has been called */
};

typedef struct rl_ask rl_ask;

/* Who knows where a cluster's slots are. Any thread may call it. */
typedef struct rl_redirects {
    /* "MOVED": the slot is there; host "": where the one is that says so. */
    void (*moved)(struct rl_redirects *r, unsigned slot, const char *host,
                  int port);
    /* "ASK": the server there, for the next attempt alone, as a number counted
       from 1; 0: it cannot be had. */
    unsigned (*ask)(struct rl_redirects *r, unsigned slot, const char *host,
                    int port);
    /* "CLUSTERDOWN" and the like, or a redirect to nowhere: where slots are may
       be about to change. */
    void (*trouble)(struct rl_redirects *r);
} rl_redirects;

/* After so many redirects in a row there is a pause: they may go in a circle.
 */
#define RL_ASK_REDIRECTS 5

struct rl_ask {
    rl_slot slot;
    enum rl_ask_next next;
    bool once;     /* a second execution would do harm */
    bool whole;    /* the server lacks the script: it goes with the call */
    bool last;     /* it cannot be written any more */
    bool split;    /* the latest answer: its slot moves, and its keys are not
                      all in one place */
    bool single;   /* guarded: the script is one command */
    bool strict;   /* it begins with a line by which the server refuses keys of
                      other slots, where that is known */
    bool parts;    /* it can be asked in parts: it ends when it is split */
    bool patient;  /* another server may take over: with more than one try left
                      there is no end to them */
    bool unknown;  /* an attempt may have been executed, or may yet be */
    uint8_t tries; /* attempts that are left */
    uint8_t redirected; /* so many times in a row */
    unsigned detour; /* the next attempt goes there, as rl_redirects.ask says;
                        0: to the slot's server */
    rl_redirects *redirects; /* NULL: it is no cluster */
    int64_t pause_us;        /* the latest one's length */
    int64_t rest_until_us;
    rl_script_id script; /* RL_SCRIPT_COUNT: a guarded one, the program's */
    int64_t sent_us;    /* the lease clock before the latest attempt was sent */
    int64_t until_us;   /* when the latest attempt ends; for the driver, */
    int64_t send_by_us; /* as is until when it may be sent */
    rl_line *line;      /* of the latest attempt */
    rl_fault *fault;    /* the latest failure is put there; the owner's */
    atomic_uint_fast64_t *loads; /* counts scripts sent whole; or NULL */
    rl_confirm confirm;          /* by replicas; mostly by none */
    /* Writes the call. */
    void (*write)(const rl_ask *a, rl_bytes *to);
    /*
     * The end; r is the reply if RL_ANSWERED. May free the ask. A reply that is
     * short is one all the same: *fault says what replicas have answered.
     */
    void (*done)(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                 int64_t now_us);
};

#define RL_ASK_TRIES 3

/*
 * Is the script the program's, behind a guard? Nothing is known of it: it may
 * answer anything, also an error, and must not be executed twice.
 */
static inline bool rl_ask_is_guarded(const rl_ask *a)
{
    return a->script == RL_SCRIPT_COUNT;
}

/* Does the text on the line that it is put on begin so? */
static inline bool rl_ask_is_strict(const rl_ask *a)
{
    return a->strict && !a->line->lenient;
}

/* Have as many replicas as were asked for what the answered call has written?
 */
static inline bool rl_ask_is_durable(const rl_ask *a)
{
    return rl_confirm_is_enough(&a->confirm);
}

/* Of a new ask, what its owner has not set is zero. */
void rl_ask_init(rl_ask *a, rl_script_id script, rl_fault *fault);

/* Puts it on the line. Out of memory is an end, too. */
void rl_ask_push(rl_ask *a, rl_line *l, int64_t now_us);

/* If its rest is over, it is to be put on a line again. */
void rl_ask_wake(rl_ask *a, int64_t now_us);

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
