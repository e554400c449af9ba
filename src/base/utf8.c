#include "base/utf8.h"

/* How long is what begins so? 0: nothing does. */
static size_t length_of(unsigned char first)
{
    if (first < 0x80)
        return first ? 1 : 0;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Too long a form, a surrogate, or too large: by its second byte. */
static bool is_excluded(unsigned char first, unsigned char second)
{
    return (first == 0xe0 && second < 0xa0) ||
           (first == 0xed && second > 0x9f) ||
           (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
}

size_t rl_utf8_character(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = length_of(*s);
    if (n > len || (n > 1 && is_excluded(s[0], s[1])))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

bool rl_utf8_is(const char *text, size_t len)
{
    for (size_t i = 0, n; i < len; i += n) {
        n = rl_utf8_character(text + i, len - i);
        if (n == 0)
            return false;
    }
    return true;
}
