#include "hold/longest.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

typedef struct entry {
    rl_map_node node;
    int64_t lease_ms;
    int64_t until_us; /* when it is forgotten */
    size_t len;
    char name[];
} entry;

typedef struct key {
    const char *name;
    size_t len;
} key;

static bool same(const rl_map_node *n, const void *wanted)
{
    const entry *x = RL_CONTAINER(n, entry, node);
    const key *k = wanted;
    return x->len == k->len && memcmp(x->name, k->name, k->len) == 0;
}

bool rl_longest_init(rl_longest *l)
{
    rl_mutex_init(&l->mutex, RL_RANK_LONGEST);
    return rl_map_init(&l->map, same);
}

static void drop(rl_map_node *n, void *map)
{
    rl_map_remove(map, n);
    free(RL_CONTAINER(n, entry, node));
}

void rl_longest_fini(rl_longest *l, bool forked)
{
    if (l->map.buckets)
        rl_map_each(&l->map, drop, &l->map);
    rl_map_fini(&l->map);
    if (!forked)
        rl_mutex_fini(&l->mutex);
}

typedef struct sweep {
    rl_map *map;
    int64_t now_us;
} sweep;

static void drop_old(rl_map_node *n, void *arg)
{
    const sweep *s = arg;
    if (RL_CONTAINER(n, entry, node)->until_us <= s->now_us)
        drop(n, s->map);
}

static entry *find_locked(rl_longest *l, const char *name, size_t len)
    RL_REQUIRES(&l->mutex)
{
    key k = {name, len};
    rl_map_node *n = rl_map_find(&l->map, rl_hash(name, len, 0), &k);
    return n ? RL_CONTAINER(n, entry, node) : NULL;
}

/* Old ones go when a new one comes and the table has doubled. */
static entry *add_locked(rl_longest *l, const char *name, size_t len,
                         int64_t now_us) RL_REQUIRES(&l->mutex)
{
    sweep s = {&l->map, now_us};
    if ((l->map.count & (l->map.count - 1)) == 0)
        rl_map_each(&l->map, drop_old, &s);
    entry *x = calloc(1, sizeof *x + len);
    if (!x)
        return NULL;
    x->len = len;
    memcpy(x->name, name, len);
    rl_map_add(&l->map, &x->node, rl_hash(name, len, 0));
    return x;
}

bool rl_longest_note(rl_longest *l, const char *name, size_t len,
                     int64_t lease_ms, int64_t now_us)
{
    rl_mutex_lock(&l->mutex);
    entry *x = find_locked(l, name, len);
    if (!x)
        x = add_locked(l, name, len, now_us);
    if (x && (x->lease_ms <= lease_ms || x->until_us <= now_us)) {
        x->lease_ms = lease_ms;
        x->until_us = rl_after_ms(rl_after_ms(now_us, lease_ms), lease_ms);
    }
    rl_mutex_unlock(&l->mutex);
    return x != NULL;
}

int64_t rl_longest_ms(rl_longest *l, const char *name, size_t len,
                      int64_t now_us)
{
    rl_mutex_lock(&l->mutex);
    const entry *x = find_locked(l, name, len);
    int64_t ms = x && x->until_us > now_us ? x->lease_ms : 0;
    rl_mutex_unlock(&l->mutex);
    return ms;
}
