#include "script_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha1.h"

static const char *text_of_library(const char *path)
{
    for (size_t i = 0; i < RL_SCRIPT_COUNT; i++)
        if (strcmp(rl_scripts[i].name, path) == 0)
            return rl_scripts[i].body;
    return NULL;
}

const char *script_text(const char *path)
{
    static char text[60000];
    const char *folder = getenv("RLOCK_TEST_LUA");
    char file[300];
    if (!folder)
        return text_of_library(path);
    snprintf(file, sizeof file, "%s/%s.lua", folder, path);
    FILE *f = fopen(file, "re");
    if (!f)
        return NULL;
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

const char *script_before_7(const char *text)
{
    static const char number[] = "redis.REDIS_VERSION_NUM";
    static char old[60000];
    const char *at = strstr(text, number);
    if (!at)
        return NULL;
    snprintf(old, sizeof old, "%.*snil%s", (int)(at - text), text,
             at + strlen(number));
    return old;
}

const char *script_sha(rl_script_id script)
{
    static char sums[RL_SCRIPT_COUNT][RL_SHA1_LEN + 1];
    char *sum = sums[script];
    if (!*sum) {
        const char *text = script_text(rl_scripts[script].name);
        rl_sha1 s;
        rl_sha1_begin(&s);
        rl_sha1_add(&s, text, strlen(text));
        rl_sha1_end(&s, sum);
    }
    return sum;
}
