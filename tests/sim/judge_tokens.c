/*
 * Judge 5: the token of a hold is larger than that of each hold whose acquire
 * had returned before this one was asked for; it is the same for as long as the
 * hold lasts, and no other hold's. The count is the levels taken. The server knows
 * the token for as long as a hold is renewed. Where nobody wants tokens there are
 * none, here and there.
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"

/* Who has lost the last token goes by the clock, which was put back. */
static bool is_put_back(const hold *h, const hold *o)
{
    return cfg.step_ppm > 0 && was_shaken(h->thing, o->asked);
}

/*
 * Two things are known of locks that are freed by force, and not judged as long
 * as they are so. A Red lock's vote that is freed while the others are still
 * asked counts all the same, and its node learns of a token that it has minted
 * for the next one (raise.lua does not look whose the lock is). With turn_ms a
 * hold that was freed goes on from thread to thread until the server is asked.
 */
static bool is_known(const hold *h, const hold *o)
{
    return (things[h->thing].is_red || cfg.turn_ms) &&
           (is_shaken(h) || is_shaken(o));
}

bool judge_is_tokenless(int thing)
{
    return cfg.no_tokens == 1 && !things[thing].is_red;
}

static void taken(hold *h)
{
    if (h->token && judge_is_tokenless(h->thing))
        finding(
            "judge 5: a hold of %s, which nobody wants a token of, has %llu",
            things[h->thing].name, (unsigned long long)h->token);
    for (const hold *o = holds[h->thing]; o; o = o->next) {
        if (o == h || !o->token || !h->token)
            continue;
        bool excused = is_known(h, o) || is_put_back(h, o);
        if (o->token == h->token && !excused)
            finding("judge 5: two holds of %s have the token %llu",
                    things[h->thing].name, (unsigned long long)h->token);
        if (o->token > h->token && o->from < h->asked && !excused)
            finding("judge 5: the token %llu of %s, after %llu",
                    (unsigned long long)h->token, things[h->thing].name,
                    (unsigned long long)o->token);
    }
}

/* Red locks ask their nodes for votes, too, and lose one now and then; and while
   a slot moves, its keys are at two servers. */
static void expect_kept(const hold *h)
{
    const thing *t = &things[h->thing];
    bool is_none = judge_is_tokenless(h->thing);
    char name[60];
    word lock = {t->name, strlen(t->name)}, key = {name, 0};
    if (t->is_red || (cfg.cluster && !cfg.calm) || !h->is_renewed ||
        !judge_is_sound() || is_shaken(h) || (!h->token && !is_none))
        return;
    key.len = (size_t)key_beside(name, sizeof name, "rlock_token", t->name);
    server *s = server_in_office(t->home, t->name);
    server_set_clock(s);
    bool is_known = store_find(&s->store, &key) != NULL;
    if (is_none && is_known)
        finding("judge 5: the server knows a token of %s, which nobody wants",
                t->name);
    if (store_find(&s->store, &lock) && !is_known && !is_none)
        finding("judge 5: owner %d has %s, and the server knows its token no "
                "more",
                h->o->id, t->name);
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
    if (l->is_held && l->valid_ms > 0)
        expect_kept(h);
}

const judge judge_tokens = {.name = "tokens", .taken = taken, .looked = looked};
