/*
 * The agent of a client that is a node of a Red lock: one thread that does what
 * a caller there must not wait for. It brings connections up, and finishes
 * exchanges whose answer is late.
 *
 * A node that cannot be reached, or did not answer in time, is down. Callers
 * leave it out then, unless they cannot do without it, and the agent tries it
 * from time to time until it answers.
 */
#ifndef RL_DRIVE_AGENT_H
#define RL_DRIVE_AGENT_H

#include <sys/queue.h>

#include "base/thread.h"
#include "route/source.h"

struct rl_engine;

/* A caller waits for a connection: it is told through its eventfd. */
typedef struct rl_visitor {
    LIST_ENTRY(rl_visitor) link;
    int fd;
    bool waiting;   /* in the agent's list */
    rl_fault fault; /* why there is none; status RLOCK_OK: there is one */
} rl_visitor;

/*
 * Something that will be due, if no caller does it before: mostly it can be
 * done in passing, and the agent's thread need not be woken. The errand belongs
 * to whom it is handed.
 */
typedef struct rl_errand {
    STAILQ_ENTRY(rl_errand) link;
    int64_t due_us;
    void (*run)(struct rl_engine *e, struct rl_errand *it);
    /* The same without waiting. False: it is not done, and stays */
    bool (*attempt)(struct rl_engine *e, struct rl_errand *it);
} rl_errand;

typedef struct rl_agent {
    rl_mutex mutex; /* guards all below */
    rl_cond work;
    int64_t sleeps_us; /* until when the thread sleeps */
    STAILQ_HEAD(, rl_errand) errands;
    LIST_HEAD(, rl_visitor) visitors;
    bool down;
    rl_fault fault;   /* why */
    int64_t since_us; /* what the thread is at began then; 0: nothing */
    bool stopping;
    rl_thread thread;
    int64_t pause_us; /* the thread's: between tries of a node that is down */
} rl_agent;

void rl_agent_init(rl_agent *a);
void rl_agent_fini(rl_agent *a);

/* No effect when it runs. False: it cannot. */
bool rl_agent_start(struct rl_engine *e);

/* Ends it; errands that are left run first, and are in a hurry. */
void rl_agent_stop(struct rl_engine *e);
bool rl_agent_is_stopping(rl_agent *a);

/*
 * Is the node down, or, for who is in a hurry, has it kept the agent waiting
 * for a while? Then *why is filled.
 */
bool rl_agent_is_down(rl_agent *a, bool hurry, rl_fault *why);

/* It did not answer in time. */
void rl_agent_suspect(rl_agent *a, const rl_fault *why);

/* Has the agent try to connect, now. */
void rl_agent_visit(rl_agent *a, rl_visitor *v, int fd);
bool rl_agent_has_news(rl_agent *a, rl_visitor *v); /* it has tried */
void rl_agent_forget(rl_agent *a, rl_visitor *v);

void rl_agent_send(rl_agent *a, rl_errand *it);

/* The first that is meant and has not been begun comes back; or NULL. */
rl_errand *rl_agent_take_back(rl_agent *a,
                              bool (*meant)(const rl_errand *it,
                                            const void *arg),
                              const void *arg);

/* Does what can be done without waiting. */
void rl_agent_pass_by(struct rl_engine *e);

#endif
