#include "wire/bytes.h"

#include <stdlib.h>
#include <string.h>

/* A sign, digits, and the end of the line: "*3", "$12". */
#define COUNT_MAX 23

/* So large a buffer is not kept for what may come. */
#define MOST_KEPT (16 * 1024)

void rl_bytes_fini(rl_bytes *b)
{
    free(b->at);
    *b = (rl_bytes){0};
}

void rl_bytes_cut(rl_bytes *b, size_t end)
{
    b->end = end;
    b->lacking = false;
}

void rl_bytes_sent(rl_bytes *b, size_t n)
{
    b->begin += n;
    if (b->begin == b->end)
        b->begin = b->end = 0;
}

void rl_bytes_trim(rl_bytes *b)
{
    if (b->room > MOST_KEPT && rl_bytes_left(b) == 0)
        rl_bytes_fini(b);
}

/* The bytes that were sent make room before more is asked for. */
static bool make_room(rl_bytes *b, size_t more)
{
    size_t left = rl_bytes_left(b);
    if (b->begin >= left + more) {
        memcpy(b->at, b->at + b->begin, left);
        b->begin = 0;
        b->end = left;
        return true;
    }
    size_t room = (b->end + more) * 2;
    char *at = realloc(b->at, room);
    if (!at)
        return false;
    b->at = at;
    b->room = room;
    return true;
}

/* Returns where size bytes may be written, or NULL. */
static char *reserve(rl_bytes *b, size_t size)
{
    bool fits = b->end + size <= b->room;
    b->lacking = b->lacking || !(fits || make_room(b, size));
    return b->lacking ? NULL : b->at + b->end;
}

char *rl_write_digits(char *at, uint64_t n)
{
    char *end = at + 1;
    for (uint64_t left = n; left > 9; left /= 10)
        end++;
    for (char *digit = end; digit > at; n /= 10)
        *--digit = (char)('0' + n % 10);
    return end;
}

static char *put_count(char *at, char sign, size_t n)
{
    *at++ = sign;
    at = rl_write_digits(at, n);
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

void rl_put_raw(rl_bytes *b, const void *bytes, size_t len)
{
    char *at = reserve(b, len);
    if (!at)
        return;
    memcpy(at, bytes, len);
    b->end += len;
}

void rl_put_array(rl_bytes *b, size_t n)
{
    char *at = reserve(b, COUNT_MAX);
    if (at)
        b->end += (size_t)(put_count(at, '*', n) - at);
}

char *rl_put_word(rl_bytes *b, size_t len)
{
    char *at = reserve(b, COUNT_MAX + len + 2);
    if (!at)
        return NULL;
    char *word = put_count(at, '$', len);
    memcpy(word + len, "\r\n", 2);
    b->end += (size_t)(word - at) + len + 2;
    return word;
}

void rl_put_bytes(rl_bytes *b, const void *bytes, size_t len)
{
    char *word = rl_put_word(b, len);
    if (word)
        memcpy(word, bytes, len);
}

void rl_put_text(rl_bytes *b, const char *text)
{
    rl_put_bytes(b, text, strlen(text));
}

void rl_put_number(rl_bytes *b, int64_t number)
{
    char text[21], *at = text;
    if (number < 0)
        *at++ = '-';
    at = rl_write_digits(at,
                         number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
    rl_put_bytes(b, text, (size_t)(at - text));
}
