/*
 * The Lua scripts, and how a call of one is written: by EVALSHA, or whole, by
 * EVAL, for a server that lacks it.
 */
#ifndef RL_WIRE_SCRIPT_H
#define RL_WIRE_SCRIPT_H

#include <rlock/base.h>

#include "rlock_scripts.h"
#include "wire/bytes.h"
#include "wire/reply.h"

typedef struct rl_script {
    const char *name;
    const char *sha1;
    const char *body;
    size_t len;
    unsigned replies; /* what it answers when it does not fail: a bit set */
} rl_script;

/*
 * Generated from lua/ at build time, with rl_script_id: each file there whose
 * head says the type of its reply is a script.
 */
extern const rl_script rl_scripts[RL_SCRIPT_COUNT];

/*
 * A guard is put before a script of the program (op/verb_guard.h): it lets that go
 * on only while a hold has its lock.
 */
typedef struct rl_guard {
    const char *text;
    size_t len;
} rl_guard;

extern const rl_guard rl_guards[RL_GUARD_COUNT];

/*
 * A layout is a way to keep a lock on the server: a set of scripts, which take
 * the same arguments and give the same answers in all layouts.
 */
typedef struct rl_layout {
    rl_script_id acquire, release, renew, renew_many, extend, force_release,
        inspect, drop;
    rl_script_id take_many, free_many; /* RL_SCRIPT_COUNT: it has none */
    rl_guard_id guard;
    bool line; /* who waits stands in a line of the server's: lua/line.lua */
    uint8_t scope; /* of its holds; see hold/target.h */
    rlock_kind kind;
} rl_layout;

/* More than the program knows: the hash, to who waits in line for it; the sides of
   a read-write lock; permits; and the hash, to who wants no token. */
#define RL_LAYOUT_FAIR      3
#define RL_LAYOUT_READ      4
#define RL_LAYOUT_WRITE     5
#define RL_LAYOUT_PERMIT    6
#define RL_LAYOUT_TOKENLESS 7
#define RL_LAYOUTS          8

/* A side of a read-write lock? */
static inline bool rl_layout_is_side(const rl_layout *l)
{
    return l->kind == RLOCK_KIND_READ || l->kind == RLOCK_KIND_WRITE;
}

extern const rl_layout rl_layouts[RL_LAYOUTS]; /* by rlock_layout */

/* Have its holds no fencing token, as nobody wants one? Theirs is 0. */
static inline bool rl_layout_is_tokenless(const rl_layout *l)
{
    return l == &rl_layouts[RL_LAYOUT_TOKENLESS];
}

/* Begins a call; its keys and arguments, so many, are to follow as words. */
void rl_put_call(rl_bytes *to, rl_script_id script, bool whole, int keys,
                 int args);

#endif
