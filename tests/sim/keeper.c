/*
 * Plays the keeper's thread (drive/keeper.c). Its tasks are the library's own
 * (drive/tasks.c), and so is its watch (drive/watch.c), which read no clock;
 * what is played is the loop around them, the keeper's own connection, the
 * answers that nobody waits for, and, of drive/connector.c, the trials of a
 * server that is down.
 */
#include <string.h>

#include "drive/tasks.h"
#include "world.h"

#define FIRST_PAUSE_US   (10 * MS)
#define LAST_PAUSE_US    (1 * S)
#define PAUSE_OF_LEASE   12
#define PATIENCE_US      (10 * MS)
#define TRIAL_PAUSE_US   (20 * MS)
#define LONGEST_TRIAL_US (1 * S)
#define LAST_TRY_US      (1 * S)

static client *client_of_task(task *t)
{
    return RL_CONTAINER(t, client, keeper.task);
}

static void wake(rl_lane *l)
{
    client *c = l->arg;
    task_wake(&c->keeper.task);
}

int64_t rl_keeper_longest_pause_us(const rl_node *node)
{
    return rl_min(LAST_PAUSE_US,
                  node->e->core.set.watchdog_lease_ms * 1000 / PAUSE_OF_LEASE);
}

/* --- the connection ------------------------------------------------------- */

static void back_off(client *c, int64_t now_us)
{
    rl_keeper *k = &c->e.node.keeper;
    int64_t pause_us =
        rl_min(k->pause_us, rl_keeper_longest_pause_us(&c->e.node));
    k->not_before_us = now_us + rl_jitter(pause_us * 4 / 5);
    k->pause_us = pause_us * 2;
}

static void drop_connection(client *c, int64_t now_us)
{
    rl_keeper *k = &c->e.node.keeper;
    conn *old = conn_of(k->conn);
    k->conn = NULL;
    conn_close(old);
    back_off(c, now_us);
}

static void take_connection(client *c, int64_t now_us)
{
    conn *k = c->keeper.dialing;
    if (!k)
        return;
    conn_state state = conn_settle(k);
    if (state == CONN_DIALING || state == CONN_IDENTIFYING)
        return;
    c->keeper.dialing = NULL;
    if (state == CONN_OPEN) {
        c->e.node.keeper.conn = &k->c;
        c->e.node.keeper.one_by_one = c->e.node.keeper.watch.met = false;
        return;
    }
    rl_fault f = k->fault;
    conn_close(k);
    back_off(c, now_us);
    rl_tasks_fail_due(&c->e.node, &f, now_us);
}

static void connect_if_due(client *c, bool due, bool holds, int64_t now_us)
{
    rl_keeper *k = &c->e.node.keeper;
    take_connection(c, now_us);
    if (k->conn && k->conn->line.pending == 0 && due &&
        conn_is_stale(conn_of(k->conn)))
        drop_connection(c, now_us);
    if (k->conn || !(due || holds) || now_us < k->not_before_us ||
        c->keeper.dialing)
        return;
    c->keeper.dialing =
        conn_dial(c, &c->keeper.task, rl_renewal_end(&c->e.core, now_us));
}

static void expire(client *c, int64_t now_us)
{
    rl_conn *k = c->e.node.keeper.conn;
    const rl_slot *first = rl_line_first(&k->line);
    if (first && RL_CONTAINER(first, rl_ask, slot)->until_us <= now_us)
        conn_time_out(conn_of(k));
}

static void serve_connection(client *c, int64_t now_us)
{
    rl_keeper *keeper = &c->e.node.keeper;
    rl_conn *k = keeper->conn;
    if (!k)
        return;
    if (!rl_conn_is_broken(k) && !rl_tasks_may_send(keeper, now_us))
        conn_time_out(conn_of(k));
    if (!rl_conn_is_broken(k) && conn_send(conn_of(k))) {
        bool asked = k->line.pending > 0;
        bool heard = conn_of(k)->inbox.len > 0;
        if (conn_receive(conn_of(k)) && heard && asked)
            keeper->pause_us = FIRST_PAUSE_US;
        if (!rl_conn_is_broken(k))
            conn_send(conn_of(k)); /* a script that goes whole */
    }
    if (!rl_conn_is_broken(k)) /* nobody knows of another server */
        rl_watch_is_alarmed(&c->e.node, now_us);
    if (!rl_conn_is_broken(k))
        expire(c, now_us);
    if (rl_line_is_spent(&k->line))
        drop_connection(c, now_us);
}

/* --- answers that nobody waits for ---------------------------------------- */

void keeper_expect(client *c, int64_t now_us)
{
    int64_t never = RL_NEVER;
    if (atomic_compare_exchange_strong(&c->e.node.keeper.owing_us, &never,
                                       now_us + PATIENCE_US))
        task_wake(&c->keeper.task);
}

static void take_owing(client *c, int64_t now_us)
{
    rl_keeper *k = &c->e.node.keeper;
    int64_t next_us = RL_NEVER;
    rl_link *next;
    if (now_us < atomic_load(&k->owing_us))
        return;
    atomic_store(&k->owing_us, RL_NEVER);
    for (rl_link *l = rl_list_first(&c->idle); l; l = next) {
        conn *x = conn_of(RL_CONTAINER(l, rl_conn, idle));
        next = rl_list_next(&c->idle, l);
        if (x->c.line.pending == 0)
            continue;
        if (x->c.rested_us > now_us - PATIENCE_US) {
            next_us = rl_min(next_us, x->c.rested_us);
            continue;
        }
        rl_list_remove(l);
        x->user = &c->keeper.task;
        rl_list_add_last(&k->owing, l);
    }
    if (next_us != RL_NEVER)
        keeper_expect(c, next_us);
}

static void serve_owing(client *c, int64_t now_us)
{
    rl_keeper *k = &c->e.node.keeper;
    rl_link *next;
    for (rl_link *l = rl_list_first(&k->owing); l; l = next) {
        conn *x = conn_of(RL_CONTAINER(l, rl_conn, idle));
        next = rl_list_next(&k->owing, l);
        if (conn_send(x))
            conn_receive(x);
        if (!conn_is_broken(x))
            conn_send(x);
        if (!conn_is_broken(x) && x->c.line.pending > 0 &&
            now_us >= x->c.patient_us) {
            conn_time_out(x);
            client_suspect(c);
        }
        if (!conn_is_broken(x) && x->c.line.pending > 0)
            continue;
        rl_list_remove(l);
        pool_give_back(c, x);
    }
}

/* --- a server that is down ------------------------------------------------ */

void client_suspect(client *c)
{
    if (c->down)
        return;
    c->down = true;
    c->down_until_us = client_now(c);
    task_wake(&c->keeper.task);
}

/* A connection that opens, and is identified, will do for a PING. */
static void try_server(client *c, int64_t now_us)
{
    if (!c->trial && c->down && now_us >= c->down_until_us)
        c->trial = conn_dial(c, &c->keeper.task, RL_NEVER);
    if (!c->trial)
        return;
    conn *k = c->trial;
    conn_state state = conn_settle(k);
    if (state == CONN_DIALING || state == CONN_IDENTIFYING)
        return;
    c->trial = NULL;
    c->down = state != CONN_OPEN;
    c->down_until_us = now_us + rl_jitter(TRIAL_PAUSE_US * 4);
    if (c->down)
        conn_close(k);
    else
        pool_give_back(c, k);
}

/* --- the loop ------------------------------------------------------------- */

static bool is_connected(const rl_keeper *k)
{
    return k->conn && !rl_conn_is_broken(k->conn);
}

static int64_t look_us(client *c, int64_t now_us)
{
    const rl_keeper *k = &c->e.node.keeper;
    rl_lane *l = &c->e.core.holds.first;
    if (l->held == 0)
        return l->look_us > now_us ? l->look_us : RL_NEVER;
    if (!is_connected(k))
        l->look_us =
            c->keeper.dialing ? now_us + RL_WATCH_US : k->not_before_us;
    else if (k->conn->line.pending > 0)
        l->look_us = rl_watch_due_us(&c->e.node);
    else
        l->look_us = rl_max(rl_watch_due_us(&c->e.node), l->look_us);
    return l->look_us;
}

static int64_t next_due_us(client *c, int64_t now_us, int64_t *look)
{
    rl_holds *t = &c->e.core.holds;
    const rl_heap_node *first = rl_heap_first(&t->first.work);
    int64_t due_us = first ? first->due_us : RL_NEVER;
    *look = look_us(c, now_us);
    t->first.sleeps_us =
        rl_min(rl_max(due_us, c->e.node.keeper.not_before_us), *look);
    return due_us;
}

static int64_t wake_up_us(client *c, int64_t due_us, int64_t look)
{
    rl_keeper *k = &c->e.node.keeper;
    int64_t us = rl_min(atomic_load(&k->owing_us), look);
    if (is_connected(k)) {
        const rl_slot *first = rl_line_first(&k->conn->line);
        if (first)
            us = rl_min(us, RL_CONTAINER(first, rl_ask, slot)->until_us);
        if (rl_tasks_have_room(k))
            us = rl_min(us, rl_max(due_us, k->not_before_us));
    } else if (!c->keeper.dialing) {
        us = rl_min(us, rl_max(due_us, k->not_before_us));
    }
    for (rl_link *l = rl_list_first(&k->owing); l;
         l = rl_list_next(&k->owing, l))
        us = rl_min(us, RL_CONTAINER(l, rl_conn, idle)->patient_us);
    if (c->keeper.dialing)
        us = rl_min(us, c->keeper.dialing->dial_until_us);
    if (c->down)
        us = rl_min(us, c->trial ? c->trial->dial_until_us : c->down_until_us);
    return us;
}

/* At the end there is no pause before a connection is made. */
static bool tries_at_end(client *c, int64_t now_us)
{
    rl_keeper *k = &c->e.node.keeper;
    if (k->end_us == RL_NEVER) {
        k->end_us =
            rl_min(rl_renewal_end(&c->e.core, now_us), now_us + LAST_TRY_US);
        if (c->e.core.holds.undoing > 0 && !k->conn && !c->keeper.dialing)
            c->keeper.dialing = conn_dial(c, &c->keeper.task, k->end_us);
    }
    take_connection(c, now_us);
    return c->e.core.holds.undoing > 0 && now_us < k->end_us &&
           (k->conn || c->keeper.dialing);
}

static void try_at_end(client *c, int64_t now_us)
{
    c->keeper.has_stopped = c->keeper.has_stopped || !tries_at_end(c, now_us);
    if (c->keeper.has_stopped) {
        task_sleep(&c->keeper.task, RL_NEVER);
        return;
    }
    rl_tasks_push_due(&c->e.node, now_us);
    serve_connection(c, now_us);
    task_sleep(&c->keeper.task, now_us + 1 * MS);
}

void keeper_stop(client *c)
{
    c->keeper.is_stopping = true;
    task_wake(&c->keeper.task);
}

static void run(task *t)
{
    client *c = client_of_task(t);
    int64_t now_us = client_now(c);
    if (c->keeper.is_stopping) {
        try_at_end(c, now_us);
        return;
    }
    int64_t look, due_us = next_due_us(c, now_us, &look);
    bool holds = c->e.core.holds.first.held > 0;
    connect_if_due(c, due_us <= now_us, holds, now_us);
    if (is_connected(&c->e.node.keeper))
        rl_watch_ask(&c->e.node, holds && now_us >= look, now_us);
    if (now_us >= c->e.node.keeper.not_before_us)
        rl_tasks_push_due(&c->e.node, now_us);
    serve_connection(c, now_us);
    take_owing(c, now_us);
    serve_owing(c, now_us);
    try_server(c, now_us);
    due_us = next_due_us(c, now_us, &look);
    task_sleep(t, wake_up_us(c, due_us, look));
}

/* Does an idle connection owe answers that nobody has read yet? */
static bool is_owed(const client *c)
{
    for (rl_link *l = rl_list_first(&c->idle); l; l = rl_list_next(&c->idle, l))
        if (RL_CONTAINER(l, rl_conn, idle)->line.pending > 0)
            return true;
    return false;
}

bool keeper_is_idle(const client *c)
{
    const rl_keeper *k = &c->e.node.keeper;
    return k->in_flight == 0 && rl_list_is_empty(&k->owing) && !is_owed(c) &&
           c->e.core.holds.undoing == 0;
}

void keeper_open(client *c)
{
    rl_keeper *k = &c->e.node.keeper;
    task_init(&c->keeper.task, c->p, run, "keeper");
    c->e.node.e = &c->e;
    c->e.node.lane = &c->e.core.holds.first;
    c->e.node.lane->arg = c;
    c->e.node.lane->wake = wake;
    rl_list_init(&k->owing);
    k->pause_us = FIRST_PAUSE_US;
    k->end_us = RL_NEVER;
    atomic_init(&k->owing_us, RL_NEVER);
    rl_tasks_init(k);
    if (!rl_tasks_reserve(k))
        die("out of memory");
}

/* What is still under way ends here. */
void keeper_close(client *c)
{
    rl_keeper *k = &c->e.node.keeper;
    rl_link *l;
    conn_close(c->keeper.dialing);
    if (k->conn)
        conn_close(conn_of(k->conn));
    k->conn = NULL;
    while ((l = rl_list_first(&k->owing)) != NULL) {
        rl_list_remove(l);
        conn_close(conn_of(RL_CONTAINER(l, rl_conn, idle)));
    }
    rl_tasks_fini(k);
    task_fini(&c->keeper.task);
}
