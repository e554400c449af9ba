/*
 * Rows that say what a script finds, how it is called, what it answers, and
 * what is in the server afterwards: every key, with its value and its TTL, and
 * every message. For example
 *
 *     {ALL, "L=A@20000 T=5@200000", "extend 1 L A 60000", "1",
 *      "L=A@60000 T=5@200000"}
 *
 * Keys, with a 2 or a 3 behind them for the second lock and the third:
 *   L lock   T token   Q queue   W who waits   U, V the tombstones of A and B
 *   G a key of the program's
 * and of a read-write lock:
 *   S its line   I what those in it want   E leases   M, O the marks of A and B
 * and of a semaphore: P permits, with A1, A2, B1, X1 in it
 * Holders: A, B, X have holder ids of ours; F is somebody with another program, J
 * with Redisson.
 * Aw, Bw, Xw: their fields when they write.
 * Bells: b1 to b9; s1 to s9, sharded; d1 to d9, which nobody hears. R, R2, R3:
 * Redisson's channels, C that of a read-write lock, and K of a semaphore.
 *
 * A state has an item for each key, KEY=VALUE@TTL, the TTL in ms, or without @
 * if there is none. L=A*2     A has it, with a count (of the hash; the others
 * have none) L=A@-5000 timestamp: its time has passed L=F@9000/ timestamp: the
 * key has no TTL Q=b1:100,b2:200     bells with their tickets, in their order
 *   W=b1:100:A          a bell, its ticket, and the holder
 *   W=b1:100:A:60000:7  the same, its lease and its beat: what it wants
 *   L=read,A:1,B:2      a read-write lock: its mode, and levels
 *   S=A:100,B:now       those in line with their tickets
 *   I=A:60000:w:b1      A wants to write for 60000 ms, by the bell b1
 *   I=b1:2000:7         b1's sign of life, for 2000 ms, and its beat
 *   E=A:60000,Bw:-1     until when, in ms from now on
 *   KEY=!     something that no script expects: a set
 *   L=?       a text that is no time; L=?text: this one
 * A number may be `now`, the server's clock in us, or `now-500`, 500 ms ago. The
 * clock stands still.
 *
 * In a call, NAME KEYS WORD..., keys, holders, bells and channels are written
 * out, and '' is an empty word. A reply is a word, or { WORD... }: ~20000 is a
 * time of 20 s, token what T is, value what L is, run a run_id, some a number above
 * 0, * anything, and !TEXT an error with this text; _ may stand for a blank. A message is heard as b1<L: on b1, with the payload L;
 * a grant as b1<grant:A:BEAT:TOKEN:MS:L.
 */
#ifndef TEST_SCRIPT_TABLE_H
#define TEST_SCRIPT_TABLE_H

#include "server.h"
#include "wire/script.h"

enum { HASH = 1, STRING = 2, TIMESTAMP = 4, KEPT = 3, TEXT = 6, ALL = 7 };

typedef struct row {
    unsigned layouts; /* bits; KEPT: hash and string, TEXT: the others */
    const char *before, *call, *reply;
    const char *after; /* SAME: as before */
    const char *heard; /* NULL: nothing */
    const char *deny;  /* NULL, an ACL rule while it is called, OOM and its kin,
                  READONLY, or BEFORE_7 */
} row;

/* Most rows end before what is heard. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define SAME NULL
/* How much memory the server may have, and what it drops when that is full. */
#define OOM     "memory 1 noeviction"
#define ROOMY   "memory 1gb noeviction"
#define EVICTS  "memory 1gb allkeys-lru"
#define ENDLESS "memory 0 allkeys-lru"
/* The server is a replica; or it is older than Redis 7.0, which the script looks at.
 */
#define READONLY "readonly"
#define BEFORE_7 "before 7"

/* Where the rows are tried. */
typedef struct table {
    server *sv;
    redisContext *cx, *ear;
    rlock_layout layout;
    bool sharded;   /* the server knows such channels */
    bool old;       /* the script is told that the server is BEFORE_7 */
    int64_t now_us; /* its clock, at the last look */
} table;

/* state.c */
void state_put(table *t, const char *state);
/* What is not so, in words; "" if all is. */
const char *state_differs(table *t, const char *state);
/* What a word of a call stands for; valid until the 20th next call. */
const char *word_for(const char *word);
/* The other way round: what is shown of it. */
const char *word_of(const char *text);
/* Is it that, in the words of a row? */
bool word_is(table *t, const char *wanted, const char *said);
redisReply *say(table *t, const char *fmt, ...); /* freed by the next */

/* All rows that are about the layout. OF_ALL and its kin make a test of that
   for each layout. */
void try_rows(rlock_layout layout, const row *rows, size_t n);

#define OF_LAYOUT(subject, rows, LAYOUT, layout)                               \
    TEST_CASE(                                                                 \
        script_table, layout##_##subject,                                      \
        try_rows(RLOCK_LAYOUT_##LAYOUT, rows, sizeof rows / sizeof *rows))
#define OF_HASH(subject, rows) OF_LAYOUT(subject, rows, HASH, hash)
#define OF_KEPT(subject, rows)                                                 \
    OF_HASH(subject, rows) OF_LAYOUT(subject, rows, STRING, string)
#define OF_ALL(subject, rows)                                                  \
    OF_KEPT(subject, rows) OF_LAYOUT(subject, rows, TIMESTAMP, timestamp)

#endif
