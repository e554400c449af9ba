#include "bytes.h"

#include <errno.h>
#include <sys/socket.h>

#include "test.h"

void bytes_append(bytes *b, const char *p, size_t n)
{
    if (b->len + n > b->room) {
        b->room = 2 * (b->len + n);
        b->data = realloc(b->data, b->room);
        EXPECT(b->data);
    }
    if (n)
        memcpy(b->data + b->len, p, n);
    b->len += n;
}

void bytes_drop(bytes *b, size_t n)
{
    b->len -= n;
    if (b->len)
        memmove(b->data, b->data + n, b->len);
}

void bytes_move(bytes *from, bytes *to, size_t n)
{
    bytes_append(to, from->data, n);
    bytes_drop(from, n);
}

void bytes_send(int fd, bytes *b)
{
    while (b->len) {
        ssize_t n = send(fd, b->data, b->len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        bytes_drop(b, n < 0 ? b->len : (size_t)n);
    }
}
