/*
 * A connection keeps a queue of the requests whose replies are still to come.
 * What a rule does is written on the request in that queue and happens when the
 * request has come to its head: this is what keeps the order. Only holding a
 * request back happens earlier, for it stops the queue's other end.
 */
#include "relay.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "resp.h"

enum { PASS = -1, DRIP_MS = 20, CHUNK = 16384 };

/* A request that the server, or the proxy itself, has still to answer. */
struct request {
    request *next;
    int action;     /* a proxy_action, or PASS */
    int rule_id;    /* of the rule that gave the action */
    int replies;    /* how many it has: SUBSCRIBE has one for each channel */
    bool subscribe; /* or unsubscribe */
    bool awaited;   /* proxy_let_go() waits for it */
    char *answer;
};

/* Bytes. */

static void append(bytes *b, const char *p, size_t n)
{
    if (b->len + n > b->room) {
        b->room = 2 * (b->len + n);
        b->data = realloc(b->data, b->room);
        EXPECT(b->data);
    }
    if (n)
        memcpy(b->data + b->len, p, n);
    b->len += n;
}

static void drop(bytes *b, size_t n)
{
    b->len -= n;
    if (b->len)
        memmove(b->data, b->data + n, b->len);
}

static void move(bytes *from, bytes *to, size_t n)
{
    append(to, from->data, n);
    drop(from, n);
}

/* Reads what is there; false when the other side has closed. */
static bool take_in(int fd, bytes *b)
{
    char chunk[CHUNK];
    for (;;) {
        ssize_t n = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
        if (n > 0)
            append(b, chunk, (size_t)n);
        else if (n < 0 && errno == EINTR)
            continue;
        else
            return n < 0 && errno == EAGAIN;
    }
}

/* Sends what can be sent; what nobody will read any more is dropped. */
static void send_out(int fd, bytes *b)
{
    while (b->len) {
        ssize_t n = send(fd, b->data, b->len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        drop(b, n < 0 ? b->len : (size_t)n);
    }
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

static void mark(relay *k, request *rq)
{
    const rules *rs = k->rs;
    rq->action = (int)rs->action;
    rq->rule_id = rs->id;
    if (rs->action == PROXY_ANSWER) {
        rq->answer = strdup(rs->answer ? rs->answer : "");
        EXPECT(rq->answer);
    }
    k->no_more = rs->action == PROXY_CUT_BEFORE ||
                 rs->action == PROXY_CUT_AFTER ||
                 rs->action == PROXY_CUT_IN_REPLY;
}

static void take_request(relay *k, size_t len)
{
    const char *p = k->from_client.data;
    bool struck = false;
    if (!k->request_passes)
        struck = rules_strike(k->rs, p, len);
    if (struck && k->rs->action == PROXY_HOLD_REQUEST) {
        k->request_held = true;
        rules_fire(k->rs, k->rs->id);
        return;
    }
    request *rq = new_request(p, len);
    k->subscriber |= rq->subscribe;
    rq->awaited = k->request_passes;
    k->request_passes = false;
    if (struck)
        mark(k, rq);
    push(k, rq);
    if (rq->action == PROXY_CUT_BEFORE || rq->action == PROXY_ANSWER)
        drop(&k->from_client, len);
    else
        move(&k->from_client, &k->to_server, len);
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
        drop(&k->from_server, len);
    else
        move(&k->from_server, &k->to_client, len);
}

/* What the proxy does by itself when the request's turn has come. */
static bool serve_own(relay *k)
{
    request *rq = k->first;
    if (!rq || (rq->action != PROXY_ANSWER && rq->action != PROXY_CUT_BEFORE))
        return false;
    rules_fire(k->rs, rq->rule_id);
    if (rq->action == PROXY_CUT_BEFORE)
        k->cut = true;
    else if (!k->mute)
        append(&k->to_client, rq->answer, strlen(rq->answer));
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

/* The request's action on its reply; false if the reply stays where it is. */
static bool act(relay *k, request *rq, size_t len)
{
    int action = rq->action;
    rq->action = PASS;
    rules_fire(k->rs, rq->rule_id);
    switch (action) {
    case PROXY_CUT_AFTER:
        k->cut = true;
        drop(&k->from_server, len);
        return true;
    case PROXY_CUT_IN_REPLY:
        k->cut = true;
        pass(k, (len + 1) / 2);
        drop(&k->from_server, len - (len + 1) / 2);
        return true;
    case PROXY_HOLD_REPLY:
        k->reply_held = true;
        return false;
    case PROXY_DRIP_REPLY:
        k->drip_left = len;
        k->drip_at_ms = test_now_ms();
        return true;
    default: /* PROXY_SWALLOW_REPLY */
        k->mute = true;
        pass(k, len);
        return true;
    }
}

static void take_reply(relay *k, size_t len)
{
    const char *p = k->from_server.data;
    request *rq = asked_by(k, p, len);
    bool error = *p == '-';
    if (!rq || rq->action == PASS)
        pass(k, len);
    else if (!act(k, rq, len))
        return;
    if (rq && (error || --rq->replies == 0))
        pop(k);
}

static void drip(relay *k)
{
    while (k->drip_left && test_now_ms() >= k->drip_at_ms) {
        pass(k, 1);
        k->drip_left--;
        k->drip_at_ms = test_now_ms() + DRIP_MS;
    }
}

static void pump_replies(relay *k)
{
    while (!k->reply_held && !k->cut) {
        drip(k);
        if (k->drip_left)
            return;
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

void relay_free(relay *k)
{
    while (k->first)
        pop(k);
    if (k->request_passes)
        rules_settle(k->rs);
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
    k->mute = true;
    if (k->drip_left)
        drop(&k->from_server, k->drip_left);
    k->drip_left = 0;
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
    if (!k->server_gone)
        return false;
    return k->client_gone ||
           (!k->mute && !k->reply_held && !k->drip_left && !k->to_client.len);
}

void relay_serve(relay *k, bool down, bool up)
{
    if (down && !k->client_gone && !take_in(k->client, &k->from_client))
        note_client_gone(k);
    if (up && !k->server_gone)
        k->server_gone = !take_in(k->server, &k->from_server);
    pump_requests(k);
    send_out(k->server, &k->to_server);
    pump_replies(k);
    send_out(k->client, &k->to_client);
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
