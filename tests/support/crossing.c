#include "crossing.h"

static intptr_t cross(void *arg)
{
    crossing *c = arg;
    EXPECT_STATUS(rlock_lock(c->mine), RLOCK_OK);
    atomic_store(&c->has, true);
    EVENTUALLY(SOON, atomic_load(&c->other->has));
    c->status = rlock_lock(c->wanted);
    if (c->status == RLOCK_OK)
        rlock_unlock(c->wanted);
    return rlock_unlock(c->mine);
}

void crossing_start(crossing c[2])
{
    for (int i = 0; i < 2; i++) {
        c[i].other = &c[!i];
        c[i].thread = test_spawn(cross, &c[i]);
    }
    EVENTUALLY(SOON, atomic_load(&c[0].has) && atomic_load(&c[1].has));
}

void crossing_end(crossing *c, rlock_status wanted)
{
    EXPECT_INT(test_join(c->thread), RLOCK_OK);
    EXPECT_STATUS(c->status, wanted);
}
