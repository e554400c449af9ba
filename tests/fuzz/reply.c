/*
 * What is made of a server's bytes: they are read as the answers to scripts,
 * in pieces and up to the end of the connection, and each answer is taken for
 * what every caller could take it for.
 */
#include <hiredis/hiredis.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/identity.h"
#include "fuzz.h"
#include "lock/holder.h"
#include "lock/step.h"
#include "wire/error.h"

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

static void must_be_no_false_grant(const rl_answer *as_read, int level)
{
    rl_grant g;
    rl_answer a = *as_read;
    rl_verdict v = rl_grant_read(&a, level, &g);
    MUST(v != RL_ACQUIRED || (as_read->outcome == RL_ANSWERED &&
                              as_read->reply.item[0].integer == 1));
    MUST(v != RL_ACQUIRED || level > 1 || (int64_t)g.token > 0);
    MUST(v != RL_BUSY || level == 1);
    MUST(v != RL_GONE || level > 1);
    MUST(v != RL_FAILED || (a.fault.status != RLOCK_OK && *a.fault.text));
}

static void must_be_a_holder(const rl_answer *a)
{
    rlock_holder h = {0};
    rl_fault f = {0};
    rlock_status s = rl_read_holder(a, &h, &f);
    MUST(s == RLOCK_OK || s == RLOCK_NOT_HELD || f.status == s);
    MUST(memchr(h.raw, '\0', sizeof h.raw));
    MUST(strlen(h.host) < sizeof h.host);
    size_t len = strlen(h.hold_id);
    MUST(len == 0 || len == sizeof h.hold_id - 1);
    MUST(len == 0 || strstr(h.raw, h.hold_id));
    MUST(s == RLOCK_OK || !*h.raw);
}

static void note_identity(rl_identity *id, const rl_answer *a)
{
    bool told = a->reply.count == 2 && rl_identity_note(id, a->reply.item);
    MUST(strlen(rl_identity_run(id).id) < RL_RUN_ID_MAX);
    MUST(!told || rl_identity_run(id).started_us <= rl_now_us());
}

static void must_make_sense(const rl_answer *a, rl_identity *id)
{
    const rl_reply *r = &a->reply;
    if (a->outcome != RL_ANSWERED) {
        MUST(a->fault.status != RLOCK_OK && *a->fault.text);
        MUST(!rl_answer_is_noscript(a) || rl_reply_is(r, REDIS_REPLY_ERROR));
        return;
    }
    must_be_whole(r);
    if (rl_reply_is(r, REDIS_REPLY_ARRAY)) {
        must_be_no_false_grant(a, 1);
        must_be_no_false_grant(a, 2);
        must_be_a_holder(a);
        note_identity(id, a);
    } else {
        MUST(rl_reply_is(r, REDIS_REPLY_INTEGER));
    }
}

static rl_conn *connect_to(int *peer)
{
    int fd[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    *peer = fd[1];
    return rl_conn_new(redisConnectFd(fd[0]));
}

/* In pieces: the reader stops within a reply, and goes on. */
static void read_all(rl_conn *conn, int peer, feed in)
{
    rl_identity id = {0};
    rl_identity_init(&id);
    rl_script_id script = feed_choice(&in, RL_SCRIPT_COUNT);
    size_t piece = feed_byte(&in) + 1U;
    rl_answer a = {0};
    while (!conn->broken && in.left > 0) {
        const uint8_t *bytes;
        size_t len = feed_bytes(&in, piece, &bytes);
        MUST(send(peer, bytes, len, 0) == (ssize_t)len);
        while (!conn->broken && rl_answer_try_read(conn, script, &a))
            must_make_sense(&a, &id);
    }
    shutdown(peer, SHUT_WR);
    while (!conn->broken) {
        rl_answer_read(conn, script, RL_NEVER, &a);
        MUST(!conn->broken || a.outcome != RL_ANSWERED);
    }
    rl_identity_fini(&id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int peer;
    rl_conn *conn = connect_to(&peer);
    read_all(conn, peer, (feed){data, size});
    rl_reply last;
    if (rl_conn_last_words(conn, &last))
        MUST(*rl_error_reply(&last, NULL)->word || last.top.str);
    rl_conn_free(conn);
    close(peer);
    return 0;
}
