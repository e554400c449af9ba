#include "left.h"

#include <stdio.h>
#include <stdlib.h>

#include "locks.h"

enum { WAIT_MS = 3 * LEASE_MS };

/*
 * Locks end with their leases; what else is there ends by itself, later. (Where
 * the value is the time at which the lock may be taken over, the key outlives
 * that.) Only the counter of a semaphore that does not idle stays for ever, and
 * what a process held of it that was killed until somebody looks.
 */
static const redisReply *ask_for_keys(server *sv)
{
    return server_cmd(
        sv, "EVAL %s 0",
        "local left, now = {}, tonumber(redis.call('TIME')[1]) "
        "for _, key in ipairs(redis.call('KEYS', '*')) do "
        "local ms, is = redis.call('PTTL', key), redis.call('TYPE', key).ok "
        "local has = is == 'hash' and "
        "table.concat(redis.call('HGETALL', key), ' ') or "
        "is == 'string' and redis.call('GET', key) or '' "
        "local over = tonumber(has) and tonumber(has) <= now "
        "local permits = key:match('^{?attack:permits:(%d)') "
        "local stays = permits and permits % 2 == 0 and ms < 0 "
        "if not stays and (ms < 0 or key:sub(1, 7) == 'attack:' and not over "
        "or permits) then "
        "table.insert(left, key .. ', for ' .. ms .. ' ms: ' .. has) "
        "end end "
        "return left");
}

static int count_left_at(server *sv, int64_t until_ms)
{
    const redisReply *left;
    while ((left = ask_for_keys(sv))->elements && test_now_ms() < until_ms)
        test_pause_ms(50);
    for (size_t i = 0; i < left->elements; i++)
        printf("left at %s: %s\n", server_uri(sv), left->element[i]->str);
    return (int)left->elements;
}

int keys_left(const nemesis *n)
{
    int64_t until_ms = test_now_ms() + WAIT_MS;
    server *masters[MASTERS_MAX];
    int count = home_masters(n->home, masters), sum = 0;
    for (int i = 0; i < count; i++)
        sum += count_left_at(masters[i], until_ms);
    for (int i = 1; i < SERVERS; i++)
        sum += count_left_at(n->sv[i], until_ms);
    return sum;
}

static rlock_semaphore *semaphore_of(rlock_client *cl, int lock)
{
    char key[LOCK_KEY_MAX];
    rlock_semaphore *s = NULL;
    lock_key(lock, key);
    if (rlock_semaphore_new(cl, key, lock_permits(lock), &s) != RLOCK_OK)
        attack_die("%s", rlock_last_error()->message);
    return s;
}

/* Whoever takes all has those of the dead as well, and gives them back. */
static int leaked_of(rlock_client *cl, int lock)
{
    rlock_permit *all = NULL;
    int64_t available = 0, permits = lock_permits(lock);
    rlock_semaphore *s = semaphore_of(cl, lock);
    if (rlock_semaphore_acquire(s, (int)permits, WAIT_MS, LEASE_MS, &all) !=
            RLOCK_OK ||
        rlock_permit_release(all) != RLOCK_OK)
        printf("not all of %lld permits: %s\n", (long long)permits,
               rlock_last_error()->message);
    if (rlock_semaphore_available(s, &available) != RLOCK_OK)
        attack_die("%s", rlock_last_error()->message);
    rlock_semaphore_free(s);
    return abs((int)(permits - available));
}

int permits_leaked(const nemesis *n)
{
    rlock_client *cl = NULL;
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = home_uri(n->home);
    if (rlock_client_new(&opts, &cl) != RLOCK_OK)
        attack_die("%s", rlock_last_error()->message);
    int sum = 0;
    for (int lock = FIRST_SEMAPHORE; lock < LOCKS; lock++)
        sum += leaked_of(cl, lock);
    rlock_client_free(cl);
    return sum;
}
