#include "network.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

struct network {
    int near, far; /* the namespaces */
    int control;   /* a socket on the far side, to switch its link */
};

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *fmt, ...)
{
    char command[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(command, sizeof command, fmt, args);
    va_end(args);
    int status = system(command);
    if (status != 0)
        FAIL("\"%s\" ended with %d", command, status);
}

/* From here on the thread is in a new namespace, whose descriptor it is. */
static int enter_new(void)
{
    if (unshare(CLONE_NEWNET) != 0)
        SKIP("no right to make a network namespace here");
    int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    EXPECT(fd >= 0);
    return fd;
}

static void enter(int namespace)
{
    EXPECT_INT(setns(namespace, CLONE_NEWNET), 0);
}

static bool can_link(void)
{
    return system("ip link add near type veth peer name far >/dev/null 2>&1") ==
           0;
}

network *network_new(void)
{
    network *n = calloc(1, sizeof *n);
    EXPECT(n);
    n->far = enter_new();
    run("ip link set lo up");
    n->control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    EXPECT(n->control >= 0);
    n->near = enter_new();
    if (!can_link())
        SKIP("no virtual links, or no ip(8), here");
    run("ip link set far netns /proc/%d/fd/%d", (int)getpid(), n->far);
    run("ip link set lo up");
    run("ip addr add 10.99.0.1/24 dev near");
    run("ip link set near up");
    /* Nobody has this address: what is sent there, the far side drops. */
    run("ip neigh add 10.99.0.3 lladdr 02:00:00:00:00:03 dev near");
    enter(n->far);
    run("ip addr add 10.99.0.2/24 dev far");
    run("ip link set far up");
    enter(n->near);
    return n;
}

void network_free(network *n)
{
    close(n->control);
    close(n->far);
    close(n->near);
    free(n);
}

static bool answers(void)
{
    struct timeval limit = {1, 0};
    redisContext *cx = redisConnectWithTimeout("10.99.0.2", 6379, limit);
    EXPECT(cx);
    bool connected = cx->err == 0;
    redisFree(cx);
    return connected;
}

server *network_server(network *n)
{
    enter(n->far);
    server *sv =
        server_start("--port 6379 --bind 10.99.0.2 --protected-mode no");
    enter(n->near);
    EVENTUALLY(10000, answers()); /* a new link takes a moment */
    return sv;
}

void network_link(network *n, bool up)
{
    struct ifreq link = {.ifr_name = "far"};
    EXPECT_INT(ioctl(n->control, SIOCGIFFLAGS, &link), 0);
    if (up)
        link.ifr_flags |= IFF_UP;
    else
        link.ifr_flags &= ~IFF_UP;
    EXPECT_INT(ioctl(n->control, SIOCSIFFLAGS, &link), 0);
}
