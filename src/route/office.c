#include "route/office.h"

#include <stdlib.h>
#include <string.h>

static bool is_same(const rl_place *a, const rl_place *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* How many say the same as this one. */
static size_t votes(const rl_statement *said, size_t n, const rl_statement *s)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += said[i].epoch == s->epoch && said[i].passing == s->passing &&
                 is_same(&said[i].place, &s->place);
    return count;
}

/* Does a count more than b? The epoch, then who is settled, then how many. */
static bool beats(const rl_statement *said, size_t n, const rl_statement *a,
                  const rl_statement *b)
{
    if (a->epoch != b->epoch)
        return a->epoch > b->epoch;
    if (a->passing != b->passing)
        return b->passing;
    return votes(said, n, a) > votes(said, n, b);
}

static const rl_statement *best_of(const rl_statement *said, size_t n)
{
    const rl_statement *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (!best || beats(said, n, &said[i], best))
            best = &said[i];
    return best;
}

bool rl_office_judge(rl_office *o, const rl_statement *said, size_t n)
{
    const rl_statement *best = best_of(said, n);
    bool vacant = o->master.nth == 0;
    if (!best || (!vacant && best->epoch < o->epoch))
        return false;
    bool newer = vacant || best->epoch > o->epoch;
    if (!newer && best->passing)
        return false;
    o->epoch = best->epoch;
    if (!vacant && is_same(&best->place, &o->master))
        return false;
    uint64_t nth = o->master.nth + 1;
    o->master = best->place;
    o->master.nth = nth;
    return true;
}

static bool read_number(const char *text, int64_t most, int64_t *out)
{
    char *end;
    if (!text || *text < '0' || *text > '9' || strlen(text) > 18)
        return false;
    *out = strtoll(text, &end, 10);
    return !*end && *out <= most;
}

bool rl_office_read_place(const rl_table *t, size_t list, rl_place *place)
{
    const char *host = rl_table_value(t, list, "ip");
    int64_t port;
    if (!host || !*host || strlen(host) >= RL_PLACE_HOST ||
        !read_number(rl_table_value(t, list, "port"), 65535, &port) ||
        port == 0)
        return false;
    *place = (rl_place){.port = (int)port};
    strcpy(place->host, host);
    return true;
}

bool rl_office_read(const rl_table *t, rl_statement *s)
{
    const char *flags = rl_table_value(t, 0, "flags");
    s->passing = flags && strstr(flags, "failover_in_progress");
    return rl_office_read_place(t, 0, &s->place) &&
           read_number(rl_table_value(t, 0, "config-epoch"), INT64_MAX,
                       &s->epoch);
}
