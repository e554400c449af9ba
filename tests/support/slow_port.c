#include "slow_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 64 };

typedef struct way {
    int client, server;
    int allowed; /* bytes from the server */
    bool over;
} way;

struct slow_port {
    test_thread *thread;
    int listener, port, to;
    atomic_int allowed, passed, connections;
    atomic_bool one_by_one, stops;
    way ways[MOST];
    int n;
};

static struct sockaddr_in address(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void accept_one(slow_port *t)
{
    struct sockaddr_in at = address(t->to);
    int on = 1;
    way w = {.client = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC),
             .server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
             .allowed = atomic_load(&t->allowed)};
    EXPECT(w.client >= 0 && t->n < MOST);
    EXPECT_INT(connect(w.server, (struct sockaddr *)&at, sizeof at), 0);
    setsockopt(w.client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(w.server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    atomic_store(&t->passed, 0);
    atomic_fetch_add(&t->connections, 1);
    t->ways[t->n++] = w;
}

static void pass(slow_port *t, way *w, bool down)
{
    char bytes[4096];
    size_t room = sizeof bytes;
    if (down) {
        room = w->allowed < (int)room ? (size_t)w->allowed : room;
        room = atomic_load(&t->one_by_one) ? 1 : room;
    }
    ssize_t n = recv(down ? w->server : w->client, bytes, room, 0);
    w->over = n <= 0 || send(down ? w->client : w->server, bytes, (size_t)n,
                             MSG_NOSIGNAL) != n;
    if (down && n > 0) {
        w->allowed -= (int)n;
        atomic_fetch_add(&t->passed, (int)n);
    }
}

static void serve(slow_port *t)
{
    struct pollfd p[1 + 2 * MOST] = {{.fd = t->listener, .events = POLLIN}};
    int n = t->n;
    for (int i = 0; i < n; i++) {
        way *w = &t->ways[i];
        p[1 + 2 * i] =
            (struct pollfd){.fd = w->over ? -1 : w->client, .events = POLLIN};
        p[2 + 2 * i] =
            (struct pollfd){.fd = w->over || w->allowed == 0 ? -1 : w->server,
                            .events = POLLIN};
    }
    if (poll(p, (nfds_t)(1 + 2 * n), 10) <= 0)
        return;
    for (int i = 0; i < n; i++) {
        if (p[1 + 2 * i].revents)
            pass(t, &t->ways[i], false);
        if (p[2 + 2 * i].revents && !t->ways[i].over)
            pass(t, &t->ways[i], true);
        if (t->ways[i].over) {
            shutdown(t->ways[i].client, SHUT_RDWR);
            shutdown(t->ways[i].server, SHUT_RDWR);
        }
    }
    if (p[0].revents)
        accept_one(t);
}

static intptr_t run(void *arg)
{
    slow_port *t = arg;
    while (!atomic_load(&t->stops))
        serve(t);
    for (int i = 0; i < t->n; i++) {
        close(t->ways[i].client);
        close(t->ways[i].server);
    }
    return 0;
}

slow_port *slow_port_start(int port)
{
    struct sockaddr_in at = address(0);
    socklen_t len = sizeof at;
    slow_port *t = calloc(1, sizeof *t);
    EXPECT(t);
    t->to = port;
    atomic_init(&t->allowed, SLOW_PORT_ALL);
    t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_INT(bind(t->listener, (struct sockaddr *)&at, len), 0);
    EXPECT_INT(listen(t->listener, MOST), 0);
    EXPECT_INT(getsockname(t->listener, (struct sockaddr *)&at, &len), 0);
    t->port = ntohs(at.sin_port);
    t->thread = test_spawn(run, t);
    return t;
}

void slow_port_stop(slow_port *t)
{
    atomic_store(&t->stops, true);
    test_join(t->thread);
    close(t->listener);
    free(t);
}

int slow_port_port(const slow_port *t)
{
    return t->port;
}

void slow_port_stall_after(slow_port *t, int bytes)
{
    atomic_store(&t->allowed, bytes);
}

void slow_port_one_by_one(slow_port *t)
{
    atomic_store(&t->one_by_one, true);
}

int slow_port_passed(const slow_port *t)
{
    return atomic_load(&t->passed);
}

int slow_port_connections(const slow_port *t)
{
    return atomic_load(&t->connections);
}
