/*
 * The calling thread makes an operation go: it asks the parts that are due,
 * sleeps when it is told so, and goes on until the operation is done.
 *
 * While it asks, all sleep is in poll() on its legs (drive/legs.h); between
 * rounds, when it has none, on the waker, which others reach under the mutexes
 * of the core.
 */
#include "drive/caller.h"

#include <errno.h>
#include <poll.h>

#include "core/rule.h"
#include "drive/legs.h"

/* A round that is decided waits so long for what is about to come all the same.
 */
#define GRACE_US 5000

typedef struct caller {
    rl_waker waker;
    rl_mutex mutex; /* guards why and rung */
    rl_cond cond;
    rl_wake why;
    unsigned rung;
    rl_op *op;
    int64_t decided_us; /* when the round was; 0: not yet */
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

static void push(caller *c, rl_part *x, int64_t now_us)
{
    rl_leg *l = x->leg;
    if (x->ask.next == RL_ASK_AGAIN && now_us >= x->until_us) {
        rl_ask_give_up(&x->ask, now_us);
    } else if (rl_leg_is_good(l) && !l->conn->line.retired) {
        if (c->op->may_ask && !c->op->may_ask(c->op, x, now_us)) {
            rl_ask_refuse(&x->ask, now_us);
            return;
        }
        rl_part_push(x, &l->conn->line, l->conn, now_us);
    }
}

static void push_all(caller *c)
{
    int64_t now_us = rl_now_us();
    for (size_t i = 0; i < c->op->n; i++) {
        rl_part *x = c->op->part[i];
        if (rl_part_is_open(x) &&
            (x->ask.next == RL_ASK_IDLE || x->ask.next == RL_ASK_AGAIN))
            push(c, x, now_us);
    }
    for (size_t i = 0; i < c->legs.n; i++)
        if (c->legs.leg[i].conn)
            rl_conn_send(c->legs.leg[i].conn);
}

/* Since when could the server have answered? Not while it was not asked. */
static int64_t since_us(const rl_part *x)
{
    return rl_max(x->began_us, ((const rl_leg *)x->leg)->ready_us);
}

/*
 * From when on the round does without this part. One that could not be asked
 * yet, for lack of a connection, has until its patience is over.
 */
static int64_t slow_from(const rl_part *x)
{
    return x->ask.next == RL_ASK_WAITS
               ? rl_after_us(x->ask.sent_us, x->limit_us)
               : rl_after_us(since_us(x), x->patience_us);
}

static int64_t silent_from(const rl_part *x)
{
    return rl_after_us(since_us(x), x->patience_us);
}

/* A server that is silent is one that may be down. */
static void note_silence(rl_part *x, int64_t now_us)
{
    const rl_leg *l = x->leg;
    if (!x->slow && now_us >= slow_from(x)) {
        x->slow = true;
        rl_fault_set(&x->fault, RLOCK_EIO, ETIMEDOUT, "no answer in time");
    }
    if (!x->silent && now_us >= silent_from(x)) {
        x->silent = true;
        if (x->ask.next == RL_ASK_WAITS)
            rl_connector_suspect(&l->e->connector, &x->fault);
    }
}

/* No time is left for it. */
static void end_part(rl_part *x, int64_t now_us)
{
    rl_leg *l = x->leg;
    if (x->ask.next == RL_ASK_WAITS && l->conn)
        rl_conn_time_out(l->conn);
    if (x->over || x->ask.next == RL_ASK_WAITS)
        return;
    if (x->fault.status == RLOCK_OK)
        rl_fault_set(&x->fault, RLOCK_EIO, ETIMEDOUT, "no time is left");
    rl_ask_give_up(&x->ask, now_us);
}

static void expire(caller *c)
{
    int64_t now_us = rl_now_us();
    for (size_t i = 0; i < c->op->n; i++) {
        rl_part *x = c->op->part[i];
        if (rl_part_is_open(x))
            note_silence(x, now_us);
        if (rl_part_is_open(x) && now_us >= x->until_us)
            end_part(x, now_us);
    }
}

static int64_t wait_end(const caller *c)
{
    int64_t us = c->decided_us ? c->decided_us + GRACE_US : RL_NEVER;
    for (size_t i = 0; i < c->op->n; i++) {
        const rl_part *x = c->op->part[i];
        if (!rl_part_is_open(x))
            continue;
        us = rl_min(us, x->until_us);
        if (!x->slow)
            us = rl_min(us, slow_from(x));
        if (!x->silent)
            us = rl_min(us, silent_from(x));
    }
    return us;
}

/* Has a connection broken that a part goes on without? */
static bool has_work(const caller *c)
{
    for (size_t i = 0; i < c->op->n; i++) {
        const rl_part *x = c->op->part[i];
        if (!rl_part_is_open(x) || x->ask.next == RL_ASK_WAITS)
            continue;
        const rl_leg *l = x->leg;
        if (!rl_leg_is_expecting(l) && !rl_leg_is_good(l))
            return true;
    }
    return false;
}

static bool is_asked(const rl_leg *l)
{
    return rl_leg_is_good(l) && l->conn->line.pending > 0;
}

static bool look_out(caller *c)
{
    rl_conn *worth_it[RL_PARTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < c->legs.n; i++) {
        const rl_leg *l = &c->legs.leg[i];
        if (is_asked(l) && rl_luck_is_worth_it(&l->conn->luck))
            worth_it[n++] = l->conn;
    }
    return n > 0 && rl_conn_look_out(worth_it, n);
}

static void wait_for_news(caller *c)
{
    struct pollfd p[RL_PARTS_MAX + 1];
    nfds_t n = 0;
    if (look_out(c))
        return;
    p[n++] = (struct pollfd){.fd = c->legs.signal.fd, .events = POLLIN};
    for (size_t i = 0; i < c->legs.n; i++) {
        const rl_leg *l = &c->legs.leg[i];
        bool used = is_asked(l);
        p[n++] = (struct pollfd){.fd = used ? l->conn->io.fd : -1,
                                 .events = used ? rl_conn_events(l->conn) : 0};
    }
    if (poll(p, n, rl_poll_ms(wait_end(c))) <= 0)
        return;
    if (p[0].revents)
        rl_signal_clear(&c->legs.signal);
    for (size_t i = 0; i < c->legs.n; i++) {
        rl_conn *conn = c->legs.leg[i].conn;
        if (p[i + 1].revents && rl_conn_send(conn))
            rl_conn_receive(conn);
    }
}

/*
 * Could a moment more be of use? With a quorum: for nodes that have not even
 * been asked, for lack of a connection that is just being made, since the more
 * hold the lock the better. Without one: for what the others have to say.
 */
static bool is_worth_waiting(const caller *c, int64_t now_us)
{
    if (rl_rule_ok(c->op) < c->op->quorum) {
        for (size_t i = 0; i < c->op->n; i++)
            if (rl_part_is_open(c->op->part[i]) && !c->op->part[i]->slow)
                return true;
        return false;
    }
    for (size_t i = 0; i < c->legs.n; i++) {
        const rl_leg *l = &c->legs.leg[i];
        if (rl_leg_is_expecting(l) && !l->down && rl_legs_want(&c->legs, l) &&
            !rl_connector_is_slow(&l->e->connector, GRACE_US, now_us))
            return true;
    }
    return false;
}

static bool is_over(caller *c)
{
    if (!rl_rule_is_decided(c->op))
        return false;
    if (!c->op->early)
        return true;
    int64_t now_us = rl_now_us();
    if (!is_worth_waiting(c, now_us))
        return true;
    if (c->decided_us == 0)
        c->decided_us = now_us;
    return now_us >= c->decided_us + GRACE_US;
}

static void ask(caller *c)
{
    c->decided_us = 0;
    rl_legs_assign(&c->legs);
    for (;;) {
        rl_legs_connect(&c->legs);
        push_all(c);
        if (is_over(c))
            break;
        rl_legs_return_idle(&c->legs);
        if (!has_work(c))
            wait_for_news(c);
        rl_legs_look(&c->legs);
        expire(c);
    }
    rl_legs_refuse_unasked(&c->legs);
}

static void drive(caller *c, rl_op *op, rl_leg *leg)
{
    rl_wake why = RL_WAKE_NONE;
    c->waker.wake = wake;
    rl_mutex_init(&c->mutex);
    rl_cond_init(&c->cond);
    c->why = RL_WAKE_NONE;
    c->rung = 0;
    c->op = op;
    rl_legs_init(&c->legs, op, leg);
    op->waker = &c->waker;
    for (;;) {
        rl_next next = op->resume(op, why, rl_now_us());
        why = RL_WAKE_NONE;
        if (next == RL_ASK) {
            ask(c);
            continue;
        }
        rl_legs_close(&c->legs);
        if (next == RL_DONE)
            break;
        why = sleep_until(c, op->sleep_us);
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
