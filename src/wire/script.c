#include "wire/script.h"

#include <string.h>

#include "base/clock.h"
#include "wire/error.h"

void rl_call_init(rl_call *c, rl_script_id script, int keys)
{
    c->script = script;
    c->only_once = false;
    c->argc = 0;
    c->used_numbers = 0;
    rl_call_text(c, "EVALSHA");
    rl_call_bytes(c, rl_scripts[script].sha1, 40);
    c->keys[0] = (char)('0' + keys);
    rl_call_bytes(c, c->keys, 1);
}

void rl_call_bytes(rl_call *c, const void *bytes, size_t len)
{
    c->argv[c->argc] = bytes;
    c->lens[c->argc++] = len;
}

void rl_call_text(rl_call *c, const char *text)
{
    rl_call_bytes(c, text, strlen(text));
}

void rl_call_number(rl_call *c, int64_t number)
{
    char *text = c->numbers[c->used_numbers++];
    char *end = text + sizeof c->numbers[0], *at = end;
    uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (number < 0)
        *--at = '-';
    rl_call_bytes(c, at, (size_t)(end - at));
}

bool rl_script_append(rl_conn *conn, const rl_call *c, bool whole)
{
    if (!whole)
        return rl_conn_append(conn, c->argc, (const char **)c->argv, c->lens);
    const rl_script *script = &rl_scripts[c->script];
    const char *argv[RL_CALL_MAX];
    size_t lens[RL_CALL_MAX];
    memcpy(argv, c->argv, sizeof argv);
    memcpy(lens, c->lens, sizeof lens);
    argv[0] = "EVAL";
    lens[0] = 4;
    argv[1] = script->body;
    lens[1] = script->len;
    return rl_conn_append(conn, c->argc, argv, lens);
}

#define LAYOUT(L)                                                              \
    {                                                                          \
        RL_SCRIPT_##L##_ACQUIRE, RL_SCRIPT_##L##_RELEASE,                      \
            RL_SCRIPT_##L##_RENEW, RL_SCRIPT_##L##_EXTEND,                     \
            RL_SCRIPT_##L##_FORCE_RELEASE, RL_SCRIPT_##L##_INSPECT             \
    }

const rl_layout rl_layouts[] = {LAYOUT(HASH), LAYOUT(STRING),
                                LAYOUT(TIMESTAMP)};

/* What a script answers when it does not fail. */
static int reply_type(rl_script_id script)
{
    switch (script) {
    case RL_SCRIPT_HASH_ACQUIRE:
    case RL_SCRIPT_HASH_INSPECT:
    case RL_SCRIPT_STRING_ACQUIRE:
    case RL_SCRIPT_STRING_INSPECT:
    case RL_SCRIPT_TIMESTAMP_ACQUIRE:
    case RL_SCRIPT_TIMESTAMP_INSPECT:
    case RL_SCRIPT_IDENTIFY:
    case RL_SCRIPT_PROBE:
        return REDIS_REPLY_ARRAY;
    default:
        return REDIS_REPLY_INTEGER;
    }
}

static void malformed(rl_answer *a)
{
    a->outcome = RL_UNKNOWN;
    rl_fault_set(&a->fault, RLOCK_EIO, 0,
                 "unexpected reply: no Redis server, or a proxy mixed up "
                 "answers");
}

static void judge(rl_answer *a, rl_script_id script)
{
    a->outcome = RL_ANSWERED;
    if (rl_reply_is(&a->reply, reply_type(script)))
        return;
    if (!rl_reply_is(&a->reply, REDIS_REPLY_ERROR)) {
        malformed(a);
        return;
    }
    const rl_error_kind *kind = rl_error_reply(&a->reply, &a->fault);
    a->outcome = kind->definite ? RL_NOT_EXECUTED : RL_UNKNOWN;
}

/*
 * Do not ask a connection again that gives answers to other questions, nor one
 * to a demoted master, which will say READONLY for ever.
 */
static void judge_read(rl_conn *conn, rl_script_id script, rl_answer *a)
{
    judge(a, script);
    if (a->outcome != RL_ANSWERED &&
        (!rl_reply_is(&a->reply, REDIS_REPLY_ERROR) ||
         rl_error_reply(&a->reply, NULL)->elsewhere))
        conn->broken = true;
}

void rl_answer_read(rl_conn *conn, rl_script_id script, int64_t deadline_us,
                    rl_answer *a)
{
    a->outcome = RL_UNKNOWN;
    if (rl_conn_read(conn, deadline_us, &a->reply, &a->fault) == RLOCK_OK)
        judge_read(conn, script, a);
}

bool rl_answer_try_read(rl_conn *conn, rl_script_id script, rl_answer *a)
{
    rlock_status s = rl_conn_try_read(conn, &a->reply, &a->fault);
    if (s == RLOCK_BUSY)
        return false;
    a->outcome = RL_UNKNOWN;
    if (s == RLOCK_OK)
        judge_read(conn, script, a);
    return true;
}

static void exchange(rl_conn *conn, const rl_call *c, bool whole,
                     int64_t deadline_us, rl_answer *a)
{
    a->outcome = RL_NOT_EXECUTED;
    a->reply.top.type = 0;
    a->sent_us = rl_now_us();
    if (!rl_script_append(conn, c, whole)) {
        rl_fault_set(&a->fault, RLOCK_ENOMEM, 0, "out of memory");
        return;
    }
    if (rl_conn_flush(conn, deadline_us, &a->fault) != RLOCK_OK)
        return;
    rl_answer_read(conn, c->script, deadline_us, a);
}

bool rl_answer_is_noscript(const rl_answer *a)
{
    return a->outcome == RL_NOT_EXECUTED && rl_error_is_noscript(&a->reply);
}

void rl_script_exchange(rl_conn *conn, const rl_call *c, int64_t deadline_us,
                        atomic_uint_fast64_t *loads, rl_answer *a)
{
    exchange(conn, c, false, deadline_us, a);
    if (rl_answer_is_noscript(a)) {
        atomic_fetch_add_explicit(loads, 1, memory_order_relaxed);
        exchange(conn, c, true, deadline_us, a);
    }
}

void rl_script_call(rl_source *s, const rl_call *c, int64_t deadline_us,
                    atomic_uint_fast64_t *loads, rl_answer *a)
{
    rl_conn *conn;
    a->outcome = RL_NOT_EXECUTED;
    a->open = false;
    if (rl_source_borrow(s, deadline_us, &conn, &a->fault) != RLOCK_OK)
        return;
    rl_script_exchange(conn, c, deadline_us, loads, a);
    rl_source_give_back(s, conn);
}
