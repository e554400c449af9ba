/*
 * Is the hiredis that this program runs the one that we were compiled for?
 */
#ifndef RL_NET_HIREDIS_ABI_H
#define RL_NET_HIREDIS_ABI_H

#include <stdbool.h>

/*
 * False: *why says what differs, or is NULL for lack of memory. Costs a few
 * allocations, does no I/O, and touches nothing that others use.
 */
bool rl_hiredis_abi_fits(const char **why);

#endif
