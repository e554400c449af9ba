/*
 * What one server of a cluster says of who has which slot: its answers to
 * CLUSTER NODES, for the masters' epochs, and then to CLUSTER SLOTS, for the
 * addresses at which clients are to find them. No I/O, no thread; nothing is
 * kept of the answers but this.
 */
#ifndef RL_ROUTE_CLAIMS_H
#define RL_ROUTE_CLAIMS_H

#include "base/list.h"
#include "net/dial.h"
#include "wire/keyslot.h"
#include "wire/reply.h"

/* Of so many masters a client can know. */
#define RL_CLAIMANTS 512

#define RL_NODE_ID 40

/* Such a text is refused. */
#define RL_CLAIMS_TEXT (1024 * 1024)

typedef struct rl_claimant {
    char id[RL_NODE_ID + 1];
    char host[RL_PLACE_HOST]; /* "": where the one is that was asked */
    int port;                 /* 0: it has not been told */
    int64_t epoch;            /* its configuration's */
    bool failed;              /* the server that says so cannot reach it */
} rl_claimant;

typedef struct rl_claims {
    rl_sink nodes, slots; /* for the two answers, in this order */
    bool absurd;          /* one of them is none */
    size_t count;
    rl_claimant node[RL_CLAIMANTS];
    uint16_t owner[RL_KEYSLOTS]; /* counted from 1; 0: nobody is named */
    size_t claimed;              /* how many slots are */
    /* Where reading is, in CLUSTER SLOTS: */
    long long range[2];
    unsigned ends, nodes_seen, fields;
    char host[RL_PLACE_HOST];
    long long port;
} rl_claims;

void rl_claims_init(rl_claims *c);

#endif
