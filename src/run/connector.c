/*
 * The thread serves visitors, whoever wants a connection of his own first, and
 * in between tries a server that is down. It lets go of the mutex while it
 * connects; a visitor who has gone meanwhile is no longer the one that is
 * served, and his connection is closed.
 *
 * What stays true, under the mutex: a visitor is waiting until he has been told
 * or has himself forgotten; `down` is the outcome of the latest try, or
 * somebody's suspicion since, and lasts until a try succeeds.
 */
#include "run/connector.h"

#include <errno.h>

#include "run/engine.h"

#define FIRST_PAUSE_US (20 * 1000)
#define LAST_PAUSE_US  (1000 * 1000)

void rl_connector_init(rl_connector *c)
{
    rl_mutex_init(&c->mutex);
    rl_cond_init(&c->work);
    rl_list_init(&c->visitors);
}

void rl_connector_fini(rl_connector *c)
{
    rl_cond_fini(&c->work);
    rl_mutex_fini(&c->mutex);
}

bool rl_connector_is_down(rl_connector *c, rl_fault *why)
{
    rl_mutex_lock(&c->mutex);
    bool down = c->down;
    if (down)
        *why = c->fault;
    rl_mutex_unlock(&c->mutex);
    return down;
}

bool rl_connector_is_slow(rl_connector *c, int64_t limit_us, int64_t now_us)
{
    rl_mutex_lock(&c->mutex);
    bool slow = c->since_us > 0 && now_us - c->since_us >= limit_us;
    rl_mutex_unlock(&c->mutex);
    return slow;
}

void rl_connector_suspect(rl_connector *c, const rl_fault *why)
{
    rl_mutex_lock(&c->mutex);
    if (!c->down) {
        c->down = true;
        c->fault = *why;
        rl_cond_wake(&c->work);
    }
    rl_mutex_unlock(&c->mutex);
}

/* The visitor is told, and is free to go. */
static void tell_locked(rl_connector *c, rl_visitor *v, const rl_fault *f)
    RL_REQUIRES(&c->mutex)
{
    (void)c;
    v->fault = *f;
    v->waiting = false;
    rl_signal_raise(v->signal);
}

/* Of a server that is asked no more. */
static void refuse_locked(rl_connector *c, rl_visitor *v) RL_REQUIRES(&c->mutex)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, 0, "this server is not asked any more");
    tell_locked(c, v, &f);
}

void rl_connector_visit(rl_connector *c, rl_visitor *v, int64_t own_until_us,
                        const rl_signal *signal)
{
    v->own = own_until_us > 0;
    v->until_us = own_until_us;
    v->signal = signal;
    v->conn = NULL;
    rl_mutex_lock(&c->mutex);
    v->waiting = true;
    if (c->stopping)
        refuse_locked(c, v);
    else if (v->own)
        rl_list_add_first(&c->visitors, &v->link);
    else
        rl_list_add_last(&c->visitors, &v->link);
    rl_cond_wake(&c->work);
    rl_mutex_unlock(&c->mutex);
}

bool rl_connector_has_news(rl_connector *c, rl_visitor *v)
{
    rl_mutex_lock(&c->mutex);
    bool news = !v->waiting;
    rl_mutex_unlock(&c->mutex);
    return news;
}

void rl_connector_forget(rl_node *node, rl_visitor *v)
{
    rl_connector *c = &node->connector;
    rl_mutex_lock(&c->mutex);
    rl_list_remove(&v->link);
    if (c->served == v)
        c->served = NULL;
    v->waiting = false;
    rl_mutex_unlock(&c->mutex);
    rl_source_close(node->source, v->conn);
    v->conn = NULL;
}

static rlock_status ping(rl_node *node, rl_conn *c, int64_t until_us,
                         rl_fault *f)
{
    rlock_status s = rl_conn_ping(c, until_us, f);
    rl_source_give_back(node->source, c);
    return s;
}

/*
 * A connection that is there already may lead to a server that hangs, so it is
 * pinged. Afterwards it is idle in the pool, for whoever comes.
 */
static rlock_status try_server(rl_node *node, int64_t until_us, rl_fault *f)
{
    rl_conn *c = rl_source_borrow_idle(node->source, NULL);
    rlock_status s =
        c ? RLOCK_OK : rl_source_borrow(node->source, until_us, &c, f);
    return s == RLOCK_OK ? ping(node, c, until_us, f) : s;
}

static int64_t next_pause_us(const rl_connector *c)
{
    int64_t longer_us = rl_max(c->pause_us * 2, FIRST_PAUSE_US);
    return c->down ? rl_jitter(rl_min(longer_us, LAST_PAUSE_US)) : 0;
}

/* Those who are served by one in the pool. */
static void tell_all_locked(rl_connector *c, const rl_fault *f)
    RL_REQUIRES(&c->mutex)
{
    rl_link *next;
    for (rl_link *k = rl_list_first(&c->visitors); k; k = next) {
        rl_visitor *v = RL_CONTAINER(k, rl_visitor, link);
        next = rl_list_next(&c->visitors, k);
        if (v->own)
            continue;
        rl_list_remove(k);
        tell_locked(c, v, f);
    }
}

static void note_locked(rl_connector *c, rlock_status s, rl_fault *f)
    RL_REQUIRES(&c->mutex)
{
    f->status = s;
    /* A full pool and a lack of memory are ours, not the server's. */
    c->down = s != RLOCK_OK && s != RLOCK_ENOMEM && f->sys_errno != EBUSY;
    c->fault = *f;
    c->pause_us = next_pause_us(c);
}

static int64_t attempt_end(const rl_node *node)
{
    return rl_after_ms(rl_now_us(),
                       rl_min(node->e->core.set.connect_timeout_ms,
                              node->e->core.set.command_timeout_ms));
}

/* One of his own; if he has gone meanwhile, it is closed. */
static void open_locked(rl_node *node, rl_visitor *v)
    RL_REQUIRES(&node->connector.mutex)
{
    rl_connector *c = &node->connector;
    rl_fault f = {0};
    rl_conn *conn = NULL;
    int64_t until_us = v->until_us;
    rl_list_remove(&v->link);
    c->served = v;
    rl_mutex_unlock(&node->connector.mutex);
    rlock_status s = rl_source_open(node->source, until_us, &conn, &f);
    rl_mutex_lock(&node->connector.mutex);
    f.status = s;
    if (c->served == v) {
        v->conn = conn;
        conn = NULL;
        tell_locked(&node->connector, v, &f);
    }
    c->served = NULL;
    if (conn) {
        rl_mutex_unlock(&node->connector.mutex);
        rl_source_close(node->source, conn);
        rl_mutex_lock(&node->connector.mutex);
    }
}

static void try_locked(rl_node *node) RL_REQUIRES(&node->connector.mutex)
{
    rl_fault f = {0};
    node->connector.since_us = rl_now_us();
    rl_mutex_unlock(&node->connector.mutex);
    rlock_status s = try_server(node, attempt_end(node), &f);
    rl_mutex_lock(&node->connector.mutex);
    node->connector.since_us = 0;
    note_locked(&node->connector, s, &f);
    tell_all_locked(&node->connector, &f);
}

static rl_visitor *first_visitor(const rl_connector *c)
{
    rl_link *first = rl_list_first(&c->visitors);
    return first ? RL_CONTAINER(first, rl_visitor, link) : NULL;
}

static void *run(void *arg)
{
    rl_node *node = arg;
    rl_connector *c = &node->connector;
    int64_t tried_us = 0;
    rl_mutex_lock(&node->connector.mutex);
    while (!c->stopping) {
        rl_visitor *v = first_visitor(c);
        int64_t try_us = c->down ? tried_us + c->pause_us : RL_NEVER;
        if (v && v->own) {
            open_locked(node, v);
        } else if (v || try_us <= rl_now_us()) {
            try_locked(node);
            tried_us = rl_now_us();
        } else {
            rl_cond_wait_until(&c->work, &node->connector.mutex, try_us);
        }
    }
    for (rl_visitor *v; (v = first_visitor(c)) != NULL;) {
        rl_list_remove(&v->link);
        refuse_locked(&node->connector, v);
    }
    rl_mutex_unlock(&node->connector.mutex);
    return NULL;
}

bool rl_connector_start(rl_node *node)
{
    rl_thread *t = &node->connector.thread;
    if (t->started)
        return true;
    rl_mutex_lock(&node->connector.mutex);
    node->connector.stopping = false;
    rl_mutex_unlock(&node->connector.mutex);
    return rl_thread_start(t, "rlock-connector", run, node);
}

void rl_connector_stop(rl_node *node)
{
    rl_mutex_lock(&node->connector.mutex);
    node->connector.stopping = true;
    rl_cond_wake(&node->connector.work);
    rl_mutex_unlock(&node->connector.mutex);
    rl_thread_join(&node->connector.thread);
}
