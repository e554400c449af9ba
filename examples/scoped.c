/*
 * scoped [URI]: functions that lock in one line, and unlock wherever they end.
 *
 * transfer() locks and calls pay(), which locks the same name; each declares
 * its lock by RLOCK_SCOPED_LOCK, which makes a handle, locks, and at the end of
 * the scope, by whichever return, unlocks and frees it. For GCC and Clang; in
 * C++ the same works, or a guard of your own.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

static bool pay(rlock_client *client, int amount)
{
    RLOCK_SCOPED_LOCK(lock, client, "example:scoped");
    if (!lock)
        return false;
    printf("  pay(%d) at level %d\n", amount, rlock_hold_count(lock));
    return amount <= 100; /* two ways out, and nothing to undo in either */
}

static bool transfer(rlock_client *client, int amount)
{
    RLOCK_SCOPED_LOCK(lock, client, "example:scoped");
    if (!lock || !pay(client, amount))
        return false;
    printf("  transferred %d at level %d\n", amount, rlock_hold_count(lock));
    return true;
}

int main(int argc, char **argv)
{
    rlock_client *client = new_client(argc > 1 ? argv[1] : NULL);
    rlock *lock;
    bool free_now, ok;
    print_lines();
    ok = transfer(client, 100);
    ok = !transfer(client, 200) && ok; /* refused, in the middle of both */
    MUST(rlock_new(client, "example:scoped", &lock));
    MUST(rlock_is_locked(lock, &free_now));
    free_now = !free_now;
    printf("afterwards it is %s\n", free_now ? "free" : "still held");
    rlock_free(lock);
    rlock_client_free(client);
    return ok && free_now ? 0 : 1;
}
