/*
 * One Sentinel, as the thread rlock-topology knows it. Who subscribes may ask
 * nothing else there, so there are two connections: one that listens, and one
 * that asks.
 */
#ifndef RL_ROUTE_INFORMANT_H
#define RL_ROUTE_INFORMANT_H

#include "net/dial.h"
#include "wire/table.h"

/* How long one question may take, and one attempt to connect. */
#define RL_INFORMANT_US (300 * 1000)

typedef struct rl_informant {
    rl_dialer dialer;
    char host[RL_PLACE_HOST];
    const char *master;   /* what it calls the master; the owner's */
    rl_conn *ear, *mouth; /* both or none */
    int64_t next_us;      /* when to connect, if it is not there */
    int64_t pause_us;     /* before that is tried again */
    bool named;           /* it has told of a failover of our master */
    rl_slot slot;         /* of a question */
    bool over, answered;  /* the question; with a list, in `table` */
    bool failed;          /* something, as `fault` says */
    rl_fault fault;
    rl_table table;
} rl_informant;

/* It is not connected yet. tls, user and password may be NULL, and stay. */
void rl_informant_init(rl_informant *n, const char *host, int port,
                       const rl_tls *tls, const char *user,
                       const char *password);
void rl_informant_fini(rl_informant *n);

/* Blocks for RL_INFORMANT_US. False: it is not there; n->fault says why. */
bool rl_informant_connect(rl_informant *n);
/* It is tried again after a pause, which grows until it has answered. */
void rl_informant_disconnect(rl_informant *n);

/* "SENTINEL what master"; over at once, if it is not connected. */
void rl_informant_ask(rl_informant *n, const char *what);
/* Until it is over, or that time. */
void rl_informant_await(rl_informant *n, int64_t until_us);

/* Reads what it says by itself. False: it has gone. */
bool rl_informant_listen(rl_informant *n);

#endif
