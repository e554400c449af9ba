/*
 * One connection through the proxy. No thread and no lock of its own: the
 * proxy's thread calls it with the proxy's mutex held.
 */
#ifndef TEST_SUPPORT_RELAY_H
#define TEST_SUPPORT_RELAY_H

#include <poll.h>

#include "bytes.h"
#include "rules.h"

typedef struct request request;
typedef struct relay relay;

struct relay {
    relay *next;
    rules *rs;
    int client, server;
    bytes from_client, to_server, from_server, to_client;
    request *first, *last; /* that the server has still to answer */
    bool client_gone, server_gone;
    bool server_shut;    /* it was told that no more requests come */
    bool subscriber;     /* messages may come that answer no request */
    int holds_next;      /* the rule that holds the next request; 0: none */
    bool request_held;   /* the first of from_client */
    bool request_passes; /* let go of: no rule looks at it again */
    bool keeps_reply;    /* and its reply is held instead */
    size_t rest;         /* bytes of from_server that end a reply */
    bool reply_held;     /* they wait for proxy_let_go() */
    bool drips;          /* they pass one by one */
    int64_t drip_at_ms;
    bool no_more; /* no request behind this one is forwarded */
    bool mute;    /* no reply is passed any more */
    bool cut;     /* to be closed when to_client is sent */
    bool resets;  /* and then in such a way that the client sees a reset */
    bool unread;  /* the last byte of from_client was looked at, not read */
    bool stalled;
};

/* Takes over the two connected descriptors. */
relay *relay_new(rules *rs, int client, int server);
void relay_free(relay *k);
/* What it is to be told of, at the client's side and at the server's. */
void relay_list(const relay *k, struct pollfd *down, struct pollfd *up);
/* Moves what can be moved. down, up: does poll() report something for the
   client, for the server? */
void relay_serve(relay *k, bool down, bool up);
/* Is it at its end, and to be freed? */
bool relay_is_over(const relay *k);
/* Lets go of what is held; rs->awaited counts it until it is answered. */
void relay_let_go(relay *k);
/* Has a held request executed, and holds its reply. */
void relay_execute(relay *k);
/* Closes both sides, or with a held request the client's only. The descriptors
   stay valid, as poll() may be using them. */
void relay_cut(relay *k);
/*
 * shutdown() and close(): after a fork() of the test a child has copies of the
 * descriptor, and close() alone would not be noticed on the other side.
 */
void relay_close_fd(int fd);

#endif
