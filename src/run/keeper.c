/*
 * A turn: put what is due on the line (batches.c), and what the watch asks
 * (watch.c), send, read.
 *
 * What stays true: while the server is away nothing is sent at all, and what is
 * due is tried again after a short back-off, never at the next period; while
 * something is held, a connection that has ended is replaced; nothing here
 * blocks.
 */
#include "op/op.h"
#include "run/batches.h"
#include "run/engine.h"

#define FIRST_PAUSE_US 10000
#define LAST_PAUSE_US  1000000
#define PAUSE_OF_LEASE 12

/* Mostly the next caller comes by before a late answer is looked for. */
#define PATIENCE_US 10000

#define MOST_OWING  64
#define MOST_POLLED (1 + MOST_OWING)

/* How long a client that is being freed tries to undo what is left. */
#define LAST_TRY_US 1000000

static void wake_it(rl_node *node)
{
    rl_loop_nudge(&node->e->loop, &node->keeper.watcher);
}

static void wake(rl_due_queue *l)
{
    wake_it(l->arg);
}

static int64_t turn(rl_watcher *w, int64_t now_us);
static size_t look(rl_watcher *w, struct pollfd *p, size_t room);

void rl_keeper_init(rl_node *node)
{
    rl_keeper *k = &node->keeper;
    node->queue->arg = node;
    node->queue->wake = wake;
    k->watcher = (rl_watcher){.turn = turn, .look = look, .most = MOST_POLLED};
    k->fresh = true;
    rl_list_init(&k->owing);
    k->pause_us = FIRST_PAUSE_US;
    k->end_us = RL_NEVER;
    atomic_init(&k->owing_us, RL_NEVER);
    rl_batches_init(k);
}

void rl_keeper_fini(rl_keeper *k)
{
    rl_batches_fini(k);
}

/* --- the connection ------------------------------------------------------- */

static bool is_connected(const rl_keeper *k)
{
    return k->conn && !rl_conn_is_broken(k->conn);
}

bool rl_keeper_is_cut_off(const rl_keeper *k)
{
    return k->holds && !is_connected(k);
}

int64_t rl_keeper_longest_pause_us(const rl_node *node)
{
    return rl_min(LAST_PAUSE_US,
                  node->e->core.set.watchdog_lease_ms * 1000 / PAUSE_OF_LEASE);
}

/*
 * While the server is away nothing is sent: a small pause first, then longer
 * ones, but short against the lease.
 */
static void back_off(rl_node *node, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    int64_t pause_us = rl_min(k->pause_us, rl_keeper_longest_pause_us(node));
    k->not_before_us = now_us + rl_jitter(pause_us * 4 / 5);
    k->pause_us = pause_us * 2;
}

static void end_pause_if_told(rl_keeper *k)
{
    if (!atomic_exchange(&k->hurry, false))
        return;
    k->not_before_us = 0;
    k->pause_us = FIRST_PAUSE_US;
}

static void drop_connection(rl_node *node, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    if (!k->conn)
        return;
    rl_pool_close(node->pool, k->conn);
    k->conn = NULL;
    back_off(node, now_us);
}

/* One that has been closed, or is better made anew, while nothing is asked. */
static void drop_useless(rl_node *node, bool due, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    if (!k->conn || k->conn->line.pending > 0)
        return;
    if (due && rl_conn_is_stale(k->conn)) {
        drop_connection(node, now_us);
    } else if (rl_pool_is_outdated(node->pool, k->conn, now_us)) {
        rl_pool_close(node->pool, k->conn);
        k->conn = NULL;
    }
}

static bool is_visiting(const rl_keeper *k)
{
    return k->visitor.signal != NULL;
}

static void visit(rl_node *node, int64_t until_us)
{
    rl_connector_visit(node, &node->keeper.visitor, until_us,
                       &node->e->loop.signal);
}

/* What the connector has made. False: it could not, as the visitor's fault
   says. */
static bool take_connection(rl_node *node)
{
    rl_keeper *k = &node->keeper;
    rl_visitor *v = &k->visitor;
    if (!is_visiting(k) || !rl_connector_has_news(&node->connector, v))
        return true;
    v->signal = NULL;
    k->conn = v->conn;
    k->one_by_one = k->watch.met = k->has_come = false;
    v->conn = NULL;
    if (k->conn)
        rl_doorbell_wake(node); /* which may have let it go first */
    return k->conn != NULL;
}

static void note_failure(rl_node *node, const rl_fault *f)
{
    rl_holds *t = &node->e->core.holds;
    rl_mutex_lock(&t->mutex);
    t->failure = *f;
    t->failure.at = node->name;
    rl_mutex_unlock(&t->mutex);
}

/* At the end there is no time for a server that is away. False: it is. */
static bool reach_at_end(rl_node *node, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    if (!take_connection(node)) {
        note_failure(node, &k->visitor.fault);
        return false;
    }
    drop_useless(node, true, now_us);
    if (!k->conn && !is_visiting(k))
        visit(node, k->end_us);
    return true;
}

/* How long the last try may take; what is held is worth a command's time. */
static int64_t end_of(rl_node *node, int64_t now_us)
{
    const rl_core *c = &node->e->core;
    return c->holds.releasing
               ? rl_command_end(c, now_us)
               : rl_min(rl_renewal_end(c, now_us), now_us + LAST_TRY_US);
}

static void connect_if_due(rl_node *node, bool due, bool holds, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    if (!take_connection(node)) {
        back_off(node, now_us);
        rl_batches_fail_due(node, &k->visitor.fault, now_us);
    }
    bool had = k->conn != NULL;
    drop_useless(node, due, now_us);
    due = due || (had && !k->conn); /* rings for nobody go over it, too */
    if (!k->conn && (due || holds) && now_us >= k->not_before_us &&
        !is_visiting(k))
        visit(node, rl_renewal_end(&node->e->core, now_us));
}

static void expire(rl_node *node, int64_t now_us)
{
    const rl_keeper *k = &node->keeper;
    const rl_slot *first = rl_line_first(&k->conn->line);
    if (first && RL_CONTAINER(first, rl_ask, slot)->until_us <= now_us)
        rl_conn_time_out(k->conn);
}

static void exchange(rl_keeper *k)
{
    bool asked = k->conn->line.pending > 0;
    if (!rl_conn_send(k->conn) || !(asked || k->has_come))
        return;
    if (rl_conn_receive(k->conn) && asked)
        k->pause_us = FIRST_PAUSE_US;
}

static void serve_connection(rl_node *node)
{
    rl_keeper *k = &node->keeper;
    int64_t now_us = rl_now_us();
    if (!k->conn)
        return;
    if (!rl_conn_is_broken(k->conn) && !rl_batches_may_send(k, now_us))
        rl_conn_time_out(k->conn);
    if (!rl_conn_is_broken(k->conn))
        exchange(k);
    if (!rl_conn_is_broken(k->conn) && rl_watch_is_alarmed(node, now_us))
        rl_node_complain(node);
    if (!rl_conn_is_broken(k->conn))
        expire(node, now_us);
    if (rl_line_is_spent(&k->conn->line))
        drop_connection(node, now_us);
}

/* What is on its way when the server is away does not come back. */
void rl_keeper_ask(rl_node *node, rl_part *x, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    if (!is_connected(k)) {
        rl_part_let_go(x);
        return;
    }
    x->ask.tries = 1;
    x->ask.patient = false;
    x->until_us = rl_renewal_end(&node->e->core, now_us);
    rl_part_push(x, &k->conn->line, now_us);
    if (rl_batches_may_send(k, now_us))
        rl_conn_send(k->conn); /* at once: it may be about to end */
    wake_it(node);
}

/* --- answers that nobody waits for ---------------------------------------- */

void rl_keeper_expect(rl_node *node, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    int64_t never = RL_NEVER;
    if (!atomic_compare_exchange_strong(&k->owing_us, &never,
                                        now_us + PATIENCE_US))
        return;
    wake_it(node);
}

static void take_owing(rl_node *node, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    int64_t next_us = RL_NEVER;
    rl_conn *c;
    if (now_us < atomic_load(&k->owing_us))
        return;
    atomic_store(&k->owing_us, RL_NEVER);
    while ((c = rl_pool_borrow_owing(node->pool, now_us - PATIENCE_US,
                                     &next_us)) != NULL)
        rl_list_add_last(&k->owing, &c->idle);
    if (next_us != RL_NEVER)
        rl_keeper_expect(node, next_us);
}

static void serve_owing(rl_node *node, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    rl_link *next;
    for (rl_link *l = rl_list_first(&k->owing); l; l = next) {
        rl_conn *c = RL_CONTAINER(l, rl_conn, idle);
        next = rl_list_next(&k->owing, l);
        /* What was answered late may have to be asked once more. */
        if (rl_conn_send(c))
            rl_conn_receive(c);
        if (!rl_conn_is_broken(c) && c->line.pending > 0 &&
            now_us >= c->patient_us) {
            rl_conn_time_out(c);
            rl_connector_suspect(node, &c->line.fault);
        }
        if (!rl_conn_is_broken(c) && c->line.pending > 0)
            continue;
        rl_list_remove(&c->idle);
        rl_pool_give_back(node->pool, c);
    }
}

/* --- a turn --------------------------------------------------------------- */

/* What there is to do; and until when not, for those who would wake it. */
typedef struct agenda {
    int64_t due_us;  /* something is due then; RL_NEVER */
    int64_t look_us; /* the watch goes on then */
    bool holds;      /* something is held here */
    bool stopping;
    size_t undoing;
} agenda;

/*
 * When the watch is to go on; of a server at which nothing is held any more, a
 * last time. What is held since just now has waited for no sign of life yet.
 */
static int64_t next_look_us(const rl_node *node, const agenda *a,
                            int64_t now_us)
{
    const rl_keeper *k = &node->keeper;
    int64_t last_us = node->queue->look_us;
    if (!a->holds)
        return last_us > now_us ? last_us : RL_NEVER;
    if (!is_connected(k))
        return is_visiting(k) ? now_us + RL_WATCH_US : k->not_before_us;
    int64_t due_us = rl_watch_due_us(node);
    return k->conn->line.pending > 0 ? due_us : rl_max(due_us, last_us);
}

static agenda read_agenda(rl_node *node)
{
    rl_holds *t = &node->e->core.holds;
    rl_due_queue *l = node->queue;
    int64_t now_us = rl_now_us();
    rl_mutex_lock(&t->mutex);
    const rl_heap_node *first = rl_heap_first(&l->work);
    agenda a = {.due_us = first ? first->due_us : RL_NEVER,
                .holds = l->held > 0,
                .stopping = t->stopping,
                .undoing = t->undoing};
    a.look_us = next_look_us(node, &a, now_us);
    if (a.holds)
        l->look_us = a.look_us;
    l->sleeps_us =
        rl_min(rl_max(a.due_us, node->keeper.not_before_us), a.look_us);
    rl_mutex_unlock(&t->mutex);
    return a;
}

static int64_t wake_up_us(const rl_node *node, const agenda *a)
{
    const rl_keeper *k = &node->keeper;
    int64_t due_us = rl_max(a->due_us, k->not_before_us);
    int64_t us = rl_min(k->end_us, atomic_load(&k->owing_us));
    us = rl_min(us, a->look_us);
    if (is_connected(k)) {
        const rl_slot *first = rl_line_first(&k->conn->line);
        us = rl_min(us, first ? RL_CONTAINER(first, rl_ask, slot)->until_us
                              : k->conn->expires_us);
        if (rl_batches_have_room(k))
            us = rl_min(us, due_us);
    } else if (!is_visiting(k)) {
        us = rl_min(us, due_us);
    }
    for (rl_link *l = rl_list_first(&k->owing); l;
         l = rl_list_next(&k->owing, l))
        us = rl_min(us, RL_CONTAINER(l, rl_conn, idle)->patient_us);
    return us;
}

static size_t look(rl_watcher *w, struct pollfd *p, size_t room)
{
    const rl_keeper *k = RL_CONTAINER(w, rl_keeper, watcher);
    (void)room;
    bool connected = is_connected(k);
    size_t n = 0;
    p[n++] = (struct pollfd){.fd = connected ? k->conn->io.fd : -1,
                             .events = connected ? rl_conn_events(k->conn) : 0};
    for (rl_link *l = rl_list_first(&k->owing); l && n < MOST_POLLED;
         l = rl_list_next(&k->owing, l)) {
        const rl_conn *c = RL_CONTAINER(l, rl_conn, idle);
        p[n++] = (struct pollfd){.fd = c->io.fd, .events = rl_conn_events(c)};
    }
    return n;
}

/*
 * Of many servers, this one may not have been connected to when the client was
 * made; the first renewal is not to wait for that.
 */
static void ask(rl_node *node, const agenda *a, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    bool due = k->fresh || a->due_us <= now_us;
    if (!a->stopping)
        connect_if_due(node, due, a->holds, now_us);
    k->fresh = false;
    if (is_connected(k) && !a->stopping)
        rl_watch_ask(node, a->holds, now_us >= a->look_us, now_us);
    if (a->stopping || now_us >= k->not_before_us)
        rl_batches_push_due(node, now_us);
}

/* Is it to end, and all is done that can be? */
static bool is_over(rl_node *node, const agenda *a, int64_t now_us)
{
    rl_keeper *k = &node->keeper;
    if (a->stopping && k->end_us == RL_NEVER)
        k->end_us = end_of(node, now_us);
    return atomic_load(&k->dismissed) ||
           (a->stopping && (a->undoing == 0 || now_us >= k->end_us ||
                            !reach_at_end(node, now_us)));
}

/* What is still under way ends here. */
static void wind_up(rl_node *node)
{
    rl_keeper *k = &node->keeper;
    rl_link *l;
    rl_connector_forget(node, &k->visitor);
    k->visitor.signal = NULL;
    if (is_connected(k) && k->conn->line.pending > 0)
        rl_conn_time_out(k->conn);
    rl_pool_close(node->pool, k->conn);
    k->conn = NULL;
    while ((l = rl_list_first(&k->owing)) != NULL) {
        rl_conn *c = RL_CONTAINER(l, rl_conn, idle);
        rl_list_remove(l);
        if (!rl_conn_is_broken(c) && c->line.pending > 0)
            rl_conn_time_out(c);
        rl_pool_give_back(node->pool, c);
    }
    k->fresh = true;
    k->holds = false;
}

static int64_t turn(rl_watcher *w, int64_t now_us)
{
    rl_keeper *k = RL_CONTAINER(w, rl_keeper, watcher);
    rl_node *node = RL_CONTAINER(k, rl_node, keeper);
    k->has_come = w->n > 0 && w->polled[0].revents != 0;
    end_pause_if_told(k);
    agenda a = read_agenda(node);
    if (is_over(node, &a, now_us)) {
        wind_up(node);
        return RL_LOOP_LEAVE;
    }
    ask(node, &a, now_us);
    serve_connection(node);
    take_owing(node, now_us);
    serve_owing(node, rl_now_us());
    a = read_agenda(node);
    k->holds = a.holds;
    w->called = is_visiting(k);
    return a.stopping ? rl_now_us() + 1000 : wake_up_us(node, &a);
}

/* --- from other threads --------------------------------------------------- */

bool rl_keeper_start(rl_node *node)
{
    atomic_store(&node->keeper.dismissed, false);
    return rl_batches_reserve(&node->keeper) &&
           rl_loop_add(&node->e->loop, &node->keeper.watcher);
}

void rl_keeper_stop(rl_node *node)
{
    rl_keeper *k = &node->keeper;
    rl_loop_await_end(&node->e->loop, &k->watcher);
    rl_pool_close(node->pool, k->conn); /* it was never started */
    k->conn = NULL;
}

void rl_keeper_hurry(rl_node *node)
{
    atomic_store(&node->keeper.hurry, true);
    wake_it(node);
}

void rl_keeper_dismiss(rl_node *node)
{
    atomic_store(&node->keeper.dismissed, true);
    wake_it(node);
}
