/* Who holds a lock, as the inspect scripts tell. */
#ifndef RL_LOCK_HOLDER_H
#define RL_LOCK_HOLDER_H

#include <rlock/lock.h>

#include "wire/script.h"

/* RLOCK_NOT_HELD: nobody does. Otherwise *f is filled. */
rlock_status rl_read_holder(const rl_answer *a, rlock_holder *out, rl_fault *f);

#endif
