/*
 * A turn: begin to connect to Sentinels that are not there, hear what they say
 * by themselves, ask all at once if there is a reason, and go on with what has
 * been asked. A reason is a suspicion, a message that names our master, somebody
 * who was not there before, that they do not agree, and a minute without any.
 *
 * `mutex` guards what others look at: the master, what is known against it, the
 * copies of descriptors. Everything else is the loop's. A Sentinel that hangs
 * costs one asking RL_SENTINEL_LINK_US, and is then left alone for a while.
 *
 * While the trouble lasts, askings come 100 ms apart at first, then ever more
 * rarely, up to 2 s, however many threads complain; a message is followed at
 * once.
 */
#include "route/sentinel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/random.h"
#include "net/dialing.h"
#include "route/sentinel_choice.h"
#include "route/sentinel_link.h"

#define MOST (RL_SENTINELS_POLLED / 2)

#define FIRST_GAP_US (100 * 1000)
#define LAST_GAP_US  (2000 * 1000)
#define CALM_US      (5 * 1000 * 1000)
#define ROUTINE_US   (60 * 1000 * 1000)
/* Until it is known why none can be reached. */
#define LAST_WORDS_US (100 * 1000)

/* After a failover all have heard of it by then. */
#define DISSENT_US (10 * 1000 * 1000)

/* Messages may point to it for as long as there are any. */
typedef struct node_name {
    struct node_name *next;
    char text[];
} node_name;

struct rl_sentinels {
    rl_sentinels_options o;
    char *name, *user, *password;
    rl_uri uri;     /* its texts are another's */
    rl_mutex mutex; /* guards what follows, */
    rl_cond known;
    rl_place master; /* nth 0: none yet */
    rl_fault why;    /* there is none */
    int64_t hope_us; /* somebody is there, and may have answered by then */
    bool suspected;
    int fd[2 * MOST]; /* -1: none; for a forked child */
    /* up to here. */
    rl_sentinel_link *at[MOST];
    size_t count, named; /* the URI has named those before */
    rl_sentinel_choice choice;
    enum { NOTHING, MASTER, LOOK, OTHERS } asks; /* what it waits to hear */
    int64_t until_us;                            /* until then, */
    bool routine;       /* and to hear of the others next */
    rl_dialing look;    /* at the master in office */
    bool news;          /* somebody is there who was not */
    int64_t dissent_us; /* since when somebody names another master; 0: not */
    rl_place told;      /* of whom it has been told that somebody names it */
    int64_t asked_us, gap_us, routine_us;
    node_name *names;
    rl_sentinels *next_left_behind; /* in a forked child */
};

/* --- the Sentinels -------------------------------------------------------- */

static bool is_listed(const rl_sentinels *s, const char *host, int port)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i]->port == port && strcmp(s->at[i]->host, host) == 0)
            return true;
    return false;
}

/* One more, if there is room. False: out of memory. */
static bool add(rl_sentinels *s, const char *host, int port)
{
    if (s->count == MOST || is_listed(s, host, port) ||
        strlen(host) >= RL_PLACE_HOST)
        return true;
    rl_sentinel_link *n = calloc(1, sizeof *n);
    if (!n)
        return false;
    rl_sentinel_link_init(n, host, port, s->o.tls, s->user, s->password,
                          s->o.connect_timeout_ms);
    n->master = s->name;
    s->at[s->count++] = n;
    return true;
}

static void note_fds(rl_sentinels *s, size_t i, int listen_conn, int ask_conn)
{
    rl_mutex_lock(&s->mutex);
    s->fd[2 * i] = listen_conn;
    s->fd[2 * i + 1] = ask_conn;
    rl_mutex_unlock(&s->mutex);
}

static void disconnect(rl_sentinels *s, size_t i)
{
    note_fds(s, i, -1, -1);
    rl_sentinel_link_disconnect(s->at[i]);
}

/* For whoever asks in vain where the master is. */
static void tell_why(rl_sentinels *s, rl_sentinel_link *n)
{
    if (!n->failed)
        return;
    n->failed = false;
    rl_mutex_lock(&s->mutex);
    rl_fault_set(&s->why, RLOCK_EIO, n->fault.sys_errno,
                 "Sentinel %.60s:%d: %.110s", n->host, n->port, n->fault.text);
    rl_mutex_unlock(&s->mutex);
}

static int fd_of(const rl_conn *c)
{
    return c ? c->io.fd : -1;
}

/* Whoever waits for a master may hope for what this one says. */
static void note_made(rl_sentinels *s, size_t i)
{
    const rl_sentinel_link *n = s->at[i];
    note_fds(s, i, fd_of(n->listen_conn), fd_of(n->ask_conn));
    s->news = true;
    rl_mutex_lock(&s->mutex);
    s->hope_us = rl_sentinel_link_until(n, rl_now_us()) + s->gap_us;
    rl_mutex_unlock(&s->mutex);
}

static void note_progress(rl_sentinels *s, size_t i, rl_progress progress)
{
    if (progress == RL_PROGRESS_MADE)
        note_made(s, i);
    if (progress == RL_PROGRESS_LOST)
        disconnect(s, i);
    tell_why(s, s->at[i]);
}

/* To all of them at a time. */
static void connect_due(rl_sentinels *s)
{
    for (size_t i = 0; i < s->count; i++) {
        rl_sentinel_link *n = s->at[i];
        note_progress(s, i, rl_sentinel_link_look(n, s->o.signal));
        if (rl_sentinel_link_is_away(n) && n->next_us <= rl_now_us())
            note_progress(s, i, rl_sentinel_link_connect(n, s->o.signal));
    }
}

/* --- questions ------------------------------------------------------------ */

/* Reads answers. True: none is waited for any more. */
static bool is_heard(rl_sentinels *s)
{
    bool late = rl_now_us() >= s->until_us, waiting = false;
    for (size_t i = 0; i < s->count; i++) {
        if (!s->at[i]->over)
            rl_sentinel_link_serve(s->at[i], late);
        waiting = waiting || !s->at[i]->over;
    }
    return !waiting;
}

/* At once. */
static void ask_all(rl_sentinels *s, const char *what)
{
    int64_t now_us = rl_now_us();
    s->until_us = now_us;
    for (size_t i = 0; i < s->count; i++) {
        rl_sentinel_link_ask(s->at[i], what);
        if (!s->at[i]->over)
            s->until_us =
                rl_max(s->until_us, rl_sentinel_link_until(s->at[i], now_us));
    }
}

/* Who does not answer is left alone for a while. */
static void note_answers(rl_sentinels *s)
{
    for (size_t i = 0; i < s->count; i++) {
        tell_why(s, s->at[i]);
        if (s->at[i]->ask_conn && rl_conn_is_broken(s->at[i]->ask_conn))
            disconnect(s, i);
    }
}

static const char *name_of(rl_sentinels *s, const rl_place *p)
{
    char host[100];
    size_t size = sizeof host + sizeof "rediss://[]:65535";
    node_name *n = malloc(sizeof *n + size);
    if (!n)
        return NULL;
    rl_printable(host, sizeof host, p->host, strlen(p->host));
    snprintf(n->text, size, strchr(host, ':') ? "%s://[%s]:%d" : "%s://%s:%d",
             s->o.tls ? "rediss" : "redis", host, p->port);
    n->next = s->names;
    s->names = n;
    return n->text;
}

/* Nobody may dial the new one while the old one is still believed. */
static void take_over(rl_sentinels *s, const rl_place *was)
{
    const rl_place *now = &s->choice.master;
    s->dissent_us = 0;
    s->told = (rl_place){.port = 0};
    s->o.leave(s->o.arg, now->nth, name_of(s, now));
    rl_mutex_lock(&s->mutex);
    s->master = *now;
    rl_cond_wake_all(&s->known);
    rl_mutex_unlock(&s->mutex);
    if (was->nth > 0)
        s->o.failed_over(s->o.arg, was, now);
}

/*
 * Nobody is there, or no master, or one that will not have us: a stranger may
 * stand where a master has died. What it refuses for the moment only (it is
 * loading, busy, full), and that we are out of memory, says nothing.
 */
static bool is_absent(const rl_fault *f)
{
    return f->status == RLOCK_EIO ||
           (f->status == RLOCK_ESERVER && !f->transient);
}

/* Whether a master is there. False: that cannot be found out. */
static bool begin_look(rl_sentinels *s, const rl_place *at)
{
    rl_fault f;
    rl_dialer *by = &s->look.dialer;
    rl_dialing_init(&s->look);
    by->tls = s->o.tls;
    by->credentials = s->o.credentials;
    by->connect_timeout_ms = s->o.connect_timeout_ms;
    by->role = by->strict = true;
    bool ok =
        rl_uri_of(&by->uri, &s->uri, at->host, at->port, &f) == RLOCK_OK &&
        rl_dialing_begin(&s->look,
                         rl_after_ms(rl_now_us(), s->o.connect_timeout_ms),
                         s->o.signal);
    if (!ok)
        rl_dialing_fini(&s->look, false);
    return ok;
}

/* Is it, as far as can be told? */
static bool end_look(rl_sentinels *s)
{
    rl_conn *c = rl_dialing_end(&s->look);
    bool present = c || !is_absent(&s->look.fault);
    rl_conn_free(c);
    rl_dialing_fini(&s->look, false);
    return present;
}

/* Once for each master that is named instead of the one in office. */
static void note_dissent(rl_sentinels *s, const rl_sentinel_answer *said,
                         size_t n, rl_sentinel_link *const *who)
{
    char text[640], in_use[100], other[100];
    const rl_place *is = &s->choice.master;
    const rl_sentinel_answer *d =
        rl_sentinel_choice_dissenter(&s->choice, said, n);
    int64_t now_us = rl_now_us();
    if (!d || rl_place_is(&d->place, &s->told)) {
        s->dissent_us = 0;
        return;
    }
    if (!s->dissent_us)
        s->dissent_us = now_us;
    if (now_us - s->dissent_us < DISSENT_US)
        return;
    s->told = d->place;
    rl_printable(in_use, sizeof in_use, is->host, strlen(is->host));
    rl_printable(other, sizeof other, d->place.host, strlen(d->place.host));
    snprintf(text, sizeof text,
             "Sentinels contradict each other: %s:%d says that the master is "
             "%s:%d; in use is %s:%d",
             who[d - said]->host, who[d - said]->port, other, d->place.port,
             in_use, is->port);
    s->o.warn(s->o.arg, text);
}

static size_t collect(rl_sentinels *s, rl_sentinel_answer *said,
                      rl_sentinel_link **who)
{
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i]->answered &&
            rl_sentinel_choice_read(&s->at[i]->table, &said[n]))
            who[n++] = s->at[i];
    return n;
}

/* True: there is another master than before. */
static bool judge(rl_sentinels *s, const rl_sentinel_answer *said, size_t n)
{
    if (s->asks == LOOK)
        return rl_sentinel_choice_look(&s->choice, end_look(s));
    rl_ruling ruling = rl_sentinel_choice_judge(&s->choice, said, n);
    if (ruling == RL_CHOICE_DISPUTED && begin_look(s, &s->choice.master))
        s->asks = LOOK;
    else if (ruling == RL_CHOICE_DISPUTED)
        rl_sentinel_choice_look(&s->choice, true);
    return ruling == RL_CHOICE_CHANGES;
}

/* What has been said of the master; or how a look at it has ended. */
static void decide(rl_sentinels *s)
{
    rl_sentinel_answer said[MOST];
    rl_sentinel_link *who[MOST];
    rl_place was = s->choice.master;
    size_t n = collect(s, said, who);
    bool looked = s->asks == LOOK;
    if (judge(s, said, n))
        take_over(s, &was);
    if (s->asks == LOOK && !looked)
        return;
    note_dissent(s, said, n, who);
    if (s->choice.in_row == 1) /* whether it is gone is to be known soon */
        s->gap_us = FIRST_GAP_US;
    s->asks = s->routine ? OTHERS : NOTHING;
    if (s->routine)
        ask_all(s, "SENTINELS");
}

/* Is it to be asked again, as they do not agree? */
static bool is_open(const rl_sentinels *s)
{
    return s->dissent_us || s->choice.in_row > 0;
}

/* Each names the others. */
static void learn(rl_sentinels *s)
{
    size_t count = s->count;
    for (size_t i = 0; i < count; i++) {
        const rl_table *t = &s->at[i]->table;
        rl_place p;
        for (size_t k = 1; s->at[i]->answered && k < t->count; k++)
            if (t->cell[k].depth == 1 &&
                rl_sentinel_choice_read_place(t, k, &p))
                add(s, p.host, p.port);
    }
    s->asks = NOTHING;
    s->routine_us = rl_now_us() + rl_jitter(ROUTINE_US);
}

/* --- a turn --------------------------------------------------------------- */

/* Takes what they have said by themselves. */
static bool was_named(rl_sentinels *s)
{
    bool named = false;
    for (size_t i = 0; i < s->count; i++) {
        named = named || s->at[i]->named;
        s->at[i]->named = false;
    }
    return named;
}

/* Takes the suspicion, if there is one and it is time to ask. */
static bool is_suspected(rl_sentinels *s, int64_t now_us)
{
    bool due = now_us >= s->asked_us + s->gap_us;
    rl_mutex_lock(&s->mutex);
    bool suspected = s->suspected && due;
    s->suspected = s->suspected && !due;
    rl_mutex_unlock(&s->mutex);
    return suspected;
}

static void ask_if_due(rl_sentinels *s, int64_t now_us)
{
    bool named = was_named(s), routine = now_us >= s->routine_us;
    bool due = now_us >= s->asked_us + s->gap_us, news = s->news && due;
    if (!is_suspected(s, now_us) && !named && !routine && !news &&
        !(is_open(s) && due))
        return;
    bool calm = named || now_us - s->asked_us > CALM_US;
    s->gap_us =
        calm ? FIRST_GAP_US : rl_jitter(rl_min(2 * s->gap_us, LAST_GAP_US));
    s->asked_us = now_us;
    s->routine = routine || news;
    s->news = s->news && !news;
    atomic_fetch_add(s->o.refreshes, 1);
    s->asks = MASTER;
    ask_all(s, "MASTER");
}

/* False: what has been asked is not known yet. */
static bool go_on(rl_sentinels *s)
{
    if (s->asks == LOOK) {
        if (!rl_dialing_is_over(&s->look))
            return false;
        decide(s);
        return true;
    }
    if (!is_heard(s))
        return false;
    note_answers(s);
    if (s->asks == OTHERS)
        learn(s);
    else
        decide(s);
    return true;
}

static void listen_to_all(rl_sentinels *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (!rl_sentinel_link_listen(s->at[i]))
            note_progress(s, i, RL_PROGRESS_LOST);
}

static bool is_dialing(const rl_sentinels *s)
{
    bool any = rl_dialing_is_under_way(&s->look);
    for (size_t i = 0; i < s->count; i++)
        any = any || rl_dialing_is_under_way(&s->at[i]->to_speak) ||
              rl_dialing_is_under_way(&s->at[i]->to_hear);
    return any;
}

static int64_t next_us(rl_sentinels *s)
{
    int64_t next = s->asks == NOTHING ? s->routine_us
                   : s->asks == LOOK  ? RL_NEVER
                                      : s->until_us;
    rl_mutex_lock(&s->mutex);
    if (s->asks == NOTHING && (s->suspected || s->news || is_open(s)))
        next = rl_min(next, s->asked_us + s->gap_us);
    rl_mutex_unlock(&s->mutex);
    for (size_t i = 0; i < s->count; i++)
        if (rl_sentinel_link_is_away(s->at[i]))
            next = rl_min(next, s->at[i]->next_us);
    return next;
}

int64_t rl_sentinels_turn(rl_sentinels *s, int64_t now_us, bool *signaled)
{
    connect_due(s);
    listen_to_all(s);
    if (s->asks == NOTHING)
        ask_if_due(s, now_us);
    while (s->asks != NOTHING && go_on(s))
        ;
    *signaled = is_dialing(s);
    return next_us(s);
}

size_t rl_sentinels_look(rl_sentinels *s, struct pollfd *p)
{
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        n += rl_sentinel_link_poll(s->at[i], p + n);
    return n;
}

/* --- for others ----------------------------------------------------------- */

/* Who is not connected by then will not be, and who is may answer yet. */
static int64_t wait_end_locked(const rl_sentinels *s, int64_t began_us,
                               int64_t deadline_us) RL_REQUIRES(&s->mutex)
{
    int64_t us = rl_after_ms(began_us, s->o.connect_timeout_ms) + LAST_WORDS_US;
    return rl_min(deadline_us, rl_max(us, s->hope_us));
}

rlock_status rl_sentinels_locate(void *arg, int64_t deadline_us, rl_place *out,
                                 rl_fault *f)
{
    rl_sentinels *s = arg;
    int64_t began_us = rl_now_us(), until_us;
    rl_mutex_lock(&s->mutex);
    while (s->master.nth == 0 &&
           rl_now_us() < (until_us = wait_end_locked(s, began_us, deadline_us)))
        rl_cond_wait_until(&s->known, &s->mutex, until_us);
    *out = s->master;
    if (out->nth == 0)
        *f = s->why;
    rl_mutex_unlock(&s->mutex);
    return out->nth > 0 ? RLOCK_OK : f->status;
}

void rl_sentinels_suspect(rl_sentinels *s)
{
    rl_mutex_lock(&s->mutex);
    bool told = s->suspected;
    s->suspected = true;
    rl_mutex_unlock(&s->mutex);
    if (!told)
        s->o.nudge(s->o.arg);
}

const rl_sentinel_link *rl_sentinels_link(const rl_sentinels *s, size_t i)
{
    return i < s->named ? s->at[i] : NULL;
}

static bool init(rl_sentinels *s, const rl_sentinels_options *o)
{
    bool ok = rl_options_copy(&s->name, o->uri->master) &&
              rl_options_copy(&s->user, o->user) &&
              rl_options_copy(&s->password, o->password);
    for (size_t i = 0; i < o->uri->endpoints && ok; i++)
        ok = add(s, o->uri->endpoint[i].host, o->uri->endpoint[i].port);
    s->named = s->count;
    return ok;
}

rl_sentinels *rl_sentinels_new(const rl_sentinels_options *o)
{
    rl_sentinels *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->o = *o;
    s->uri = *o->uri; /* that one goes into the pool */
    s->gap_us = FIRST_GAP_US;
    s->routine_us = rl_now_us() + ROUTINE_US;
    s->asked_us = -LAST_GAP_US;
    rl_fault_set(&s->why, RLOCK_EIO, ETIMEDOUT,
                 "no Sentinel has told where the master is");
    rl_mutex_init(&s->mutex, RL_RANK_ALONE);
    rl_cond_init(&s->known);
    for (size_t i = 0; i < 2 * MOST; i++)
        s->fd[i] = -1;
    if (init(s, o))
        return s;
    rl_sentinels_free(s, false);
    return NULL;
}

void rl_sentinels_stop(rl_sentinels *s)
{
    for (size_t i = 0; i < s->count; i++)
        rl_sentinel_link_call_off(s->at[i]);
    if (!rl_dialing_is_under_way(&s->look))
        return;
    rl_dialing_call_off(&s->look);
    rl_dialing_fini(&s->look, false);
}

/* In a child memory may be half-changed: it stays, for who looks for leaks. */
static void leave_behind(rl_sentinels *s)
{
    static _Atomic(rl_sentinels *) left_behind;
    s->next_left_behind = atomic_exchange(&left_behind, s);
    for (size_t i = 0; i < s->count && s->at[i]; i++)
        rl_sentinel_link_leave_behind(s->at[i]);
    if (rl_dialing_is_under_way(&s->look))
        rl_dialing_fini(&s->look, true);
    if (!rl_mutex_was_free(&s->mutex))
        return;
    for (size_t i = 0; i < 2 * MOST; i++)
        if (s->fd[i] >= 0)
            close(s->fd[i]);
}

void rl_sentinels_free(rl_sentinels *s, bool forked)
{
    if (!s)
        return;
    if (forked) {
        leave_behind(s);
        return;
    }
    for (size_t i = 0; i < s->count; i++) {
        rl_sentinel_link_fini(s->at[i]);
        free(s->at[i]);
    }
    while (s->names) {
        node_name *n = s->names;
        s->names = n->next;
        free(n);
    }
    rl_cond_fini(&s->known);
    rl_mutex_fini(&s->mutex);
    free(s->name);
    free(s->user);
    free(s->password);
    free(s);
}
