/*
 * One task of the keeper: what it asks a server about one hold, a renewal, a
 * look, an undo, or the vote of a node that does not have the lock yet; whether
 * replicas have what others have written; or about the server itself. All is
 * the loop's; the hold is looked at under its table's mutex.
 */
#ifndef RL_RUN_TASK_H
#define RL_RUN_TASK_H

#include "op/call.h"
#include "run/engine.h"

enum rl_task_kind {
    RL_RENEW,
    RL_LOOK, /* does the server have it still? It prolongs nothing */
    RL_UNDO,
    RL_VOTE,
    RL_CONFIRM,
    RL_WATCH /* of no hold */
};

typedef struct rl_task {
    rl_ask ask;
    rl_link idle;
    struct rl_task *next; /* in the batch that the first one's ask is about, or
                              of those that wait for replicas */
    rl_node *node;        /* whose server is asked */
    rl_hold *hold;        /* with a reference; NULL: it is about none */
    enum rl_task_kind what;
    bool compare;       /* tokens; see rl_call_renew() */
    unsigned detour;    /* it is asked here only because "ASK" said so */
    int64_t send_by_us; /* the hold's deadline */
} rl_task;

/* What came of a renewal. */
typedef enum rl_renewal { RL_RENEWED, RL_NOT_HELD, RL_NOT_ANSWERED } rl_renewal;

/* Puts its call on the keeper's line; its end is noted when it is read. */
void rl_task_push(rl_task *t, int64_t now_us);

/* Notes that it could not be asked. */
void rl_task_refuse(rl_task *t, const rl_fault *why, int64_t now_us);

/* For who asks about several at once: an ask of the first; and the end of one
   that was sent by it. f: why there is no answer. */
void rl_task_begin(rl_task *t, rl_script_id script);
void rl_task_put_on_line(rl_task *t, int64_t now_us);
void rl_task_renewed(rl_task *t, rl_renewal what, const rl_fault *f,
                     int64_t now_us);

/* Enough replicas have what it wrote; or not, as f says. */
void rl_task_confirmed(rl_task *t, const rl_fault *f, int64_t now_us);

/* --- by replicas (confirm.c) ---------------------------------------------- */

/*
 * The server has said yes: the task ends once replicas have been asked. False:
 * they need not be.
 */
bool rl_task_awaits_replicas(rl_task *t, int64_t now_us);

/* --- several in one call (batch.c) ---------------------------------------- */

#define RL_BATCH_MAX 50

/* Tasks of holds of one layout that may go together: two at least. */
bool rl_batch_may_have(const rl_task *t);
void rl_batch_push(rl_task *first, int64_t now_us);

/* Until when it may be sent: by the first deadline; of a task by itself, too.
 */
int64_t rl_batch_send_by(const rl_task *first);

/* --- (tasks.c) ------------------------------------------------------------ */

/* NULL: out of memory, or there are too many. */
rl_task *rl_task_take(rl_node *node);

/* It has ended, and is free for another hold. */
void rl_task_put(rl_task *t);

#endif
