/*
 * A small Redis: the keys, and the commands that the scripts of lua/ use, with
 * a clock that its owner sets. What it answers is compared with a real one
 * (compare.c).
 *
 * It is one database, without connections; server.c puts those around it.
 */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include <stdint.h>

#include "text.h"

typedef enum kind { KIND_STRING, KIND_HASH, KIND_ZSET } kind;

/* A field of a hash, or a member of a sorted set. */
typedef struct item {
    text name;
    text value;
    double score;
} item;

typedef struct entry {
    struct entry *next; /* in its bucket */
    text key;
    kind kind;
    int64_t expires_ms; /* -1: never */
    text value;         /* a string's */
    item *items;        /* a hash's in the order of coming; a set's by score */
    size_t count, room;
} entry;

#define STORE_BUCKETS 64

typedef struct store {
    entry *bucket[STORE_BUCKETS];
    size_t keys;
    int64_t now_us; /* the clock, while a command is executed */
    int64_t started_us;
    char run_id[41];
    bool lacks_memory; /* commands that need some are refused */
    bool wrote;        /* the script that runs has called a write command */
    bool in_script;
    bool is_replica;  /* write commands are refused */
    uint64_t changes; /* write commands so far */
    /* Says it to all who listen on the channel, or the sharded one of that
       name; how many they are. */
    int (*publish)(void *arg, bool is_sharded, const word *channel,
                   const word *message);
    void *arg;
} store;

/* Executes a command; its reply is added to *out. */
void store_command(store *s, const word *argv, size_t n, text *out);

/* The entry, unless it has expired; or NULL. */
entry *store_find(store *s, const word *key);
const item *entry_item(const entry *e, const word *name);

/* What is left of the entry's life in ms; -1: it has no end. */
int64_t entry_left_ms(const store *s, const entry *e);

void store_clear(store *s);
void store_copy(store *to, const store *from); /* of keys */
size_t store_count(store *s);                  /* keys that have not expired */

/* --- for commands.c ------------------------------------------------------- */

entry *store_add(store *s, const word *key, kind kind);
void store_remove(store *s, entry *e);
item *entry_find(entry *e, const word *name);
item *entry_add(entry *e, const word *name, double score);
void entry_drop(entry *e, size_t i);
void entry_empty(entry *e);

/* Of a set: where an item of this score and name stands, or would. */
size_t entry_rank(const entry *e, double score, const word *name);

#endif
