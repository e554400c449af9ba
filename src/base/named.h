/*
 * Bytes of some names, the first ones that come: of more there would be no end.
 * All others are one, which is called "other".
 *
 * Any thread looks a name up, and without a mutex when it is there: what has come
 * stays until the table is freed, and a name has either bytes of its own from the
 * first time on, or never.
 */
#ifndef RL_BASE_NAMED_H
#define RL_BASE_NAMED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of it is fixed, but what its user does with the bytes. */
typedef struct rl_named_one {
    struct rl_named_one *_Atomic next; /* that came after it */
    uint64_t hash;
    void *bytes; /* zero at first */
    size_t len;
    char *name; /* UTF-8, of so many bytes */
} rl_named_one;

typedef struct rl_named rl_named;

/* For so many names, each with so many bytes. NULL: out of memory. */
rl_named *rl_named_new(size_t names, size_t size);
void rl_named_free(rl_named *t, bool forked); /* NULL is accepted */

/*
 * The name's own, or the others': a name that is no UTF-8 is always one of
 * these, for as a text it could be the same as another one.
 */
rl_named_one *rl_named_of(rl_named *t, const char *name, size_t len);

/* The others'; then follow, by `next`, all names as they came. */
const rl_named_one *rl_named_first(const rl_named *t);

#endif
