/*
 * What one server of a cluster says of who has which slot: its answers to
 * CLUSTER NODES, for the ids and epochs, and then to CLUSTER SLOTS, for the
 * addresses at which clients are to find them. No I/O, no thread; nothing is
 * kept of the answers but this.
 *
 * A node is who it is by its id, wherever it is: epochs are its own, and do not
 * stay at an address that somebody else has now.
 */
#ifndef RL_ROUTE_SLOTMAP_REPLY_H
#define RL_ROUTE_SLOTMAP_REPLY_H

#include "base/list.h"
#include "net/dial.h"
#include "wire/hash_slot.h"
#include "wire/reply.h"

/* Of so many masters a map can tell, and replicas, which are asked for maps, up
   to half as many. */
#define RL_SLOT_OWNERS 1024

#define RL_NODE_ID 40

/* Such a text is refused. */
#define RL_SLOTMAP_TEXT (1024 * 1024)

typedef struct rl_slot_owner {
    char id[RL_NODE_ID + 1];
    char host[RL_PLACE_HOST]; /* "": where the one is that was asked */
    int port;                 /* 0: it has not been told, or is not known */
    int64_t epoch;            /* its configuration's */
    bool master;              /* else a replica */
    bool named;               /* by a range of slots */
    bool failed;              /* the server that says so cannot reach it */
} rl_slot_owner;

typedef struct rl_slotmap_reply {
    rl_sink nodes, slots; /* for the two answers, in this order */
    bool absurd;          /* one of them is none */
    rl_place from;        /* who was asked, as the asker has it */
    size_t self;          /* which node that is, from 1; 0: that is not told */
    size_t count;
    rl_slot_owner node[RL_SLOT_OWNERS];
    uint16_t owner[RL_HASH_SLOTS]; /* counted from 1; 0: nobody is named */
    size_t claimed;                /* how many slots are */
    /* Where reading is, in CLUSTER SLOTS: */
    long long range[2];
    unsigned ends, nodes_seen, fields;
    char host[RL_PLACE_HOST];
    long long port;
} rl_slotmap_reply;

void rl_slotmap_reply_init(rl_slotmap_reply *c);

/* The node with this id; NULL: it is not among them. */
const rl_slot_owner *rl_slotmap_reply_find(const rl_slotmap_reply *c,
                                           const char *id);

#endif
