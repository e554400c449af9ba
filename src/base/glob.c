#include "base/glob.h"

static unsigned char byte(const char *at)
{
    return (unsigned char)*at;
}

/* One byte of a set, or a range of them; where the next begins. */
static const char *in_range(const char *at, unsigned char c, bool *found)
{
    if (*at == '\\' && at[1])
        at++;
    unsigned char from = byte(at), to = from;
    if (at[1] == '-' && at[2]) {
        to = byte(at + 2);
        at += 2;
    }
    *found =
        *found || (from <= to ? from <= c && c <= to : to <= c && c <= from);
    return at + 1;
}

/* A set behind its bracket; one that does not end goes to the text's end. */
static const char *in_set(const char *at, unsigned char c, bool *fits)
{
    bool others = *at == '^', found = false;
    at += others;
    while (*at && *at != ']')
        at = in_range(at, c, &found);
    *fits = found != others;
    return *at ? at + 1 : at;
}

/* What is one byte of the text; NULL: not this one. */
static const char *one(const char *glob, unsigned char c)
{
    bool fits;
    switch (*glob) {
    case '\0':
        return NULL;
    case '?':
        return glob + 1;
    case '[':
        glob = in_set(glob + 1, c, &fits);
        return fits ? glob : NULL;
    case '\\':
        glob += glob[1] != '\0';
        break;
    }
    return byte(glob) == c ? glob + 1 : NULL;
}

/* Where it does not fit, the latest star takes one byte more. */
bool rl_glob_fits(const char *glob, const char *text, size_t len)
{
    const char *star = NULL, *end = text + len, *from = text;
    while (text < end) {
        const char *next = *glob == '*' ? NULL : one(glob, byte(text));
        if (*glob == '*') {
            star = ++glob;
            from = text;
        } else if (next) {
            glob = next;
            text++;
        } else if (star) {
            glob = star;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*glob == '*')
        glob++;
    return *glob == '\0';
}
