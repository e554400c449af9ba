#include "route/office.h"

#include <stdlib.h>
#include <string.h>

static bool is_same(const rl_place *a, const rl_place *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static bool counts(const rl_office *o, const rl_place *said, int64_t epoch)
{
    if (o->master.nth == 0 || epoch > o->epoch)
        return true;
    return epoch == o->epoch && !is_same(said, &o->left);
}

bool rl_office_hear(rl_office *o, const rl_place *said, int64_t epoch,
                    rl_place *now)
{
    if (!counts(o, said, epoch))
        return false;
    o->epoch = epoch;
    if (o->master.nth > 0 && is_same(said, &o->master))
        return false;
    o->left = o->master;
    o->master = *said;
    o->master.nth = o->left.nth + 1;
    *now = o->master;
    return true;
}

static bool read_number(const char *text, int64_t most, int64_t *out)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    *out = strtoll(text, &end, 10);
    return !*end && *out <= most;
}

bool rl_office_read(const rl_table *t, size_t list, rl_place *place,
                    int64_t *epoch)
{
    const char *host = rl_table_value(t, list, "ip");
    int64_t port;
    if (!host || !*host || strlen(host) >= RL_PLACE_HOST ||
        !read_number(rl_table_value(t, list, "port"), 65535, &port) ||
        port == 0)
        return false;
    *place = (rl_place){.port = (int)port};
    strcpy(place->host, host);
    return !epoch || read_number(rl_table_value(t, list, "config-epoch"),
                                 INT64_MAX, epoch);
}
