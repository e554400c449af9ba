/*
 * Plays drive/caller.c and drive/legs.c: makes an operation of the core go, as
 * these do it, in steps; what a round decides is core/round.h's, for both.
 * Where the real thread would block in poll(), a step ends, and the next begins
 * when something has come or the time has.
 *
 * What stays true: between steps, either a round is under way and its legs have
 * connections, or the operation sleeps and has none.
 */
#include "core/round.h"
#include "world.h"

static int64_t local_now(const runner *r)
{
    return process_now(r->task.p);
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
        if (rl_part_is_open(x) && !x->way)
            x->way = &leg_to(r, client_of(x->core))->way;
    }
}

static void use(leg *l, conn *c)
{
    l->conn = c;
    l->way.line = c ? &c->c.line : NULL;
}

static void give_back(leg *l)
{
    conn *c = l->conn;
    use(l, NULL);
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
        if (l->way.expecting)
            conn_close(l->conn);
        else
            give_back(l);
    }
    r->n = 0;
}

static void refuse(runner *r, const leg *l, const char *what)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, 0, "%s", what);
    rl_way_fail(r->op, &l->way, &f, rl_ask_refuse, local_now(r));
}

static void dial(runner *r, leg *l, int64_t until_us)
{
    use(l, NULL);
    l->conn = conn_dial(l->to, &r->task, until_us);
    l->way.expecting = true;
    l->way.ready_us = local_now(r);
}

static bool take(runner *r, leg *l, const rl_line *behind, bool owing)
{
    use(l, pool_take(l->to, behind, owing));
    if (l->conn)
        l->conn->user = &r->task;
    return l->conn != NULL;
}

/* The only leg: the thread waits for its connection. */
static void borrow(runner *r, leg *l)
{
    int64_t until_us = rl_way_until(r->op, &l->way);
    if (local_now(r) < until_us && !take(r, l, NULL, false))
        dial(r, l, until_us);
}

static bool find_connection(runner *r, leg *l)
{
    take(r, l, rl_way_behind(r->op, &l->way), true);
    l->way.down = l->to->down;
    if (l->way.down)
        give_back(l);
    return !l->way.down;
}

static void connect_several(runner *r)
{
    size_t hopeful = 0;
    for (size_t i = 0; i < r->n; i++) {
        leg *l = &r->leg[i];
        if (l->conn)
            hopeful++;
        else if (rl_way_is_wanted(r->op, &l->way))
            hopeful += find_connection(r, l);
    }
    bool insist = r->op->insist && hopeful < r->op->quorum;
    for (size_t i = 0; i < r->n; i++) {
        leg *l = &r->leg[i];
        if (l->conn || !rl_way_is_wanted(r->op, &l->way))
            continue;
        if (l->way.down && !insist && r->op->quorum < r->op->n)
            refuse(r, l, "the server is down");
        else
            dial(r, l, RL_NEVER);
    }
}

static void connect_legs(runner *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->leg[i].way.line && rl_line_is_spent(r->leg[i].way.line))
            give_back(&r->leg[i]);
    if (r->n > 1)
        connect_several(r);
    else if (r->n == 1 && !r->leg[0].conn &&
             rl_way_is_wanted(r->op, &r->leg[0].way))
        borrow(r, &r->leg[0]);
}

/* A connection that was being made: is it there, or has it failed? */
static void look_for_connection(runner *r, leg *l)
{
    if (!l->way.expecting)
        return;
    conn_state state = conn_settle(l->conn);
    if (state == CONN_DIALING || state == CONN_IDENTIFYING)
        return;
    l->way.expecting = false;
    l->way.ready_us = local_now(r);
    if (state == CONN_OPEN) {
        use(l, l->conn);
        return;
    }
    rl_fault f = l->conn->fault;
    conn_close(l->conn);
    use(l, NULL);
    if (r->n > 1)
        client_suspect(l->to);
    rl_way_fail(r->op, &l->way, &f, r->n > 1 ? rl_ask_refuse : rl_ask_miss,
                local_now(r));
}

/* --- a round -------------------------------------------------------------- */

static void push(runner *r)
{
    rl_round_push(r->op, local_now(r));
    for (size_t i = 0; i < r->n; i++)
        if (rl_way_is_good(&r->leg[i].way))
            conn_send(r->leg[i].conn);
}

static void suspect(rl_way *w, const rl_fault *why)
{
    (void)why;
    client_suspect(RL_CONTAINER(w, leg, way)->to);
}

static void expire(runner *r)
{
    rl_round_expire(r->op, local_now(r), suspect);
}

static void receive(runner *r)
{
    for (size_t i = 0; i < r->n; i++) {
        look_for_connection(r, &r->leg[i]);
        if (rl_way_is_good(&r->leg[i].way) && conn_send(r->leg[i].conn))
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
        push(r);
        if (rl_round_is_over(r->op, local_now(r))) {
            rl_round_end(r->op, local_now(r));
            return true;
        }
        if (!rl_round_has_work(r->op))
            return false;
        expire(r);
    }
}

/* --- the operation -------------------------------------------------------- */

static void resume(runner *r, rl_wake why)
{
    r->next = r->op->resume(r->op, why, local_now(r));
    if (r->next == RL_ASK) {
        rl_round_begin(r->op);
        assign(r);
    } else {
        close_legs(r);
    }
    if (r->next == RL_SLEEP)
        rl_op_tell(r->op);
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
        if (r->leg[i].way.expecting)
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
            task_sleep(&r->task,
                       rl_min(rl_round_wait_end(r->op), connection_end(r)));
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
