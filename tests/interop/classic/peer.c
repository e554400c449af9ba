/*
 * peer PORT; see checks.py. The lock of old programs, as the manual of SETNX
 * has it: the key's value is the unix time at which others may take it over.
 * Times are whole seconds by the client's own clock.
 */
#include "../peer.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static redisContext *server;
static char mine[32]; /* the value that was set last */

static redisReply *command(const char *format, const char *name,
                           const char *value)
{
    static redisReply *last;
    if (last)
        freeReplyObject(last);
    last = redisCommand(server, format, name, value);
    if (!last || last->type == REDIS_REPLY_ERROR)
        abort();
    return last;
}

static int is_over(const redisReply *value)
{
    return value->str && atoll(value->str) < time(NULL);
}

static int is_mine(const char *name)
{
    const redisReply *value = command("GET %s", name, NULL);
    return value->str && strcmp(value->str, mine) == 0;
}

/* Sets `mine` to the time when a lease is over that begins now. */
static void set_time(int64_t lease)
{
    long long end = time(NULL) + (lease + 999) / 1000 + 1;
    snprintf(mine, sizeof mine, "%lld", end);
}

static int try_lock(const char *name, int64_t lease)
{
    set_time(lease);
    if (command("SETNX %s %s", name, mine)->integer == 1)
        return 1;
    if (!is_over(command("GET %s", name, NULL)))
        return 0;
    const redisReply *before = command("GETSET %s %s", name, mine);
    return !before->str || is_over(before);
}

static const char *lock(const char *name, int64_t wait, int64_t lease)
{
    int64_t until = peer_now_ms() + wait;
    while (!try_lock(name, lease)) {
        if (peer_now_ms() >= until)
            return "busy";
        peer_pause_ms(10);
    }
    return "ok";
}

static const char *unlock(const char *name, int64_t a, int64_t b)
{
    (void)a, (void)b;
    if (!is_mine(name))
        return "lost";
    command("DEL %s", name, NULL);
    return "ok";
}

static const char *extend(const char *name, int64_t lease, int64_t b)
{
    (void)b;
    if (!is_mine(name))
        return "lost";
    set_time(lease);
    command("GETSET %s %s", name, mine);
    return "ok";
}

static const char *force(const char *name, int64_t a, int64_t b)
{
    (void)a, (void)b;
    return command("DEL %s", name, NULL)->integer == 1 ? "ok" : "free";
}

static const char *ttl(const char *name, int64_t a, int64_t b)
{
    (void)a, (void)b;
    const redisReply *end = command("GET %s", name, NULL);
    return peer_number(end->str ? (atoll(end->str) - time(NULL)) * 1000 : -1);
}

static const peer_command commands[] = {
    {"lock", lock},   {"unlock", unlock}, {"extend", extend},
    {"force", force}, {"ttl", ttl},       {NULL, NULL},
};

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    server = redisConnect("127.0.0.1", atoi(argv[1]));
    if (!server || server->err)
        return 1;
    int status = peer_run(commands);
    redisFree(server);
    return status;
}
