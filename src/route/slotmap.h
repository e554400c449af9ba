/*
 * What a client knows of its cluster: the servers, and which of them has which
 * slot. The loop brings what a server says (cluster.c); redirects come from any
 * thread.
 */
#ifndef RL_ROUTE_SLOTMAP_H
#define RL_ROUTE_SLOTMAP_H

#include "base/thread.h"
#include "net/conn.h"
#include "route/cluster.h"
#include "route/era.h"
#include "route/race.h"
#include "route/slotmap_reply.h"

/*
 * A node of the cluster at an address. One that moves is another server there;
 * and at an address that one has left for good another node may follow, which
 * is then the same server.
 */
struct rl_server {
    rl_cluster *cluster;     /* fixed */
    unsigned number;         /* fixed; counted from 1 */
    void *made;              /* fixed; by add() */
    rl_place place;          /* fixed but nth, which grows when it is left */
    char id[RL_NODE_ID + 1]; /* the node's; "": only a redirect has named it */
    int64_t epoch;           /* of its configuration, as far as is known */
    size_t slots;            /* how many it has */
    bool retired;            /* it has lost all it had; then: */
    int64_t dismiss_us;      /* when what there is for it is to go */
    unsigned absent;         /* so many askings in a row did not find it */
    unsigned known, unknown; /* to so many that this asking has asked, */
    bool present;            /* one of whom was the node itself */
    bool suspect;            /* something is wrong with it */
    unsigned dials;          /* so many threads are connecting to it, */
    int64_t dial_us;         /* the first of them since then */
    char name[];             /* fixed; its URI, for messages */
};

/* What a map means for the one there was. */
typedef struct rl_change {
    uint16_t office[RL_HASH_SLOTS];
    rl_server *leaves[RL_SERVERS]; /* those that have lost all */
    unsigned left;                 /* how many */
    unsigned failovers;            /* how many of them were replaced, */
    char failover[640];            /* in words; or "" */
    bool lacking; /* somebody is named for whom there is no memory */
} rl_change;

/* So many are asked when one does not know who is in office. */
#define RL_WITNESSES 16

struct rl_cluster {
    rl_cluster_options o; /* fixed */
    rl_uri uri;           /* likewise; o.uri */
    rl_redirects redirects;
    /* Who is asked about a slot: a server's number; 0: nobody is known. It is
       who has it by the maps, or, since then, by a redirect. */
    _Atomic uint16_t owner[RL_HASH_SLOTS];
    /* Those behind `count` are NULL. Written under the mutex, never changed. */
    _Atomic(rl_server *) server[RL_SERVERS];
    rl_mutex mutex; /* guards what follows, and all of the servers' that is not
                       fixed, */
    rl_cond told;
    unsigned count;
    uint16_t office[RL_HASH_SLOTS]; /* who has a slot by the maps; or 0 */
    bool known;                     /* a map has been told */
    unsigned rounds;    /* so often all that there are have been asked */
    rl_fault why;       /* the latest failure to be told one */
    rl_server *witness; /* it knows who has what somebody was denied; NULL */
    rl_server *accused; /* complained of last, */
    int64_t accused_us; /* then; NULL: none was */
    bool suspected, closed;
    int64_t hope_us; /* somebody is being asked, and may answer until then */
    int fd;          /* of `conn`; for a forked child */
    /* up to here. The loop's, but read under the mutex: */
    int64_t asked_us, gap_us, routine_us;
    /* The loop's: */
    int64_t trouble_us, troubled_us; /* it began; it was last told of */
    int64_t patience_us; /* with one server, besides the way there, */
    int64_t took_us;     /* which takes less than this */
    bool unhelpful;      /* who was asked last had nothing new, in trouble */
    rl_place *replica;   /* whom the last map named as one, */
    size_t replicas;     /* so many */
    rl_conn *conn;       /* to who was asked last, or is being asked; NULL */
    rl_place at;         /* who that is */
    /* An asking (canvass.c): who is asked now, one after the other; */
    enum {
        RL_ASKS_NOBODY,
        RL_ASKS_WITNESS, /* who denied what the client believes; */
        RL_ASKS_AGAIN,   /* who was asked last; */
        RL_ASKS_ANYBODY, /* until somebody has answered; */
        RL_ASKS_CENSUS   /* and then the others, if he does not know them all */
    } asks;
    struct {
        bool alone;     /* nobody is called but `place`; or all are */
        rl_place place; /* that one */
        int pass;       /* of several kinds of them one after the other, */
        size_t i;       /* where it is there, */
        size_t first;   /* and where it began */
        size_t servers; /* so many were known then */
    } next;
    rl_race race;
    rl_question question;   /* at `conn`, */
    bool waits;             /* if it is under way, */
    bool second;            /* the second of the two, */
    int64_t until_us;       /* and until when */
    rl_slotmap_reply *said; /* what is being answered, or was; NULL: none */
    bool answered;          /* somebody has, in this asking */
    rl_change *change;      /* for what it means */
    struct {
        rl_slotmap_reply *ours, *strange; /* the first of each kind; or NULL */
        rl_place at[RL_WITNESSES];        /* whom to ask; so many are listed, */
        unsigned count, asked;            /* and were asked */
        /* Who has answered: one may have two addresses. */
        char heard[RL_WITNESSES + 1][RL_NODE_ID + 1];
        unsigned answers;
    } census;
    rl_cluster *next_left_behind; /* in a forked child */
};

void rl_slotmap_init(rl_cluster *c);

/* Who is asked at this address, if several have been there; NULL: nobody. */
rl_server *rl_slotmap_find(rl_cluster *c, const char *host, int port)
    RL_REQUIRES(&c->mutex);

/* Of whom add() has made this; NULL: of nobody. */
rl_server *rl_slotmap_made(rl_cluster *c, const void *made)
    RL_REQUIRES(&c->mutex);

/* Who has which slot from now on. False: nothing has changed. */
bool rl_slotmap_judge(rl_cluster *c, const rl_slotmap_reply *said,
                      rl_change *ch) RL_REQUIRES(&c->mutex);
void rl_slotmap_publish(rl_cluster *c, const rl_change *ch)
    RL_REQUIRES(&c->mutex);

/* --- whether who is in office is still there -------------------------------
 */

/* Does who says so know anybody who is in office; or all of them? */
bool rl_slotmap_is_ours(rl_cluster *c, const rl_slotmap_reply *said)
    RL_REQUIRES(&c->mutex);
bool rl_slotmap_is_known(rl_cluster *c, const rl_slotmap_reply *said)
    RL_REQUIRES(&c->mutex);

/* One asking of several: each answer is counted once. */
void rl_slotmap_begin_count(rl_cluster *c) RL_REQUIRES(&c->mutex);
void rl_slotmap_count(rl_cluster *c, const rl_slotmap_reply *said)
    RL_REQUIRES(&c->mutex);
/* *anybody: somebody who is in office was found. True: somebody was not, and is
   to be looked for again. */
bool rl_slotmap_end_count(rl_cluster *c, bool *anybody) RL_REQUIRES(&c->mutex);

#endif
