/*
 * One thread serves all connections with poll(); one mutex guards everything
 * and is let go of only while poll() sleeps. So a function of the interface
 * never meets a connection half-way through a step: when proxy_freeze() has
 * returned nothing moves, and when proxy_fired() says yes the rule's action is
 * complete.
 */
#include "proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "relay.h"
#include "wire/script.h"

enum {
    LET_GO_LIMIT_S = 5,
    PATH_SIZE = sizeof((struct sockaddr_un){0}.sun_path)
};

struct proxy {
    char server_path[PATH_SIZE];
    char path[PATH_SIZE];
    char uri[PATH_SIZE + 32];
    int listener, wake;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all that follows */
    bool stop, refuse, frozen;
    char *greeting; /* or NULL */
    relay *relays;
    rules rules;
};

static int connect_server(const proxy *px)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    memcpy(addr.sun_path, px->server_path, sizeof addr.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    EXPECT(fd >= 0);
    if (connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0)
        return fd;
    close(fd);
    return -1;
}

static void accept_client(proxy *px)
{
    int client = accept4(px->listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (px->greeting)
        send(client, px->greeting, strlen(px->greeting), MSG_NOSIGNAL);
    int up = px->refuse ? -1 : connect_server(px);
    if (up < 0) {
        relay_close_fd(client);
        return;
    }
    relay *k = relay_new(&px->rules, client, up);
    k->next = px->relays;
    px->relays = k;
}

/* The loop. */

/* Entries: wake, listener, and two for each connection, in the list's order.
   While nothing moves only the first is of interest. */
static size_t list_entries_locked(const proxy *px, struct pollfd **pfds,
                                  size_t *room)
{
    size_t n = 2;
    for (const relay *k = px->relays; k; k = k->next)
        n += 2;
    if (n > *room) {
        *room = 2 * n;
        *pfds = realloc(*pfds, *room * sizeof **pfds);
        EXPECT(*pfds);
    }
    struct pollfd *at = *pfds;
    *at++ = (struct pollfd){.fd = px->wake, .events = POLLIN};
    *at++ = (struct pollfd){.fd = px->listener, .events = POLLIN};
    for (const relay *k = px->relays; k; k = k->next, at += 2)
        relay_list(k, &at[0], &at[1]);
    return px->frozen ? 1 : n;
}

/* Milliseconds to the next byte that drips; -1: none does. */
static int next_drip_locked(const proxy *px)
{
    int64_t next = -1, now = test_now_ms();
    for (const relay *k = px->relays; k && !px->frozen; k = k->next) {
        int64_t left = k->drip_at_ms > now ? k->drip_at_ms - now : 0;
        if (k->rest && k->drips && (next < 0 || left < next))
            next = left;
    }
    return (int)next;
}

/* The list of connections is as it was when the entries were made: only this
   thread changes it. */
static void serve_all_locked(proxy *px, const struct pollfd *pfds)
{
    const struct pollfd *at = pfds + 2;
    for (relay *k = px->relays; k && !px->frozen; k = k->next, at += 2)
        relay_serve(k, at[0].revents, at[1].revents);
    for (relay **at_link = &px->relays; *at_link;) {
        relay *k = *at_link;
        if (relay_is_over(k)) {
            *at_link = k->next;
            relay_free(k);
        } else {
            at_link = &k->next;
        }
    }
    if (pfds[1].revents && !px->frozen)
        accept_client(px);
}

static void *run(void *arg)
{
    proxy *px = arg;
    struct pollfd *pfds = NULL;
    size_t room = 0;
    pthread_setname_np(pthread_self(), "test-proxy");
    pthread_mutex_lock(&px->mutex);
    while (!px->stop) {
        size_t n = list_entries_locked(px, &pfds, &room);
        int wait_ms = next_drip_locked(px);
        pthread_mutex_unlock(&px->mutex);
        if (poll(pfds, n, wait_ms) < 0)
            memset(pfds, 0, n * sizeof *pfds);
        pthread_mutex_lock(&px->mutex);
        eventfd_t ignored;
        if (pfds[0].revents)
            eventfd_read(px->wake, &ignored);
        serve_all_locked(px, pfds);
    }
    pthread_mutex_unlock(&px->mutex);
    free(pfds);
    return NULL;
}

/* The interface. */

static int open_listener(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    EXPECT(fd >= 0);
    return fd;
}

/* Next to the server's socket, so that it goes with the server's directory. */
static void listen_near(proxy *px)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = px->listener = open_listener(AF_UNIX);
    int err = 1;
    for (int i = 1; err && i < 100; i++) {
        int n =
            snprintf(px->path, sizeof px->path, "%s.p%d", px->server_path, i);
        EXPECT(n < (int)sizeof px->path);
        memcpy(addr.sun_path, px->path, sizeof addr.sun_path);
        err = bind(fd, (struct sockaddr *)&addr, sizeof addr);
    }
    if (err || listen(fd, 128) < 0)
        FAIL("cannot listen on %s: %s", px->path, strerror(errno));
    snprintf(px->uri, sizeof px->uri, "unix://%s", px->path);
}

static void listen_on_port(proxy *px)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    px->listener = open_listener(AF_INET);
    if (bind(px->listener, (struct sockaddr *)&addr, len) < 0 ||
        getsockname(px->listener, (struct sockaddr *)&addr, &len) < 0 ||
        listen(px->listener, 128) < 0)
        FAIL("cannot listen on a TCP port: %s", strerror(errno));
    snprintf(px->uri, sizeof px->uri, "redis://127.0.0.1:%d",
             ntohs(addr.sin_port));
}

static proxy *start(server *sv, void (*listen_somewhere)(proxy *px))
{
    proxy *px = calloc(1, sizeof *px);
    EXPECT(px);
    snprintf(px->server_path, sizeof px->server_path, "%s", server_path(sv));
    listen_somewhere(px);
    px->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    EXPECT(px->wake >= 0);
    pthread_mutex_init(&px->mutex, NULL);
    rules_init(&px->rules);
    /* The thread takes no signals that are meant for the test. */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int err = pthread_create(&px->thread, NULL, run, px);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    EXPECT_INT(err, 0);
    return px;
}

proxy *proxy_start(server *sv)
{
    return start(sv, listen_near);
}

proxy *proxy_start_tcp(server *sv)
{
    return start(sv, listen_on_port);
}

static void free_proxy(proxy *px)
{
    while (px->relays) {
        relay *k = px->relays;
        px->relays = k->next;
        relay_free(k);
    }
    rules_fini(&px->rules);
    pthread_mutex_destroy(&px->mutex);
    close(px->wake);
    relay_close_fd(px->listener);
    if (*px->path)
        unlink(px->path);
    free(px->greeting);
    free(px);
}

/* Lets the thread see what was changed. */
static void unlock_and_wake(proxy *px)
{
    pthread_mutex_unlock(&px->mutex);
    eventfd_write(px->wake, 1);
}

void proxy_stop(proxy *px)
{
    if (!px)
        return;
    pthread_mutex_lock(&px->mutex);
    px->stop = true;
    unlock_and_wake(px);
    pthread_join(px->thread, NULL);
    free_proxy(px);
}

const char *proxy_uri(const proxy *px)
{
    return px->uri;
}

const char *proxy_path(const proxy *px)
{
    return px->path;
}

static bool is_possible(int action)
{
    proxy_action point = rules_point(action), way = rules_way(action);
    bool in_reply = point == PROXY_EXECUTED || point == PROXY_MID_REPLY;
    if (way == PROXY_DRIP)
        return in_reply;
    return point == PROXY_ANSWER ? way != PROXY_LATE : point && way;
}

void proxy_rule(proxy *px, const char *needle, int nth, proxy_action action,
                const char *answer)
{
    EXPECT(nth >= 1 || nth == PROXY_EVERY || !needle);
    EXPECT(is_possible(action));
    pthread_mutex_lock(&px->mutex);
    rules_set(&px->rules, needle, nth, action, answer);
    pthread_mutex_unlock(&px->mutex);
}

void proxy_rule_at(proxy *px, const char *needle, int nth, size_t bytes,
                   proxy_action way)
{
    EXPECT(rules_way(way) == way);
    pthread_mutex_lock(&px->mutex);
    rules_set(&px->rules, needle, nth, PROXY_MID_REPLY | way, NULL);
    px->rules.bytes = bytes;
    pthread_mutex_unlock(&px->mutex);
}

bool proxy_fired(proxy *px)
{
    pthread_mutex_lock(&px->mutex);
    bool fired = px->rules.fired;
    pthread_mutex_unlock(&px->mutex);
    return fired;
}

void proxy_let_go(proxy *px)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LET_GO_LIMIT_S;
    pthread_mutex_lock(&px->mutex);
    for (relay *k = px->relays; k; k = k->next)
        relay_let_go(k);
    eventfd_write(px->wake, 1);
    int err = 0;
    while (px->rules.awaited && err == 0)
        err = pthread_cond_timedwait(&px->rules.settled, &px->mutex, &until);
    bool settled = px->rules.awaited == 0;
    pthread_mutex_unlock(&px->mutex);
    if (!settled)
        FAIL("what the proxy let go of has not been answered");
}

void proxy_execute(proxy *px)
{
    pthread_mutex_lock(&px->mutex);
    for (relay *k = px->relays; k; k = k->next)
        relay_execute(k);
    unlock_and_wake(px);
}

int proxy_count(proxy *px, const char *needle)
{
    pthread_mutex_lock(&px->mutex);
    int n = rules_count(&px->rules, needle);
    pthread_mutex_unlock(&px->mutex);
    return n;
}

void proxy_forget(proxy *px)
{
    pthread_mutex_lock(&px->mutex);
    rules_forget(&px->rules);
    pthread_mutex_unlock(&px->mutex);
}

void proxy_refuse(proxy *px, bool refuse)
{
    pthread_mutex_lock(&px->mutex);
    px->refuse = refuse;
    pthread_mutex_unlock(&px->mutex);
}

void proxy_greet(proxy *px, const char *greeting)
{
    pthread_mutex_lock(&px->mutex);
    free(px->greeting);
    px->greeting = greeting ? strdup(greeting) : NULL;
    EXPECT(!greeting || px->greeting);
    pthread_mutex_unlock(&px->mutex);
}

void proxy_cut_all(proxy *px)
{
    pthread_mutex_lock(&px->mutex);
    for (relay *k = px->relays; k; k = k->next)
        relay_cut(k);
    unlock_and_wake(px);
}

void proxy_freeze(proxy *px, bool frozen)
{
    pthread_mutex_lock(&px->mutex);
    px->frozen = frozen;
    unlock_and_wake(px);
}

const char *proxy_sha(const char *script)
{
    char of_hash[64];
    snprintf(of_hash, sizeof of_hash, "hash/%s", script);
    for (int i = 0; i < RL_SCRIPT_COUNT; i++) {
        const char *name = rl_scripts[i].name;
        if (strcmp(name, script) == 0 || strcmp(name, of_hash) == 0)
            return rl_scripts[i].sha1;
    }
    FAIL("no script is called \"%s\"", script);
}
