#include "drive/legs.h"

#include <errno.h>
#include <string.h>

void rl_legs_init(rl_legs *ls, rl_op *op, rl_leg *leg)
{
    ls->op = op;
    ls->signal = RL_SIGNAL_NONE;
    ls->n = 0;
    ls->leg = leg;
}

void rl_legs_fini(rl_legs *ls)
{
    rl_signal_fini(&ls->signal);
}

static rl_leg *leg_to(rl_legs *ls, rl_core *core)
{
    rl_engine *e = rl_engine_of(core);
    for (size_t i = 0; i < ls->n; i++)
        if (ls->leg[i].e == e)
            return &ls->leg[i];
    rl_leg *l = &ls->leg[ls->n++];
    l->e = e;
    l->conn = NULL;
    l->visiting = l->in_line = l->down = false;
    l->ready_us = 0;
    l->visitor = (rl_visitor){.own = false};
    return l;
}

void rl_legs_assign(rl_legs *ls)
{
    for (size_t i = 0; i < ls->op->n; i++) {
        rl_part *x = ls->op->part[i];
        if (rl_part_is_open(x) && !x->leg)
            x->leg = leg_to(ls, x->core);
    }
}

/* Most connections owe nothing: then no clock is read. */
static void give_back(rl_leg *l)
{
    rl_conn *c = l->conn;
    l->conn = NULL;
    if (!c)
        return;
    bool owes = !rl_conn_is_broken(c) && c->line.pending > 0;
    int64_t now_us = owes ? rl_now_us() : 0;
    if (owes)
        c->patient_us = rl_command_end(&l->e->core, now_us);
    rl_source_give_back(l->e->source, c);
    if (owes)
        rl_keeper_expect(l->e, now_us);
}

void rl_legs_close(rl_legs *ls)
{
    for (size_t i = 0; i < ls->n; i++) {
        rl_leg *l = &ls->leg[i];
        if (l->visiting)
            rl_connector_forget(l->e, &l->visitor);
        if (l->in_line)
            rl_source_leave_line(l->e->source, &l->turn);
        give_back(l);
    }
    ls->n = 0;
}

/* --- its parts ------------------------------------------------------------ */

/* Is this part still to be asked, on this leg? */
static bool is_unasked(const rl_part *x, const rl_leg *l)
{
    return rl_part_is_open(x) && x->leg == l && x->ask.next != RL_ASK_WAITS;
}

bool rl_legs_want(const rl_legs *ls, const rl_leg *l)
{
    for (size_t i = 0; i < ls->op->n; i++)
        if (is_unasked(ls->op->part[i], l))
            return true;
    return false;
}

/* The parts of a leg that cannot be asked: this time, or not any more. */
static void fail_parts(rl_legs *ls, const rl_leg *l, const rl_fault *why,
                       void (*how)(rl_ask *a, int64_t now_us))
{
    int64_t now_us = rl_now_us();
    for (size_t i = 0; i < ls->op->n; i++) {
        rl_part *x = ls->op->part[i];
        if (!is_unasked(x, l))
            continue;
        x->fault = *why;
        how(&x->ask, now_us);
    }
}

static void refuse(rl_legs *ls, const rl_leg *l, const rl_fault *why)
{
    fail_parts(ls, l, why, rl_ask_refuse);
}

void rl_legs_refuse_unasked(rl_legs *ls)
{
    rl_fault f;
    for (size_t i = 0; i < ls->n; i++) {
        if (!rl_legs_want(ls, &ls->leg[i]))
            continue;
        rl_fault_set(&f, RLOCK_EIO, 0, "no connection so far");
        refuse(ls, &ls->leg[i], &f);
    }
}

static int64_t until_of(const rl_legs *ls, const rl_leg *l)
{
    int64_t until_us = 0;
    for (size_t i = 0; i < ls->op->n; i++) {
        const rl_part *x = ls->op->part[i];
        if (rl_part_is_open(x) && x->leg == l)
            until_us = rl_max(until_us, x->until_us);
    }
    return until_us;
}

/* Which connection has the earlier calls that a part must not overtake? */
static const void *behind(const rl_legs *ls, const rl_leg *l)
{
    const void *conn = NULL;
    for (size_t i = 0; i < ls->op->n && !conn; i++) {
        const rl_part *x = ls->op->part[i];
        if (!rl_part_is_open(x) || x->leg != l)
            continue;
        conn = x->behind;
        if (!conn && x->hold && x->heap)
            conn = rl_hold_connection(&l->e->core.holds, x->hold);
    }
    return conn;
}

/* --- one leg -------------------------------------------------------------- */

/* The only one: this thread may wait for it. */
static void borrow(rl_legs *ls, rl_leg *l)
{
    rl_fault f;
    int64_t until_us = until_of(ls, l);
    if (rl_now_us() < until_us &&
        rl_source_borrow(l->e->source, until_us, &l->conn, &f) != RLOCK_OK)
        fail_parts(ls, l, &f, rl_ask_miss);
}

/* One of several: others find the connection. */
static void visit(rl_legs *ls, rl_leg *l)
{
    if (ls->signal.fd < 0 && !rl_signal_init(&ls->signal)) {
        rl_fault f;
        int err = errno;
        rl_fault_set(&f, RLOCK_ENOMEM, err, "no descriptor to wait with: %s",
                     strerror(err));
        refuse(ls, l, &f);
        return;
    }
    l->in_line = rl_source_line_up(l->e->source, &l->turn, &ls->signal);
    l->visiting = !l->in_line;
    l->ready_us = l->in_line ? RL_NEVER : rl_now_us();
    if (l->visiting)
        rl_connector_visit(&l->e->connector, &l->visitor, 0, &ls->signal);
}

/* An idle connection, at once. False: the server is down. */
static bool find_connection(rl_legs *ls, rl_leg *l)
{
    rl_fault f;
    l->conn = rl_source_borrow_idle(l->e->source, behind(ls, l));
    l->down = rl_connector_is_down(&l->e->connector, &f);
    if (l->down)
        give_back(l);
    return !l->down;
}

static void leave_out(rl_legs *ls, rl_leg *l)
{
    rl_fault f = {.status = RLOCK_EIO};
    rl_connector_is_down(&l->e->connector, &f);
    refuse(ls, l, &f);
}

static void look_for_turn(rl_legs *ls, rl_leg *l)
{
    if (!l->in_line ||
        !rl_source_take_turn(l->e->source, &l->turn, behind(ls, l), &l->conn))
        return;
    l->in_line = false;
    l->ready_us = rl_now_us();
    if (!l->conn)
        visit(ls, l);
}

/* Has the connector been successful? */
static void look_for_connection(rl_legs *ls, rl_leg *l)
{
    if (!l->visiting || !rl_connector_has_news(&l->e->connector, &l->visitor))
        return;
    l->visiting = false;
    if (l->visitor.fault.status != RLOCK_OK)
        refuse(ls, l, &l->visitor.fault);
    else if ((l->conn = rl_source_borrow_idle(l->e->source, NULL)) == NULL)
        visit(ls, l); /* somebody else was quicker */
}

/* --- all ------------------------------------------------------------------ */

/* Those that are down are tried only if there is no quorum without them. */
static void connect_several(rl_legs *ls)
{
    size_t hopeful = 0;
    for (size_t i = 0; i < ls->n; i++) {
        rl_leg *l = &ls->leg[i];
        if (l->conn || rl_leg_is_expecting(l))
            hopeful++;
        else if (rl_legs_want(ls, l))
            hopeful += find_connection(ls, l);
    }
    bool insist = ls->op->insist && hopeful < ls->op->quorum;
    for (size_t i = 0; i < ls->n; i++) {
        rl_leg *l = &ls->leg[i];
        if (l->conn || rl_leg_is_expecting(l) || !rl_legs_want(ls, l))
            continue;
        if (l->down && !insist && ls->op->quorum < ls->op->n)
            leave_out(ls, l);
        else
            visit(ls, l);
    }
}

/* It broke, or leads to the wrong server and owes nothing any more. */
static bool is_useless(const rl_conn *c)
{
    return rl_conn_is_broken(c) || (c->line.retired && c->line.pending == 0);
}

void rl_legs_connect(rl_legs *ls)
{
    for (size_t i = 0; i < ls->n; i++)
        if (ls->leg[i].conn && is_useless(ls->leg[i].conn))
            give_back(&ls->leg[i]);
    if (ls->n > 1)
        connect_several(ls);
    else if (ls->n == 1 && !ls->leg[0].conn && rl_legs_want(ls, &ls->leg[0]))
        borrow(ls, &ls->leg[0]);
}

void rl_legs_look(rl_legs *ls)
{
    for (size_t i = 0; i < ls->n; i++) {
        look_for_connection(ls, &ls->leg[i]);
        look_for_turn(ls, &ls->leg[i]);
    }
}

/* Those in front may stand there for the connection that is here. */
void rl_legs_return_idle(rl_legs *ls)
{
    bool waits = false;
    for (size_t i = 0; i < ls->n; i++)
        waits = waits || ls->leg[i].in_line;
    for (size_t i = 0; waits && i < ls->n; i++) {
        rl_leg *l = &ls->leg[i];
        if (l->conn && l->conn->line.pending == 0 && !rl_legs_want(ls, l))
            give_back(l);
    }
}
