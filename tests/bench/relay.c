/*
 * A pipe is one direction of a connection: what is read goes into its queue,
 * with the time at which it is due at the other side.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "servers.h"

#define CONNECTIONS 512
#define CHUNK       16384
#define FULL        1024 /* chunks; then it is not read from */

typedef struct chunk {
    struct chunk *next;
    int64_t due_ns;
    size_t begin, end;
    char bytes[CHUNK];
} chunk;

typedef struct pipe_end {
    int fd;
    chunk *first, **last; /* for fd, from the other end */
    size_t queued;
    bool blocked; /* fd takes no more */
} pipe_end;

typedef struct relay {
    int listener;
    const char *server;
    bench_round_trip_us *us;
    size_t n; /* ends; two in a row are a connection */
    pipe_end end[2 * CONNECTIONS];
} relay;

static struct sockaddr_un address(const char *uri)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", uri + strlen("unix://"));
    return a;
}

static void add_end(relay *r, int fd)
{
    pipe_end *e = &r->end[r->n++];
    *e = (pipe_end){.fd = fd};
    e->last = &e->first;
}

static void accept_one(relay *r)
{
    struct sockaddr_un a = address(r->server);
    int client = accept(r->listener, NULL, NULL);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bench_check(client >= 0 && server >= 0 && r->n < 2 * CONNECTIONS &&
                    connect(server, (struct sockaddr *)&a, sizeof a) == 0,
                "the relay cannot connect");
    add_end(r, client);
    add_end(r, server);
}

static void close_pair(relay *r, size_t i)
{
    for (size_t k = i; k < i + 2; k++) {
        pipe_end *e = &r->end[k];
        for (chunk *c = e->first, *next; c; c = next) {
            next = c->next;
            free(c);
        }
        if (e->fd >= 0)
            close(e->fd);
        *e = (pipe_end){.fd = -1};
    }
}

/* False: the other side has closed. */
static bool take_in(relay *r, size_t i)
{
    pipe_end *to = &r->end[i ^ 1];
    chunk *c = malloc(sizeof *c);
    bench_check(c != NULL, "out of memory");
    ssize_t n = recv(r->end[i].fd, c->bytes, sizeof c->bytes, MSG_DONTWAIT);
    if (n <= 0) {
        free(c);
        return n < 0 && errno == EAGAIN;
    }
    c->next = NULL;
    c->begin = 0;
    c->end = (size_t)n;
    c->due_ns = bench_now_ns() + atomic_load(r->us) * 500;
    *to->last = c;
    to->last = &c->next;
    to->queued++;
    return true;
}

/* False: the connection has broken. */
static bool let_out(pipe_end *e, int64_t now_ns)
{
    e->blocked = false;
    for (chunk *c; (c = e->first) != NULL && c->due_ns <= now_ns;) {
        ssize_t n = send(e->fd, c->bytes + c->begin, c->end - c->begin,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return (e->blocked = errno == EAGAIN);
        c->begin += (size_t)n;
        if (c->begin < c->end)
            continue;
        e->first = c->next;
        if (!e->first)
            e->last = &e->first;
        e->queued--;
        free(c);
    }
    return true;
}

static void wait_for_work(relay *r, struct pollfd p[])
{
    int64_t due_ns = bench_now_ns() + 1000000000, now_ns = bench_now_ns();
    for (size_t i = 0; i < r->n; i++) {
        const pipe_end *e = &r->end[i];
        bool reads = r->end[i ^ 1].queued < FULL;
        p[i] = (struct pollfd){.fd = e->fd, .events = reads ? POLLIN : 0};
        if (e->blocked)
            p[i].events |= POLLOUT;
        else if (e->first && e->first->due_ns < due_ns)
            due_ns = e->first->due_ns;
    }
    p[r->n] = (struct pollfd){.fd = r->listener, .events = POLLIN};
    int64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
    struct timespec limit = {.tv_sec = left_ns / 1000000000,
                             .tv_nsec = left_ns % 1000000000};
    ppoll(p, r->n + 1, &limit, NULL);
}

static void serve(relay *r)
{
    static struct pollfd p[2 * CONNECTIONS + 1];
    for (;;) {
        size_t n = r->n;
        wait_for_work(r, p);
        int64_t now_ns = bench_now_ns();
        for (size_t i = 0; i < n; i++) {
            bool good = r->end[i].fd < 0 || ((!p[i].revents || take_in(r, i)) &&
                                             let_out(&r->end[i], now_ns));
            if (!good)
                close_pair(r, i & ~(size_t)1);
        }
        if (p[n].revents)
            accept_one(r);
    }
}

void bench_start_relay(const char *uri, bench_round_trip_us *us, char far[128])
{
    static relay r;
    snprintf(far, 128, "%s.far", uri);
    struct sockaddr_un a = address(far);
    r = (relay){.server = uri, .us = us};
    r.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bench_check(r.listener >= 0 &&
                    bind(r.listener, (struct sockaddr *)&a, sizeof a) == 0 &&
                    listen(r.listener, CONNECTIONS) == 0,
                "the relay cannot listen");
    if (bench_fork())
        serve(&r);
    close(r.listener);
}
