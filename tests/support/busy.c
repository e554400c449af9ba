#include "busy.h"

#define START_MS 10000

static intptr_t run(void *arg)
{
    busy *b = arg;
    while (!atomic_load(&b->stop)) {
        EXPECT_STATUS(rlock_lock(b->lk), RLOCK_OK);
        if (b->inside)
            b->inside(b);
        atomic_fetch_add(&b->sections, 1);
        EXPECT_STATUS(rlock_unlock(b->lk), RLOCK_OK);
    }
    return 0;
}

void busy_start(busy *b, int sections)
{
    for (int i = 0; i < BUSY; i++)
        b->thread[i] = test_spawn(run, b);
    EVENTUALLY(START_MS, atomic_load(&b->sections) > sections);
}

void busy_stop(busy *b)
{
    atomic_store(&b->stop, true);
    for (int i = 0; i < BUSY; i++)
        test_join(b->thread[i]);
}
