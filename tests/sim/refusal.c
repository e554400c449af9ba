/*
 * What a server says instead of what was asked for: that it will not, for a
 * while, or something that no script of the library answers. The latter may say
 * nothing that could be true, because nobody could tell that from an answer.
 */
#include <string.h>

#include "world.h"

static const char *const refusals[] = {
    "LOADING Redis is loading the dataset in memory",
    "BUSY Redis is busy running a script.",
    "READONLY You can't write against a read only replica.",
    "MASTERDOWN Link with MASTER is down",
    "MISCONF Redis is configured to save RDB snapshots, but cannot",
    "NOREPLICAS Not enough good replicas to write.",
    "CLUSTERDOWN The cluster is down",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "NOPERM this user has no permissions to run the 'evalsha' command",
    ("ERR Error running script (call to f_0a1b): @user_script:12: "
     "@user_script: 12: -READONLY You can't write against a read only "
     "replica."),
    "SOMETHING that nobody knows"};

#define NO_REPLY "\001\002\003\r\n"

/* Not "0": so a level more is granted where the token's key is gone. */
static const char *const oddities[] = {
    "+OK\r\n",
    "$-1\r\n",
    "$3\r\nodd\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*1\r\n:7\r\n",
    "$2\r\n-5\r\n",
    "$5\r\n12ab5\r\n",
    "*2\r\n:1\r\n$3\r\n123\r\n",
    "*3\r\n:9\r\n:9\r\n:9\r\n",
    "*5\r\n$1\r\nx\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
    "*9\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
    "*1\r\n*1\r\n:1\r\n",
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    "$99999999999\r\n",
    NO_REPLY};

#define COUNT(array) (sizeof(array) / sizeof *(array))

void server_refuse(server *s, int64_t us)
{
    world *w = s->w;
    s->refusal = refusals[chance_below(&w->chance, (int64_t)COUNT(refusals))];
    trace(w, "server %u says from here on: %s", s->index, s->refusal);
    timer_set(w, &s->obey, w->now_us + us);
}

void server_garble(server *s)
{
    s->garbles = true;
}

/*
 * Instead of the answer; or behind it, but then it is no reply at all: one
 * reply too many would pass for the answer to the next call, and that call's
 * answer for the answer to the one behind it. Nobody could tell.
 */
void server_say_oddity(server *s, text *out, size_t from)
{
    world *w = s->w;
    const char *odd =
        oddities[chance_below(&w->chance, (int64_t)COUNT(oddities))];
    s->garbles = false;
    if (chance_ppm(&w->chance, 900000))
        out->len = from;
    else
        odd = NO_REPLY;
    text_add(out, odd, strlen(odd));
    trace(w, "server %u answers what makes no sense", s->index);
}
