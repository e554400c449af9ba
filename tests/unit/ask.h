/* What the tests of a script call share: one call on a line. */
#ifndef UNIT_ASK_H
#define UNIT_ASK_H

#include "wire/ask.h"

#include <errno.h>

#include "test.h"

#define LOADING  "-LOADING Redis is loading the dataset in memory\r\n"
#define NOSCRIPT "-NOSCRIPT No matching script.\r\n"
#define READONLY "-READONLY You can't write against a read only replica.\r\n"
#define NOPERM   "-NOPERM this user has no permissions\r\n"
#define STRANGE  "-ERR something nobody has heard of\r\n"

typedef struct call {
    rl_ask ask;
    rl_line line;
    rl_fault fault;
    atomic_uint_fast64_t loads;
    int written, wholes, done;
    rl_outcome outcome;
    long long number;
    bool lacking;
} call;

static inline void write_call(const rl_ask *a, rl_bytes *to)
{
    call *c = RL_CONTAINER(a, call, ask);
    c->written++;
    c->wholes += a->whole;
    rl_put_call(to, a->script, a->whole, 0, 0);
    to->lacking = to->lacking || c->lacking;
}

static inline void note_end(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                            int64_t now_us)
{
    call *c = RL_CONTAINER(a, call, ask);
    (void)now_us;
    c->done++;
    c->outcome = outcome;
    c->number = r ? r->top.integer : -1;
    EXPECT((r != NULL) == (outcome == RL_ANSWERED));
}

static inline void open_call(call *c)
{
    *c = (call){.done = 0};
    EXPECT(rl_line_init(&c->line));
    rl_ask_init(&c->ask, RL_SCRIPT_HASH_RENEW, &c->fault);
    c->ask.write = write_call;
    c->ask.done = note_end;
    c->ask.loads = &c->loads;
}

static inline void break_line(call *c)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, ETIMEDOUT, "broken");
    rl_line_fail(&c->line, &f, 7);
}

static inline void close_call(call *c)
{
    break_line(c);
    rl_line_fini(&c->line);
}

static inline void send_all(call *c)
{
    const char *bytes;
    rl_line_sent(&c->line, rl_line_bytes(&c->line, &bytes));
}

/* On a line of its own, as after a failure. */
static inline void push(call *c)
{
    if (c->line.failed) {
        rl_line_fini(&c->line);
        EXPECT(rl_line_init(&c->line));
    }
    rl_ask_push(&c->ask, &c->line, 3);
    send_all(c);
}

static inline bool hear(call *c, const char *reply)
{
    return rl_line_feed(&c->line, reply, strlen(reply), 5);
}

static inline void expect_end(const call *c, rl_outcome outcome)
{
    EXPECT_INT(c->done, 1);
    EXPECT_INT(c->outcome, outcome);
    EXPECT_INT(c->ask.next, RL_ASK_FINAL);
}

static inline void expect_again(const call *c)
{
    EXPECT_INT(c->done, 0);
    EXPECT_INT(c->ask.next, RL_ASK_AGAIN);
}

#endif
