/*
 * What is locked, and where it is kept. Most locks are single ones at home;
 * some are at the first node as well, under the same name. Red locks have names
 * of their own, on three or on five nodes. Multi locks are made of all of
 * these, and share members.
 */
#ifndef ATTACK_LOCKS_H
#define ATTACK_LOCKS_H

#include "attack.h"

enum { LOCK_KEY_MAX = 24, LOCK_LABEL_MAX = 24 };

lock_kind lock_kind_of(int lock);
extern const char *const lock_kind_names[LOCK_KINDS];
rlock_layout lock_layout(int lock);

/* The name in Redis; "" for a Multi lock, which has none. */
void lock_key(int lock, char key[LOCK_KEY_MAX]);
/* The lock of this name: the one at home, if there are two; -1: none of these.
 */
int lock_with_key(const char *key);
/* The lock of the same name on another server; -1: there is none. */
int lock_twin(int lock);
/* What a person calls it. */
void lock_label(int lock, char label[LOCK_LABEL_MAX]);

/* The servers that have to do with it, a bit each. */
unsigned lock_servers(int lock);
/* How many these are, or the first of them. */
int servers_count(unsigned servers);
int servers_first(unsigned servers);
/*
 * Is it lost with these servers? A Red lock with a majority of its nodes, a
 * Multi lock with any of its members.
 */
bool lock_needs(int lock, unsigned servers);

/* The members of a Multi lock, and how many; 0 for others. */
int lock_members(int lock, int members[MEMBERS_MAX]);
bool lock_has_member(int lock, int member);

#endif
