#include "permit_calls.h"

redisReply *permit_acquire(bells *b, const char *holder, const char *words)
{
    char call[900];
    snprintf(call, sizeof call,
             "EVALSHA %s 5 job " PERMITS " rlock_undone:{job}:%s " LINE
             " " WANTS " %s %s",
             script_sha(RL_SCRIPT_PERMIT_ACQUIRE), holder + 9, holder, words);
    return server_cmd(b->sv, call);
}

bool permit_takes(bells *b, const char *holder, const char *words)
{
    redisReply *r = permit_acquire(b, holder, words);
    return r->type == REDIS_REPLY_STRING && strcmp(r->str, "1") == 0;
}

redisReply *permit_stand(bells *b, const char *holder, const char *n,
                         const char *bell)
{
    char words[200];
    snprintf(words, sizeof words, "60000 %s 3 0 %s 0 1000", n, bell);
    return permit_acquire(b, holder, words);
}

long long permit_release_as(bells *b, const char *holder, const char *n,
                            const char *tomb_ms, const char *idle)
{
    return server_int(b->sv,
                      "EVALSHA %s 5 job " PERMITS " rlock_undone:{job}:%s " LINE
                      " " WANTS " %s " CHANNEL " %s %s %s",
                      script_sha(RL_SCRIPT_PERMIT_RELEASE), holder + 9, holder,
                      n, tomb_ms, idle);
}

long long permit_release(bells *b, const char *holder, const char *n)
{
    return permit_release_as(b, holder, n, "0", "0");
}

long long permit_lease(bells *b, rl_script_id script, const char *holder,
                       const char *words)
{
    char call[500];
    snprintf(call, sizeof call, "EVALSHA %s 2 job " PERMITS " %s %s",
             script_sha(script), holder, words);
    return server_int(b->sv, call);
}

long long permit_add(bells *b, const char *mark, const char *delta,
                     const char *total)
{
    return server_int(b->sv,
                      "EVALSHA %s 5 job " PERMITS " %s " LINE " " WANTS
                      " %s %s 0 60000 " CHANNEL,
                      script_sha(RL_SCRIPT_PERMIT_ADD), mark, delta, total);
}

long long permit_available(bells *b, const char *total)
{
    return server_int(b->sv, "EVALSHA %s 2 job " PERMITS " %s",
                      script_sha(RL_SCRIPT_PERMIT_AVAILABLE), total);
}

long long permits_free(bells *b)
{
    return strtoll(server_str(b->sv, "GET job"), NULL, 10);
}

long long permits_of(bells *b, const char *holder)
{
    long long n = 0;
    redisReply *r = server_cmd(b->sv, "ZRANGE " PERMITS " 0 -1");
    for (size_t i = 0; i < r->elements; i++)
        n += strncmp(r->element[i]->str, holder, strlen(holder)) == 0;
    return n;
}

long long permits_lease(bells *b, const char *holder)
{
    double ends = atof(server_str(b->sv, "ZSCORE " PERMITS " %s:1", holder));
    redisReply *now = server_cmd(b->sv, "TIME");
    return (long long)(ends - atof(now->element[0]->str) * 1000 -
                       atof(now->element[1]->str) / 1000);
}

void permits_die(bells *b, const char *holder, int n)
{
    for (int i = 1; i <= n; i++)
        server_cmd(b->sv, "ZADD " PERMITS " XX 1000 %s:%d", holder, i);
}

void expect_stands(const redisReply *r, int rank, int anew)
{
    EXPECT_INT(r->elements, 6);
    EXPECT_INT(r->element[0]->integer, 0);
    EXPECT_INT(r->element[3]->integer, 1);
    EXPECT_INT(r->element[4]->integer, rank);
    EXPECT_INT(r->element[5]->integer, anew);
}

void expect_busy(const redisReply *r, int free, int waiting)
{
    EXPECT_INT(r->elements, 7);
    EXPECT_INT(r->element[0]->integer, 0);
    EXPECT_STR(r->element[2]->str, "0");
    EXPECT_INT(r->element[5]->integer, free);
    EXPECT_INT(r->element[6]->integer, waiting);
}
