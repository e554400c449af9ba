#include "run/client.h"

#include <pthread.h>
#include <stdlib.h>

bool rl_client_is_forked(const rlock_client *cl)
{
    return cl->process != rl_os_process();
}

void rl_client_ref(rlock_client *cl)
{
    atomic_fetch_add(&cl->refs, 1);
}

void rl_client_unref(rlock_client *cl)
{
    if (atomic_fetch_sub(&cl->refs, 1) != 1)
        return;
    if (!rl_client_is_forked(cl)) {
        rl_mutex_fini(&cl->following);
        rl_cond_fini(&cl->idle);
        rl_mutex_fini(&cl->mutex);
    }
    rl_alarms_leave(&cl->engine.core.holds.kept);
    rl_stats_fini(&cl->engine.core.stats, rl_client_is_forked(cl));
    free(cl);
}

static bool is_driven_here(const rlock_client *cl)
{
    return rl_async_driven_here() == &cl->engine.async;
}

bool rl_client_is_draining(const rlock_client *cl)
{
    return atomic_load(&cl->closing) && is_driven_here(cl);
}

/* A job that was started before is waited for (rl_async_stop()). */
rlock_status rl_client_enter(rlock_client *cl, int *cancel_state)
{
    if (rl_client_is_forked(cl))
        return RLOCK_EFORKED;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel_state);
    rl_client_ref(cl);
    atomic_fetch_add(&cl->calls, 1);
    if (!atomic_load(&cl->closing) || is_driven_here(cl))
        return RLOCK_OK;
    rl_client_leave(cl, *cancel_state);
    return RLOCK_ECLOSED;
}

void rl_client_leave(rlock_client *cl, int cancel_state)
{
    if (atomic_fetch_sub(&cl->calls, 1) == 1 && atomic_load(&cl->closing)) {
        rl_mutex_lock(&cl->mutex);
        rl_cond_wake_all(&cl->idle);
        rl_mutex_unlock(&cl->mutex);
    }
    rl_client_unref(cl);
    pthread_setcancelstate(cancel_state, NULL);
}

rlock_status rl_client_begin(rlock_client *cl, int *cancel_state)
{
    if (!cl)
        return rl_error_set(RLOCK_EINVAL, 0, "the client is NULL");
    rlock_status s = rl_client_enter(cl, cancel_state);
    if (s == RLOCK_EFORKED)
        return rl_error_set(s, 0,
                            "the client was made before fork(): make a new "
                            "one in the child");
    if (s == RLOCK_ECLOSED)
        return rl_error_set(s, 0, "the client is closed");
    return s;
}

void rl_client_follow(rlock_client *cl, rl_link *follower)
{
    rl_mutex_lock(&cl->following);
    rl_list_add_last(&cl->followers, follower);
    rl_mutex_unlock(&cl->following);
}

/* In a forked child another thread may have had the mutex. */
void rl_client_unfollow(rlock_client *cl, rl_link *follower)
{
    if (rl_client_is_forked(cl))
        return;
    rl_mutex_lock(&cl->following);
    rl_list_remove(follower);
    rl_mutex_unlock(&cl->following);
}

static rlock_client *client_of(rl_home *home)
{
    return RL_CONTAINER(home, rlock_client, home);
}

static void ref_home(rl_home *home)
{
    rl_client_ref(client_of(home));
}

static void unref_home(rl_home *home)
{
    rl_client_unref(client_of(home));
}

static bool tell_home(rl_home *home, const rlock_event *ev)
{
    int cancel;
    rlock_client *cl = client_of(home);
    if (rl_client_enter(cl, &cancel) != RLOCK_OK)
        return false;
    rl_tell(&cl->engine.core, ev);
    rl_client_leave(cl, cancel);
    return true;
}

void rl_client_init_home(rlock_client *cl)
{
    rl_core *c = &cl->engine.core;
    cl->home = (rl_home){.ref = ref_home,
                         .unref = unref_home,
                         .tell = tell_home,
                         .has_on_event = c->set.on_event != NULL,
                         .calls_back = rl_calls_back(c),
                         .stats = &c->stats};
}
