/*
 * What servers say of locks (lua/survey.lua), put together for who scans for
 * them: which are told, and as what. That thread's alone.
 */
#ifndef RL_CLIENT_FOUND_H
#define RL_CLIENT_FOUND_H

#include <rlock/scan.h>

#include "client/names.h"

typedef struct rl_find {
    rl_text name, holder;
    size_t name_len;
    rlock_layout layout;
    rlock_kind kind;
    bool held, ours;
    int64_t count, ttl_ms, waiting, held_ms, holders, available;
    uint64_t token;
} rl_find;

typedef struct rl_found {
    rl_names names;
    unsigned flags; /* RLOCK_SCAN_... */
    rl_find *at;
    size_t n, room;
} rl_found;

void rl_found_init(rl_found *f, unsigned flags);
void rl_found_fini(rl_found *f);

/*
 * A reply about a lock. One that is free may be there in braces, too, with the
 * same token: that name is added. False: it makes no sense, or memory lacks.
 */
bool rl_found_note(rl_found *f, rl_name lock, const rl_reply *r);

/* May a string that begins so, or a hash with such a field, be a lock? */
bool rl_found_is_string(const char *text, size_t len);
bool rl_found_is_hash(const char *field, size_t len);

/* All have been asked: by name, each once. False: out of memory. */
bool rl_found_sort(rl_found *f);

/* Fills *out, and the holder that it points to. */
void rl_found_tell(const rl_found *f, size_t i, rlock_lock_info *out,
                   rlock_holder *holder);

#endif
