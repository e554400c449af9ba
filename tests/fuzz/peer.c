#include "peer.h"

#include <hiredis/hiredis.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "answer.h"
#include "resp.h"

#define LINES_MAX   64
#define DOORS_MAX   4
#define REQUEST_MAX (32 * 1024)

/* Of the ways to deliver an answer. */
#define TWICE 12

/* How often the peer looks whether the client has read a piece. */
#define PATIENCE 2000

/* A connection, as the server sees it. */
typedef struct line {
    int fd;        /* -1: it is over */
    unsigned door; /* which client's */
    bool background, subscribed;
    bytes late;   /* an answer that is held back until the next request */
    size_t asked; /* bytes of the requests that are not answered yet */
    char *request;
} line;

typedef struct door {
    peer *p;
    atomic_uint opened;
    int listen_fd; /* -1: contexts are made here instead */
    char uri[64];
} door;

struct peer {
    bool polite; /* fixed */
    pthread_t thread;
    int wake_fd;
    atomic_bool stopping;
    atomic_uint grants;
    uint64_t token; /* the peer's thread's, as what follows the mutex is not */
    pthread_mutex_t mutex; /* guards all below */
    feed in, background;
    door door[DOORS_MAX];
    unsigned doors;
    line line[LINES_MAX];
    unsigned lines;
};

/* --- connections --------------------------------------------------------- */

static void hang_up(line *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

static void send_bytes(line *l, const char *at, size_t len)
{
    if (l->fd >= 0 &&
        send(l->fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len)
        hang_up(l);
}

/* Until the client has read what there is. */
static void wait_until_read(const line *l)
{
    int unread = 1;
    for (int i = 0; i < PATIENCE && unread > 0; i++) {
        sched_yield();
        if (l->fd < 0 || ioctl(l->fd, SIOCOUTQ, &unread) != 0)
            return;
    }
}

static void drip(line *l, const bytes *b, size_t piece)
{
    for (size_t at = 0; at < b->len; at += piece) {
        size_t left = b->len - at;
        send_bytes(l, b->at + at, left < piece ? left : piece);
        wait_until_read(l);
    }
}

static void deliver(line *l, const bytes *b, feed *in, unsigned how)
{
    size_t cut;
    switch (how) {
    default:
        send_bytes(l, b->at, b->len);
        break;
    case 10:
        cut = feed_byte(in);
        send_bytes(l, b->at, cut < b->len ? cut : b->len);
        hang_up(l);
        break;
    case 11:
        drip(l, b, 1U + feed_byte(in));
        break;
    case TWICE:
        send_bytes(l, b->at, b->len);
        send_bytes(l, b->at, b->len);
        break;
    case 13:
        hang_up(l);
        break;
    case 14:
        break;
    case 15:
        l->late = *b;
        break;
    }
}

/* Rings the bells of all that listen. */
static void ring(peer *p, feed *in)
{
    char *name = feed_text(in);
    for (unsigned i = 0; i < p->lines; i++) {
        bytes b = {0};
        if (!p->line[i].subscribed)
            continue;
        make_message(&b, *name ? name : PEER_LOCK);
        send_bytes(&p->line[i], b.at, b.len);
    }
    free(name);
}

static void answer(peer *p, line *l, const request *r)
{
    feed none = {0};
    feed *in = l->background ? &p->background : &p->in;
    if (p->polite && request_is_greeting(r))
        in = &none;
    unsigned what = feed_byte(in);
    bytes b = {0};
    send_bytes(l, l->late.at, l->late.len);
    l->late.len = 0;
    make_answer(&b, in, what % 16, r, &p->token);
    /* Before they are sent; it may be sent twice. */
    atomic_fetch_add(&p->grants, (what / 16 == TWICE ? 2 : 1) *
                                     answer_grants(what % 16, r));
    deliver(l, &b, in, what / 16);
    if (what % 16 == 15)
        ring(p, in);
    if (r->what == ASK_SUBSCRIBE || r->what == ASK_UNSUBSCRIBE)
        l->subscribed = r->what == ASK_SUBSCRIBE;
}

static void answer_all(peer *p, line *l)
{
    while (l->fd >= 0) {
        ssize_t n = resp_request_len(l->request, l->asked);
        if (n <= 0)
            return;
        request r = {.at = l->request,
                     .len = (size_t)n,
                     .door = l->door,
                     .subscribed = l->subscribed};
        r.what = request_asks(&r);
        answer(p, l, &r);
        if (l->fd < 0)
            return;
        l->asked -= (size_t)n;
        memmove(l->request, l->request + n, l->asked);
    }
}

static void listen_to(peer *p, line *l)
{
    ssize_t n = recv(l->fd, l->request + l->asked, REQUEST_MAX - l->asked,
                     MSG_DONTWAIT);
    if (n <= 0) {
        hang_up(l);
        return;
    }
    l->asked += (size_t)n;
    answer_all(p, l);
}

static void add_line(peer *p, int fd, unsigned door, bool background)
{
    line *l = &p->line[p->lines++];
    *l = (line){.fd = fd, .door = door, .background = background};
    l->request = malloc(REQUEST_MAX);
    eventfd_write(p->wake_fd, 1);
}

/* How the next connection begins: from 12 on it is of no use. */
static unsigned next_way(peer *p, door *d, bool *first)
{
    *first = d->opened++ == 0;
    unsigned how = p->polite && *first ? 0 : feed_choice(&p->background, 16);
    return p->lines == LINES_MAX ? 15 : how;
}

static void let_in(peer *p, door *d)
{
    bool first;
    int fd = accept4(d->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (next_way(p, d, &first) >= 12)
        close(fd);
    else
        add_line(p, fd, (unsigned)(d - p->door), first);
}

/* The lines, then the doors, then who wakes us. */
static unsigned watch(peer *p, struct pollfd *all)
{
    pthread_mutex_lock(&p->mutex);
    unsigned n = p->lines;
    for (unsigned i = 0; i < n; i++)
        all[i] = (struct pollfd){.fd = p->line[i].fd, .events = POLLIN};
    for (unsigned i = 0; i < DOORS_MAX; i++)
        all[n + i] =
            (struct pollfd){.fd = p->door[i].listen_fd, .events = POLLIN};
    pthread_mutex_unlock(&p->mutex);
    all[n + DOORS_MAX] = (struct pollfd){.fd = p->wake_fd, .events = POLLIN};
    return n;
}

static void *run(void *arg)
{
    peer *p = arg;
    struct pollfd all[LINES_MAX + DOORS_MAX + 1];
    while (!atomic_load(&p->stopping)) {
        unsigned n = watch(p, all);
        poll(all, n + DOORS_MAX + 1, -1);
        if (all[n + DOORS_MAX].revents)
            eventfd_read(p->wake_fd, &(eventfd_t){0});
        pthread_mutex_lock(&p->mutex);
        for (unsigned i = 0; i < n; i++) {
            if (all[i].revents && p->line[i].fd >= 0)
                listen_to(p, &p->line[i]);
        }
        for (unsigned i = 0; i < DOORS_MAX; i++) {
            if (all[n + i].revents)
                let_in(p, &p->door[i]);
        }
        pthread_mutex_unlock(&p->mutex);
    }
    return NULL;
}

/* --- for the client and its caller --------------------------------------- */

peer *peer_start(feed in, feed background, bool polite)
{
    peer *p = calloc(1, sizeof *p);
    p->in = in;
    p->background = background;
    p->polite = polite;
    p->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    for (unsigned i = 0; i < DOORS_MAX; i++)
        p->door[i] = (door){.p = p, .listen_fd = -1};
    pthread_mutex_init(&p->mutex, NULL);
    MUST(p->wake_fd >= 0 && pthread_create(&p->thread, NULL, run, p) == 0);
    return p;
}

static const char *path_of(const door *d)
{
    return d->uri + strlen("unix://");
}

static void shut(door *d)
{
    if (d->listen_fd < 0)
        return;
    close(d->listen_fd);
    unlink(path_of(d));
}

void peer_stop(peer *p)
{
    atomic_store(&p->stopping, true);
    eventfd_write(p->wake_fd, 1);
    pthread_join(p->thread, NULL);
    for (unsigned i = 0; i < p->lines; i++) {
        hang_up(&p->line[i]);
        free(p->line[i].request);
    }
    for (unsigned i = 0; i < p->doors; i++)
        shut(&p->door[i]);
    close(p->wake_fd);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

void *peer_door(peer *p)
{
    return &p->door[p->doors++];
}

const char *peer_uri(void *of)
{
    door *d = of;
    peer *p = d->p;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(d->uri, sizeof d->uri, "unix:///tmp/rlock-fuzz-%d-%d",
             (int)getpid(), (int)(d - p->door));
    strcpy(at.sun_path, path_of(d));
    unlink(at.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    MUST(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
         listen(fd, LINES_MAX) == 0);
    pthread_mutex_lock(&p->mutex);
    d->listen_fd = fd;
    pthread_mutex_unlock(&p->mutex);
    eventfd_write(p->wake_fd, 1);
    return d->uri;
}

/* None, one that is over already, or one that cannot be used. */
static redisContext *connect_badly(unsigned how)
{
    redisContext *ctx = NULL;
    if (how == 13)
        ctx = redisConnectUnix("/nonexistent/socket");
    if (how == 14)
        ctx = redisConnectFd(-1);
    return ctx;
}

struct redisContext *peer_connect(void *arg)
{
    door *d = arg;
    peer *p = d->p;
    int fd[2];
    redisContext *ctx = NULL;
    pthread_mutex_lock(&p->mutex);
    bool first;
    unsigned how = next_way(p, d, &first);
    if (how >= 12) {
        ctx = connect_badly(how);
    } else {
        MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
        add_line(p, fd[1], (unsigned)(d - p->door), first);
        ctx = redisConnectFd(fd[0]);
    }
    pthread_mutex_unlock(&p->mutex);
    return ctx;
}

unsigned peer_choice(peer *p, unsigned limit)
{
    pthread_mutex_lock(&p->mutex);
    unsigned choice = feed_choice(&p->in, limit);
    pthread_mutex_unlock(&p->mutex);
    return choice;
}

int64_t peer_number(peer *p)
{
    pthread_mutex_lock(&p->mutex);
    int64_t n = feed_number(&p->in);
    pthread_mutex_unlock(&p->mutex);
    return n;
}

bool peer_is_done(peer *p)
{
    pthread_mutex_lock(&p->mutex);
    bool done = p->in.left == 0;
    pthread_mutex_unlock(&p->mutex);
    return done;
}

unsigned peer_grants(peer *p)
{
    return atomic_load(&p->grants);
}
