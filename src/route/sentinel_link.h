/*
 * One Sentinel, as the thread rlock-topology knows it. Who subscribes may ask
 * nothing else there, so there are two connections: one that asks, and one that
 * listens, which is made when the first is there.
 */
#ifndef RL_ROUTE_SENTINEL_LINK_H
#define RL_ROUTE_SENTINEL_LINK_H

#include "net/dialing.h"
#include "wire/table.h"

/* How long one question may take, besides the way there. */
#define RL_INFORMANT_US (300 * 1000)

typedef struct rl_informant {
    rl_dialing to_speak, to_hear; /* its connections, while they are made */
    int64_t connect_timeout_ms;   /* for each */
    char host[RL_PLACE_HOST];
    int port;
    const char *master;  /* what it calls the master; the owner's */
    rl_conn *mouth;      /* or NULL */
    rl_conn *ear;        /* follows soon */
    int64_t next_us;     /* when to connect, if it is not there */
    int64_t pause_us;    /* before that is tried again */
    int64_t since_us;    /* when it was connected */
    int64_t took_us;     /* how long that has taken */
    bool named;          /* it has told of a failover of our master */
    rl_slot slot;        /* of a question */
    bool over, answered; /* the question; with a list, in `table` */
    bool failed;         /* something, as `fault` says */
    rl_fault fault;
    rl_table table;
} rl_informant;

/* It is not connected yet. tls, user and password may be NULL, and stay. */
void rl_informant_init(rl_informant *n, const char *host, int port, rl_tls *tls,
                       const char *user, const char *password,
                       int64_t connect_timeout_ms);
void rl_informant_fini(rl_informant *n);

/* In a forked child: closes the descriptors of what is being made. */
void rl_informant_leave_behind(rl_informant *n);

/* Is it not connected, nor about to be? */
static inline bool rl_informant_is_away(const rl_informant *n)
{
    return !n->mouth && !rl_dialing_is_under_way(&n->to_speak);
}

typedef enum rl_progress {
    RL_PROGRESS_NONE,
    RL_PROGRESS_MADE, /* it can be asked, or heard, from now on */
    RL_PROGRESS_LOST  /* it is to be disconnected; n->fault says why */
} rl_progress;

/*
 * Begins to connect to it, on threads of its own: of several that are silent
 * none keeps the others waiting. The signal is raised when there is news.
 */
rl_progress rl_informant_connect(rl_informant *n, const rl_signal *signal);
/* Takes what has come of that. */
rl_progress rl_informant_look(rl_informant *n, const rl_signal *signal);
/* It is tried again after a pause, which grows until one has lasted. */
void rl_informant_disconnect(rl_informant *n);
/* Nothing is being made any more. */
void rl_informant_call_off(rl_informant *n);

/* "SENTINEL what master"; over at once, if it is not connected. */
void rl_informant_ask(rl_informant *n, const char *what);
/* Until when it may be waited for. */
static inline int64_t rl_informant_until(const rl_informant *n, int64_t now_us)
{
    return now_us + RL_INFORMANT_US + n->took_us;
}

/* Reads what it has answered; its time may be over. */
void rl_informant_serve(rl_informant *n, bool late);

/* Reads what it says by itself. False: it has gone. */
bool rl_informant_listen(rl_informant *n);

#endif
