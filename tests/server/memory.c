/* What the client keeps in memory for what it has: README's figures. */
#include <malloc.h>

#include "scene.h"

/* In use, without what the allocator keeps for itself. */
static size_t in_use(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

/* A handle and its hold, renewed by the watchdog; the name takes 16 bytes. */
TEST(memory, a_held_lock_takes_no_more_than_the_readme_says)
{
    enum { LOCKS = 30000, README = 400 };
    static rlock *lk[LOCKS + 1];
    server *sv = server_start(NULL);
    rlock_client *cl = server_client(sv, NULL);
    if (in_use() == 0)
        SKIP("the C library does not tell how much memory is in use");
    size_t before = 0;
    for (int i = 0; i <= LOCKS; i++) {
        char name[32];
        snprintf(name, sizeof name, "memory:%d", i);
        lk[i] = test_lock(cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
        if (i == 0)
            before = in_use(); /* the threads run */
    }
    EXPECT_BETWEEN((in_use() - before) / LOCKS, 200, README);
    for (int i = 0; i <= LOCKS; i++)
        rlock_free(lk[i]);
    rlock_client_free(cl);
    server_stop(sv);
}
