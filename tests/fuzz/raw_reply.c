/*
 * What a server may answer to scripts of the program, whose replies are kept
 * whole, while script calls of the library stand between them on the line.
 * Whatever the bytes are, each call ends once, what is kept is a reply that can
 * be walked and freed, and nothing that may have been executed is asked again.
 */
#include <string.h>

#include "fuzz.h"
#include "op/call.h"
#include "wire/ask.h"

#define CALLS  8
#define NOW_US INT64_C(1000000000)

typedef struct call {
    rl_ask ask;
    rl_fault fault;
    rl_raw_reply raw;
    int written;
    bool over;
} call;

static bool is_guarded(unsigned i)
{
    return i % 3 != 1;
}

/* How many texts and arrays there are in it. */
static size_t walk(const redisReply *r)
{
    size_t n = 1;
    MUST(r->type >= REDIS_REPLY_STRING && r->type <= 14);
    if (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_ERROR)
        MUST(r->str[r->len] == '\0');
    for (size_t i = 0; r->type == REDIS_REPLY_ARRAY && i < r->elements; i++)
        n += walk(r->element[i]);
    return n;
}

static void write_call(const rl_ask *a, rl_bytes *to)
{
    RL_CONTAINER(a, call, ask)->written++;
    rl_put_array(to, 1);
    rl_put_text(to, a->whole ? "EVAL" : "EVALSHA");
}

static void note_end(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                     int64_t now_us)
{
    call *c = RL_CONTAINER(a, call, ask);
    (void)now_us;
    MUST(!c->over);
    c->over = true;
    MUST((r != NULL) == (outcome == RL_ANSWERED));
    if (!r || !rl_ask_is_guarded(a))
        return;
    MUST(c->raw.reply && c->raw.reply->type == r->top.type);
    MUST(walk(c->raw.reply) <= RL_RAW_REPLY_ITEMS + 1);
    MUST(!rl_reply_is(r, REDIS_REPLY_ERROR) || r->top.len < sizeof r->text);
}

static void send_all(rl_line *l)
{
    const char *bytes;
    rl_line_sent(l, rl_line_bytes(l, &bytes));
}

static void ask_all(rl_line *l, call *c)
{
    for (unsigned i = 0; i < CALLS; i++) {
        c[i] = (call){.over = false};
        MUST(rl_raw_reply_init(&c[i].raw));
        rl_ask_init(&c[i].ask,
                    is_guarded(i) ? RL_SCRIPT_COUNT : RL_SCRIPT_TOUCH,
                    &c[i].fault);
        c[i].ask.write = write_call;
        c[i].ask.done = note_end;
        c[i].ask.single = i % 2;
        if (is_guarded(i))
            c[i].ask.slot.raw = &c[i].raw;
        rl_ask_push(&c[i].ask, l, NOW_US);
    }
    send_all(l);
}

static void end_all(rl_line *l, call *c)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, 0, "closed by the server");
    rl_line_fail(l, &f, NOW_US);
    for (unsigned i = 0; i < CALLS; i++) {
        bool unknown = c[i].ask.unknown;
        MUST(c[i].over || c[i].ask.next == RL_ASK_AGAIN);
        MUST(c[i].over || !(is_guarded(i) && unknown));
        MUST(!is_guarded(i) || c[i].written <= 2); /* whole, once */
        if (!c[i].over)
            rl_ask_give_up(&c[i].ask, NOW_US);
        rl_raw_reply_drop(&c[i].raw);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static call c[CALLS];
    feed in = {data, size};
    rl_line l;
    size_t piece = feed_byte(&in) + 1U;
    MUST(rl_line_init(&l));
    ask_all(&l, c);
    while (in.left > 0 && !l.failed) {
        const uint8_t *bytes;
        size_t len = feed_bytes(&in, piece, &bytes);
        rl_line_feed(&l, (const char *)bytes, len, NOW_US);
        send_all(&l);
    }
    end_all(&l, c);
    rl_line_fini(&l);
    return 0;
}
