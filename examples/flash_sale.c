/*
 * flash_sale [URI]: four processes sell forty tickets, and not one more.
 *
 * The stock is a number in Redis. A sale reads it, looks whether a ticket is
 * left, and writes it back: three steps, between which another process could
 * sell the same ticket. Under the lock they are one. You see what each process
 * has sold, and the sum, which is the stock.
 */
#define _POSIX_C_SOURCE 200809L
#include "data.h"

enum { STOCK = 40, SHOPS = 4 };

static char sale[64]; /* a hash of this run: stock and sold */

static bool sell_one(redisContext *data)
{
    long long left = data_number(data, "HGET %s stock", sale);
    if (left <= 0)
        return false;
    sleep_ms(5); /* paying; without the lock, others would sell it too */
    data_number(data, "HSET %s stock %lld", sale, left - 1);
    return true;
}

static int shop(const char *uri)
{
    redisContext *data = data_connect(uri);
    rlock_client *client = new_client(uri);
    rlock *lock;
    bool more = true;
    int sold = 0;

    MUST(rlock_new(client, "example:flash_sale", &lock));
    while (more) {
        MUST(rlock_acquire(lock, 10000, RLOCK_WATCHDOG)); /* 10 s at most */
        more = sell_one(data);
        MUST(rlock_unlock(lock));
        sold += more;
        sleep_ms(1); /* the next customer comes; the other processes' turn */
    }
    data_number(data, "HINCRBY %s sold %d", sale, sold);
    printf("  process %ld has sold %d\n", (long)getpid(), sold);

    rlock_free(lock);
    rlock_client_free(client);
    redisFree(data);
    return 0;
}

int main(int argc, char **argv)
{
    const char *uri = argc > 1 ? argv[1] : NULL;
    redisContext *data = data_connect(uri);
    print_lines();
    snprintf(sale, sizeof(sale), "example:flash_sale:%ld", (long)getpid());
    data_number(data, "HSET %s stock %d sold 0", sale, STOCK);
    data_number(data, "EXPIRE %s 60", sale);
    redisFree(data); /* children inherit no connection */
    printf("%d processes sell %d tickets\n", SHOPS, STOCK);

    int failed = in_processes(SHOPS, shop, uri);
    data = data_connect(uri);
    long long left = data_number(data, "HGET %s stock", sale);
    long long sold = data_number(data, "HGET %s sold", sale);
    printf("sold %lld, left %lld\n", sold, left);
    data_number(data, "DEL %s", sale);
    redisFree(data);
    return failed || sold != STOCK || left != 0;
}
