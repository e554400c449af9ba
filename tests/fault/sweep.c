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

#include "shim.h"
#include "sweep/rows.h"

#define OTHER_LOCK "other"
#define MOST_CALLS 1000 /* of one kind in one act */

/* An act takes no longer than this, and no timeout is as short. */
#define AT_ONCE_MS 10000

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
    rlock_owner_free(st->owner); /* the thread acts as itself again */
    st->owner = NULL;
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
        server_cmd(st->ns->sv[i], "HDEL %s " BY_HAND, SCENE_LOCK);
        if (all)
            server_cmd(st->ns->sv[i], "DEL %s %s", names[0], names[1]);
    }
}

/* The last node may still be at it. */
static bool all_have_levels(const stage *st)
{
    int64_t until_ms = test_now_ms() + 50;
    for (size_t i = 0; i < st->n; i++)
        while (levels(st->ns->sv[i], SCENE_LOCK) != st->row->held) {
            if (test_now_ms() > until_ms)
                return false;
            test_pause_ms(1);
        }
    return true;
}

static bool changes_nothing(const row *r)
{
    return r->held > 0 && r->held == r->after;
}

/* A node of a Red lock has a short time to answer, too short now and then. Who
   only asks about it needs a majority of those that have it: with one left out,
   one more that fails is none. So all have it, if that can be had. */
static void hold_levels(stage *st)
{
    bool asks = st->row->kind == RED && changes_nothing(st->row);
    for (int tries = 1;; tries++) {
        for (int i = 0; i < st->row->held; i++)
            EXPECT_STATUS(rlock_lock(st->lk), RLOCK_OK);
        if (!asks || tries == 10 || all_have_levels(st))
            return;
        while (rlock_hold_count(st->lk) > 0)
            EXPECT_STATUS(rlock_unlock(st->lk), RLOCK_OK);
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
    if (r->owner)
        EXPECT_STATUS(rlock_owner_new("sweep", &st.owner), RLOCK_OK);
    rlock_owner_set(st.owner);
    hold_levels(&st);
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
    if (r->once && s == RLOCK_EIO)
        return true;
    if (is_resource(x->what->call) || r->descriptor)
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

/* On a busy machine a node may be too slow, whatever else has failed. */
static bool is_late(rlock_status s, const char *message)
{
    return s == RLOCK_EQUORUM && strstr(message, "no answer so far");
}

static void expect_message(const row *r, const shot *x, rlock_status s)
{
    const rlock_error *e = rlock_last_error();
    bool about_lock = !r->bare &&
                      strncmp(r->function, "rlock_client_", 13) != 0 &&
                      strncmp(r->function, "rlock_metrics_", 14) != 0 &&
                      strcmp(r->function, "rlock_scan") != 0;
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
    if (!strstr(e->message, cause) && !is_late(s, e->message))
        WRONG("no cause in \"%s\"", e->message);
}

static void expect_levels(const stage *st, rlock_status s)
{
    const row *r = st->row;
    bool done = s == RLOCK_OK || (r->undone && !st->refused);
    int wanted = done ? r->after : r->held;
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
    if (st.callbacks > 1)
        WRONG("%d callbacks", st.callbacks);
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

static void sweep_rows(const fault *faults, size_t n, long last, where where,
                       bool started)
{
    nodes ns = nodes_start(NODES);
    for (size_t f = 0; f < n; f++) {
        shot x = {&faults[f], 1, last, where == EVERYWHERE};
        for (size_t i = 0; i < n_rows; i++)
            if (rows[i].owner == started)
                sweep_row(&rows[i], &ns, x);
    }
    nodes_stop(&ns);
}

static void sweep(const fault *faults, size_t n, long last, where where)
{
    sweep_rows(faults, n, last, where, false);
}

/* The rows of what goes on by itself. */
static void sweep_started(const fault *faults, size_t n, long last, where where)
{
    sweep_rows(faults, n, last, where, true);
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

TEST_CASE(sweep, one_allocation_fails_for_what_is_started,
          sweep_started(&allocation, 1, 1, HERE))
TEST_CASE(sweep, one_allocation_of_any_thread_fails_for_what_is_started,
          sweep_started(&allocation, 1, 1, EVERYWHERE))
TEST_CASE(sweep, all_allocations_fail_from_one_on_for_what_is_started,
          sweep_started(&allocation, 1, SHIM_EVER, HERE))
TEST_CASE(sweep, all_of_all_threads_fail_from_one_on_for_what_is_started,
          sweep_started(&allocation, 1, SHIM_EVER, EVERYWHERE))
TEST_CASE(sweep, one_send_fails_for_what_is_started,
          sweep_started(&sending, 1, 1, EVERYWHERE))
TEST_CASE(sweep, one_recv_fails_for_what_is_started,
          sweep_started(&receiving, 1, 1, EVERYWHERE))
TEST_CASE(sweep, one_poll_fails_for_what_is_started,
          sweep_started(&polling, 1, 1, EVERYWHERE))
TEST_CASE(sweep, one_call_fails_while_connecting_for_what_is_started,
          sweep_started(connecting, COUNT(connecting), 1, EVERYWHERE))
TEST_CASE(sweep, one_thread_or_the_like_cannot_be_had_for_what_is_started,
          sweep_started(resources, COUNT(resources), 1, EVERYWHERE))

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
