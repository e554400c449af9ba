/*
 * The thread serves visitors, the keeper first, then whoever wants a connection
 * of his own, and in between tries a server that is down. It lets go of the mutex
 * while it connects; a visitor who has gone meanwhile is no longer the one that
 * is served, and his connection is closed. It ends when it has had nothing to do
 * for a while; who has something for it then starts it anew.
 *
 * What stays true, under the mutex: a visitor is waiting until he has been told
 * or has himself forgotten; `down` is the outcome of the latest try, or
 * somebody's suspicion since, and lasts until a try succeeds; while a visitor
 * waits, or the server is down and may be asked, the thread runs or is being
 * started.
 */
#include "run/connector.h"

#include <errno.h>
#include <string.h>

#include "run/engine.h"

#define FIRST_PAUSE_US (20 * 1000)
#define LAST_PAUSE_US  (1000 * 1000)

/* To start a thread costs less than one that is there all the while. */
#define IDLE_US (1000 * 1000)

void rl_connector_init(rl_connector *c)
{
    rl_mutex_init(&c->mutex, RL_RANK_CONNECTOR);
    rl_cond_init(&c->work);
    rl_cond_init(&c->started);
    rl_list_init(&c->own);
    rl_list_init(&c->others);
}

void rl_connector_fini(rl_connector *c)
{
    rl_cond_fini(&c->started);
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

/* The visitor is told, and is free to go. */
static void tell_locked(rl_connector *c, rl_visitor *v, const rl_fault *f)
    RL_REQUIRES(&c->mutex)
{
    (void)c;
    v->fault = *f;
    v->waiting = false;
    rl_signal_raise(v->signal);
}

static const rl_fault not_asked = {.status = RLOCK_EIO,
                                   .transient = true,
                                   .text = "this server is not asked any more"};

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
    rl_pool_close(node->pool, v->conn);
    v->conn = NULL;
}

static int64_t next_pause_us(const rl_connector *c)
{
    int64_t longer_us = rl_max(c->pause_us * 2, FIRST_PAUSE_US);
    return c->down ? rl_jitter(rl_min(longer_us, LAST_PAUSE_US)) : 0;
}

static void tell_all_locked(rl_connector *c, rl_list *visitors,
                            const rl_fault *f) RL_REQUIRES(&c->mutex)
{
    rl_link *k;
    while ((k = rl_list_first(visitors)) != NULL) {
        rl_list_remove(k);
        tell_locked(c, RL_CONTAINER(k, rl_visitor, link), f);
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
    rlock_status s = rl_pool_open(node->pool, until_us, &conn, &f);
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
        rl_pool_close(node->pool, conn);
        rl_mutex_lock(&node->connector.mutex);
    }
}

static void try_locked(rl_node *node) RL_REQUIRES(&node->connector.mutex)
{
    rl_fault f = {0};
    node->connector.since_us = rl_now_us();
    rl_mutex_unlock(&node->connector.mutex);
    /* One that is there already may lead to a server that hangs, so it is
       pinged; then it is idle in the pool, for whoever comes. */
    rlock_status s = rl_pool_ping(node->pool, attempt_end(node), &f);
    rl_mutex_lock(&node->connector.mutex);
    node->connector.since_us = 0;
    note_locked(&node->connector, s, &f);
    tell_all_locked(&node->connector, &node->connector.others, &f);
}

static rl_visitor *first_visitor(const rl_connector *c)
{
    rl_link *first = rl_list_first(&c->own);
    if (!first)
        first = rl_list_first(&c->others);
    return first ? RL_CONTAINER(first, rl_visitor, link) : NULL;
}

static bool tries_unasked(const rl_connector *c)
{
    return c->down && !c->ends;
}

/* False: it has had nothing to do for a while, or may not ask its server. */
static bool serve_locked(rl_node *node, int64_t *tried_us, int64_t *busy_us)
    RL_REQUIRES(&node->connector.mutex)
{
    rl_connector *c = &node->connector;
    rl_visitor *v = first_visitor(c);
    int64_t now_us = rl_now_us();
    int64_t try_us = tries_unasked(c) ? *tried_us + c->pause_us : RL_NEVER;
    if (!c->open)
        return false;
    if (!v && try_us > now_us) {
        int64_t end_us = tries_unasked(c) ? RL_NEVER : *busy_us + IDLE_US;
        if (end_us <= now_us)
            return false;
        rl_cond_wait_until(&c->work, &node->connector.mutex,
                           rl_min(try_us, end_us));
        return true;
    }
    if (v && v->own) {
        open_locked(node, v);
    } else {
        try_locked(node);
        *tried_us = rl_now_us();
    }
    *busy_us = rl_now_us();
    return true;
}

static void refuse_all_locked(rl_connector *c, const rl_fault *f)
    RL_REQUIRES(&c->mutex)
{
    tell_all_locked(c, &c->own, f);
    tell_all_locked(c, &c->others, f);
}

static void *run(void *arg)
{
    rl_node *node = arg;
    rl_connector *c = &node->connector;
    int64_t tried_us = 0, busy_us = rl_now_us();
    rl_mutex_lock(&node->connector.mutex);
    while (serve_locked(node, &tried_us, &busy_us))
        ;
    if (!c->open)
        refuse_all_locked(&node->connector, &not_asked);
    c->runs = false;
    rl_mutex_unlock(&node->connector.mutex);
    return NULL;
}

/* --- its thread ----------------------------------------------------------- */

/* Without a thread nobody would try the server, so it does not count as down.
 */
static void no_thread_locked(rl_connector *c, int err) RL_REQUIRES(&c->mutex)
{
    rl_fault f;
    rl_fault_passes(&f, rl_fault_set(&f, RLOCK_ENOMEM, err,
                                     "no thread to connect with: %s",
                                     strerror(err)));
    c->runs = c->down = false;
    refuse_all_locked(c, &f);
}

/* There is something to do: the thread is woken, or started. */
static void call(rl_node *node)
{
    rl_connector *c = &node->connector;
    rl_mutex_lock(&node->connector.mutex);
    rl_cond_wake(&c->work);
    bool starts = c->open && !c->runs && (tries_unasked(c) || first_visitor(c));
    if (starts)
        c->runs = c->starting = true;
    rl_mutex_unlock(&node->connector.mutex);
    if (!starts)
        return;
    rl_thread_join(&c->thread); /* the former one, which has ended */
    bool ok = rl_thread_start(&c->thread, "rlock-connector", run, node);
    int err = errno;
    rl_mutex_lock(&node->connector.mutex);
    if (!ok)
        no_thread_locked(&node->connector, err);
    c->starting = false;
    rl_cond_wake_all(&c->started);
    rl_mutex_unlock(&node->connector.mutex);
}

void rl_connector_open(rl_node *node)
{
    rl_mutex_lock(&node->connector.mutex);
    node->connector.open = true;
    rl_mutex_unlock(&node->connector.mutex);
    call(node);
}

/* A try that begins while a client is being freed could outlast its end. */
void rl_connector_rest(rl_node *node)
{
    rl_mutex_lock(&node->connector.mutex);
    node->connector.ends = true;
    rl_mutex_unlock(&node->connector.mutex);
}

void rl_connector_close(rl_node *node)
{
    rl_mutex_lock(&node->connector.mutex);
    node->connector.open = false;
    rl_cond_wake(&node->connector.work);
    rl_mutex_unlock(&node->connector.mutex);
}

void rl_connector_stop(rl_node *node)
{
    rl_connector *c = &node->connector;
    rl_connector_close(node);
    rl_mutex_lock(&node->connector.mutex);
    while (c->starting)
        rl_cond_wait_until(&c->started, &node->connector.mutex, RL_NEVER);
    rl_mutex_unlock(&node->connector.mutex);
    rl_thread_join(&c->thread);
}

/* --- whoever has something for it ----------------------------------------- */

void rl_connector_suspect(rl_node *node, const rl_fault *why)
{
    rl_connector *c = &node->connector;
    rl_mutex_lock(&node->connector.mutex);
    bool news = !c->down;
    if (news) {
        c->down = true;
        c->fault = *why;
    }
    rl_mutex_unlock(&node->connector.mutex);
    if (news)
        call(node);
}

void rl_connector_visit(rl_node *node, rl_visitor *v, int64_t own_until_us,
                        const rl_signal *signal)
{
    rl_connector *c = &node->connector;
    v->own = own_until_us > 0;
    v->until_us = own_until_us;
    v->signal = signal;
    v->conn = NULL;
    rl_mutex_lock(&node->connector.mutex);
    v->waiting = true;
    if (!c->open)
        tell_locked(&node->connector, v, &not_asked);
    else if (v == &node->keeper.visitor)
        rl_list_add_first(&c->own, &v->link);
    else
        rl_list_add_last(v->own ? &c->own : &c->others, &v->link);
    rl_mutex_unlock(&node->connector.mutex);
    call(node);
}
