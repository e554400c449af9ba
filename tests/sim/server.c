/*
 * A server: commands are cut out of the bytes that came, and executed at once,
 * one after the other; a server that stands still does so when it goes on. The
 * store and the scripts are tests/sim's, which are compared with a real server.
 * What every server answers is here; the rest is its kind's (world.h).
 */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/sha1.h"
#include "judge.h"
#include "script.h"
#include "wire/script.h"
#include "world.h"

server servers[SERVERS_MAX];
int servers_n;

int64_t server_now_us(const server *s)
{
    int64_t past = w.now - BEGIN;
    return (s->base + past + past / 1000000 * s->drift_ppm) / US;
}

void server_set_clock(server *s)
{
    s->store.now_us = server_now_us(s);
}

/* As NTP may: what is to expire does so that much later. */
void server_step_clock(server *s, int64_t back_ns)
{
    s->base -= back_ns;
    s->store.started_us -= back_ns / US;
}

size_t server_keys(server *s)
{
    server_set_clock(s);
    return store_count(&s->store);
}

/* --- channels ------------------------------------------------------------- */

static int place_of(const conn *c, bool is_sharded, const word *channel)
{
    for (size_t i = 0; i < c->channels; i++) {
        word name = {c->channel[i].at, c->channel[i].len};
        if (c->is_sharded[i] == is_sharded && word_equal(&name, channel))
            return (int)i;
    }
    return -1;
}

static void add_message(text *to, const char *kind, const word *channel)
{
    text_print(to, "*3\r\n$%zu\r\n%s\r\n", strlen(kind), kind);
    text_bulk(to, channel->at, channel->len);
}

static bool is_of_shards(const char *kind)
{
    return strcmp(kind, "ssubscribe") == 0 || strcmp(kind, "sunsubscribe") == 0;
}

static int publish(void *arg, bool is_sharded, const word *channel,
                   const word *message)
{
    server *s = arg;
    static text said;
    int heard = 0;
    bool is_ring = s->store.in_script;
    for (conn *c = conns; c; c = c->next) {
        if ((c->s != s && c->s->master != s) || c->server_closed ||
            c->run != c->s->run || place_of(c, is_sharded, channel) < 0)
            continue;
        heard++;
        said.len = 0;
        add_message(&said, is_sharded ? "smessage" : "message", channel);
        text_bulk(&said, message->at, message->len);
        conn_reply(c, &said);
    }
    if (is_ring && heard > 0)
        judge_rang(s, channel, message);
    return heard;
}

void server_subscribe(conn *c, const char *kind, const word *channel, text *out)
{
    bool is_sharded = is_of_shards(kind);
    if (place_of(c, is_sharded, channel) < 0) {
        if (c->channels == CHANNELS_MAX)
            finding("subscribes to too many channels");
        c->is_sharded[c->channels] = is_sharded;
        text *to = &c->channel[c->channels++];
        *to = (text){0};
        text_add(to, channel->at, channel->len);
    }
    add_message(out, kind, channel);
    text_number(out, (long long)c->channels);
}

void server_unsubscribe(conn *c, const char *kind, const word *channel,
                        text *out)
{
    int i = place_of(c, is_of_shards(kind), channel);
    add_message(out, kind, channel);
    if (i >= 0) {
        text_free(&c->channel[i]);
        c->channel[i] = c->channel[--c->channels];
        c->is_sharded[i] = c->is_sharded[c->channels];
    }
    text_number(out, (long long)c->channels);
}

void server_unsubscribe_all(conn *c, const char *kind, text *out)
{
    size_t i = 0;
    if (c->channels == 0)
        text_print(out, "*3\r\n$%zu\r\n%s\r\n$-1\r\n:0\r\n", strlen(kind),
                   kind);
    while (i < c->channels) {
        word name = {c->channel[i].at, c->channel[i].len};
        if (c->is_sharded[i] == is_of_shards(kind))
            server_unsubscribe(c, kind, &name, out);
        else
            i++;
    }
}

/* --- scripts -------------------------------------------------------------- */

static void trace_call(const conn *c, const char *name, const word *argv,
                       size_t n, const text *out)
{
    char args[1200] = "";
    size_t k = 0;
    for (size_t i = 3; i < n && k < sizeof args - 60; i++)
        k += (size_t)snprintf(args + k, sizeof args - k, " %.*s",
                              argv[i].len > 50 ? 50 : (int)argv[i].len,
                              argv[i].at);
    trace("  server %d, connection %u: %s%s -> %.*s", c->s->index, c->number,
          name, args, (int)out->len, out->at);
}

static void run_script(conn *c, int script, const word *argv, size_t n,
                       size_t keys, text *out)
{
    server *s = c->s;
    w.scripts++;
    if (script >= 0) {
        call of = {s, rl_scripts[script].name, argv + 3, n - 3, keys};
        s->scripts |= UINT64_C(1) << script;
        judge_executing(&of);
        script_call(&s->store, script, argv + 3, n - 3, keys, out);
        judge_executed(&of, out);
    } else { /* the program's own, behind a guard */
        script_run(&s->store, &argv[1], argv + 3, n - 3, keys, out);
    }
    if (w.traces)
        trace_call(c, script < 0 ? "a script" : rl_scripts[script].name, argv,
                   n, out);
}

/* The program's scripts, behind a guard, which a server gets to know. */
#define OWN_MAX 32

static struct {
    const server *s;
    unsigned run;
    char sum[RL_SHA1_LEN + 1];
    text body;
} own[OWN_MAX];
static int own_n;

static void remember(const server *s, const word *body)
{
    rl_sha1 sum;
    if (own_n == OWN_MAX)
        return;
    rl_sha1_begin(&sum);
    rl_sha1_add(&sum, body->at, body->len);
    rl_sha1_end(&sum, own[own_n].sum);
    own[own_n].s = s;
    own[own_n].run = s->run;
    text_add(&own[own_n++].body, body->at, body->len);
}

static const text *remembered(const server *s, const word *sum)
{
    for (int i = 0; i < own_n; i++)
        if (own[i].s == s && own[i].run == s->run && word_is(sum, own[i].sum))
            return &own[i].body;
    return NULL;
}

static void refuse_unknown(text *out)
{
    text_print(out, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
}

/* The program's own, which the store runs by its text. */
static void call_own(conn *c, const word *argv, size_t n, size_t keys,
                     text *out)
{
    word called[WORDS_MAX];
    memcpy(called, argv, n * sizeof *called);
    if (word_is(&argv[0], "EVAL")) {
        remember(c->s, &argv[1]);
    } else {
        const text *body = remembered(c->s, &argv[1]);
        if (!body) {
            refuse_unknown(out);
            return;
        }
        called[1] = (word){body->at, body->len};
    }
    if (!c->s->kind->admits || c->s->kind->admits(c, argv + 3, keys, out))
        run_script(c, -1, called, n, keys, out);
}

static void call_script(conn *c, const word *argv, size_t n, text *out)
{
    server *s = c->s;
    long long keys = -1;
    bool whole = word_is(&argv[0], "EVAL");
    login_check(c);
    int script = whole ? script_by_body(&argv[1]) : script_by_sha1(&argv[1]);
    if (n < 3 || !word_number(&argv[2], &keys) || keys < 0 ||
        (size_t)keys > n - 3)
        finding("a call of a script that the library does not make");
    if (script < 0)
        call_own(c, argv, n, (size_t)keys, out);
    else if (!whole && !(s->scripts >> script & 1))
        refuse_unknown(out);
    else if (!s->kind->admits ||
             s->kind->admits(c, argv + 3, (size_t)keys, out))
        run_script(c, script, argv, n, (size_t)keys, out);
}

/* --- commands ------------------------------------------------------------- */

static void answer_ping(conn *c, const word *argv, size_t n, text *out)
{
    if (c->channels > 0)
        text_print(out, "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    else if (n == 2)
        text_bulk(out, argv[1].at, argv[1].len);
    else
        text_print(out, "+PONG\r\n");
}

/* Is it of this type, and does its name fit? */
static bool is_scanned(const entry *e, const char *pattern, const char *type)
{
    static const char *const types[] = {
        [KIND_STRING] = "string", [KIND_HASH] = "hash", [KIND_ZSET] = "zset"};
    char name[1024];
    if (e->key.len >= sizeof name)
        finding("a key of %zu bytes", e->key.len);
    memcpy(name, e->key.at, e->key.len);
    name[e->key.len] = '\0';
    return fnmatch(pattern, name, 0) == 0 &&
           (!*type || strcmp(types[e->kind], type) == 0);
}

/* All that has not expired, at once. */
static void answer_scan(conn *c, const word *argv, size_t n, text *out)
{
    static text names;
    store *s = &c->s->store;
    char pattern[64] = "*", type[64] = "";
    size_t found = 0;
    for (size_t i = 2; i + 1 < n; i += 2) {
        char *to = word_is(&argv[i], "MATCH")  ? pattern
                   : word_is(&argv[i], "TYPE") ? type
                                               : NULL;
        if ((!to && !word_is(&argv[i], "COUNT")) ||
            argv[i + 1].len >= sizeof type)
            finding("a SCAN that the library does not make");
        if (to)
            snprintf(to, sizeof type, "%.*s", (int)argv[i + 1].len,
                     argv[i + 1].at);
    }
    names.len = 0;
    for (size_t i = 0; i < STORE_BUCKETS; i++)
        for (const entry *e = s->bucket[i], *next; e; e = next) {
            word key = {e->key.at, e->key.len};
            next = e->next; /* what has expired goes as it is looked for */
            if (!store_find(s, &key) || !is_scanned(e, pattern, type))
                continue;
            text_bulk(&names, key.at, key.len);
            found++;
        }
    text_print(out, "*2\r\n$1\r\n0\r\n*%zu\r\n", found);
    text_add(out, names.at, names.len);
}

static void ask_store(conn *c, const word *argv, size_t n, text *out)
{
    size_t from = out->len;
    login_check(c);
    store_command(&c->s->store, argv, n, out);
    if (out->len > from + 4 && memcmp(out->at + from, "-ERR unknown", 12) == 0)
        finding("the command %.*s, which the server does not know",
                (int)argv[0].len, argv[0].at);
    if (out->len > from && out->at[from] == '-')
        trace("  server %d: %.*s -> %.*s", c->s->index, (int)argv[0].len,
              argv[0].at, (int)(out->len - from), out->at + from);
}

/* What a server answers while it loads; the others it puts off. */
static bool is_loading(const conn *c, const word *name, text *out)
{
    if (w.now >= c->s->loading_until || word_is(name, "ROLE") ||
        word_is(name, "SUBSCRIBE") || word_is(name, "UNSUBSCRIBE") ||
        word_is(name, "SSUBSCRIBE") || word_is(name, "SUNSUBSCRIBE"))
        return false;
    text_print(out, "-LOADING Redis is loading the dataset in memory\r\n");
    return true;
}

/* To all but who logs in. */
static bool is_busy(const conn *c, text *out)
{
    if (w.now >= c->s->busy_until)
        return false;
    text_print(out, "-BUSY Redis is busy running a script. You can only call "
                    "SCRIPT KILL or SHUTDOWN NOSAVE.\r\n");
    return true;
}

static void execute(conn *c, const word *argv, size_t n, text *out)
{
    server_set_clock(c->s);
    c->s->store.lacks_memory = w.now < c->s->full_until;
    if (login_answers(c, argv, n, out) || is_busy(c, out))
        return;
    if (is_loading(c, &argv[0], out))
        return;
    if (word_is(&argv[0], "EVALSHA") || word_is(&argv[0], "EVAL"))
        call_script(c, argv, n, out);
    else if (word_is(&argv[0], "PING"))
        answer_ping(c, argv, n, out);
    else if (word_is(&argv[0], "SCAN"))
        answer_scan(c, argv, n, out);
    else if (!c->s->kind->execute(c, argv, n, out))
        ask_store(c, argv, n, out);
}

/* "$3\r\n"; false: there is more to come. */
static bool take_number(const char **at, const char *end, char mark, size_t *n)
{
    const char *p = *at;
    if (p == end)
        return false;
    if (*p != mark)
        finding("the library says what is no command");
    for (*n = 0, p++; p != end && *p != '\r'; p++)
        *n = *n * 10 + (size_t)(*p - '0');
    if (end - p < 2)
        return false;
    *at = p + 2;
    return true;
}

/* How many bytes the first command has; 0: it is not complete. */
static size_t parse(const text *from, word *argv, size_t *n)
{
    const char *at = from->at, *end = at + from->len;
    if (!take_number(&at, end, '*', n))
        return 0;
    if (*n == 0 || *n > WORDS_MAX)
        finding("a command of %zu words", *n);
    for (size_t i = 0; i < *n; i++) {
        if (!take_number(&at, end, '$', &argv[i].len) ||
            (size_t)(end - at) < argv[i].len + 2)
            return 0;
        argv[i].at = at;
        at += argv[i].len + 2;
    }
    return (size_t)(at - from->at);
}

void server_take(conn *c)
{
    static text out;
    word argv[WORDS_MAX];
    size_t n, len;
    if (c->sealed.len > 0 && !c->s->is_paused && !c->server_closed)
        conn_unseal(c);
    while (!c->s->is_paused && !c->server_closed && !c->is_waiting &&
           c->input.len > 0 && (len = parse(&c->input, argv, &n)) > 0) {
        uint64_t changes = c->s->store.changes;
        bool was_asking = c->is_asking;
        out.len = 0;
        execute(c, argv, n, &out);
        c->is_asking = c->is_asking && !was_asking;
        if (c->s->store.changes != changes)
            replicas_send(c->s);
        history_add_bytes(out.at, out.len);
        if (w.traces > 1)
            trace("    connection %u: %.*s -> %.*s", c->number,
                  (int)argv[0].len, argv[0].at, (int)out.len, out.at);
        text_cut(&c->input, len);
        conn_reply(c, &out);
    }
    if (c->is_ending && !c->s->is_paused)
        c->server_closed = true;
    if (c->server_closed)
        secure_end(c);
}

/* Of which the library reads what it is. */
void server_put_role(const server *s, text *out)
{
    if (s->master)
        text_print(out,
                   "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:%d\r\n"
                   "$9\r\nconnected\r\n:0\r\n",
                   s->master->port);
    else
        text_print(out, "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
}

/* --- a server by itself --------------------------------------------------- */

static bool execute_single(conn *c, const word *argv, size_t n, text *out)
{
    if (word_is(&argv[0], "SUBSCRIBE")) {
        for (size_t i = 1; i < n; i++)
            server_subscribe(c, "subscribe", &argv[i], out);
    } else if (word_is(&argv[0], "UNSUBSCRIBE")) {
        for (size_t i = 1; i < n; i++)
            server_unsubscribe(c, "unsubscribe", &argv[i], out);
        if (n == 1)
            server_unsubscribe_all(c, "unsubscribe", out);
    } else if (word_is(&argv[0], "ROLE")) {
        server_put_role(c->s, out);
    } else if (word_is(&argv[0], "WAIT")) {
        replicas_wait(c, argv, out);
    } else {
        return false;
    }
    return true;
}

const server_kind server_single = {.name = "single", .execute = execute_single};

/* --- all of them ---------------------------------------------------------- */

void server_name_run(server *s)
{
    snprintf(s->store.run_id, sizeof s->store.run_id, "%020d%020u", s->index,
             s->run);
}

void servers_warm(void)
{
    static text out;
    static store s;
    secure_warm();
    for (int i = 0; i < RL_SCRIPT_COUNT; i++)
        script_call(&s, i, NULL, 0, 0, &out);
    store_clear(&s);
}

bool server_is_up(const server *s)
{
    return w.now >= s->down_until && !s->is_dark;
}

static void cut_all(server *s)
{
    for (conn *c = conns; c; c = c->next)
        if (c->s == s && c->is_open && c->run == s->run)
            conn_cut(c);
}

/* Of one that is dark who has a connection hears nothing, until he asks. */
void server_restart(server *s, int64_t down_ns)
{
    if (!s->is_dark)
        cut_all(s);
    s->is_dark = false;
    s->run++;
    s->scripts = 0;
    server_name_run(s);
    s->store.started_us = server_now_us(s);
    s->down_until = w.now + down_ns;
    replicas_resync(s);
}

void server_kill(server *s, bool is_dark)
{
    trace("server %d dies%s", s->index, is_dark ? ", and nobody says so" : "");
    if (!is_dark)
        cut_all(s);
    s->is_dark = is_dark;
    s->down_until = NEVER;
}

void server_start(server *s)
{
    trace("server %d is back", s->index);
    server_restart(s, 0);
}

server *server_in_office(int home, const char *key)
{
    server *s = &servers[home];
    word name = {key, strlen(key)};
    return s->kind->in_office ? s->kind->in_office(&name) : s;
}

bool server_gets(const server *s, const char *key)
{
    word name = {key, strlen(key)};
    return s->kind->is_coming && s->kind->is_coming(s, &name);
}

/*
 * The nodes of a Red lock have clocks that are near each other; those of a
 * master and its replicas, and of a cluster, are the same, as deadlines are
 * handed on, and tokens go by them.
 */
void server_set_up(server *s, int index, const server_kind *kind)
{
    bool is_alone = kind == &server_single;
    s->kind = kind;
    s->index = index;
    s->port = 7000 + index;
    s->store.publish = publish;
    s->store.arg = s;
    s->base = 1600000000 * S;
    if (is_alone)
        s->base += chance_below(&w.dice, cfg.servers > 1 ? 20 * MS : 1000 * S);
    if (is_alone)
        s->drift_ppm = chance_between(&w.dice, -cfg.drift_ppm, cfg.drift_ppm);
    s->run = 1;
    server_name_run(s);
    s->store.started_us = server_now_us(s) - INT64_C(1000000000000);
}

void servers_begin(void)
{
    if (cfg.cluster) {
        cfg.sentinel = 0;
        cluster_begin();
        return;
    }
    if (cfg.sentinel) {
        sentinel_begin();
        return;
    }
    servers_n = (int)cfg.servers;
    for (int i = 0; i < servers_n; i++)
        server_set_up(&servers[i], i, &server_single);
}
