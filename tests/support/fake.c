#include "fake.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bytes.h"
#include "resp.h"

static void tell(int fd, const char *text)
{
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        return; /* the client has gone, which recv() will tell */
}

/* As many as have come whole; of what is no request, each piece counts. */
static int take_requests(bytes *b)
{
    int n = 0;
    ssize_t len;
    while (b->len && (len = resp_request_len(b->data, b->len)) != 0) {
        bytes_drop(b, len < 0 ? b->len : (size_t)len);
        n++;
    }
    return n;
}

static void converse(const fake *f, int fd)
{
    char heard[16384];
    bytes b = {0};
    ssize_t n;
    const char *const *answer = f->answers;
    if (f->greeting)
        tell(fd, f->greeting);
    while (!f->hangs_up && (n = recv(fd, heard, sizeof heard, 0)) > 0) {
        bytes_append(&b, heard, (size_t)n);
        for (int i = take_requests(&b); i > 0; i--) {
            test_pause_ms(f->delay_ms);
            if (answer && *answer)
                tell(fd, *answer++);
        }
    }
    free(b.data);
}

static intptr_t serve(void *arg)
{
    const fake *f = arg;
    int fd;
    while ((fd = accept(f->listener, NULL, NULL)) >= 0) {
        converse(f, fd);
        close(fd);
    }
    return 0;
}

void fake_start(fake *f)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(f->listener >= 0);
    EXPECT_INT(bind(f->listener, (struct sockaddr *)&addr, len), 0);
    EXPECT_INT(listen(f->listener, 8), 0);
    EXPECT_INT(getsockname(f->listener, (struct sockaddr *)&addr, &len), 0);
    f->port = ntohs(addr.sin_port);
    f->thread = test_spawn(serve, f);
}

void fake_stop(fake *f)
{
    shutdown(f->listener, SHUT_RDWR);
    test_join(f->thread);
    close(f->listener);
}

black_hole black_hole_open(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    black_hole b = {.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                    .last = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    EXPECT(b.listener >= 0 && b.last >= 0);
    EXPECT_INT(bind(b.listener, (struct sockaddr *)&addr, len), 0);
    EXPECT_INT(listen(b.listener, 0), 0);
    EXPECT_INT(getsockname(b.listener, (struct sockaddr *)&addr, &len), 0);
    EXPECT_INT(connect(b.last, (struct sockaddr *)&addr, len), 0);
    b.port = ntohs(addr.sin_port);
    return b;
}

void black_hole_close(black_hole *b)
{
    close(b->last);
    close(b->listener);
}
