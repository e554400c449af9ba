/*
 * One Sentinel, as the thread rlock-topology knows it. Who subscribes may ask
 * nothing else there, so there are two connections: one that listens, and one
 * that asks.
 */
#ifndef RL_ROUTE_INFORMANT_H
#define RL_ROUTE_INFORMANT_H

#include "net/dial.h"
#include "wire/table.h"

/* How long one question may take. */
#define RL_INFORMANT_US (300 * 1000)

typedef struct rl_informant {
    rl_dialer dialer;
    char host[RL_PLACE_HOST];
    const char *master;   /* what it calls the master; the owner's */
    rl_conn *ear, *mouth; /* both or none */
    int64_t next_us;      /* when to connect, if it is not there */
    int64_t pause_us;     /* before that is tried again */
    int64_t patience_us;  /* how long an attempt may take */
    int64_t since_us;     /* when it was connected */
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

/*
 * Blocks for a short time, which grows with each attempt that is in vain: of
 * several that are silent none keeps the others waiting for long. False: it is
 * not there; n->fault says why.
 */
bool rl_informant_connect(rl_informant *n);
/* It is tried again after a pause, which grows until one has lasted. */
void rl_informant_disconnect(rl_informant *n);

/* "SENTINEL what master"; over at once, if it is not connected. */
void rl_informant_ask(rl_informant *n, const char *what);
/* Reads what it has answered; its time may be over. */
void rl_informant_serve(rl_informant *n, bool late);

/* Reads what it says by itself. False: it has gone. */
bool rl_informant_listen(rl_informant *n);

#endif
