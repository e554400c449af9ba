#include "client/waits_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/random.h"
#include "op/verb_query.h"
#include "wire/keys.h"

/* In a reply: what comes first, the words about each who has it, and about each who
   waits. */
enum { CLOCK, HOLDERS, FIRST_HOLDER };
enum { HOLDER, COUNT, TTL, HOLDER_WORDS };
enum { BELL, TICKET, ID, RANK, WANT, WAIT_WORDS };

/* More are no answer of ours. */
#define MOST_HOLDERS 1000000

/* --- taking --------------------------------------------------------------- */

static int64_t number_of(const rl_cell *c, size_t len)
{
    char text[24] = "";
    if (!c->str)
        return c->integer;
    memcpy(text, c->str, len < sizeof text ? len : sizeof text - 1);
    return strtoll(text, NULL, 10);
}

static bool add_wait(rl_waits *w)
{
    rl_wait *all =
        rl_names_more(&w->names, w->wait, sizeof *all, w->n, &w->room);
    if (!all)
        return false;
    w->wait = all;
    w->wait[w->n++] = w->next;
    return true;
}

/* The uuid of a bell is its end; another program's may look otherwise. */
static rl_text keep_client(rl_waits *w, const char *bell, size_t len)
{
    size_t skipped = len > RL_UUID_LEN && bell[len - RL_UUID_LEN - 1] == ':'
                         ? len - RL_UUID_LEN
                         : 0;
    return rl_names_keep(&w->names, bell + skipped, len - skipped);
}

static rlock_kind kind_of(const rl_cell *c, size_t len)
{
    char first = len > 0 ? *c->str : '\0';
    if (first >= '0' && first <= '9')
        return RLOCK_KIND_PERMIT;
    return first == 'r'   ? RLOCK_KIND_READ
           : first == 'w' ? RLOCK_KIND_WRITE
           : first == 'l' ? RLOCK_KIND_LATCH
                          : RLOCK_KIND_LOCK;
}

static bool take_wait(rl_waits *w, size_t which, const rl_cell *c, size_t len)
{
    if (which == BELL)
        w->next.client = keep_client(w, c->str ? c->str : "", len);
    else if (which == TICKET)
        w->next.since_us = number_of(c, len);
    else if (which == RANK)
        w->next.rank = number_of(c, len);
    else if (which == ID)
        w->next.waiter = rl_names_keep(&w->names, c->str, len);
    else
        w->next.kind = kind_of(c, len);
    return which != WANT || add_wait(w);
}

static bool take_holder(rl_waits *w, size_t which, const rl_cell *c, size_t len)
{
    if (which == COUNT)
        w->has[w->n_has - 1].count = number_of(c, len);
    else if (which == TTL)
        w->has[w->n_has - 1].ttl_ms = number_of(c, len);
    if (which != HOLDER)
        return true;
    rl_has *all =
        rl_names_more(&w->names, w->has, sizeof *all, w->n_has, &w->room_has);
    if (!all)
        return false;
    w->has = all;
    w->has[w->n_has++] = (rl_has){.id = rl_names_keep(&w->names, c->str, len)};
    return true;
}

static bool take_item(rl_waits *w, size_t item, const rl_cell *c, size_t len)
{
    size_t first_wait = FIRST_HOLDER + w->next.n_has * HOLDER_WORDS;
    if (item >= first_wait && item >= FIRST_HOLDER)
        return take_wait(w, (item - first_wait) % WAIT_WORDS, c, len);
    if (item >= FIRST_HOLDER)
        return take_holder(w, (item - FIRST_HOLDER) % HOLDER_WORDS, c, len);
    int64_t number = number_of(c, len);
    if (item == CLOCK)
        w->next.clock_us = number;
    else
        w->next.n_has = (size_t)number;
    return item == CLOCK || (number >= 0 && number <= MOST_HOLDERS);
}

/* Once, for who waits for that kind. */
static bool ask_again(rl_waits *w, const rl_cell *c, size_t len)
{
    rl_name again = w->lock;
    again.kind = kind_of(c, len);
    return w->lock.kind == RLOCK_KIND_LOCK && again.kind != RLOCK_KIND_LOCK &&
           again.kind != RLOCK_KIND_LATCH && rl_names_put(&w->names, again);
}

static bool take_reply(rl_sink *s, const rl_cell *c, size_t len)
{
    rl_waits *w = RL_CONTAINER(s, rl_waits, reply);
    bool text = c->type == REDIS_REPLY_STRING;
    if (c->depth == 0)
        return text ? ask_again(w, c, len) : c->type == REDIS_REPLY_ARRAY;
    if (!text && c->type != REDIS_REPLY_INTEGER)
        return false;
    return take_item(w, w->item++, c, c->str ? len : 0) && !w->names.lacking;
}

/* --- the whole ------------------------------------------------------------ */

void rl_waits_init(rl_waits *w)
{
    *w = (rl_waits){.reply = {take_reply}};
    rl_names_keep(&w->names, "", 0);
}

void rl_waits_fini(rl_waits *w)
{
    rl_names_fini(&w->names);
    free(w->wait);
    free(w->has);
}

void rl_waits_begin(rl_waits *w, rl_name lock)
{
    w->item = 0;
    w->lock = lock;
    w->next =
        (rl_wait){.name = lock.text, .name_len = lock.len, .has = w->n_has};
}

/* --- circles -------------------------------------------------------------- */

/* host:pid:tid of a holder id; 0: it is none. */
static size_t thread_len(const char *id)
{
    size_t len = strlen(id);
    return len > RL_UUID_LEN && id[len - RL_UUID_LEN - 1] == ':'
               ? len - RL_UUID_LEN - 1
               : 0;
}

static rl_sorted thread_of(const rl_waits *w, rl_text id, size_t at)
{
    const char *text = rl_names_text(&w->names, id);
    return (rl_sorted){text, thread_len(text), at};
}

/* Whom they who have it wait for, if they do. */
static bool find_ahead(rl_waits *w)
{
    size_t known = 0;
    rl_sorted *waiters = rl_sorted_new(&w->names, w->n);
    for (size_t i = 0; waiters && i < w->n; i++) {
        waiters[known] = thread_of(w, w->wait[i].waiter, i);
        known += waiters[known].len > 0;
    }
    if (!waiters)
        return false;
    qsort(waiters, known, sizeof *waiters, rl_sorted_compare);
    for (size_t i = 0; i < w->n_has; i++) {
        rl_sorted key = thread_of(w, w->has[i].id, 0);
        const rl_sorted *found =
            key.len
                ? bsearch(&key, waiters, known, sizeof key, rl_sorted_compare)
                : NULL;
        w->has[i].ahead = found ? found->at + 1 : 0;
    }
    free(waiters);
    return true;
}

/* Tarjan's search, from one who waits to all of whom he waits. Those who lead back
   to each other are on top of those met when the first met of them is left. */
typedef struct search {
    rl_waits *w;
    size_t at, top,
        met; /* the last on the way, and of those met; and how many */
    unsigned circles;
} search;

static void meet(search *s, size_t which)
{
    rl_wait *x = &s->w->wait[which - 1];
    x->met = x->low = ++s->met;
    x->behind = s->at;
    x->below = s->top;
    x->open = true;
    s->at = s->top = which;
}

/* All who lead back to it. */
static void shut(search *s, size_t which)
{
    const rl_wait *x = &s->w->wait[which - 1];
    bool circle = x->itself || s->top != which;
    s->circles += circle;
    for (bool last = false; !last;) {
        rl_wait *y = &s->w->wait[s->top - 1];
        last = s->top == which;
        y->circle = circle ? s->circles : 0;
        y->open = false;
        s->top = y->below;
    }
}

static void leave(search *s)
{
    size_t which = s->at;
    const rl_wait *x = &s->w->wait[which - 1];
    s->at = x->behind;
    if (s->at) {
        rl_wait *y = &s->w->wait[s->at - 1];
        y->low = y->low < x->low ? y->low : x->low;
    }
    if (x->low == x->met)
        shut(s, which);
}

/* Any of many may give back a permit: who waits for these waits for nobody. */
static size_t next_ahead(const rl_waits *w, rl_wait *x)
{
    while (x->tried < x->n_has && x->kind != RLOCK_KIND_PERMIT) {
        size_t ahead = w->has[x->has + x->tried++].ahead;
        if (ahead)
            return ahead;
    }
    return 0;
}

static void go_on(search *s)
{
    rl_wait *x = &s->w->wait[s->at - 1];
    size_t ahead = next_ahead(s->w, x);
    rl_wait *y = ahead ? &s->w->wait[ahead - 1] : NULL;
    if (!y) {
        leave(s);
    } else if (!y->met) {
        meet(s, ahead);
    } else if (y->open) {
        x->low = x->low < y->met ? x->low : y->met;
        x->itself = x->itself || x == y;
    }
}

bool rl_waits_find_circles(rl_waits *w)
{
    search s = {.w = w};
    if (!find_ahead(w))
        return false;
    for (size_t i = 0; i < w->n; i++) {
        if (!w->wait[i].met)
            meet(&s, i + 1);
        while (s.at)
            go_on(&s);
    }
    return true;
}

/* --- telling -------------------------------------------------------------- */

static const rlock_holder *read_holder(const rl_waits *w, rl_text id,
                                       rlock_holder *out)
{
    const char *text = rl_names_text(&w->names, id);
    size_t len = strlen(text);
    memset(out, 0, sizeof *out);
    if (len == 0)
        return NULL;
    memcpy(out->raw, text, len < sizeof out->raw ? len : sizeof out->raw - 1);
    rl_parse_holder(out);
    return out;
}

static size_t tell_holders(const rl_waits *w, const rl_wait *x,
                           rlock_holder *out)
{
    size_t n = x->n_has < RL_WAITS_TOLD ? x->n_has : RL_WAITS_TOLD;
    for (size_t i = 0; i < n; i++) {
        const rl_has *h = &w->has[x->has + i];
        read_holder(w, h->id, &out[i]);
        out[i].count = h->count;
        out[i].ttl_ms = h->ttl_ms;
    }
    return n;
}

void rl_waits_tell(const rl_waits *w, size_t i, rlock_wait *out,
                   rlock_holder *waiter, rlock_holder *holders)
{
    const rl_wait *x = &w->wait[i];
    int64_t us = x->clock_us - x->since_us; /* clocks are put back */
    size_t n = tell_holders(w, x, holders);
    *out = (rlock_wait){.name = rl_names_text(&w->names, x->name),
                        .name_len = x->name_len,
                        .holder = n > 0 ? holders : NULL,
                        .waiter = read_holder(w, x->waiter, waiter),
                        .client = rl_names_text(&w->names, x->client),
                        .since_us = x->since_us,
                        .waited_ms = us > 0 ? us / 1000 : 0,
                        .circle = x->circle,
                        .rank = x->rank,
                        .kind = x->kind,
                        .holders = n > 0 ? holders : NULL,
                        .n_holders = n};
}
