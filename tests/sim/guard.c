/*
 * Guarded writes: each thing has a resource beside it, at the same server, and
 * who holds the thing writes his token there, by a script or a command, called
 * or started. What stood there before is the answer: so the writes make a
 * chain, and judge 5 looks that tokens grow along it, whatever was lost or
 * forced, and that what was refused is in it nowhere.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"

#define WRITES_MAX 4096

typedef struct written {
    owner *o;
    int thing, generation;
    uint64_t token;
    bool is_over, is_refused;
    act a;
    char text[40]; /* token:number */
} written;

static written writes[WRITES_MAX];
static int writes_n;

static const char script[] =
    "local last = redis.call('GET', KEYS[1])\n"
    "redis.call('SET', KEYS[1], ARGV[1], 'PX', '600000')\n"
    "return last";

static void check_last(const written *x, const char *last)
{
    unsigned long long token;
    unsigned number;
    if (sscanf(last, "%llu:%u", &token, &number) != 2 ||
        number >= (unsigned)writes_n)
        finding("judge 5: the resource of %s has \"%s\"", things[x->thing].name,
                last);
    if (token > x->token)
        finding("judge 5: a write of %s with the token %llu is executed after "
                "one with %llu",
                things[x->thing].name, (unsigned long long)x->token, token);
    if (writes[number].is_refused)
        finding("judge 5: a write of %s was executed that was refused",
                things[x->thing].name);
}

static void judge_write(written *x, rlock_status s, const redisReply *r)
{
    if (x->is_over)
        finding("judge 4: a guarded call is called back twice");
    x->is_over = true;
    x->is_refused = s == RLOCK_LOST || s == RLOCK_NOT_HELD;
    if (s == RLOCK_OK && r && r->type == REDIS_REPLY_STRING)
        check_last(x, r->str);
    if (s == RLOCK_OK && !r)
        finding("judge 5: a guarded call that is ok has no reply");
}

/* Of a thing at one server, that the owner has. */
static written *begin(owner *o)
{
    int t = (int)chance_below(&o->dice, things_n);
    if (!o->hold[t] || things[t].is_red || writes_n == WRITES_MAX)
        return NULL;
    uint64_t token = o->hold[t]->token;
    if (!token && !judge_is_tokenless(t))
        return NULL;
    written *x = &writes[writes_n];
    *x = (written){.o = o,
                   .thing = t,
                   .generation = o->generation,
                   .token = token,
                   .a = act_begin(o, "guard", t)};
    x->a.is_nested = true;
    snprintf(x->text, sizeof x->text, "%llu:%d", (unsigned long long)token,
             writes_n++);
    return x;
}

static const char *resource(const written *x, char *at, size_t room)
{
    const char *name = things[x->thing].name;
    key_beside(at, room, *name == '{' ? "braced" : "resource", name);
    return at;
}

void act_guard(owner *o)
{
    char key[40];
    redisReply *r = NULL;
    rlock_status s;
    written *x = begin(o);
    if (!x)
        return;
    const char *argv[] = {resource(x, key, sizeof key), x->text};
    rlock *lk = owner_handle(o, x->thing);
    const char *set[] = {"SET", key, x->text, "PX", "600000", "GET"};
    switch (chance_below(&o->dice, 3)) {
    case 0:
        s = rlock_eval(lk, script, 1, 1, argv, NULL, &r);
        break;
    case 1:
        s = rlock_command_argv(lk, &r, 6, set, NULL);
        break;
    default:
        s = rlock_command(lk, &r, "SET %s %s PX 600000 GET", key, x->text);
    }
    act_end(&x->a, s);
    judge_write(x, s, r);
    freeReplyObject(r);
    look_at_all(o);
}

/* --- of a task ------------------------------------------------------------ */

static void replied(rlock *lk, rlock_status s, redisReply *r, void *arg)
{
    written *x = arg;
    (void)lk;
    judge_write(x, s, r);
    if (running->mutexes > 0)
        finding("judge 10: a guarded call is called back under %d mutexes",
                running->mutexes);
    if (x->generation != x->o->generation || !x->o->self)
        return;
    x->o->state = TASK_ACTS;
    act_end(&x->a, s);
    if (x->o->g->closing_at)
        return;
    look_at_all(x->o);
    task_rests(x->o);
}

static rlock_status start(written *x, rlock *lk)
{
    char key[40];
    const char *argv[] = {resource(x, key, sizeof key), x->text};
    const char *set[] = {"SET", key, x->text, "PX", "600000", "GET"};
    switch (chance_below(&x->o->dice, 3)) {
    case 0:
        return rlock_eval_start(lk, script, 1, 1, argv, NULL, replied, x);
    case 1:
        return rlock_command_argv_start(lk, 6, set, NULL, replied, x);
    default:
        return rlock_command_start(lk, replied, x, "SET %s %s PX 600000 GET",
                                   key, x->text);
    }
}

bool start_guard(owner *o)
{
    written *x = begin(o);
    if (!x)
        return false;
    x->a.is_started = true;
    o->state = TASK_WAITS;
    rlock_status s = start(x, o->g->handle[x->thing]);
    if (s == RLOCK_OK)
        return true;
    if (!o->g->closing_at && (s != RLOCK_EINVAL || o->acting < 2) &&
        !judge_excuses(o->g, s, x->a.began))
        finding("the start of a guarded call: %s", rlock_status_str(s));
    x->is_over = x->is_refused = true;
    task_rests(o);
    return true;
}
