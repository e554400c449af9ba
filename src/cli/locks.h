/* Locks as a look has found them, copied. */
#ifndef CLI_LOCKS_H
#define CLI_LOCKS_H

#include "look.h"

typedef struct locks_row {
    char *name; /* owned, len bytes and a NUL */
    size_t len, server;
    rlock_lock_info is; /* without what it points to */
    rlock_holder holder;
    int64_t longest_ms; /* that somebody waits; 0: nobody does */
    unsigned changes;   /* looks at which the holder was another */
} locks_row;

typedef struct locks {
    locks_row *at;
    size_t n, room;
    bool lacking; /* memory */
} locks;

/* One more, of that server. False: there is no memory for it. */
bool locks_add(locks *l, size_t server, const rlock_lock_info *is);
/* Only the first n stay. */
void locks_cut(locks *l, size_t n);
void locks_clear(locks *l);

/* Has the same hold the lock in both looks? */
bool locks_same_hold(const locks_row *a, const locks_row *b);

/* By server, then as rlock_scan() tells them: also the order of what was added
   look by look. */
int locks_order(const locks_row *a, const locks_row *b);

#endif
