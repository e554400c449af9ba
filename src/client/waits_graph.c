#include "client/waits_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/random.h"
#include "op/verb_query.h"
#include "wire/keys.h"

/* In a reply: what comes first, and the words about each who waits. */
enum { CLOCK, HOLDER, COUNT, PTTL, FIRST_WAIT };
enum { BELL, TICKET, ID, RANK, WORDS };

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

static bool take_wait(rl_waits *w, size_t which, const rl_cell *c, size_t len)
{
    if (which == BELL)
        w->next.client = keep_client(w, c->str ? c->str : "", len);
    else if (which == TICKET)
        w->next.since_us = number_of(c, len);
    else if (which == RANK)
        w->next.rank = number_of(c, len);
    else
        w->next.waiter = rl_names_keep(&w->names, c->str, len);
    return which != RANK || add_wait(w);
}

static bool take_reply(rl_sink *s, const rl_cell *c, size_t len)
{
    rl_waits *w = RL_CONTAINER(s, rl_waits, reply);
    if (c->depth == 0)
        return c->type == REDIS_REPLY_ARRAY;
    if (c->type != REDIS_REPLY_STRING && c->type != REDIS_REPLY_INTEGER)
        return false;
    size_t item = w->item++;
    if (item >= FIRST_WAIT)
        return take_wait(w, (item - FIRST_WAIT) % WORDS, c, c->str ? len : 0);
    if (item == CLOCK)
        w->next.clock_us = number_of(c, len);
    else if (item == HOLDER)
        w->next.holder = rl_names_keep(&w->names, c->str, c->str ? len : 0);
    else if (item == COUNT)
        w->next.count = number_of(c, len);
    else
        w->next.ttl_ms = number_of(c, len);
    return !w->names.lacking;
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
}

void rl_waits_begin(rl_waits *w, rl_name lock)
{
    w->item = 0;
    w->next = (rl_wait){.name = lock.text, .name_len = lock.len};
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

/* What its holder waits for; NULL: nothing. */
static rl_wait *ahead(rl_waits *w, const rl_sorted *waiters, size_t n,
                      const rl_wait *x)
{
    rl_sorted key = thread_of(w, x->holder, 0);
    const rl_sorted *found =
        key.len ? bsearch(&key, waiters, n, sizeof key, rl_sorted_compare)
                : NULL;
    return found ? &w->wait[found->at] : NULL;
}

bool rl_waits_find_circles(rl_waits *w)
{
    unsigned circles = 0;
    size_t known = 0;
    rl_sorted *waiters = rl_sorted_new(&w->names, w->n);
    for (size_t i = 0; waiters && i < w->n; i++) {
        waiters[known] = thread_of(w, w->wait[i].waiter, i);
        known += waiters[known].len > 0;
    }
    if (!waiters)
        return false;
    qsort(waiters, known, sizeof *waiters, rl_sorted_compare);
    for (size_t i = 0; i < w->n; i++) {
        unsigned visit = (unsigned)i + 1;
        rl_wait *x = &w->wait[i];
        for (; x && !x->visit; x = ahead(w, waiters, known, x))
            x->visit = visit;
        if (!x || x->visit != visit || x->circle)
            continue; /* it ends, or leads to where we were before */
        circles++;
        for (; !x->circle; x = ahead(w, waiters, known, x))
            x->circle = circles;
    }
    free(waiters);
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

void rl_waits_tell(const rl_waits *w, size_t i, rlock_wait *out,
                   rlock_holder *holder, rlock_holder *waiter)
{
    const rl_wait *x = &w->wait[i];
    int64_t us = x->clock_us - x->since_us; /* clocks are put back */
    *out = (rlock_wait){.name = rl_names_text(&w->names, x->name),
                        .name_len = x->name_len,
                        .holder = read_holder(w, x->holder, holder),
                        .waiter = read_holder(w, x->waiter, waiter),
                        .client = rl_names_text(&w->names, x->client),
                        .since_us = x->since_us,
                        .waited_ms = us > 0 ? us / 1000 : 0,
                        .circle = x->circle,
                        .rank = x->rank};
    holder->count = x->count;
    holder->ttl_ms = x->ttl_ms;
}
