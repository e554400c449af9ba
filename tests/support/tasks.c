#include "tasks.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

bool task_is_named(const char *tid, const char *prefix)
{
    char path[300], name[64];
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", tid);
    FILE *f = fopen(path, "re");
    bool named = f && fgets(name, sizeof name, f) &&
                 strncmp(name, prefix, strlen(prefix)) == 0;
    if (f)
        fclose(f);
    return named;
}

int tasks_named(const char *prefix)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;
    if (!d)
        SKIP("this system does not tell of threads");
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n +=
            *e->d_name != '.' && (!*prefix || task_is_named(e->d_name, prefix));
    closedir(d);
    return n;
}
