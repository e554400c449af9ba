/* Characters of UTF-8, as RFC 3629 has them; a NUL is none here. */
#ifndef RL_BASE_UTF8_H
#define RL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* So many of len bytes, at least one, are the first character; 0: there is
   none that begins so. */
size_t rl_utf8_character(const char *text, size_t len);

/* Is it nothing but characters? */
bool rl_utf8_is(const char *text, size_t len);

#endif
