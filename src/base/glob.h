/* Patterns over bytes, as Redis has them: ? * [a-z] [^a-z] and a backslash. */
#ifndef RL_BASE_GLOB_H
#define RL_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* Any text is a pattern; it takes no more than one times the other's length. */
bool rl_glob_fits(const char *glob, const char *text, size_t len);

#endif
