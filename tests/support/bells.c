#include "bells.h"

static void hear_of(bells *b, const char *bell)
{
    redisReply *r = redisCommand(b->ear, "SUBSCRIBE %s", bell);
    EXPECT(r && r->type == REDIS_REPLY_ARRAY);
    freeReplyObject(r);
}

bells bells_open_at(const char *args, const char *one, const char *two)
{
    bells b = {.sv = server_start(args)};
    server_load_scripts(b.sv);
    b.ear = connect_to(server_path(b.sv), SOON);
    hear_of(&b, one);
    hear_of(&b, two);
    return b;
}

bells bells_open(const char *args)
{
    return bells_open_at(args, BELL_OF("1"), BELL_OF("2"));
}

void bells_close(bells *b)
{
    redisFree(b->ear);
    server_stop(b->sv);
}

const char *bells_heard(bells *b)
{
    static char text[700];
    redisReply *r;
    EXPECT_INT(redisGetReply(b->ear, (void **)&r), REDIS_OK);
    EXPECT_STR(r->element[0]->str, "message");
    const char *bell = r->element[1]->str;
    snprintf(text, sizeof text, "%s<%s", bell + strlen(bell) - 1,
             r->element[2]->str);
    freeReplyObject(r);
    return text;
}

void bells_want(bells *b, const char *want)
{
    char words[100];
    snprintf(words, sizeof words, "60000 %s " BELL_OF("1"), want);
    server_cmd(b->sv, "ZADD rlock_line:{job} 1 " HOLDER_OF("d"));
    server_cmd(b->sv, "HSET rlock_wants:{job} " HOLDER_OF("d") " %s =%s %s",
               words, BELL_OF("1"), "9000000000000 1000");
}
