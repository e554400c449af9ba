/*
 * A stage for the core: clients without threads, servers without sockets, and
 * a clock that is moved by hand. A test plays the network for one operation:
 *
 *     play p;
 *     play_open(&p, 1);
 *     EXPECT_INT(play_begin(&p, &op), RL_ASK);       the part is on its way
 *     EXPECT_INT(play_answer(&p, 0, GRANTED), RL_DONE);
 *     play_close(&p);
 *
 * What play_begin() and the others answer is what the operation wants next:
 * RL_ASK while its round is not over, else what it said when it was resumed.
 * What is answered while it sleeps, or is done, is late, and nobody's.
 */
#ifndef UNIT_PLAY_H
#define UNIT_PLAY_H

#include "op/acquire.h"
#include "op/extend.h"
#include "test.h"

#define PLAY_CLIENTS 5
#define PLAY_WORDS   16

/* When a play begins, and what its clients' options are. */
#define PLAY_BEGAN_US   INT64_C(1000000000)
#define PLAY_TIMEOUT_MS 3000
#define PLAY_LEASE_MS   30000

#define MS INT64_C(1000)

/* The lease that most tests ask for. */
#define LEASE_MS 10000

/* What is left of a lease after the margin for clocks that drift. */
#define GOOD_US(lease_ms) ((lease_ms)*MS - (lease_ms)*10 - 2000)

/* Replies: to an acquire, with tokens of three digits; and to others. */
#define GRANTED(token) "$3\r\n" #token "\r\n"
#define VOTED(token, clock)                                                    \
    "*3\r\n:1\r\n$3\r\n" #token "\r\n$3\r\n" #clock "\r\n"
#define BUSY(ttl, ticket, rank)                                                \
    "*5\r\n:0\r\n:" #ttl "\r\n$3\r\n" #ticket "\r\n:0\r\n:" #rank "\r\n"
#define IS_BUSY  BUSY(30000, 500, 0)
#define GONE     "*1\r\n:-1\r\n"
#define GIVEN_UP "*1\r\n:-2\r\n"
#define LEFT     "*3\r\n:1\r\n$0\r\n\r\n:-1\r\n" /* to a leave */
#define YES      ":1\r\n"
#define NO       ":0\r\n"
#define NOSCRIPT "-NOSCRIPT No matching script.\r\n"
#define TRYAGAIN "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
#define LOADING  "-LOADING Redis is loading the dataset in memory\r\n"
#define NOPERM   "-NOPERM this user has no permissions\r\n"
#define READONLY "-READONLY You can't write against a read only replica.\r\n"
#define STRANGE  "-ERR something nobody has heard of\r\n"
#define WRONGTYPE                                                              \
    "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"

/* Who sleeps until something is due. */
enum { PLAY_KEEPER, PLAY_NOTIFIER, PLAY_SLEEPERS };

/* One client, and the line to its server. */
typedef struct play_client {
    rl_core core;
    rl_line line;
    bool away;   /* there is no connection to be had */
    int calls;   /* that were put on its lines */
    int lines;   /* that have taken the place of a broken one */
    int listens; /* how often its doorbell was to be started */
    int wakes[PLAY_SLEEPERS];
    int words; /* of the latest call */
    char word[PLAY_WORDS][128];
} play_client;

typedef struct play {
    int64_t now_us;
    size_t n;
    play_client client[PLAY_CLIENTS];
    rl_home home; /* of groups: the first client is theirs */
    int homes;    /* references to it */
    rl_owner owner, rival;
    rl_op *op;
    rl_next next; /* what it wants */
    rl_waker waker;
    rl_wake why;            /* what came to it, the strongest */
    rl_redirects redirects; /* of play_in_cluster(): nobody is told */
    rlock_event told;       /* the latest event, of a client or a group */
    char said[256];         /* its message */
    int events[14];         /* by type */
} play;

/* The lock "job" in the hash layout, and the same of a Red lock. */
extern const rl_target play_job, play_red;
extern const rl_target play_tokenless; /* play_job's lock, without tokens */

void play_open(play *p, size_t clients);
void play_close(play *p);

static inline rl_core *play_core(play *p, size_t i)
{
    return &p->client[i].core;
}

/* Its server is one of a cluster, where all is waited for. */
void play_in_cluster(play *p, size_t i);

/* One more client's, which has no line here; its events are the play's. */
void play_open_core(play *p, rl_core *c, unsigned number);
void play_close_core(rl_core *c);

rl_next play_begin(play *p, rl_op *op);
void play_forget(play *p); /* the operation, and goes on without it */

/* The client's server says these bytes. */
rl_next play_answer(play *p, size_t i, const char *reply);

/* All servers do, one after the other, until the round is over. */
rl_next play_answer_all(play *p, const char *reply);

/* The connection breaks; the next attempt gets a new one. */
rl_next play_cut(play *p, size_t i);

/* There is no connection any more, and none to be had. */
rl_next play_lose(play *p, size_t i);

/* The client's answer takes longer than its limit; and than its patience. */
rl_next play_slow(play *p, size_t i);
rl_next play_silent(play *p, size_t i);

/* In a cluster a call is asked again after a rest: it is over. */
rl_next play_rest(play *p);

/* The operation wakes: for what has come, or because its time is over. */
rl_next play_wake(play *p);
rl_next play_sleep(play *p); /* the whole of op->sleep_us */

void play_pass(play *p, int64_t us);

/* The latest call: as its script is called, and a word of it; a key; how many
   arguments it has, and one of them; the first is 1. */
const char *play_called(play *p, size_t i);
const char *play_word(play *p, size_t i, int n); /* below 0: from the end */
const char *play_key(play *p, size_t i, int n);
int play_args(play *p, size_t i);
const char *play_arg(play *p, size_t i, int n);

/* Of an acquire: ARGV. */
enum { HOLDER_ARG = 1, LEASE_ARG, LEVEL_ARG, BELL_ARG, TICKET_ARG, LEAST_ARG };
/* Of a release, after the holder. */
enum { CHANNEL_ARG = 2, LEFT_ARG, TOMBSTONE_ARG };
/* How many an acquire or a release has that says only what it must. */
#define BRIEF 2

/* A hold's holder id. */
typedef struct play_id {
    char text[RL_HOLDER_MAX];
} play_id;

play_id play_holder(const rl_hold *h);

/* A draft for the lock, a hold of it, and one more in a group. */
rl_hold *play_draft(play *p, size_t i, const rl_target *what, int64_t lease_ms);
rl_hold *play_hold(play *p, size_t i, const char *name, int64_t lease_ms);
rl_hold *play_member(play *p, size_t i, const rl_target *what, rl_group *g,
                     int64_t lease_ms);

/* How many holds were lost, for whatever reason. */
static inline uint64_t play_losses(const rl_stats *s)
{
    rlock_stats told;
    rl_stats_copy(&told, s);
    return told.lost;
}

/* For an acquire. */
void play_listen(rl_core *c, const rl_target *what);

/* An operation of one part; begin the part, then call this. */
void play_one(play *p, rl_op *op, rl_part *x);

#endif
