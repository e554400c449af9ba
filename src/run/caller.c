/*
 * The calling thread makes an operation go: it asks the parts that are due,
 * sleeps when it is told so, and goes on until the operation is done.
 *
 * While it asks, all sleep is in poll() on its legs (run/leg.h); between
 * rounds, when it has none, on the waker, which others reach under the mutexes
 * of the core.
 */
#include "run/caller.h"

#include <poll.h>

#include "run/leg.h"

typedef struct caller {
    rl_waker waker;
    rl_mutex mutex; /* guards why and rung */
    rl_cond cond;
    rl_wake why;
    unsigned rung;
    rl_op *op;
    rl_legs legs;
} caller;

/* --- the sleep ------------------------------------------------------------ */

static void wake(rl_waker *w, rl_wake why, unsigned node)
{
    caller *c = RL_CONTAINER(w, caller, waker);
    rl_mutex_lock(&c->mutex);
    if (c->why < why)
        c->why = why;
    if (why == RL_WAKE_RUNG)
        c->rung |= 1u << node;
    rl_cond_wake(&c->cond);
    rl_mutex_unlock(&c->mutex);
}

/* A cancel or a close stays. */
static rl_wake sleep_until(caller *c, int64_t until_us)
{
    rl_mutex_lock(&c->mutex);
    while (c->why == RL_WAKE_NONE && rl_now_us() < until_us)
        rl_cond_wait_until(&c->cond, &c->mutex, until_us);
    rl_wake why = c->why;
    if (why < RL_WAKE_CANCEL)
        c->why = RL_WAKE_NONE;
    c->op->rung |= c->rung;
    c->rung = 0;
    rl_mutex_unlock(&c->mutex);
    return why;
}

/* --- a round -------------------------------------------------------------- */

/* Is there an answer to come? */
static bool owes_answers(const rl_leg *l)
{
    return rl_way_is_good(&l->way) && l->way.line->pending > 0;
}

/* Several servers, if they are near, need the processor more than we do. */
static bool look_out(caller *c)
{
    const rl_leg *only = &c->legs.leg[0];
    return c->legs.n == 1 && owes_answers(only) &&
           rl_conn_spin(rl_leg_conn(only));
}

static void wait_for_news(caller *c, int64_t now_us)
{
    struct pollfd p[RL_PARTS_MAX + 1];
    nfds_t n = 0;
    /* A port that owes nothing waits for nothing: what rests has to sleep. */
    if (c->legs.n == 1 && c->legs.leg[0].port && owes_answers(c->legs.leg)) {
        rl_port_exchange(c->legs.leg[0].port, rl_round_wait_end(c->op), now_us);
        return;
    }
    if (look_out(c))
        return;
    p[n++] = (struct pollfd){.fd = c->legs.signal.fd, .events = POLLIN};
    for (size_t i = 0; i < c->legs.n; i++) {
        const rl_leg *l = &c->legs.leg[i];
        const rl_conn *conn = owes_answers(l) ? rl_leg_conn(l) : NULL;
        p[n++] = (struct pollfd){.fd = conn ? conn->io.fd : -1,
                                 .events = conn ? rl_conn_events(conn) : 0};
    }
    if (poll(p, n, rl_poll_ms(rl_round_wait_end(c->op))) <= 0)
        return;
    if (p[0].revents)
        rl_signal_clear(&c->legs.signal);
    for (size_t i = 0; i < c->legs.n; i++) {
        rl_conn *conn = rl_leg_conn(&c->legs.leg[i]);
        if (p[i + 1].revents && rl_conn_send(conn))
            rl_conn_receive(conn);
    }
}

/*
 * Given the time of before, returns that of after the last answer. Nobody waits
 * between that and resume(), so what that judges is judged by a clock that was
 * read after the answer.
 */
static int64_t ask(caller *c, int64_t now_us)
{
    rl_round_begin(c->op);
    while (!rl_legs_ask(&c->legs, &now_us)) {
        if (!rl_round_has_work(c->op))
            wait_for_news(c, now_us);
        now_us = rl_now_us();
        rl_legs_look(&c->legs, now_us);
    }
    return now_us;
}

static void drive(caller *c, rl_op *op, rl_leg *leg)
{
    rl_wake why = RL_WAKE_NONE;
    c->waker.wake = wake;
    rl_mutex_init(&c->mutex, RL_RANK_WAKER);
    rl_cond_init(&c->cond);
    c->why = RL_WAKE_NONE;
    c->rung = 0;
    c->op = op;
    rl_legs_init(&c->legs, op, leg, NULL);
    op->waker = &c->waker;
    int64_t now_us = rl_now_us();
    for (;;) {
        rl_next next = op->resume(op, why, now_us);
        why = RL_WAKE_NONE;
        if (next == RL_ASK) {
            now_us = ask(c, now_us);
            continue;
        }
        rl_legs_close(&c->legs);
        if (next == RL_DONE)
            break;
        rl_op_tell(op);
        why = sleep_until(c, op->sleep_us);
        now_us = rl_now_us();
    }
    rl_legs_fini(&c->legs);
    rl_cond_fini(&c->cond);
    rl_mutex_fini(&c->mutex);
}

static void drive_several(rl_op *op)
{
    rl_leg leg[RL_PARTS_MAX];
    caller c;
    drive(&c, op, leg);
}

/* Most threads have a large stack; those that do not need one leg. */
void rl_drive(rl_op *op)
{
    rl_leg leg;
    caller c;
    if (op->several)
        drive_several(op);
    else
        drive(&c, op, &leg);
}
