/* What the commands' files share: a call, and what each may have to say. */
#ifndef SIM_COMMANDS_H
#define SIM_COMMANDS_H

#include "store.h"

typedef struct call {
    store *s;
    const word *argv;
    size_t n;
    text *out;
} call;

static inline void say(call *c, const char *line)
{
    text_print(c->out, "%s\r\n", line);
}

static inline void syntax_error(call *c)
{
    say(c, "-ERR syntax error");
}

static inline void not_an_integer(call *c)
{
    say(c, "-ERR value is not an integer or out of range");
}

/* The entry at the key. False: it is of another kind, and that has been said.
 */
static inline bool find(call *c, kind kind, entry **e)
{
    *e = store_find(c->s, &c->argv[1]);
    if (!*e || (*e)->kind == kind)
        return true;
    say(c, "-WRONGTYPE Operation against a key holding the wrong kind of "
           "value");
    return false;
}

static inline bool text_is_number(const text *t, long long *n)
{
    word w = {t->at, t->len};
    return word_number(&w, n);
}

static inline void add_text(call *c, const text *t)
{
    text_bulk(c->out, t->at, t->len);
}

/* Of keys (commands_key.c). */
void command_exists(call *c);
void command_del(call *c);
void command_pexpire(call *c);
void command_pttl(call *c);
void command_type(call *c);
void command_flushall(call *c);

/* Of strings (commands_string.c). */
void command_get(call *c);
void command_getrange(call *c);
void command_set(call *c);
void command_incrby(call *c);
void command_decrby(call *c);

#endif
