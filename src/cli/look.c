#include "look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_MS 30000 /* which decides how long a server is waited for */

static bool is_open(rlock_status status)
{
    if (status != RLOCK_OK)
        look_failed();
    return status == RLOCK_OK;
}

bool look_open(cli_server *s, cli_options *o)
{
    return cli_complete_uris(o) && is_open(cli_open(s, o, LEASE_MS));
}

bool look_open_any(cli_server *s, cli_options *o)
{
    return cli_complete_uris(o) && is_open(cli_open_any(s, o, LEASE_MS));
}

int look_failed(void)
{
    const rlock_error *e = rlock_last_error();
    bool other = e->status == RLOCK_EWRONGTYPE;
    cli_say("%s%s", e->message,
            other ? " (semaphores and latches are no locks)" : "");
    return CLI_FAILED;
}

/* --- Who has it ----------------------------------------------------------- */

static rlock_status open_lock(const cli_server *s, const char *name,
                              rlock_layout layout, rlock **out)
{
    rlock_lock_options one = RLOCK_LOCK_OPTIONS_INIT;
    rlock_red_options red = RLOCK_RED_OPTIONS_INIT;
    one.layout = red.layout = layout;
    return s->n == 1 ? rlock_new_ex(s->client[0], name, strlen(name), &one, out)
                     : rlock_red_new_ex(s->client, s->n, name, strlen(name),
                                        &red, out);
}

static rlock_status find_as(const cli_server *s, const char *name,
                            rlock_layout layout, look_lock *x)
{
    rlock_free(x->lk);
    x->layout = layout;
    rlock_status status = open_lock(s, name, layout, &x->lk);
    if (status == RLOCK_OK)
        status = rlock_holder_info(x->lk, &x->holder, sizeof x->holder);
    return status;
}

/* Of a read-write lock: who writes, or else one of those who read. */
static rlock_status find_side(const cli_server *s, const char *name,
                              look_lock *x)
{
    for (x->kind = RLOCK_KIND_WRITE;; x->kind = RLOCK_KIND_READ) {
        bool reads = x->kind == RLOCK_KIND_READ;
        rlock_free(x->lk);
        rlock_status status = rlock_rw_new(
            s->client[0], name, reads ? &x->lk : NULL, reads ? NULL : &x->lk);
        if (status == RLOCK_OK)
            status = rlock_holder_info(x->lk, &x->holder, sizeof x->holder);
        if (status != RLOCK_NOT_HELD || reads)
            return status;
    }
}

/* The unix time at which it may be taken over, as rlock_scan() has it. */
static bool is_timestamp(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    const char *rest = text + digits;
    if (digits < 10 || digits > 13)
        return false;
    return *rest == '\0' ||
           (*rest == '.' && rest[1 + strspn(rest + 1, "0123456789")] == '\0');
}

/* Of a semaphore or a latch, which are no locks, and are not to be broken as one. */
static bool is_count(const char *text)
{
    const char *digits = text + (*text == '-');
    size_t n = strspn(digits, "0123456789");
    return n > 0 && digits[n] == '\0' && !is_timestamp(text);
}

rlock_status look_find(const cli_server *s, const char *name, look_lock *x)
{
    *x = (look_lock){0};
    rlock_status status = find_as(s, name, RLOCK_LAYOUT_HASH, x);
    if (status == RLOCK_EWRONGTYPE)
        status = find_as(s, name, RLOCK_LAYOUT_STRING, x);
    bool string = status == RLOCK_OK && x->layout == RLOCK_LAYOUT_STRING;
    if (string && s->n == 1 && is_timestamp(x->holder.raw))
        status = find_as(s, name, RLOCK_LAYOUT_TIMESTAMP, x);
    else if (string && (x->counts = is_count(x->holder.raw)))
        status = find_as(s, name, RLOCK_LAYOUT_HASH, x);
    else if (status == RLOCK_EWRONGTYPE && s->n == 1)
        status = find_side(s, name, x);
    if (status == RLOCK_OK || status == RLOCK_NOT_HELD)
        return status;
    rlock_free(x->lk);
    x->lk = NULL;
    return status;
}

const char *look_glob_of(look_glob *to, const char *name)
{
    char *at = to->text;
    for (; *name; *at++ = *name++) {
        if (strchr("\\*?[]", *name))
            *at++ = '\\';
    }
    *at = '\0';
    return to->text;
}

static bool note_permits(const rlock_lock_info *k, void *arg)
{
    look_lock *x = arg;
    if (k->kind == RLOCK_KIND_PERMIT && k->n_holders > 0)
        x->holder = *k->holders;
    return k->kind != RLOCK_KIND_PERMIT;
}

/* Of several servers the first at which somebody has some. */
static rlock_status find_permits(const cli_server *s, const char *name,
                                 look_lock *x)
{
    look_glob glob;
    rlock_status status = RLOCK_OK;
    *x = (look_lock){.kind = RLOCK_KIND_PERMIT};
    for (size_t i = 0; i < s->n && !x->holder.raw[0] && status == RLOCK_OK; i++)
        status = rlock_scan(s->client[i], look_glob_of(&glob, name), 0,
                            note_permits, x);
    return status == RLOCK_OK && !x->holder.raw[0] ? RLOCK_NOT_HELD : status;
}

rlock_status look_find_any(const cli_server *s, const char *name, look_lock *x)
{
    rlock_status status = look_find(s, name, x);
    return status == RLOCK_EWRONGTYPE && x->counts ? find_permits(s, name, x)
                                                   : status;
}

/* Of this library's timestamps what is behind the point stays, as sharing.md
   says; of others there is nothing, and nothing is known. */
bool look_is_same_hold(const rlock_holder *a, const rlock_holder *b,
                       rlock_layout layout)
{
    const char *of_a = strchr(a->raw, '.'), *of_b = strchr(b->raw, '.');
    if (strcmp(a->raw, b->raw) == 0)
        return true;
    return layout == RLOCK_LAYOUT_TIMESTAMP && of_a && of_b &&
           strlen(of_a) > 2 && strcmp(of_a, of_b) == 0;
}

/* --- How it is shown ------------------------------------------------------ */

const char *look_kind(rlock_kind kind, rlock_layout layout)
{
    static const char *const names[] = {"hash", "string", "timestamp"};
    if (kind == RLOCK_KIND_PERMIT)
        return "permit";
    if (kind == RLOCK_KIND_READ || kind == RLOCK_KIND_WRITE)
        return kind == RLOCK_KIND_READ ? "read" : "write";
    return (unsigned)layout < 3 ? names[layout] : "?";
}

const char *look_holder(look_text *to, const rlock_holder *h)
{
    char id[sizeof h->host + sizeof h->owner + 60];
    if (h->host[0] == '\0')
        return cli_printable(to->text, sizeof to->text, h->raw);
    snprintf(id, sizeof id, "%s:%lld:%lld%s%s", h->host, (long long)h->pid,
             (long long)h->tid, h->owner[0] ? "/" : "", h->owner);
    return cli_printable(to->text, sizeof to->text, id);
}

const char *look_holders(look_text *to, const rlock_holder *h, int64_t in_all)
{
    if (!h)
        return "-";
    size_t len = strlen(look_holder(to, h));
    if (in_all > 1)
        snprintf(to->text + len, sizeof to->text - len, " +%lld",
                 (long long)in_all - 1);
    return to->text;
}

const char *look_ttl(char *to, size_t size, int64_t ttl_ms)
{
    return ttl_ms == -1 ? "none" : cli_duration(to, size, ttl_ms);
}

static void put_holder(cli_json *j, const rlock_holder *h)
{
    bool parsed = h->host[0] != '\0';
    cli_json_text(j, "id", h->raw);
    cli_json_text(j, "host", parsed ? h->host : NULL);
    cli_json_number(j, "pid", h->pid, parsed);
    cli_json_number(j, "tid", h->tid, parsed);
    cli_json_text(j, "label", parsed && h->owner[0] ? h->owner : NULL);
    cli_json_text(j, "hold", parsed ? h->hold_id : NULL);
}

void look_json_holder(cli_json *j, const char *key, const rlock_holder *h)
{
    if (!h) {
        cli_json_word(j, key, "null");
        return;
    }
    cli_json_open(j, key, '{');
    put_holder(j, h);
    cli_json_shut(j, '}');
}

void look_json_holders(cli_json *j, const rlock_wait *w)
{
    look_json_holder(j, "holder", w->holder);
    cli_json_open(j, "holders", '[');
    for (size_t i = 0; i < w->n_holders; i++) {
        const rlock_holder *h = &w->holders[i];
        cli_json_open(j, NULL, '{');
        put_holder(j, h);
        cli_json_number(j, "count", h->count, true);
        cli_json_number(j, "ttl_ms", h->ttl_ms, h->ttl_ms >= 0);
        cli_json_shut(j, '}');
    }
    cli_json_shut(j, ']');
}

const char *look_wanted(const rlock_wait *w)
{
    static const char *const names[] = {"lock", "read", "write", "permit",
                                        "latch"};
    if (w->kind == RLOCK_KIND_LOCK && w->rank >= 0)
        return "fair";
    return (unsigned)w->kind < 5 ? names[w->kind] : "?";
}

const char *look_waiter(look_text *to, const rlock_wait *w)
{
    return w->waiter ? look_holder(to, w->waiter)
                     : cli_printable(to->text, sizeof to->text, w->client);
}

void look_json_waiter(cli_json *j, const rlock_wait *w)
{
    look_json_holder(j, "waiter", w->waiter);
    cli_json_text(j, "client", w->client);
    cli_json_number(j, "since_us", w->since_us, true);
    cli_json_number(j, "waited_ms", w->waited_ms, true);
    cli_json_number(j, "rank", w->rank, w->rank >= 0);
    cli_json_number(j, "circle", w->circle, w->circle > 0);
}

int look_at_each(const cli_options *o, const cli_server *s,
                 int (*look)(rlock_client *cl, const char *server, void *arg),
                 void *arg)
{
    int status = 0;
    for (size_t i = 0; i < s->n; i++) {
        look_text shown = {""}; /* without memory for it */
        char *uri = s->n > 1 ? cli_public_uri(o, i) : NULL;
        if (uri)
            cli_printable(shown.text, sizeof shown.text, uri);
        free(uri);
        int each = look(s->client[i], s->n > 1 ? shown.text : NULL, arg);
        if (status == 0)
            status = each;
    }
    return status;
}
