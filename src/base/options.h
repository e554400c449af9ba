/*
 * Structs of the API are given with their size, so that they can grow. Those of
 * options carry it as their first member: members that the caller's version did
 * not know stay zero. Those that the library fills come with an argument.
 */
#ifndef RL_BASE_OPTIONS_H
#define RL_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* The size of a struct whose last member this one is. */
#define RL_SIZE_UP_TO(type, member)                                            \
    (offsetof(type, member) + sizeof((type){0}.member))

/*
 * Copies what the caller gave (NULL: nothing) over *to, a struct of size bytes.
 * False: its size cannot be, or the program was built for a newer library.
 */
bool rl_options_read(void *to, size_t size, const void *from);

/*
 * The other way round: fills what the caller gave, given bytes, of a struct of
 * size bytes; what that lacks is zeroed. The struct had `least` bytes when it
 * was first given with its size. False: given cannot be.
 */
bool rl_struct_fill(void *to, size_t given, const void *from, size_t size,
                    size_t least);

/* A string that the caller need not keep; NULL stays NULL. False: no memory. */
bool rl_options_copy(char **to, const char *from);

#endif
