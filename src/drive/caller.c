/*
 * The calling thread makes an operation go: it asks the parts that are due,
 * sleeps when it is told so, and goes on until the operation is done.
 *
 * A leg is the way to one client's server: a borrowed connection, which stays
 * with the operation from round to round, so that what is asked later about a
 * hold follows what was asked before. While the operation sleeps, and when it
 * is done, legs are given back; a connection that owes answers to parts that
 * are late goes back with them.
 *
 * With one leg, this thread opens a connection itself if there is none. With
 * several it must not wait for one server, so the connector does it, and who is
 * down is left out. All sleep is in poll() on the legs, or, between rounds, on
 * the waker, which others reach under the mutexes of the core.
 */
#include "drive/caller.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "core/rule.h"
#include "drive/engine.h"

/* A round that is decided waits so long for what is about to come all the same.
 */
#define GRACE_US 5000

typedef struct leg {
    rl_engine *e;
    rl_conn *conn;
    rl_visitor visitor;
    rl_turn turn;
    int64_t ready_us; /* since when it could ask; RL_NEVER: it stands in line */
    bool in_line;     /* all connections are out; turn tells when one is not */
    bool visiting;    /* the connector is making a connection */
    bool down;        /* left out, unless nothing goes without it */
} leg;

typedef struct caller {
    rl_waker waker;
    rl_mutex mutex; /* guards why and rung */
    rl_cond cond;
    rl_wake why;
    unsigned rung;
    rl_op *op;
    int64_t decided_us; /* when the round was; 0: not yet */
    rl_signal signal;   /* of the visitors; none until one is needed */
    size_t n;
    leg *leg;
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

/* --- legs ----------------------------------------------------------------- */

static leg *leg_of(caller *c, rl_core *core)
{
    rl_engine *e = rl_engine_of(core);
    for (size_t i = 0; i < c->n; i++)
        if (c->leg[i].e == e)
            return &c->leg[i];
    leg *l = &c->leg[c->n++];
    l->e = e;
    l->conn = NULL;
    l->visiting = l->in_line = l->down = false;
    l->ready_us = 0;
    l->visitor = (rl_visitor){.own = false};
    return l;
}

static bool is_open(const rl_part *x)
{
    return x && x->due && !x->over;
}

static void give_back(leg *l, int64_t now_us)
{
    rl_conn *c = l->conn;
    l->conn = NULL;
    if (!c)
        return;
    bool owes = !rl_conn_is_broken(c) && c->line.pending > 0;
    if (owes)
        c->patient_us = rl_command_end(&l->e->core, now_us);
    rl_source_give_back(l->e->source, c);
    if (owes)
        rl_keeper_expect(l->e, now_us);
}

static void close_legs(caller *c)
{
    int64_t now_us = c->n ? rl_now_us() : 0;
    for (size_t i = 0; i < c->n; i++) {
        leg *l = &c->leg[i];
        if (l->visiting)
            rl_connector_forget(l->e, &l->visitor);
        if (l->in_line)
            rl_source_leave_line(l->e->source, &l->turn);
        give_back(l, now_us);
    }
    c->n = 0;
}

/* The parts of a leg that cannot be asked: this time, or not any more. */
static void fail_parts(caller *c, const leg *l, const rl_fault *why,
                       void (*how)(rl_ask *a, int64_t now_us))
{
    int64_t now_us = rl_now_us();
    for (size_t i = 0; i < c->op->n; i++) {
        rl_part *x = c->op->part[i];
        if (!is_open(x) || x->leg != l || x->ask.next == RL_ASK_WAITS)
            continue;
        x->fault = *why;
        how(&x->ask, now_us);
    }
}

static void refuse(caller *c, const leg *l, const rl_fault *why)
{
    fail_parts(c, l, why, rl_ask_refuse);
}

static int64_t until_of(const caller *c, const leg *l)
{
    int64_t until_us = 0;
    for (size_t i = 0; i < c->op->n; i++) {
        const rl_part *x = c->op->part[i];
        if (is_open(x) && x->leg == l)
            until_us = rl_max(until_us, x->until_us);
    }
    return until_us;
}

static void borrow(caller *c, leg *l)
{
    rl_fault f;
    if (rl_source_borrow(l->e->source, until_of(c, l), &l->conn, &f) !=
        RLOCK_OK)
        fail_parts(c, l, &f, rl_ask_miss);
}

static void visit(caller *c, leg *l)
{
    if (c->signal.fd < 0 && !rl_signal_init(&c->signal)) {
        rl_fault f;
        int err = errno;
        rl_fault_set(&f, RLOCK_ENOMEM, err, "no descriptor to wait with: %s",
                     strerror(err));
        refuse(c, l, &f);
        return;
    }
    l->in_line = rl_source_line_up(l->e->source, &l->turn, &c->signal);
    l->visiting = !l->in_line;
    l->ready_us = l->in_line ? RL_NEVER : rl_now_us();
    if (l->visiting)
        rl_connector_visit(&l->e->connector, &l->visitor, 0, &c->signal);
}

/* Which connection has the hold's earlier calls? */
static const void *behind(const caller *c, const leg *l)
{
    const void *conn = NULL;
    for (size_t i = 0; i < c->op->n && !conn; i++) {
        const rl_part *x = c->op->part[i];
        if (!is_open(x) || x->leg != l || !x->hold || !x->heap)
            continue;
        rl_mutex_lock(&l->e->core.holds.mutex);
        conn = x->hold->asked_on;
        rl_mutex_unlock(&l->e->core.holds.mutex);
    }
    return conn;
}

/* Is a connection on its way? */
static bool is_expecting(const leg *l)
{
    return l->visiting || l->in_line;
}

/* Has anything to be asked on this leg? */
static bool is_wanted(const caller *c, const leg *l)
{
    for (size_t i = 0; i < c->op->n; i++) {
        const rl_part *x = c->op->part[i];
        if (is_open(x) && x->leg == l && x->ask.next != RL_ASK_WAITS)
            return true;
    }
    return false;
}

/* One of several. False: its server is down. */
static bool find_connection(caller *c, leg *l)
{
    rl_fault f;
    l->conn = rl_source_borrow_idle(l->e->source, behind(c, l));
    l->down = rl_connector_is_down(&l->e->connector, &f);
    if (l->down && l->conn)
        give_back(l, rl_now_us());
    return !l->down;
}

static void leave_out(caller *c, leg *l)
{
    rl_fault f = {.status = RLOCK_EIO};
    rl_connector_is_down(&l->e->connector, &f);
    refuse(c, l, &f);
}

/* Those that are down are tried only if there is no quorum without them. */
static void connect_legs(caller *c)
{
    size_t hopeful = 0;
    for (size_t i = 0; i < c->n; i++) {
        leg *l = &c->leg[i];
        if (l->conn || is_expecting(l))
            hopeful++;
        else if (is_wanted(c, l))
            hopeful += find_connection(c, l);
    }
    bool insist = c->op->insist && hopeful < c->op->quorum;
    for (size_t i = 0; i < c->n; i++) {
        leg *l = &c->leg[i];
        if (l->conn || is_expecting(l) || !is_wanted(c, l))
            continue;
        if (l->down && !insist && c->op->quorum < c->op->n)
            leave_out(c, l);
        else
            visit(c, l);
    }
}

static void look_for_turn(caller *c, leg *l)
{
    if (!l->in_line ||
        !rl_source_take_turn(l->e->source, &l->turn, behind(c, l), &l->conn))
        return;
    l->in_line = false;
    l->ready_us = rl_now_us();
    if (!l->conn)
        visit(c, l);
}

/*
 * Who stands in one line keeps nobody waiting in another: those in front may
 * stand there, for the connection that is here.
 */
static void return_idle(caller *c)
{
    bool waits = false;
    for (size_t i = 0; i < c->n; i++)
        waits = waits || c->leg[i].in_line;
    for (size_t i = 0; waits && i < c->n; i++) {
        leg *l = &c->leg[i];
        if (l->conn && l->conn->line.pending == 0 && !is_wanted(c, l))
            give_back(l, rl_now_us());
    }
}

/* Has the connector been successful? */
static void look_for_connection(caller *c, leg *l)
{
    if (!l->visiting || !rl_connector_has_news(&l->e->connector, &l->visitor))
        return;
    l->visiting = false;
    if (l->visitor.fault.status != RLOCK_OK)
        refuse(c, l, &l->visitor.fault);
    else if ((l->conn = rl_source_borrow_idle(l->e->source, NULL)) == NULL)
        visit(c, l); /* somebody else was quicker */
}

/* --- a round -------------------------------------------------------------- */

static void assign_legs(caller *c)
{
    for (size_t i = 0; i < c->op->n; i++) {
        rl_part *x = c->op->part[i];
        if (is_open(x) && !x->leg)
            x->leg = leg_of(c, x->core);
    }
}

static void note_connection(const rl_part *x, const rl_conn *conn)
{
    if (!x->heap || !x->hold)
        return;
    rl_mutex_lock(&x->core->holds.mutex);
    x->hold->asked_on = conn;
    rl_mutex_unlock(&x->core->holds.mutex);
}

static void push(caller *c, rl_part *x, int64_t now_us)
{
    leg *l = x->leg;
    if (x->ask.next == RL_ASK_AGAIN && now_us >= x->until_us) {
        rl_ask_give_up(&x->ask, now_us);
    } else if (l->conn && !rl_conn_is_broken(l->conn) &&
               !l->conn->line.retired) {
        if (c->op->may_ask && !c->op->may_ask(c->op, x, now_us)) {
            rl_ask_refuse(&x->ask, now_us);
            return;
        }
        note_connection(x, l->conn);
        rl_ask_push(&x->ask, &l->conn->line, now_us);
    }
}

static void push_all(caller *c)
{
    int64_t now_us = rl_now_us();
    for (size_t i = 0; i < c->op->n; i++) {
        rl_part *x = c->op->part[i];
        if (is_open(x) &&
            (x->ask.next == RL_ASK_IDLE || x->ask.next == RL_ASK_AGAIN))
            push(c, x, now_us);
    }
    for (size_t i = 0; i < c->n; i++)
        if (c->leg[i].conn)
            rl_conn_send(c->leg[i].conn);
}

/* What broke, or leads to the wrong server, is replaced. */
static void replace_broken(caller *c)
{
    bool several = c->n > 1;
    for (size_t i = 0; i < c->n; i++) {
        leg *l = &c->leg[i];
        if (l->conn && (rl_conn_is_broken(l->conn) ||
                        (l->conn->line.retired && l->conn->line.pending == 0)))
            give_back(l, rl_now_us());
    }
    if (several) {
        connect_legs(c);
    } else if (c->n == 1 && !c->leg[0].conn && is_wanted(c, &c->leg[0])) {
        if (rl_now_us() < until_of(c, &c->leg[0]))
            borrow(c, &c->leg[0]);
    }
}

/* Since when could the server have answered? Not while it was not asked. */
static int64_t since_us(const rl_part *x)
{
    return rl_max(x->began_us, ((const leg *)x->leg)->ready_us);
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
    const leg *l = x->leg;
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
    leg *l = x->leg;
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
        if (is_open(x))
            note_silence(x, now_us);
        if (is_open(x) && now_us >= x->until_us)
            end_part(x, now_us);
    }
}

static int64_t wait_end(const caller *c)
{
    int64_t us = c->decided_us ? c->decided_us + GRACE_US : RL_NEVER;
    for (size_t i = 0; i < c->op->n; i++) {
        const rl_part *x = c->op->part[i];
        if (!is_open(x))
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
        if (!is_open(x) || x->ask.next == RL_ASK_WAITS)
            continue;
        const leg *l = x->leg;
        if (!is_expecting(l) && (!l->conn || rl_conn_is_broken(l->conn)))
            return true;
    }
    return false;
}

static void wait_for_news(caller *c)
{
    struct pollfd p[RL_PARTS_MAX + 1];
    nfds_t n = 0;
    p[n++] = (struct pollfd){.fd = c->signal.fd, .events = POLLIN};
    for (size_t i = 0; i < c->n; i++) {
        const rl_conn *conn = c->leg[i].conn;
        bool used = conn && !rl_conn_is_broken(conn) && conn->line.pending > 0;
        p[n++] = (struct pollfd){.fd = used ? conn->io.fd : -1,
                                 .events = used ? rl_conn_events(conn) : 0};
    }
    if (poll(p, n, rl_poll_ms(wait_end(c))) <= 0)
        return;
    if (p[0].revents)
        rl_signal_clear(&c->signal);
    for (size_t i = 0; i < c->n; i++) {
        rl_conn *conn = c->leg[i].conn;
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
            if (is_open(c->op->part[i]) && !c->op->part[i]->slow)
                return true;
        return false;
    }
    for (size_t i = 0; i < c->n; i++) {
        const leg *l = &c->leg[i];
        if (is_expecting(l) && !l->down && is_wanted(c, l) &&
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

/* Who was not asked by the end of the round is not asked any more. */
static void refuse_unasked(caller *c)
{
    rl_fault f;
    for (size_t i = 0; i < c->n; i++) {
        if (!is_wanted(c, &c->leg[i]))
            continue;
        rl_fault_set(&f, RLOCK_EIO, 0, "no connection so far");
        refuse(c, &c->leg[i], &f);
    }
}

static void ask(caller *c)
{
    c->decided_us = 0;
    assign_legs(c);
    for (;;) {
        replace_broken(c);
        push_all(c);
        if (is_over(c))
            break;
        return_idle(c);
        if (!has_work(c))
            wait_for_news(c);
        for (size_t i = 0; i < c->n; i++) {
            look_for_connection(c, &c->leg[i]);
            look_for_turn(c, &c->leg[i]);
        }
        expire(c);
    }
    refuse_unasked(c);
}

static void drive(caller *c, rl_op *op)
{
    rl_wake why = RL_WAKE_NONE;
    c->waker.wake = wake;
    rl_mutex_init(&c->mutex);
    rl_cond_init(&c->cond);
    c->why = RL_WAKE_NONE;
    c->rung = 0;
    c->op = op;
    c->signal = RL_SIGNAL_NONE;
    c->n = 0;
    op->waker = &c->waker;
    for (;;) {
        rl_next next = op->resume(op, why, rl_now_us());
        why = RL_WAKE_NONE;
        if (next == RL_ASK) {
            ask(c);
            continue;
        }
        close_legs(c);
        if (next == RL_DONE)
            break;
        why = sleep_until(c, op->sleep_us);
    }
    rl_signal_fini(&c->signal);
    rl_cond_fini(&c->cond);
    rl_mutex_fini(&c->mutex);
}

static void drive_several(rl_op *op)
{
    leg leg[RL_PARTS_MAX];
    caller c = {.leg = leg};
    drive(&c, op);
}

/* Most threads have a large stack; those that do not need one leg. */
void rl_drive(rl_op *op)
{
    leg one;
    caller c = {.leg = &one};
    if (op->several)
        drive_several(op);
    else
        drive(&c, op);
}
