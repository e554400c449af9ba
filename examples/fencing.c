/*
 * fencing [URI]: the resource itself refuses who comes too late.
 *
 * No lock can stop a writer that sleeps through the end of its lease and then
 * goes on writing: it does not know yet. So every write carries the token of
 * its hold, tokens of a name only grow, and the resource (here a hash in
 * Redis, changed by a small script) refuses a smaller one than it has seen.
 * You see A write, sleep too long, B take over, and A refused.
 */
#define _POSIX_C_SOURCE 200809L
#include "data.h"

/* Tokens are below 2^53: Lua compares them exactly. */
static const char write_if_newer[] =
    "local seen = tonumber(redis.call('HGET', KEYS[1], 'token') or 0)\n"
    "if tonumber(ARGV[1]) < seen then return 0 end\n"
    "redis.call('HSET', KEYS[1], 'token', ARGV[1], 'text', ARGV[2])\n"
    "redis.call('EXPIRE', KEYS[1], 3600)\n"
    "return 1\n";

static bool write_text(redisContext *data, uint64_t token, const char *text)
{
    bool done = data_number(data, "EVAL %s 1 example:fencing:text %llu %s",
                            write_if_newer, (unsigned long long)token, text);
    printf("  %s with token %" PRIu64 ": %s\n", text, token,
           done ? "written" : "refused, a newer token was here");
    return done;
}

int main(int argc, char **argv)
{
    const char *uri = argc > 1 ? argv[1] : NULL;
    redisContext *data = data_connect(uri);
    rlock_client *client_a = new_client(uri), *client_b = new_client(uri);
    rlock *a, *b;
    uint64_t token;
    bool ok;

    MUST(rlock_new(client_a, "example:fencing", &a));
    MUST(rlock_new(client_b, "example:fencing", &b));

    printf("A locks for 500 ms, which are to be enough\n");
    MUST(rlock_acquire(a, RLOCK_FOREVER, 500));
    token = rlock_token(a);
    ok = write_text(data, token, "A's first line");

    printf("A is stopped for 700 ms, and cannot notice; B takes over\n");
    sleep_ms(700);
    MUST(rlock_acquire(b, 5000, 10000));
    ok = write_text(data, rlock_token(b), "B's line") && ok;

    printf("A goes on as if nothing had happened\n");
    ok = !write_text(data, token, "A's second line") && ok;

    ok = rlock_unlock(a) == RLOCK_LOST && ok;
    printf("A's unlock tells it, too late: %s\n", rlock_last_error()->message);
    MUST(rlock_unlock(b)); /* A's has not touched B's hold */

    rlock_free(a);
    rlock_free(b);
    rlock_client_free(client_a);
    rlock_client_free(client_b);
    redisFree(data);
    return ok ? 0 : 1;
}
