#include "route/sentinel_choice.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* How many say the same as this one. */
static size_t votes(const rl_sentinel_answer *said, size_t n,
                    const rl_sentinel_answer *s)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += said[i].epoch == s->epoch && said[i].passing == s->passing &&
                 rl_place_is(&said[i].place, &s->place);
    return count;
}

/* Of those who are settled; and so many there are, as far as these know. */
static size_t namers(const rl_sentinel_answer *said, size_t n,
                     const rl_place *place, size_t *all)
{
    size_t count = 0;
    *all = n;
    for (size_t i = 0; i < n; i++) {
        if (said[i].passing || !rl_place_is(&said[i].place, place))
            continue;
        count++;
        *all = (size_t)rl_max((int64_t)*all, 1 + said[i].others);
    }
    return count;
}

/*
 * Whom most name: of those who have answered, and of all that they know of. One
 * that was cut off is alone, but knows of others. NULL: nobody.
 */
static const rl_place *named_by_most(const rl_sentinel_answer *said, size_t n)
{
    size_t all;
    for (size_t i = 0; i < n; i++)
        if (2 * namers(said, n, &said[i].place, &all) > all)
            return &said[i].place;
    return NULL;
}

/*
 * Does a count more than b? The epoch, then who is settled, then how many; or
 * that nothing changes. Where both name whom most name, only its epoch is in
 * question, and how many say that comes first: one that is wrong, with an epoch
 * of its own, would hold back what most of them do later.
 */
static bool beats(const rl_sentinel_choice *o, const rl_sentinel_answer *said,
                  size_t n, bool agreed, const rl_sentinel_answer *a,
                  const rl_sentinel_answer *b)
{
    size_t for_a = votes(said, n, a), for_b = votes(said, n, b);
    if (agreed && for_a != for_b)
        return for_a > for_b;
    if (a->epoch != b->epoch)
        return a->epoch > b->epoch;
    if (a->passing != b->passing)
        return b->passing;
    if (for_a != for_b)
        return for_a > for_b;
    return rl_place_is(&a->place, &o->master) &&
           !rl_place_is(&b->place, &o->master);
}

/* Of those who name whom most name; else of those whose epochs can be compared
   with that of the master in office. */
static const rl_sentinel_answer *best_of(const rl_sentinel_choice *o,
                                         const rl_sentinel_answer *said,
                                         size_t n, const rl_place *by_most)
{
    const rl_sentinel_answer *best = NULL;
    for (size_t i = 0; i < n; i++) {
        const rl_sentinel_answer *s = &said[i];
        if (by_most ? !rl_place_is(&s->place, by_most) : s->epoch < o->began)
            continue;
        if (!best || beats(o, said, n, by_most != NULL, s, best))
            best = s;
    }
    return best;
}

static void take_office(rl_sentinel_choice *o, const rl_place *place)
{
    uint64_t nth = o->master.nth + 1;
    o->master = *place;
    o->master.nth = nth;
    o->in_row = 0;
}

/*
 * Most of them give the master in office a lower epoch than it has had here: that
 * was one's alone, who would hold back what most of them do later.
 */
static void correct_epoch(rl_sentinel_choice *o, const rl_sentinel_answer *said,
                          size_t n, const rl_sentinel_answer *best)
{
    size_t all;
    namers(said, n, &best->place, &all);
    if (rl_place_is(&best->place, &o->master) && 2 * votes(said, n, best) > all)
        o->epoch = rl_min(o->epoch, best->epoch);
}

static bool follow(rl_sentinel_choice *o, const rl_sentinel_answer *best)
{
    bool vacant = o->master.nth == 0;
    if (!vacant && best->epoch < o->epoch)
        return false;
    bool newer = vacant || best->epoch > o->epoch;
    if (!newer && best->passing)
        return false;
    o->epoch = best->epoch;
    if (!vacant && rl_place_is(&best->place, &o->master))
        return false;
    take_office(o, &best->place);
    return true;
}

rl_ruling rl_sentinel_choice_judge(rl_sentinel_choice *o,
                                   const rl_sentinel_answer *said, size_t n)
{
    const rl_place *by_most = named_by_most(said, n);
    const rl_sentinel_answer *best = best_of(o, said, n, by_most);
    if (best)
        correct_epoch(o, said, n, best);
    if (best && follow(o, best))
        return RL_CHOICE_CHANGES;
    bool disputed = by_most && !rl_place_is(by_most, &o->master);
    if (!disputed || !rl_place_is(by_most, &o->rival))
        o->in_row = 0;
    if (!disputed)
        return RL_CHOICE_STAYS;
    o->rival = *by_most;
    o->rival_epoch = best->epoch;
    return RL_CHOICE_DISPUTED;
}

bool rl_sentinel_choice_look(rl_sentinel_choice *o, bool present)
{
    o->in_row = present ? 0 : o->in_row + 1;
    if (o->in_row < RL_ERA_ASKINGS)
        return false;
    o->began = rl_max(o->began, o->epoch + 1);
    o->epoch = o->rival_epoch;
    take_office(o, &o->rival);
    return true;
}

const rl_sentinel_answer *
rl_sentinel_choice_dissenter(const rl_sentinel_choice *o,
                             const rl_sentinel_answer *said, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!said[i].passing && !rl_place_is(&said[i].place, &o->master))
            return &said[i];
    return NULL;
}

static bool read_number(const char *text, int64_t most, int64_t *out)
{
    char *end;
    if (!text || *text < '0' || *text > '9' || strlen(text) > 18)
        return false;
    *out = strtoll(text, &end, 10);
    return !*end && *out <= most;
}

bool rl_sentinel_choice_read_place(const rl_table *t, size_t list,
                                   rl_place *place)
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

bool rl_sentinel_choice_read(const rl_table *t, rl_sentinel_answer *s)
{
    const char *flags = rl_table_value(t, 0, "flags");
    s->passing = flags && strstr(flags, "failover_in_progress");
    if (!read_number(rl_table_value(t, 0, "num-other-sentinels"), INT32_MAX,
                     &s->others))
        s->others = 0;
    return rl_sentinel_choice_read_place(t, 0, &s->place) &&
           read_number(rl_table_value(t, 0, "config-epoch"), INT64_MAX,
                       &s->epoch);
}
