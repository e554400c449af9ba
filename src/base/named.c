#include "base/named.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/thread.h"
#include "base/utf8.h"

#define OTHERS "other"

struct rl_named {
    rl_named_one *others; /* fixed */
    size_t size, mask;    /* fixed; of bytes; one less than there are slots */
    rl_mutex mutex;       /* who adds one has it */
    rl_named_one *last;
    atomic_size_t left; /* so many may come yet; only falls */
    /* By hash: the first free one from there on. Half of them stay free. */
    rl_named_one *_Atomic slot[];
};

/* Behind it are its bytes, and its name. */
static rl_named_one *make(size_t size, const char *name, size_t len,
                          uint64_t hash)
{
    rl_named_one *x = calloc(1, sizeof *x + size + len);
    if (!x)
        return NULL;
    x->hash = hash;
    x->bytes = x + 1;
    x->len = len;
    x->name = (char *)x->bytes + size;
    memcpy(x->name, name, len);
    return x;
}

static bool is_it(const rl_named_one *x, const char *name, size_t len,
                  uint64_t hash)
{
    return x->hash == hash && x->len == len && memcmp(x->name, name, len) == 0;
}

/* Its entry, or NULL, and *at is where it would be. */
static rl_named_one *find(const rl_named *t, const char *name, size_t len,
                          uint64_t hash, size_t *at)
{
    for (size_t i = hash;; i++) {
        *at = i & t->mask;
        rl_named_one *x = atomic_load(&t->slot[*at]);
        if (!x || is_it(x, name, len, hash))
            return x;
    }
}

/* Without memory nobody comes any more: who was refused stays so. */
static rl_named_one *add_locked(rl_named *t, const char *name, size_t len,
                                uint64_t hash) RL_REQUIRES(&t->mutex)
{
    size_t at;
    rl_named_one *x = find(t, name, len, hash, &at);
    if (x || t->left == 0)
        return x ? x : t->others;
    x = make(t->size, name, len, hash);
    if (x) {
        atomic_store(&t->slot[at], x);
        atomic_store(&t->last->next, x);
        t->last = x;
    }
    t->left = x ? t->left - 1 : 0;
    return x ? x : t->others;
}

/* What is full when it begins to look has all that will ever be there. */
rl_named_one *rl_named_of(rl_named *t, const char *name, size_t len)
{
    size_t at;
    uint64_t hash = rl_hash(name, len, 0);
    bool full = atomic_load(&t->left) == 0;
    rl_named_one *x = find(t, name, len, hash, &at);
    if (x)
        return x;
    if (full || !rl_utf8_is(name, len))
        return t->others;
    rl_mutex_lock(&t->mutex);
    x = add_locked(t, name, len, hash);
    rl_mutex_unlock(&t->mutex);
    return x;
}

const rl_named_one *rl_named_first(const rl_named *t)
{
    return t->others;
}

static void add_others(rl_named *t, rl_named_one *others)
{
    size_t at;
    find(t, others->name, others->len, others->hash, &at);
    atomic_init(&t->slot[at], others);
    t->others = t->last = others;
}

rl_named *rl_named_new(size_t names, size_t size)
{
    const size_t len = strlen(OTHERS);
    size_t slots = 4;
    while (slots < 2 * (names + 1))
        slots *= 2;
    rl_named *t = calloc(1, sizeof *t + slots * sizeof *t->slot);
    rl_named_one *others = make(size, OTHERS, len, rl_hash(OTHERS, len, 0));
    if (!t || !others) {
        free(t);
        free(others);
        return NULL;
    }
    rl_mutex_init(&t->mutex, RL_RANK_ALONE);
    atomic_init(&t->left, names);
    t->size = size;
    t->mask = slots - 1;
    add_others(t, others);
    return t;
}

void rl_named_free(rl_named *t, bool forked)
{
    if (!t)
        return;
    for (rl_named_one *x = t->others, *next; x; x = next) {
        next = atomic_load(&x->next);
        free(x);
    }
    if (!forked)
        rl_mutex_fini(&t->mutex);
    free(t);
}
