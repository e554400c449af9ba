/* The options of a client, for the files that build one. */
#ifndef RL_CLIENT_OPTIONS_H
#define RL_CLIENT_OPTIONS_H

#include "op/core.h"

/* Otherwise the thread's error is set. */
rlock_status rl_client_options_read(rlock_options *to,
                                    const rlock_options *from);

void rl_settings_read(rl_settings *set, const rlock_options *o);

#endif
