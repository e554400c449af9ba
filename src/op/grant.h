/*
 * Grants by message. Who waits may be granted the lock by whoever makes room for
 * it, on the server, which then says so on the waiter's bell:
 *
 *     rlock_grant:<uuid of the hold> <beat> <token> <claim ms> <name>
 *
 * A ring is a hint; this is believed, so it is read strictly. The beat is the
 * clock of the waiter's client, in us, before it sent the call that the server has
 * it from, so the grant is younger than that: who counts the claim from there needs
 * no other clock, and one that is late or comes twice is over by itself.
 */
#ifndef RL_OP_GRANT_H
#define RL_OP_GRANT_H

#include "hold/room.h"
#include "wire/reply.h"

/* No script grants for longer (lua/line.lua). */
#define RL_CLAIM_MOST_MS 3000

/* False: it says nothing that could be believed. The name stays in the text. */
bool rl_notice_read(rl_notice *n, const char *text, size_t len);

/* True: it was no ring. Who waits is told if it is a grant for him. */
bool rl_grant_hear(rl_rooms *rooms, const rl_item *said);

/* May it be begun with, without asking? Not when less than a quarter is left. */
bool rl_claim_is_good(int64_t beat_us, int64_t claim_ms, int64_t now_us);

#endif
