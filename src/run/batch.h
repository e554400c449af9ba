/*
 * A batch: one call of the keeper's, about holds of one layout and slot that
 * ask for the same, mostly about one; or about the server itself, or whether
 * replicas have what others have written. All is the loop's; a hold is looked
 * at under its table's mutex.
 *
 * Renewals that fall due together are a batch of up to fifty: one call costs
 * the server half of what a call for each would, and the client less. All else
 * is a batch of one hold.
 */
#ifndef RL_RUN_BATCH_H
#define RL_RUN_BATCH_H

#include "run/engine.h"

#define RL_BATCH_MAX 50

typedef struct rl_batch rl_batch;

/* What is asked, and what the answer means; one for each, in its file. */
typedef struct rl_batch_verb {
    rl_script_id (*script)(const rl_batch *b);
    void (*write)(const rl_batch *b, rl_bytes *to);
    /*
     * r: the answer; NULL: there is none, as f says. Holds for which the call
     * has ended are taken out (b->n); for those that stay the server has said
     * yes, and replicas are to be asked.
     */
    void (*note)(rl_batch *b, const rl_reply *r, const rl_fault *f,
                 int64_t now_us);
    /* They have been, about this hold. f: too few have it; NULL: enough. */
    void (*confirmed)(rl_batch *b, rl_hold *h, const rl_fault *f,
                      int64_t now_us);
} rl_batch_verb;

extern const rl_batch_verb rl_batch_renew, rl_batch_undo, rl_batch_vote;
/* A count-down that has no answer (undo.c). */
extern const rl_batch_verb rl_batch_count;
/* Does the server have it still? It prolongs nothing. */
extern const rl_batch_verb rl_batch_look;

struct rl_batch {
    rl_ask ask;
    rl_link idle;
    rl_batch *next; /* of those that wait for replicas */
    rl_node *node;  /* whose server is asked */
    const rl_batch_verb *verb;
    bool compare; /* tokens; see rl_call_renew() */
    bool bare;    /* a renewal of one that writes, by its lock's key alone */
    uint8_t replicas;   /* so many have to have it; 0: they are not asked */
    unsigned detour;    /* it is asked here only because "ASK" said so */
    int64_t send_by_us; /* the first deadline of its holds */
    size_t n;
    rl_hold *hold[RL_BATCH_MAX]; /* each with a reference */
};

/* Of no hold yet. NULL: out of memory, or there are too many. */
rl_batch *rl_batch_take(rl_node *node, const rl_batch_verb *verb);

/* It has ended, and is free for others. */
void rl_batch_put(rl_batch *b);

/* Puts its call on the keeper's line; its end is noted when it is read. */
void rl_batch_push(rl_batch *b, int64_t now_us);

/* Notes that it could not be asked. */
void rl_batch_refuse(rl_batch *b, const rl_fault *why, int64_t now_us);

/* The answer was that another server is to be asked. */
static inline bool rl_batch_is_sent_on(const rl_batch *b)
{
    return b->ask.redirected > 0;
}

static inline bool rl_batch_has_broken(const rl_batch *b)
{
    return !b->ask.line || b->ask.line->failed;
}

/* When it is worth another try. */
int64_t rl_batch_next_try_us(const rl_batch *b, int64_t now_us);

/* What rl_holds_left() tells, and events. */
void rl_batch_fail_locked(const rl_batch *b, rl_holds *t, const rl_fault *f)
    RL_REQUIRES(&t->mutex);

/*
 * Replicas are asked for its holds (confirm.c), to which the server has said
 * yes; then it ends.
 */
void rl_batch_await_replicas(rl_batch *b, int64_t now_us);

#endif
