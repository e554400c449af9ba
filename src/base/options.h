/*
 * Option structs of the API carry their size as their first member, so that
 * they can grow: members that the caller's version did not know stay zero.
 */
#ifndef RL_BASE_OPTIONS_H
#define RL_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies what the caller gave (NULL: nothing) over *to, a struct of size bytes.
 * False: its size cannot be, or the program was built for a newer library.
 */
bool rl_options_read(void *to, size_t size, const void *from);

/* A string that the caller need not keep; NULL stays NULL. False: no memory. */
bool rl_options_copy(char **to, const char *from);

#endif
