/*
 * Builds a client's parts in order and tears them down in reverse; the one
 * file that knows all of them.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/options.h"
#include "client/check.h"
#include "client/options.h"
#include "client/topology.h"
#include "lock/multi.h"
#include "net/hiredis_abi.h"
#include "run/client.h"
#include "run/event.h"

#define POOL_SIZE 16

static rlock_status no_memory(void)
{
    return rl_error_set(RLOCK_ENOMEM, 0, "cannot make a client: out of memory");
}

static rlock_status set_server(rl_engine *e, rl_dialer *d,
                               const rlock_options *o, rl_fault *f)
{
    rlock_status s = rl_uri_parse(&d->uri, o->uri, f);
    if (s != RLOCK_OK)
        return s;
    if (o->credentials && (d->uri.user || d->uri.password))
        return rl_fault_set(f, RLOCK_EINVAL, 0,
                            "bad option: credentials, and a URI with a login");
    if ((o->sentinel_user || o->sentinel_password) && !d->uri.master)
        return rl_fault_set(f, RLOCK_EINVAL, 0,
                            "bad option: sentinel_... without "
                            "redis-sentinel://");
    if (d->uri.tls)
        return rl_tls_new(o, &e->tls, f);
    if (rl_tls_is_asked_for(o))
        return rl_fault_set(f, RLOCK_EINVAL, 0,
                            "bad option: tls_... without rediss://");
    return RLOCK_OK;
}

/* --- parts ---------------------------------------------------------------- */

static rlock_status make_pool(rl_engine *e, const rlock_options *o)
{
    rl_fault f;
    rl_dialer dialer;
    rl_dialer_init(&dialer);
    dialer.connect = o->connect;
    dialer.connect_arg = o->connect_arg;
    dialer.connect_timeout_ms = e->core.set.connect_timeout_ms;
    dialer.credentials = &e->credentials;
    rlock_status s = o->connect ? RLOCK_OK : set_server(e, &dialer, o, &f);
    if (s != RLOCK_OK) {
        rl_dialer_fini(&dialer);
        return rl_error_set(s, 0, "%s", f.text);
    }
    dialer.tls = e->tls;
    if (dialer.uri.master || dialer.uri.cluster)
        s = rl_topology_make(e, o, &dialer);
    if (s != RLOCK_OK)
        rl_dialer_fini(&dialer);
    if (s != RLOCK_OK || !rl_node_connect(&e->node, &dialer))
        return no_memory();
    e->core.server = e->node.pool->server;
    atomic_store(&e->core.node, e->core.server);
    return rl_topology_start(e)
               ? RLOCK_OK
               : rl_error_set(RLOCK_ENOMEM, 0,
                              "cannot make a client: no thread");
}

static bool init_core(rl_core *c, const rlock_options *o)
{
    rl_uuid id;
    rl_settings_read(&c->set, o);
    rl_server_run_init(&c->server_run);
    bool ok = !o->metrics || rl_stats_time(&c->stats);
    ok =
        (!o->metrics_names || rl_stats_name(&c->stats, o->metrics_names)) && ok;
    ok = rl_holds_init(&c->holds, &c->stats, &c->rooms, c->set.process,
                       c->set.watchdog_lease_ms, o->max_hold_ms,
                       o->on_event != NULL) &&
         ok;
    c->holds.warn_us = o->warn_hold_ms * 1000;
    c->holds.late_due_us = o->warn_renew_late ? RL_NEVER : 0;
    ok = rl_rooms_init(&c->rooms) && ok;
    ok = rl_longest_init(&c->longest) && ok;
    rl_script_cache_init(&c->script_cache);
    ok = rl_uuid_new(&id) && ok;
    strcpy(c->bell, RL_BELL_PREFIX);
    rl_uuid_write(&id, c->bell + strlen(RL_BELL_PREFIX));
    return ok;
}

static rlock_status init_engine(rl_engine *e, const rlock_options *o)
{
    rl_mutex_init(&e->starting, RL_RANK_STARTING);
    rl_loop_init(&e->loop);
    rl_mutex_init(&e->check_mutex, RL_RANK_ALONE);
    rl_cond_init(&e->checked);
    rl_credentials_init(&e->credentials);
    e->credentials.callback = o->credentials;
    e->credentials.arg = o->credentials_arg;
    e->check = rl_check_connection;
    e->pool_size = o->pool_size ? o->pool_size : POOL_SIZE;
    bool ok = init_core(&e->core, o);
    ok = rl_node_init(&e->node, e, &e->core.holds.first) && ok;
    ok = rl_notifier_init(e) && ok;
    rl_async_init(&e->async, &e->loop, &e->completions);
    rl_completions_init(&e->completions);
    e->core.post_event = rl_event_post;
    e->core.keeps_events = rl_event_is_kept;
    return ok ? make_pool(e, o) : no_memory();
}

/* What has happened until now. */
static void deliver_the_last(rl_engine *e)
{
    while (atomic_load(&e->completions.count) > 0)
        rl_completions_deliver(&e->completions);
}

/* Threads have ended, or never were in this process. */
static void fini_engine(rl_engine *e)
{
    rl_core *c = &e->core;
    deliver_the_last(e); /* of what came meanwhile nobody is told */
    rl_topology_fini(e, false);
    rl_node_fini(&e->node, false);
    rl_tls_free(e->tls);
    rl_credentials_fini(&e->credentials);
    rl_rooms_fini(&c->rooms, false);
    rl_longest_fini(&c->longest, false);
    rl_script_cache_fini(&c->script_cache, false);
    rl_holds_fini(&c->holds, false);
    rl_topology_free(e);
    rl_notifier_fini(&e->notifier, false);
    rl_async_fini(&e->async, false);
    rl_completions_fini(&e->completions, false);
    rl_server_run_fini(&c->server_run);
    rl_cond_fini(&e->checked);
    rl_mutex_fini(&e->check_mutex);
    rl_loop_fini(&e->loop, false);
    rl_mutex_fini(&e->starting);
}

/*
 * In a forked child: only what was whole at the fork can be walked and freed;
 * mutexes may be locked for ever by threads that are not here.
 */
static void fini_engine_forked(rl_engine *e)
{
    rl_core *c = &e->core;
    if (rl_mutex_was_free(&c->rooms.mutex))
        rl_rooms_fini(&c->rooms, true);
    if (rl_mutex_was_free(&c->longest.mutex))
        rl_longest_fini(&c->longest, true);
    rl_script_cache_fini(&c->script_cache, true);
    if (rl_mutex_was_free(&c->holds.mutex))
        rl_holds_fini(&c->holds, true);
    rl_topology_fini(e, true);
    rl_node_fini(&e->node, true);
    rl_loop_fini(&e->loop, true);
    rl_async_fini(&e->async, true);
    rl_notifier_fini(&e->notifier, true);
    rl_completions_fini(&e->completions, true);
}

static void ended(void *arg, uint64_t owner)
{
    rlock_client *cl = arg;
    rl_holds_abandon(&cl->engine.core.holds, owner, rl_now_us());
}

static void destroy(rlock_client *cl)
{
    atomic_store(&cl->engine.core.muted, true);
    rl_topology_stop(&cl->engine);
    rl_engine_each(&cl->engine, rl_node_stop);
    rl_loop_stop(&cl->engine.loop);
    fini_engine(&cl->engine);
    rl_client_unref(cl);
}

static rlock_status make_client(const rlock_options *o, rlock_client **out)
{
    rlock_client *cl = calloc(1, sizeof *cl);
    if (!cl)
        return no_memory();
    cl->process = rl_os_process();
    atomic_init(&cl->refs, 1);
    rl_mutex_init(&cl->mutex, RL_RANK_ALONE);
    rl_cond_init(&cl->idle);
    rl_mutex_init(&cl->following, RL_RANK_FOLLOWERS);
    rl_list_init(&cl->followers);
    rlock_status s = init_engine(&cl->engine, o);
    rl_client_init_home(cl);
    if (s == RLOCK_OK)
        s = rl_check_server(&cl->engine, o->lazy);
    cl->listener.ended = ended;
    cl->listener.arg = cl;
    if (s == RLOCK_OK && !rl_owner_listen(&cl->listener))
        s = rl_error_set(RLOCK_ENOMEM, 0, "no pthread key is left");
    if (s == RLOCK_OK)
        *out = cl;
    else
        destroy(cl);
    return s;
}

static rlock_status check_hiredis(void)
{
    const char *why;
    if (rl_hiredis_abi_fits(&why))
        return RLOCK_OK;
    if (!why)
        return no_memory();
    return rl_error_set(
        RLOCK_ENOTSUP, 0,
        "the hiredis in this program is not the one that rlock "
        "was compiled for: %s (if the program brings a copy, hide "
        "it: -fvisibility=hidden)",
        why);
}

rlock_status rlock_client_new(const rlock_options *opts, rlock_client **out)
{
    int cancel;
    rlock_options o;
    if (!out)
        return rl_error_set(RLOCK_EINVAL, 0, "out is NULL");
    *out = NULL;
    rlock_status s = rl_client_options_read(&o, opts);
    if (s != RLOCK_OK)
        return s;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    rl_hash_draw_key();
    s = check_hiredis();
    if (s == RLOCK_OK)
        s = make_client(&o, out);
    pthread_setcancelstate(cancel, NULL);
    return s;
}

static void wait_until_idle(rlock_client *cl)
{
    rl_mutex_lock(&cl->mutex);
    while (atomic_load(&cl->calls) > 0)
        rl_cond_wait_until(&cl->idle, &cl->mutex, RL_NEVER);
    rl_mutex_unlock(&cl->mutex);
}

/* What the program is told of what was left behind. */
static rlock_status tell_left(const rl_engine *e, size_t left,
                              const rl_fault *why)
{
    size_t uncounted = e->core.holds.uncounted, locks = left - uncounted;
    rlock_status status = why->status == RLOCK_OK ? RLOCK_EIO : why->status;
    const char *at = why->at ? why->at : atomic_load(&e->core.node);
    const char *text = *why->text ? why->text : "no time was left";
    if (left == 0)
        return RLOCK_OK;
    char more[60] = "";
    if (uncounted > 0)
        snprintf(more, sizeof more, "%zu %s not made", uncounted,
                 uncounted == 1 ? "count-down was" : "count-downs were");
    if (locks == 0)
        return rl_error_set(status, why->sys_errno, "%s: closed, but %s: %s",
                            at, more, text);
    return rl_error_set(
        status, why->sys_errno,
        "%s: closed, but %zu %s not released, and will be free when the lease "
        "has run out%s%s: %s",
        at, locks, locks == 1 ? "lock was" : "locks were",
        uncounted > 0 ? ", and " : "", more, text);
}

static rlock_status close_client(rlock_client *cl, bool release)
{
    rl_engine *e = &cl->engine;
    rl_fault why;
    if (release)
        rl_holds_release(&e->core.holds);
    atomic_store(&cl->closing, true);
    rl_rooms_close(&e->core.rooms);
    rl_async_close(&e->async);
    wait_until_idle(cl);
    rl_async_stop(&e->async);
    deliver_the_last(e);
    atomic_store(&e->core.muted, true);
    rl_owner_unlisten(&cl->listener);
    rl_engine_each(e, rl_node_hush);
    rl_engine_each(e, rl_node_silence);
    rl_holds_close(&e->core.holds, &cl->home, rl_now_us());
    rl_holds_stop(&e->core.holds);
    if (e->cluster) /* what is started from here on, nobody would stop */
        rl_cluster_close(e->cluster);
    rl_engine_each(e, rl_node_stop);
    rl_topology_stop(e);
    rl_notifier_stop(e);
    rl_loop_stop(&e->loop);
    size_t left = rl_holds_left(&e->core.holds, &why);
    rlock_status s = tell_left(e, left, &why);
    fini_engine(e);
    return s;
}

static rlock_status close_forked(rlock_client *cl)
{
    fini_engine_forked(&cl->engine);
    return rl_error_set(RLOCK_EFORKED, 0,
                        "the client was made before fork(): it is freed, and "
                        "what the parent holds is not released");
}

rlock_status rlock_client_close(rlock_client *cl, unsigned flags)
{
    int cancel;
    if (flags & ~RLOCK_CLOSE_RELEASE_HELD)
        return rl_error_set(RLOCK_EINVAL, 0, "bad flags: %#x", flags);
    if (!cl)
        return RLOCK_OK;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    rlock_status s = rl_client_is_forked(cl)
                         ? close_forked(cl)
                         : close_client(cl, flags & RLOCK_CLOSE_RELEASE_HELD);
    rl_client_unref(cl);
    pthread_setcancelstate(cancel, NULL);
    return s;
}

void rlock_client_free(rlock_client *cl)
{
    rlock_error before = *rlock_last_error();
    (void)rlock_client_close(cl, 0);
    rl_error_put(&before);
}

rlock_status rlock_client_ping(rlock_client *cl)
{
    int cancel;
    rl_fault f = {0};
    rlock_status s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    rl_engine *e = &cl->engine;
    s = rl_pool_ping(e->node.pool, rl_command_end(&e->core, rl_now_us()), &f);
    if (s != RLOCK_OK)
        rl_error_set(s, f.sys_errno, "%s: %s", atomic_load(&e->core.node),
                     f.text);
    rl_client_leave(cl, cancel);
    return s;
}

static void cancel_followers(rlock_client *cl)
{
    rl_mutex_lock(&cl->following);
    for (rl_link *k = rl_list_first(&cl->followers); k;
         k = rl_list_next(&cl->followers, k))
        rlock_cancel(RL_CONTAINER(k, rl_member, follower)->whole);
    rl_mutex_unlock(&cl->following);
}

rlock_status rlock_client_cancel(rlock_client *cl, bool on)
{
    int cancel;
    rlock_status s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    atomic_store(&cl->engine.core.canceled, on);
    if (on) {
        rl_rooms_cancel_all(&cl->engine.core.rooms);
        cancel_followers(cl);
    }
    rl_client_leave(cl, cancel);
    return RLOCK_OK;
}

rlock_status rlock_client_stats(rlock_client *cl, rlock_stats *out, size_t size)
{
    int cancel;
    rlock_stats now;
    if (!cl || !out)
        return rl_error_set(RLOCK_EINVAL, 0, "a pointer is NULL");
    rlock_status s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    rl_stats_copy(&now, &cl->engine.core.stats);
    rl_client_leave(cl, cancel);
    if (!rl_struct_fill(out, size, &now, sizeof now,
                        RL_SIZE_UP_TO(rlock_stats, replica_shortfalls)))
        return rl_error_set(RLOCK_EINVAL, 0,
                            "no rlock_stats has %zu bytes (use sizeof)", size);
    return RLOCK_OK;
}
