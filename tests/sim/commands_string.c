/* The commands about strings. */
#include "commands.h"

static void add_value(call *c, const entry *e)
{
    if (e)
        add_text(c, &e->value);
    else
        say(c, "$-1");
}

void command_get(call *c)
{
    entry *e;
    if (find(c, KIND_STRING, &e))
        add_value(c, e);
}

/* Only from the beginning, up to a byte that is told. */
void command_getrange(call *c)
{
    entry *e;
    long long first, last;
    if (!word_number(&c->argv[2], &first) || !word_number(&c->argv[3], &last)) {
        not_an_integer(c);
        return;
    }
    if (!find(c, KIND_STRING, &e))
        return;
    size_t len = e && last >= 0 ? e->value.len : 0;
    if ((long long)len > last + 1)
        len = (size_t)last + 1;
    text_bulk(c->out, e ? e->value.at : "", len);
}

typedef struct set_options {
    bool nx, xx, get;
    long long px; /* -1: none */
} set_options;

/* False: an error has been said. */
static bool read_set_options(call *c, set_options *o)
{
    *o = (set_options){.px = -1};
    for (size_t i = 3; i < c->n; i++) {
        const word *w = &c->argv[i];
        if (word_is(w, "NX") && !o->xx) {
            o->nx = true;
        } else if (word_is(w, "XX") && !o->nx) {
            o->xx = true;
        } else if (word_is(w, "GET")) {
            o->get = true;
        } else if (word_is(w, "PX") && o->px < 0 && i + 1 < c->n) {
            if (!word_number(&c->argv[++i], &o->px)) {
                not_an_integer(c);
                return false;
            }
            if (o->px <= 0 || o->px > INT64_MAX - c->s->now_us / 1000) {
                say(c, "-ERR invalid expire time in 'set' command");
                return false;
            }
        } else {
            syntax_error(c);
            return false;
        }
    }
    return true;
}

void command_set(call *c)
{
    set_options o;
    entry *e = NULL;
    if (!read_set_options(c, &o) || (o.get && !find(c, KIND_STRING, &e)))
        return;
    e = store_find(c->s, &c->argv[1]);
    bool done = !(o.nx && e) && !(o.xx && !e);
    if (o.get)
        add_value(c, e);
    else
        say(c, done ? "+OK" : "$-1");
    if (!done)
        return;
    if (!e)
        e = store_add(c->s, &c->argv[1], KIND_STRING);
    entry_empty(e);
    e->kind = KIND_STRING;
    text_add(&e->value, c->argv[2].at, c->argv[2].len);
    e->expires_ms = o.px > 0 ? c->s->now_us / 1000 + o.px : -1;
}

static void add_to_number(call *c, long long sign)
{
    entry *e;
    long long by, old = 0;
    bool good = word_number(&c->argv[2], &by);
    if (good && !find(c, KIND_STRING, &e))
        return;
    if (!good || (e && !text_is_number(&e->value, &old))) {
        not_an_integer(c);
        return;
    }
    if (!e)
        e = store_add(c->s, &c->argv[1], KIND_STRING);
    e->value.len = 0;
    text_print(&e->value, "%lld", old + sign * by);
    text_number(c->out, old + sign * by);
}

void command_incrby(call *c)
{
    add_to_number(c, 1);
}

void command_decrby(call *c)
{
    add_to_number(c, -1);
}
