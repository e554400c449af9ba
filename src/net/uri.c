#include "net/uri.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define DEFAULT_HOST "127.0.0.1"
#define DEFAULT_PORT 6379

#define SENTINEL_PORT 26379

/*
 * The copy in u->text is cut into pieces by NULs and its escapes are decoded
 * in place, so positions of errors are worked out before anything is decoded.
 */
static rlock_status bad(const rl_uri *u, const char *at, const char *why,
                        rl_fault *f)
{
    return rl_fault_set(f, RLOCK_EINVAL, 0, "malformed URI at position %d: %s",
                        (int)(at - u->text) + 1, why);
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static const char *bad_escape(const char *text)
{
    for (const char *p = text; (p = strchr(p, '%')) != NULL; p++) {
        if (hex(p[1]) < 0 || hex(p[2]) < 0 || (p[1] == '0' && p[2] == '0'))
            return p;
    }
    return NULL;
}

static void decode(const char *piece)
{
    if (!piece)
        return;
    char *to = (char *)piece;
    for (const char *from = piece; *from; to++) {
        if (*from == '%') {
            *to = (char)(hex(from[1]) * 16 + hex(from[2]));
            from += 3;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* A decimal number from 0 to max that fills the whole text; -1: it is none. */
static int number(const char *text, int max)
{
    int n = 0;
    if (!*text)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || (n = n * 10 + *text - '0') > max)
            return -1;
    }
    return n;
}

/* user:password@ before the address; returns where the address begins. */
static char *take_login(rl_uri *u, char *text, char *end)
{
    char *at = end;
    while (at > text && *--at != '@')
        ;
    if (at == end || *at != '@')
        return text;
    *at = '\0';
    char *colon = strchr(text, ':');
    if (colon) {
        *colon = '\0';
        u->password = colon + 1;
    }
    if (*text)
        u->user = text;
    return at + 1;
}

static rlock_status parse_unix(rl_uri *u, char *text, rl_fault *f)
{
    u->local = true;
    char *slash = strchr(text, '/');
    if (!slash)
        return bad(u, text, "the socket's path must be absolute", f);
    char *path = take_login(u, text, slash);
    if (*path != '/')
        return bad(u, path, "the socket's path must be absolute", f);
    u->host = path;
    char *query = strchr(path, '?');
    if (query) {
        *query++ = '\0';
        if (strncmp(query, "db=", 3) != 0)
            return bad(u, query, "unknown option, expected db=", f);
        if ((u->db = number(query + 3, 1 << 20)) < 0)
            return bad(u, query + 3, "not a database number", f);
    }
    decode(path);
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return bad(u, path, "the socket's path is too long", f);
    return RLOCK_OK;
}

static rlock_status parse_port(rl_uri *u, char *colon, rl_fault *f)
{
    *colon = '\0';
    u->port = number(colon + 1, 65535);
    return u->port > 0 ? RLOCK_OK : bad(u, colon + 1, "not a port", f);
}

static rlock_status parse_address(rl_uri *u, char *text, rl_fault *f)
{
    u->host = text;
    char *colon = strchr(text, ':');
    if (*text == '[') {
        char *close = strchr(text, ']');
        if (!close)
            return bad(u, text, "missing ]", f);
        u->host = text + 1;
        *close = '\0';
        colon = close[1] ? close + 1 : NULL;
        if (colon && *colon != ':')
            return bad(u, colon, "expected : after ]", f);
    }
    rlock_status s = colon ? parse_port(u, colon, f) : RLOCK_OK;
    if (s == RLOCK_OK && !*u->host)
        return bad(u, u->host, "missing host", f);
    return s;
}

static rlock_status parse_tcp(rl_uri *u, char *text, rl_fault *f)
{
    u->port = DEFAULT_PORT;
    char *end = text + strcspn(text, "/?#");
    char *db = end;
    if (*end == '/')
        *db++ = '\0';
    char *address = take_login(u, text, end);
    rlock_status s = parse_address(u, address, f);
    if (s != RLOCK_OK)
        return s;
    if (*db && (u->db = number(db, 1 << 20)) < 0)
        return bad(u, db, "not a database number", f);
    return RLOCK_OK;
}

/* "a:1,b:2" */
static rlock_status parse_endpoints(rl_uri *u, char *text, int port,
                                    rl_fault *f)
{
    rlock_status s = RLOCK_OK;
    for (char *next; text && s == RLOCK_OK; text = next) {
        if ((next = strchr(text, ',')) != NULL)
            *next++ = '\0';
        if (u->endpoints == RL_URI_ENDPOINTS)
            return bad(u, text, "too many hosts", f);
        u->port = port;
        s = parse_address(u, text, f);
        u->endpoint[u->endpoints++] = (rl_endpoint){u->host, u->port};
    }
    u->host = u->endpoint[0].host;
    u->port = u->endpoint[0].port;
    return s;
}

static rlock_status parse_sentinel(rl_uri *u, char *text, rl_fault *f)
{
    char *end = text + strcspn(text, "/?#");
    if (*end != '/' || !end[1] || end[1] == '/')
        return bad(u, end, "expected / and the master's name", f);
    size_t len = strcspn(end + 1, "?#@");
    if (end[1 + len])
        return bad(u, end + 1 + len, "unexpected in the master's name", f);
    *end = '\0';
    u->master = end + 1;
    u->secure = "rediss-sentinel://";
    char *db = strchr(end + 1, '/');
    rlock_status s =
        parse_endpoints(u, take_login(u, text, end), SENTINEL_PORT, f);
    if (s != RLOCK_OK || !db)
        return s;
    *db++ = '\0';
    return (u->db = number(db, 1 << 20)) < 0
               ? bad(u, db, "not a database number", f)
               : RLOCK_OK;
}

/* A cluster has one database. */
static rlock_status parse_cluster(rl_uri *u, char *text, rl_fault *f)
{
    char *end = text + strcspn(text, "/?#");
    if (*end && strcmp(end, "/") != 0 && strcmp(end, "/0") != 0)
        return bad(u, end, "a cluster has no other database than 0", f);
    *end = '\0';
    u->cluster = true;
    u->secure = "rediss-cluster://";
    return parse_endpoints(u, take_login(u, text, end), DEFAULT_PORT, f);
}

static void describe(rl_uri *u)
{
    char host[sizeof u->shown - 40], master[40] = "";
    rl_printable(host, sizeof host, u->host, strlen(u->host));
    if (u->master)
        rl_printable(master, sizeof master, u->master, strlen(u->master));
    if (u->master)
        snprintf(u->shown, sizeof u->shown, "redis%s-sentinel://%.60s:%d/%s",
                 u->tls ? "s" : "", host, u->port, master);
    else if (u->local)
        snprintf(u->shown, sizeof u->shown, "unix://%s", host);
    else
        snprintf(
            u->shown, sizeof u->shown,
            strchr(host, ':') ? "redis%s%s://[%s]:%d" : "redis%s%s://%s:%d",
            u->tls ? "s" : "", u->cluster ? "-cluster" : "", host, u->port);
}

static rlock_status parse(rl_uri *u, rl_fault *f)
{
    const char *escape = bad_escape(u->text);
    if (escape)
        return bad(u, escape, "bad %XX escape", f);
    if (strncmp(u->text, "redis://", 8) == 0)
        return parse_tcp(u, u->text + 8, f);
    if (strncmp(u->text, "unix://", 7) == 0)
        return parse_unix(u, u->text + 7, f);
    if (strncmp(u->text, "redis-sentinel://", 17) == 0)
        return parse_sentinel(u, u->text + 17, f);
    if (strncmp(u->text, "redis-cluster://", 16) == 0)
        return parse_cluster(u, u->text + 16, f);
    u->tls = true;
    if (strncmp(u->text, "rediss://", 9) == 0)
        return parse_tcp(u, u->text + 9, f);
    if (strncmp(u->text, "rediss-sentinel://", 18) == 0)
        return parse_sentinel(u, u->text + 18, f);
    if (strncmp(u->text, "rediss-cluster://", 17) == 0)
        return parse_cluster(u, u->text + 17, f);
    return bad(u, u->text,
               "expected redis://, rediss://, unix://, redis(s)-sentinel:// or "
               "redis(s)-cluster://",
               f);
}

rlock_status rl_uri_of(rl_uri *u, const rl_uri *like, const char *host,
                       int port, rl_fault *f)
{
    const char *piece[] = {host, like->user, like->password};
    const char **into[] = {&u->host, &u->user, &u->password};
    size_t size = 0;
    *u = (rl_uri){.tls = like->tls, .port = port, .secure = like->secure};
    for (size_t i = 0; i < 3; i++)
        size += piece[i] ? strlen(piece[i]) + 1 : 0;
    char *at = u->text = malloc(size);
    if (!at)
        return rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
    for (size_t i = 0; i < 3; i++) {
        if (!piece[i])
            continue;
        *into[i] = strcpy(at, piece[i]);
        at += strlen(piece[i]) + 1;
    }
    describe(u);
    return RLOCK_OK;
}

rlock_status rl_uri_parse(rl_uri *u, const char *uri, rl_fault *f)
{
    *u = (rl_uri){0};
    u->text = strdup(uri ? uri : "redis://" DEFAULT_HOST);
    if (!u->text)
        return rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
    rlock_status s = parse(u, f);
    if (s != RLOCK_OK)
        return s;
    decode(u->user);
    decode(u->password);
    decode(u->master);
    for (size_t i = 0; i < u->endpoints; i++)
        decode(u->endpoint[i].host);
    if (!u->local && u->endpoints == 0)
        decode(u->host);
    describe(u);
    return RLOCK_OK;
}

void rl_uri_fini(rl_uri *u)
{
    free(u->text);
    *u = (rl_uri){0};
}
