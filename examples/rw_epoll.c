/*
 * rw_epoll [URI]: 1,000 readers on one epoll loop, and who writes among them.
 *
 * Each reader is an owner with a lease of its own. All read at once; then one wants
 * to write, and 1,000 more to read, behind it in line. It writes alone, when the last
 * of the first thousand has let go, and before all that came later.
 */
#include "data_epoll.h"

enum { READERS = 1000 };
static rlock *read_side, *write_side;
static rlock_owner *owners[2 * READERS], *writer;
static int reading, at_once, beside, early, left, has_written;

static void act(rlock_owner *as, rlock *lk, rlock_done *done, bool lock)
{
    rlock_owner *former = rlock_owner_set(as);
    MUST(lock ? rlock_acquire_start(lk, 60000, RLOCK_WATCHDOG, done, as)
              : rlock_unlock_start(lk, done, as));
    rlock_owner_set(former);
}

static void on_left(rlock *lk, rlock_status s, void *owner)
{
    (void)lk;
    MUST(s);
    rlock_owner_free(owner);
    left++;
    if (reading > 0) /* the next of the first thousand */
        act(owners[--reading], read_side, on_left, false);
}

static void on_writing(rlock *lk, rlock_status s, void *owner)
{
    MUST(s);
    beside = reading;
    has_written = 1;
    act(owner, lk, on_left, false);
}

static void on_reading(rlock *lk, rlock_status s, void *owner)
{
    (void)lk;
    MUST(s);
    if (at_once == READERS) { /* it came later */
        early += !has_written;
        act(owner, read_side, on_left, false);
    } else if (++reading == READERS) {
        at_once = reading;
        act(writer, write_side, on_writing, true);
        for (int i = READERS; i < 2 * READERS; i++)
            act(owners[i], read_side, on_reading, true);
        act(owners[--reading], read_side, on_left, false);
    }
}

int main(int argc, char **argv)
{
    rlock_client *client = new_client(argc > 1 ? argv[1] : NULL);
    int loop = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event e;
    MUST(rlock_rw_new(client, "example:rw_epoll", &read_side, &write_side));
    epoll_watch(loop, EPOLL_CTL_ADD, rlock_client_fd(client), EPOLLIN, NULL);
    MUST(rlock_owner_new("writer", &writer));
    for (int i = 0; i < 2 * READERS; i++)
        MUST(rlock_owner_new(NULL, &owners[i]));
    MUST(rlock_lock(write_side)); /* nobody reads what was never written */
    MUST(rlock_unlock(write_side));
    for (int i = 0; i < READERS; i++)
        act(owners[i], read_side, on_reading, true);
    while (left <= 2 * READERS && epoll_wait(loop, &e, 1, -1) > 0)
        MUST(rlock_client_dispatch(client));
    printf("%d at once, %d beside who wrote, %d before it\n", at_once, beside,
           early);
    rlock_free(read_side);
    rlock_free(write_side);
    rlock_client_free(client);
    return close(loop) || at_once != READERS || beside || early;
}
