/* Who listens for the ends of owners. */
#ifndef UNIT_EAR_H
#define UNIT_EAR_H

#include "run/owner.h"
#include "test.h"

typedef struct ear {
    rl_owner_listener l;
    int told;
    uint64_t owner;
} ear;

static inline void hear(void *arg, uint64_t owner)
{
    ear *e = arg;
    e->told++;
    e->owner = owner;
}

static inline void listen_by(ear *e)
{
    *e = (ear){.l = {.ended = hear, .arg = e}};
    EXPECT(rl_owner_listen(&e->l));
}

#endif
