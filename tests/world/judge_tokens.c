/*
 * Judge 5: the token of a hold is larger than that of each hold whose acquire
 * had returned before this one was asked for; it is the same for as long as the
 * hold lasts, and no other hold's. The count is the levels taken.
 */
#include "judge.h"

static void taken(hold *h)
{
    for (const hold *o = holds[h->thing]; o; o = o->next) {
        if (o == h || !o->token || !h->token)
            continue;
        /* A turn may go on for a moment with a lock that was forced. */
        bool excused = (things[h->thing].is_red || cfg.turn_ms > 0) &&
                       (is_shaken(h) || is_shaken(o));
        if (o->token == h->token)
            finding("judge 5: two holds of %s have the token %llu",
                    things[h->thing].name, (unsigned long long)h->token);
        if (o->token > h->token && o->from < h->asked && !excused)
            finding("judge 5: the token %llu of %s, after %llu",
                    (unsigned long long)h->token, things[h->thing].name,
                    (unsigned long long)o->token);
    }
}

/* Token and count answer 0 when the hold has been lost meanwhile. */
static void looked(hold *h, const look *l)
{
    if (l->token && h->token && l->token != h->token)
        finding("judge 5: the token of owner %d's hold of %s was %llu, and is "
                "%llu",
                h->o->id, things[h->thing].name, (unsigned long long)h->token,
                (unsigned long long)l->token);
    if (l->count && l->count != h->levels)
        finding("judge 5: owner %d has %s %d times, and %d are counted",
                h->o->id, things[h->thing].name, h->levels, l->count);
}

const judge judge_tokens = {.name = "tokens", .taken = taken, .looked = looked};
