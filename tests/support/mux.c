/*
 * One thread, which asks for one request after the other and waits for its
 * reply. Clients come and go; the server's connection stays.
 */
#include "mux.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "resp.h"

enum {
    CLIENTS_MAX = 32,
    BYTES_MAX = 65536, /* of a request or a reply */
    PATH_SIZE = sizeof((struct sockaddr_un){0}.sun_path)
};

typedef struct guest {
    int fd;
    size_t len;
    char bytes[BYTES_MAX];
} guest;

struct mux {
    char path[PATH_SIZE];
    char uri[PATH_SIZE + 8];
    int listener, server;
    atomic_int refusals;
    atomic_bool stop;
    test_thread *thread;
    guest *guests[CLIENTS_MAX];
    int count;
};

static int new_socket(const char *path, struct sockaddr_un *addr)
{
    *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(addr->sun_path, sizeof addr->sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(fd >= 0);
    return fd;
}

static void send_all(int fd, const char *bytes, size_t len)
{
    ssize_t n = 0;
    for (; len > 0 && n >= 0; bytes += n, len -= (size_t)n)
        n = send(fd, bytes, len, MSG_NOSIGNAL);
}

static bool needs_its_own_connection(const char *request, size_t len)
{
    static const char *const words[] = {
        "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "CLIENT",
        "HELLO",     "AUTH",        "SELECT",     "MULTI",      "WATCH",
        "MONITOR",   "WAIT",        "RESET"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (resp_word_is(request, len, 0, words[i]))
            return true;
    }
    return false;
}

static void refuse(mux *m, const guest *g)
{
    static const char text[] = "-ERR unsupported command\r\n";
    atomic_fetch_add(&m->refusals, 1);
    send_all(g->fd, text, sizeof text - 1);
}

static void pass(mux *m, const guest *g, size_t request_len)
{
    char reply[BYTES_MAX];
    size_t len = 0;
    ssize_t whole = 0;
    send_all(m->server, g->bytes, request_len);
    while (whole == 0) {
        ssize_t n = recv(m->server, reply + len, sizeof reply - len, 0);
        if (n <= 0)
            FAIL("the server does not answer the multiplexing proxy");
        len += (size_t)n;
        whole = resp_reply_len(reply, len);
    }
    EXPECT_INT(whole, len);
    send_all(g->fd, reply, len);
}

static void serve_requests(mux *m, guest *g)
{
    ssize_t len;
    while ((len = resp_request_len(g->bytes, g->len)) > 0) {
        if (needs_its_own_connection(g->bytes, (size_t)len))
            refuse(m, g);
        else
            pass(m, g, (size_t)len);
        g->len -= (size_t)len;
        memmove(g->bytes, g->bytes + len, g->len);
    }
    EXPECT_INT(len, 0);
}

/* False: it has gone. */
static bool serve(mux *m, guest *g)
{
    ssize_t n = recv(g->fd, g->bytes + g->len, sizeof g->bytes - g->len, 0);
    if (n <= 0)
        return false;
    g->len += (size_t)n;
    serve_requests(m, g);
    return true;
}

static void welcome(mux *m)
{
    EXPECT(m->count < CLIENTS_MAX);
    guest *g = calloc(1, sizeof *g);
    EXPECT(g);
    g->fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
    EXPECT(g->fd >= 0);
    m->guests[m->count++] = g;
}

static void dismiss(mux *m, int i)
{
    close(m->guests[i]->fd);
    free(m->guests[i]);
    m->guests[i] = m->guests[--m->count];
}

static intptr_t run(void *arg)
{
    mux *m = arg;
    while (!atomic_load(&m->stop)) {
        struct pollfd pfds[CLIENTS_MAX + 1];
        int known = m->count;
        for (int i = 0; i < known; i++)
            pfds[i] = (struct pollfd){m->guests[i]->fd, POLLIN, 0};
        pfds[known] = (struct pollfd){m->listener, POLLIN, 0};
        if (poll(pfds, (nfds_t)known + 1, 50) <= 0)
            continue;
        for (int i = known - 1; i >= 0; i--) {
            if (pfds[i].revents && !serve(m, m->guests[i]))
                dismiss(m, i);
        }
        if (pfds[known].revents)
            welcome(m);
    }
    return 0;
}

mux *mux_start(server *sv)
{
    struct timeval limit = {20, 0};
    struct sockaddr_un addr;
    mux *m = calloc(1, sizeof *m);
    EXPECT(m);
    m->server = new_socket(server_path(sv), &addr);
    EXPECT_INT(connect(m->server, (struct sockaddr *)&addr, sizeof addr), 0);
    setsockopt(m->server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    snprintf(m->path, sizeof m->path, "%.*smux",
             (int)strlen(server_path(sv)) - 1, server_path(sv));
    snprintf(m->uri, sizeof m->uri, "unix://%s", m->path);
    m->listener = new_socket(m->path, &addr);
    EXPECT_INT(bind(m->listener, (struct sockaddr *)&addr, sizeof addr), 0);
    EXPECT_INT(listen(m->listener, CLIENTS_MAX), 0);
    m->thread = test_spawn(run, m);
    return m;
}

void mux_stop(mux *m)
{
    atomic_store(&m->stop, true);
    test_join(m->thread);
    while (m->count > 0)
        dismiss(m, 0);
    close(m->listener);
    close(m->server);
    free(m);
}

const char *mux_uri(const mux *m)
{
    return m->uri;
}

int mux_refusals(mux *m)
{
    return atomic_load(&m->refusals);
}
