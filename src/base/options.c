#include "base/options.h"

#include <string.h>

bool rl_options_read(void *to, size_t size, const void *from)
{
    size_t given;
    memset(to, 0, size);
    if (!from)
        return true;
    memcpy(&given, from, sizeof given);
    if (given < sizeof given || given > size)
        return false;
    memcpy(to, from, given);
    return true;
}

bool rl_struct_fill(void *to, size_t given, const void *from, size_t size,
                    size_t least)
{
    size_t known = given < size ? given : size;
    if (given < least)
        return false;
    memcpy(to, from, known);
    memset((char *)to + known, 0, given - known);
    return true;
}

bool rl_options_copy(char **to, const char *from)
{
    *to = from ? strdup(from) : NULL;
    return *to || !from;
}
