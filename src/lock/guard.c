/*
 * Guarded calls, as programs make them. A command is a script that executes its
 * arguments: there is one way to the server, and one guard. Whether the calling
 * thread drives a call, or it is started, it is a job of the lock's kind
 * (lock/single.c).
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

/* g is the caller's, and what it points to; f: what is wrong already. */
static rl_job_args args_for(rl_guarded *g, rl_fault *f)
{
    const char *wrong = f->status == RLOCK_OK ? what_is_wrong(g) : NULL;
    if (wrong)
        rl_fault_set(f, RLOCK_EINVAL, 0, "%s", wrong);
    else if (f->status == RLOCK_OK && !rl_raw_reply_init(&g->reply))
        rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
    g->len = g->script ? strlen(g->script) : 0;
    return (rl_job_args){.verb = RL_JOB_GUARD, .guarded = g, .wrong = f};
}

/* The program's, if it is told of one. */
static struct redisReply *reply_of(const rl_guarded *g, rlock_status s)
{
    return s == RLOCK_OK || s == RLOCK_ESERVER ? g->reply.reply : NULL;
}

/* --- what is called ------------------------------------------------------- */

typedef struct call {
    rl_guarded g;
    rl_fault wrong; /* with what was given; RLOCK_OK: nothing */
    char *formatted;
} call;

static call script_call(const char *script, int keys, int args,
                        const char **argv, const size_t *lens)
{
    return (call){.g = {.script = script,
                        .keys = keys,
                        .args = args,
                        .argv = argv,
                        .lens = lens}};
}

static call words_call(int argc, const char **argv, const size_t *lens)
{
    return (call){.g = {.script = command,
                        .args = argc,
                        .argv = argv,
                        .lens = lens,
                        .single = true}};
}

/* What hiredis has formatted: "*3\r\n", and the words as they are sent. */
static void take_formatted(rl_guarded *g, const char *bytes, size_t len)
{
    const char *end = memchr(bytes, '\n', len);
    g->args = atoi(bytes + 1);
    g->words = end + 1;
    g->words_len = len - (size_t)(g->words - bytes);
}

static call format_call(const char *format, va_list ap)
{
    call c = words_call(0, NULL, NULL);
    int len = format ? redisvFormatCommand(&c.formatted, format, ap) : -2;
    if (len == -1)
        rl_fault_set(&c.wrong, RLOCK_ENOMEM, 0, "out of memory");
    else if (len < 0)
        rl_fault_set(&c.wrong, RLOCK_EINVAL, 0,
                     "the format is NULL, or not one that redisCommand() "
                     "takes");
    else
        take_formatted(&c.g, c.formatted, (size_t)len);
    return c;
}

static void drop(call *c)
{
    rl_raw_reply_drop(&c->g.reply);
    redisFreeCommand(c->formatted);
}

/* --- by the calling thread ------------------------------------------------ */

static rlock_status run(rlock *lk, call *c, struct redisReply **reply)
{
    rl_job_args w = args_for(&c->g, &c->wrong);
    rlock_status s = rl_lock_perform(lk, &w);
    if (reply) {
        *reply = reply_of(&c->g, s);
        if (*reply)
            c->g.reply.reply = NULL;
    }
    drop(c);
    return s;
}

rlock_status rlock_eval(rlock *lk, const char *script, int keys, int args,
                        const char **argv, const size_t *lens,
                        struct redisReply **reply)
{
    call c = script_call(script, keys, args, argv, lens);
    return run(lk, &c, reply);
}

rlock_status rlock_command_argv(rlock *lk, struct redisReply **reply, int argc,
                                const char **argv, const size_t *lens)
{
    call c = words_call(argc, argv, lens);
    return run(lk, &c, reply);
}

rlock_status rlock_vcommand(rlock *lk, struct redisReply **reply,
                            const char *format, va_list ap)
{
    call c = format_call(format, ap);
    return run(lk, &c, reply);
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

/* --- started -------------------------------------------------------------- */

/*
 * The program's script and words may go as soon as the start has returned, so
 * they are copied: behind this, in one piece of memory.
 */
typedef struct started_call {
    call call;
    rlock_replied *done;
    void *arg;
    const char *argv[];
} started_call;

static size_t word_len(const rl_guarded *g, int i)
{
    return g->lens ? g->lens[i] : strlen(g->argv[i]);
}

static size_t words_len(const rl_guarded *g, int n)
{
    size_t len = g->len + 1;
    for (int i = 0; i < n; i++)
        len += word_len(g, i);
    return len;
}

static char *copied(char **room, const char *from, size_t len)
{
    char *to = *room;
    memcpy(to, from, len);
    *room += len;
    return to;
}

/* What is formatted already goes over as it is. NULL: out of memory. */
static started_call *copy(call *from)
{
    const rl_guarded *g = &from->g;
    int n = g->words ? 0 : g->keys + g->args;
    size_t pointers = (size_t)n * (sizeof(char *) + sizeof(size_t));
    started_call *to = malloc(sizeof *to + pointers + words_len(g, n));
    if (!to)
        return NULL;
    size_t *lens = (size_t *)(to->argv + n);
    char *room = (char *)(lens + n);
    to->call = *from;
    from->formatted = NULL;
    for (int i = 0; i < n; i++) {
        lens[i] = word_len(g, i);
        to->argv[i] = copied(&room, g->argv[i], lens[i]);
    }
    to->call.g.script = copied(&room, g->script, g->len + 1);
    to->call.g.argv = to->argv;
    to->call.g.lens = lens;
    return to;
}

static void called(rlock *lk, rlock_status s, void *arg)
{
    started_call *c = arg;
    if (c->done)
        c->done(lk, s, reply_of(&c->call.g, s), c->arg);
    drop(&c->call);
    free(c);
}

/* What is wrong with it is said by the start, of which nothing is left then. */
static rlock_status start(rlock *lk, call *c, rlock_replied *done, void *arg)
{
    rl_job_args w = args_for(&c->g, &c->wrong);
    started_call *own = c->wrong.status == RLOCK_OK ? copy(c) : NULL;
    if (own) {
        own->done = done;
        own->arg = arg;
        w.guarded = &own->call.g;
        w.wrong = &own->call.wrong;
    } else if (c->wrong.status == RLOCK_OK) {
        rl_fault_set(&c->wrong, RLOCK_ENOMEM, 0, "out of memory");
    }
    rlock_status s = rl_lock_start_job(lk, &w, called, own);
    if (s != RLOCK_OK) {
        drop(own ? &own->call : c);
        free(own);
    }
    return s;
}

rlock_status rlock_eval_start(rlock *lk, const char *script, int keys, int args,
                              const char **argv, const size_t *lens,
                              rlock_replied *done, void *arg)
{
    call c = script_call(script, keys, args, argv, lens);
    return start(lk, &c, done, arg);
}

rlock_status rlock_command_argv_start(rlock *lk, int argc, const char **argv,
                                      const size_t *lens, rlock_replied *done,
                                      void *arg)
{
    call c = words_call(argc, argv, lens);
    return start(lk, &c, done, arg);
}

rlock_status rlock_vcommand_start(rlock *lk, rlock_replied *done, void *arg,
                                  const char *format, va_list ap)
{
    call c = format_call(format, ap);
    return start(lk, &c, done, arg);
}

rlock_status rlock_command_start(rlock *lk, rlock_replied *done, void *arg,
                                 const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    rlock_status s = rlock_vcommand_start(lk, done, arg, format, ap);
    va_end(ap);
    return s;
}
