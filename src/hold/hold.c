/*
 * One hold: its deadline, its renewal, its end. Every function is called with
 * the mutex of the table. A deadline moves only by what a server has
 * confirmed, counted from before the command was sent; one that has passed
 * never moves again.
 */
#include "hold/hold.h"

#include <stdlib.h>
#include <string.h>

#include "base/probe.h"
#include "hold/due.h"
#include "hold/room.h"

/* As lua/token_ttl.lua has them. */
#define TOKEN_LEAST_MS (5 * 60 * 1000)
#define TOKEN_MOST_MS  (60 * 60 * 1000)

const char *rl_loss_text(rl_loss why)
{
    switch (why) {
    case RL_LOSS_NONE:
        break;
    case RL_LOSS_EXPIRED:
        return "its lease ran out";
    case RL_LOSS_GONE:
        return "the server no longer knows it: force-unlocked, deleted, or "
               "the server lost its data";
    case RL_LOSS_FOREIGN:
        return "the key is no lock any more";
    case RL_LOSS_GROUP:
        return "too few nodes are left that hold it";
    case RL_LOSS_CLOSED:
        return "its client was closed";
    case RL_LOSS_TOO_LONG:
        return "it was held longer than max_hold_ms";
    }
    return "";
}

/* Of a Red lock? */
static bool is_node(const rl_hold *h)
{
    return h->group && h->group->quorum;
}

/* A node that was granted anew is as old as the whole. */
static int64_t oldest_end_us(const rl_holds *t, const rl_hold *h)
{
    int64_t since_us = is_node(h) ? h->group->began_us : h->began_us;
    return t->max_hold_ms ? rl_after_ms(since_us, t->max_hold_ms) : RL_NEVER;
}

/* So late the deadline may be of a hold that is renewed. One that it has already,
   by an explicit lease, it keeps. */
static int64_t limit_us(const rl_holds *t, const rl_hold *h)
{
    int64_t kept_us = h->expiry.at ? h->expiry.due_us : 0;
    return rl_max(oldest_end_us(t, h), kept_us);
}

static void put_deadline_locked(rl_holds *t, rl_hold *h, int64_t deadline_us)
    RL_REQUIRES(&t->mutex)
{
    if (is_node(h))
        rl_group_set_until(h->group, h->member, deadline_us);
    rl_heap_set(&t->expiry, &h->expiry, deadline_us);
    rl_holds_nudge_locked(t, deadline_us);
}

static void set_deadline_locked(rl_holds *t, rl_hold *h, int64_t deadline_us)
    RL_REQUIRES(&t->mutex)
{
    if (h->renewed)
        deadline_us = rl_min(deadline_us, limit_us(t, h));
    put_deadline_locked(t, h, deadline_us);
}

/* Since when may the server not have it? RL_NEVER: it had it until now. */
static int64_t gone_since(const rl_hold *h, rl_loss why)
{
    bool gone = why == RL_LOSS_GONE || why == RL_LOSS_FOREIGN;
    return gone ? h->confirmed_us : RL_NEVER;
}

/* With this hold, or so far unnoticed, the lock of its group was lost: from
   before on, so that who is told by the whole to look again finds it. */
static void report_node_locked(rl_holds *t, rl_hold *h) RL_REQUIRES(&t->mutex)
{
    rl_group_count_loss(h->group, h->name, h->name_len);
    rl_group_raise(h->group);
    if (rl_group_is_told(h->group))
        rl_hold_report_locked(t, h, RLOCK_EVENT_LOST);
}

/* Of a client that is closed nobody is told figures any more. */
static rl_stats *counts_loss(const rl_holds *t, const rl_hold *h, rl_loss why)
{
    return why == RL_LOSS_CLOSED && h->group ? h->group->home->stats : t->stats;
}

void rl_hold_report_loss_locked(rl_holds *t, rl_hold *h, rl_loss why,
                                int64_t now_us)
{
    rl_group *g = h->group;
    if (h->passing) { /* nobody was told of it yet: its thread tries again */
        h->loss = why;
        return;
    }
    bool reported =
        !g || rl_group_lose_one(g, h->member, gone_since(h, why), now_us);
    h->loss = why;
    if (is_node(h)) {
        if (reported)
            report_node_locked(t, h);
        return;
    }
    rl_stats *s = counts_loss(t, h, why);
    rl_stats_add(s, &s->lost[why], h->name, h->name_len, 1);
    if (h->extra)
        rl_alarms_raise(&h->extra->alarms);
    if (reported)
        rl_hold_report_locked(t, h, RLOCK_EVENT_LOST);
}

bool rl_hold_may_join_locked(rl_holds *t, rl_hold *h, int64_t now_us)
{
    if (rl_group_expire(h->group, now_us)) {
        h->loss = RL_LOSS_EXPIRED;
        h->ended_us = now_us;
        report_node_locked(t, h);
    }
    return rl_group_is_owned(h->group);
}

bool rl_hold_join_late_locked(rl_holds *t, rl_hold *h, bool granted,
                              int64_t since_us, int64_t sent_us,
                              int64_t lease_ms, int64_t now_us)
{
    rl_group *g = h->group;
    int64_t end_us = rl_hold_lease_end(h, sent_us, lease_ms);
    bool open = !t->closed && rl_hold_may_join_locked(t, h, now_us);
    if (!granted || !open || end_us <= now_us)
        return false;
    h->lease_ms = lease_ms;
    rl_group_join(g, h->member, since_us, end_us);
    rl_hold_grant_locked(t, h, g->token, sent_us, rl_group_is_renewed(g),
                         now_us);
    h->count = rl_group_count(g);
    return true;
}

static void stop_clocks(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    h->ended_us = now_us;
    rl_hold_end_age_locked(t, h);
    rl_hold_unschedule_locked(t, h);
    rl_hold_leave_queue_locked(t, h);
    rl_heap_remove(&t->expiry, &h->expiry);
    rl_stats_add(t->stats, &t->stats->held_now, h->name, h->name_len, -1);
    rl_stats_held(t->stats, h->name, h->name_len, now_us - h->began_us);
}

void rl_hold_call_next_locked(rl_holds *t, const rl_hold *h, bool rings)
{
    rl_rooms_look(t->rooms, rl_hold_name(h), h->name_len, h->scope, rings);
}

void rl_hold_lose_locked(rl_holds *t, rl_hold *h, rl_loss why, int64_t now_us)
{
    rl_group *g = h->group;
    RL_PROBE(lost, &h->name[0], h->name_len, h->token, why,
             now_us - h->began_us);
    h->state = RL_LOST;
    stop_clocks(t, h, now_us);
    rl_hold_report_loss_locked(t, h, why, now_us);
    rl_hold_call_next_locked(t, h, false); /* a lease that ends rings nobody */
    /* A node that is back may take part again. */
    bool may_be_back = why != RL_LOSS_CLOSED && why != RL_LOSS_TOO_LONG;
    if (is_node(h) && rl_group_is_owned(g) && rl_group_is_renewed(g) &&
        may_be_back)
        rl_hold_vacate_locked(t, h, now_us);
}

static void expire_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    bool too_long = t->max_hold_ms && h->expiry.due_us == oldest_end_us(t, h);
    rl_hold_lose_locked(t, h, too_long ? RL_LOSS_TOO_LONG : RL_LOSS_EXPIRED,
                        now_us);
}

bool rl_hold_is_valid_locked(rl_holds *t, rl_hold *h, int64_t now_us)
{
    if (h->state == RL_HELD && now_us >= h->expiry.due_us)
        expire_locked(t, h, now_us);
    return h->state == RL_HELD;
}

bool rl_hold_renews_locked(rl_holds *t, rl_hold *h, int64_t now_us)
{
    return rl_hold_is_valid_locked(t, h, now_us) && h->renewed && !h->paused;
}

/*
 * A little before the other nodes are renewed: then they are confirmed after
 * this one has it, and it counts when one of them is gone before the next time.
 */
void rl_hold_vacate_locked(rl_holds *t, rl_hold *h, int64_t now_us)
{
    int64_t period_us = rl_hold_renewal_period_us(t, h, now_us);
    h->state = RL_VACANT;
    rl_hold_schedule_locked(t, h, now_us + period_us - period_us / 8);
}

/* As lua/token_ttl.lua has it. */
static int64_t token_life_ms(int64_t lease_ms)
{
    return rl_min(rl_max(2 * lease_ms, TOKEN_LEAST_MS), TOKEN_MOST_MS);
}

void rl_hold_keep_token_locked(rl_holds *t, rl_hold *h, int64_t sent_us)
{
    (void)t;
    h->keeps = false;
    h->kept_s = (uint32_t)(sent_us / 1000000);
}

bool rl_hold_has_to_keep_token_locked(const rl_holds *t, const rl_hold *h,
                                      int64_t now_us)
{
    int64_t for_s = now_us / 1000000 - h->kept_s;
    int64_t life_ms = token_life_ms(t->renewal_ms);
    bool is_short = h->claimed && token_life_ms(h->lease_ms) < life_ms;
    return h->token > 0 && (is_short || for_s >= life_ms / 2000);
}

void rl_hold_grant_locked(rl_holds *t, rl_hold *h, uint64_t token,
                          int64_t sent_us, bool renewed, int64_t now_us)
{
    rl_hold_enter_queue_locked(t, h, now_us);
    h->state = RL_HELD;
    h->token = token;
    h->count = 1;
    h->confirmed_us = sent_us;
    rl_hold_begin_age_locked(t, h, rl_max(sent_us, h->began_us));
    rl_hold_keep_token_locked(t, h, sent_us);
    rl_hold_list_locked(t, h);
    rl_stats_add(t->stats, &t->stats->held_now, h->name, h->name_len, 1);
    h->renewed = renewed;
    set_deadline_locked(t, h, rl_hold_lease_end(h, sent_us, h->lease_ms));
    /* A lease that is shorter than a renewal's (lua/line.lua) is renewed after a
       third of it, too; or now, which is not late. */
    int64_t early_ms =
        h->lease_ms < t->renewal_ms ? t->renewal_ms - h->lease_ms : 0;
    int64_t from_us = sent_us - early_ms * 1000 / 3;
    h->claimed = renewed && early_ms > 0;
    if (h->claimed)
        from_us =
            rl_max(from_us, now_us - rl_hold_renewal_period_us(t, h, from_us));
    if (renewed)
        rl_hold_start_renewal_locked(t, h, from_us, now_us);
    else
        rl_hold_ask_next_locked(t, h, sent_us);
    RL_PROBE(grant, &h->name[0], h->name_len, token);
}

void rl_hold_begin_anew_locked(rl_holds *t, rl_hold *h, int64_t now_us)
{
    rl_hold_begin_age_locked(t, h, now_us);
    put_deadline_locked(t, h, rl_min(h->expiry.due_us, oldest_end_us(t, h)));
}

void rl_hold_expect(rl_hold *h, int64_t now_us, int64_t lease_ms)
{
    h->gone_us = rl_max(h->gone_us, rl_after_ms(now_us, lease_ms));
}

static void lower_cap(uint32_t *cap, int64_t lease_ms)
{
    *cap = (uint32_t)rl_min(*cap, rl_min(lease_ms, RL_NO_CAP - 1));
}

int64_t rl_hold_cap_ms(const rl_hold *h, int64_t sent_us)
{
    const rl_extra *x = h->extra;
    if (!x)
        return RL_NEVER;
    int64_t cap_ms = rl_min(x->cap_ms, x->owed_cap_ms);
    if (sent_us <= x->late_us)
        cap_ms = rl_min(cap_ms, x->late_cap_ms);
    return cap_ms == RL_NO_CAP ? RL_NEVER : cap_ms;
}

int64_t rl_hold_lease_end(const rl_hold *h, int64_t sent_us, int64_t lease_ms)
{
    return rl_lease_deadline(sent_us,
                             rl_min(lease_ms, rl_hold_cap_ms(h, sent_us)));
}

bool rl_hold_was_capped(const rl_hold *h)
{
    const rl_extra *x = h->extra;
    return x && (x->cap_ms != RL_NO_CAP || x->late_cap_ms != RL_NO_CAP ||
                 x->owed > 0);
}

void rl_hold_set_lease_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                              int64_t lease_ms, int64_t now_us)
{
    if (!rl_hold_is_valid_locked(t, h, now_us))
        return;
    h->confirmed_us = rl_max(h->confirmed_us, sent_us);
    h->claimed = false;
    set_deadline_locked(t, h, rl_hold_lease_end(h, sent_us, lease_ms));
}

void rl_hold_prolong_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                            int64_t lease_ms, int64_t now_us)
{
    h->confirmed_us = rl_max(h->confirmed_us, sent_us);
    if (rl_hold_lease_end(h, sent_us, lease_ms) > h->expiry.due_us)
        rl_hold_set_lease_locked(t, h, sent_us, lease_ms, now_us);
}

/*
 * Why a cap on leases is enough: whenever the extend arrives, at T, the server
 * keeps the hold until T + cap. A deadline from a command sent before T is at
 * most that command's time + cap; one sent later makes the TTL long enough
 * again by itself.
 */
static void cap_deadline_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                                int64_t lease_ms) RL_REQUIRES(&t->mutex)
{
    int64_t deadline_us = rl_lease_deadline(sent_us, lease_ms);
    if (h->state == RL_HELD && deadline_us < h->expiry.due_us)
        set_deadline_locked(t, h, deadline_us);
}

void rl_hold_cap_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                        int64_t lease_ms)
{
    lower_cap(&h->extra->cap_ms, lease_ms);
    cap_deadline_locked(t, h, sent_us, lease_ms);
}

void rl_hold_owe_extend_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                               int64_t lease_ms)
{
    h->extra->owed++;
    lower_cap(&h->extra->owed_cap_ms, lease_ms);
    cap_deadline_locked(t, h, sent_us, lease_ms);
}

/* What it was capped for meanwhile is as it should be. */
void rl_hold_settle_extend_locked(rl_holds *t, rl_hold *h, int64_t lease_ms,
                                  int64_t by_us)
{
    rl_extra *x = h->extra;
    (void)t;
    if (--x->owed == 0)
        x->owed_cap_ms = RL_NO_CAP;
    if (by_us == RL_NEVER) {
        lower_cap(&x->cap_ms, lease_ms);
    } else if (by_us > 0) {
        x->late_us = by_us;
        lower_cap(&x->late_cap_ms, lease_ms);
    }
}

int64_t rl_hold_lower_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                             int64_t lease_ms)
{
    int64_t before_us = h->expiry.due_us;
    cap_deadline_locked(t, h, sent_us, lease_ms);
    return before_us;
}

void rl_hold_restore_locked(rl_holds *t, rl_hold *h, int64_t deadline_us,
                            int64_t now_us)
{
    if (rl_hold_is_valid_locked(t, h, now_us) && deadline_us > h->expiry.due_us)
        put_deadline_locked(t, h, deadline_us);
}

int64_t rl_hold_renewal_ms(const rl_holds *t, const rl_hold *h, int64_t sent_us)
{
    return rl_min(t->renewal_ms, rl_hold_cap_ms(h, sent_us));
}

int64_t rl_hold_renewal_period_us(const rl_holds *t, const rl_hold *h,
                                  int64_t sent_us)
{
    return rl_hold_renewal_ms(t, h, sent_us) * 1000 / 3;
}

void rl_hold_start_renewal_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                                  int64_t now_us)
{
    if (!rl_hold_is_valid_locked(t, h, now_us))
        return;
    h->renewed = true;
    h->paused = false;
    rl_hold_ask_next_locked(t, h, sent_us);
}

/*
 * A look, at one that is not renewed, does no harm. Of one whose owner has
 * ended meanwhile the undo is due, which is no renewal.
 */
void rl_hold_pause_renewal_locked(rl_holds *t, rl_hold *h)
{
    h->paused = true;
    if (h->renewed && h->state != RL_UNDOING)
        rl_hold_unschedule_locked(t, h);
}

void rl_hold_stop_renewal_locked(rl_holds *t, rl_hold *h)
{
    rl_hold_pause_renewal_locked(t, h);
    h->renewed = h->paused = false;
    rl_hold_ask_next_locked(t, h, 0);
}

void rl_hold_end_locked(rl_holds *t, rl_hold *h, int64_t now_us)
{
    if (h->state == RL_HELD) {
        RL_PROBE(release, &h->name[0], h->name_len, h->token,
                 now_us - h->began_us);
        stop_clocks(t, h, now_us);
        if (is_node(h)) /* it was had as long as it was wanted */
            rl_group_set_until(h->group, h->member, RL_NEVER);
    }
    rl_hold_unschedule_locked(t, h);
    h->state = RL_OVER;
    rl_hold_unlist_locked(t, h);
    if (h->extra)
        rl_alarms_end(&h->extra->alarms);
    h->reports &= 1u << RLOCK_EVENT_LOST; /* renewals are of no interest now */
}

void rl_hold_undo_locked(rl_holds *t, rl_hold *h, int64_t due_us)
{
    h->state = RL_UNDOING;
    t->undoing++;
    t->uncounted += h->scope == RL_LATCH_SCOPE;
    if (h->unknown) /* a server that was stopped may execute it yet */
        h->gone_us = rl_max(h->gone_us, rl_after_ms(due_us, RL_LATE_MS));
    rl_hold_schedule_locked(t, h, due_us);
}

void rl_hold_drop_locked(rl_holds *t, rl_hold *h, bool undo, int64_t due_us)
{
    if (undo)
        rl_hold_undo_locked(t, h, due_us);
    else
        rl_hold_unref_locked(t, h);
}

rl_extra *rl_hold_make_extra(rl_hold *h)
{
    rl_extra *x = h->extra ? NULL : calloc(1, sizeof *x);
    if (!x)
        return h->extra;
    x->cap_ms = x->late_cap_ms = x->owed_cap_ms = RL_NO_CAP;
    h->extra = x;
    return x;
}

void rl_hold_join(rl_hold *h, rl_group *g)
{
    h->group = g;
    rl_group_ref(g);
}

bool rl_hold_keep_spare(rl_hold *h, struct rl_part *x)
{
    if (!is_node(h) || h->group->spare[h->member])
        return false;
    h->group->spare[h->member] = x;
    return true;
}

struct rl_part *rl_hold_take_spare(rl_hold *h)
{
    if (!is_node(h))
        return NULL;
    struct rl_part *x = h->group->spare[h->member];
    h->group->spare[h->member] = NULL;
    return x;
}

bool rl_hold_lingers(const rl_hold *h)
{
    return h->loss == RL_LOSS_EXPIRED || h->loss == RL_LOSS_TOO_LONG ||
           h->loss == RL_LOSS_GROUP ||
           (h->loss == RL_LOSS_GONE && h->record->weight > 1);
}

void rl_hold_undone_locked(rl_holds *t, rl_hold *h)
{
    h->state = RL_OVER;
    t->undoing--;
    t->uncounted -= h->scope == RL_LATCH_SCOPE;
    rl_hold_unref_locked(t, h);
}

/* Its name is host:pid:tid: or host:pid:tid/label: */
bool rl_owner_record_owner(const rl_owner_record *x, const char **text,
                           size_t *len)
{
    const char *end = x->name + x->name_len - 1, *tid = end;
    while (tid > x->name && tid[-1] != ':')
        tid--;
    const char *label = memchr(tid, '/', (size_t)(end - tid));
    *text = label ? label + 1 : tid;
    *len = (size_t)(end - *text);
    return label != NULL;
}

/* Whom the server knows it by. */
static const rl_owner_record *named(const rl_hold *h)
{
    const rl_extra *x = h->extra;
    return x && x->starter ? x->starter : h->record;
}

size_t rl_hold_id_len(const rl_hold *h)
{
    return named(h)->name_len + RL_UUID_LEN;
}

void rl_hold_write_id(const rl_hold *h, char *out)
{
    const rl_owner_record *x = named(h);
    memcpy(out, x->name, x->name_len);
    rl_uuid_write(&h->id, out + x->name_len);
}
