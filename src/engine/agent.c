#include "engine/agent.h"

#include <sys/eventfd.h>

#include "engine/engine.h"

#define FIRST_PAUSE_US (20 * 1000)
#define LAST_PAUSE_US  (1000 * 1000)

void rl_agent_init(rl_agent *a)
{
    rl_mutex_init(&a->mutex);
    rl_cond_init(&a->work);
    STAILQ_INIT(&a->errands);
    LIST_INIT(&a->visitors);
}

void rl_agent_fini(rl_agent *a)
{
    rl_cond_fini(&a->work);
    rl_mutex_fini(&a->mutex);
}

bool rl_agent_is_down(rl_agent *a, rl_fault *why)
{
    rl_mutex_lock(&a->mutex);
    bool down = a->down;
    if (down)
        *why = a->fault;
    rl_mutex_unlock(&a->mutex);
    return down;
}

bool rl_agent_is_stopping(rl_agent *a)
{
    rl_mutex_lock(&a->mutex);
    bool stopping = a->stopping;
    rl_mutex_unlock(&a->mutex);
    return stopping;
}

void rl_agent_suspect(rl_agent *a, const rl_fault *why)
{
    rl_mutex_lock(&a->mutex);
    if (!a->down) {
        a->down = true;
        a->fault = *why;
        rl_cond_wake(&a->work);
    }
    rl_mutex_unlock(&a->mutex);
}

void rl_agent_visit(rl_agent *a, rl_visitor *v, int fd)
{
    v->fd = fd;
    rl_mutex_lock(&a->mutex);
    v->waiting = true;
    LIST_INSERT_HEAD(&a->visitors, v, link);
    rl_cond_wake(&a->work);
    rl_mutex_unlock(&a->mutex);
}

bool rl_agent_has_news(rl_agent *a, rl_visitor *v)
{
    rl_mutex_lock(&a->mutex);
    bool news = !v->waiting;
    rl_mutex_unlock(&a->mutex);
    return news;
}

void rl_agent_forget(rl_agent *a, rl_visitor *v)
{
    rl_mutex_lock(&a->mutex);
    if (v->waiting)
        LIST_REMOVE(v, link);
    v->waiting = false;
    rl_mutex_unlock(&a->mutex);
}

void rl_agent_send(rl_agent *a, rl_errand *it)
{
    rl_mutex_lock(&a->mutex);
    STAILQ_INSERT_TAIL(&a->errands, it, link);
    rl_cond_wake(&a->work);
    rl_mutex_unlock(&a->mutex);
}

/*
 * A connection that is there already may lead to a server that hangs, so it is
 * pinged. Afterwards it is idle in the pool, for whoever comes.
 */
static rlock_status try_node(rl_engine *e, rl_fault *f)
{
    rl_conn *c = rl_source_borrow_known(e->source);
    rl_reply r;
    int64_t until_us =
        rl_after_ms(rl_now_us(), rl_min(e->set.connect_timeout_ms,
                                        e->set.command_timeout_ms));
    rlock_status s =
        c ? RLOCK_OK : rl_source_borrow(e->source, until_us, &c, f);
    if (s != RLOCK_OK)
        return s;
    s = rl_conn_ask(c, until_us, &r, f, 1, (const char *[]){"PING"});
    if (s == RLOCK_OK && rl_reply_is(&r, REDIS_REPLY_ERROR))
        s = rl_fault_set(f, RLOCK_ESERVER, 0, "the server answered: %s",
                         r.top.str);
    rl_source_give_back(e->source, c);
    return s;
}

static void tell_visitors_locked(rl_agent *a, const rl_fault *f)
    RL_REQUIRES(&a->mutex)
{
    rl_visitor *v;
    while ((v = LIST_FIRST(&a->visitors)) != NULL) {
        LIST_REMOVE(v, link);
        v->fault = *f;
        v->waiting = false;
        eventfd_write(v->fd, 1);
    }
}

static void connect_locked(rl_engine *e) RL_REQUIRES(&e->agent.mutex)
{
    rl_agent *a = &e->agent;
    rl_fault f = {0};
    rl_mutex_unlock(&e->agent.mutex);
    rlock_status s = try_node(e, &f);
    rl_mutex_lock(&e->agent.mutex);
    f.status = s;
    a->down = s != RLOCK_OK;
    a->fault = f;
    a->pause_us =
        a->down ? rl_min(rl_max(a->pause_us * 2, FIRST_PAUSE_US), LAST_PAUSE_US)
                : 0;
    tell_visitors_locked(&e->agent, &f);
}

/* Until something is to be done. True: the node is to be tried. */
static bool wait_locked(rl_agent *a, int64_t tried_us) RL_REQUIRES(&a->mutex)
{
    for (;;) {
        if (a->stopping || !STAILQ_EMPTY(&a->errands))
            return false;
        if (!LIST_EMPTY(&a->visitors))
            return true;
        int64_t due_us = a->down ? tried_us + rl_jitter(a->pause_us) : RL_NEVER;
        if (due_us <= rl_now_us())
            return true;
        rl_cond_wait_until(&a->work, &a->mutex, due_us);
    }
}

static void *run(void *arg)
{
    rl_engine *e = arg;
    rl_agent *a = &e->agent;
    int64_t tried_us = 0;
    rl_mutex_lock(&e->agent.mutex);
    for (;;) {
        if (wait_locked(&e->agent, tried_us)) {
            connect_locked(e);
            tried_us = rl_now_us();
            continue;
        }
        rl_errand *it = STAILQ_FIRST(&a->errands);
        if (!it)
            break;
        STAILQ_REMOVE_HEAD(&a->errands, link);
        rl_mutex_unlock(&e->agent.mutex);
        it->run(e, it);
        rl_mutex_lock(&e->agent.mutex);
    }
    rl_mutex_unlock(&e->agent.mutex);
    return NULL;
}

bool rl_agent_start(rl_engine *e)
{
    rl_mutex_lock(&e->starting);
    rl_thread *t = &e->agent.thread;
    bool ok = t->started || rl_thread_start(t, "rlock-agent", run, e);
    rl_mutex_unlock(&e->starting);
    return ok;
}

void rl_agent_stop(rl_engine *e)
{
    rl_mutex_lock(&e->agent.mutex);
    e->agent.stopping = true;
    rl_cond_wake(&e->agent.work);
    rl_mutex_unlock(&e->agent.mutex);
    rl_thread_join(&e->agent.thread);
}
