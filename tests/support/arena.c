#include "arena.h"

#include <sched.h>
#include <sys/mman.h>

enum { CHILD_NODES = 3 };

arena *arena_new(void)
{
    arena *a = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(a != MAP_FAILED);
    return a;
}

void arena_end(arena *a, int entered)
{
    EXPECT_INT(atomic_load(&a->entered), entered);
    EXPECT_INT(atomic_load(&a->clashes), 0);
    munmap(a, sizeof *a);
}

void arena_go_on(arena *a, int times)
{
    int entered = atomic_load(&a->entered);
    EVENTUALLY(SOON, atomic_load(&a->entered) >= entered + times);
}

static void walk_through(arena *a, uint64_t token)
{
    if (atomic_fetch_add(&a->inside, 1) != 0)
        atomic_fetch_add(&a->clashes, 1);
    if (atomic_exchange(&a->last_token, token) >= token)
        atomic_fetch_add(&a->clashes, 1);
    atomic_fetch_add(&a->entered, 1);
    sched_yield();
    atomic_fetch_sub(&a->inside, 1);
}

static void visit(const runner *r)
{
    EXPECT_STATUS(rlock_acquire(r->lk, SOON, r->lease_ms), RLOCK_OK);
    uint64_t token = rlock_token(r->lk);
    if (token == 0)
        FAIL("the lease of %lld ms has run out", (long long)r->lease_ms);
    walk_through(r->a, token);
    rlock_status s = rlock_unlock(r->lk);
    if (s != RLOCK_OK && !(r->nodes_fail && s == RLOCK_EQUORUM))
        FAIL("unlock: %s", rlock_last_error()->message);
}

intptr_t arena_run(void *arg)
{
    const runner *r = arg;
    for (int i = 0; r->rounds ? i < r->rounds : !atomic_load(&r->a->over); i++)
        visit(r);
    atomic_fetch_add(&r->a->ended, 1);
    return 0;
}

void arena_run_in_child(child *c, void *arg)
{
    runner *r = arg;
    rlock_client *cl[CHILD_NODES];
    for (size_t i = 0; i < CHILD_NODES; i++) {
        rlock_options opts = RLOCK_OPTIONS_INIT;
        opts.uri = child_take_uri(c);
        EXPECT_STATUS(rlock_client_new(&opts, &cl[i]), RLOCK_OK);
    }
    EXPECT_STATUS(rlock_red_new(cl, CHILD_NODES, SCENE_LOCK, &r->lk), RLOCK_OK);
    child_tell(c, 'r');
    arena_run(r);
    rlock_free(r->lk);
    for (size_t i = 0; i < CHILD_NODES; i++)
        rlock_client_free(cl[i]);
}

void arena_start_children(const nodes *ns, child *const c[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < CHILD_NODES; k++)
            child_give_uri(c[i], ns->sv[(i + k) % CHILD_NODES]);
    }
    for (size_t i = 0; i < n; i++)
        child_expect(c[i], 'r');
}
