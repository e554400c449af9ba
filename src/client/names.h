/*
 * Names of locks, and other texts, as servers tell them; and pages of SCAN, which
 * is where names come from. All is the thread's that asks.
 */
#ifndef RL_CLIENT_NAMES_H
#define RL_CLIENT_NAMES_H

#include <rlock/base.h>

#include "wire/bytes.h"
#include "wire/reply.h"

/* A text among those of rl_names; it ends in a NUL. */
typedef size_t rl_text;

typedef struct rl_name {
    rl_text text;
    size_t len;
    bool guessed;    /* no key of ours tells of it: it may be refused */
    bool permits;    /* it may be a semaphore, and have some given out */
    bool in_line;    /* who waits for it may stand in one, */
    rlock_kind kind; /* and wants that; RLOCK_KIND_LOCK: or it is not known */
} rl_name;

typedef struct rl_names {
    rl_name *at; /* of locks that there may be; may be there twice */
    size_t n, room;
    rl_bytes text;
    bool lacking; /* memory */
} rl_names;

void rl_names_fini(rl_names *s);

rl_text rl_names_keep(rl_names *s, const void *bytes, size_t len);

static inline const char *rl_names_text(const rl_names *s, rl_text t)
{
    return s->text.at + t;
}

/* False: out of memory. */
bool rl_names_add(rl_names *s, const void *name, size_t len, bool guessed);

bool rl_names_put(rl_names *s, rl_name x);

/* SCAN may tell a key more than once, and several keys tell of one lock. */
void rl_names_sort(rl_names *s);

/* Room for one more of n; NULL: out of memory, and *array is as it was. */
void *rl_names_more(rl_names *s, void *array, size_t size, size_t n,
                    size_t *room);

/* --- sorted --------------------------------------------------------------- */

/* qsort() hands over nothing but the elements, so each has its text. */
typedef struct rl_sorted {
    const char *text;
    size_t len;
    size_t at;
} rl_sorted;

int rl_sorted_compare(const void *a, const void *b);
rl_sorted *rl_sorted_new(rl_names *s, size_t n); /* NULL: out of memory */

/* --- pages ---------------------------------------------------------------- */

typedef struct rl_scan {
    rl_sink sink; /* takes a reply of SCAN */
    char cursor[24];
    rl_names *into;
    /* What a key tells of goes into the names; false: out of memory. */
    bool (*take)(rl_names *into, const char *key, size_t len);
} rl_scan;

void rl_scan_begin(rl_scan *s, rl_names *into,
                   bool (*take)(rl_names *into, const char *key, size_t len));
bool rl_scan_is_over(const rl_scan *s);

/* "{a}" for "a", which share a token's key; its length, 0: there is none. */
size_t rl_name_in_braces(const char *name, size_t len,
                         char out[RLOCK_NAME_MAX]);

/* Keys that tell of a lock: its queue, or line; these, or its token; who has
   permits; itself. */
bool rl_names_of_waits(rl_names *into, const char *key, size_t len);
bool rl_names_of_side_key(rl_names *into, const char *key, size_t len);
bool rl_names_of_permits(rl_names *into, const char *key, size_t len);
bool rl_names_of_lock(rl_names *into, const char *key, size_t len);

#endif
