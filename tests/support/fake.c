#include "fake.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static void tell(int fd, const char *text)
{
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        return; /* the client has gone, which recv() will tell */
}

static void converse(const fake *f, int fd)
{
    char heard[16384];
    const char *const *answer = f->answers;
    if (f->greeting)
        tell(fd, f->greeting);
    while (!f->hangs_up && recv(fd, heard, sizeof heard, 0) > 0) {
        test_pause_ms(f->delay_ms);
        if (answer && *answer)
            tell(fd, *answer++);
    }
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
