/*
 * nested [URI]: functions that lock call functions that lock the same name.
 *
 * Two threads each of two processes close an account: close_account() locks
 * and calls pay_out(), which locks and calls write_entry(), which locks; none
 * needs to know what its caller holds. You see, after every step, the lock as
 * HGETALL has it, host:pid:tid:uuid -> count. The count goes to 3 and back, id
 * and token stay. The threads are let in one by one: their lines never mix.
 */
#define _POSIX_C_SOURCE 200809L
#include "data.h"
#include <pthread.h>

static rlock_client *client; /* one for the process, its threads share it */
static redisContext *data;   /* for one thread at a time: who has the lock */

static void show(const rlock *lock, const char *where)
{
    int level = rlock_hold_count(lock);
    redisReply *r = redisCommand(data, "HGETALL example:nested");
    if (!r || r->elements != 2 || atoi(r->element[1]->str) != level)
        fail(where, "the count in Redis is another one");
    printf("%*s%-*s %s -> %s  token %" PRIu64 "\n", 2 * level, "",
           20 - 2 * level, where, r->element[0]->str, r->element[1]->str,
           rlock_token(lock));
    freeReplyObject(r);
}

/* Locks, goes one level deeper, unlocks. Each function makes its own handle:
   all handles of one name are the same lock. */
static void locked(const char *where, void (*deeper)(void))
{
    rlock *lock;
    MUST(rlock_new(client, "example:nested", &lock));
    MUST(rlock_lock(lock));
    show(lock, where);
    if (deeper) {
        deeper();
        show(lock, where);
    }
    MUST(rlock_unlock(lock));
    rlock_free(lock);
}

static void write_entry(void)
{
    locked("write_entry()", NULL);
}

static void pay_out(void)
{
    locked("pay_out()", write_entry);
}

static void *close_account(void *arg)
{
    locked("close_account()", pay_out);
    return arg;
}

static int process(const char *uri)
{
    pthread_t thread;
    client = new_client(uri);
    data = data_connect(uri);
    if (pthread_create(&thread, NULL, close_account, NULL) != 0)
        fail("nested", "no second thread");
    close_account(NULL);
    pthread_join(thread, NULL);
    redisFree(data);
    rlock_client_free(client);
    return 0;
}

int main(int argc, char **argv)
{
    print_lines();
    return in_processes(2, process, argc > 1 ? argv[1] : NULL) != 0;
}
