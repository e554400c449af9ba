/*
 * What stays true: of one connection all answers have come before the next step
 * is taken, and what a step wants to know has one command_timeout_ms.
 */
#include "client/survey.h"

#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "run/client.h"
#include "wire/ask.h"
#include "wire/error.h"
#include "wire/hash_slot.h"

/* So many keys the server looks at in one step: a millisecond of its processor
   at most. */
#define STEP "500"

/* So many questions go together, when their answers are small. */
#define TOGETHER 64

/* A key, or a field, of others may be as long. */
#define LONGEST (1024 * 1024)

typedef struct asking asking;

/* About one name: by the script, or by the pass' command. */
typedef struct question {
    rl_ask ask;
    rl_slot slot;
    asking *a;
    rl_name name;
    rl_fault fault;
} question;

/* A text that was answered, as much as a holder id may have. */
typedef struct answer {
    rl_sink sink;
    bool is_text;
    size_t len;
    char text[512];
} answer;

struct asking {
    rl_survey *s;
    rlock_client *cl;
    rl_engine *e;
    rl_node *n;
    rl_conn *conn;
    const rl_pass *pass;
    size_t under_way;
    answer latest;
    rl_fault f; /* RLOCK_OK: nothing has gone wrong */
    question q[TOGETHER];
};

static void fail(asking *a, const rl_fault *why)
{
    if (a->f.status == RLOCK_OK)
        a->f = *why;
}

static void fail_with(asking *a, rlock_status s, const char *text)
{
    rl_fault f;
    rl_fault_set(&f, s, 0, "%s", text);
    fail(a, &f);
}

static int64_t step_end(const asking *a)
{
    return rl_command_end(&a->e->core, rl_now_us());
}

/* May the next step be taken? */
static bool goes_on(asking *a)
{
    if (atomic_load(&a->cl->closing))
        fail_with(a, RLOCK_ECLOSED, "the client is closed");
    else if (a->s->names->lacking)
        fail_with(a, RLOCK_ENOMEM, "out of memory");
    return a->f.status == RLOCK_OK;
}

/* Its slot may have moved meanwhile; who is there is seen, or not, elsewhere. */
static bool is_elsewhere(const asking *a, const rl_fault *f)
{
    return a->e->cluster && !rl_conn_is_broken(a->conn) &&
           (f->transient || strstr(f->text, "MOVED ") ||
            strstr(f->text, "ASK "));
}

static void refused(const question *q)
{
    asking *a = q->a;
    bool guessed = q->name.guessed && q->fault.status == RLOCK_ESERVER;
    if (!guessed && !is_elsewhere(a, &q->fault) && !a->s->names->lacking)
        fail(a, &q->fault);
}

static void await(asking *a)
{
    int64_t until_us = step_end(a);
    while (a->under_way > 0)
        rl_conn_step(a->conn, until_us);
    a->conn->line.reply.sink = NULL;
}

static const char *text_of(const asking *a, rl_name name)
{
    return rl_names_text(a->s->names, name.text);
}

/* --- which names ---------------------------------------------------------- */

static void put_scan(asking *a, const rl_scan *scan, rl_question *q)
{
    const char *argv[8] = {"SCAN", scan->cursor, "COUNT", STEP};
    int argc = 4;
    if (a->pass->match) {
        argv[argc++] = "MATCH";
        argv[argc++] = a->pass->match;
    }
    if (a->pass->type) {
        argv[argc++] = "TYPE";
        argv[argc++] = a->pass->type;
    }
    rl_conn_put(a->conn, q, argc, argv);
}

static void read_page(asking *a, rl_scan *scan)
{
    rl_question q = {.replies = 0};
    rl_fault f = {0};
    a->conn->line.reply.sink = &scan->sink;
    put_scan(a, scan, &q);
    rl_conn_await(a->conn, step_end(a), &q, 1, &f);
    a->conn->line.reply.sink = NULL;
    if (a->s->names->lacking)
        return;
    if (f.status == RLOCK_OK && rl_reply_is(&q.reply, REDIS_REPLY_ERROR))
        rl_error_reply(&q.reply, &f);
    if (f.status != RLOCK_OK)
        fail(a, &f);
}

static bool take_answer(rl_sink *sink, const rl_cell *c, size_t len)
{
    answer *x = RL_CONTAINER(sink, answer, sink);
    size_t kept = len < sizeof x->text ? len : sizeof x->text - 1;
    x->is_text = c->str != NULL;
    if (!c->str)
        return c->depth == 0;
    memcpy(x->text, c->str, kept);
    x->text[kept] = '\0';
    x->len = len;
    return c->depth == 0;
}

/* Its answer is the latest. */
static void probed(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    question *q = RL_CONTAINER(s, question, slot);
    asking *a = q->a;
    (void)now_us;
    a->under_way--;
    if (rl_reply_is(r, REDIS_REPLY_ERROR)) {
        rl_error_reply(r, &q->fault);
        if (q->fault.status != RLOCK_EWRONGTYPE)
            refused(q);
    } else if (a->latest.is_text &&
               a->pass->fits(a->latest.text, a->latest.len)) {
        a->s->names->at[a->s->names->n++] = q->name;
    }
}

static void not_probed(rl_slot *s, bool whole, const rl_fault *why,
                       int64_t now_us)
{
    question *q = RL_CONTAINER(s, question, slot);
    (void)whole;
    (void)now_us;
    q->a->under_way--;
    fail(q->a, why);
}

static void put_probe(question *q)
{
    rl_line *l = &q->a->conn->line;
    l->reply.sink = &q->a->latest.sink;
    q->slot = (rl_slot){.answered = probed, .failed = not_probed};
    q->a->pass->ask(rl_line_begin(l), text_of(q->a, q->name), q->name.len);
    if (rl_line_push(l, &q->slot))
        q->a->under_way++;
    else if (l->failed)
        fail(q->a, &l->fault);
    else
        fail_with(q->a, RLOCK_ENOMEM, "out of memory");
}

/* Those that are locks stay: what fits takes the place of what has been read. */
static void probe_page(asking *a, size_t first)
{
    rl_names *names = a->s->names;
    size_t end = names->n;
    names->n = first;
    while (first < end && goes_on(a)) {
        for (size_t i = 0; i < TOGETHER && first < end; i++, first++) {
            a->q[i].a = a;
            a->q[i].name = names->at[first];
            put_probe(&a->q[i]);
        }
        await(a);
    }
}

static void scan(asking *a)
{
    rl_scan at;
    rl_names *names = a->s->names;
    rl_scan_begin(&at, names, a->pass->take);
    do {
        size_t first = names->n;
        read_page(a, &at);
        if (a->pass->ask && goes_on(a))
            probe_page(a, first);
    } while (goes_on(a) && !rl_scan_is_over(&at));
}

/* --- each of them --------------------------------------------------------- */

static void write_question(const rl_ask *ask, rl_bytes *to)
{
    const question *q = RL_CONTAINER(ask, question, ask);
    q->a->s->write(to, ask->whole, text_of(q->a, q->name), &q->name);
}

static void told(rl_ask *ask, rl_outcome outcome, const rl_reply *r,
                 int64_t now_us)
{
    question *q = RL_CONTAINER(ask, question, ask);
    asking *a = q->a;
    (void)now_us;
    a->under_way--;
    if (outcome != RL_ANSWERED)
        refused(q);
    else if (a->s->note && !a->s->note(a->s, q->name, r) &&
             !a->s->names->lacking)
        fail_with(a, RLOCK_EIO, "what was answered about a lock is odd");
}

static bool is_wanted(const asking *a, rl_name lock)
{
    const char *name = text_of(a, lock);
    if (a->e->cluster && !rl_hash_slot_fits(name, lock.len))
        return false;
    return !a->s->wants || a->s->wants(a->s, name, lock.len);
}

static void put_question(question *q)
{
    asking *a = q->a;
    if (a->s->sink)
        a->s->begin(a->s, q->name);
    a->conn->line.reply.sink = a->s->sink;
    rl_ask_init(&q->ask, a->s->script, &q->fault);
    q->ask.write = write_question;
    q->ask.done = told;
    q->ask.loads = &a->e->core.stats.script_loads;
    q->ask.tries = 1;
    a->under_way++;
    rl_ask_push(&q->ask, &a->conn->line, rl_now_us());
}

/* Names may be added meanwhile. The first brings the script; who takes answers
   by pieces has to know whose they are. */
static void ask_about_all(asking *a)
{
    const rl_names *names = a->s->names;
    size_t i = 0, most = 1;
    while (i < names->n && goes_on(a)) {
        size_t n = 0;
        for (; n < most && i < names->n; i++) {
            if (!is_wanted(a, names->at[i]))
                continue;
            a->q[n].a = a;
            a->q[n].name = names->at[i];
            put_question(&a->q[n++]);
        }
        await(a);
        most = a->s->sink ? 1 : TOGETHER;
    }
}

/* --- the servers ---------------------------------------------------------- */

static void ask_server(asking *a)
{
    rl_pool *from = a->n->pool;
    rl_fault f;
    int64_t until_us =
        rl_after_ms(rl_now_us(), a->e->core.set.connect_timeout_ms);
    if (rl_pool_open(from, until_us, &a->conn, &f) != RLOCK_OK) {
        fail(a, &f);
        return;
    }
    a->conn->line.budget = LONGEST;
    a->s->names->n = 0;
    for (size_t i = 0; i < a->s->passes && goes_on(a); i++) {
        a->pass = &a->s->pass[i];
        scan(a);
    }
    rl_names_sort(a->s->names);
    if (goes_on(a))
        ask_about_all(a);
    goes_on(a); /* the last one may have lacked memory */
    rl_pool_close(from, a->conn);
}

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

size_t rl_survey_masters(rl_engine *e, rl_node *out[RL_SERVERS], rl_fault *f)
{
    int64_t until_us = rl_after_ms(rl_now_us(), e->core.set.connect_timeout_ms);
    out[0] = &e->node;
    if (!e->cluster)
        return 1;
    rl_fault why;
    if (rl_cluster_await(e->cluster, until_us, &why) == RLOCK_OK)
        return masters_of(e, out);
    *f = why;
    return 0;
}

static rlock_status ask_all(asking *a)
{
    rl_node *master[RL_SERVERS];
    size_t n = rl_survey_masters(a->e, master, &a->f);
    for (size_t i = 0; i < n && goes_on(a); i++) {
        a->n = master[i];
        ask_server(a);
    }
    if (a->f.status == RLOCK_OK)
        return RLOCK_OK;
    return rl_error_set(a->f.status, a->f.sys_errno, "%s: %s",
                        a->n->name ? a->n->name : atomic_load(&a->e->core.node),
                        a->f.text);
}

rlock_status rl_survey_make(rl_survey *s, rlock_client *cl)
{
    int cancel;
    rlock_status status = rl_client_begin(cl, &cancel);
    if (status != RLOCK_OK)
        return status;
    rl_engine *e = &cl->engine;
    asking *a = calloc(1, sizeof *a);
    if (a) {
        a->s = s;
        a->cl = cl;
        a->e = e;
        a->latest.sink.take = take_answer;
        a->n = &e->node;
        status = ask_all(a);
    } else {
        status = rl_error_set(RLOCK_ENOMEM, 0, "out of memory");
    }
    free(a);
    rl_client_leave(cl, cancel);
    return status;
}
