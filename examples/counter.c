/*
 * counter [URI]: a queue at a counter, at which everybody has his turn.
 *
 * Eight customers, each a process of its own, come while the first one is
 * served. A plain lock goes to whoever asks at the right moment; a fair one goes
 * to them in the order in which they came, however many programs they are. Each
 * says when he came, and as the how manieth he was served.
 */
#define _POSIX_C_SOURCE 200809L
#include "data.h"

#define CUSTOMERS 8

static char counter[64], came[80], served[80];

static int customer(const char *uri)
{
    redisContext *data = data_connect(uri);
    rlock_client *client = new_client(uri);
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lock;
    long long mine, turn;

    opts.fair = true;
    MUST(rlock_new_ex(client, counter, strlen(counter), &opts, &lock));
    mine = data_number(data, "INCR %s", came);
    sleep_ms((long)mine * 30); /* one comes after the other */
    MUST(rlock_acquire(lock, 10000, RLOCK_WATCHDOG));
    turn = data_number(data, "INCR %s", served);
    printf("  customer %lld, process %ld: served as number %lld\n", mine,
           (long)getpid(), turn);
    sleep_ms(50); /* longer than until the next one comes: a queue grows */
    MUST(rlock_unlock(lock));
    rlock_free(lock);
    rlock_client_free(client);
    redisFree(data);
    return 0;
}

int main(int argc, char **argv)
{
    const char *uri = argc > 1 ? argv[1] : NULL;
    redisContext *data = data_connect(uri);

    snprintf(counter, sizeof(counter), "example:counter:%ld", (long)getpid());
    snprintf(came, sizeof(came), "%s:came", counter);
    snprintf(served, sizeof(served), "%s:served", counter);
    data_number(data, "SET %s 0 EX 60", came);
    data_number(data, "SET %s 0 EX 60", served);
    redisFree(data); /* children inherit no connection */
    print_lines();
    printf("a queue of %d\n", CUSTOMERS);
    return in_processes(CUSTOMERS, customer, uri);
}
