/*
 * A turn: if there is a reason, an asking begins (canvass.c); when it is over,
 * what has been said is judged (slotmap.c), and becomes what everybody goes by.
 *
 * `mutex` guards which servers there are, what is known of each, and the
 * reasons. Who has which slot is atomic, slot by slot, because every call looks
 * there: a slot that is just changing is asked at either server, and each
 * answers for itself.
 *
 * While trouble lasts, askings come ever more rarely, a twentieth of its length
 * apart, however many threads complain: who waits for a failover is late by a
 * twentieth. A server that is silent is complained of once by each who waits
 * for it, so for a while nobody has to, to be asked about again.
 */
#include "route/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "route/canvass.h"
#include "route/census.h"
#include "route/suspicion.h"

#define LEAST_GAP_US      (100 * 1000)
#define LONGEST_GAP_US    (2 * 1000 * 1000)
#define GAP_OF_TROUBLE    20
#define ROUTINE_US        (60 * 1000 * 1000)
#define FIRST_PATIENCE_US (300 * 1000)
/* Until it is known why none can be reached. */
#define LAST_WORDS_US (100 * 1000)
/* Of what a connection may take. */
#define LAST_PATIENCE 3
/* What there is for one that was left goes, unless something is held there. */
#define DISMISS_AGAIN_US (1000 * 1000)

/* --- a turn --------------------------------------------------------------- */

static void lack_memory_locked(rl_cluster *c) RL_REQUIRES(&c->mutex)
{
    rl_fault_passes(&c->why,
                    rl_fault_set(&c->why, RLOCK_ENOMEM, 0, "out of memory"));
}

/* Nobody may dial a new one while an old one is still believed. */
static bool take_over(rl_cluster *c)
{
    rl_change *ch = c->change;
    rl_mutex_lock(&c->mutex);
    bool changed = rl_slotmap_judge(c, c->said, ch);
    for (unsigned i = 0; i < ch->left; i++)
        ch->leaves[i]->dismiss_us = rl_now_us() + c->o.dismiss_us;
    rl_mutex_unlock(&c->mutex);
    for (unsigned i = 0; i < ch->left; i++)
        c->o.leave(c->o.arg, ch->leaves[i]->made, ch->leaves[i]->place.nth);
    rl_mutex_lock(&c->mutex);
    rl_slotmap_publish(c, ch);
    c->known = c->known || (c->count > 0 && !ch->lacking);
    rl_cond_wake_all(&c->told);
    rl_mutex_unlock(&c->mutex);
    c->o.told(c->o.arg, ch->failovers, ch->failover);
    return changed;
}

/* What is left of an asking, at its end or in the middle. */
static void forget_asking(rl_cluster *c)
{
    rl_census_drop(c);
    free(c->said);
    free(c->change);
    c->said = NULL;
    c->change = NULL;
    c->asks = RL_ASKS_NOBODY;
}

static void begin(rl_cluster *c, int64_t now_us)
{
    c->asked_us = now_us;
    atomic_fetch_add(c->o.refreshes, 1);
    c->change = malloc(sizeof *c->change);
    c->answered = false;
    if (c->change)
        rl_canvass_begin(c);
}

/* Takes what has been said. True: nothing is known to be missing. */
static bool believe(rl_cluster *c)
{
    bool again = rl_census_end(c, &c->said);
    if (!rl_place_is(&c->said->from, &c->at))
        rl_canvass_hang_up(c); /* who was asked last is not believed */
    rl_census_note_replicas(c, c->said);
    bool changed = take_over(c);
    if (changed && !c->change->lacking) /* that was the end of it */
        c->troubled_us = -LONGEST_GAP_US - RL_CALM_US;
    c->unhelpful = !changed && c->asked_us - c->troubled_us < RL_CALM_US;
    return !again;
}

/* When to ask again. */
static void plan(rl_cluster *c, bool settled, bool lacking)
{
    bool troubled = c->asked_us - c->troubled_us < RL_CALM_US;
    int64_t lasts_us = troubled ? rl_now_us() - c->trouble_us : 0;
    rl_mutex_lock(&c->mutex);
    c->rounds++;
    if (lacking)
        lack_memory_locked(c);
    c->suspected = c->suspected || !settled || lacking ||
                   rl_suspicion_lasts_locked(c, rl_now_us());
    c->gap_us = rl_jitter(rl_min(
        rl_max(lasts_us / GAP_OF_TROUBLE, LEAST_GAP_US), LONGEST_GAP_US));
    c->routine_us = rl_now_us() + rl_jitter(ROUTINE_US);
    rl_cond_wake_all(&c->told);
    rl_mutex_unlock(&c->mutex);
}

static void finish(rl_cluster *c)
{
    int64_t last_us = LAST_PATIENCE * c->o.connect_timeout_ms * 1000;
    bool told = c->answered, lacking = !told && !c->said;
    c->unhelpful = false;
    bool settled = told && believe(c);
    lacking = lacking || (told && c->change->lacking);
    c->patience_us =
        told ? FIRST_PATIENCE_US : rl_min(2 * c->patience_us, last_us);
    forget_asking(c);
    plan(c, settled, lacking);
}

static int64_t dismissed_from(const rl_server *s)
{
    return s->retired ? s->dismiss_us : RL_NEVER;
}

static int64_t next_dismissal_us(rl_cluster *c)
{
    int64_t us = RL_NEVER;
    rl_mutex_lock(&c->mutex);
    for (unsigned i = 0; i < c->count; i++)
        us = rl_min(us, dismissed_from(c->server[i]));
    rl_mutex_unlock(&c->mutex);
    return us;
}

/* Again and again: somebody who is late may have had it start anew. */
static void dismiss_retired(rl_cluster *c, int64_t now_us)
{
    for (unsigned i = 0; i < rl_cluster_count(c); i++) {
        rl_server *s = c->server[i];
        rl_mutex_lock(&c->mutex);
        bool due = dismissed_from(s) <= now_us;
        rl_mutex_unlock(&c->mutex);
        if (!due)
            continue;
        bool gone = c->o.dismiss(c->o.arg, s->made);
        rl_mutex_lock(&c->mutex);
        s->dismiss_us = now_us + (gone ? ROUTINE_US : DISMISS_AGAIN_US);
        rl_mutex_unlock(&c->mutex);
    }
}

/* Whether who was asked last is still there shows itself by and by. */
static void look_at_rest(rl_cluster *c)
{
    if (c->conn && !rl_conn_receive(c->conn))
        rl_canvass_hang_up(c);
}

int64_t rl_cluster_turn(rl_cluster *c, int64_t now_us, bool *signaled)
{
    bool asking = c->asks != RL_ASKS_NOBODY;
    if (!asking) {
        look_at_rest(c);
        asking = rl_suspicion_is_due(c, now_us);
        if (asking)
            begin(c, now_us);
    }
    if (asking && rl_canvass_is_over(c)) {
        finish(c);
        asking = false;
    }
    dismiss_retired(c, now_us);
    *signaled = rl_race_reap(&c->race);
    return rl_min(next_dismissal_us(c),
                  asking ? rl_canvass_due_us(c) : rl_suspicion_next_us(c));
}

size_t rl_cluster_look(rl_cluster *c, struct pollfd *p)
{
    *p = (struct pollfd){.fd = c->conn ? c->conn->io.fd : -1,
                         .events = c->conn ? rl_conn_events(c->conn) : 0};
    return 1;
}

/* --- one of them ---------------------------------------------------------- */

/*
 * A right that is missing, or a server that does not know the question, is no
 * reason to refuse it.
 */
bool rl_cluster_recognizes(rl_cluster *c, void *server, rl_conn *conn,
                           int64_t deadline_us, rl_fault *f)
{
    rl_reply r;
    char id[RL_NODE_ID + 1] = "";
    rl_mutex_lock(&c->mutex);
    const rl_server *s = rl_slotmap_made(c, server);
    if (s)
        strcpy(id, s->id);
    rl_mutex_unlock(&c->mutex);
    if (!*id)
        return true;
    if (rl_conn_ask(conn, deadline_us, &r, f, 2,
                    (const char *[]){"CLUSTER", "MYID"}) != RLOCK_OK)
        return false;
    if (!rl_reply_is(&r, REDIS_REPLY_STRING) || r.top.len != RL_NODE_ID ||
        strcmp(r.top.str, id) == 0)
        return true;
    rl_cluster_suspect(c, server);
    rl_fault_set(f, RLOCK_EIO, 0,
                 "another server of a cluster is at its address");
    return false;
}

/* --- for others ----------------------------------------------------------- */

/* Who is not connected by then will not be, and who is may answer yet. */
static int64_t wait_end_locked(const rl_cluster *c, int64_t began_us,
                               int64_t deadline_us) RL_REQUIRES(&c->mutex)
{
    int64_t us = rl_after_ms(began_us, c->o.connect_timeout_ms) + LAST_WORDS_US;
    return rl_min(deadline_us, rl_max(us, c->hope_us));
}

rlock_status rl_cluster_await(rl_cluster *c, int64_t deadline_us, rl_fault *f)
{
    int64_t began_us = rl_now_us(), until_us;
    rl_mutex_lock(&c->mutex);
    while (!c->known && (c->rounds == 0 || c->why.transient) &&
           rl_now_us() < (until_us = wait_end_locked(c, began_us, deadline_us)))
        rl_cond_wait_until(&c->told, &c->mutex, until_us);
    bool known = c->known;
    *f = c->why;
    rl_mutex_unlock(&c->mutex);
    return known ? RLOCK_OK : f->status;
}

rlock_status rl_server_locate(void *server, int64_t deadline_us, rl_place *out,
                              rl_fault *f)
{
    rl_server *s = server;
    (void)deadline_us;
    rl_mutex_lock(&s->cluster->mutex);
    *out = s->place;
    bool retired = s->retired;
    rl_mutex_unlock(&s->cluster->mutex);
    return retired ? rl_fault_set(f, RLOCK_EIO, 0,
                                  "it has no slots of the cluster any more")
                   : RLOCK_OK;
}

rlock_status rl_cluster_locate(void *cluster, int64_t deadline_us,
                               rl_place *out, rl_fault *f)
{
    rl_cluster *c = cluster;
    rlock_status s = rl_cluster_await(c, deadline_us, f);
    if (s != RLOCK_OK)
        return s;
    rl_mutex_lock(&c->mutex);
    for (unsigned i = 0; i < c->count; i++) {
        *out = c->server[i]->place;
        if (!c->server[i]->retired && !c->server[i]->suspect)
            break;
    }
    rl_mutex_unlock(&c->mutex);
    out->nth = 0;
    return RLOCK_OK;
}

bool rl_cluster_is_retired(rl_cluster *c, unsigned number)
{
    rl_mutex_lock(&c->mutex);
    bool retired = c->server[number - 1]->retired;
    rl_mutex_unlock(&c->mutex);
    return retired;
}

rlock_status rl_server_uri(const rl_server *s, rl_uri *u, rl_fault *f)
{
    return rl_uri_of(u, s->cluster->o.uri, s->place.host, s->place.port, f);
}

rl_cluster *rl_cluster_new(const rl_cluster_options *o)
{
    rl_cluster *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->o = *o;
    c->uri = *o->uri;
    c->o.uri = &c->uri;
    c->fd = -1;
    c->patience_us = FIRST_PATIENCE_US;
    rl_canvass_init(c);
    c->gap_us = LEAST_GAP_US;
    c->asked_us = c->troubled_us = -LONGEST_GAP_US - RL_CALM_US;
    c->suspected = true;
    rl_fault_set(&c->why, RLOCK_EIO, ETIMEDOUT,
                 "no server has told who has which slot");
    rl_slotmap_init(c);
    rl_mutex_init(&c->mutex, RL_RANK_CLUSTER);
    rl_cond_init(&c->told);
    return c;
}

void rl_cluster_close(rl_cluster *c)
{
    rl_mutex_lock(&c->mutex);
    c->closed = true;
    rl_mutex_unlock(&c->mutex);
}

void rl_cluster_stop(rl_cluster *c)
{
    rl_cluster_close(c);
    rl_race_end(&c->race);
    rl_race_call_off(&c->race);
    rl_canvass_hang_up(c);
    forget_asking(c);
}

/* In a child the loop's memory may be half-changed: it is left alone, where a
   search for leaks finds it. */
static void leave_behind(rl_cluster *c)
{
    static _Atomic(rl_cluster *) left_behind;
    c->next_left_behind = atomic_exchange(&left_behind, c);
    rl_race_leave_behind(&c->race);
    if (!rl_mutex_was_free(&c->mutex))
        return;
    if (c->fd >= 0)
        close(c->fd);
}

void rl_cluster_free(rl_cluster *c, bool forked)
{
    if (!c)
        return;
    if (forked) {
        leave_behind(c);
        return;
    }
    for (unsigned i = 0; i < c->count; i++)
        free(c->server[i]);
    free(c->replica);
    rl_cond_fini(&c->told);
    rl_mutex_fini(&c->mutex);
    free(c);
}
