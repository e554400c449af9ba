/*
 * A proxy between the library and a server, for faults in the connection: it
 * listens on a Unix socket, or on a TCP port, forwards each connection to the
 * server's socket, understands just enough RESP to tell requests and replies
 * apart, and does what its rules say. It runs on a thread of the test's
 * process.
 *
 * A rule looks for the nth request (1 is the first, counted from when the rule
 * is set) that matches a needle:
 *
 *   any bytes that occur in the request: a holder id, a key's name, ... ("" is
 *   in every request);
 *   the name of a command, in upper or lower case;
 *   the SHA1 of one of the library's scripts, see proxy_sha(): the EVALSHA has
 *   it among its bytes, and an EVAL that carries the script itself matches
 *   too. On a server that lacks the script the library sends both, which are
 *   two requests; server_load_scripts() avoids that.
 *
 * Requests and replies of a connection keep their order: what came before the
 * request that a rule is about is executed and answered before the rule acts.
 *
 * What happens then has two parts: the point, where in the request's life its
 * connection fails, and the way in which it does. PROXY_MID_REPLY | PROXY_RESET
 * is an action.
 */
#ifndef TEST_SUPPORT_PROXY_H
#define TEST_SUPPORT_PROXY_H

#include "server.h"

typedef enum proxy_action {
    /* Points. */
    PROXY_SENT = 0x10,      /* the client has sent it; the server gets neither
                               it nor what follows it on this connection */
    PROXY_EXECUTED = 0x20,  /* the server has executed it; no byte of its reply
                               is passed */
    PROXY_MID_REPLY = 0x30, /* a part of its reply is passed: half of the bytes,
                               or as many as proxy_rule_at() says */
    PROXY_ANSWERED = 0x40,  /* its whole reply is passed: whatever comes next on
                               this connection meets the fault before it is
                               sent */
    PROXY_ANSWER = 0x50,    /* it is not forwarded, and answered with the rule's
                               text, which is sent as it is, also if it is no
                               RESP. Without a way the connection goes on */

    /* Ways. After the first three no later request is executed. */
    PROXY_CLOSED = 1, /* both sides are closed */
    PROXY_RESET,      /* the same, but to the client by a reset */
    PROXY_STALLED,    /* no byte moves any more; the connections stay open, and
                         neither side learns that the other has closed */
    PROXY_TIMEOUT,    /* nothing is answered any more (but what comes after
                         PROXY_EXECUTED or PROXY_MID_REPLY is executed); when
                         the client closes, so does the proxy */
    PROXY_LATE,       /* the request (after PROXY_ANSWERED: the next one), or
                         the rest of the reply, is kept back until
                         proxy_let_go(), be that soon or not, and all that
                         follows with it. A request is then executed even if
                         the client has gone */
    PROXY_DRIP,       /* the rest of the reply passes a byte every 20 ms */

    /* Those that many tests use. */
    PROXY_CUT_BEFORE = PROXY_SENT | PROXY_CLOSED,
    PROXY_CUT_AFTER = PROXY_EXECUTED | PROXY_CLOSED,
    PROXY_CUT_IN_REPLY = PROXY_MID_REPLY | PROXY_CLOSED,
    PROXY_SWALLOW_REPLY = PROXY_EXECUTED | PROXY_TIMEOUT,
    PROXY_HOLD_REQUEST = PROXY_SENT | PROXY_LATE,
    PROXY_HOLD_REPLY = PROXY_EXECUTED | PROXY_LATE,
    PROXY_DRIP_REPLY = PROXY_EXECUTED | PROXY_DRIP
} proxy_action;

typedef struct proxy proxy;

/* Several proxies of one server are possible. */
proxy *proxy_start(server *sv);
/* On a port of 127.0.0.1; it still talks to the server's Unix socket. */
proxy *proxy_start_tcp(server *sv);
/* Closes all connections; what is held is not executed any more. To be called
   before server_stop(). */
void proxy_stop(proxy *px);
const char *proxy_uri(const proxy *px);
const char *proxy_path(const proxy *px); /* "" over TCP */

/* For nth: not one request, but all that match. */
enum { PROXY_EVERY = 0 };

/*
 * One rule at a time; it fires once, or each time. answer: for PROXY_ANSWER,
 * else NULL. A new rule replaces the one before; what that one holds stays
 * held. needle NULL: no rule.
 */
void proxy_rule(proxy *px, const char *needle, int nth, proxy_action action,
                const char *answer);
/* A rule at PROXY_MID_REPLY, with a way, after so many bytes of the reply. */
void proxy_rule_at(proxy *px, const char *needle, int nth, size_t bytes,
                   proxy_action way);
/*
 * Has the rule's moment come? That is, has the proxy cut, held, swallowed,
 * answered or begun to drip: where the action is about a reply, the server has
 * executed the request. What is closed or reset is so by then. PROXY_ANSWERED |
 * PROXY_LATE has its moment when there is a request to hold.
 */
bool proxy_fired(proxy *px);
/*
 * Lets go of all that is held. Returns when the server has answered the held
 * request (so that it has been executed), or the held reply has been passed;
 * fails the test when that takes more than 5 s. No effect if nothing is held.
 */
void proxy_let_go(proxy *px);
/*
 * Has the requests that are held executed, soon, and holds their replies
 * instead, until proxy_let_go().
 */
void proxy_execute(proxy *px);
/* Requests seen so far that match the needle; those not that wait behind a
   held one. */
int proxy_count(proxy *px, const char *needle);
/* Counts from 0 again, and needs no memory for the requests until now. */
void proxy_forget(proxy *px);
/* Refuse new connections (they are closed at once) or accept them again. */
void proxy_refuse(proxy *px, bool refuse);
/* What new connections are told before they have asked anything; NULL: nothing.
   Those that are refused, too. */
void proxy_greet(proxy *px, const char *greeting);
/*
 * Cuts every connection that is open now. Where a request is held only the
 * client's side is cut: proxy_let_go() still has it executed.
 */
void proxy_cut_all(proxy *px);
/* Stops forwarding in both directions without closing, or goes on. */
void proxy_freeze(proxy *px, bool frozen);

/* SHA1 of an embedded script, by its file's name: "acquire", "renew", ... */
const char *proxy_sha(const char *script);

#endif
