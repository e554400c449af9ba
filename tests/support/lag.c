#include "lag.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 100, PART = 16384 };

typedef struct parcel {
    struct parcel *next;
    int64_t due_us;
    size_t len;
    char bytes[PART];
} parcel;

/* One direction of a connection. */
typedef struct lane {
    int from, to;
    bool ended;      /* the sender has closed */
    int64_t from_us; /* nothing arrives before */
    parcel *first, *last;
} lane;

struct lag {
    test_thread *thread;
    server *sv;    /* NULL: a port */
    server *other; /* every other connection is to this one; or NULL */
    int to_port, port, listener;
    char uri[160];
    atomic_int one_way_ms;
    atomic_bool stops;
    lane lane[2 * MOST]; /* there and back, of one connection side by side */
    size_t len;
};

static int open_socket(struct sockaddr_un *at, const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(fd >= 0 && strlen(path) < sizeof at->sun_path);
    at->sun_family = AF_UNIX;
    memcpy(at->sun_path, path, strlen(path) + 1);
    return fd;
}

static int connect_socket(const lag *l)
{
    struct sockaddr_un at = {0};
    bool other = l->other && l->len / 2 % 2;
    int fd = open_socket(&at, server_path(other ? l->other : l->sv));
    EXPECT_INT(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static int open_port(struct sockaddr_in *at, int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(fd >= 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return fd;
}

static int connect_port(const lag *l)
{
    struct sockaddr_in at;
    int fd = open_port(&at, l->to_port);
    EXPECT_INT(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

static void accept_one(lag *l)
{
    int client = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC);
    int sv = l->sv ? connect_socket(l) : connect_port(l);
    EXPECT(client >= 0 && l->len < 2 * (size_t)MOST);
    int64_t way_us = l->sv ? 0 : atomic_load(&l->one_way_ms) * INT64_C(1000);
    l->lane[l->len++] =
        (lane){.from = client, .to = sv, .from_us = test_now_us() + 3 * way_us};
    l->lane[l->len++] = (lane){.from = sv, .to = client};
}

static void take_in(lane *x, int one_way_ms)
{
    parcel *p = malloc(sizeof *p);
    EXPECT(p);
    ssize_t n = recv(x->from, p->bytes, sizeof p->bytes, 0);
    if (n <= 0) {
        free(p);
        x->ended = true;
        return;
    }
    p->next = NULL;
    p->len = (size_t)n;
    p->due_us = test_now_us() + one_way_ms * 1000;
    if (p->due_us < x->from_us)
        p->due_us = x->from_us;
    *(x->first ? &x->last->next : &x->first) = p;
    x->last = p;
}

static void hand_over(lane *x, int64_t now_us)
{
    while (x->first && x->first->due_us <= now_us) {
        parcel *p = x->first;
        x->first = p->next;
        size_t sent = 0;
        while (sent < p->len) {
            ssize_t n =
                send(x->to, p->bytes + sent, p->len - sent, MSG_NOSIGNAL);
            if (n <= 0)
                break; /* who listened has gone */
            sent += (size_t)n;
        }
        free(p);
    }
    if (!x->first && x->ended && x->to >= 0) {
        shutdown(x->to, SHUT_WR);
        x->to = -1; /* the other lane closes it */
    }
}

static int next_due_ms(const lag *l, int64_t now_us)
{
    int64_t least_us = 20000; /* for stops */
    for (size_t i = 0; i < l->len; i++) {
        const parcel *p = l->lane[i].first;
        if (p && p->due_us - now_us < least_us)
            least_us = p->due_us - now_us;
    }
    return least_us <= 0 ? 0 : (int)((least_us + 999) / 1000);
}

static intptr_t carry(void *arg)
{
    lag *l = arg;
    while (!atomic_load(&l->stops)) {
        struct pollfd fds[2 * MOST + 1];
        size_t n = l->len;
        for (size_t i = 0; i < n; i++)
            fds[i] = (struct pollfd){
                .fd = l->lane[i].ended ? -1 : l->lane[i].from,
                .events = POLLIN,
            };
        fds[n] = (struct pollfd){.fd = l->listener, .events = POLLIN};
        poll(fds, n + 1, next_due_ms(l, test_now_us()));
        for (size_t i = 0; i < n; i++) {
            if (fds[i].revents)
                take_in(&l->lane[i], atomic_load(&l->one_way_ms));
            hand_over(&l->lane[i], test_now_us());
        }
        if (fds[n].revents)
            accept_one(l);
    }
    return 0;
}

lag *lag_start_spread(server *sv, server *other)
{
    struct sockaddr_un at = {0};
    lag *l = calloc(1, sizeof *l);
    EXPECT(l);
    l->sv = sv;
    l->other = other;
    const char *path = server_file(sv, "lag");
    snprintf(l->uri, sizeof l->uri, "unix://%s", path);
    l->listener = open_socket(&at, path);
    EXPECT_INT(bind(l->listener, (struct sockaddr *)&at, sizeof at), 0);
    EXPECT_INT(listen(l->listener, MOST), 0);
    l->thread = test_spawn(carry, l);
    return l;
}

lag *lag_start(server *sv)
{
    return lag_start_spread(sv, NULL);
}

lag *lag_start_tcp(int port)
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    lag *l = calloc(1, sizeof *l);
    EXPECT(l);
    l->to_port = port;
    l->listener = open_port(&at, 0);
    EXPECT_INT(bind(l->listener, (struct sockaddr *)&at, sizeof at), 0);
    EXPECT_INT(listen(l->listener, MOST), 0);
    EXPECT_INT(getsockname(l->listener, (struct sockaddr *)&at, &len), 0);
    l->port = ntohs(at.sin_port);
    snprintf(l->uri, sizeof l->uri, "redis://127.0.0.1:%d", l->port);
    l->thread = test_spawn(carry, l);
    return l;
}

int lag_port(const lag *l)
{
    return l->port;
}

void lag_stop(lag *l)
{
    atomic_store(&l->stops, true);
    test_join(l->thread);
    for (size_t i = 0; i < l->len; i++) {
        close(l->lane[i].from);
        while (l->lane[i].first) {
            parcel *p = l->lane[i].first;
            l->lane[i].first = p->next;
            free(p);
        }
    }
    close(l->listener);
    if (l->sv)
        unlink(l->uri + strlen("unix://"));
    free(l);
}

const char *lag_uri(const lag *l)
{
    return l->uri;
}

void lag_set(lag *l, int one_way_ms)
{
    atomic_store(&l->one_way_ms, one_way_ms);
}
