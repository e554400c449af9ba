/*
 * One Sentinel, as the loop knows it. Who subscribes may ask
 * nothing else there, so there are two connections: one that asks, and one that
 * listens, which is made when the first is there.
 */
#ifndef RL_ROUTE_SENTINEL_LINK_H
#define RL_ROUTE_SENTINEL_LINK_H

#include <poll.h>

#include "net/dialing.h"
#include "wire/table.h"

/* How long one question may take, besides the way there. */
#define RL_SENTINEL_LINK_US (300 * 1000)

typedef struct rl_sentinel_link {
    rl_dialing to_speak, to_hear; /* its connections, while they are made */
    int64_t connect_timeout_ms;   /* for each */
    char host[RL_PLACE_HOST];
    int port;
    const char *master;   /* what it calls the master; the owner's */
    rl_conn *ask_conn;    /* or NULL */
    rl_conn *listen_conn; /* follows soon */
    int64_t next_us;      /* when to connect, if it is not there */
    int64_t pause_us;     /* before that is tried again */
    int64_t since_us;     /* when it was connected */
    int64_t took_us;      /* how long that has taken */
    bool named;           /* it has told of a failover of our master */
    rl_slot slot;         /* of a question */
    bool over, answered;  /* the question; with a list, in `table` */
    bool failed;          /* something, as `fault` says */
    rl_fault fault;
    rl_table table;
} rl_sentinel_link;

/* It is not connected yet. tls, user and password may be NULL, and stay. */
void rl_sentinel_link_init(rl_sentinel_link *n, const char *host, int port,
                           rl_tls *tls, const char *user, const char *password,
                           int64_t connect_timeout_ms);
/* The way to it, for who dials by himself. Any thread: it never changes. */
void rl_sentinel_link_copy_dialer(const rl_sentinel_link *n, rl_dialer *to);
void rl_sentinel_link_fini(rl_sentinel_link *n);

/* In a forked child: closes the descriptors of what is being made. */
void rl_sentinel_link_leave_behind(rl_sentinel_link *n);

/* Is it not connected, nor about to be? */
static inline bool rl_sentinel_link_is_away(const rl_sentinel_link *n)
{
    return !n->ask_conn && !rl_dialing_is_under_way(&n->to_speak) &&
           !rl_dialing_is_under_way(&n->to_hear);
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
rl_progress rl_sentinel_link_connect(rl_sentinel_link *n,
                                     const rl_signal *signal);
/* Takes what has come of that. */
rl_progress rl_sentinel_link_look(rl_sentinel_link *n, const rl_signal *signal);
/* A question has failed. It is tried again after a pause, which grows until one
   has lasted. */
void rl_sentinel_link_disconnect(rl_sentinel_link *n);
/* For good: blocks until nothing is being made any more. */
void rl_sentinel_link_call_off(rl_sentinel_link *n);

/* "SENTINEL what master"; over at once, if it is not connected. */
void rl_sentinel_link_ask(rl_sentinel_link *n, const char *what);
/* Until when it may be waited for. */
static inline int64_t rl_sentinel_link_until(const rl_sentinel_link *n,
                                             int64_t now_us)
{
    return now_us + RL_SENTINEL_LINK_US + n->took_us;
}

/* Reads what it has answered; its time may be over. */
void rl_sentinel_link_serve(rl_sentinel_link *n, bool late);

/* Reads what it says by itself. False: it has gone, as n->fault says. */
bool rl_sentinel_link_listen(rl_sentinel_link *n);

/* What is to be polled meanwhile: two descriptors. */
size_t rl_sentinel_link_poll(const rl_sentinel_link *n, struct pollfd *p);

#endif
