#include "descriptor.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

bool fd_is_open(int fd)
{
    char path[64], file[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return readlink(path, file, sizeof file - 1) > 0 &&
           strcmp(file, "anon_inode:[eventfd]") == 0;
}

static bool is_readable_within(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) == 1 && p.revents == POLLIN;
}

bool fd_is_readable(int fd)
{
    return is_readable_within(fd, 0);
}

int fds_open(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    EXPECT(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

int64_t fd_wait(int fd, int limit_ms)
{
    if (!is_readable_within(fd, limit_ms))
        FAIL("descriptor %d is not readable within %d ms", fd, limit_ms);
    return test_now_ms();
}

static int lost_fd(rlock *lk)
{
    int fd = rlock_lost_fd(lk);
    if (fd < 0)
        FAIL("no descriptor: %s", rlock_last_error()->message);
    EXPECT(fcntl(fd, F_GETFD) & FD_CLOEXEC && fd_is_open(fd));
    return fd;
}

int lost_fd_of_held(rlock *lk)
{
    int fd = lost_fd(lk);
    EXPECT(!fd_is_readable(fd));
    return fd;
}

int lost_fd_of_lost(rlock *lk)
{
    int fd = lost_fd(lk);
    EXPECT(fd_is_readable(fd));
    return fd;
}

void expect_no_lost_fd(rlock *lk, rlock_status why)
{
    EXPECT_INT(rlock_lost_fd(lk), -1);
    EXPECT_STATUS(rlock_last_error()->status, why);
}
