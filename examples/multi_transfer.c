/*
 * multi_transfer [URI [URI]]: two accounts on two servers, locked as one.
 *
 * Four threads move money, two in each direction; each lists the account that
 * it takes from first. With two single locks that is a deadlock; a Multi lock
 * takes its members in one order, whoever asks. An auditor who locks both too
 * never finds money on its way. With one URI both accounts are on that server.
 */
#define _POSIX_C_SOURCE 200809L
#include "data.h"
#include <pthread.h>

enum { CLERKS = 4, TRANSFERS = 25, START = 1000, SUM = 10 };

static char key[2][64];          /* the accounts, a and b */
static redisContext *data[2];    /* one thread at a time: who holds the locks */
static rlock *lock[2], *both[2]; /* a, b; a and b, b and a */

static void *clerk(void *arg)
{
    int from = arg != NULL, to = !from;
    for (int i = 0; i < TRANSFERS; i++) {
        MUST(rlock_acquire(both[from], 20000, RLOCK_WATCHDOG)); /* 20 s */
        long long here = data_number(data[from], "GET %s", key[from]);
        long long there = data_number(data[to], "GET %s", key[to]);
        data_number(data[from], "SET %s %lld EX 60", key[from], here - SUM);
        sleep_ms(2); /* now the sum is in neither account */
        data_number(data[to], "SET %s %lld EX 60", key[to], there + SUM);
        MUST(rlock_unlock(both[from]));
    }
    return NULL;
}

static bool audit(bool done)
{
    MUST(rlock_acquire(both[0], 20000, RLOCK_WATCHDOG));
    long long a = data_number(data[0], "GET %s", key[0]);
    long long b = data_number(data[1], "GET %s", key[1]);
    MUST(rlock_unlock(both[0]));
    printf("  a %4lld + b %4lld = %lld\n", a, b, a + b);
    return a + b == 2 * START && (!done || a == START);
}

int main(int argc, char **argv)
{
    rlock_client *client[2];
    pthread_t thread[CLERKS];
    int wrong = 0;

    for (int i = 0; i < 2; i++) {
        const char *uri = argc > 1 ? argv[argc > 2 ? i + 1 : 1] : NULL;
        data[i] = data_connect(uri);
        client[i] = new_client(uri);
        MUST(rlock_new(client[i], i ? "example:b" : "example:a", &lock[i]));
        snprintf(key[i], sizeof(key[i]), "example:%ld:%d", (long)getpid(), i);
        data_number(data[i], "SET %s %d EX 60", key[i], START);
    }
    MUST(rlock_multi_new((rlock *[]){lock[0], lock[1]}, 2, &both[0]));
    MUST(rlock_multi_new((rlock *[]){lock[1], lock[0]}, 2, &both[1]));

    for (int i = 0; i < CLERKS; i++)
        if (pthread_create(&thread[i], NULL, clerk, i % 2 ? key : NULL) != 0)
            fail("multi_transfer", "pthread_create failed");
    for (int i = 0; i < 5; i++, sleep_ms(40))
        wrong += !audit(false);
    for (int i = 0; i < CLERKS; i++)
        pthread_join(thread[i], NULL);
    printf("%d transfers are done, half each way\n", CLERKS * TRANSFERS);
    wrong += !audit(true);

    for (int i = 0; i < 4; i++)
        rlock_free(i < 2 ? both[i] : lock[i - 2]); /* members last */
    for (int i = 0; i < 2; i++) {
        data_number(data[i], "DEL %s", key[i]);
        rlock_client_free(client[i]);
        redisFree(data[i]);
    }
    return wrong != 0;
}
