#include "nodes.h"

static nodes start(size_t n, bool proxied)
{
    nodes ns = {.n = n};
    for (size_t i = 0; i < n; i++) {
        ns.sv[i] = server_start(NULL);
        server_load_scripts(ns.sv[i]);
        if (proxied)
            ns.px[i] = proxy_start(ns.sv[i]);
    }
    return ns;
}

nodes nodes_start(size_t n)
{
    return start(n, false);
}

nodes nodes_proxied(size_t n)
{
    return start(n, true);
}

void nodes_stop(nodes *ns)
{
    for (size_t i = 0; i < ns->n; i++) {
        if (ns->px[i])
            proxy_stop(ns->px[i]);
        server_stop(ns->sv[i]);
    }
}

nodes nodes_direct(const nodes *ns)
{
    nodes direct = *ns;
    memset(direct.px, 0, sizeof direct.px);
    return direct;
}

nodes nodes_first(const nodes *ns, size_t n)
{
    nodes first = *ns;
    first.n = n;
    return first;
}

/* --- parties ------------------------------------------------------------- */

party party_clients_of(const nodes *ns, const rlock_options *of)
{
    party p = {.n = ns->n};
    for (size_t i = 0; i < ns->n; i++) {
        rlock_options opts = *of;
        if (ns->px[i])
            opts.uri = proxy_uri(ns->px[i]);
        p.ev[i] = events_new();
        events_hook(p.ev[i], &opts);
        p.cl[i] = server_client(ns->sv[i], &opts);
    }
    return p;
}

party party_clients(const nodes *ns, int64_t lease_ms, int64_t timeout_ms)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = lease_ms;
    opts.command_timeout_ms = timeout_ms;
    return party_clients_of(ns, &opts);
}

rlock *party_lock(const party *p, const char *name,
                  const rlock_red_options *red)
{
    rlock *lk = NULL;
    EXPECT_STATUS(rlock_red_new_ex(p->cl, p->n, name, strlen(name), red, &lk),
                  RLOCK_OK);
    return lk;
}

party party_join_with(const nodes *ns, int64_t lease_ms, int64_t timeout_ms,
                      const rlock_red_options *red)
{
    party p = party_clients(ns, lease_ms, timeout_ms);
    p.lk = party_lock(&p, SCENE_LOCK, red);
    return p;
}

party party_join(const nodes *ns, int64_t lease_ms, int64_t timeout_ms)
{
    return party_join_with(ns, lease_ms, timeout_ms, NULL);
}

void party_free_client(party *p, size_t i)
{
    rlock_client_free(p->cl[i]);
    p->cl[i] = NULL;
}

void party_leave(party *p)
{
    rlock_free(p->lk);
    p->lk = NULL;
    for (size_t i = 0; i < p->n; i++) {
        party_free_client(p, i);
        events_free(p->ev[i]);
    }
}

void party_end(party *p, nodes *ns)
{
    party_leave(p);
    nodes_stop(ns);
}

/* --- what is there ------------------------------------------------------- */

bool node_has(server *sv)
{
    return server_int(sv, "EXISTS %s", SCENE_LOCK) == 1;
}

size_t nodes_having(const nodes *ns)
{
    size_t n = 0;
    for (size_t i = 0; i < ns->n; i++)
        n += node_has(ns->sv[i]);
    return n;
}

size_t party_holding(const party *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += p->cl[i] && stats_of(p->cl[i]).held_now == 1;
    return n;
}

const char *node_holder(server *sv)
{
    static char text[4][512];
    static int next;
    char *to = text[next++ % 4];
    const redisReply *r = server_cmd(sv, "HKEYS %s", SCENE_LOCK);
    EXPECT_INT(r->type, REDIS_REPLY_ARRAY);
    snprintf(to, sizeof text[0], "%s", r->elements ? r->element[0]->str : "");
    return to;
}

void nodes_take(const nodes *ns, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        take_by_hand(ns->sv[i], SCENE_LOCK, 0);
}

void nodes_give_back(const nodes *ns, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        EXPECT_INT(server_int(ns->sv[i], "DEL %s", SCENE_LOCK), 1);
}

void nodes_expect_nothing_left(const nodes *ns)
{
    EVENTUALLY(SOON, nodes_having(ns) == 0);
    for (size_t i = 0; i < ns->n; i++)
        expect_nothing_left(ns->sv[i]);
}

void nodes_expect_all_undone(const nodes *ns)
{
    for (size_t i = 0; i < ns->n; i++)
        await_all_undone(ns->sv[i]);
}

/* --- holding ------------------------------------------------------------- */

/* A node has a short time to answer, too short now and then. */
void party_connect(party *p)
{
    bool locked;
    EVENTUALLY(SOON, rlock_is_locked(p->lk, &locked) == RLOCK_OK);
}

static bool all_hold(const party *p)
{
    int64_t until_ms = test_now_ms() + 2000;
    while (party_holding(p) < p->n && test_now_ms() < until_ms)
        test_pause_ms(1);
    return party_holding(p) == p->n;
}

/* On a busy machine a node may be too late to be among those that hold it. */
void party_hold(party *p, int64_t lease_ms)
{
    for (int i = 0; i < 5; i++) {
        party_connect(p);
        EXPECT_STATUS(rlock_acquire(p->lk, SOON, lease_ms), RLOCK_OK);
        if (all_hold(p))
            return;
        EXPECT_STATUS(rlock_unlock(p->lk), RLOCK_OK);
    }
    FAIL("some node is always left out");
}

void party_hold_renewed(party *p)
{
    party_hold(p, 30000);
    EVENTUALLY(SOON, rlock_extend(p->lk, RLOCK_WATCHDOG) == RLOCK_OK);
}

void party_await_renewals(const party *p)
{
    int before[RLOCK_RED_MAX];
    for (size_t i = 0; i < p->n; i++)
        before[i] = events_count(p->ev[i], RLOCK_EVENT_RENEWED);
    for (size_t i = 0; i < p->n; i++)
        events_wait(p->ev[i], RLOCK_EVENT_RENEWED, before[i] + 2, SOON);
}

int party_events(const party *p, rlock_event_type type)
{
    int n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += events_count(p->ev[i], type);
    return n;
}

void expect_one_loss(const party *p)
{
    events_wait(p->ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(party_events(p, RLOCK_EVENT_LOST), 1);
}

void expect_one_owner(const party *owner, const party *other)
{
    int64_t until_ms = test_now_ms() + 1000;
    do {
        rlock_status s = rlock_trylock(other->lk);
        if (s != RLOCK_BUSY && s != RLOCK_EQUORUM)
            FAIL("a second owner: %s", rlock_status_str(s));
    } while (test_now_ms() < until_ms);
    EXPECT(rlock_is_held(owner->lk));
}

void expect_fast(int64_t began_ms)
{
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, FAST_MS);
}

void expect_undisturbed_party(party *p)
{
    party_hold(p, LONG_LEASE);
    EXPECT_STATUS(rlock_unlock(p->lk), RLOCK_OK);
    EXPECT_INT(party_holding(p), 0);
}

void nodes_flush(const nodes *ns, size_t n)
{
    for (size_t i = ns->n - n; i < ns->n; i++)
        EXPECT_STR(server_str(ns->sv[i], "FLUSHALL"), "OK");
}
