#include "locks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name of the first lock away, at home. */
enum { AWAY_NAME = 8 };

const char *const lock_kind_names[LOCK_KINDS] = {
    [LOCK_SINGLE] = "single", [LOCK_RED] = "Red",   [LOCK_MULTI] = "Multi",
    [LOCK_FAIR] = "fair",     [LOCK_READ] = "read", [LOCK_WRITE] = "write",
    [LOCK_PERMIT] = "permits"};

/* Those of the names attack:WORD:0, attack:WORD:1 and so on. */
static const struct family {
    const char *word;
    int first, n, sides; /* sides: locks of one name */
} families[] = {{"red", FIRST_RED, REDS, 1},
                {"fair", FIRST_FAIR, FAIRS, 1},
                {"rw", FIRST_RW, RWS, 2},
                {"permits", FIRST_SEMAPHORE, SEMAPHORES, 1}};
enum { FAMILIES = sizeof families / sizeof *families };

/* They overlap, and no two list their members in the same order. */
static const struct set {
    int n;
    int member[MEMBERS_MAX];
} sets[SETS] = {
    {2, {2, 5}},
    {3, {11, 5, 2}},
    {2, {FIRST_AWAY, AWAY_NAME}}, /* one name on two servers */
    {4, {FIRST_AWAY + 1, 20, AWAY_NAME + 1, FIRST_AWAY}},
    {2, {FIRST_RED, 11}},
    {8, {31, 24, 30, 25, 29, 26, 28, 27}},
};

lock_kind lock_kind_of(int lock)
{
    return lock < FIRST_RED            ? LOCK_SINGLE
           : lock < FIRST_SET          ? LOCK_RED
           : lock < FIRST_FAIR         ? LOCK_MULTI
           : lock < FIRST_RW           ? LOCK_FAIR
           : lock >= FIRST_SEMAPHORE   ? LOCK_PERMIT
           : (lock - FIRST_RW) % 2 > 0 ? LOCK_WRITE
                                       : LOCK_READ;
}

bool lock_is_at_one(int lock)
{
    return lock < FIRST_RED || lock >= FIRST_FAIR;
}

bool lock_is_shared(int lock)
{
    lock_kind kind = lock_kind_of(lock);
    return kind == LOCK_READ || kind == LOCK_PERMIT;
}

int lock_permits(int lock)
{
    static const int permits[SEMAPHORES] = {1, 2, 5, 12};
    return permits[lock - FIRST_SEMAPHORE];
}

bool lock_idles(int lock)
{
    return (lock - FIRST_SEMAPHORE) % 2 > 0;
}

rlock_layout lock_layout(int lock)
{
    if (lock == HOMES - 1 || lock == FIRST_SET - 1)
        return RLOCK_LAYOUT_STRING;
    return lock == HOMES - 2 ? RLOCK_LAYOUT_TIMESTAMP : RLOCK_LAYOUT_HASH;
}

void lock_key(int lock, char key[LOCK_KEY_MAX])
{
    *key = '\0';
    if (lock < FIRST_AWAY)
        snprintf(key, LOCK_KEY_MAX, "attack:%d", lock);
    else if (lock < FIRST_RED)
        snprintf(key, LOCK_KEY_MAX, "attack:%d", lock - FIRST_AWAY + AWAY_NAME);
    for (int i = 0; i < FAMILIES; i++) {
        const struct family *f = &families[i];
        if (lock >= f->first && lock < f->first + f->n * f->sides)
            snprintf(key, LOCK_KEY_MAX, "attack:%s:%d", f->word,
                     (lock - f->first) / f->sides);
    }
}

int lock_with_key(const char *key)
{
    static const char ours[] = "attack:";
    if (strncmp(key, ours, strlen(ours)) != 0)
        return -1;
    key += strlen(ours);
    for (int i = 0; i < FAMILIES; i++) {
        const struct family *f = &families[i];
        size_t len = strlen(f->word);
        if (strncmp(key, f->word, len) == 0 && key[len] == ':')
            return f->first + f->sides * atoi(key + len + 1);
    }
    return atoi(key);
}

int lock_twin(int lock)
{
    if (lock >= AWAY_NAME && lock < AWAY_NAME + AWAYS)
        return lock - AWAY_NAME + FIRST_AWAY;
    if (lock >= FIRST_AWAY && lock < FIRST_RED)
        return lock - FIRST_AWAY + AWAY_NAME;
    return -1;
}

static int nodes_of(int red)
{
    return red % 2 ? NODES : 3;
}

static void label_of_kind(int lock, char label[LOCK_LABEL_MAX])
{
    const char *kind = lock_kind_names[lock_kind_of(lock)];
    if (lock < FIRST_RW)
        snprintf(label, LOCK_LABEL_MAX, "%s %d", kind, lock - FIRST_FAIR);
    else if (lock < FIRST_SEMAPHORE)
        snprintf(label, LOCK_LABEL_MAX, "%s %d", kind, (lock - FIRST_RW) / 2);
    else
        snprintf(label, LOCK_LABEL_MAX, "%d %s", lock_permits(lock), kind);
}

void lock_label(int lock, char label[LOCK_LABEL_MAX])
{
    if (lock < FIRST_AWAY)
        snprintf(label, LOCK_LABEL_MAX, "lock %d", lock);
    else if (lock < FIRST_RED)
        snprintf(label, LOCK_LABEL_MAX, "lock %d at node 1",
                 lock - FIRST_AWAY + AWAY_NAME);
    else if (lock < FIRST_SET)
        snprintf(label, LOCK_LABEL_MAX, "Red %d of %d", lock - FIRST_RED,
                 nodes_of(lock - FIRST_RED));
    else if (lock < FIRST_FAIR)
        snprintf(label, LOCK_LABEL_MAX, "Multi %d of %d", lock - FIRST_SET,
                 sets[lock - FIRST_SET].n);
    else
        label_of_kind(lock, label);
}

unsigned lock_servers(int lock)
{
    if (lock < FIRST_AWAY || lock >= FIRST_FAIR)
        return 1U << HOME;
    if (lock < FIRST_RED)
        return 1U << 1;
    if (lock < FIRST_SET)
        return ((1U << nodes_of(lock - FIRST_RED)) - 1) << 1;
    const struct set *s = &sets[lock - FIRST_SET];
    unsigned servers = 0;
    for (int i = 0; i < s->n; i++)
        servers |= lock_servers(s->member[i]);
    return servers;
}

int servers_count(unsigned servers)
{
    return __builtin_popcount(servers);
}

int servers_first(unsigned servers)
{
    return __builtin_ctz(servers);
}

bool lock_needs(int lock, unsigned servers)
{
    unsigned own = lock_servers(lock);
    if (lock_kind_of(lock) != LOCK_MULTI)
        return servers_count(own & servers) > servers_count(own) / 2;
    const struct set *s = &sets[lock - FIRST_SET];
    for (int i = 0; i < s->n; i++)
        if (lock_needs(s->member[i], servers))
            return true;
    return false;
}

int lock_members(int lock, int members[MEMBERS_MAX])
{
    if (lock_kind_of(lock) != LOCK_MULTI)
        return 0;
    const struct set *s = &sets[lock - FIRST_SET];
    memcpy(members, s->member, sizeof s->member);
    return s->n;
}

bool lock_has_member(int lock, int member)
{
    int members[MEMBERS_MAX];
    int n = lock_members(lock, members);
    while (n > 0)
        if (members[--n] == member)
            return true;
    return false;
}
