/*
 * Circles of owners that wait for each other. An owner's record leads to what it
 * waits for, and the hold table to who has that: so from an owner one goes to the
 * next until nobody is left who waits. For example
 *
 *   A holds a, waits for b      B holds b, begins to wait for a: B, A, B
 *
 * What stays true, under the table's mutex: who waits is noted before it
 * sleeps. An owner waits for one lock at a time, and a lock that changes hands
 * goes to somebody who does not wait any more; so a circle is closed only by
 * one who begins to wait, and that one is told.
 *
 * An owner that has just been granted a lock may still be noted as waiting for
 * it, and waits for nobody. A hold that is being passed on (op/turn.c) is in no
 * table, and its owner about to wake. Who waits for one side of a read-write lock
 * waits for whoever has either: also to read, when somebody stands before it in
 * line who wants to write.
 */
#include "hold/deadlock.h"

#include <stdio.h>
#include <string.h>

#include "hold/side.h"

/* So much of a name and of an owner is shown, with the NUL. */
#define NAME_SHOWN  33
#define OWNER_SHOWN 41

/* A message has room for so much behind a long name. */
#define TOLD_MAX 180

/* What one owner waits for, and of whom. */
typedef struct step {
    size_t len;
    char text[NAME_SHOWN + OWNER_SHOWN + 32];
} step;

static void write_owner(const rl_owner_record *x, char out[OWNER_SHOWN])
{
    const char *text;
    size_t len;
    bool label = rl_owner_record_owner(x, &text, &len);
    snprintf(out, OWNER_SHOWN, label ? "owner '%.*s'" : "thread %.*s", (int)len,
             text);
}

/* Those to be looked at, who were met first first; each knows by whom. */
typedef struct walk {
    rl_holds *t;
    rl_awaited *start, *at, *last;
    bool closed;  /* `at` waits for the one at the start */
    bool granted; /* `at` has what it waits for, and is about to wake */
} walk;

static void look_for_itself(rl_owner_record *x, void *arg)
{
    walk *w = arg;
    w->granted = w->granted || x->waits == w->at;
}

static void meet(rl_owner_record *x, void *arg)
{
    walk *w = arg;
    rl_awaited *its = x->waits;
    w->closed = w->closed || its == w->start;
    if (w->closed || !its || its->walk == w->t->walks)
        return;
    its->walk = w->t->walks;
    its->ahead = w->at;
    its->next = NULL;
    w->last = w->last->next = its;
}

/* From whoever waits for the start back to it: each knows who is ahead. Returns how
   many there are. */
static size_t turn_round(const walk *w)
{
    size_t n = 1;
    rl_awaited *ahead = w->start, *at = w->at;
    for (; at != w->start; n++) {
        rl_awaited *behind = at->ahead;
        at->ahead = ahead;
        ahead = at;
        at = behind;
    }
    at->ahead = ahead;
    return n;
}

/*
 * How many wait in the shortest circle with this one; 0: it is in none. Who waits for
 * several, because they read, is in one with each of them.
 */
static size_t circle_of_locked(rl_holds *t, rl_awaited *x, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    walk w = {.t = t, .start = x, .at = x, .last = x};
    x->walk = ++t->walks;
    for (; w.at; w.at = w.at->next) {
        w.granted = false;
        rl_holds_each_holder_locked(t, w.at->what, now_us, look_for_itself, &w);
        if (!w.granted)
            rl_holds_each_holder_locked(t, w.at->what, now_us, meet, &w);
        if (w.closed)
            return turn_round(&w);
    }
    return 0;
}

static step step_of(const rl_awaited *x)
{
    step s;
    char name[NAME_SHOWN], owner[OWNER_SHOWN];
    rl_printable(name, sizeof name, x->what->name, x->what->len);
    write_owner(x->ahead->record, owner);
    s.len = (size_t)snprintf(s.text, sizeof s.text, "waits for '%s' of %s",
                             name, owner);
    return s;
}

static step last_step(const rl_awaited *x)
{
    const rl_awaited *at = x;
    while (at->ahead != x)
        at = at->ahead;
    return step_of(at);
}

/*
 * In words, from x on: the first steps, as many as fit, how many are left out,
 * and the last one, which says what the others want of x.
 */
static void tell(const rl_awaited *x, size_t n, rl_fault *f)
{
    static const char which[] = ", which ", more[] = "... 1000000 more";
    char text[TOLD_MAX], owner[OWNER_SHOWN];
    step last = last_step(x);
    write_owner(x->record, owner);
    int used = snprintf(text, sizeof text, "%s ", owner);
    for (const rl_awaited *at = x; n > 1; n--, at = at->ahead) {
        step s = step_of(at);
        if (used + s.len + last.len + 2 * sizeof which + sizeof more >
            sizeof text)
            break;
        used +=
            snprintf(text + used, sizeof text - used, "%s%s", s.text, which);
    }
    if (n > 1)
        used += snprintf(text + used, sizeof text - used, "... %zu more%s",
                         n - 1, which);
    rl_fault_set(f, RLOCK_EDEADLK, 0, "deadlock: %s%s", text, last.text);
}

static void end_locked(rl_holds *t, rl_awaited *w) RL_REQUIRES(&t->mutex)
{
    w->record->waits = NULL;
    rl_owner_record_unref_locked(t, w->record);
    w->record = NULL;
}

bool rl_wait_begins(rl_holds *t, const rl_owner *owner, const rl_target *what,
                    int64_t now_us, rl_awaited *w, rl_fault *f)
{
    size_t n = 0;
    *w = (rl_awaited){.what = what};
    rl_mutex_lock(&t->mutex);
    rl_owner_record *x = rl_holds_record_locked(t, owner->serial);
    /* From within a callback of a wait it may wait for something else. */
    if (x && !rl_list_is_empty(&x->holds) && !x->waits) {
        w->record = x;
        x->waits = w;
        x->refs++;
        n = circle_of_locked(t, w, now_us);
        if (n > 0) {
            tell(w, n, f);
            end_locked(t, w);
        }
    }
    rl_mutex_unlock(&t->mutex);
    return n == 0;
}

void rl_wait_ends(rl_holds *t, rl_awaited *w)
{
    if (!w->record)
        return;
    rl_mutex_lock(&t->mutex);
    end_locked(t, w);
    rl_mutex_unlock(&t->mutex);
}

typedef struct beside {
    const rl_owner_record *self, *other;
} beside;

static void note_other(rl_owner_record *x, void *arg)
{
    beside *it = arg;
    if (x != it->self)
        it->other = x;
}

void rl_wait_is_refused(rl_holds *t, const rl_hold *draft, int64_t now_us,
                        rl_fault *f)
{
    char owner[OWNER_SHOWN];
    beside it = {.self = draft->record};
    rl_target what = {.name = rl_hold_name(draft),
                      .len = draft->name_len,
                      .scope = draft->scope};
    rl_mutex_lock(&t->mutex);
    rl_holds_each_holder_locked(t, &what, now_us, note_other, &it);
    if (it.other)
        write_owner(it.other, owner);
    rl_mutex_unlock(&t->mutex);
    rl_fault_set(f, RLOCK_EDEADLK, 0, "deadlock: %s read%s it, too",
                 it.other ? owner : "others", it.other ? "s" : "");
    f->transient = false;
}
