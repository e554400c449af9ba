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
#include <unistd.h>

#include "answer.h"
#include "resp.h"

#define LINES_MAX   64
#define DOORS_MAX   4
#define REQUEST_MAX (32 * 1024)

/* How often the peer looks whether the client has read a piece. */
#define PATIENCE 2000

/* A connection, as the server sees it. */
typedef struct line {
    int fd;        /* -1: it is over */
    unsigned door; /* which client's */
    bool background, subscribed;
    uint64_t tail; /* the last bytes that were sent */
    bytes late;    /* an answer that is held back until the next request */
    size_t asked;  /* bytes of the requests that are not answered yet */
    char *request;
} line;

typedef struct door {
    peer *p;
    atomic_uint opened;
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

/* Could the client take what ends here for the beginning of a grant? */
static bool ends_in_grant(uint64_t tail)
{
    static const char *const heads[] = {"*2", "*3", "~2", "~3",
                                        ">2", ">3", "%1"};
    char text[8];
    for (size_t i = sizeof text; i-- > 0; tail >>= 8)
        text[i] = (char)tail;
    if (memcmp(text + 2, "\r\n", 2) != 0 || memcmp(text + 6, "\r\n", 2) != 0 ||
        (memcmp(text + 4, ":1", 2) != 0 && memcmp(text + 4, "#t", 2) != 0))
        return false;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (memcmp(text, heads[i], 2) == 0)
            return true;
    }
    return false;
}

/* They are counted before they are sent. */
static void send_bytes(peer *p, line *l, const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        l->tail = l->tail << 8 | (unsigned char)at[i];
        if (ends_in_grant(l->tail))
            atomic_fetch_add(&p->grants, 1);
    }
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

static void drip(peer *p, line *l, const bytes *b, size_t piece)
{
    for (size_t at = 0; at < b->len; at += piece) {
        size_t left = b->len - at;
        send_bytes(p, l, b->at + at, left < piece ? left : piece);
        wait_until_read(l);
    }
}

static void deliver(peer *p, line *l, const bytes *b, feed *in, unsigned how)
{
    size_t cut;
    switch (how) {
    default:
        send_bytes(p, l, b->at, b->len);
        break;
    case 10:
        cut = feed_byte(in);
        send_bytes(p, l, b->at, cut < b->len ? cut : b->len);
        hang_up(l);
        break;
    case 11:
        drip(p, l, b, 1U + feed_byte(in));
        break;
    case 12:
        send_bytes(p, l, b->at, b->len);
        send_bytes(p, l, b->at, b->len);
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
        send_bytes(p, &p->line[i], b.at, b.len);
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
    send_bytes(p, l, l->late.at, l->late.len);
    l->late.len = 0;
    make_answer(&b, in, what % 16, r, &p->token);
    deliver(p, l, &b, in, what / 16);
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

static unsigned watch(peer *p, struct pollfd *all)
{
    pthread_mutex_lock(&p->mutex);
    unsigned n = p->lines;
    for (unsigned i = 0; i < n; i++)
        all[i] = (struct pollfd){.fd = p->line[i].fd, .events = POLLIN};
    pthread_mutex_unlock(&p->mutex);
    all[n] = (struct pollfd){.fd = p->wake_fd, .events = POLLIN};
    return n;
}

static void *run(void *arg)
{
    peer *p = arg;
    struct pollfd all[LINES_MAX + 1];
    while (!atomic_load(&p->stopping)) {
        unsigned n = watch(p, all);
        poll(all, n + 1, -1);
        if (all[n].revents)
            eventfd_read(p->wake_fd, &(eventfd_t){0});
        pthread_mutex_lock(&p->mutex);
        for (unsigned i = 0; i < n; i++) {
            if (all[i].revents && p->line[i].fd >= 0)
                listen_to(p, &p->line[i]);
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
    pthread_mutex_init(&p->mutex, NULL);
    MUST(p->wake_fd >= 0 && pthread_create(&p->thread, NULL, run, p) == 0);
    return p;
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
    close(p->wake_fd);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

void *peer_door(peer *p)
{
    door *d = &p->door[p->doors++];
    d->p = p;
    return d;
}

static void add_line(peer *p, int fd, unsigned door, bool background)
{
    line *l = &p->line[p->lines++];
    *l = (line){.fd = fd, .door = door, .background = background};
    l->request = malloc(REQUEST_MAX);
    eventfd_write(p->wake_fd, 1);
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
    bool first = d->opened++ == 0;
    unsigned how = p->polite && first ? 0 : feed_choice(&p->background, 16);
    if (how >= 12 || p->lines == LINES_MAX) {
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
