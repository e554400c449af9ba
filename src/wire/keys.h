/*
 * Key and channel names of one lock. Side names follow Redisson's rule:
 * prefix:{name}, or prefix:name when the name has a { already, so that all
 * share the name's cluster slot; the queue's and the line's differ a little. See
 * lua/README.md.
 */
#ifndef RL_WIRE_KEYS_H
#define RL_WIRE_KEYS_H

#include <rlock/base.h>

#include "base/random.h"
#include "wire/bytes.h"

#define RL_BELL_PREFIX "rlock_bell:"
/* In a cluster, where each name's bell is a channel of its slot. */
#define RL_SBELL_PREFIX "rlock_sbell:"
#define RL_BELL_LEN     (sizeof RL_SBELL_PREFIX - 1 + RL_UUID_LEN)

/* A message to a bell that begins so is no ring for a name: op/grant.h. */
#define RL_GRANT_PREFIX "rlock_grant:"

/* Of the names that rlock_client_new probes with. */
#define RL_PROBE_PREFIX "rlock_probe:"

/*
 * The prefix, if the name begins with one of ours: its lock might be another
 * one's side key. NULL: it may be used.
 */
const char *rl_name_reserved(const void *name, size_t len);

/* "{a}", and what else has the side keys of another name, but for its queue. */
bool rl_name_is_in_braces(const void *name, size_t len);

typedef struct rl_key {
    size_t len;
    char text[RLOCK_NAME_MAX + 80];
} rl_key;

rl_key rl_key_token(const void *name, size_t len);
rl_key rl_key_queue(const void *name, size_t len);
rl_key rl_key_line(const void *name, size_t len);
rl_key rl_key_wants(const void *name, size_t len);
rl_key rl_key_redisson(const void *name, size_t len);
/* Of the read-write lock of that name. */
rl_key rl_key_redisson_rw(const void *name, size_t len);
/* Of the latch of that name; in a cluster it is in the name's slot only if that
   has no brace. */
rl_key rl_key_redisson_latch(const void *name, size_t len);
rl_key rl_key_redisson_semaphore(const void *name, size_t len);
/* holder ends in the hold's uuid */
rl_key rl_key_tombstone(const void *name, size_t len, const char *holder);
/* The channel of a client's bell for this name; bell: a client's, as its core
   has it. */
rl_key rl_key_bell(const void *name, size_t len, const char *bell);

/* The name whose queue, or line, this is; false: it is none of ours. */
bool rl_key_read_queue(const char *key, size_t len, const char **name,
                       size_t *name_len);
bool rl_key_read_line(const char *key, size_t len, const char **name,
                      size_t *name_len);

/* The name whose token this is; of "{a}", which shares it, that of "a". */
bool rl_key_read_token(const char *key, size_t len, const char **name,
                       size_t *name_len);
/* The semaphore whose permits may be in it: another program's may be named so. */
bool rl_key_read_permits(const char *key, size_t len, const char **name,
                         size_t *name_len);

/* The same as words of a command, written without a copy in between. */
void rl_put_token_key(rl_bytes *to, const void *name, size_t len);
void rl_put_queue_key(rl_bytes *to, const void *name, size_t len);
void rl_put_line_key(rl_bytes *to, const void *name, size_t len);
/* The same, and what those in it want. */
void rl_put_line_keys(rl_bytes *to, const void *name, size_t len);
/* Of a read-write lock: the leases of those who read, and a reader's own mark, named as
   Redisson's is. */
void rl_put_leases_key(rl_bytes *to, const void *name, size_t len);
void rl_put_mark_key(rl_bytes *to, const void *name, size_t len,
                     const char *holder);
void rl_put_redisson_rw_channel(rl_bytes *to, const void *name, size_t len);
/* Who has the permits of a semaphore. */
void rl_put_permits_key(rl_bytes *to, const void *name, size_t len);
void rl_put_waits_key(rl_bytes *to, const void *name, size_t len);
void rl_put_redisson_channel(rl_bytes *to, const void *name, size_t len);
void rl_put_redisson_latch_channel(rl_bytes *to, const void *name, size_t len);
void rl_put_redisson_semaphore_channel(rl_bytes *to, const void *name,
                                       size_t len);
void rl_put_tombstone_key(rl_bytes *to, const void *name, size_t len,
                          const char *holder);
void rl_put_bell(rl_bytes *to, const void *name, size_t len, const char *bell);

#endif
