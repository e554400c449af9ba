/*
 * What is made of a server's bytes: they come, in pieces, as the answers to
 * script calls that wait on one line, and each answer is taken for what every
 * caller could take it for. Whatever they are, each call ends once, in the
 * order of asking, none by what is said to who listens, and nobody is granted
 * what was not.
 */
#include "fuzz.h"
#include "hold/server_run.h"
#include "op/op.h"
#include "op/verb_query.h"

/* More than there are scripts: each is asked for, some twice. */
#define CALLS  (RL_SCRIPT_COUNT + 4)
#define NOW_US INT64_C(1000000000)

typedef struct line_of_calls line_of_calls;

typedef struct call {
    rl_ask ask;
    rl_fault fault;
    line_of_calls *all;
    bool over;
} call;

struct line_of_calls {
    rl_line line;
    rl_server_run id;
    uint64_t answered; /* the end of the latest call that was */
    call call[CALLS];
};

static void must_be_a_string(const rl_reply *r, const rl_item *i)
{
    MUST(i->str >= r->text && i->str + i->len < r->text + sizeof r->text);
    MUST(i->str[i->len] == '\0');
}

static void must_be_whole(const rl_reply *r)
{
    bool array = rl_reply_is(r, REDIS_REPLY_ARRAY);
    MUST(r->count <= RL_REPLY_ITEMS && (array || r->count == 0));
    for (size_t i = 0; i < r->count; i++) {
        const rl_item *item = &r->item[i];
        MUST(!rl_item_is(item, REDIS_REPLY_ARRAY));
        if (item->str)
            must_be_a_string(r, item);
        if (rl_item_is(item, REDIS_REPLY_INTEGER))
            MUST(rl_item_number(item) == item->integer);
    }
    if (r->top.str)
        must_be_a_string(r, &r->top);
}

static void must_be_no_false_grant(const rl_reply *r, int level)
{
    rl_grant g;
    rl_fault f = {.status = RLOCK_OK};
    rl_verdict v = rl_grant_read(r, level, &g, &f);
    MUST(v != RL_ACQUIRED || r->item[0].integer == 1);
    MUST(v != RL_ACQUIRED || level > 1 || (int64_t)g.token > 0);
    MUST(v != RL_BUSY || level == 1);
    MUST(v != RL_GONE || level > 1);
    MUST(v != RL_FAILED || (f.status != RLOCK_OK && *f.text));
}

static void must_be_a_holder(const rl_reply *r)
{
    rlock_holder h = {0};
    rl_fault f = {0};
    rlock_status s = rl_read_holder(r, &h, &f);
    MUST(s == RLOCK_OK || s == RLOCK_NOT_HELD || f.status == s);
    MUST(memchr(h.raw, '\0', sizeof h.raw));
    MUST(strlen(h.host) < sizeof h.host);
    size_t len = strlen(h.hold_id);
    MUST(len == 0 || len == sizeof h.hold_id - 1);
    MUST(len == 0 || strstr(h.raw, h.hold_id));
    MUST(s == RLOCK_OK || !*h.raw);
}

static void note_identity(rl_server_run *id, const rl_reply *r)
{
    bool told = r->count == 2 && rl_server_run_note(id, r->item, NOW_US);
    MUST(strlen(rl_server_run_read(id).id) < RL_RUN_ID_MAX);
    MUST(!told || rl_server_run_read(id).started_us <= NOW_US);
}

static void must_make_sense(line_of_calls *l, const rl_reply *r)
{
    must_be_whole(r);
    if (!rl_reply_is(r, REDIS_REPLY_ARRAY))
        return;
    must_be_no_false_grant(r, 1);
    must_be_no_false_grant(r, 2);
    must_be_a_holder(r);
    note_identity(&l->id, r);
}

static void write_call(const rl_ask *a, rl_bytes *to)
{
    rl_put_call(to, a->script, a->whole, 0, 0);
}

/* The end of a call. */
static void note_end(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                     int64_t now_us)
{
    call *c = RL_CONTAINER(a, call, ask);
    (void)now_us;
    MUST(!c->over);
    c->over = true;
    MUST((r != NULL) == (outcome == RL_ANSWERED));
    MUST(outcome != RL_UNKNOWN || a->unknown);
    if (r) {
        MUST(rl_reply_is_of(r, rl_scripts[a->script].replies));
        MUST(!rl_reply_is_message(r) && !rl_reply_is_subscription(r));
        MUST(a->slot.end > c->all->answered);
        MUST(a->slot.end <= c->all->line.sent);
        c->all->answered = a->slot.end;
        must_make_sense(c->all, r);
    } else {
        MUST(c->fault.status != RLOCK_OK && *c->fault.text);
    }
}

static void send_all(line_of_calls *l)
{
    const char *bytes;
    rl_line_sent(&l->line, rl_line_bytes(&l->line, &bytes));
}

static void ask_all(line_of_calls *l, unsigned first)
{
    for (unsigned i = 0; i < CALLS; i++) {
        call *c = &l->call[i];
        *c = (call){.all = l};
        rl_ask_init(&c->ask, (first + i) % RL_SCRIPT_COUNT, &c->fault);
        c->ask.write = write_call;
        c->ask.done = note_end;
        c->ask.once = i % 3 == 0;
        rl_ask_push(&c->ask, &l->line, NOW_US);
    }
    send_all(l);
}

/* In pieces: the reader stops within a reply, and goes on. */
static void feed_all(line_of_calls *l, feed in, size_t piece)
{
    while (in.left > 0) {
        const uint8_t *bytes;
        size_t len = feed_bytes(&in, piece, &bytes);
        bool ok = rl_line_feed(&l->line, (const char *)bytes, len, NOW_US);
        MUST(ok == !l->line.failed);
        if (!ok)
            break;
        send_all(l);
    }
}

/* The connection is closed, and there is no other. */
static void end_all(line_of_calls *l)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, 0, "closed by the server");
    rl_line_fail(&l->line, &f, NOW_US);
    MUST(l->line.pending == 0 && !rl_line_first(&l->line));
    for (unsigned i = 0; i < CALLS; i++) {
        call *c = &l->call[i];
        MUST(c->over == (c->ask.next == RL_ASK_FINAL));
        MUST(c->over || c->ask.next == RL_ASK_AGAIN);
        MUST(c->over || !(c->ask.once && c->ask.unknown));
        if (!c->over)
            rl_ask_give_up(&c->ask, NOW_US);
        MUST(c->over);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static line_of_calls l;
    feed in = {data, size};
    memset(&l, 0, sizeof l);
    rl_server_run_init(&l.id);
    MUST(rl_line_init(&l.line));
    ask_all(&l, feed_choice(&in, RL_SCRIPT_COUNT));
    size_t piece = feed_byte(&in) + 1U;
    feed_all(&l, in, piece);
    end_all(&l);
    rl_line_fini(&l.line);
    rl_server_run_fini(&l.id);
    return 0;
}
