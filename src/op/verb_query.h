/* Who holds a lock, as the inspect scripts tell. */
#ifndef RL_OP_VERB_QUERY_H
#define RL_OP_VERB_QUERY_H

#include <rlock/lock.h>

#include "base/error.h"
#include "wire/reply.h"

/* For a part of a holder id, which is cut at colons, and which people read. */
void rl_holder_clean(char *text);

/*
 * Fills what out->raw says: host:pid:tid:uuid. False: another program wrote it,
 * and nothing is filled.
 */
bool rl_parse_holder(rlock_holder *out);

/*
 * Reads what rlock_holder.raw was: out->raw is the holder id by which the
 * scripts of a layout know the hold, and the rest is what that says. False: the
 * text is no hold's.
 */
bool rl_read_holder_id(rlock_layout layout, const char *text,
                       rlock_holder *out);

/* The uuid tells: clients of different nodes may name the host differently. */
bool rl_is_same_hold(const rlock_holder *a, const rlock_holder *b);

/*
 * BUSY, with who has the lock and for how long, as two items of an answer tell:
 * "held by web3:18201:18207 for 2.3 s". "held by another", if they do not.
 */
void rl_fault_busy(rl_fault *f, const rl_item *who, size_t n);

/* RLOCK_NOT_HELD: nobody does. Otherwise *f is filled. */
rlock_status rl_read_holder(const rl_reply *r, rlock_holder *out, rl_fault *f);

#endif
