/*
 * A server that answers what the input says, over socket pairs that a client
 * gets from its connect callback. It understands requests just well enough to
 * know what an agreeable answer would be; that is what it gives when the input
 * is at its end, and what the input may cut, repeat, delay, or replace by
 * another one, or by anything.
 *
 * The input is read by the answers and by the calls that ask for them alike,
 * as both come about. What a client asks on its first connection, which becomes
 * its watchdog's, has an input of its own: it comes at times that no input
 * decides.
 */
#ifndef FUZZ_PEER_H
#define FUZZ_PEER_H

#include "fuzz.h"

typedef struct peer peer;

/* polite: what clients ask before they are used is answered agreeably. */
peer *peer_start(feed in, feed background, bool polite);
void peer_stop(peer *p); /* closes all connections */

/* A callback for rlock_options, and its argument: a new one for each client. */
struct redisContext *peer_connect(void *door);
void *peer_door(peer *p);

/* Where a client connects by itself instead; for as long as the peer lives. */
const char *peer_uri(void *door);

/* For who makes the calls. */
unsigned peer_choice(peer *p, unsigned limit);
int64_t peer_number(peer *p);
bool peer_is_done(peer *p); /* the input is at its end */

/* How many answers so far could be taken for a grant. */
unsigned peer_grants(peer *p);

/* The name of the lock whose bell is rung. */
#define PEER_LOCK "fuzz"

#endif
