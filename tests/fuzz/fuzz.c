#include "fuzz.h"

void fuzz_broken(const char *file, int line, const char *cond)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, cond);
    abort();
}

unsigned feed_byte(feed *f)
{
    if (f->left == 0)
        return 0;
    f->left--;
    return *f->at++;
}

unsigned feed_choice(feed *f, unsigned limit)
{
    return feed_byte(f) % limit;
}

size_t feed_bytes(feed *f, size_t len, const uint8_t **bytes)
{
    if (len > f->left)
        len = f->left;
    *bytes = f->at;
    f->at += len;
    f->left -= len;
    return len;
}

char *feed_text(feed *f)
{
    const uint8_t *bytes;
    size_t len = feed_byte(f);
    len = feed_bytes(f, len, &bytes);
    char *text = malloc(len + 1);
    memcpy(text, bytes, len);
    text[len] = '\0';
    return text;
}

int64_t feed_number(feed *f)
{
    static const int64_t edges[] = {
        INT64_MIN, INT64_MIN + 1, -1,        INT32_MIN,
        INT32_MAX, 1LL << 32,     1LL << 52, (1LL << 52) + 1,
        1LL << 53, INT64_MAX - 1, INT64_MAX, INT64_MAX / 1000,
    };
    const uint8_t *bytes;
    uint64_t n = 0;
    unsigned kind = feed_byte(f);
    if (kind < 200)
        return kind;
    if (kind < 200 + sizeof edges / sizeof *edges)
        return edges[kind - 200];
    size_t len = feed_bytes(f, sizeof n, &bytes);
    memcpy(&n, bytes, len);
    return (int64_t)n;
}

feed feed_part(feed *f)
{
    feed part;
    size_t len = feed_byte(f);
    len += (size_t)feed_byte(f) << 8;
    part.left = feed_bytes(f, len, &part.at);
    return part;
}
