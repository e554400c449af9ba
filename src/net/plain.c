#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/os.h"
#include "net/transport.h"

static bool would_block(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static ssize_t broken(rl_fault *f, const char *what)
{
    int err = errno;
    rl_fault_set(f, RLOCK_EIO, err, "%s: %s", what, strerror(err));
    return -1;
}

ssize_t rl_plain_write(rl_transport *t, const char *bytes, size_t n,
                       rl_fault *f)
{
    ssize_t sent = rl_os_send(t->fd, bytes, n);
    if (would_block(sent))
        return 0;
    return sent < 0 ? broken(f, "cannot send") : sent;
}

ssize_t rl_plain_read(rl_transport *t, char *bytes, size_t room, rl_fault *f)
{
    ssize_t n = recv(t->fd, bytes, room, MSG_DONTWAIT);
    if (would_block(n))
        return 0;
    if (n == 0) {
        rl_fault_set(f, RLOCK_EIO, 0, "connection closed by the server");
        return -1;
    }
    return n < 0 ? broken(f, "no reply") : n;
}

static void plain_close(rl_transport *t)
{
    close(t->fd);
}

static const rl_transport_ops plain_ops = {rl_plain_write, rl_plain_read,
                                           plain_close};

rl_transport rl_plain_transport(int fd)
{
    return (rl_transport){.ops = &plain_ops, .fd = fd};
}
