#include "drive/agent.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "drive/engine.h"

#define FIRST_PAUSE_US (20 * 1000)
#define LAST_PAUSE_US  (1000 * 1000)

/* An agent that waits for so long for its node has reason to doubt it. */
#define SILENCE_US (200 * 1000)

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

bool rl_agent_is_down(rl_agent *a, bool hurry, rl_fault *why)
{
    rl_mutex_lock(&a->mutex);
    bool down = a->down;
    bool silent =
        hurry && a->since_us && rl_now_us() - a->since_us > SILENCE_US;
    if (down)
        *why = a->fault;
    rl_mutex_unlock(&a->mutex);
    if (silent && !down)
        rl_fault_set(why, RLOCK_EIO, 0, "no answer so far");
    return down || silent;
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
    const rl_errand *first = STAILQ_FIRST(&a->errands);
    if (first && it->due_us < first->due_us)
        STAILQ_INSERT_HEAD(&a->errands, it, link);
    else
        STAILQ_INSERT_TAIL(&a->errands, it, link);
    if (it->due_us < a->sleeps_us) {
        a->sleeps_us = it->due_us;
        rl_cond_wake(&a->work);
    }
    rl_mutex_unlock(&a->mutex);
}

rl_errand *rl_agent_take_back(rl_agent *a,
                              bool (*meant)(const rl_errand *it,
                                            const void *arg),
                              const void *arg)
{
    rl_errand *it;
    rl_mutex_lock(&a->mutex);
    STAILQ_FOREACH (it, &a->errands, link) {
        if (meant(it, arg))
            break;
    }
    if (it)
        STAILQ_REMOVE(&a->errands, it, rl_errand, link);
    rl_mutex_unlock(&a->mutex);
    return it;
}

void rl_agent_pass_by(rl_engine *e)
{
    rl_agent *a = &e->agent;
    STAILQ_HEAD(, rl_errand) all = STAILQ_HEAD_INITIALIZER(all), open;
    STAILQ_INIT(&open);
    rl_mutex_lock(&e->agent.mutex);
    STAILQ_CONCAT(&all, &a->errands);
    rl_mutex_unlock(&e->agent.mutex);
    rl_errand *it;
    while ((it = STAILQ_FIRST(&all)) != NULL) {
        STAILQ_REMOVE_HEAD(&all, link);
        if (!it->attempt(e, it))
            STAILQ_INSERT_TAIL(&open, it, link);
    }
    if (STAILQ_EMPTY(&open))
        return;
    rl_mutex_lock(&e->agent.mutex);
    STAILQ_CONCAT(&open, &a->errands);
    STAILQ_CONCAT(&a->errands, &open);
    rl_cond_wake(&a->work);
    rl_mutex_unlock(&e->agent.mutex);
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

static int64_t next_pause_us(const rl_agent *a)
{
    int64_t longer_us = rl_max(a->pause_us * 2, FIRST_PAUSE_US);
    return a->down ? rl_jitter(rl_min(longer_us, LAST_PAUSE_US)) : 0;
}

static void connect_locked(rl_engine *e) RL_REQUIRES(&e->agent.mutex)
{
    rl_agent *a = &e->agent;
    rl_fault f = {0};
    a->since_us = rl_now_us();
    rl_mutex_unlock(&e->agent.mutex);
    rlock_status s = try_node(e, &f);
    rl_mutex_lock(&e->agent.mutex);
    a->since_us = 0;
    f.status = s;
    a->down = s != RLOCK_OK && f.sys_errno != EBUSY; /* of the pool */
    a->fault = f;
    a->pause_us = next_pause_us(a);
    tell_visitors_locked(&e->agent, &f);
}

static int64_t next_try_us(const rl_agent *a, int64_t tried_us)
{
    if (!LIST_EMPTY(&a->visitors))
        return 0;
    return a->down ? tried_us + a->pause_us : RL_NEVER;
}

static int64_t next_errand_us(const rl_agent *a)
{
    const rl_errand *it = STAILQ_FIRST(&a->errands);
    if (!it)
        return RL_NEVER;
    /* Who wants a connection may get the one that this errand has. */
    return a->stopping || !LIST_EMPTY(&a->visitors) ? 0 : it->due_us;
}

static void run_errand_locked(rl_engine *e) RL_REQUIRES(&e->agent.mutex)
{
    rl_errand *it = STAILQ_FIRST(&e->agent.errands);
    STAILQ_REMOVE_HEAD(&e->agent.errands, link);
    e->agent.since_us = rl_now_us();
    rl_mutex_unlock(&e->agent.mutex);
    it->run(e, it);
    rl_mutex_lock(&e->agent.mutex);
    e->agent.since_us = 0;
}

static void *run(void *arg)
{
    rl_engine *e = arg;
    rl_agent *a = &e->agent;
    int64_t tried_us = 0;
    rl_mutex_lock(&e->agent.mutex);
    while (!a->stopping || !STAILQ_EMPTY(&a->errands)) {
        int64_t now_us = rl_now_us();
        int64_t try_us = next_try_us(a, tried_us), due_us = next_errand_us(a);
        if (due_us <= now_us) {
            run_errand_locked(e);
        } else if (try_us <= now_us) {
            connect_locked(e);
            tried_us = rl_now_us();
        } else {
            a->sleeps_us = rl_min(try_us, due_us);
            rl_cond_wait_until(&a->work, &e->agent.mutex, a->sleeps_us);
            a->sleeps_us = 0;
        }
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
