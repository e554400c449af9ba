/*
 * Plays drive/caller.c for verbs that are the library's own (src/lock): the
 * calling thread is a stack, and where it would block, the world goes on. With
 * it, what such a verb needs of the process: a clock, the calling thread, the
 * threads of a client, which are always there.
 */
#include "thread.h"

#include <stdlib.h>

#include "drive/caller.h"
#include "drive/client.h"
#include "judge.h"
#include "owner.h"

#define STACK_SIZE (size_t)(256 * 1024)

static owner *running;

void thread_is(owner *o)
{
    running = o;
}

owner *thread_self(void)
{
    return running;
}

/* --- stacks --------------------------------------------------------------- */

static void main_of_thread(void)
{
    running->thread.call(running);
}

static void enter(owner *o)
{
    *(rlock_error *)rlock_last_error() = o->thread.error;
    if (swapcontext(&o->thread.back, &o->thread.own) != 0)
        die("a thread cannot go on");
}

static void leave(owner *o)
{
    o->thread.error = *rlock_last_error();
    if (swapcontext(&o->thread.own, &o->thread.back) != 0)
        die("a thread cannot be left");
}

void thread_call(owner *o, void (*call)(owner *o))
{
    thread *t = &o->thread;
    if (!t->stack)
        t->stack = need_memory(STACK_SIZE);
    t->call = call;
    if (getcontext(&t->own) != 0)
        die("no thread");
    t->own.uc_stack.ss_sp = t->stack;
    t->own.uc_stack.ss_size = STACK_SIZE;
    t->own.uc_link = &t->back;
    makecontext(&t->own, main_of_thread, 0);
    enter(o);
}

void thread_free(thread *t)
{
    free(t->stack);
}

/* --- what blocks ---------------------------------------------------------- */

static void driven(runner *r)
{
    enter(RL_CONTAINER(r, owner, runner));
}

void rl_drive(rl_op *op)
{
    owner *o = running;
    deeds d;
    owner_note_deeds(o, op, &d);
    runner_start(&o->runner, op, driven);
    leave(o);
    o->acquiring = NULL;
    owner_judge_deeds(o, op, &d);
}

/* --- the process ---------------------------------------------------------- */

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
    if (id != RL_LEASE_CLOCK || !running)
        die("somebody reads a clock that is not simulated");
    int64_t us = process_now(running->p);
    ts->tv_sec = us / S;
    ts->tv_nsec = us % S * 1000;
    return 0;
}

rl_owner *rl_owner_self(void)
{
    return &running->self;
}

rlock_owner *rl_owner_acting(void)
{
    return NULL; /* threads own */
}

/* None is freed while what it has started goes on: nothing is started here. */
bool rl_owner_has_ended(void)
{
    return false;
}

rlock_status rl_owner_check(void)
{
    return RLOCK_OK;
}

bool rl_owner_watch(void)
{
    return true;
}

unsigned rl_owner_forks(void)
{
    return 0;
}

bool rl_notifier_start(rl_engine *e)
{
    return e != NULL;
}

bool rl_node_start(rl_node *node)
{
    return node != NULL;
}

void rl_doorbell_listen(rl_node *node, const rl_target *what)
{
    (void)what;
    doorbell_start(client_of(&node->e->core));
}

/* Nobody may wait any more. */
void rl_doorbell_poke(rl_node *node)
{
    client *c = client_of(&node->e->core);
    if (c->doorbell.started)
        doorbell_start(c);
}
