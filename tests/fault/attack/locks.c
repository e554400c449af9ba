#include "locks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name of the first lock away, at home. */
enum { AWAY_NAME = 8 };

const char *const lock_kind_names[LOCK_KINDS] = {
    [LOCK_SINGLE] = "single", [LOCK_RED] = "Red", [LOCK_MULTI] = "Multi"};

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
    return lock < FIRST_RED   ? LOCK_SINGLE
           : lock < FIRST_SET ? LOCK_RED
                              : LOCK_MULTI;
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
    else if (lock < FIRST_SET)
        snprintf(key, LOCK_KEY_MAX, "attack:red:%d", lock - FIRST_RED);
}

int lock_with_key(const char *key)
{
    static const char red[] = "attack:red:";
    if (strncmp(key, red, strlen(red)) == 0)
        return FIRST_RED + atoi(key + strlen(red));
    static const char single[] = "attack:";
    return strncmp(key, single, strlen(single)) ? -1
                                                : atoi(key + strlen(single));
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
    else
        snprintf(label, LOCK_LABEL_MAX, "Multi %d of %d", lock - FIRST_SET,
                 sets[lock - FIRST_SET].n);
}

unsigned lock_servers(int lock)
{
    if (lock < FIRST_AWAY)
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
    if (lock < FIRST_SET)
        return servers_count(own & servers) > servers_count(own) / 2;
    const struct set *s = &sets[lock - FIRST_SET];
    for (int i = 0; i < s->n; i++)
        if (lock_needs(s->member[i], servers))
            return true;
    return false;
}

int lock_members(int lock, int members[MEMBERS_MAX])
{
    if (lock < FIRST_SET)
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
