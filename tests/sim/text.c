#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void die(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    exit(2);
}

volatile int memory_for_world;

void *need_more(void *p, size_t size)
{
    memory_for_world++;
    p = realloc(p, size);
    memory_for_world--;
    if (!p)
        die("out of memory");
    return p;
}

void *need_memory(size_t size)
{
    memory_for_world++;
    void *p = calloc(1, size);
    memory_for_world--;
    if (!p)
        die("out of memory");
    return p;
}

void text_add(text *t, const void *bytes, size_t len)
{
    if (t->len + len > t->room) {
        t->room = (t->len + len) * 2 + 64;
        t->at = need_more(t->at, t->room);
    }
    if (len > 0)
        memcpy(t->at + t->len, bytes, len);
    t->len += len;
}

void text_print(text *t, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    text_add(t, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

void text_cut(text *t, size_t n)
{
    memmove(t->at, t->at + n, t->len - n);
    t->len -= n;
}

void text_free(text *t)
{
    free(t->at);
    *t = (text){0};
}

static size_t decimal(char out[24], char kind, long long n)
{
    return (size_t)snprintf(out, 24, "%c%lld\r\n", kind, n);
}

void text_number(text *t, long long n)
{
    char out[24];
    text_add(t, out, decimal(out, ':', n));
}

void text_bulk(text *t, const void *bytes, size_t len)
{
    char out[24];
    text_add(t, out, decimal(out, '$', (long long)len));
    text_add(t, bytes, len);
    text_add(t, "\r\n", 2);
}

void text_bulk_number(text *t, long long n)
{
    char out[24];
    text_bulk(t, out, (size_t)snprintf(out, sizeof out, "%lld", n));
}

bool word_is(const word *w, const char *name)
{
    return w->len == strlen(name) && strncasecmp(w->at, name, w->len) == 0;
}

bool word_equal(const word *a, const word *b)
{
    return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

bool word_number(const word *w, long long *n)
{
    char digits[24], *end;
    if (w->len == 0 || w->len >= sizeof digits || *w->at == ' ' ||
        *w->at == '+')
        return false;
    memcpy(digits, w->at, w->len);
    digits[w->len] = '\0';
    *n = strtoll(digits, &end, 10);
    /* As Redis reads them: in the one way in which it writes them. */
    char again[24];
    snprintf(again, sizeof again, "%lld", *n);
    return !*end && strcmp(again, digits) == 0;
}
