/*
 * share_with_python URI KEY: takes turns on one lock with a Python program.
 *
 * redis-py's Lock is a string, SET key token NX PX; so is a lock with
 * RLOCK_LAYOUT_STRING, and the two are one. share_with_python.py starts this
 * program, and each takes the lock three times. A holder gives it back only
 * when the other one has tried and been refused, which KEY, a hash, tells:
 * how often each has held the lock, and how often it was refused.
 */
#define _POSIX_C_SOURCE 200809L
#include "data.h"

enum { TURNS = 3 };

static void tell(redisContext *data, const char *key, const char *what)
{
    data_number(data, "HINCRBY %s %s 1", key, what);
}

/* Waits for the Python side, 30 s at most. */
static void await(redisContext *data, const char *key, const char *what, int n)
{
    for (int i = 0; data_number(data, "HGET %s %s", key, what) < n; i++) {
        if (i == 1500)
            fail("waited in vain for", what);
        sleep_ms(20);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        fail("usage", "share_with_python URI KEY");
    const char *key = argv[2];
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    redisContext *data = data_connect(argv[1]);
    rlock_client *client = new_client(argv[1]);
    static const char name[] = "example:share_with_python";
    rlock_holder h;
    rlock *lock;

    print_lines();
    opts.layout = RLOCK_LAYOUT_STRING;
    MUST(rlock_new_ex(client, name, strlen(name), &opts, &lock));
    for (int turn = 1; turn <= TURNS; turn++) {
        MUST(rlock_acquire(lock, 30000, RLOCK_WATCHDOG)); /* 30 s at most */
        MUST(rlock_holder_info(lock, &h, sizeof h));
        printf("C       has it: %s\n", h.raw);
        tell(data, key, "c-held");
        await(data, key, "python-refused", turn);
        MUST(rlock_unlock(lock));

        await(data, key, "python-held", turn);
        if (rlock_trylock(lock) != RLOCK_BUSY)
            fail("share_with_python", "Python's hold was not seen");
        MUST(rlock_holder_info(lock, &h, sizeof h));
        printf("C       is refused, held by: %s\n", h.raw);
        tell(data, key, "c-refused");
    }
    rlock_free(lock);
    rlock_client_free(client);
    redisFree(data);
    return 0;
}
