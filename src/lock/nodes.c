#include "lock/nodes.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/*
 * Answers of servers near by are looked out for before going to sleep, as in
 * net/conn.c.
 */
#define LOOK_OUT_US 100

/*
 * Who is late has this long to answer before the agent's thread is woken for
 * it. Mostly the next call about the lock comes by before.
 */
#define PATIENCE_US 10000

/*
 * A round that has its quorum waits so long for nodes that have not even been
 * asked, for lack of a connection: the more nodes hold the lock, the better.
 */
#define CONNECTING_GRACE_US 50000

/*
 * And so long for answers that change nothing any more: a message can tell more
 * then, and what is undone is so when the call returns.
 */
#define LAST_GRACE_US 5000

/* So many calls on a connection may owe an answer. */
#define LONGEST_CHAIN 4

/* A call whose answer is late. */
typedef struct rl_late {
    rl_errand errand;
    rl_conn *conn;
    rl_step step; /* with a reference to the hold */
    rl_script_id script;
    int64_t until_us;
    struct rl_late *prior; /* an answer that comes before */
    int depth;             /* with those before it */
    bool read;             /* the answer is there */
    rl_answer answer;
} rl_late;

void rl_nodes_enter(rl_nodes *ns, rlock_client *const clients[], size_t n)
{
    ns->n = n;
    ns->quorum = n / 2 + 1;
    ns->wake_fd = -1;
    for (size_t i = 0; i < n; i++) {
        rl_node *x = &ns->node[i];
        x->client = clients[i];
        x->e = &clients[i]->engine;
        x->hold = NULL;
        x->conn = NULL;
        x->prior = NULL;
        x->run_id[0] = '\0';
        x->verdict = RL_FAILED;
        x->due = x->late = x->visiting = x->asked = x->ok = false;
        x->fault.status = RLOCK_OK;
        x->fault.text[0] = '\0';
        rlock_status s = rl_client_enter(x->client, &x->cancel);
        x->inside = s == RLOCK_OK;
        if (!x->inside)
            rl_fault_set(&x->fault, s, 0, "%s", rlock_status_str(s));
    }
}

void rl_nodes_leave(rl_nodes *ns)
{
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        if (x->inside)
            rl_client_leave(x->client, x->cancel);
    }
    if (ns->wake_fd >= 0)
        close(ns->wake_fd);
}

size_t rl_nodes_ok(const rl_nodes *ns)
{
    size_t n = 0;
    for (size_t i = 0; i < ns->n; i++)
        n += ns->node[i].ok;
    return n;
}

void rl_node_got(const void *arg, rl_node *x)
{
    (void)arg;
    x->ok = x->answer.outcome == RL_ANSWERED;
    if (!x->ok)
        x->fault = x->answer.fault;
}

static void give_back(rl_node *x)
{
    if (x->conn)
        rl_source_give_back(x->e->source, x->conn);
    x->conn = NULL;
}

/* --- what is late -------------------------------------------------------- */

/* Its owner may have released it meanwhile: then the watchdog undoes it. */
static void join_group(rl_step *s, rl_answer *a)
{
    rl_holds *t = &s->e->holds;
    rl_hold *h = s->hold;
    rl_grant g;
    rl_verdict v = rl_grant_read(a, 1, &g);
    rl_mutex_lock(&t->mutex);
    bool wanted = h->state == RL_DRAFT;
    int64_t now_us = rl_now_us();
    rl_hold_expect(h, now_us, s->lease_ms);
    if (wanted && v == RL_ACQUIRED && !rl_group_is_void(h->group) &&
        rl_lease_deadline(g.sent_us, s->lease_ms) > now_us) {
        rl_hold_grant_locked(t, h, h->group->token, g.sent_us,
                             atomic_load(&h->group->renewed));
        h->count = atomic_load(&h->group->count);
    } else if (wanted) {
        rl_hold_end_locked(t, h, now_us);
        h->doubtful = v == RL_ACQUIRED || a->open;
        if (h->doubtful)
            rl_hold_undo_locked(t, h, now_us);
        else
            rl_hold_unref_locked(t, h);
    }
    rl_hold_unref_locked(t, h);
    rl_mutex_unlock(&t->mutex);
}

static bool try_prior(rl_engine *e, rl_conn *conn, rl_late **prior);

static void note_late(rl_late *l)
{
    rl_fault f;
    bool rung;
    l->answer.open = l->answer.outcome == RL_UNKNOWN;
    if (l->step.verb == RL_VERB_ACQUIRE)
        join_group(&l->step, &l->answer);
    else if (l->step.verb == RL_VERB_UNDO)
        rl_undo_end(&l->step, &l->answer);
    else
        rl_release_end(&l->step, &l->answer, &rung, &f);
}

/* Notes an answer and those before it; what was not read is unknown. */
static void settle_prior(rl_engine *e, rl_late **prior)
{
    rl_late *l = *prior;
    if (!l)
        return;
    settle_prior(e, &l->prior);
    note_late(l);
    free(l);
    *prior = NULL;
}

/* Reads it, and those before it, if they are there. False: not all are. */
static bool try_read_late(rl_engine *e, rl_conn *conn, rl_late *l)
{
    if (!try_prior(e, conn, &l->prior))
        return false;
    l->read = l->read || rl_answer_try_read(conn, l->script, &l->answer);
    return l->read;
}

static bool try_prior(rl_engine *e, rl_conn *conn, rl_late **prior)
{
    if (*prior && !try_read_late(e, conn, *prior))
        return false;
    settle_prior(e, prior);
    return true;
}

/* --- asking -------------------------------------------------------------- */

/* The answer is final. */
static void settle(const rl_round *how, rl_node *x)
{
    x->due = x->late = x->asked = false;
    if (x->prior) /* its answer is still to come, and is nobody else's */
        x->conn->broken = true;
    settle_prior(x->e, &x->prior);
    x->answer.open = x->answer.outcome == RL_UNKNOWN;
    give_back(x);
    how->got(how->arg, x);
}

static void not_asked(const rl_round *how, rl_node *x)
{
    x->answer.outcome = RL_NOT_EXECUTED;
    x->answer.fault = x->fault;
    settle(how, x);
}

/* Has the agent make a connection. */
static void visit(rl_nodes *ns, const rl_round *how, rl_node *x)
{
    if (ns->wake_fd < 0)
        ns->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ns->wake_fd < 0) {
        int err = errno;
        rl_fault_set(&x->fault, RLOCK_ENOMEM, err,
                     "no descriptor to wait with: %s", strerror(err));
        not_asked(how, x);
        return;
    }
    x->visiting = true;
    rl_agent_visit(&x->e->agent, &x->visitor, ns->wake_fd);
}

static bool append(const rl_round *how, rl_node *x)
{
    rl_hold_call c;
    if (how->call)
        how->call(how->arg, x, &c);
    else
        rl_step_call(&x->step, &c);
    x->script = c.call.script;
    return rl_script_append(x->conn, &c.call, x->whole);
}

static void send_call(const rl_round *how, rl_node *x)
{
    rl_answer *a = &x->answer;
    a->outcome = RL_NOT_EXECUTED;
    if (!append(how, x)) {
        rl_conn_discard(x->conn);
        rl_fault_set(&a->fault, RLOCK_ENOMEM, 0, "out of memory");
        settle(how, x);
    } else if (rl_conn_flush(x->conn, rl_now_us(), &a->fault) != RLOCK_OK) {
        settle(how, x); /* a socket that is full is a server that hangs */
    } else {
        x->asked = true;
    }
}

/* With a connection at hand. */
static void ask(rl_nodes *ns, const rl_round *how, rl_node *x)
{
    x->answer.sent_us = ns->sent_us;
    x->whole = false;
    if (how->may_ask && !how->may_ask(how->arg, ns, x))
        not_asked(how, x);
    else
        send_call(how, x);
}

/* Finds a connection that is there. False: the node is down. */
static bool connect_node(const rl_round *how, rl_node *x)
{
    rl_agent_pass_by(x->e);
    if (x->conn)
        return true;
    if (rl_agent_is_down(&x->e->agent, how->early, &x->fault))
        return false;
    if (x->step.verb == RL_VERB_ACQUIRE && !how->call)
        rl_node_follow(x, RL_VERB_ACQUIRE);
    if (!x->conn)
        x->conn = rl_source_borrow_known(x->e->source);
    return true;
}

/*
 * Who has a connection is asked at once, who owes an answer there after the
 * others; who has none, but is not known to be down, gets one.
 */
static void begin(rl_nodes *ns, const rl_round *how)
{
    size_t hopeful = 0;
    bool down[RLOCK_RED_MAX] = {false};
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        if (!x->due)
            continue;
        down[i] = !connect_node(how, x);
        hopeful += !down[i];
        if (x->conn && !x->prior)
            ask(ns, how, x);
    }
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        if (x->due && x->prior && !x->asked)
            ask(ns, how, x);
        else if (down[i] ? how->insist && hopeful < ns->quorum
                         : x->due && !x->conn)
            visit(ns, how, x);
        else if (down[i])
            not_asked(how, x);
    }
}

/* Has the agent been successful? */
static bool look_for_connection(rl_nodes *ns, const rl_round *how, rl_node *x)
{
    if (!rl_agent_has_news(&x->e->agent, &x->visitor))
        return false;
    x->visiting = false;
    x->fault = x->visitor.fault;
    if (x->fault.status == RLOCK_OK)
        x->conn = rl_source_borrow_known(x->e->source);
    if (x->fault.status != RLOCK_OK)
        not_asked(how, x);
    else if (x->conn)
        ask(ns, how, x);
    else
        visit(ns, how, x); /* somebody else was quicker */
    return true;
}

static bool look_for_answer(const rl_round *how, rl_node *x)
{
    if (!try_prior(x->e, x->conn, &x->prior))
        return false;
    if (!rl_answer_try_read(x->conn, x->script, &x->answer))
        return false;
    if (rl_answer_is_noscript(&x->answer) && !x->whole) {
        rl_add(&x->e->stats.script_loads, 1);
        x->whole = true;
        send_call(how, x);
    } else {
        settle(how, x);
    }
    return true;
}

void rl_node_drop(const rl_round *how, rl_node *x)
{
    if (x->visiting)
        rl_agent_forget(&x->e->agent, &x->visitor);
    x->visiting = false;
    rl_fault_set(&x->answer.fault, RLOCK_EIO, ETIMEDOUT, "no answer in time");
    x->answer.outcome = x->asked ? RL_UNKNOWN : RL_NOT_EXECUTED;
    if (x->conn)
        x->conn->broken = true;
    settle(how, x);
}

/* One look at everybody. True: something has happened. */
static bool look_around(rl_nodes *ns, const rl_round *how)
{
    bool happened = false;
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        if (!x->due)
            continue;
        bool news = x->asked ? look_for_answer(how, x)
                             : look_for_connection(ns, how, x);
        if (!news && rl_now_us() >= x->until_us) {
            rl_node_drop(how, x);
            rl_agent_suspect(&x->e->agent, &x->answer.fault);
            news = true;
        }
        happened = happened || news;
    }
    return happened;
}

static bool is_anybody_due(const rl_nodes *ns, int64_t *until_us)
{
    bool any = false;
    for (size_t i = 0; i < ns->n; i++) {
        if (ns->node[i].due)
            *until_us = rl_min(*until_us, ns->node[i].until_us);
        any = any || ns->node[i].due;
    }
    return any;
}

static void sleep_until(const rl_nodes *ns, int64_t until_us)
{
    struct pollfd p[RLOCK_RED_MAX + 1];
    nfds_t n = 0;
    p[n++] = (struct pollfd){.fd = ns->wake_fd, .events = POLLIN};
    for (size_t i = 0; i < ns->n; i++) {
        if (ns->node[i].due && ns->node[i].asked)
            p[n++] = (struct pollfd){.fd = ns->node[i].conn->ctx->fd,
                                     .events = POLLIN};
    }
    if (poll(p, n, rl_poll_ms(until_us)) > 0 && p[0].revents)
        eventfd_read(ns->wake_fd, &(eventfd_t){0});
}

static bool is_anybody_connecting(const rl_nodes *ns)
{
    for (size_t i = 0; i < ns->n; i++) {
        if (ns->node[i].due && ns->node[i].visiting)
            return true;
    }
    return false;
}

static int64_t grace_of(const rl_nodes *ns, const rl_round *how)
{
    if (how->early && is_anybody_connecting(ns))
        return CONNECTING_GRACE_US;
    return how->early && rl_nodes_ok(ns) >= ns->quorum ? 0 : LAST_GRACE_US;
}

static void end_early(rl_nodes *ns)
{
    for (size_t i = 0; i < ns->n; i++) {
        ns->node[i].late = ns->node[i].due;
        ns->node[i].due = false;
    }
}

/*
 * Is there a quorum, or can there be none any more? A round that is not early
 * is decided when only those are left that owe an earlier answer.
 */
static bool is_decided(const rl_nodes *ns, const rl_round *how)
{
    size_t due = 0, owing = 0, ok = rl_nodes_ok(ns);
    for (size_t i = 0; i < ns->n; i++) {
        due += ns->node[i].due;
        owing += ns->node[i].due && ns->node[i].prior;
    }
    if (how->early)
        return ok >= ns->quorum || ok + due < ns->quorum;
    return owing > 0 && owing == due;
}

void rl_nodes_ask(rl_nodes *ns, const rl_round *how)
{
    ns->sent_us = rl_now_us();
    for (size_t i = 0; i < ns->n; i++)
        ns->node[i].ok = false;
    begin(ns, how);
    int64_t moved_us = rl_now_us(), grace_us = RL_NEVER;
    int64_t until_us = RL_NEVER;
    while (is_anybody_due(ns, &until_us)) {
        bool moved = look_around(ns, how);
        int64_t now_us = rl_now_us();
        if (is_decided(ns, how)) {
            grace_us = rl_min(grace_us, now_us + grace_of(ns, how));
            if (now_us >= grace_us) {
                end_early(ns);
                return;
            }
        }
        if (moved)
            moved_us = now_us;
        else if (now_us < moved_us + LOOK_OUT_US)
            sched_yield();
        else
            sleep_until(ns, rl_min(until_us, grace_us));
        until_us = RL_NEVER;
    }
}

/* --- leaving and taking back --------------------------------------------- */

/* The answer is there, and the connection free again. */
static void conclude(rl_engine *e, rl_late *l)
{
    rl_source_give_back(e->source, l->conn);
    settle_prior(e, &l);
}

static bool attempt_late(rl_engine *e, rl_errand *it)
{
    rl_late *l = RL_CONTAINER(it, rl_late, errand);
    if (!try_read_late(e, l->conn, l) || rl_answer_is_noscript(&l->answer))
        return false;
    conclude(e, l);
    return true;
}

static void read_in_order(rl_conn *conn, rl_late *l, int64_t until_us)
{
    if (l->prior)
        read_in_order(conn, l->prior, until_us);
    if (!l->read)
        rl_answer_read(conn, l->script, until_us, &l->answer);
    l->read = true;
}

static void run_late(rl_engine *e, rl_errand *it)
{
    rl_late *l = RL_CONTAINER(it, rl_late, errand);
    if (rl_agent_is_stopping(&e->agent))
        l->until_us = rl_now_us();
    read_in_order(l->conn, l, l->until_us);
    if (rl_answer_is_noscript(&l->answer)) {
        rl_hold_call c;
        rl_step_call(&l->step, &c);
        rl_script_exchange(l->conn, &c.call, l->until_us,
                           &e->stats.script_loads, &l->answer);
    }
    if (l->conn->broken && rl_now_us() >= l->until_us)
        rl_agent_suspect(&e->agent, &l->answer.fault);
    conclude(e, l);
}

/* The call that is on its way, with its connection; NULL: it cannot be left. */
static rl_late *leave(rl_node *x)
{
    rl_late *l = NULL;
    if (x->asked && (x->prior || !rl_conn_is_mid_reply(x->conn)))
        l = malloc(sizeof *l);
    if (!l)
        return NULL;
    l->errand = (rl_errand){.due_us = rl_now_us() + PATIENCE_US,
                            .run = run_late,
                            .attempt = attempt_late};
    l->conn = x->conn;
    l->step = x->step;
    l->script = x->script;
    l->until_us = x->until_us;
    l->prior = x->prior;
    l->depth = 1;
    if (x->prior) {
        /* Who owes several answers has no more time for them than for one. */
        l->depth += x->prior->depth;
        l->errand.due_us = x->prior->errand.due_us;
        l->until_us = rl_min(l->until_us, x->prior->until_us);
    }
    l->read = false;
    rl_fault_set(&l->answer.fault, RLOCK_EIO, ETIMEDOUT, "no answer in time");
    l->answer.outcome = RL_UNKNOWN;
    l->answer.reply.top.type = 0;
    l->answer.sent_us = x->answer.sent_us;
    x->prior = NULL;
    x->late = x->asked = false;
    return l;
}

bool rl_node_hand_over(rl_node *x)
{
    rl_late *l = leave(x);
    if (!l)
        return false;
    x->conn = NULL;
    rl_agent_send(&x->e->agent, &l->errand);
    return true;
}

void rl_nodes_leave_late(rl_nodes *ns, const rl_round *how)
{
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        if (x->late && !rl_node_hand_over(x))
            rl_node_drop(how, x);
    }
}

bool rl_node_chain(rl_node *x)
{
    x->prior = leave(x);
    return x->prior != NULL;
}

static bool may_follow(const rl_late *l)
{
    return !l->read && l->depth < LONGEST_CHAIN && rl_now_us() < l->until_us;
}

static bool is_acquire_of(const rl_errand *it, const void *node)
{
    const rl_late *l = RL_CONTAINER(it, rl_late, errand);
    const rl_node *x = node;
    return l->step.verb == RL_VERB_ACQUIRE && l->step.hold == x->hold &&
           may_follow(l);
}

static bool is_release_before(const rl_errand *it, const void *node)
{
    const rl_late *l = RL_CONTAINER(it, rl_late, errand);
    const rl_hold *before = l->step.hold, *h = ((const rl_node *)node)->hold;
    return l->step.verb != RL_VERB_ACQUIRE && before->scope == h->scope &&
           before->name_len == h->name_len &&
           memcmp(before->text, h->text, h->name_len) == 0 && may_follow(l);
}

bool rl_node_follow(rl_node *x, rl_verb verb)
{
    rl_errand *it = rl_agent_take_back(
        &x->e->agent,
        verb == RL_VERB_ACQUIRE ? is_release_before : is_acquire_of, x);
    if (!it)
        return false;
    x->prior = RL_CONTAINER(it, rl_late, errand);
    x->conn = x->prior->conn;
    return true;
}
