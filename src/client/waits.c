/*
 * Asks servers who waits for whom: by SCAN for the queues there are, and then
 * about each. Over a connection of its own, as replies of any size are taken
 * piece by piece, and on another one somebody's late reply might come first.
 * Called by a program's thread, inside the client.
 */
#include "client/waits_graph.h"

#include <string.h>

#include "op/call.h"
#include "run/client.h"
#include "run/inquiry.h"
#include "wire/error.h"
#include "wire/hash_slot.h"

/* So many keys the server looks at in one step. */
#define STEP "1000"

typedef struct asking {
    rl_engine *e;
    rl_node *n;
    rl_conn *conn;
    rl_waits *into;
    rl_fault f;
} asking;

static rlock_status lacks_memory(asking *a)
{
    return rl_fault_set(&a->f, RLOCK_ENOMEM, 0, "out of memory");
}

static int64_t step_end(const asking *a)
{
    return rl_command_end(&a->e->core, rl_now_us());
}

/* --- one server ----------------------------------------------------------- */

static rlock_status scan_step(asking *a)
{
    rl_reply r;
    rl_waits *w = a->into;
    const char *cursor = rl_waits_text(w, w->cursor);
    a->conn->line.reply.sink = &w->names;
    rlock_status s =
        rl_conn_ask(a->conn, step_end(a), &r, &a->f, 6,
                    (const char *[]){"SCAN", cursor, "MATCH", "rlock_queue:*",
                                     "COUNT", STEP});
    a->conn->line.reply.sink = NULL;
    if (w->lacking)
        return lacks_memory(a);
    if (s == RLOCK_OK && rl_reply_is(&r, REDIS_REPLY_ERROR)) {
        rl_error_reply(&r, &a->f);
        s = a->f.status;
    }
    return s;
}

static rlock_status scan(asking *a)
{
    rl_waits *w = a->into;
    rlock_status s;
    rl_waits_begin_scan(w);
    do
        s = w->lacking ? lacks_memory(a) : scan_step(a);
    while (s == RLOCK_OK && !rl_waits_is_scanned(w));
    if (s == RLOCK_OK)
        rl_waits_sort_names(w);
    return s;
}

static void write_waits(const rl_ask *ask, rl_bytes *to)
{
    const rl_inquiry *q = RL_CONTAINER(ask, rl_inquiry, ask);
    const rl_waits *w = q->arg;
    rl_call_waits(to, ask->whole, rl_waits_text(w, w->about.text),
                  w->about.len);
}

/* Its slot may have moved meanwhile; who is there is seen, or not, elsewhere.
 */
static bool is_elsewhere(const asking *a)
{
    return a->e->cluster && !rl_conn_is_broken(a->conn) &&
           (a->f.transient || strstr(a->f.text, "MOVED ") ||
            strstr(a->f.text, "ASK "));
}

static rlock_status ask_about(asking *a, rl_name lock)
{
    rl_inquiry q = {.arg = a->into};
    rl_waits_begin(a->into, lock);
    a->conn->line.reply.sink = &a->into->reply;
    bool answered = rl_inquire(a->conn, &q, RL_SCRIPT_WAITS, write_waits,
                               &a->e->core.stats.script_loads, step_end(a));
    a->conn->line.reply.sink = NULL;
    if (a->into->lacking)
        return lacks_memory(a);
    if (answered)
        return RLOCK_OK;
    a->f = q.fault;
    return is_elsewhere(a) ? RLOCK_OK : a->f.status;
}

static rlock_status ask_server(asking *a)
{
    rl_pool *from = a->n->pool;
    int64_t until_us =
        rl_after_ms(rl_now_us(), a->e->core.set.connect_timeout_ms);
    rlock_status s = rl_pool_open(from, until_us, &a->conn, &a->f);
    if (s != RLOCK_OK)
        return s;
    s = scan(a);
    for (size_t i = 0; s == RLOCK_OK && i < a->into->n_names; i++)
        s = ask_about(a, a->into->name[i]);
    rl_pool_close(from, a->conn);
    return s;
}

/* --- all of them ---------------------------------------------------------- */

/* Those that have slots now, each once. */
static size_t masters_of(rl_engine *e, rl_node *out[RL_SERVERS])
{
    size_t n = 0;
    for (unsigned slot = 0; slot < RL_HASH_SLOTS; slot++) {
        rl_node *at = rl_cluster_route(e->cluster, slot);
        size_t i = 0;
        while (i < n && out[i] != at)
            i++;
        if (at && i == n && n < RL_SERVERS)
            out[n++] = at;
    }
    return n;
}

static rlock_status ask_cluster(asking *a)
{
    rl_node *master[RL_SERVERS];
    rlock_status s = rl_cluster_await(
        a->e->cluster,
        rl_after_ms(rl_now_us(), a->e->core.set.connect_timeout_ms), &a->f);
    size_t n = s == RLOCK_OK ? masters_of(a->e, master) : 0;
    for (size_t i = 0; s == RLOCK_OK && i < n; i++) {
        a->n = master[i];
        s = ask_server(a);
    }
    return s;
}

static rlock_status ask(rlock_client *cl, rl_waits *into)
{
    int cancel;
    rlock_status s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    rl_engine *e = &cl->engine;
    asking a = {.e = e, .n = &e->node, .into = into};
    s = e->cluster ? ask_cluster(&a) : ask_server(&a);
    if (s == RLOCK_OK && !rl_waits_find_circles(into))
        s = lacks_memory(&a);
    if (s != RLOCK_OK)
        rl_error_set(s, a.f.sys_errno, "%s: %s",
                     a.n->name ? a.n->name : atomic_load(&e->core.node),
                     a.f.text);
    rl_client_leave(cl, cancel);
    return s;
}

rlock_status rlock_waits_for(rlock_client *cl, rlock_waits_fn *each, void *arg)
{
    rl_waits w;
    rlock_wait told;
    rlock_holder holder, waiter;
    if (!cl || !each)
        return rl_error_set(RLOCK_EINVAL, 0, "%s is NULL",
                            cl ? "the callback" : "the client");
    rl_waits_init(&w);
    rlock_status s = ask(cl, &w);
    for (size_t i = 0; s == RLOCK_OK && i < w.n; i++) {
        rl_waits_tell(&w, i, &told, &holder, &waiter);
        each(&told, arg);
    }
    rl_waits_fini(&w);
    return s;
}
