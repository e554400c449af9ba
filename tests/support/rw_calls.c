#include "rw_calls.h"

const side side_reads = {&rl_layouts[RL_LAYOUT_READ], true};
const side side_writes = {&rl_layouts[RL_LAYOUT_WRITE], false};

bells rw_bells_open(void)
{
    return bells_open_at(NULL, BELL_OF("1"), CHANNEL);
}

const char *rw_heard(bells *p)
{
    return strchr(bells_heard(p), '<') + 1;
}

const char *side_keys(const side *x, const char *holder)
{
    static char text[600];
    snprintf(text, sizeof text,
             "%d job " TOKEN " rlock_undone:{job}:%s " LINE " " WANTS " " LEASES
             "%s%s%s",
             6 + x->marked, holder + 9, x->marked ? " {job}:" : "",
             x->marked ? holder : "", x->marked ? ":rwlock_timeout:1" : "");
    return text;
}

redisReply *side_run(bells *p, rl_script_id script, const char *keys,
                     const char *holder, const char *words)
{
    char cmd[1400];
    snprintf(cmd, sizeof cmd, "EVALSHA %s %s %s %s", script_sha(script), keys,
             holder, words);
    return server_cmd(p->sv, cmd);
}

redisReply *side_try(bells *p, const side *x, const char *holder,
                     const char *words)
{
    return side_run(p, x->l->acquire, side_keys(x, holder), holder, words);
}

uint64_t side_take(bells *p, const side *x, const char *holder)
{
    redisReply *r = side_try(p, x, holder, "60000");
    EXPECT_INT(r->type, REDIS_REPLY_STRING);
    return strtoull(r->str, NULL, 10);
}

redisReply *side_take_too(bells *p, const side *x, const char *holder,
                          const char *other)
{
    char cmd[1400];
    snprintf(cmd, sizeof cmd, "EVALSHA %s %s %s 60000 1 %%s 0 0 %s",
             script_sha(x->l->acquire), side_keys(x, holder), holder, other);
    return server_cmd(p->sv, cmd, "");
}

void side_stand(bells *p, const side *x, const char *holder, int rank)
{
    redisReply *r = side_try(p, x, holder, "60000 1 " BELL_OF("1") " 0 1000");
    EXPECT_INT(r->elements, 6);
    EXPECT_INT(r->element[0]->integer, 0);
    EXPECT_INT(r->element[4]->integer, rank);
}

void expect_side_busy(const redisReply *r)
{
    EXPECT_INT(r->elements, 7);
    EXPECT_INT(r->element[0]->integer, 0);
    EXPECT_INT(r->element[4]->integer, -1);
}

void expect_side_code(const redisReply *r, int code)
{
    EXPECT_INT(r->elements, 1);
    EXPECT_INT(r->element[0]->integer, code);
}

long long side_release(bells *p, const side *x, const char *holder)
{
    return side_run(p, x->l->release, side_keys(x, holder), holder, CHANNEL)
        ->integer;
}

const char *job_mode(bells *p)
{
    redisReply *r = server_cmd(p->sv, "HGET job mode");
    return r->type == REDIS_REPLY_STRING ? r->str : "free";
}

bool job_has(bells *p, const char *field)
{
    return server_int(p->sv, "HEXISTS job %s", field) == 1;
}

void expect_job_gone(bells *p)
{
    EXPECT(!key_exists(p->sv, "job") && !key_exists(p->sv, LEASES));
    EXPECT(!key_exists(p->sv, MARK(A)) && !key_exists(p->sv, MARK(B)));
}
