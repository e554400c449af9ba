/*
 * What is locked, and where it is kept. Most locks are single ones at home;
 * some are at the first node as well, under the same name. Red locks have names
 * of their own, on three or on five nodes. Multi locks are made of all of
 * these, and share members. Fair locks, read-write locks and semaphores are at
 * home.
 */
#ifndef ATTACK_LOCKS_H
#define ATTACK_LOCKS_H

#include "attack.h"

enum { LOCK_KEY_MAX = 32, LOCK_LABEL_MAX = 24 };

lock_kind lock_kind_of(int lock);
/* Is it at one server, which grants and forgets it as a whole? */
bool lock_is_at_one(int lock);
/* May others have it at the same time: a read side, permits? Whose hold an event
   is about, name and token do not tell then. */
bool lock_is_shared(int lock);
/* How many permits there are; does the server forget them by itself? */
int lock_permits(int lock);
bool lock_idles(int lock);
extern const char *const lock_kind_names[LOCK_KINDS];
rlock_layout lock_layout(int lock);

/* The name in Redis, which both sides of a read-write lock have; "" for a Multi
   lock, which has none. */
void lock_key(int lock, char key[LOCK_KEY_MAX]);
/* The lock of this name: the one at home, if there are two, or the read side;
   -1: none of these. */
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
