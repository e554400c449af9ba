/*
 * flash_sale_guarded [URI]: a shop that is stopped cannot sell what is not its
 * to sell any more, and nobody had to think of a token.
 *
 * As in flash_sale, a sale reads the stock, takes its time, and writes it back.
 * Here the write is guarded: the server executes it only while this hold has
 * the lock. You see a shop stopped between its read and its write until another
 * one has sold the rest; the write is refused, and what was sold is the stock.
 * The names share their braces: in a cluster, too, they lie together.
 */
#define _POSIX_C_SOURCE 200809L
#include "data.h"
#include <signal.h>

enum { STOCK = 5, LEASE_MS = 500 };

static const char name[] = "{example:sale}", data[] = "{example:sale}:data";
static const char sell[] = "redis.call('HSET', KEYS[1], 'stock', ARGV[1])\n"
                           "return redis.call('HINCRBY', KEYS[1], 'sold', 1)\n";

/* What rlock_eval() answers; RLOCK_BUSY when nothing is left. */
static rlock_status sell_one(rlock *lock, redisContext *reader, bool stops)
{
    const char *argv[] = {data, NULL};
    char left[24];
    long long stock = data_number(reader, "HGET %s stock", data);
    if (stock <= 0)
        return RLOCK_BUSY;
    if (stops)
        kill(getpid(), SIGSTOP); /* or a page fault, or the machine sleeps */
    snprintf(left, sizeof(left), "%lld", stock - 1);
    argv[1] = left;
    return rlock_eval(lock, sell, 1, 1, argv, NULL, NULL);
}

/* Sells all there is; answers how many. */
static int shop(const char *uri, bool stops)
{
    redisContext *reader = data_connect(uri);
    rlock_client *client = new_client(uri);
    rlock *lock;
    rlock_status s;
    int sold = 0;
    MUST(rlock_new(client, name, &lock));
    MUST(rlock_acquire(lock, 10000, LEASE_MS));
    while ((s = sell_one(lock, reader, stops && sold == 1)) == RLOCK_OK)
        sold++;
    printf("  process %ld has sold %d: %s\n", (long)getpid(), sold,
           s == RLOCK_LOST ? rlock_last_error()->message : "no more is left");
    rlock_unlock(lock);
    rlock_free(lock);
    rlock_client_free(client);
    redisFree(reader);
    return sold;
}

int main(int argc, char **argv)
{
    const char *uri = argc > 1 ? argv[1] : NULL;
    redisContext *reader = data_connect(uri);
    int status;
    print_lines();
    data_number(reader, "HSET %s stock %d sold 0", data, STOCK);
    pid_t slow = fork();
    if (slow == 0)
        exit(shop(uri, true));
    waitpid(slow, &status, WUNTRACED);
    printf("process %ld was stopped before its second sale\n", (long)slow);
    int sold = shop(uri, false); /* waits until the lease has run out */
    kill(slow, SIGCONT);
    waitpid(slow, &status, 0);
    bool ok =
        sold == STOCK - 1 && WIFEXITED(status) && WEXITSTATUS(status) == 1;
    ok = data_number(reader, "HGET %s sold", data) == STOCK && ok;
    data_number(reader, "DEL %s", data);
    redisFree(reader);
    printf("%s\n", ok ? "sold what was there, and no more" : "that is wrong");
    return !ok;
}
