/*
 * Just enough of RESP (2 and 3) to tell where a request or a reply ends and
 * what its first words are.
 */
#ifndef TEST_SUPPORT_RESP_H
#define TEST_SUPPORT_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Bytes of the first reply or request of the len bytes at p; 0: it is not
 * complete yet; -1: this is no RESP. A request may also be an inline command.
 */
ssize_t resp_reply_len(const char *p, size_t len);
ssize_t resp_request_len(const char *p, size_t len);

/* The string (not terminated) that is element i of the array at p, which is
   complete; false if there is none, or it is no string. */
bool resp_word(const char *p, size_t len, int i, const char **word,
               size_t *word_len);
/* Is element i this text, in upper or lower case? */
bool resp_word_is(const char *p, size_t len, int i, const char *text);
/* Elements of the array at p; 0 if it is none. */
int resp_words(const char *p, size_t len);

#endif
