/* Bytes that are on their way from one socket to another. */
#ifndef TEST_SUPPORT_BYTES_H
#define TEST_SUPPORT_BYTES_H

#include <stddef.h>

typedef struct bytes {
    char *data;
    size_t len, room;
} bytes;

void bytes_append(bytes *b, const char *p, size_t n);
/* The first n. */
void bytes_drop(bytes *b, size_t n);
void bytes_move(bytes *from, bytes *to, size_t n);
/* Sends what can be sent; what nobody will read any more is dropped. */
void bytes_send(int fd, bytes *b);

#endif
