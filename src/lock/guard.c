/*
 * Guarded calls, as programs make them. A command is a script that executes its
 * arguments: there is one way to the server, and one guard.
 */
#include <rlock/guard.h>

#include <stdlib.h>
#include <string.h>

#include "lock/lock.h"

/* Redis itself takes 2^20 words. */
#define MOST_WORDS 1000000

static const char command[] = "return redis.pcall(unpack(ARGV))";

/* Every word is there. */
static bool has_words(const rl_guarded *g)
{
    int n = g->keys + g->args;
    if (g->words || n == 0)
        return true;
    for (int i = 0; g->argv && i < n; i++)
        if (!g->argv[i])
            return false;
    return g->argv != NULL;
}

/* NULL: nothing. */
static const char *what_is_wrong(const rl_guarded *g)
{
    if (!g->script)
        return "the script is NULL";
    if (strncmp(g->script, "#!", 2) == 0)
        return "a script that begins with \"#!\" cannot be guarded, as that "
               "has to be a script's first line";
    if (g->single && g->args == 0)
        return "the command has no words";
    if (g->keys < 0 || g->args < 0)
        return "the number of keys or arguments is negative";
    if (g->keys > MOST_WORDS || g->args > MOST_WORDS - g->keys)
        return "there are more than 1,000,000 keys and arguments";
    return has_words(g) ? NULL : "a key or argument is NULL";
}

/* f: what is wrong already; status RLOCK_OK: nothing. */
static rlock_status run(rlock *lk, rl_guarded *g, struct redisReply **reply,
                        rl_fault *f)
{
    const char *wrong = f->status == RLOCK_OK ? what_is_wrong(g) : NULL;
    if (reply)
        *reply = NULL;
    if (wrong)
        rl_fault_set(f, RLOCK_EINVAL, 0, "%s", wrong);
    else if (f->status == RLOCK_OK && !rl_object_init(&g->reply))
        rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
    g->len = g->script ? strlen(g->script) : 0;
    rlock_status s = rl_lock_guard(lk, g, f);
    if (reply && (s == RLOCK_OK || s == RLOCK_ESERVER)) {
        *reply = g->reply.reply;
        g->reply.reply = NULL;
    }
    rl_object_drop(&g->reply);
    return s;
}

rlock_status rlock_eval(rlock *lk, const char *script, int keys, int args,
                        const char **argv, const size_t *lens,
                        struct redisReply **reply)
{
    rl_guarded g = {.script = script,
                    .keys = keys,
                    .args = args,
                    .argv = argv,
                    .lens = lens};
    rl_fault f = {.status = RLOCK_OK};
    return run(lk, &g, reply, &f);
}

rlock_status rlock_command_argv(rlock *lk, struct redisReply **reply, int argc,
                                const char **argv, const size_t *lens)
{
    rl_guarded g = {.script = command,
                    .args = argc,
                    .argv = argv,
                    .lens = lens,
                    .single = true};
    rl_fault f = {.status = RLOCK_OK};
    return run(lk, &g, reply, &f);
}

/* What hiredis has formatted: "*3\r\n", and the words as they are sent. */
static void take_formatted(rl_guarded *g, const char *bytes, size_t len)
{
    const char *end = memchr(bytes, '\n', len);
    g->args = atoi(bytes + 1);
    g->words = end + 1;
    g->words_len = len - (size_t)(g->words - bytes);
}

rlock_status rlock_vcommand(rlock *lk, struct redisReply **reply,
                            const char *format, va_list ap)
{
    rl_guarded g = {.script = command, .single = true};
    rl_fault f = {.status = RLOCK_OK};
    char *bytes = NULL;
    int len = format ? redisvFormatCommand(&bytes, format, ap) : -2;
    if (len == -1)
        rl_fault_set(&f, RLOCK_ENOMEM, 0, "out of memory");
    else if (len < 0)
        rl_fault_set(&f, RLOCK_EINVAL, 0,
                     "the format is NULL, or not one that redisCommand() "
                     "takes");
    else
        take_formatted(&g, bytes, (size_t)len);
    rlock_status s = run(lk, &g, reply, &f);
    redisFreeCommand(bytes);
    return s;
}

rlock_status rlock_command(rlock *lk, struct redisReply **reply,
                           const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    rlock_status s = rlock_vcommand(lk, reply, format, ap);
    va_end(ap);
    return s;
}
