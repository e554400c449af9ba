/* The commands about keys of any type. */
#include "commands.h"

void command_exists(call *c)
{
    long long found = 0;
    for (size_t i = 1; i < c->n; i++)
        found += store_find(c->s, &c->argv[i]) != NULL;
    text_number(c->out, found);
}

void command_del(call *c)
{
    long long found = 0;
    for (size_t i = 1; i < c->n; i++) {
        entry *e = store_find(c->s, &c->argv[i]);
        if (e)
            store_remove(c->s, e);
        found += e != NULL;
    }
    text_number(c->out, found);
}

/* What has no end ends later than all. */
static bool later(const entry *e, long long at_ms)
{
    return e->expires_ms >= 0 && at_ms > e->expires_ms;
}

/* key ms [GT] */
void command_pexpire(call *c)
{
    long long ms, now_ms = c->s->now_us / 1000;
    if (!word_number(&c->argv[2], &ms)) {
        not_an_integer(c);
        return;
    }
    if (ms > INT64_MAX - now_ms) {
        say(c, "-ERR invalid expire time in 'pexpire' command");
        return;
    }
    if (c->n > 3 && !word_is(&c->argv[3], "GT")) {
        text_print(c->out, "-ERR Unsupported option %.*s\r\n",
                   (int)c->argv[3].len, c->argv[3].at);
        return;
    }
    entry *e = store_find(c->s, &c->argv[1]);
    bool sets = e && (c->n == 3 || later(e, now_ms + ms));
    text_number(c->out, sets);
    if (sets && ms <= 0)
        store_remove(c->s, e);
    else if (sets)
        e->expires_ms = now_ms + ms;
}

void command_pttl(call *c)
{
    entry *e = store_find(c->s, &c->argv[1]);
    text_number(c->out, e ? entry_left_ms(c->s, e) : -2);
}

void command_type(call *c)
{
    static const char *const names[] = {"+string", "+hash", "+zset"};
    entry *e = store_find(c->s, &c->argv[1]);
    say(c, e ? names[e->kind] : "+none");
}

void command_flushall(call *c)
{
    store_clear(c->s);
    say(c, "+OK");
}
