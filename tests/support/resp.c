#include "resp.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEPTH_MAX = 16 };

/* Length of the line at p with its end; 0: no end yet. */
static size_t line_len(const char *p, size_t len)
{
    const char *end = memchr(p, '\n', len);
    return end ? (size_t)(end - p) + 1 : 0;
}

static ssize_t value_len(const char *p, size_t len, int depth);

static ssize_t elements_len(const char *p, size_t len, size_t head,
                            long long count, int depth)
{
    size_t at = head;
    for (long long i = 0; i < count; i++) {
        ssize_t n = value_len(p + at, len - at, depth + 1);
        if (n <= 0)
            return n;
        at += (size_t)n;
    }
    return (ssize_t)at;
}

static ssize_t bulk_len(size_t len, size_t head, long long count)
{
    if (count < 0)
        return (ssize_t)head;
    if ((unsigned long long)count + 2 > len - head)
        return 0;
    return (ssize_t)(head + (size_t)count + 2);
}

static ssize_t value_len(const char *p, size_t len, int depth)
{
    size_t head = len ? line_len(p, len) : 0;
    if (head == 0)
        return 0;
    if (depth > DEPTH_MAX)
        return -1;
    /* The line's end stops strtoll(). */
    long long count = strtoll(p + 1, NULL, 10);
    switch (p[0]) {
    case '$':
    case '=':
    case '!':
        return bulk_len(len, head, count);
    case '*':
    case '~':
    case '>':
        return elements_len(p, len, head, count, depth);
    case '%':
        return elements_len(p, len, head, 2 * count, depth);
    case '|': /* attributes, and then the value itself */
        return elements_len(p, len, head, 2 * count + 1, depth);
    default:
        return p[0] && strchr("+-:_#,(", p[0]) ? (ssize_t)head : -1;
    }
}

ssize_t resp_reply_len(const char *p, size_t len)
{
    return value_len(p, len, 0);
}

ssize_t resp_request_len(const char *p, size_t len)
{
    if (len && p[0] != '*')
        return (ssize_t)line_len(p, len);
    return value_len(p, len, 0);
}

int resp_words(const char *p, size_t len)
{
    if (len == 0 || (p[0] != '*' && p[0] != '>') || line_len(p, len) == 0)
        return 0;
    return atoi(p + 1);
}

bool resp_word(const char *p, size_t len, int i, const char **word,
               size_t *word_len)
{
    if (i >= resp_words(p, len))
        return false;
    size_t at = line_len(p, len);
    for (; i > 0; i--) {
        ssize_t n = value_len(p + at, len - at, 1);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    if (at >= len || p[at] != '$')
        return false;
    long long count = strtoll(p + at + 1, NULL, 10);
    size_t head = line_len(p + at, len - at);
    if (count < 0 || bulk_len(len - at, head, count) <= 0)
        return false;
    *word = p + at + head;
    *word_len = (size_t)count;
    return true;
}

bool resp_word_is(const char *p, size_t len, int i, const char *text)
{
    const char *word;
    size_t n;
    return resp_word(p, len, i, &word, &n) && n == strlen(text) &&
           strncasecmp(word, text, n) == 0;
}
