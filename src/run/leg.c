#include "run/leg.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "run/engine.h"

void rl_legs_init(rl_legs *ls, rl_op *op, rl_leg *leg, rl_trunks *trunks)
{
    ls->op = op;
    ls->trunks = trunks;
    ls->signal = RL_SIGNAL_NONE;
    ls->n = 0;
    ls->leg = leg;
}

void rl_legs_fini(rl_legs *ls)
{
    rl_signal_fini(&ls->signal);
}

static void use(rl_leg *l, rl_conn *c)
{
    l->way.line = c ? &c->line : NULL;
}

static void take_port(rl_leg *l, rl_port *s)
{
    l->port = s;
    l->way.line = s ? &s->line : NULL;
}

static void take_trunk(rl_leg *l, rl_trunk *t)
{
    l->trunk = t;
    l->way.shared = t != NULL;
    l->way.line = t ? &t->conn->line : NULL;
}

/* Most connections owe nothing: then no clock is read. */
static void give_back(rl_leg *l)
{
    rl_conn *c = rl_leg_conn(l);
    if (l->trunk)
        rl_trunk_leave(l->trunk);
    if (l->port)
        rl_mux_set_leave(&l->node->muxes, l->port);
    take_port(l, NULL);
    take_trunk(l, NULL);
    if (!c)
        return;
    bool owes = !rl_conn_is_broken(c) && c->line.pending > 0;
    int64_t now_us = owes ? rl_now_us() : 0;
    if (owes)
        c->patient_us = rl_command_end(&l->node->e->core, now_us);
    rl_pool_give_back(l->node->pool, c);
    if (owes)
        rl_keeper_expect(l->node, now_us);
}

/* It waits for no connection of its own any more. */
static void expect_none(rl_leg *l)
{
    if (l->visiting)
        rl_connector_forget(l->node, &l->visitor);
    if (l->in_line)
        rl_pool_leave_line(l->node->pool, &l->claim);
    l->visiting = l->in_line = false;
}

static void close_leg(rl_leg *l)
{
    if (l->visiting || l->in_line)
        expect_none(l);
    give_back(l);
}

void rl_legs_close(rl_legs *ls)
{
    for (size_t i = 0; i < ls->n; i++)
        close_leg(&ls->leg[i]);
    ls->n = 0;
}

/* --- which ones ----------------------------------------------------------- */

static void begin_leg(rl_leg *l, rl_node *node)
{
    l->node = node;
    l->way = (rl_way){.line = NULL};
    l->port = NULL;
    l->trunk = NULL;
    l->visits = RL_NO_VISIT;
    l->visiting = l->in_line = l->calling = false;
    l->visitor = (rl_visitor){.own = false};
}

static bool is_used(const rl_legs *ls, const rl_leg *l)
{
    for (size_t i = 0; i < ls->op->n; i++)
        if (rl_part_is_open(ls->op->part[i]) && ls->op->part[i]->way == &l->way)
            return true;
    return false;
}

/* One that is there already, or one that nobody needs any more. */
static rl_leg *leg_to(rl_legs *ls, rl_node *node)
{
    rl_leg *spare = NULL;
    for (size_t i = 0; i < ls->n; i++) {
        if (ls->leg[i].node == node)
            return &ls->leg[i];
        if (!spare && !is_used(ls, &ls->leg[i]))
            spare = &ls->leg[i];
    }
    if (spare)
        close_leg(spare);
    else
        spare = &ls->leg[ls->n++];
    begin_leg(spare, node);
    return spare;
}

static rl_node *node_of(const rl_part *x)
{
    return x->ask.detour ? rl_node_at(x->core, x->ask.detour)
                         : rl_node_of(x->core, rl_part_slot(x));
}

/*
 * A leg for each part that is open: to the server that it is to be asked at
 * now, which in a cluster may be another one than before. What has been sent is
 * answered where it was sent.
 */
static void assign(rl_legs *ls)
{
    for (size_t i = 0; i < ls->op->n; i++) {
        rl_part *x = ls->op->part[i];
        if (!rl_part_is_open(x) || x->ask.next == RL_ASK_WAITS)
            continue;
        rl_node *node = node_of(x);
        if (x->way && rl_leg_of(x->way)->node == node)
            continue;
        x->way = NULL;
        x->way = &leg_to(ls, node)->way;
    }
}

static void refuse(rl_legs *ls, const rl_leg *l, const rl_fault *why)
{
    rl_way_fail(ls->op, &l->way, why, rl_ask_refuse, rl_now_us());
}

/* --- one leg -------------------------------------------------------------- */

/*
 * A port is for one command at a time, and for one that is waited for, which a
 * part on the heap need not be; and while replicas are waited for, the server
 * reads nothing else from that connection. What a script of the program takes
 * and answers may be large. A trunk outlives the operation, so it leads only to
 * servers of the client whose it is: another client may be freed before.
 */
static bool may_share(const rl_legs *ls, const rl_leg *l)
{
    const rl_op *op = ls->op;
    bool own = !ls->trunks || ls->trunks == &l->node->e->async.trunks;
    return own && !op->several && op->n == 1 && !op->part[0]->heap &&
           !op->part[0]->ask.detour && !op->part[0]->ask.confirm.replicas &&
           !rl_ask_is_guarded(&op->part[0]->ask) && !l->node->pool->exclusive;
}

/* The only one: this thread may wait for it. */
static void borrow(rl_legs *ls, rl_leg *l, int64_t now_us)
{
    rl_fault f;
    rl_conn *c = NULL;
    int64_t until_us = rl_way_until(ls->op, &l->way);
    if (now_us >= until_us)
        return;
    if (may_share(ls, l))
        take_port(l, rl_mux_set_join(&l->node->muxes, until_us, now_us, &f));
    else if (rl_pool_borrow(l->node->pool, until_us, &c, &f) == RLOCK_OK)
        use(l, c);
    if (!l->way.line)
        rl_way_fail(ls->op, &l->way, &f, rl_ask_miss, rl_now_us());
}

/* The only one, of who must not wait. What was asked before may have been for a
   connection of its own, which would come in between. */
static void call_trunk(rl_legs *ls, rl_leg *l, int64_t now_us)
{
    rl_fault f;
    if (l->visiting || l->in_line)
        expect_none(l);
    rl_trunk *t = rl_trunks_join(ls->trunks, l->node, &l->visits, &f);
    if (!l->calling)
        l->way.ready_us = now_us;
    l->calling = l->way.expecting = !t && l->visits != UINT_MAX;
    take_trunk(l, t);
    if (l->calling)
        return;
    if (!t)
        rl_way_fail(ls->op, &l->way, &f, rl_ask_miss, now_us);
    l->visits = RL_NO_VISIT;
}

/* NULL: there is none, and *f says why. */
static const rl_signal *signal_of(rl_legs *ls, rl_fault *f)
{
    if (ls->trunks)
        return ls->trunks->signal;
    if (ls->signal.fd >= 0 || rl_signal_init(&ls->signal))
        return &ls->signal;
    int err = errno;
    rl_fault_set(f, RLOCK_ENOMEM, err, "no descriptor to wait with: %s",
                 strerror(err));
    return NULL;
}

/* It opens one as soon as there is room. */
static void call_connector(rl_leg *l, const rl_signal *signal)
{
    int64_t now_us = rl_now_us();
    l->visiting = l->way.expecting = true;
    l->way.ready_us = now_us;
    l->way.slow =
        rl_connector_is_slow(&l->node->connector, RL_GRACE_US, now_us);
    rl_connector_visit(l->node, &l->visitor, 0, signal);
}

/* One of several: others find the connection. */
static void visit(rl_legs *ls, rl_leg *l)
{
    rl_fault f;
    const rl_signal *signal = signal_of(ls, &f);
    if (!signal) {
        refuse(ls, l, &f);
        return;
    }
    l->in_line = rl_pool_line_up(l->node->pool, &l->claim, signal);
    if (!l->in_line) {
        call_connector(l, signal);
        return;
    }
    l->way.expecting = true;
    l->way.ready_us = RL_NEVER;
    l->way.slow = false;
}

/* An idle connection, at once. False: the server is down. */
static bool find_connection(rl_legs *ls, rl_leg *l)
{
    rl_fault f;
    use(l, rl_pool_borrow_idle(l->node->pool, rl_way_behind(ls->op, &l->way)));
    l->way.down = rl_connector_is_down(&l->node->connector, &f);
    if (l->way.down)
        give_back(l);
    return !l->way.down;
}

static void leave_out(rl_legs *ls, rl_leg *l)
{
    rl_fault f = {.status = RLOCK_EIO};
    rl_connector_is_down(&l->node->connector, &f);
    refuse(ls, l, &f);
}

/*
 * What has come may be room for one more, which is given back and left to the
 * connector. Who stood in line for it again would be passed it by others like
 * him, round and round, and nobody would open one.
 */
static void look_for_claim(rl_legs *ls, rl_leg *l)
{
    rl_conn *c;
    if (!l->in_line || !rl_pool_take_claim(l->node->pool, &l->claim,
                                           rl_way_behind(ls->op, &l->way), &c))
        return;
    l->in_line = l->way.expecting = false;
    l->way.ready_us = rl_now_us();
    use(l, c);
    if (!c)
        call_connector(l, l->claim.signal);
}

/* Another server may take over, as for who asks alone. */
static void miss(rl_ask *a, int64_t now_us)
{
    if (a->patient)
        rl_ask_miss(a, now_us);
    else
        rl_ask_refuse(a, now_us);
}

/* Has the connector been successful? */
static void look_for_connection(rl_legs *ls, rl_leg *l)
{
    if (!l->visiting ||
        !rl_connector_has_news(&l->node->connector, &l->visitor))
        return;
    l->visiting = l->way.expecting = false;
    if (l->visitor.fault.status != RLOCK_OK) {
        rl_way_fail(ls->op, &l->way, &l->visitor.fault, miss, rl_now_us());
        return;
    }
    use(l, rl_pool_borrow_idle(l->node->pool, NULL));
    l->way.ready_us = rl_now_us();
    if (!l->way.line)
        visit(ls, l); /* somebody else was quicker */
}

/* --- a step --------------------------------------------------------------- */

/* Those that are down are tried only if there is no quorum without them. */
static void connect_several(rl_legs *ls)
{
    size_t hopeful = 0;
    for (size_t i = 0; i < ls->n; i++) {
        rl_leg *l = &ls->leg[i];
        if (l->way.line || l->way.expecting)
            hopeful++;
        else if (rl_way_is_wanted(ls->op, &l->way))
            hopeful += find_connection(ls, l);
    }
    bool insist = ls->op->insist && hopeful < ls->op->quorum;
    for (size_t i = 0; i < ls->n; i++) {
        rl_leg *l = &ls->leg[i];
        if (l->way.line || l->way.expecting ||
            !rl_way_is_wanted(ls->op, &l->way))
            continue;
        if (l->way.down && !insist && ls->op->quorum < ls->op->n)
            leave_out(ls, l);
        else
            visit(ls, l);
    }
}

/*
 * A connection may have broken, or lead to the wrong server. A port or a trunk
 * may have been good for the last round, and not be for this one; and on a
 * trunk that is asked no more, others may wait for answers.
 */
static bool is_good(const rl_legs *ls, const rl_leg *l)
{
    bool own = !l->port && !l->trunk;
    bool old = l->trunk && l->way.line->retired;
    return !rl_line_is_spent(l->way.line) && (own || may_share(ls, l)) &&
           !(old && rl_way_is_wanted(ls->op, &l->way));
}

/* Legs on which something is to be asked get connections, or will. Returns what
   time it is then, as to connect may take long. */
static int64_t get_connections(rl_legs *ls, int64_t now_us)
{
    rl_leg *first = &ls->leg[0];
    for (size_t i = 0; i < ls->n; i++)
        if (ls->leg[i].way.line && !is_good(ls, &ls->leg[i]))
            give_back(&ls->leg[i]);
    bool alone = ls->n == 1 && (!ls->trunks || may_share(ls, first));
    if (alone && (first->way.line || !rl_way_is_wanted(ls->op, &first->way)))
        return now_us;
    if (!alone)
        connect_several(ls);
    else
        (ls->trunks ? call_trunk : borrow)(ls, first, now_us);
    return rl_now_us();
}

/* What has failed is told with the server that it failed at. */
static void name_faults(rl_legs *ls)
{
    for (size_t i = 0; i < ls->op->n; i++) {
        rl_part *x = ls->op->part[i];
        if (x && x->over && !x->ok && x->way)
            x->fault.at = rl_leg_of(x->way)->node->name;
    }
}

/* While it stands in one line, it keeps nobody waiting in another: those in
   front may stand there for the connection that is here. */
static void return_idle(rl_legs *ls)
{
    bool waits = false;
    for (size_t i = 0; i < ls->n; i++)
        waits = waits || ls->leg[i].in_line;
    for (size_t i = 0; waits && i < ls->n; i++) {
        rl_leg *l = &ls->leg[i];
        if (l->way.line && l->way.line->pending == 0 &&
            !rl_way_is_wanted(ls->op, &l->way))
            give_back(l);
    }
}

/* A port sends when its thread waits there; a trunk when who drives has looked
   at all that ask on it. */
static void send_what_is_due(rl_legs *ls)
{
    for (size_t i = 0; i < ls->n; i++) {
        rl_conn *c = rl_leg_conn(&ls->leg[i]);
        if (c)
            rl_conn_send(c);
    }
}

/* What is sent counts from a reading of the clock that is older. */
bool rl_legs_ask(rl_legs *ls, int64_t *now_us)
{
    rl_op *op = ls->op;
    if (rl_round_rests(op))
        rl_round_wake(op, *now_us);
    assign(ls);
    *now_us = get_connections(ls, *now_us);
    rl_round_push(op, *now_us);
    send_what_is_due(ls);
    if (!rl_round_is_over(op, *now_us)) {
        return_idle(ls);
        return false;
    }
    rl_round_end(op, *now_us);
    name_faults(ls);
    return true;
}

/* A server that is silent is one that may be down. */
static void suspect(rl_way *w, const rl_fault *why)
{
    rl_node_suspect(rl_leg_of(w)->node, why);
}

void rl_legs_look(rl_legs *ls, int64_t now_us)
{
    for (size_t i = 0; i < ls->n; i++) {
        if (ls->leg[i].calling)
            call_trunk(ls, &ls->leg[i], now_us);
        look_for_connection(ls, &ls->leg[i]);
        look_for_claim(ls, &ls->leg[i]);
    }
    rl_round_expire(ls->op, now_us, suspect);
}
