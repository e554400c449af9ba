/*
 * rw_cache [URI]: six processes read a cache together; one at a time fills it.
 *
 * The cache is a hash of two numbers that belong together, stale after 200 ms.
 * Who reads has the read side: others read too, and nobody writes. Who finds it
 * stale cannot wait to write while it reads, as two who did would wait for each
 * other: it lets go, locks the write side, and looks again, because another one
 * may have been quicker. Still writing it begins to read, so nobody else writes
 * before it has read. You see who has read, and filled, and nobody saw a half.
 */
#define _POSIX_C_SOURCE 200809L
#include "data.h"

enum { PROCESSES = 6, READS = 60, FRESH_MS = 200 };

static char cache[64]; /* a hash of this run */

static bool is_fresh(redisContext *data)
{
    return data_number(data, "EXISTS %s:fresh", cache) == 1;
}

static void fill(redisContext *data)
{
    long long n = data_number(data, "HINCRBY %s one 1", cache);
    sleep_ms(20); /* without the lock, others would see a half */
    data_number(data, "HSET %s two %lld", cache, n);
    data_number(data, "EXPIRE %s 60", cache);
    data_number(data, "SET %s:fresh 1 PX %d", cache, FRESH_MS);
}

/* From here on the read side is locked. How often has it filled the cache? */
static int lock_to_read(redisContext *data, rlock *read, rlock *write)
{
    MUST(rlock_lock(read));
    if (is_fresh(data))
        return 0;
    MUST(rlock_unlock(read));
    MUST(rlock_lock(write));
    int fills = !is_fresh(data);
    if (fills)
        fill(data);
    MUST(rlock_lock(read)); /* at once, as it writes */
    MUST(rlock_unlock(write));
    return fills;
}

static int reader(const char *uri)
{
    redisContext *data = data_connect(uri);
    rlock_client *client = new_client(uri);
    rlock *read, *write;
    int filled = 0, halves = 0;

    MUST(rlock_rw_new(client, "example:rw_cache", &read, &write));
    for (int i = 0; i < READS; i++) {
        filled += lock_to_read(data, read, write);
        long long one = data_number(data, "HGET %s one", cache);
        sleep_ms(5);
        halves += one != data_number(data, "HGET %s two", cache);
        MUST(rlock_unlock(read));
    }
    printf("  process %ld: %d reads, %d of them filled it, %d saw a half\n",
           (long)getpid(), READS, filled, halves);
    rlock_free(read);
    rlock_free(write);
    rlock_client_free(client);
    redisFree(data);
    return halves;
}

int main(int argc, char **argv)
{
    print_lines();
    snprintf(cache, sizeof(cache), "example:rw_cache:%ld", (long)getpid());
    return in_processes(PROCESSES, reader, argc > 1 ? argv[1] : NULL);
}
