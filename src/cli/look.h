/* What the verbs that look share: a connection, who has a lock, and how that is
   shown. */
#ifndef CLI_LOOK_H
#define CLI_LOOK_H

#include "print.h"

/* Exit statuses of those that ask about one lock. */
enum { LOOK_HELD = 0, LOOK_FREE = 1, LOOK_CHANGED = 1 };

/* A text of the library's, with all its bytes escaped. */
typedef struct look_text {
    char text[4 * RLOCK_NAME_MAX + 8];
} look_text;

/* Connects, to ask about a lock that all servers have, or each by itself. False:
   it has been said why not. */
bool look_open(cli_server *s, cli_options *o);
bool look_open_any(cli_server *s, cli_options *o);
/* Says why the last call failed; CLI_FAILED. */
int look_failed(void);

typedef struct look_lock {
    rlock *lk; /* to be freed */
    rlock_layout layout;
    rlock_kind kind; /* of a read-write lock, which side that is */
    rlock_holder holder;
    bool counts; /* it is a semaphore's counter, or a latch's */
} look_lock;

/*
 * Who has the lock of that name, whichever layout it has. RLOCK_NOT_HELD:
 * nobody; then, and with RLOCK_OK, x->lk is a handle. x->holder is not changed
 * by another status, which rlock_last_error() tells of.
 */
rlock_status look_find(const cli_server *s, const char *name, look_lock *x);
/* The same, and one of those who have permits of a semaphore: there is no handle
   of that, and all keys are gone through for it. */
rlock_status look_find_any(const cli_server *s, const char *name, look_lock *x);

/* A pattern for rlock_scan() that fits this name only. */
typedef struct look_glob {
    char text[2 * RLOCK_NAME_MAX + 1];
} look_glob;
const char *look_glob_of(look_glob *to, const char *name);

/* Do both have the same hold? Of a timestamp each renewal is another text. */
bool look_is_same_hold(const rlock_holder *a, const rlock_holder *b,
                       rlock_layout layout);

/* "hash", "string", "timestamp"; "read" or "write" of a read-write lock; "permit". */
const char *look_kind(rlock_kind kind, rlock_layout layout);
/* "host:pid:tid/label", and of another program's its whole id. Returns to. */
const char *look_holder(look_text *to, const rlock_holder *h);
/* The same, and behind it how many others have it; "-": nobody has. */
const char *look_holders(look_text *to, const rlock_holder *h, int64_t in_all);
/* What is left of a lease; "none": it has no end. Returns to. */
const char *look_ttl(char *to, size_t size, int64_t ttl_ms);
/* As the object `key`; null without one. */
void look_json_holder(cli_json *j, const char *key, const rlock_holder *h);
/* The holder, and holders: objects that have count and ttl_ms, too. */
void look_json_holders(cli_json *j, const rlock_wait *w);

/* What it waits for: "lock", "fair", "read", "write", "permit", "latch". */
const char *look_wanted(const rlock_wait *w);
/* "host:pid:tid/label" of who waits, or its client where that is not known. */
const char *look_waiter(look_text *to, const rlock_wait *w);
/* waiter, client, since_us, waited_ms, rank and circle. */
void look_json_waiter(cli_json *j, const rlock_wait *w);

/*
 * Calls look() for the client of each server, with its address where there are
 * several (else NULL, printable); the first status that is not 0, and the
 * others are asked all the same. look() has complained.
 */
int look_at_each(const cli_options *o, const cli_server *s,
                 int (*look)(rlock_client *cl, const char *server, void *arg),
                 void *arg);

#endif
