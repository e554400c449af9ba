/*
 * A connection keeps a queue of the requests whose replies are still to come.
 * What a rule does is written on the request in that queue and happens when the
 * request has come to its head: this is what keeps the order. Only holding a
 * request back happens earlier, for it stops the queue's other end.
 *
 * A socket that is closed with a byte in it that was not read, resets its
 * connection; a Unix socket knows no other way. So the last byte that came from
 * the client is only looked at, until it is clear that no reset is due.
 */
#include "relay.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "resp.h"

enum { PASS = 0, DRIP_MS = 20, CHUNK = 16384 };

/* A request that the server, or the proxy itself, has still to answer. */
struct request {
    request *next;
    int action;     /* a proxy_action, or PASS */
    size_t bytes;   /* of the reply to pass first, or HALF */
    int rule_id;    /* of the rule that gave the action */
    int replies;    /* how many it has: SUBSCRIBE has one for each channel */
    bool subscribe; /* or unsubscribe */
    bool awaited;   /* proxy_let_go() waits for it */
    char *answer;
};

static ssize_t receive(int fd, void *p, size_t size, int flags)
{
    ssize_t n;
    do
        n = recv(fd, p, size, flags | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Takes some of what is there; false when the other side has closed. */
static bool take_in(int fd, bytes *b)
{
    char chunk[CHUNK];
    ssize_t n = receive(fd, chunk, sizeof chunk, 0);
    if (n > 0)
        bytes_append(b, chunk, (size_t)n);
    return n > 0 || (n < 0 && errno == EAGAIN);
}

/* The same, but the last byte stays unread. */
static bool look_in(relay *k)
{
    char chunk[CHUNK];
    ssize_t n = receive(k->client, chunk, sizeof chunk, MSG_PEEK);
    if (n > 0) {
        bytes_append(&k->from_client, chunk, (size_t)n);
        receive(k->client, chunk, (size_t)n - 1, 0);
        k->unread = true;
    }
    return n > 0 || (n < 0 && errno == EAGAIN);
}

static void read_last_byte(relay *k)
{
    char last;
    if (k->unread)
        receive(k->client, &last, 1, 0);
    k->unread = false;
}

/* The queue of requests. */

static void push(relay *k, request *rq)
{
    if (k->last)
        k->last->next = rq;
    else
        k->first = rq;
    k->last = rq;
}

static void pop(relay *k)
{
    request *rq = k->first;
    k->first = rq->next;
    if (!k->first)
        k->last = NULL;
    if (rq->awaited)
        rules_settle(k->rs);
    free(rq->answer);
    free(rq);
}

/* Is it about subscriptions? Such requests have a reply for each channel. */
static bool is_subscribe(const char *p, size_t len)
{
    static const char *const names[] = {"subscribe",    "psubscribe",
                                        "ssubscribe",   "unsubscribe",
                                        "punsubscribe", "sunsubscribe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (resp_word_is(p, len, 0, names[i]))
            return true;
    }
    return false;
}

static bool is_message(const char *p, size_t len)
{
    return resp_word_is(p, len, 0, "message") ||
           resp_word_is(p, len, 0, "pmessage") ||
           resp_word_is(p, len, 0, "smessage");
}

static request *new_request(const char *p, size_t len)
{
    request *rq = calloc(1, sizeof *rq);
    EXPECT(rq);
    rq->action = PASS;
    rq->replies = 1;
    rq->subscribe = is_subscribe(p, len);
    if (rq->subscribe && resp_words(p, len) > 2)
        rq->replies = resp_words(p, len) - 1;
    return rq;
}

/* From the client to the server. */

/* Writes the rule's action on its request. */
static void mark(relay *k, request *rq)
{
    const rules *rs = k->rs;
    proxy_action point = rules_point(rs->action), way = rules_way(rs->action);
    if (rs->action == (PROXY_ANSWERED | PROXY_LATE)) {
        k->holds_next = rs->id;
        return;
    }
    rq->action = (int)rs->action;
    rq->bytes = rs->bytes;
    rq->rule_id = rs->id;
    if (point == PROXY_ANSWER) {
        rq->answer = strdup(rs->answer ? rs->answer : "");
        EXPECT(rq->answer);
    }
    k->resets = way == PROXY_RESET;
    k->no_more = way == PROXY_CLOSED || way == PROXY_RESET ||
                 way == PROXY_STALLED ||
                 (way == PROXY_TIMEOUT && point != PROXY_EXECUTED &&
                  point != PROXY_MID_REPLY);
}

static bool is_answered_here(const request *rq)
{
    proxy_action point = rules_point(rq->action);
    return point == PROXY_SENT || point == PROXY_ANSWER;
}

/* Does a rule hold this request? Then its id. */
static int holding_rule(const relay *k, bool struck)
{
    if (struck && k->rs->action == PROXY_HOLD_REQUEST)
        return k->rs->id;
    return k->request_passes ? 0 : k->holds_next;
}

static void take_request(relay *k, size_t len)
{
    const char *p = k->from_client.data;
    bool struck = !k->request_passes && rules_strike(k->rs, p, len);
    int holder = holding_rule(k, struck);
    if (holder) {
        k->holds_next = 0;
        k->request_held = true;
        rules_fire(k->rs, holder);
        return;
    }
    request *rq = new_request(p, len);
    k->subscriber |= rq->subscribe;
    rq->awaited = k->request_passes && !k->keeps_reply;
    rq->action = k->keeps_reply ? (int)PROXY_HOLD_REPLY : PASS;
    k->request_passes = k->keeps_reply = false;
    if (struck)
        mark(k, rq);
    push(k, rq);
    if (is_answered_here(rq))
        bytes_drop(&k->from_client, len);
    else
        bytes_move(&k->from_client, &k->to_server, len);
}

static void pump_requests(relay *k)
{
    while (!k->request_held && !k->no_more) {
        ssize_t n = resp_request_len(k->from_client.data, k->from_client.len);
        if (n == 0)
            return;
        take_request(k, n < 0 ? k->from_client.len : (size_t)n);
    }
}

/* From the server to the client. */

static void pass(relay *k, size_t len)
{
    if (k->mute)
        bytes_drop(&k->from_server, len);
    else
        bytes_move(&k->from_server, &k->to_client, len);
}

/* The connection fails. */
static void fail(relay *k, proxy_action way)
{
    k->cut = way == PROXY_CLOSED || way == PROXY_RESET;
    k->stalled = way == PROXY_STALLED;
    k->mute |= way == PROXY_TIMEOUT;
}

/* What the proxy does by itself when the request's turn has come. */
static bool serve_own(relay *k)
{
    request *rq = k->first;
    if (!rq || !is_answered_here(rq))
        return false;
    if (rq->answer && !k->mute)
        bytes_append(&k->to_client, rq->answer, strlen(rq->answer));
    fail(k, rules_way(rq->action));
    rules_fire(k->rs, rq->rule_id);
    pop(k);
    return true;
}

/* The request that this reply answers; NULL for what answers none. */
static request *asked_by(const relay *k, const char *p, size_t len)
{
    request *rq = k->first;
    bool confirms = k->subscriber && is_subscribe(p, len);
    if (!rq || (k->subscriber && is_message(p, len)))
        return NULL;
    if (*p == '>' && !confirms)
        return NULL;
    return confirms && !rq->subscribe ? NULL : rq;
}

/* How much of its reply passes before the request's action. */
static size_t bytes_to_pass(const request *rq, size_t len)
{
    switch (rules_point(rq->action)) {
    case PROXY_EXECUTED:
        return 0;
    case PROXY_MID_REPLY:
        if (rq->bytes == HALF)
            return (len + 1) / 2;
        return rq->bytes < len ? rq->bytes : len;
    default: /* PROXY_ANSWERED */
        return len;
    }
}

/* The request's action on its reply; what is to follow of that is the rest. */
static void act(relay *k, request *rq, size_t len)
{
    proxy_action way = rules_way(rq->action);
    size_t n = bytes_to_pass(rq, len);
    pass(k, n);
    if (way == PROXY_LATE || way == PROXY_DRIP) {
        k->rest = len - n;
        k->reply_held = way == PROXY_LATE && k->rest && !k->client_gone;
        k->drips = way == PROXY_DRIP && !k->client_gone;
        k->drip_at_ms = test_now_ms();
    } else {
        bytes_drop(&k->from_server, len - n);
        fail(k, way);
    }
    rules_fire(k->rs, rq->rule_id);
}

/* A reply has gone where it goes; was it the last of its request? */
static void end_reply(relay *k)
{
    if (k->first->replies == 0)
        pop(k);
}

static void take_reply(relay *k, size_t len)
{
    const char *p = k->from_server.data;
    request *rq = asked_by(k, p, len);
    bool error = *p == '-';
    if (!rq) {
        pass(k, len);
        return;
    }
    rq->replies = error ? 0 : rq->replies - 1;
    if (rq->action == PASS)
        pass(k, len);
    else
        act(k, rq, len);
    rq->action = PASS;
    if (!k->rest)
        end_reply(k);
}

/* Passes the rest of a reply, or as much of it as is due. */
static void take_rest(relay *k)
{
    size_t n = k->drips ? 1 : k->rest;
    while (k->rest && (!k->drips || test_now_ms() >= k->drip_at_ms)) {
        pass(k, n);
        k->rest -= n;
        k->drip_at_ms = test_now_ms() + DRIP_MS;
    }
    if (!k->rest)
        end_reply(k);
}

static void pump_replies(relay *k)
{
    while (!k->reply_held && !k->cut && !k->stalled) {
        if (k->rest) {
            take_rest(k);
            if (k->rest)
                return;
            continue;
        }
        if (serve_own(k))
            continue;
        ssize_t n = resp_reply_len(k->from_server.data, k->from_server.len);
        if (n == 0)
            return;
        take_reply(k, n < 0 ? k->from_server.len : (size_t)n);
    }
}

/* The whole. */

relay *relay_new(rules *rs, int client, int server_fd)
{
    relay *k = calloc(1, sizeof *k);
    EXPECT(k);
    k->rs = rs;
    k->client = client;
    k->server = server_fd;
    return k;
}

void relay_close_fd(int fd)
{
    shutdown(fd, SHUT_RDWR);
    close(fd);
}

/* No shutdown(), which would close in good order: there must be no copy of the
   descriptor in a child. */
static void reset_fd(int fd)
{
    struct linger at_once = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

void relay_free(relay *k)
{
    while (k->first)
        pop(k);
    if (k->request_passes && !k->keeps_reply)
        rules_settle(k->rs);
    if (k->cut && k->resets)
        reset_fd(k->client);
    else
        relay_close_fd(k->client);
    relay_close_fd(k->server);
    free(k->from_client.data);
    free(k->to_server.data);
    free(k->from_server.data);
    free(k->to_client.data);
    free(k);
}

/* Nobody is left to hold a reply for. */
static void note_client_gone(relay *k)
{
    k->client_gone = true;
    k->reply_held = false;
    k->drips = false;
    k->mute = true;
}

/*
 * The server learns that the client has gone when it has answered everything:
 * earlier, it might close without executing what it has not read yet.
 */
static void shut_server(relay *k)
{
    if (!k->client_gone || k->server_shut || k->first || k->to_server.len ||
        k->request_held || k->request_passes)
        return;
    shutdown(k->server, SHUT_WR);
    k->server_shut = true;
}

bool relay_is_over(const relay *k)
{
    if (k->cut)
        return k->to_client.len == 0;
    if (!k->server_gone || k->stalled)
        return false;
    return k->client_gone ||
           (!k->mute && !k->reply_held && !k->rest && !k->to_client.len);
}

static struct pollfd entry(int fd, bool in, bool out)
{
    struct pollfd pfd = {.fd = fd};
    pfd.events = (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0));
    if (!pfd.events)
        pfd.fd = -1; /* poll() would report a closed peer all the time */
    return pfd;
}

void relay_list(const relay *k, struct pollfd *down, struct pollfd *up)
{
    *down = entry(k->client, !k->client_gone && !k->unread && !k->stalled,
                  k->to_client.len);
    *up = entry(k->server, !k->server_gone && !k->stalled,
                k->to_server.len && !k->stalled);
}

static void take_all_in(relay *k, bool down, bool up)
{
    if (down && !k->client_gone && !k->unread && !look_in(k))
        note_client_gone(k);
    if (up && !k->server_gone)
        k->server_gone = !take_in(k->server, &k->from_server);
}

void relay_serve(relay *k, bool down, bool up)
{
    if (!k->stalled) {
        take_all_in(k, down, up);
        pump_requests(k);
        if (!k->resets)
            read_last_byte(k);
        bytes_send(k->server, &k->to_server);
        pump_replies(k);
    }
    bytes_send(k->client, &k->to_client);
    if (!k->stalled)
        shut_server(k);
}

void relay_let_go(relay *k)
{
    if (k->request_held) {
        k->request_held = false;
        k->request_passes = true;
        k->rs->awaited++;
    }
    if (k->reply_held) {
        k->reply_held = false;
        k->first->awaited = true;
        k->rs->awaited++;
    }
}

void relay_execute(relay *k)
{
    if (!k->request_held)
        return;
    k->request_held = false;
    k->request_passes = k->keeps_reply = true;
}

void relay_cut(relay *k)
{
    shutdown(k->client, SHUT_RDWR);
    if (k->request_held) {
        note_client_gone(k);
        return;
    }
    shutdown(k->server, SHUT_RDWR);
    k->to_client.len = 0;
    k->cut = true;
}
