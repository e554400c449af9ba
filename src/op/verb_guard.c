#include "op/verb_guard.h"

#include <string.h>

#include "hold/step.h"
#include "op/call.h"
#include "op/verb.h"
#include "wire/error.h"

/* --- how it is written ---------------------------------------------------- */

/*
 * Redis 7 and later do not let a script that begins so touch keys of another
 * slot than that of its KEYS, and a lock is among those. In front of a script
 * of the program it would shift the numbers of its lines.
 */
static const char strictly[] = "#!lua\n";
static const rl_guard strict = {strictly, sizeof strictly - 1};

/* What stands in front of the script; how much. */
static size_t guards_of(const rl_guarded *g, const rl_layout *layout,
                        const rl_guard *guard[3])
{
    size_t n = 0;
    if (g->strict)
        guard[n++] = &strict;
    if (g->compare)
        guard[n++] = &rl_guards[RL_GUARD_TOKEN];
    guard[n++] = &rl_guards[layout->guard];
    return n;
}

void rl_guarded_sum(rl_guarded *g, const rl_layout *layout)
{
    rl_sha1 s;
    const rl_guard *guard[3];
    size_t n = guards_of(g, layout, guard);
    rl_sha1_begin(&s);
    for (size_t i = 0; i < n; i++)
        rl_sha1_add(&s, guard[i]->text, guard[i]->len);
    rl_sha1_add(&s, g->script, g->len);
    rl_sha1_end(&s, g->sha1);
}

/* Fills g->sha1, as c remembers it. */
static void name_script(rl_guarded *g, rl_core *c, const rl_layout *layout)
{
    unsigned guards = 4 * layout->guard + 2 * g->strict + g->compare;
    if (rl_script_cache_find(&c->script_cache, g->script, g->len, guards,
                             g->sha1))
        return;
    rl_guarded_sum(g, layout);
    rl_script_cache_note(&c->script_cache, g->script, g->len, guards, g->sha1);
}

static void put_script(rl_bytes *to, const rl_hold *h, const rl_guarded *g)
{
    const rl_guard *guard[3];
    size_t n = guards_of(g, rl_hold_layout(h), guard), len = g->len;
    for (size_t i = 0; i < n; i++)
        len += guard[i]->len;
    char *at = rl_put_word(to, len);
    for (size_t i = 0; at && i < n; i++, at += guard[i - 1]->len)
        memcpy(at, guard[i]->text, guard[i]->len);
    if (at)
        memcpy(at, g->script, g->len);
}

static void put_words(rl_bytes *to, const rl_guarded *g, int from, int end)
{
    for (int i = from; i < end; i++)
        rl_put_bytes(to, g->argv[i], g->lens ? g->lens[i] : strlen(g->argv[i]));
}

/* Others may keep the key: its guard looks at its own lease. */
static bool is_side(const rl_hold *h)
{
    return rl_layout_is_side(rl_hold_layout(h));
}

static void put_keys(rl_bytes *to, const rl_hold *h, const rl_guarded *g)
{
    put_words(to, g, 0, g->keys);
    rl_put_bytes(to, rl_hold_name(h), h->name_len);
    if (is_side(h))
        rl_put_leases_key(to, rl_hold_name(h), h->name_len);
    if (g->compare)
        rl_put_token_key(to, rl_hold_name(h), h->name_len);
}

static void put_args(rl_bytes *to, const rl_hold *h, const rl_guarded *g)
{
    char id[RL_HOLDER_MAX];
    if (g->words)
        rl_put_raw(to, g->words, g->words_len);
    else
        put_words(to, g, g->keys, g->keys + g->args);
    rl_hold_write_id(h, id);
    rl_put_bytes(to, id, rl_hold_id_len(h));
    if (g->compare)
        rl_put_number(to, (int64_t)h->token);
}

void rl_call_guarded(rl_bytes *to, bool whole, const rl_hold *h,
                     const rl_guarded *g)
{
    int own = g->compare ? 2 : 1, keys = g->keys + own + is_side(h);
    rl_put_array(to, (size_t)(3 + keys + g->args + own));
    rl_put_text(to, whole ? "EVAL" : "EVALSHA");
    if (whole)
        put_script(to, h, g);
    else
        rl_put_bytes(to, g->sha1, RL_SHA1_LEN);
    rl_put_number(to, keys);
    put_keys(to, h, g);
    put_args(to, h, g);
}

static void name_keys(rl_part *x)
{
    x->ask.strict = x->guarded->single && x->core->redirects;
    x->guarded->strict = x->ask.strict;
    name_script(x->guarded, x->core, rl_hold_layout(x->hold));
}

static void write_guarded(const rl_part *x, rl_bytes *to)
{
    rl_guarded *g = x->guarded;
    bool is_strict = rl_ask_is_strict(&x->ask);
    if (g->strict != is_strict) {
        g->strict = is_strict;
        name_script(g, x->core, rl_hold_layout(x->hold));
    }
    rl_call_guarded(to, x->ask.whole, x->hold, g);
}

/* --- what its answer means ------------------------------------------------ */

bool rl_guard_may_ask(rl_op *op, rl_part *x, int64_t now_us)
{
    (void)op;
    return rl_hold_is_valid(&x->core->holds, x->hold, NULL, now_us);
}

/* Is it the guard that says so? Nobody else knows the holder id. */
static bool is_not_held(const rl_part *x, const rl_reply *r)
{
    static const char word[] = "NOTHELD ";
    char id[RL_HOLDER_MAX];
    rl_hold_write_id(x->hold, id);
    return rl_reply_is(r, REDIS_REPLY_ERROR) &&
           strncmp(r->top.str, word, sizeof word - 1) == 0 &&
           strcmp(r->top.str + sizeof word - 1, id) == 0;
}

/* That comes before all else: nothing is to be done once more. */
static void note_silence(rl_part *x, int64_t now_us)
{
    rl_fault why = x->fault;
    if (!x->ask.unknown) {
        rl_note_failure(x, now_us);
        return;
    }
    rl_fault_set(&x->fault, RLOCK_EIO, why.sys_errno,
                 "%s (it may have been executed)", why.text);
    x->fault.at = why.at;
}

static void note_guarded(rl_part *x, const rl_reply *r, int64_t now_us)
{
    if (!r) {
        note_silence(x, now_us);
    } else if (is_not_held(x, r)) {
        rl_note_loss(x, RL_LOSS_GONE, &x->fault, now_us);
    } else if (rl_reply_is(r, REDIS_REPLY_ERROR)) {
        rl_error_reply(r, &x->fault);
        x->fault.status = RLOCK_ESERVER;
    } else {
        x->ok = true;
    }
}

static const rl_verb guard = {.write = write_guarded, .note = note_guarded};

void rl_part_guard(rl_part *x, rl_core *c, rl_hold *h, rl_guarded *g,
                   int64_t now_us)
{
    rl_part_begin(x, c, &guard, RL_SCRIPT_COUNT, now_us);
    x->hold = h;
    x->guarded = g;
    x->ask.single = g->single;
    x->ask.slot.raw = &g->reply;
    g->compare = rl_hold_compares(&c->holds, h);
    name_keys(x);
}
