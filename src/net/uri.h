/* Where a server is, or who knows that, and how to log in, read from a URI. */
#ifndef RL_NET_URI_H
#define RL_NET_URI_H

#include <stdbool.h>

#include "base/error.h"

/* A URI names at most so many Sentinels, or servers of a cluster. */
#define RL_URI_ENDPOINTS 8

typedef struct rl_endpoint {
    const char *host;
    int port;
} rl_endpoint;

typedef struct rl_uri {
    bool local; /* a Unix-domain socket */
    bool tls;
    const char *user;     /* or NULL */
    const char *password; /* or NULL */
    const char *host;     /* or the socket's path */
    int port;
    int db;
    bool cluster;       /* the endpoints are servers of one, */
    const char *master; /* or Sentinels, which call it so; else NULL */
    /* How the program's URI begins if the server is to be asked over TLS. NULL:
       rediss:// */
    const char *secure;
    rl_endpoint endpoint[RL_URI_ENDPOINTS];
    size_t endpoints;
    char shown[160]; /* for messages: without user and password */
    char *text;      /* owns what the pointers point to */
} rl_uri;

/*
 * RLOCK_OK; RLOCK_EINVAL with the position of the error, and never a piece of
 * the URI, which may be a piece of the password; RLOCK_ENOMEM. Afterwards *u
 * can be given to rl_uri_fini in any case.
 */
rlock_status rl_uri_parse(rl_uri *u, const char *uri, rl_fault *f);
/* Another server's, with the same login and TLS. */
rlock_status rl_uri_of(rl_uri *u, const rl_uri *like, const char *host,
                       int port, rl_fault *f);
void rl_uri_fini(rl_uri *u);

#endif
