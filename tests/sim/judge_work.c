/*
 * Judges 8, 9 and 13, seen at the servers: when the watchdog renews, whose turn
 * it is, and that nobody is woken in vain, or sleeps while what he waits for is
 * free.
 *
 * What is said of time holds in calm worlds alone. The order of clients is that
 * of their tickets, the server's clock at their first try; what the queue has
 * as scores is not believed, as a script has put it there.
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"

static bool is_script(const call *c, const char *name)
{
    const char *of = strchr(c->script, '/');
    return strcmp(of ? of + 1 : c->script, name) == 0;
}

static const word *arg(const call *c, size_t i)
{
    return &c->words[c->keys + i];
}

static int thing_at(const word *key)
{
    for (int i = 0; i < things_n; i++)
        if (strlen(things[i].name) == key->len &&
            memcmp(things[i].name, key->at, key->len) == 0)
            return i;
    return -1;
}

static bool is_single_of(const call *c, int t)
{
    return t >= 0 && !things[t].is_red && things[t].home == c->s->index;
}

static const entry *entry_of(const call *c, int t)
{
    word key = {things[t].name, strlen(things[t].name)};
    return store_find(&c->s->store, &key);
}

/* --- 8: renewals ---------------------------------------------------------- */

/* By the watchdog, from the first moment on; else its lease may be shorter. */
static bool is_watched(const hold *h)
{
    return !h->ended && !h->unlocking && h->is_renewed && !h->was_extended &&
           !is_shaken(h);
}

/* A node of a Red lock that another owner has is asked, too, to no effect. */
static void check_renewal(const call *c, const word *key, const word *holder)
{
    int t = thing_at(key);
    const entry *e = t < 0 ? NULL : entry_of(c, t);
    text id = {(char *)holder->at, holder->len, 0};
    if (!e)
        return;
    int64_t left = entry_left_ms(&c->s->store, e);
    /* A grant is for so long at most. */
    int64_t lease_ms = cfg.watchdog_ms;
    if ((cfg.fair || cfg.grants) && lease_ms > 3000)
        lease_ms = 3000;
    for (const hold *h = holds[t]; h; h = h->next)
        if (is_watched(h) && is_holder(h, &id) && judge_backs(c->s, h) &&
            left < lease_ms / 2 - 50)
            finding("judge 8: %s is renewed when %lld ms of %lld are left",
                    things[t].name, (long long)left, (long long)lease_ms);
}

static void check_cadence(const call *c)
{
    if (!cfg.calm || cfg.turn_ms > 0)
        return;
    if (is_script(c, "renew") && !word_is(arg(c, 1), "0"))
        check_renewal(c, &c->words[0], arg(c, 0));
    for (size_t i = 0; is_script(c, "renew_many") && i < c->keys; i++)
        check_renewal(c, &c->words[i], arg(c, i + 1));
}

/* What the watchdog renews ends when it is so old. */
static void check_age(hold *h, const look *l)
{
    int64_t most = cfg.max_hold_ms * MS / 100 * 101 + MS;
    if (cfg.max_hold_ms > 0 && h->is_renewed && !h->was_extended &&
        l->valid_ms > 0 && l->at > h->from + most)
        finding("judge 8: owner %d has %s for longer than max_hold_ms",
                h->o->id, things[h->thing].name);
}

/* --- who stands in a queue ------------------------------------------------ */

#define BELLS_MAX 256

typedef struct place {
    int server, thing;
    char bell[80];
    int64_t ticket;
    const program *g;
} place;

static place places[BELLS_MAX];
static int places_n;

static place *place_of(const server *s, int t, const word *bell)
{
    for (int i = 0; i < places_n; i++)
        if (places[i].server == s->index && places[i].thing == t &&
            strlen(places[i].bell) == bell->len &&
            memcmp(places[i].bell, bell->at, bell->len) == 0)
            return &places[i];
    return NULL;
}

static const entry *queue_of(server *s, int t)
{
    char name[60];
    const char *of = things[t].name;
    int n = key_beside(name, sizeof name, "rlock_queue", of);
    if (strchr(of, '{'))
        n += snprintf(name + n, sizeof name - (size_t)n, "{}");
    word key = {name, (size_t)n};
    return store_find(&s->store, &key);
}

static const program *program_at(const word *holder)
{
    char of[64];
    for (int i = 0; i < cfg.processes; i++) {
        const process *p = &programs[i].p;
        int n = snprintf(of, sizeof of, "%s:%d:", p->host, p->pid);
        if (holder->len > (size_t)n && memcmp(holder->at, of, (size_t)n) == 0)
            return &programs[i];
    }
    return NULL;
}

/* It has been put into the queue just now. */
static void note_place(const call *c, const text *reply)
{
    if (!is_script(c, "acquire") || c->n < c->keys + 5 ||
        memcmp(reply->at, "*5\r\n:0", 6) != 0)
        return;
    int t = thing_at(&c->words[0]);
    const word *bell = arg(c, 3);
    long long ticket = 0;
    if (t < 0 || bell->len == 0 || bell->len >= sizeof places->bell)
        return;
    place *p = place_of(c->s, t, bell);
    if (!p && places_n < BELLS_MAX) {
        p = &places[places_n++];
        *p = (place){.server = c->s->index, .thing = t};
        memcpy(p->bell, bell->at, bell->len);
    }
    word_number(arg(c, 4), &ticket);
    if (!p)
        return;
    p->ticket = ticket ? ticket : server_now_us(c->s);
    p->g = program_at(arg(c, 0));
}

/* --- 9: order ------------------------------------------------------------- */

static int rung_things;

/* So often a lock was handed on in this program while another one waited. */
static int in_a_row[THINGS_MAX];
static const program *in_whose[THINGS_MAX];

/* A master has its queue from another one, perhaps; what was told here before
   is older. So it is where a client also stands for a fair handle. */
static bool may_be_handed_down(void)
{
    return cfg.cluster || cfg.sentinel || cfg.fair;
}

/* NULL: not known as it stands there. */
static const place *place_in_queue(const server *s, int t, const item *i)
{
    word bell = {i->name.at, i->name.len};
    const place *p = place_of(s, t, &bell);
    if (p && may_be_handed_down() && (double)p->ticket != i->score)
        return NULL;
    return p;
}

static const place *place_of_rung(const server *s, int t, const word *bell,
                                  const entry *queue)
{
    for (size_t i = 0; queue && i < queue->count; i++)
        if (queue->items[i].name.len == bell->len &&
            memcmp(queue->items[i].name.at, bell->at, bell->len) == 0)
            return place_in_queue(s, t, &queue->items[i]);
    return may_be_handed_down() ? NULL : place_of(s, t, bell);
}

/* Behind "rlock_grant:<uuid> <beat> <token> <claim> "; or all of a ring. */
static word named_in(const word *said)
{
    word name = *said;
    if (name.len < 12 || memcmp(name.at, "rlock_grant:", 12) != 0)
        return name;
    for (int blanks = 0; blanks < 4 && name.len > 0; name.at++, name.len--)
        blanks += *name.at == ' ';
    return name;
}

static void rang(server *s, const word *bell, const word *said)
{
    word name = named_in(said);
    int t = thing_at(&name);
    if (t < 0)
        return;
    if (rung_things >> t & 1)
        finding("judge 13: one release of %s wakes several", things[t].name);
    rung_things |= 1 << t;
    if (name.len < said->len) /* it was granted, in the order of the queue */
        in_a_row[t] = 0;
    /* There the queue does not tell who is first; nor where it may have had no
       room for him. */
    if (cfg.fair || cfg.full_ppm > 0)
        return;
    const entry *queue = queue_of(s, t);
    const place *p = place_of_rung(s, t, bell, queue);
    for (size_t i = 0; p && queue && i < queue->count; i++) {
        const place *o = place_in_queue(s, t, &queue->items[i]);
        if (o && o->ticket < p->ticket)
            finding("judge 9: a release of %s rings who has come %lld us after "
                    "another one",
                    things[t].name, (long long)(p->ticket - o->ticket));
    }
}

/* The client of another process that has waited longest. */
static const place *first_other(const call *c, int t)
{
    const program *g = program_at(arg(c, 0));
    const entry *queue = queue_of(c->s, t);
    const place *first = NULL;
    for (size_t i = 0; queue && i < queue->count; i++) {
        const place *p = place_in_queue(c->s, t, &queue->items[i]);
        if (p && p->g != g && (!first || p->ticket < first->ticket))
            first = p;
    }
    return first;
}

#define PATIENCE_US    10000 /* how long another client may wait for its turn */
#define MOST_IN_A_ROW  40
#define MOST_IN_A_TURN 70

static bool had_it; /* who hands it on; otherwise it was asked again */

static void look_who_has_it(const call *c)
{
    had_it = false;
    if (!is_script(c, "handover"))
        return;
    int t = thing_at(&c->words[0]);
    const entry *e = t >= 0 ? entry_of(c, t) : NULL;
    had_it = e && e->kind == KIND_HASH && entry_item(e, arg(c, 0));
}

static void check_handed(const call *c, const text *reply)
{
    if (!is_script(c, "handover") || !had_it)
        return;
    int t = thing_at(&c->words[0]);
    bool handed = reply->at[0] == '$' ||
                  (reply->len > 6 && memcmp(reply->at, "*2\r\n:3", 6) == 0);
    const place *p = t >= 0 && handed ? first_other(c, t) : NULL;
    if (t < 0)
        return;
    const program *g = program_at(arg(c, 0));
    in_a_row[t] = p && g == in_whose[t] ? in_a_row[t] + 1 : 0;
    in_whose[t] = g;
    if (!p)
        return;
    int64_t waited = server_now_us(c->s) - p->ticket;
    if (waited > PATIENCE_US + 1000)
        finding("judge 9: %s is handed on although another client has waited "
                "for %lld us",
                things[t].name, (long long)waited);
    if (in_a_row[t] > (cfg.turn_ms > 0 ? MOST_IN_A_TURN : MOST_IN_A_ROW))
        finding("judge 9: %s is handed on %d times in a row although another "
                "client waits",
                things[t].name, in_a_row[t]);
}

/* By its own clock its time may be over. */
static int64_t shortest_wait(const act *a)
{
    return a->wait_ms * MS / 100 * 98;
}

/* Who has been granted what somebody has freed by force may not know yet; and what
   a task has started stands still while its loop is in slow callbacks. */
static bool still_waits(const owner *o, int lock, int64_t since)
{
    const act *a = o->waits;
    int64_t slow = o->is_task ? judge_callbacks() : 0;
    return a && a->lock == lock && a->wait_ms != 0 && a->began < since - slow &&
           !o->g->closing_at && !was_canceled(o->g, lock, a->began) &&
           o->canceled_at < a->began &&
           !was_shaken(locks[lock].member[0], a->began) &&
           (a->wait_ms < 0 || w.now < a->began + shortest_wait(a));
}

/* Whose time is over asks for himself, if nobody has done so meanwhile. */
static bool is_last_try(const act *a)
{
    return a->wait_ms >= 0 && a->lasted >= shortest_wait(a);
}

/* Threads of one client, in the order in which they came; for a fair lock, those
   of all, but where a login that has run out cuts a bell off. */
static void called(const act *a)
{
    const lock *l = &locks[a->lock];
    if (!cfg.calm || cfg.fair == 2 || (cfg.fair && cfg.valid_ms > 0) ||
        a->status != RLOCK_OK || a->wait_ms == 0 || a->is_nested ||
        strcmp(a->verb, "acquire") != 0 || l->n > 1 || l->has_red ||
        is_last_try(a))
        return;
    for (int i = 0; i < OWNERS_MAX; i++)
        if ((cfg.fair == 1 || owners[i].g == a->o->g) && &owners[i] != a->o &&
            still_waits(&owners[i], a->lock, a->began - 100 * MS))
            finding("judge 9: owner %d has %s, for which owner %d has waited "
                    "since before",
                    a->o->id, l->name, owners[i].id);
}

/* --- 13: what is free is had by who waits for it -------------------------- */

#define IDLE (250 * MS)
/* Who hears Redisson's channel is quicker than who asks again and again. */
#define HEARD (150 * MS)

static int64_t free_since[THINGS_MAX];
static bool was_there[THINGS_MAX], was_said[THINGS_MAX];

static void look_before(const call *c)
{
    for (int t = 0; t < things_n; t++)
        if (is_single_of(c, t))
            was_there[t] = entry_of(c, t) != NULL;
}

/*
 * By somebody of this process, who would hand it over. That another one has
 * forced it open he learns with his next renewal.
 */
static bool was_believed_held(const program *g, int t)
{
    for (const hold *h = holds[t]; h; h = h->next)
        if (h->g == g && (!h->ended || h->ended > free_since[t]) &&
            (!h->lost_told || h->lost_told > free_since[t]))
            return true;
    return false;
}

/* Whose process has died may have been rung, or stand first in line. */
static void check_idle(int t)
{
    if (death_was_since(free_since[t] - DEAD_STANDS))
        return;
    for (int i = 0; i < OWNERS_MAX; i++)
        if (still_waits(&owners[i], t, free_since[t] - 100 * MS) &&
            !was_believed_held(owners[i].g, t))
            finding("judge 13: %s was free for %lld ms while owner %d waited",
                    things[t].name, (long long)((w.now - free_since[t]) / MS),
                    i);
}

void judge_foreign(int server, const char *name, bool has)
{
    int t = thing_at(&(word){name, strlen(name)});
    if (!cfg.calm || t < 0 || things[t].home != server)
        return;
    free_since[t] = has ? 0 : w.now;
    was_said[t] = !has;
}

static void look_after(const call *c)
{
    for (int t = 0; t < things_n; t++) {
        if (!is_single_of(c, t))
            continue;
        bool is_there = entry_of(c, t) != NULL;
        if (is_there && !was_there[t] && free_since[t] &&
            w.now - free_since[t] > (was_said[t] ? HEARD : IDLE))
            check_idle(t);
        if (is_there)
            was_said[t] = false;
        if (is_there)
            free_since[t] = 0;
        else if (was_there[t])
            free_since[t] = w.now;
    }
}

/* Who was rung, and does not want it any more, rings the next one. */
static void check_passed_on(const call *c, const text *reply)
{
    int t = is_script(c, "leave") ? thing_at(&c->words[0]) : -1;
    if (t < 0 || memcmp(reply->at, "*3\r\n:0", 6) != 0 || entry_of(c, t))
        return;
    const entry *queue = queue_of(c->s, t);
    if (!(rung_things >> t & 1) && queue && queue->count > 0)
        finding("judge 13: who was rung for %s leaves, and nobody is rung",
                things[t].name);
}

/* --- the judge ------------------------------------------------------------ */

static void executing(const call *c)
{
    rung_things = 0;
    check_cadence(c);
    look_who_has_it(c);
    if (cfg.calm)
        look_before(c);
}

static void executed(const call *c, const text *reply)
{
    note_place(c, reply);
    if (is_script(c, "acquire") && reply->at[0] == '$' &&
        thing_at(&c->words[0]) >= 0)
        in_a_row[thing_at(&c->words[0])] = 0;
    check_handed(c, reply);
    check_passed_on(c, reply);
    if (cfg.calm)
        look_after(c);
}

const judge judge_work = {.name = "work",
                          .called = called,
                          .looked = check_age,
                          .executing = executing,
                          .executed = executed,
                          .rang = rang};
