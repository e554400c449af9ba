/*
 * Plays drive/caller.c and drive/legs.c: makes an operation of the core go, as
 * these do it, in steps. Where the real thread would block in poll(), a step
 * ends, and the next begins when something has come or the time has.
 *
 * What stays true: between steps, either a round is under way and its legs have
 * connections, or the operation sleeps and has none.
 */
#include <errno.h>

#include "core/rule.h"
#include "world.h"

#define GRACE_US 5000

static int64_t local_now(const runner *r)
{
    return process_now(r->task.p);
}

static bool is_open(const rl_part *x)
{
    return x && x->due && !x->over;
}

/* --- the sleep ------------------------------------------------------------ */

static void wake(rl_waker *w, rl_wake why, unsigned node)
{
    runner *r = RL_CONTAINER(w, runner, waker);
    if (r->why < why)
        r->why = why;
    if (why == RL_WAKE_RUNG)
        r->rung |= 1u << node;
    task_wake(&r->task);
}

/* A cancel or a close stays. */
static rl_wake why_awake(runner *r)
{
    rl_wake why = r->why;
    if (why < RL_WAKE_CANCEL)
        r->why = RL_WAKE_NONE;
    r->op->rung |= r->rung;
    r->rung = 0;
    return why;
}

/* --- legs ----------------------------------------------------------------- */

static leg *leg_to(runner *r, client *to)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->leg[i].to == to)
            return &r->leg[i];
    r->leg[r->n] = (leg){.to = to};
    return &r->leg[r->n++];
}

static void assign(runner *r)
{
    for (size_t i = 0; i < r->op->n; i++) {
        rl_part *x = r->op->part[i];
        if (is_open(x) && !x->leg)
            x->leg = leg_to(r, client_of(x->core));
    }
}

static void give_back(leg *l)
{
    conn *c = l->conn;
    l->conn = NULL;
    if (!c)
        return;
    int64_t now_us = client_now(l->to);
    bool owes = !conn_is_broken(c) && c->c.line.pending > 0;
    if (owes)
        c->c.patient_us = rl_command_end(&l->to->e.core, now_us);
    pool_give_back(l->to, c);
    if (owes)
        keeper_expect(l->to, now_us);
}

static void close_legs(runner *r)
{
    for (size_t i = 0; i < r->n; i++) {
        leg *l = &r->leg[i];
        if (l->expecting)
            conn_close(l->conn);
        else
            give_back(l);
    }
    r->n = 0;
}

static bool is_unasked(const rl_part *x, const leg *l)
{
    return is_open(x) && x->leg == l && x->ask.next != RL_ASK_WAITS;
}

static bool wants(const runner *r, const leg *l)
{
    for (size_t i = 0; i < r->op->n; i++)
        if (is_unasked(r->op->part[i], l))
            return true;
    return false;
}

static void fail_parts(runner *r, const leg *l, const rl_fault *why,
                       void (*how)(rl_ask *a, int64_t now_us))
{
    for (size_t i = 0; i < r->op->n; i++) {
        rl_part *x = r->op->part[i];
        if (!is_unasked(x, l))
            continue;
        x->fault = *why;
        how(&x->ask, local_now(r));
    }
}

static void refuse(runner *r, const leg *l, const char *what)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, 0, "%s", what);
    fail_parts(r, l, &f, rl_ask_refuse);
}

static int64_t until_of(const runner *r, const leg *l)
{
    int64_t until_us = 0;
    for (size_t i = 0; i < r->op->n; i++) {
        const rl_part *x = r->op->part[i];
        if (is_open(x) && x->leg == l)
            until_us = rl_max(until_us, x->until_us);
    }
    return until_us;
}

static const void *behind(const runner *r, const leg *l)
{
    for (size_t i = 0; i < r->op->n; i++) {
        const rl_part *x = r->op->part[i];
        if (is_open(x) && x->leg == l && x->hold && x->heap &&
            x->hold->asked_on)
            return x->hold->asked_on;
    }
    return NULL;
}

static void dial(runner *r, leg *l, int64_t until_us)
{
    l->conn = conn_dial(l->to, &r->task, until_us);
    l->expecting = true;
    l->ready_us = local_now(r);
}

/* The only leg: the thread waits for its connection. */
static void borrow(runner *r, leg *l)
{
    int64_t until_us = until_of(r, l);
    if (local_now(r) >= until_us)
        return;
    l->conn = pool_take(l->to, NULL, false);
    if (l->conn)
        l->conn->user = &r->task;
    else
        dial(r, l, until_us);
}

static bool find_connection(runner *r, leg *l)
{
    l->conn = pool_take(l->to, behind(r, l), true);
    if (l->conn)
        l->conn->user = &r->task;
    l->down = l->to->down;
    if (l->down && l->conn)
        give_back(l);
    return !l->down;
}

static void connect_several(runner *r)
{
    size_t hopeful = 0;
    for (size_t i = 0; i < r->n; i++) {
        leg *l = &r->leg[i];
        if (l->conn)
            hopeful++;
        else if (wants(r, l))
            hopeful += find_connection(r, l);
    }
    bool insist = r->op->insist && hopeful < r->op->quorum;
    for (size_t i = 0; i < r->n; i++) {
        leg *l = &r->leg[i];
        if (l->conn || !wants(r, l))
            continue;
        if (l->down && !insist && r->op->quorum < r->op->n)
            refuse(r, l, "the server is down");
        else
            dial(r, l, RL_NEVER);
    }
}

static bool is_useless(const leg *l)
{
    const rl_line *line = &l->conn->c.line;
    return !l->expecting &&
           (line->failed || (line->retired && line->pending == 0));
}

static void connect_legs(runner *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->leg[i].conn && is_useless(&r->leg[i]))
            give_back(&r->leg[i]);
    if (r->n > 1)
        connect_several(r);
    else if (r->n == 1 && !r->leg[0].conn && wants(r, &r->leg[0]))
        borrow(r, &r->leg[0]);
}

/* A connection that was being made: is it there, or has it failed? */
static void look_for_connection(runner *r, leg *l)
{
    if (!l->expecting)
        return;
    conn_state state = conn_settle(l->conn);
    if (state == CONN_DIALING || state == CONN_IDENTIFYING)
        return;
    l->expecting = false;
    l->ready_us = local_now(r);
    if (state == CONN_OPEN)
        return;
    rl_fault f = l->conn->fault;
    conn_close(l->conn);
    l->conn = NULL;
    if (r->n > 1)
        client_suspect(l->to);
    fail_parts(r, l, &f, r->n > 1 ? rl_ask_refuse : rl_ask_miss);
}

/* --- a round -------------------------------------------------------------- */

static bool is_usable(const leg *l)
{
    return l->conn && !l->expecting && !conn_is_broken(l->conn);
}

static void push(runner *r, rl_part *x, int64_t now_us)
{
    leg *l = x->leg;
    if (x->ask.next == RL_ASK_AGAIN && now_us >= x->until_us) {
        rl_ask_give_up(&x->ask, now_us);
    } else if (is_usable(l) && !l->conn->c.line.retired) {
        if (r->op->may_ask && !r->op->may_ask(r->op, x, now_us)) {
            rl_ask_refuse(&x->ask, now_us);
            return;
        }
        rl_part_push(x, &l->conn->c.line, &l->conn->c, now_us);
    }
}

static void push_all(runner *r)
{
    int64_t now_us = local_now(r);
    for (size_t i = 0; i < r->op->n; i++) {
        rl_part *x = r->op->part[i];
        if (is_open(x) &&
            (x->ask.next == RL_ASK_IDLE || x->ask.next == RL_ASK_AGAIN))
            push(r, x, now_us);
    }
    for (size_t i = 0; i < r->n; i++)
        if (is_usable(&r->leg[i]))
            conn_send(r->leg[i].conn);
}

static int64_t since_us(const rl_part *x)
{
    return rl_max(x->began_us, ((const leg *)x->leg)->ready_us);
}

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
            client_suspect(l->to);
    }
}

static void end_part(rl_part *x, int64_t now_us)
{
    leg *l = x->leg;
    if (x->ask.next == RL_ASK_WAITS && is_usable(l))
        conn_time_out(l->conn);
    if (x->over || x->ask.next == RL_ASK_WAITS)
        return;
    if (x->fault.status == RLOCK_OK)
        rl_fault_set(&x->fault, RLOCK_EIO, ETIMEDOUT, "no time is left");
    rl_ask_give_up(&x->ask, now_us);
}

static void expire(runner *r)
{
    int64_t now_us = local_now(r);
    for (size_t i = 0; i < r->op->n; i++) {
        rl_part *x = r->op->part[i];
        if (is_open(x))
            note_silence(x, now_us);
        if (is_open(x) && now_us >= x->until_us)
            end_part(x, now_us);
    }
}

static int64_t wait_end(const runner *r)
{
    int64_t us = r->decided_us ? r->decided_us + GRACE_US : RL_NEVER;
    for (size_t i = 0; i < r->op->n; i++) {
        const rl_part *x = r->op->part[i];
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
static bool has_work(const runner *r)
{
    for (size_t i = 0; i < r->op->n; i++) {
        const rl_part *x = r->op->part[i];
        if (!is_open(x) || x->ask.next == RL_ASK_WAITS)
            continue;
        const leg *l = x->leg;
        if (!l->expecting && !is_usable(l))
            return true;
    }
    return false;
}

static bool is_worth_waiting(const runner *r)
{
    if (rl_rule_ok(r->op) < r->op->quorum) {
        for (size_t i = 0; i < r->op->n; i++)
            if (is_open(r->op->part[i]) && !r->op->part[i]->slow)
                return true;
        return false;
    }
    for (size_t i = 0; i < r->n; i++) {
        const leg *l = &r->leg[i];
        if (l->expecting && !l->down && wants(r, l))
            return true;
    }
    return false;
}

static bool is_over(runner *r)
{
    int64_t now_us = local_now(r);
    if (!rl_rule_is_decided(r->op))
        return false;
    if (!r->op->early || !is_worth_waiting(r))
        return true;
    if (r->decided_us == 0)
        r->decided_us = now_us;
    return now_us >= r->decided_us + GRACE_US;
}

static void refuse_unasked(runner *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (wants(r, &r->leg[i]))
            refuse(r, &r->leg[i], "no connection so far");
}

static void receive(runner *r)
{
    for (size_t i = 0; i < r->n; i++) {
        look_for_connection(r, &r->leg[i]);
        if (is_usable(&r->leg[i]) && conn_send(r->leg[i].conn))
            conn_receive(r->leg[i].conn);
    }
}

/* True: the round is over. Otherwise there is nothing to do but to wait. */
static bool round_goes_on(runner *r)
{
    receive(r);
    expire(r);
    for (;;) {
        connect_legs(r);
        push_all(r);
        if (is_over(r)) {
            refuse_unasked(r);
            return true;
        }
        if (!has_work(r))
            return false;
        expire(r);
    }
}

/* --- the operation -------------------------------------------------------- */

static void resume(runner *r, rl_wake why)
{
    r->next = r->op->resume(r->op, why, local_now(r));
    if (r->next == RL_ASK) {
        r->decided_us = 0;
        assign(r);
    } else {
        close_legs(r);
    }
}

static void finish(runner *r)
{
    r->op = NULL;
    r->why = RL_WAKE_NONE;
    r->rung = 0;
    r->done(r);
}

static int64_t connection_end(const runner *r)
{
    int64_t us = RL_NEVER;
    for (size_t i = 0; i < r->n; i++)
        if (r->leg[i].expecting)
            us = rl_min(us, r->leg[i].conn->dial_until_us);
    return us;
}

bool runner_go_on(runner *r)
{
    while (r->op) {
        if (r->next == RL_DONE) {
            finish(r);
        } else if (r->next == RL_SLEEP) {
            if (r->why == RL_WAKE_NONE && local_now(r) < r->op->sleep_us) {
                task_sleep(&r->task, r->op->sleep_us);
                return true;
            }
            resume(r, why_awake(r));
        } else if (round_goes_on(r)) {
            resume(r, RL_WAKE_NONE);
        } else {
            task_sleep(&r->task, rl_min(wait_end(r), connection_end(r)));
            return true;
        }
    }
    return false;
}

void runner_start(runner *r, rl_op *op, void (*done)(runner *r))
{
    r->op = op;
    r->done = done;
    r->why = RL_WAKE_NONE;
    r->rung = 0;
    op->waker = &r->waker;
    resume(r, RL_WAKE_NONE);
}

void runner_init(runner *r, process *p, void (*run)(task *t), const char *what)
{
    *r = (runner){.waker.wake = wake};
    task_init(&r->task, p, run, what);
}
