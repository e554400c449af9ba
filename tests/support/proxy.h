/*
 * A proxy between the library and a server, for faults in the connection: it
 * listens on a Unix socket, forwards each connection to the server's socket,
 * understands just enough RESP to tell requests and replies apart, and does
 * what its rules say. It runs on a thread of the test's process.
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
 */
#ifndef TEST_SUPPORT_PROXY_H
#define TEST_SUPPORT_PROXY_H

#include "server.h"

typedef enum proxy_action {
    PROXY_CUT_BEFORE,    /* close both sides; the server never sees it, nor
                            what follows it on this connection */
    PROXY_CUT_AFTER,     /* let the server execute it, but nothing behind it,
                            then close both sides: the reply is lost */
    PROXY_CUT_IN_REPLY,  /* the same, but pass half of the reply's bytes */
    PROXY_SWALLOW_REPLY, /* execute it and all that follows, keep the
                            connection, and never answer any more */
    PROXY_HOLD_REQUEST,  /* keep it back, and all that follows on this
                            connection, until proxy_let_go(); it is then
                            executed even if the client has gone */
    PROXY_HOLD_REPLY,    /* execute it; pass the reply, and the later ones of
                            this connection, at proxy_let_go() */
    PROXY_DRIP_REPLY,    /* pass the reply a byte every 20 ms */
    PROXY_ANSWER         /* do not forward; answer with the rule's text, which
                            is sent as it is, also if it is no RESP */
} proxy_action;

typedef struct proxy proxy;

/* Several proxies of one server are possible. */
proxy *proxy_start(server *sv);
/* Closes all connections; what is held is not executed any more. To be called
   before server_stop(). */
void proxy_stop(proxy *px);
const char *proxy_uri(const proxy *px);
const char *proxy_path(const proxy *px);

/*
 * One rule at a time; it fires once. answer: for PROXY_ANSWER, else NULL. A
 * new rule replaces the one before; what that one holds stays held. needle
 * NULL: no rule.
 */
void proxy_rule(proxy *px, const char *needle, int nth, proxy_action action,
                const char *answer);
/*
 * Has the rule's moment come? That is, has the proxy cut, held, swallowed,
 * answered or begun to drip: where the action is about a reply, the server has
 * executed the request.
 */
bool proxy_fired(proxy *px);
/*
 * Lets go of all that is held. Returns when the server has answered the held
 * request (so that it has been executed), or the held reply has been passed;
 * fails the test when that takes more than 5 s. No effect if nothing is held.
 */
void proxy_let_go(proxy *px);
/* Requests seen so far that match the needle; those not that wait behind a
   held one. */
int proxy_count(proxy *px, const char *needle);
/* Counts from 0 again, and needs no memory for the requests until now. */
void proxy_forget(proxy *px);
/* Refuse new connections (they are closed at once) or accept them again. */
void proxy_refuse(proxy *px, bool refuse);
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
