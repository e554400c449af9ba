/*
 * The URI parser, with any text. What it accepts has the parts that it says,
 * which can be written down and read again; what it refuses, it refuses at a
 * position that exists.
 */
#include <sys/un.h>

#include "fuzz.h"
#include "net/uri.h"

static bool is_printable(const char *text)
{
    for (; *text; text++) {
        if (*text < ' ' || *text > '~')
            return false;
    }
    return true;
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* With every byte as an escape. */
static char *put_escaped(char *to, const char *text)
{
    for (; *text; text++)
        to += sprintf(to, "%%%02x", (unsigned char)*text);
    return to;
}

static char *put_login(char *to, const rl_uri *u)
{
    if (u->user)
        to = put_escaped(to, u->user);
    if (u->password)
        to = put_escaped(to + sprintf(to, ":"), u->password);
    if (u->user || u->password)
        to += sprintf(to, "@");
    return to;
}

static size_t len_of(const char *text)
{
    return text ? strlen(text) : 0;
}

static char *put_endpoints(char *to, const rl_uri *u)
{
    for (size_t i = 0; i < u->endpoints; i++) {
        to += sprintf(to, i ? "," : "");
        to = put_escaped(to, u->endpoint[i].host);
        to += sprintf(to, ":%d", u->endpoint[i].port);
    }
    if (u->cluster)
        return to;
    to = put_escaped(to + sprintf(to, "/"), u->master);
    return to + sprintf(to, "/%d", u->db);
}

static size_t room_for(const rl_uri *u)
{
    size_t len = len_of(u->user) + len_of(u->password) + len_of(u->host) +
                 len_of(u->master);
    for (size_t i = 0; i < u->endpoints; i++)
        len += len_of(u->endpoint[i].host) + 8;
    return 3 * len + 64;
}

static char *written(const rl_uri *u)
{
    char *text = malloc(room_for(u));
    char *to = text;
    if (u->local)
        to += sprintf(to, "unix://");
    else
        to += sprintf(to, "redis%s%s://", u->tls ? "s" : "",
                      u->master    ? "-sentinel"
                      : u->cluster ? "-cluster"
                                   : "");
    to = put_login(to, u);
    if (u->endpoints > 0) {
        put_endpoints(to, u);
        return text;
    }
    if (u->local)
        to += sprintf(to, "/"); /* the path's own, which must be plain */
    to = put_escaped(to, u->host + u->local);
    if (u->local)
        sprintf(to, "?db=%d", u->db);
    else
        sprintf(to, ":%d/%d", u->port, u->db);
    return text;
}

static void must_survive_writing(const rl_uri *u)
{
    rl_uri again;
    rl_fault f;
    char *text = written(u);
    MUST(rl_uri_parse(&again, text, &f) == RLOCK_OK);
    MUST(again.local == u->local && again.db == u->db &&
         again.port == u->port && again.tls == u->tls);
    MUST(same(again.user, u->user) && same(again.password, u->password) &&
         same(again.host, u->host) && same(again.shown, u->shown));
    MUST(same(again.master, u->master) && again.endpoints == u->endpoints);
    for (size_t i = 0; i < u->endpoints; i++)
        MUST(same(again.endpoint[i].host, u->endpoint[i].host) &&
             again.endpoint[i].port == u->endpoint[i].port);
    rl_uri_fini(&again);
    free(text);
}

static void must_be_whole(const rl_uri *u)
{
    MUST(*u->host);
    MUST(u->db >= 0);
    MUST(u->local || (u->port >= 1 && u->port <= 65535));
    MUST(!u->local ||
         (u->host[0] == '/' &&
          strlen(u->host) < sizeof((struct sockaddr_un *)0)->sun_path));
    MUST(memchr(u->shown, '\0', sizeof u->shown) && is_printable(u->shown));
}

static void must_tell_where(const rl_fault *f, size_t len)
{
    int at;
    MUST(f->status == RLOCK_EINVAL && is_printable(f->text));
    MUST(sscanf(f->text, "malformed URI at position %d:", &at) == 1);
    MUST(at >= 1 && (size_t)at <= len + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rl_uri u;
    rl_fault f;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    rlock_status s = rl_uri_parse(&u, text, &f);
    if (s == RLOCK_OK) {
        must_be_whole(&u);
        must_survive_writing(&u);
    } else if (s != RLOCK_ENOTSUP) {
        must_tell_where(&f, strlen(text));
    }
    rl_uri_fini(&u);
    free(text);
    return 0;
}
