/*
 * How the clients of a process are made: where its servers are, what they want
 * to hear, and with which options. All of a world have the same ones.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "outcome.h"

/* --- events --------------------------------------------------------------- */

static void on_event(const rlock_event *e, void *arg)
{
    program *g = arg;
    int64_t began = w.now;
    const rlock_event *outer = running->tells;
    running->tells = e;
    trace("event %d of %s, token %llu, count %d: %s", (int)e->type, e->name,
          (unsigned long long)e->token, e->count, e->message);
    outcome->losses += e->type == RLOCK_EVENT_LOST;
    if (e->kind == RLOCK_KIND_PERMIT)
        semaphore_told(e);
    else
        judge_told(g, e);
    owner_frees_handle();
    if (cfg.callback_us > 0 && chance_below(&w.dice, 8) == 0)
        sleep_for(chance_skewed(&w.dice, cfg.callback_us * US));
    running->told_ns += w.now - began;
    running->tells = outer;
}

bool client_is_heard(int k)
{
    return cfg.unheard == 0 || (cfg.unheard == 1 && k % 2 == 0);
}

/* --- where, and as whom --------------------------------------------------- */

/* A letter of the password may be escaped. */
static void put_login(char *at, size_t room)
{
    bool is_named = cfg.login == LOGIN_USER_TOO;
    const char *password = login_password();
    *at = '\0';
    if (cfg.login == LOGIN_PASSWORD || is_named)
        snprintf(at, room, "%s:%s%s@", is_named ? LOGIN_USER : "",
                 cfg.spelled ? "%73" : "s", password + 1);
}

/* host:port, and others if they belong to one. */
static void put_hosts(char *at, size_t room, int k)
{
    bool is_numeric = chance_below(&w.dice, 2);
    if (cfg.sentinel)
        snprintf(at, room, "127.0.0.1:%d,127.0.0.1:%d/mymaster",
                 servers[servers_n - 1].port, servers[servers_n - 2].port);
    else if (cfg.cluster && cfg.spelled)
        snprintf(at, room, "127.0.0.1:%d,s.example:%d", servers[k].port,
                 servers[k + 1].port);
    else
        snprintf(at, room, "%s:%d", is_numeric ? "127.0.0.1" : "s.example",
                 servers[k].port);
}

static void put_uri(char *uri, size_t room, int k)
{
    const char *kind = cfg.sentinel  ? "-sentinel"
                       : cfg.cluster ? "-cluster"
                                     : "";
    char who[40], hosts[80], db[8] = "";
    put_login(who, sizeof who);
    put_hosts(hosts, sizeof hosts, k);
    if (cfg.db > 0)
        snprintf(db, sizeof db, "%s%d", cfg.local ? "?db=" : "/", (int)cfg.db);
    if (cfg.local)
        snprintf(uri, room, "unix://%s" LOCAL_PATH "%s", who, servers[k].port,
                 db);
    else
        snprintf(uri, room, "redis%s%s://%s%s%s", cfg.tls ? "s" : "", kind, who,
                 hosts, db);
}

/* It may be slow, know of none, or of one that was changed meanwhile. */
static int tell_login(rlock_credentials *out, void *arg)
{
    if (arg != &cfg)
        finding("a login is asked for with another argument");
    if (running->mutexes > 0)
        finding("judge 10: a login is asked for under %d mutexes",
                running->mutexes);
    if (!w.is_quiet && chance_below(&w.dice, 10) == 0)
        sleep_for(chance_skewed(&w.dice, 200 * MS));
    if (!w.is_quiet && chance_below(&w.dice, 20) == 0)
        return 0;
    out->user = chance_below(&w.dice, 2) ? LOGIN_USER : NULL;
    out->password = login_password();
    out->valid_ms = cfg.valid_ms;
    return 1;
}

static void set_login(rlock_options *o)
{
    if (cfg.login == LOGIN_ASKED) {
        o->credentials = tell_login;
        o->credentials_arg = &cfg;
    }
    if (cfg.login != LOGIN_NONE && cfg.sentinel)
        o->sentinel_password = login_of_sentinels();
    if (cfg.login == LOGIN_USER_TOO && cfg.sentinel)
        o->sentinel_user = LOGIN_USER;
}

/* --- connections of the program's own ------------------------------------- */

/* False: then it is of no use. */
static bool say(redisContext *c, const char *command)
{
    redisReply *r = redisCommand(c, command);
    bool is_fine = r && r->type == REDIS_REPLY_STATUS;
    freeReplyObject(r);
    return is_fine;
}

static bool prepare(redisContext *c)
{
    char auth[60], select[20];
    snprintf(auth, sizeof auth, "AUTH %s %s", LOGIN_USER, login_password());
    snprintf(select, sizeof select, "SELECT %d", (int)cfg.db);
    return (cfg.login == LOGIN_NONE || say(c, auth)) &&
           (cfg.db == 0 || say(c, select));
}

/* As a program does that has a way of its own to its server. It fails within
   connect_timeout_ms, but for the name. */
static redisContext *make_context(void *arg)
{
    const server *s = arg;
    struct timeval most = {cfg.connect_ms / 1000, cfg.connect_ms % 1000 * 1000};
    if (running->mutexes > 0)
        finding("judge 10: a connection is asked for under %d mutexes",
                running->mutexes);
    running->is_spared = true;
    redisContext *c = redisConnectWithTimeout("127.0.0.1", s->port, most);
    if (c->err || redisSetTimeout(c, most) != REDIS_OK || !prepare(c)) {
        trace("no context: %s", c->errstr);
        redisFree(c);
        c = NULL;
    }
    running->is_spared = false;
    return c;
}

/* --- options -------------------------------------------------------------- */

static int set_up_nothing(struct ssl_ctx_st *ctx, void *arg)
{
    return ctx != NULL && arg == &cfg;
}

/* What would be so without that. */
static void spell_out(rlock_options *o, const program *g)
{
    o->host_id = g->p.host;
    o->metrics_label = g->p.host;
    o->metrics = true;
    o->metrics_names = 2;
    o->warn_hold_ms = 500;
    o->warn_wait_ms = 300;
    o->warn_renew_late = true;
    o->replica_wait_ms = cfg.min_replicas > 0 ? 1000 : 0;
    if (!cfg.tls)
        return;
    o->tls_server_name = "s.example";
    o->tls_cert_file = secure_authority();
    o->tls_key_file = secure_authority();
    o->tls_setup = set_up_nothing;
    o->tls_setup_arg = &cfg;
    o->tls_verify = (rlock_tls_verify)chance_below(&w.dice, 3);
}

static rlock_options options_of(program *g, char *uri, size_t room, int k)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    put_uri(uri, room, k);
    if (cfg.contexts) {
        o.connect = make_context;
        o.connect_arg = &servers[k];
    } else {
        o.uri = uri;
    }
    o.tls_ca_file = cfg.tls ? secure_authority() : NULL;
    o.connect_timeout_ms = cfg.connect_ms;
    o.command_timeout_ms = cfg.timeout_ms;
    o.watchdog_lease_ms = cfg.watchdog_ms;
    o.on_event = client_is_heard(k) ? on_event : NULL;
    o.event_arg = g;
    o.lazy = !cfg.eager;
    o.min_replicas = (unsigned)cfg.min_replicas;
    o.turn_ms = cfg.turn_ms;
    o.grants = cfg.grants == 1 || (cfg.grants == 2 && (g - programs) % 2);
    o.dispatch_events = cfg.dispatch_events && cfg.loops > 0;
    o.max_hold_ms = cfg.max_hold_ms;
    o.redisson_channel = cfg.redisson;
    o.pool_size = (unsigned)cfg.pool;
    o.no_deadlock_check = cfg.blind;
    if (!cfg.contexts)
        set_login(&o);
    if (cfg.spelled)
        spell_out(&o, g);
    return o;
}

/* What may pass: a server is not there yet, or wants another password. */
static bool may_pass(rlock_status s)
{
    return s == RLOCK_EIO || (cfg.early && s == RLOCK_ESERVER);
}

/* The more memory it takes, the less often there is enough of it; after some
   tries there is. */
void client_make(program *g, int k)
{
    char uri[160];
    rlock_options o = options_of(g, uri, sizeof uri, k);
    rlock_status s;
    int64_t since = w.now;
    for (int tries = 0; (s = rlock_client_new(&o, &g->client[k])); tries++) {
        bool lacks = judge_excuses(g, s, since);
        if ((!may_pass(s) && !lacks) || tries == 100)
            finding("no client: %s (%s)", rlock_status_str(s),
                    rlock_last_error()->message);
        sleep_for(lacks ? MS : 100 * MS);
        w.is_scarce = w.is_scarce && tries < 10;
        since = w.now;
    }
    w.is_scarce = cfg.scarce_ppm > 0;
}
