#include "rows.h"

#include <hiredis/hiredis.h>

#define LONG_LEASE_MS 600000

/* While no memory can be had, what is started waits for it, until its time is
   over. */
#define STARTED_WAIT_MS 1000

/* --- acts ---------------------------------------------------------------- */

/* An answer that is wrong becomes a status that no row allows. */
static rlock_status ok_if(bool right)
{
    return right ? RLOCK_OK : RLOCK_CANCELED;
}

static rlock_status right_if(rlock_status s, bool right)
{
    return s == RLOCK_OK ? ok_if(right) : s;
}

/* What is never NULL. */
static rlock_status act_texts(stage *st)
{
    (void)st;
    return ok_if(*rlock_status_str(RLOCK_LOST) && rlock_last_error() &&
                 *rlock_version());
}

rlock_options options_for(const char *uri)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = uri;
    o.connect_timeout_ms = o.command_timeout_ms = TIMEOUT_MS;
    o.watchdog_lease_ms = LONG_LEASE_MS;
    o.redisson_channel = true;
    return o;
}

static rlock_status client_new(stage *st, const char *uri)
{
    rlock_options o = options_for(uri);
    rlock_status s = rlock_client_new(&o, &st->cl[0]);
    return (s == RLOCK_OK) == (st->cl[0] != NULL) ? s : RLOCK_CANCELED;
}

static rlock_status act_client_new(stage *st)
{
    return client_new(st, server_uri(st->ns->sv[0]));
}

static rlock_status act_client_new_by_name(stage *st)
{
    char uri[64];
    snprintf(uri, sizeof uri, "redis://localhost:%d",
             server_port(st->ns->sv[0]));
    return client_new(st, uri);
}

static rlock_status act_client_free(stage *st)
{
    rlock_client_free(st->cl[0]);
    st->cl[0] = NULL;
    return RLOCK_OK;
}

static rlock_status act_client_close(stage *st)
{
    rlock_client *cl = st->cl[0];
    st->cl[0] = NULL;
    return rlock_client_close(cl, RLOCK_CLOSE_RELEASE_HELD);
}

static rlock_status act_client_ping(stage *st)
{
    return rlock_client_ping(st->cl[0]);
}

static rlock_status act_client_cancel(stage *st)
{
    rlock_status on = rlock_client_cancel(st->cl[0], true);
    rlock_status off = rlock_client_cancel(st->cl[0], false);
    return on == RLOCK_OK ? off : on;
}

static rlock_status act_client_stats(stage *st)
{
    rlock_stats stats;
    return rlock_client_stats(st->cl[0], &stats, sizeof stats);
}

static bool count_bytes(const char *bytes, size_t len, void *n)
{
    *(size_t *)n += len;
    return bytes != NULL;
}

static rlock_status act_metrics_write(stage *st)
{
    size_t n = 0;
    rlock_status s =
        rlock_metrics_write(st->cl, 1, RLOCK_METRICS_TEXT, count_bytes, &n);
    return (s == RLOCK_OK) == (n > 0) ? s : RLOCK_CANCELED;
}

static void count_metrics(const rlock_metric *m, void *n)
{
    *(size_t *)n += *m->name != '\0';
}

static rlock_status act_metrics_each(stage *st)
{
    size_t n = 0;
    rlock_status s = rlock_metrics_each(st->cl[0], count_metrics, &n);
    return (s == RLOCK_OK) == (n > 0) ? s : RLOCK_CANCELED;
}

static rlock_status act_metrics_content_type(stage *st)
{
    (void)st;
    return ok_if(*rlock_metrics_content_type(RLOCK_METRICS_TEXT));
}

static bool count_locks(const rlock_lock_info *l, void *n)
{
    *(size_t *)n += l->n_holders;
    return true;
}

static rlock_status act_scan(stage *st)
{
    size_t n = 0;
    rlock_status s =
        rlock_scan(st->cl[0], NULL, RLOCK_SCAN_ALL, count_locks, &n);
    return right_if(s, n == (size_t)st->row->held);
}

/* *out is NULL unless RLOCK_OK. */
static rlock_status made(const stage *st, rlock_status s)
{
    return (s == RLOCK_OK) == (st->lk != NULL) ? s : RLOCK_CANCELED;
}

rlock_status act_new(stage *st)
{
    return made(st, rlock_new(st->cl[0], SCENE_LOCK, &st->lk));
}

static rlock_status act_new_n(stage *st)
{
    return made(
        st, rlock_new_n(st->cl[0], SCENE_LOCK, strlen(SCENE_LOCK), &st->lk));
}

static rlock_status act_new_ex(stage *st)
{
    return made(st, rlock_new_ex(st->cl[0], SCENE_LOCK, strlen(SCENE_LOCK),
                                 NULL, &st->lk));
}

rlock_status act_multi_new(stage *st)
{
    return made(st, rlock_multi_new(st->member, MEMBERS, &st->lk));
}

rlock_status act_red_new(stage *st)
{
    return made(st, rlock_red_new(st->cl, st->n, SCENE_LOCK, &st->lk));
}

static rlock_status act_red_new_ex(stage *st)
{
    return made(st, rlock_red_new_ex(st->cl, st->n, SCENE_LOCK,
                                     strlen(SCENE_LOCK), NULL, &st->lk));
}

static rlock_status act_free(stage *st)
{
    rlock_free(st->lk);
    st->lk = NULL;
    return RLOCK_OK;
}

static rlock_status act_acquire(stage *st)
{
    return rlock_acquire(st->lk, TIMEOUT_MS, LONG_LEASE_MS);
}

static rlock_status act_wait_in_vain(stage *st)
{
    return rlock_acquire(st->lk, 20, RLOCK_WATCHDOG);
}

static rlock_status act_lock(stage *st)
{
    return rlock_lock(st->lk);
}

static rlock_status act_trylock(stage *st)
{
    return rlock_trylock(st->lk);
}

static rlock_status act_unlock(stage *st)
{
    return rlock_unlock(st->lk);
}

static rlock_status act_extend(stage *st)
{
    return rlock_extend(st->lk, LONG_LEASE_MS);
}

static rlock_status act_force_unlock(stage *st)
{
    return rlock_force_unlock(st->lk);
}

/* Of any holder, if the question is answered. */
static rlock_status act_force_unlock_hold(stage *st)
{
    rlock_holder holder;
    rlock_status s = rlock_holder_info(st->lk, &holder, sizeof holder);
    return s == RLOCK_OK ? rlock_force_unlock_hold(st->lk, holder.raw) : s;
}

static rlock_status act_cancel(stage *st)
{
    rlock_cancel(st->lk);
    return RLOCK_OK;
}

static rlock_status act_is_held(stage *st)
{
    return ok_if(rlock_is_held(st->lk));
}

static rlock_status act_hold_count(stage *st)
{
    return ok_if(rlock_hold_count(st->lk) == st->row->held);
}

static rlock_status act_valid_ms(stage *st)
{
    return ok_if(rlock_valid_ms(st->lk) > 0);
}

static rlock_status act_token(stage *st)
{
    return ok_if(rlock_token(st->lk) > 0);
}

static rlock_status act_lost_fd(stage *st)
{
    return rlock_lost_fd(st->lk) < 0 ? rlock_last_error()->status : RLOCK_OK;
}

static rlock_status act_is_locked(stage *st)
{
    bool locked;
    rlock_status s = rlock_is_locked(st->lk, &locked);
    return right_if(s, locked);
}

static rlock_status act_ttl(stage *st)
{
    int64_t ttl_ms;
    rlock_status s = rlock_ttl(st->lk, &ttl_ms);
    return right_if(s, ttl_ms > 0);
}

static rlock_status act_holder_info(stage *st)
{
    rlock_holder holder;
    rlock_status s = rlock_holder_info(st->lk, &holder, sizeof holder);
    return right_if(s, holder.count == st->row->held);
}

static rlock_status act_hold_info(stage *st)
{
    rlock_holder holder;
    rlock_status s = rlock_holder_info(st->lk, &holder, sizeof holder);
    if (s == RLOCK_OK)
        s = rlock_hold_info(st->lk, holder.raw, &holder, sizeof holder);
    return right_if(s, holder.count == st->row->held);
}

/* A reply with allocations of all kinds. */
static rlock_status act_eval(stage *st)
{
    redisReply *r;
    const char *argv[] = {"n", "1"};
    rlock_status s = rlock_eval(st->lk, "return {1, {KEYS[1], ARGV[1]}}", 1, 1,
                                argv, NULL, &r);
    bool right = (s == RLOCK_OK) == (r != NULL) &&
                 (!r || strcmp(r->element[1]->element[1]->str, "1") == 0);
    freeReplyObject(r);
    return right ? s : RLOCK_CANCELED;
}

static rlock_status act_command(stage *st)
{
    return rlock_command(st->lk, NULL, "SET n %d", 1);
}

static rlock_status vcommand(stage *st, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    rlock_status s = rlock_vcommand(st->lk, NULL, format, ap);
    va_end(ap);
    return s;
}

static rlock_status act_vcommand(stage *st)
{
    return vcommand(st, "GET %s", "n");
}

static rlock_status act_command_argv(stage *st)
{
    const char *argv[] = {"GET", "n"};
    return rlock_command_argv(st->lk, NULL, 2, argv, NULL);
}

/* --- owners, and what is started ----------------------------------------- */

static rlock_status act_owner_new(stage *st)
{
    rlock_owner *o;
    rlock_status s = rlock_owner_new("sweep", &o);
    (void)st;
    bool right = (s == RLOCK_OK) == (o != NULL);
    rlock_owner_free(o);
    return right ? s : RLOCK_CANCELED;
}

static rlock_status act_owner_set(stage *st)
{
    bool right = rlock_owner_set(NULL) == st->owner;
    return ok_if(right && !rlock_owner_set(st->owner));
}

static rlock_status act_owner_is_busy(stage *st)
{
    return ok_if(!rlock_owner_is_busy(NULL) && st->owner);
}

static rlock_status act_owner_cancel(stage *st)
{
    rlock_owner_cancel(NULL);
    rlock_owner_cancel(st->owner);
    return ok_if(!rlock_owner_is_busy(st->owner));
}

static rlock_status act_owner_free(stage *st)
{
    rlock_owner_free(st->owner);
    st->owner = NULL;
    return ok_if(!rlock_owner_set(NULL));
}

static rlock_status act_client_fd(stage *st)
{
    return rlock_client_fd(st->cl[0]) < 0 ? rlock_last_error()->status
                                          : RLOCK_OK;
}

static rlock_status act_client_dispatch(stage *st)
{
    return rlock_client_dispatch(st->cl[0]);
}

static void told(rlock *lk, rlock_status s, void *arg)
{
    stage *st = arg;
    st->told = lk == st->lk ? s : RLOCK_CANCELED;
    st->callbacks++;
}

/* Not by poll(), which is made to fail here, too. */
static rlock_status outcome(stage *st, rlock_status s)
{
    st->refused = s != RLOCK_OK;
    while (!st->refused && st->callbacks == 0) {
        test_pause_ms(1);
        if (rlock_client_dispatch(st->cl[0]) != RLOCK_OK)
            return RLOCK_CANCELED;
    }
    return st->refused ? s : st->told;
}

static void replied(rlock *lk, rlock_status s, redisReply *r, void *arg)
{
    bool right = s != RLOCK_OK || (r && r->type == REDIS_REPLY_STATUS);
    told(lk, right ? s : RLOCK_CANCELED, arg);
}

static rlock_status act_eval_start(stage *st)
{
    const char *argv[] = {"n", "1"};
    return outcome(st, rlock_eval_start(st->lk,
                                        "return redis.call('SET', KEYS[1], "
                                        "ARGV[1])",
                                        1, 1, argv, NULL, replied, st));
}

static rlock_status act_command_start(stage *st)
{
    return outcome(st, rlock_command_start(st->lk, replied, st, "SET n %d", 1));
}

static rlock_status vcommand_start(stage *st, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    rlock_status s = rlock_vcommand_start(st->lk, replied, st, format, ap);
    va_end(ap);
    return outcome(st, s);
}

static rlock_status act_vcommand_start(stage *st)
{
    return vcommand_start(st, "SET n %s", "1");
}

static rlock_status act_command_argv_start(stage *st)
{
    const char *argv[] = {"SET", "n", "1"};
    return outcome(
        st, rlock_command_argv_start(st->lk, 3, argv, NULL, replied, st));
}

static rlock_status act_acquire_start(stage *st)
{
    return outcome(st, rlock_acquire_start(st->lk, STARTED_WAIT_MS,
                                           LONG_LEASE_MS, told, st));
}

static rlock_status act_wait_in_vain_started(stage *st)
{
    return outcome(st,
                   rlock_acquire_start(st->lk, 20, RLOCK_WATCHDOG, told, st));
}

static rlock_status act_unlock_start(stage *st)
{
    return outcome(st, rlock_unlock_start(st->lk, told, st));
}

static rlock_status act_extend_start(stage *st)
{
    return outcome(st, rlock_extend_start(st->lk, LONG_LEASE_MS, told, st));
}

/* --- rows ---------------------------------------------------------------- */

#define FOR_ALL(...)                                                           \
    {.kind = SINGLE, __VA_ARGS__}, {.kind = MULTI, __VA_ARGS__},               \
    {                                                                          \
        .kind = RED, __VA_ARGS__                                               \
    }

/* clang-format off */
const row rows[] = {
    {"rlock_status_str", NO_CLIENT, act_texts, .quiet = true},
    {"rlock_last_error", NO_CLIENT, act_texts, .quiet = true},
    {"rlock_version", NO_CLIENT, act_texts, .quiet = true},
    {"rlock_client_new", CLIENT, act_client_new, .bare = true},
    {"rlock_client_free", CLIENT, act_client_free, .held = 0},
    {"rlock_client_free", SINGLE, act_client_free, .held = 1},
    {"rlock_client_free", RED, act_client_free, .held = 1},
    {"rlock_client_close", CLIENT, act_client_close, .held = 0},
    {"rlock_client_close", SINGLE, act_client_close, .held = 2},
    {"rlock_client_close", MULTI, act_client_close, .held = 1},
    {"rlock_client_close", RED, act_client_close, .held = 1},
    {"rlock_client_ping", CLIENT, act_client_ping, .held = 0},
    {"rlock_client_ping", SINGLE, act_client_ping, .held = 1, .after = 1},
    {"rlock_scan", CLIENT, act_scan, .held = 0},
    {"rlock_scan", SINGLE, act_scan, .held = 1, .after = 1},
    {"rlock_client_stats", CLIENT, act_client_stats, .quiet = true},
    {"rlock_metrics_write", CLIENT, act_metrics_write, .held = 0},
    {"rlock_metrics_each", CLIENT, act_metrics_each, .held = 0},
    {"rlock_metrics_content_type", NO_CLIENT, act_metrics_content_type,
     .quiet = true},
    {"rlock_client_cancel", CLIENT, act_client_cancel, .quiet = true},

    {"rlock_new", SINGLE, act_new, .bare = true},
    {"rlock_new_n", SINGLE, act_new_n, .bare = true},
    {"rlock_new_ex", SINGLE, act_new_ex, .bare = true},
    {"rlock_multi_new", MULTI, act_multi_new, .bare = true},
    {"rlock_red_new", RED, act_red_new, .bare = true},
    {"rlock_red_new_ex", RED, act_red_new_ex, .bare = true},
    FOR_ALL(.function = "rlock_free", .act = act_free, .held = 1, .after = 1,
            .quiet = true),

    FOR_ALL(.function = "rlock_lock", .act = act_lock, .after = 1,
            .patient = true),
    FOR_ALL(.function = "rlock_trylock", .act = act_trylock, .after = 1),
    FOR_ALL(.function = "rlock_trylock", .act = act_trylock, .held = 1,
            .after = 2),
    FOR_ALL(.function = "rlock_acquire", .act = act_acquire, .after = 1,
            .foreign_ms = 15, .patient = true),
    FOR_ALL(.function = "rlock_acquire", .act = act_wait_in_vain,
            .wanted = RLOCK_TIMEOUT, .foreign_ms = 60000),
    FOR_ALL(.function = "rlock_acquire", .act = act_acquire, .held = 1,
            .after = 2),
    {"rlock_acquire", SINGLE, act_acquire, .held = 1, .after = 2, .cut = true},
    FOR_ALL(.function = "rlock_unlock", .act = act_unlock, .held = 1,
            .after = 0, .undone = true),
    FOR_ALL(.function = "rlock_unlock", .act = act_unlock, .held = 2,
            .after = 1, .undone = true),
    {"rlock_unlock", SINGLE, act_unlock, .held = 1, .after = 0, .undone = true,
     .cut = true},
    FOR_ALL(.function = "rlock_extend", .act = act_extend, .held = 1,
            .after = 1),
    {"rlock_extend", SINGLE, act_extend, .held = 1, .after = 1, .cut = true},
    {"rlock_eval", SINGLE, act_eval, .held = 1, .after = 1, .once = true},
    {"rlock_eval", SINGLE, act_eval, .held = 1, .after = 1, .once = true,
     .cut = true},
    {"rlock_command", SINGLE, act_command, .held = 1, .after = 1, .once = true},
    {"rlock_vcommand", SINGLE, act_vcommand, .held = 1, .after = 1,
     .once = true},
    {"rlock_command_argv", SINGLE, act_command_argv, .held = 1, .after = 1,
     .once = true},
    FOR_ALL(.function = "rlock_force_unlock", .act = act_force_unlock,
            .foreign_ms = 60000),
    {"rlock_force_unlock_hold", SINGLE, act_force_unlock_hold,
     .foreign_ms = 60000, .once = true},
    {"rlock_force_unlock_hold", RED, act_force_unlock_hold,
     .foreign_ms = 60000},
    FOR_ALL(.function = "rlock_cancel", .act = act_cancel, .quiet = true),

    {"rlock_owner_new", NO_CLIENT, act_owner_new, .bare = true},
    {"rlock_owner_set", NO_CLIENT, act_owner_set, .owner = true},
    {"rlock_owner_is_busy", NO_CLIENT, act_owner_is_busy, .owner = true},
    {"rlock_owner_cancel", NO_CLIENT, act_owner_cancel, .owner = true},
    {"rlock_owner_free", NO_CLIENT, act_owner_free, .owner = true},
    {"rlock_client_fd", CLIENT, act_client_fd, .descriptor = true},
    {"rlock_client_dispatch", CLIENT, act_client_dispatch, .quiet = true},
    FOR_ALL(.function = "rlock_acquire_start", .act = act_acquire_start,
            .after = 1, .foreign_ms = 15, .patient = true, .owner = true),
    FOR_ALL(.function = "rlock_acquire_start", .act = act_wait_in_vain_started,
            .wanted = RLOCK_TIMEOUT, .foreign_ms = 60000, .owner = true),
    FOR_ALL(.function = "rlock_acquire_start", .act = act_acquire_start,
            .held = 1, .after = 2, .owner = true),
    {"rlock_acquire_start", SINGLE, act_acquire_start, .held = 1, .after = 2,
     .cut = true, .owner = true},
    FOR_ALL(.function = "rlock_unlock_start", .act = act_unlock_start,
            .held = 1, .undone = true, .owner = true),
    FOR_ALL(.function = "rlock_unlock_start", .act = act_unlock_start,
            .held = 2, .after = 1, .undone = true, .owner = true),
    {"rlock_unlock_start", SINGLE, act_unlock_start, .held = 1, .undone = true,
     .cut = true, .owner = true},
    FOR_ALL(.function = "rlock_extend_start", .act = act_extend_start,
            .held = 1, .after = 1, .owner = true),
    {"rlock_eval_start", SINGLE, act_eval_start, .held = 1, .after = 1,
     .once = true, .owner = true},
    {"rlock_eval_start", SINGLE, act_eval_start, .held = 1, .after = 1,
     .once = true, .cut = true, .owner = true},
    {"rlock_command_start", SINGLE, act_command_start, .held = 1, .after = 1,
     .once = true, .owner = true},
    {"rlock_vcommand_start", SINGLE, act_vcommand_start, .held = 1, .after = 1,
     .once = true, .owner = true},
    {"rlock_command_argv_start", SINGLE, act_command_argv_start, .held = 1,
     .after = 1, .once = true, .owner = true},

    FOR_ALL(.function = "rlock_is_held", .act = act_is_held, .held = 1,
            .after = 1, .quiet = true),
    FOR_ALL(.function = "rlock_hold_count", .act = act_hold_count, .held = 1,
            .after = 1, .quiet = true),
    FOR_ALL(.function = "rlock_valid_ms", .act = act_valid_ms, .held = 1,
            .after = 1, .quiet = true),
    FOR_ALL(.function = "rlock_token", .act = act_token, .held = 1,
            .after = 1, .quiet = true),
    FOR_ALL(.function = "rlock_lost_fd", .act = act_lost_fd, .held = 1,
            .after = 1, .patient = true),
    {"rlock_is_locked", SINGLE, act_is_locked, .foreign_ms = 60000},
    {"rlock_is_locked", RED, act_is_locked, .foreign_ms = 60000},
    {"rlock_ttl", SINGLE, act_ttl, .foreign_ms = 60000},
    {"rlock_ttl", RED, act_ttl, .held = 1, .after = 1},
    {"rlock_holder_info", SINGLE, act_holder_info, .held = 1, .after = 1},
    {"rlock_holder_info", SINGLE, act_holder_info, .held = 1, .after = 1,
     .cut = true},
    {"rlock_holder_info", RED, act_holder_info, .held = 1, .after = 1},
    {"rlock_hold_info", SINGLE, act_hold_info, .held = 1, .after = 1},
};
/* clang-format on */

const row by_name = {"rlock_client_new", CLIENT, act_client_new_by_name,
                     .bare = true};

const size_t n_rows = sizeof rows / sizeof *rows;
