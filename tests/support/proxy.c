/*
 * One thread serves all connections with poll(); one mutex guards everything
 * and is let go of only while poll() sleeps. So a function of the interface
 * never meets a connection half-way through a step: when proxy_freeze() has
 * returned nothing moves, and when proxy_fired() says yes the rule's action is
 * complete.
 */
#include "proxy.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "redis/script.h"
#include "relay.h"

enum {
    LET_GO_LIMIT_S = 5,
    PATH_SIZE = sizeof((struct sockaddr_un){0}.sun_path)
};

struct proxy {
    char server_path[PATH_SIZE];
    char path[PATH_SIZE];
    char uri[PATH_SIZE + 8];
    int listener, wake;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all that follows */
    bool stop, refuse, frozen;
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

static struct pollfd entry(int fd, bool in, bool out)
{
    struct pollfd pfd = {.fd = fd};
    pfd.events = (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0));
    if (!pfd.events)
        pfd.fd = -1; /* poll() would report a closed peer all the time */
    return pfd;
}

/* Entries: wake, listener, and two for each connection, in the list's order. */
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
    bool on = !px->frozen;
    struct pollfd *at = *pfds;
    *at++ = entry(px->wake, true, false);
    *at++ = entry(px->listener, on, false);
    for (const relay *k = px->relays; k; k = k->next) {
        *at++ = entry(k->client, on && !k->client_gone, on && k->to_client.len);
        *at++ = entry(k->server, on && !k->server_gone, on && k->to_server.len);
    }
    return n;
}

/* Milliseconds to the next byte that drips; -1: none does. */
static int next_drip_locked(const proxy *px)
{
    int64_t next = -1, now = test_now_ms();
    for (const relay *k = px->relays; k && !px->frozen; k = k->next) {
        int64_t left = k->drip_at_ms > now ? k->drip_at_ms - now : 0;
        if (k->drip_left && (next < 0 || left < next))
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

/* Next to the server's socket, so that it goes with the server's directory. */
static int listen_near(proxy *px)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    EXPECT(fd >= 0);
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
    return fd;
}

proxy *proxy_start(server *sv)
{
    proxy *px = calloc(1, sizeof *px);
    EXPECT(px);
    snprintf(px->server_path, sizeof px->server_path, "%s", server_path(sv));
    px->listener = listen_near(px);
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
    unlink(px->path);
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

void proxy_rule(proxy *px, const char *needle, int nth, proxy_action action,
                const char *answer)
{
    EXPECT(nth >= 1 || !needle);
    pthread_mutex_lock(&px->mutex);
    rules_set(&px->rules, needle, nth, action, answer);
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
