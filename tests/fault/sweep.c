/*
 * Every public function, with its first allocation failing, then with its
 * second, and so on until it comes to its end without having met the fault;
 * the same for each system call that the library makes, and with every
 * allocation failing from one on. Whatever fails, nothing crashes or leaks, the
 * status is one that the header documents and says what is true of the hold,
 * the message names the cause, and afterwards the client works and the server
 * has nothing left.
 *
 * A row is one function in one situation. Rows that go well although something
 * fails are checked as if nothing had.
 */
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <unistd.h>

#include "nodes.h"
#include "shim.h"

#define NODES      3
#define MEMBERS    3
#define OTHER_LOCK "other"
#define MOST_CALLS 1000 /* of one kind in one act */

/* An act takes no longer than this, and no timeout is as short. */
#define AT_ONCE_MS    10000
#define TIMEOUT_MS    30000
#define LONG_LEASE_MS 600000

typedef enum kind { NO_CLIENT, CLIENT, SINGLE, MULTI, RED } kind;

typedef struct row row;

/* What an act works on. What it makes or frees is put in or out here. */
typedef struct stage {
    const row *row;
    nodes *ns;
    size_t n; /* clients */
    rlock_client *cl[NODES];
    rlock *member[MEMBERS];
    rlock *lk;
} stage;

struct row {
    const char *function;
    kind kind;
    rlock_status (*act)(stage *st);
    rlock_status wanted; /* when nothing fails */
    int held;            /* levels before */
    int after;           /* levels afterwards, if it is RLOCK_OK */
    int64_t foreign_ms;  /* another program has the lock for so long */
    bool bare;           /* the act makes the handle, or the client */
    bool undone;         /* levels are as after success, whatever it answers */
    bool patient;        /* a fault of the connection is tried again */
    bool quiet;          /* makes no such call itself */
    bool cut;            /* connections have broken since they were used */
};

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

static rlock_status act_status_str(stage *st)
{
    (void)st;
    return ok_if(*rlock_status_str(RLOCK_LOST));
}

static rlock_status act_last_error(stage *st)
{
    (void)st;
    return ok_if(rlock_last_error() != NULL);
}

static rlock_status act_version(stage *st)
{
    (void)st;
    return ok_if(*rlock_version());
}

static rlock_options options_for(const char *uri)
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
    return rlock_client_stats(st->cl[0], &stats);
}

/* *out is NULL unless RLOCK_OK. */
static rlock_status made(const stage *st, rlock_status s)
{
    return (s == RLOCK_OK) == (st->lk != NULL) ? s : RLOCK_CANCELED;
}

static rlock_status act_new(stage *st)
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

static rlock_status act_multi_new(stage *st)
{
    return made(st, rlock_multi_new(st->member, MEMBERS, &st->lk));
}

static rlock_status act_red_new(stage *st)
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
    rlock_status s = rlock_holder_info(st->lk, &holder);
    return right_if(s, holder.count == st->row->held);
}

/* --- rows ---------------------------------------------------------------- */

#define FOR_ALL(...)                                                           \
    {.kind = SINGLE, __VA_ARGS__}, {.kind = MULTI, __VA_ARGS__},               \
    {                                                                          \
        .kind = RED, __VA_ARGS__                                               \
    }

/* clang-format off */
static const row rows[] = {
    {"rlock_status_str", NO_CLIENT, act_status_str, .quiet = true},
    {"rlock_last_error", NO_CLIENT, act_last_error, .quiet = true},
    {"rlock_version", NO_CLIENT, act_version, .quiet = true},
    {"rlock_client_new", CLIENT, act_client_new, .bare = true},
    {"rlock_client_free", CLIENT, act_client_free, .held = 0},
    {"rlock_client_free", SINGLE, act_client_free, .held = 1},
    {"rlock_client_free", RED, act_client_free, .held = 1},
    {"rlock_client_ping", CLIENT, act_client_ping, .held = 0},
    {"rlock_client_ping", SINGLE, act_client_ping, .held = 1, .after = 1},
    {"rlock_client_stats", CLIENT, act_client_stats, .quiet = true},
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
    FOR_ALL(.function = "rlock_force_unlock", .act = act_force_unlock,
            .foreign_ms = 60000),
    FOR_ALL(.function = "rlock_cancel", .act = act_cancel, .quiet = true),

    FOR_ALL(.function = "rlock_is_held", .act = act_is_held, .held = 1,
            .after = 1, .quiet = true),
    FOR_ALL(.function = "rlock_hold_count", .act = act_hold_count, .held = 1,
            .after = 1, .quiet = true),
    FOR_ALL(.function = "rlock_valid_ms", .act = act_valid_ms, .held = 1,
            .after = 1, .quiet = true),
    FOR_ALL(.function = "rlock_token", .act = act_token, .held = 1,
            .after = 1, .quiet = true),
    {"rlock_is_locked", SINGLE, act_is_locked, .foreign_ms = 60000},
    {"rlock_is_locked", RED, act_is_locked, .foreign_ms = 60000},
    {"rlock_ttl", SINGLE, act_ttl, .foreign_ms = 60000},
    {"rlock_ttl", RED, act_ttl, .held = 1, .after = 1},
    {"rlock_holder_info", SINGLE, act_holder_info, .held = 1, .after = 1},
    {"rlock_holder_info", SINGLE, act_holder_info, .held = 1, .after = 1,
     .cut = true},
    {"rlock_holder_info", RED, act_holder_info, .held = 1, .after = 1},
};
/* clang-format on */

/* For a server on TCP, which is the first of the stage. */
static const row by_name = {"rlock_client_new", CLIENT, act_client_new_by_name,
                            .bare = true};

/* --- what fails ---------------------------------------------------------- */

typedef struct fault {
    const char *name;
    shim_call call;
    int err;
} fault;

static const fault allocation = {"allocation", SHIM_ALLOC, ENOMEM};
static const fault sending = {"send", SHIM_SEND, EPIPE};
static const fault receiving = {"recv", SHIM_RECV, ECONNRESET};
static const fault polling = {"poll", SHIM_POLL, ENOMEM};
static const fault connecting[] = {
    {"socket", SHIM_SOCKET, EMFILE},
    {"connect", SHIM_CONNECT, ECONNREFUSED},
    {"setsockopt", SHIM_SETSOCKOPT, ENOBUFS},
    {"fcntl", SHIM_FCNTL, EBADF},
    {"getaddrinfo", SHIM_LOOKUP, EAI_AGAIN},
};
/* Threads and the like. */
static const fault resources[] = {
    {"getrandom", SHIM_GETRANDOM, ENOSYS},
    {"pthread_create", SHIM_THREAD, EAGAIN},
    {"eventfd", SHIM_EVENTFD, EMFILE},
    {"pthread_setspecific", SHIM_SPECIFIC, ENOMEM},
};

static bool is_resource(shim_call call)
{
    return call == SHIM_ALLOC || call == SHIM_GETRANDOM ||
           call == SHIM_THREAD || call == SHIM_EVENTFD || call == SHIM_SPECIFIC;
}

/* One try: which call fails, and on which threads. */
typedef struct shot {
    const fault *what;
    long first, last;
    bool everywhere; /* on the library's threads, too */
} shot;

static char trying[200];

#define WRONG(fmt, ...) FAIL("%s: " fmt, trying, __VA_ARGS__)

static void announce(const row *r, const shot *x)
{
    static const char *const kinds[] = {"", "", "", " of a Multi lock",
                                        " of a Red lock"};
    snprintf(trying, sizeof trying, "%s%s%s with %d levels, %s %ld%s%s fails",
             r->function, kinds[r->kind], r->cut ? " after a cut" : "", r->held,
             x->what->name, x->first, x->last == SHIM_EVER ? " and later" : "",
             x->everywhere ? " of any thread" : "");
}

static shim_panel *panel_of(const shot *x)
{
    return x->everywhere ? shim_everywhere() : shim_here();
}

/* --- the stage ----------------------------------------------------------- */

static const char *const names[] = {SCENE_LOCK, OTHER_LOCK};

static void make_clients(stage *st)
{
    for (size_t i = 0; i < st->n; i++) {
        server *sv = st->ns->sv[i];
        rlock_options o = options_for(server_uri(sv));
        if (!st->cl[i])
            st->cl[i] = server_client(sv, &o);
    }
}

/* Two of a Multi lock's members share a client, and so a round trip. */
static void make_members(stage *st)
{
    if (st->row->kind != MULTI || st->member[0])
        return;
    st->member[0] = test_lock(st->cl[0], SCENE_LOCK);
    st->member[1] = test_lock(st->cl[0], OTHER_LOCK);
    st->member[2] = test_lock(st->cl[1], SCENE_LOCK);
}

static void make_lock(stage *st)
{
    rlock_status s = RLOCK_OK;
    if (st->lk || st->row->kind < SINGLE)
        return;
    if (st->row->kind == SINGLE)
        s = act_new(st);
    else if (st->row->kind == MULTI)
        s = act_multi_new(st);
    else
        s = act_red_new(st);
    if (s != RLOCK_OK)
        WRONG("a handle cannot be made: %s", rlock_last_error()->message);
}

static void free_stage(stage *st)
{
    rlock_free(st->lk);
    st->lk = NULL;
    for (size_t i = 0; i < MEMBERS; i++) {
        rlock_free(st->member[i]);
        st->member[i] = NULL;
    }
    for (size_t i = 0; i < st->n; i++) {
        rlock_client_free(st->cl[i]);
        st->cl[i] = NULL;
    }
}

/* What the other program has, and what a client had that was freed. */
static void clear_servers(const stage *st, bool all)
{
    for (size_t i = 0; i < st->n; i++) {
        server_cmd(st->ns->sv[i], "HDEL %s other:1:1:x", SCENE_LOCK);
        if (all)
            server_cmd(st->ns->sv[i], "DEL %s %s", names[0], names[1]);
    }
}

static stage set_stage(const row *r, nodes *ns)
{
    static const size_t clients[] = {0, 1, 1, 2, NODES};
    stage st = {.row = r, .ns = ns, .n = clients[r->kind]};
    if (!(r->bare && r->kind == CLIENT))
        make_clients(&st);
    make_members(&st);
    if (!r->bare)
        make_lock(&st);
    for (int i = 0; i < r->held; i++)
        EXPECT_STATUS(rlock_lock(st.lk), RLOCK_OK);
    for (size_t i = 0; r->foreign_ms && i < st.n; i++)
        take_by_hand(ns->sv[i], SCENE_LOCK, r->foreign_ms);
    if (r->cut)
        server_cmd(ns->sv[0], "CLIENT KILL TYPE normal");
    return st;
}

/* --- what has to be true afterwards -------------------------------------- */

/* Of a Red lock one node may fail, but not all, nor the one that has to write
   down the token. */
static bool is_documented(const row *r, const shot *x, rlock_status s)
{
    bool all = x->last == SHIM_EVER;
    if (s == r->wanted)
        return true;
    if (s == RLOCK_EQUORUM)
        return r->kind == RED && (all || !r->patient);
    if (is_resource(x->what->call))
        return s == RLOCK_ENOMEM;
    return s == RLOCK_EIO && !r->patient && r->kind != RED;
}

static bool names_lock(const row *r, const char *message)
{
    return strstr(message, names[0]) || strstr(message, names[1]) ||
           (r->kind == MULTI && strstr(message, "a Multi lock"));
}

static bool names_server(const char *message)
{
    return strstr(message, "redis://") || strstr(message, "unix://");
}

static void expect_message(const row *r, const shot *x, rlock_status s)
{
    const rlock_error *e = rlock_last_error();
    bool about_lock =
        !r->bare && strncmp(r->function, "rlock_client_", 13) != 0;
    const char *cause = s == RLOCK_EIO ? strerror(x->what->err) : "";
    if (x->what->call == SHIM_ALLOC)
        cause = "memory";
    else if (x->what->call == SHIM_LOOKUP)
        cause = gai_strerror(x->what->err);
    if (e->status != s)
        WRONG("rlock_last_error() is about \"%s\", not \"%s\"",
              rlock_status_str(e->status), rlock_status_str(s));
    if (about_lock && !names_lock(r, e->message))
        WRONG("no name in \"%s\"", e->message);
    if (s == RLOCK_EIO && !names_server(e->message))
        WRONG("no server in \"%s\"", e->message);
    if (!strstr(e->message, cause))
        WRONG("no cause in \"%s\"", e->message);
}

static void expect_levels(const stage *st, rlock_status s)
{
    const row *r = st->row;
    int wanted = s == RLOCK_OK || r->undone ? r->after : r->held;
    int levels = rlock_hold_count(st->lk);
    if (levels != wanted)
        WRONG("\"%s\", and %d levels instead of %d", rlock_status_str(s),
              levels, wanted);
}

static long long keys_left(const stage *st)
{
    long long n = 0;
    for (size_t i = 0; i < st->n; i++)
        n += server_int(st->ns->sv[i], "EXISTS %s %s", names[0], names[1]);
    return n;
}

/* Whatever happened, the client works, and leaves nothing. */
static void expect_usable(stage *st)
{
    bool client_is_gone = st->n > 0 && !st->cl[0];
    clear_servers(st, client_is_gone);
    if (client_is_gone)
        free_stage(st);
    make_clients(st);
    make_members(st);
    make_lock(st);
    if (!st->lk)
        return;
    while (rlock_hold_count(st->lk) > 0) {
        if (rlock_unlock(st->lk) != RLOCK_OK)
            WRONG("then unlock: %s", rlock_last_error()->message);
    }
    if (rlock_acquire(st->lk, TIMEOUT_MS, RLOCK_WATCHDOG) != RLOCK_OK ||
        rlock_unlock(st->lk) != RLOCK_OK)
        WRONG("then lock and unlock: %s", rlock_last_error()->message);
    int64_t until_ms = test_now_ms() + 10000;
    while (keys_left(st) > 0) {
        if (test_now_ms() > until_ms)
            WRONG("%lld locks are left on the servers", keys_left(st));
        test_pause_ms(1);
    }
}

static int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    EXPECT(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void expect_descriptors(int before)
{
    int64_t until_ms = test_now_ms() + 10000;
    while (open_descriptors() != before) {
        if (test_now_ms() > until_ms)
            WRONG("%d descriptors instead of %d", open_descriptors(), before);
        test_pause_ms(1);
    }
}

/* --- the sweep ----------------------------------------------------------- */

/* False: the act did not come as far as the call that was to fail. */
static bool fire(const row *r, nodes *ns, const shot *x)
{
    announce(r, x);
    stage st = set_stage(r, ns);
    int64_t began_ms = test_now_ms();
    shim_fail(panel_of(x), x->what->call, x->first, x->last, x->what->err);
    rlock_status s = r->act(&st);
    bool fired = shim_failed(panel_of(x), x->what->call) > 0;
    shim_clear(panel_of(x));
    int64_t took_ms = test_now_ms() - began_ms;
    if (took_ms > AT_ONCE_MS)
        WRONG("took %lld ms", (long long)took_ms);
    if (r->quiet && fired && !x->everywhere)
        WRONG("%s", "it made such a call");
    if (fired ? !is_documented(r, x, s) : s != r->wanted)
        WRONG("\"%s\" (%s)", rlock_status_str(s), rlock_last_error()->message);
    if (s != r->wanted)
        expect_message(r, x, s);
    if (st.lk && st.cl[0])
        expect_levels(&st, s);
    expect_usable(&st);
    free_stage(&st);
    return fired;
}

static void sweep_row(const row *r, nodes *ns, shot x)
{
    bool ever = x.last == SHIM_EVER, fired = true;
    for (size_t i = 0; i < ns->n; i++)
        server_cmd(ns->sv[i], "FLUSHALL");
    int before = open_descriptors();
    for (x.first = 1; fired; x.first++) {
        if (x.first > MOST_CALLS)
            WRONG("%s", "still not the last one");
        x.last = ever ? SHIM_EVER : x.first;
        fired = fire(r, ns, &x);
        expect_descriptors(before);
    }
}

#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef enum where { HERE, EVERYWHERE } where;

static void sweep(const fault *faults, size_t n, long last, where where)
{
    nodes ns = nodes_start(NODES);
    for (size_t f = 0; f < n; f++) {
        shot x = {&faults[f], 1, last, where == EVERYWHERE};
        for (size_t i = 0; i < COUNT(rows); i++)
            sweep_row(&rows[i], &ns, x);
    }
    nodes_stop(&ns);
}

TEST(sweep, one_allocation_fails)
{
    sweep(&allocation, 1, 1, HERE);
}

TEST(sweep, one_allocation_of_any_thread_fails)
{
    sweep(&allocation, 1, 1, EVERYWHERE);
}

TEST(sweep, all_allocations_fail_from_one_on)
{
    sweep(&allocation, 1, SHIM_EVER, HERE);
}

TEST(sweep, all_allocations_of_all_threads_fail_from_one_on)
{
    sweep(&allocation, 1, SHIM_EVER, EVERYWHERE);
}

TEST(sweep, one_send_fails)
{
    sweep(&sending, 1, 1, HERE);
}

TEST(sweep, one_send_of_any_thread_fails)
{
    sweep(&sending, 1, 1, EVERYWHERE);
}

TEST(sweep, one_recv_fails)
{
    sweep(&receiving, 1, 1, HERE);
}

TEST(sweep, one_recv_of_any_thread_fails)
{
    sweep(&receiving, 1, 1, EVERYWHERE);
}

TEST(sweep, one_poll_fails)
{
    sweep(&polling, 1, 1, HERE);
}

TEST(sweep, one_poll_of_any_thread_fails)
{
    sweep(&polling, 1, 1, EVERYWHERE);
}

TEST(sweep, one_call_fails_while_connecting)
{
    sweep(connecting, COUNT(connecting), 1, HERE);
}

TEST(sweep, one_call_of_any_thread_fails_while_connecting)
{
    sweep(connecting, COUNT(connecting), 1, EVERYWHERE);
}

TEST(sweep, one_thread_or_the_like_cannot_be_had)
{
    sweep(resources, COUNT(resources), 1, HERE);
}

TEST(sweep, one_thread_or_the_like_cannot_be_had_by_any_thread)
{
    sweep(resources, COUNT(resources), 1, EVERYWHERE);
}

static void sweep_by_name(nodes *ns, const fault *faults, size_t n)
{
    for (size_t f = 0; f < n; f++) {
        sweep_row(&by_name, ns, (shot){&faults[f], 1, 1, false});
        sweep_row(&by_name, ns, (shot){&faults[f], 1, 1, true});
    }
}

TEST(sweep, one_call_fails_while_a_host_name_is_looked_up)
{
    need_host_names();
    nodes ns = {.n = 1, .sv = {server_start_tcp(NULL)}};
    sweep_by_name(&ns, &allocation, 1);
    sweep_by_name(&ns, connecting, COUNT(connecting));
    sweep_by_name(&ns, &sending, 1);
    sweep_by_name(&ns, &receiving, 1);
    sweep_by_name(&ns, &polling, 1);
    sweep_by_name(&ns, resources, COUNT(resources));
    nodes_stop(&ns);
}

/* --- none is forgotten --------------------------------------------------- */

static const char *const headers[] = {"base.h", "client.h", "lock.h",
                                      "multi.h"};

static bool has_row(const char *function, size_t len)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (strlen(rows[i].function) == len &&
            memcmp(rows[i].function, function, len) == 0)
            return true;
    }
    return false;
}

static char *read_header(const char *name)
{
    static char text[65536];
    char path[400];
    snprintf(path, sizeof path, "%s/include/rlock/%s", RLOCK_SOURCE_DIR, name);
    FILE *file = fopen(path, "re");
    if (!file)
        FAIL("cannot open %s", path);
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    EXPECT(len < sizeof text - 1);
    text[len] = '\0';
    return text;
}

/* The name before the first parenthesis after each RLOCK_API. */
static int functions_without_row(const char *text, int *functions)
{
    int missing = 0;
    for (const char *at = text; (at = strstr(at, "\nRLOCK_API ")) != NULL;) {
        at += strlen("\nRLOCK_API ");
        const char *end = at + strcspn(at, "("), *name = end;
        while (name[-1] == '_' || (name[-1] >= 'a' && name[-1] <= 'z'))
            name--;
        ++*functions;
        if (!has_row(name, (size_t)(end - name))) {
            fprintf(stderr, "no row: %.*s\n", (int)(end - name), name);
            missing++;
        }
    }
    return missing;
}

TEST(sweep, every_function_of_the_headers_has_a_row)
{
    int missing = 0, functions = 0;
    for (size_t i = 0; i < COUNT(headers); i++)
        missing += functions_without_row(read_header(headers[i]), &functions);
    EXPECT_INT(missing, 0);
    EXPECT(functions >= 20);
}
