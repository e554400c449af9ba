/*
 * The Lua scripts, and how they are called: by EVALSHA, and once by EVAL when
 * the server answers that it lacks the script. A call here is one attempt on
 * one connection; who may ask again, and for how long, is decided above.
 */
#ifndef RL_WIRE_SCRIPT_H
#define RL_WIRE_SCRIPT_H

#include <stdatomic.h>

#include "route/source.h"

typedef enum rl_script_id {
    RL_SCRIPT_HASH_ACQUIRE,
    RL_SCRIPT_HASH_RELEASE,
    RL_SCRIPT_HASH_RENEW,
    RL_SCRIPT_HASH_EXTEND,
    RL_SCRIPT_HASH_FORCE_RELEASE,
    RL_SCRIPT_HASH_INSPECT,
    RL_SCRIPT_STRING_ACQUIRE,
    RL_SCRIPT_STRING_RELEASE,
    RL_SCRIPT_STRING_RENEW,
    RL_SCRIPT_STRING_EXTEND,
    RL_SCRIPT_STRING_FORCE_RELEASE,
    RL_SCRIPT_STRING_INSPECT,
    RL_SCRIPT_TIMESTAMP_ACQUIRE,
    RL_SCRIPT_TIMESTAMP_RELEASE,
    RL_SCRIPT_TIMESTAMP_RENEW,
    RL_SCRIPT_TIMESTAMP_EXTEND,
    RL_SCRIPT_TIMESTAMP_FORCE_RELEASE,
    RL_SCRIPT_TIMESTAMP_INSPECT,
    RL_SCRIPT_LEAVE,
    RL_SCRIPT_RAISE,
    RL_SCRIPT_IDENTIFY,
    RL_SCRIPT_PROBE,
    RL_SCRIPT_COUNT
} rl_script_id;

/*
 * A layout is a way to keep a lock on the server: a set of scripts, which take
 * the same arguments and give the same answers in all layouts.
 */
typedef struct rl_layout {
    rl_script_id acquire, release, renew, extend, force_release, inspect;
} rl_layout;

extern const rl_layout rl_layouts[]; /* by rlock_layout */

typedef struct rl_script {
    const char *name;
    const char *sha1;
    const char *body;
    size_t len;
} rl_script;

/* Generated from lua/ at build time. */
extern const rl_script rl_scripts[RL_SCRIPT_COUNT];

#define RL_CALL_MAX 13 /* EVALSHA, sha, number of keys, 4 keys, 6 arguments */

/*
 * One call being put together. Arguments are referred to, not copied; numbers
 * live in the struct.
 */
typedef struct rl_call {
    rl_script_id script;
    bool only_once; /* a second execution would do harm: no try after an
                       unknown outcome */
    int argc;
    const char *argv[RL_CALL_MAX];
    size_t lens[RL_CALL_MAX];
    char keys[4];
    char numbers[4][24];
    int used_numbers;
} rl_call;

void rl_call_init(rl_call *c, rl_script_id script, int keys);
void rl_call_bytes(rl_call *c, const void *bytes, size_t len);
void rl_call_text(rl_call *c, const char *text);
void rl_call_number(rl_call *c, int64_t number);

/* What became of a command. */
typedef enum rl_outcome {
    RL_ANSWERED,     /* executed; the reply is there, and is no error */
    RL_NOT_EXECUTED, /* certainly not executed, now or later */
    RL_UNKNOWN       /* may have been, or may yet be, executed */
} rl_outcome;

typedef struct rl_answer {
    rl_outcome outcome;
    bool open;       /* it, or an earlier try, may have been executed, or may
                        yet be, without an answer */
    int64_t sent_us; /* the lease clock before it was sent */
    rl_reply reply;  /* when answered */
    rl_fault fault;  /* when not */
} rl_answer;

/* One attempt on this connection. loads counts scripts sent whole. */
void rl_script_exchange(rl_conn *conn, const rl_call *c, int64_t deadline_us,
                        atomic_uint_fast64_t *loads, rl_answer *a);

/* The same on a borrowed connection. */
void rl_script_call(rl_source *s, const rl_call *c, int64_t deadline_us,
                    atomic_uint_fast64_t *loads, rl_answer *a);

/*
 * For pipelines: adds the call to what the connection's next flush sends, by
 * EVALSHA or whole. False: out of memory.
 */
bool rl_script_append(rl_conn *conn, const rl_call *c, bool whole);

/* And reads its answer. */
void rl_answer_read(rl_conn *conn, rl_script_id script, int64_t deadline_us,
                    rl_answer *a);

/*
 * The same without waiting. False: not yet; to be asked again with the same
 * *a.
 */
bool rl_answer_try_read(rl_conn *conn, rl_script_id script, rl_answer *a);

/* Did the server lack the script? */
bool rl_answer_is_noscript(const rl_answer *a);

#endif
