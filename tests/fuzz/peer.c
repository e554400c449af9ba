#include "peer.h"

#include <hiredis/hiredis.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "resp.h"
#include "wire/script.h"

#define LINES_MAX   64
#define DOORS_MAX   4
#define REQUEST_MAX (32 * 1024)
#define ANSWER_MAX  2048

/* How often the peer looks whether the client has read a piece. */
#define PATIENCE 2000

typedef struct bytes {
    size_t len;
    char at[ANSWER_MAX];
} bytes;

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

/* --- answers ------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void put(bytes *b, const char *fmt,
                                                      ...)
{
    size_t room = sizeof b->at - b->len;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(b->at + b->len, room, fmt, ap);
    va_end(ap);
    b->len += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

static void put_string(bytes *b, const void *text, size_t len)
{
    put(b, "$%zu\r\n", len);
    if (len + 2 > sizeof b->at - b->len)
        return;
    memcpy(b->at + b->len, text, len);
    b->len += len;
    put(b, "\r\n");
}

static void put_text(bytes *b, const char *text)
{
    put_string(b, text, strlen(text));
}

static void put_number(bytes *b, int64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)n);
    put_text(b, text);
}

typedef enum ask {
    ASK_ACQUIRE,
    ASK_INSPECT,
    ASK_IDENTIFY,
    ASK_PROBE,
    ASK_COUNT, /* the scripts that answer with an integer */
    ASK_EVAL,
    ASK_PING,
    ASK_SUBSCRIBE,
    ASK_UNSUBSCRIBE,
    ASK_OTHER
} ask;

/* A request that has arrived whole. */
typedef struct request {
    const char *at;
    size_t len;
    ask what;
} request;

static ask ask_of_script(size_t id)
{
    if (id == RL_SCRIPT_PROBE)
        return ASK_PROBE;
    if (id == RL_SCRIPT_IDENTIFY)
        return ASK_IDENTIFY;
    for (size_t i = 0; i <= 2; i++) {
        if (id == rl_layouts[i].acquire)
            return ASK_ACQUIRE;
        if (id == rl_layouts[i].inspect)
            return ASK_INSPECT;
    }
    return ASK_COUNT;
}

/* By its digest, or whole. */
static ask ask_of_eval(const request *r)
{
    const char *word;
    size_t len;
    if (!resp_word(r->at, r->len, 1, &word, &len))
        return ASK_OTHER;
    for (size_t i = 0; i < RL_SCRIPT_COUNT; i++) {
        const rl_script *s = &rl_scripts[i];
        if ((len == 40 && memcmp(word, s->sha1, len) == 0) ||
            (len == s->len && memcmp(word, s->body, len) == 0))
            return ask_of_script(i);
    }
    return ASK_EVAL;
}

static ask ask_of(const request *r)
{
    if (resp_word_is(r->at, r->len, 0, "EVALSHA") ||
        resp_word_is(r->at, r->len, 0, "EVAL"))
        return ask_of_eval(r);
    if (resp_word_is(r->at, r->len, 0, "PING"))
        return ASK_PING;
    if (resp_word_is(r->at, r->len, 0, "SUBSCRIBE"))
        return ASK_SUBSCRIBE;
    if (resp_word_is(r->at, r->len, 0, "UNSUBSCRIBE"))
        return ASK_UNSUBSCRIBE;
    return ASK_OTHER;
}

/* Comes before a client is used, or before a connection is. */
static bool is_greeting(const request *r)
{
    return r->what == ASK_IDENTIFY || r->what == ASK_PROBE ||
           r->what >= ASK_EVAL;
}

static void put_word(bytes *b, const request *r, int i)
{
    const char *word;
    size_t len;
    if (resp_word(r->at, r->len, i, &word, &len))
        put_string(b, word, len);
    else
        put(b, "$-1\r\n");
}

/* Each server of a Red lock has to be another one. */
static void put_run(bytes *b, const line *l)
{
    put(b, "$40\r\n%040u\r\n$2\r\n90\r\n", l->door);
}

static void put_agreeable(peer *p, const line *l, bytes *b, const request *r)
{
    switch (r->what) {
    case ASK_ACQUIRE:
        put(b, "*3\r\n:1\r\n");
        put_number(b, (int64_t)++p->token);
        put_number(b, (int64_t)p->token);
        break;
    case ASK_INSPECT:
        put(b, "*0\r\n");
        break;
    case ASK_IDENTIFY:
        put(b, "*2\r\n");
        put_run(b, l);
        break;
    case ASK_PROBE:
        put(b, "*5\r\n$0\r\n\r\n$0\r\n\r\n");
        put_run(b, l);
        put(b, "$0\r\n\r\n");
        break;
    case ASK_COUNT:
    case ASK_EVAL:
        put(b, ":1\r\n");
        break;
    case ASK_PING:
        if (l->subscribed)
            put(b, "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
        else if (resp_words(r->at, r->len) > 1)
            put_word(b, r, 1);
        else
            put(b, "+PONG\r\n");
        break;
    case ASK_SUBSCRIBE:
    case ASK_UNSUBSCRIBE:
        put(b, "*3\r\n");
        put_text(b, r->what == ASK_SUBSCRIBE ? "subscribe" : "unsubscribe");
        put_word(b, r, 1);
        put(b, ":%d\r\n", r->what == ASK_SUBSCRIBE);
        break;
    case ASK_OTHER:
        put(b, "-ERR unknown command\r\n");
        break;
    }
}

/* Somebody else has it, or nobody. */
static void put_refusal(bytes *b, const request *r)
{
    if (r->what == ASK_ACQUIRE)
        put(b, "*5\r\n:0\r\n:20\r\n$2\r\n17\r\n:0\r\n:3\r\n");
    else if (r->what == ASK_INSPECT)
        put(b, "*3\r\n$3\r\nxyz\r\n$1\r\n1\r\n:20\r\n");
    else
        put(b, ":0\r\n");
}

static void put_error(bytes *b, feed *in)
{
    static const char *const texts[] = {
        "ERR",
        "WRONGTYPE Operation against a key",
        "LOADING Redis is loading",
        "BUSY Redis is busy running a script",
        "READONLY You can't write against a read only replica",
        "OOM command not allowed",
        "NOPERM this user has no permissions",
        "MISCONF Errors writing to disk",
        "MOVED 1 127.0.0.1:1",
        "ERR max number of clients reached",
    };
    put(b, "-%s\r\n", texts[feed_choice(in, sizeof texts / sizeof *texts)]);
}

static void put_item(bytes *b, feed *in)
{
    char *text;
    switch (feed_choice(in, 6)) {
    case 0:
    case 1:
        put(b, ":%lld\r\n", (long long)feed_number(in));
        break;
    case 2:
        put_number(b, feed_number(in));
        break;
    case 3:
        text = feed_text(in);
        put_text(b, text);
        free(text);
        break;
    case 4:
        put(b, "$-1\r\n");
        break;
    case 5:
        put_error(b, in);
        break;
    }
}

static void put_items(bytes *b, feed *in)
{
    unsigned n = feed_choice(in, 11);
    put(b, "*%u\r\n", n);
    for (unsigned i = 0; i < n; i++)
        put_item(b, in);
}

static void put_raw(bytes *b, feed *in)
{
    const uint8_t *at;
    size_t len = feed_byte(in);
    len = feed_bytes(in, len, &at);
    memcpy(b->at, at, len);
    b->len = len;
}

/* With numbers in the places where there should be some. */
static void put_near_miss(bytes *b, feed *in, const request *r)
{
    static const int kinds[] = {1, 0, -1, -2};
    if (r->what != ASK_ACQUIRE) {
        put(b, ":%lld\r\n", (long long)feed_number(in));
        return;
    }
    put(b, "*%u\r\n:%d\r\n", 2 + feed_choice(in, 3), kinds[feed_choice(in, 4)]);
    put_number(b, feed_number(in));
    put_number(b, feed_number(in));
}

static void make_answer(peer *p, const line *l, bytes *b, feed *in,
                        unsigned kind, const request *r)
{
    switch (kind) {
    default:
        put_agreeable(p, l, b, r);
        break;
    case 8:
        put_refusal(b, r);
        break;
    case 9:
        put(b, "-NOSCRIPT No matching script.\r\n");
        break;
    case 10:
        put_error(b, in);
        break;
    case 11:
        put_near_miss(b, in, r);
        break;
    case 12:
        put_items(b, in);
        break;
    case 13:
        put_raw(b, in);
        break;
    case 14:
        put(b, "%c%lld\r\n", "$*:"[feed_choice(in, 3)],
            (long long)feed_number(in));
        break;
    }
}

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
        put(&b, "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n");
        put_text(&b, *name ? name : PEER_LOCK);
        send_bytes(p, &p->line[i], b.at, b.len);
    }
    free(name);
}

static void answer(peer *p, line *l, const request *r)
{
    feed none = {0};
    feed *in = l->background ? &p->background : &p->in;
    if (p->polite && is_greeting(r))
        in = &none;
    unsigned what = feed_byte(in);
    bytes b = {0};
    send_bytes(p, l, l->late.at, l->late.len);
    l->late.len = 0;
    make_answer(p, l, &b, in, what % 16, r);
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
        request r = {.at = l->request, .len = (size_t)n};
        r.what = ask_of(&r);
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
