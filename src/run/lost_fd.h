/* An alarm that is a descriptor; see rlock_lost_fd(). */
#ifndef RL_RUN_LOST_FD_H
#define RL_RUN_LOST_FD_H

#include "hold/alarm.h"

/* With one reference; NULL: out of memory or descriptors, and errno tells. */
rl_alarm *rl_lost_fd_new(const rl_uuid *of);

/* The descriptor, which is open until the alarm is closed. */
int rl_lost_fd(const rl_alarm *a);

#endif
