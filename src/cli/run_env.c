/*
 * What COMMAND's environment tells of the locks that it runs under.
 *
 * RLOCK_NAME, RLOCK_TOKEN, RLOCK_HOLDER   the innermost one; of a permit only
 *               its name: it is nobody's, and no run inside of it has it
 * RLOCK_OUTER   the others, which were there before, the latest first, with
 *               blanks between: NAME/TOKEN/HOLDER, where what is no letter,
 *               digit, '.', ':', '-' or '_' is written as %XX
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

static const char *const names[] = {"RLOCK_NAME", "RLOCK_TOKEN",
                                    "RLOCK_HOLDER"};

/* Writes it, and returns where it ends. */
static char *escape(char *to, const char *from)
{
    for (; *from; from++) {
        unsigned char c = (unsigned char)*from;
        if (isalnum(c) || strchr(".:-_", c))
            *to++ = (char)c;
        else
            to += sprintf(to, "%%%02X", c);
    }
    *to = '\0';
    return to;
}

/* What is not there must not look like an outer lock's. */
static bool put(const char *name, const char *value)
{
    return (*value ? setenv(name, value, 1) : unsetenv(name)) == 0;
}

/* What the innermost lock was goes to the others. */
static bool push(void)
{
    const char *outer = getenv("RLOCK_OUTER"), *value[3];
    size_t size = 8 + (outer ? strlen(outer) : 0);
    for (int i = 0; i < 3; i++) {
        if (!(value[i] = getenv(names[i])))
            return true;
        size += 3 * strlen(value[i]);
    }
    char *made = malloc(size), *to = made;
    if (!made)
        return false;
    for (int i = 0; i < 3; i++) {
        to = escape(to, value[i]);
        *to++ = i < 2 ? '/' : ' ';
    }
    strcpy(to, outer ? outer : "");
    bool ok = setenv("RLOCK_OUTER", made, 1) == 0;
    free(made);
    return ok;
}

bool run_env_put(const run_options *r, const run_hold *h)
{
    const char *before = getenv(names[0]);
    char *uris = cli_public_uris(r->cli);
    bool inner = before && strcmp(before, r->name) == 0;
    bool ok = uris && (inner || push()) && setenv("RLOCK_URI", uris, 1) == 0 &&
              put(names[0], r->name) && put(names[1], h->token) &&
              put(names[2], h->holder);
    free(uris);
    return ok;
}

static int hex(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? (c & 7) + 9
                                        : -1;
}

/* In place, up to the byte that ends it; returns what is behind that. */
static char *unescape(char *text, char end)
{
    char *to = text, *from = text;
    for (; *from && *from != end; to++) {
        if (*from == '%' && hex(from[1]) >= 0 && hex(from[2]) >= 0) {
            *to = (char)(hex(from[1]) * 16 + hex(from[2]));
            from += 3;
        } else {
            *to = *from++;
        }
    }
    char *rest = *from ? from + 1 : from;
    *to = '\0';
    return rest;
}

static void fill(run_hold *h, const char *token, const char *holder)
{
    snprintf(h->token, sizeof h->token, "%s", token ? token : "");
    snprintf(h->holder, sizeof h->holder, "%s", holder);
}

bool run_env_find(const char *name, run_hold *h)
{
    const char *inner = getenv(names[0]), *holder = getenv(names[2]);
    h->innermost = false;
    if (inner && holder && *holder && strcmp(inner, name) == 0) {
        fill(h, getenv(names[1]), holder);
        h->innermost = true;
        return true;
    }
    const char *outer = getenv("RLOCK_OUTER");
    char *copy = strdup(outer ? outer : "");
    bool found = false;
    for (char *at = copy; at && *at && !found;) {
        char *token = unescape(at, '/'), *id = unescape(token, '/');
        char *next = unescape(id, ' ');
        found = *id && strcmp(at, name) == 0;
        if (found)
            fill(h, token, id);
        at = next;
    }
    free(copy);
    return found;
}
