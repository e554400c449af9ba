/*
 * A server: commands are cut out of the bytes that came, and executed one after
 * the other, at once; a server that is paused does so when it goes on. Scripts
 * are known by their SHA1 until they are forgotten.
 */
#include "script.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "core/call.h"
#include "judge.h"

int64_t server_now(const server *s)
{
    return clock_at(&s->clock, s->w->now_us);
}

/* --- channels ------------------------------------------------------------- */

static bool listens(const conn *c, const word *channel)
{
    for (size_t i = 0; i < c->channels; i++) {
        word w = {c->channel[i].at, c->channel[i].len};
        if (word_equal(&w, channel))
            return true;
    }
    return false;
}

static void add_message(text *to, const char *kind, const word *channel)
{
    text_print(to, "*3\r\n$%zu\r\n%s\r\n", strlen(kind), kind);
    text_bulk(to, channel->at, channel->len);
}

static int publish(void *arg, const word *channel, const word *message)
{
    server *s = arg;
    static text said;
    int heard = 0;
    for (rl_link *k = rl_list_first(&s->w->conns); k;
         k = rl_list_next(&s->w->conns, k)) {
        conn *c = RL_CONTAINER(k, conn, all);
        if (c->s != s || !c->server_open || c->server_run != s->run ||
            !listens(c, channel))
            continue;
        heard++;
        s->w->figures.rings++;
        trace(s->w, "server %u rings %.*s on connection %u%s", s->index,
              (int)message->len, message->at, c->number,
              s->is_deaf ? ", which is lost" : "");
        said.len = 0;
        add_message(&said, "message", channel);
        text_bulk(&said, message->at, message->len);
        if (!s->is_deaf)
            conn_reply(c, &said);
    }
    return heard;
}

static void subscribe(conn *c, const word *channel, text *out)
{
    if (!listens(c, channel) && c->channels < CHANNELS_MAX)
        text_add(&c->channel[c->channels++], channel->at, channel->len);
    add_message(out, "subscribe", channel);
    text_number(out, (long long)c->channels);
}

static void unsubscribe(conn *c, const word *channel, text *out)
{
    for (size_t i = 0; i < c->channels; i++) {
        word w = {c->channel[i].at, c->channel[i].len};
        if (!word_equal(&w, channel))
            continue;
        text_free(&c->channel[i]);
        c->channel[i] = c->channel[--c->channels];
        c->channel[c->channels] = (text){0};
        break;
    }
    add_message(out, "unsubscribe", channel);
    text_number(out, (long long)c->channels);
}

/* --- commands ------------------------------------------------------------- */

static void call_script(conn *c, const word *argv, size_t n, text *out)
{
    server *s = c->s;
    long long keys = -1;
    bool whole = word_is(&argv[0], "EVAL");
    int script = whole ? script_by_body(&argv[1]) : script_by_sha1(&argv[1]);
    if (n < 3 || !word_number(&argv[2], &keys) || keys < 0 ||
        (size_t)keys > n - 3 || script < 0)
        die("a call that the library does not make");
    if (!whole && !(s->scripts >> script & 1)) {
        text_print(out, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        trace(s->w, "server %u lacks %s", s->index, rl_scripts[script].name);
        return;
    }
    if (s->refusal) {
        s->has_refused = true;
        text_print(out, "-%s\r\n", s->refusal);
        return;
    }
    s->scripts |= 1u << script;
    s->calls++;
    size_t from = out->len;
    s->store.now_us = server_now(s);
    script_call(&s->store, script, argv + 3, n - 3, (size_t)keys, out);
    judge_call(c, script, (size_t)keys, argv + 3, n - 3, out->at + from,
               out->len - from);
    if (s->garbles)
        server_say_oddity(s, out, from);
}

static void execute(conn *c, const word *argv, size_t n, text *out)
{
    if (word_is(&argv[0], "EVALSHA") || word_is(&argv[0], "EVAL")) {
        call_script(c, argv, n, out);
    } else if (word_is(&argv[0], "SUBSCRIBE")) {
        subscribe(c, &argv[1], out);
    } else if (word_is(&argv[0], "UNSUBSCRIBE")) {
        unsubscribe(c, &argv[1], out);
    } else if (word_is(&argv[0], "PING") && c->channels > 0) {
        text_print(out, "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    } else {
        c->s->store.now_us = server_now(c->s);
        store_command(&c->s->store, argv, n, out);
    }
}

/* "$3\r\njob\r\n"; false: there is more to come. */
static bool take_number(const char **at, const char *end, char mark, size_t *n)
{
    const char *p = *at;
    if (p == end || *p != mark) {
        if (p != end)
            die("the library says what is no command");
        return false;
    }
    for (*n = 0, p++; p != end && *p != '\r'; p++)
        *n = *n * 10 + (size_t)(*p - '0');
    if (end - p < 2)
        return false;
    *at = p + 2;
    return true;
}

/* How long the first command is; 0: it is not whole yet. */
static size_t parse(const text *from, word *argv, size_t *n)
{
    const char *at = from->at, *end = at + from->len;
    if (!take_number(&at, end, '*', n))
        return 0;
    if (*n > WORDS_MAX)
        die("a command of %zu words", *n);
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
    while (!c->s->is_paused && c->input.len > 0 &&
           (len = parse(&c->input, argv, &n)) > 0) {
        out.len = 0;
        execute(c, argv, n, &out);
        text_cut(&c->input, len);
        for (size_t i = 0; i < out.len; i++)
            history_add(c->w, (unsigned char)out.at[i]);
        conn_reply(c, &out);
    }
}

void server_hang_up(conn *c)
{
    c->server_open = false;
    for (size_t i = 0; i < c->channels; i++)
        text_free(&c->channel[i]);
    c->channels = 0;
}

/* --- faults --------------------------------------------------------------- */

static void resume(timer *a)
{
    server *s = RL_CONTAINER(a, server, resume);
    rl_link *next;
    s->is_paused = false;
    trace(s->w, "server %u goes on", s->index);
    for (rl_link *k = rl_list_first(&s->w->conns); k; k = next) {
        conn *c = RL_CONTAINER(k, conn, all);
        next = rl_list_next(&s->w->conns, k);
        if (c->s == s && c->server_run == s->run && c->input.len > 0)
            server_take(c);
    }
}

static void hear(timer *a)
{
    server *s = RL_CONTAINER(a, server, hear);
    s->is_deaf = false;
    trace(s->w, "server %u delivers messages again", s->index);
}

static void remember(timer *a)
{
    server *s = RL_CONTAINER(a, server, remember);
    s->store.lacks_memory = false;
    trace(s->w, "server %u has memory again", s->index);
}

static void obey(timer *a)
{
    server *s = RL_CONTAINER(a, server, obey);
    s->refusal = NULL;
    trace(s->w, "server %u does as it is told again", s->index);
}

static void save(timer *a)
{
    server *s = RL_CONTAINER(a, server, save);
    store_copy(&s->saved, &s->store);
    if (!s->w->is_quiet)
        timer_set(s->w, a,
                  s->w->now_us + 1 + chance_skewed(&s->w->chance, 10 * S));
}

void server_pause(server *s, int64_t us)
{
    trace(s->w, "server %u stands still for %lld us", s->index, (long long)us);
    s->is_paused = true;
    timer_set(s->w, &s->resume, s->w->now_us + us);
}

void server_is_misused(server *s)
{
    s->harm++;
    s->misuse++;
}

static void name_run(server *s)
{
    snprintf(s->store.run_id, sizeof s->store.run_id, "%020u%020u", s->index,
             s->run);
    s->store.started_us = server_now(s);
}

/* Who was connected learns of it, sooner or later. */
void server_restart(server *s, fault how)
{
    world *w = s->w;
    trace(w, "server %u: %s", s->index, fault_names[how]);
    for (rl_link *k = rl_list_first(&w->conns); k;
         k = rl_list_next(&w->conns, k)) {
        conn *c = RL_CONTAINER(k, conn, all);
        if (c->s == s && c->server_open && c->server_run == s->run)
            conn_cut(c);
    }
    if (how == FAULT_WIPE) {
        store_clear(&s->store);
        s->lost_us = w->now_us;
    } else if (how == FAULT_ROLLBACK) {
        store_copy(&s->store, &s->saved);
    }
    if (how != FAULT_RESTART) {
        s->harm++;
        s->data_lost = true;
    }
    s->run++;
    s->scripts = 0;
    s->store.lacks_memory = false;
    name_run(s);
}

void server_open(world *w, server *s, unsigned index)
{
    *s = (server){.w = w, .index = index};
    s->store.publish = publish;
    s->store.arg = s;
    /* The nodes of a Red lock have clocks that somebody cares for. */
    s->clock.base_us =
        1600000000 * S +
        chance_below(&w->chance, w->set.red ? 20 * MS : 1000 * S);
    s->clock.since_us = w->now_us;
    s->clock.drift_ppm =
        chance_between(&w->chance, -w->set.drift_ppm, w->set.drift_ppm);
    s->run = 1;
    name_run(s);
    s->store.started_us -= 1000000 * S; /* it has been up for long */
    timer_init(w, &s->resume, resume);
    timer_init(w, &s->hear, hear);
    timer_init(w, &s->remember, remember);
    timer_init(w, &s->obey, obey);
    timer_init(w, &s->save, save);
    if (w->set.fault_ppm[FAULT_ROLLBACK] > 0)
        timer_set(w, &s->save, w->now_us + 1);
}

void server_close(server *s)
{
    timer_fini(s->w, &s->resume);
    timer_fini(s->w, &s->hear);
    timer_fini(s->w, &s->remember);
    timer_fini(s->w, &s->obey);
    timer_fini(s->w, &s->save);
    store_clear(&s->store);
    store_clear(&s->saved);
}
