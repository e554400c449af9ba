#include "hold/step.h"

#include "base/clock.h"
#include "hold/due.h"

/* --- what is so ----------------------------------------------------------- */

bool rl_hold_is_valid(rl_holds *t, rl_hold *h, rl_loss *why, int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    bool valid = rl_hold_is_valid_locked(t, h, now_us);
    if (why)
        *why = h->loss;
    rl_mutex_unlock(&t->mutex);
    return valid;
}

bool rl_holds_has(rl_holds *t, const rl_target *what, const rl_owner *owner,
                  int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    rl_hold *h = rl_holds_find_locked(t, what, owner->serial);
    bool has = h && rl_hold_is_valid_locked(t, h, now_us);
    rl_mutex_unlock(&t->mutex);
    return has;
}

int64_t rl_hold_deadline(rl_holds *t, rl_hold *h, int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    bool valid = rl_hold_is_valid_locked(t, h, now_us);
    int64_t us = valid ? h->expiry.due_us : 0;
    rl_mutex_unlock(&t->mutex);
    return us;
}

bool rl_hold_is_renewed(rl_holds *t, const rl_hold *h)
{
    rl_mutex_lock(&t->mutex);
    bool renewed = h->renewed;
    rl_mutex_unlock(&t->mutex);
    return renewed;
}

bool rl_hold_compares(rl_holds *t, const rl_hold *h)
{
    rl_mutex_lock(&t->mutex);
    bool compares = rl_hold_compares_locked(h);
    rl_mutex_unlock(&t->mutex);
    return compares;
}

bool rl_hold_has_ended(rl_holds *t, const rl_hold *h)
{
    rl_mutex_lock(&t->mutex);
    bool ended = rl_hold_has_ended_locked(h);
    rl_mutex_unlock(&t->mutex);
    return ended;
}

bool rl_hold_has_landed(rl_holds *t, rl_hold *h, rl_waker *waker)
{
    rl_mutex_lock(&t->mutex);
    rl_extra *x = rl_hold_make_extra(h);
    bool landed = !x || !h->in_flight;
    if (x)
        x->landing = landed ? NULL : waker;
    rl_mutex_unlock(&t->mutex);
    return landed;
}

/* --- what is noted -------------------------------------------------------- */

void rl_hold_ref(rl_holds *t, rl_hold *h)
{
    rl_mutex_lock(&t->mutex);
    h->refs++;
    rl_mutex_unlock(&t->mutex);
}

void rl_hold_set_line(rl_holds *t, rl_hold *h, const struct rl_line *line)
{
    rl_mutex_lock(&t->mutex);
    h->asked_on = line;
    rl_mutex_unlock(&t->mutex);
}

void rl_hold_go_astray(rl_holds *t, rl_hold *h)
{
    rl_mutex_lock(&t->mutex);
    h->astray = true;
    rl_mutex_unlock(&t->mutex);
}

void rl_hold_go_deep(rl_holds *t, rl_hold *h, bool astray)
{
    rl_mutex_lock(&t->mutex);
    h->deep = true;
    h->astray = h->astray || astray;
    rl_mutex_unlock(&t->mutex);
}

void rl_hold_come_up(rl_holds *t, rl_hold *h)
{
    rl_mutex_lock(&t->mutex);
    h->deep = false;
    rl_mutex_unlock(&t->mutex);
}

bool rl_hold_keep_late_spare(rl_holds *t, rl_hold *h, struct rl_part *x)
{
    rl_mutex_lock(&t->mutex);
    bool keeps = h->state == RL_HELD && rl_hold_keep_spare(h, x);
    rl_mutex_unlock(&t->mutex);
    return keeps;
}

void rl_hold_begin_turn(rl_holds *t, rl_hold *draft, int64_t sent_us,
                        unsigned left)
{
    rl_extra *x = rl_hold_make_extra(draft);
    if (!x)
        return;
    x->starter = draft->record;
    x->turn_us = sent_us;
    x->left = left;
    rl_mutex_lock(&t->mutex);
    x->starter->refs++;
    rl_mutex_unlock(&t->mutex);
}

/* --- what becomes of it --------------------------------------------------- */

rl_loss rl_hold_note_gone(rl_holds *t, rl_hold *h, rl_loss why, int64_t sent_us,
                          int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    bool anew = sent_us < h->began_us;
    if (rl_hold_is_valid_locked(t, h, now_us) && !anew)
        rl_hold_lose_locked(t, h, why, now_us);
    why = h->loss;
    rl_mutex_unlock(&t->mutex);
    return why;
}

void rl_hold_report_loss(rl_holds *t, rl_hold *h, rl_loss why, int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    rl_hold_report_loss_locked(t, h, why, now_us);
    rl_mutex_unlock(&t->mutex);
}

void rl_hold_pause_renewal(rl_holds *t, rl_hold *h)
{
    rl_mutex_lock(&t->mutex);
    rl_hold_pause_renewal_locked(t, h);
    rl_mutex_unlock(&t->mutex);
}

int64_t rl_hold_lower(rl_holds *t, rl_hold *h, int64_t sent_us,
                      int64_t lease_ms)
{
    rl_mutex_lock(&t->mutex);
    int64_t before_us = rl_hold_lower_locked(t, h, sent_us, lease_ms);
    rl_mutex_unlock(&t->mutex);
    return before_us;
}

void rl_hold_undo(rl_holds *t, rl_hold *h, int64_t due_us)
{
    rl_mutex_lock(&t->mutex);
    rl_hold_undo_locked(t, h, due_us);
    rl_mutex_unlock(&t->mutex);
}

void rl_hold_drop(rl_holds *t, rl_hold *h, bool undo, int64_t due_us)
{
    rl_mutex_lock(&t->mutex);
    rl_hold_drop_locked(t, h, undo, due_us);
    rl_mutex_unlock(&t->mutex);
}

void rl_hold_lapse(rl_holds *t, rl_hold *h)
{
    rl_mutex_lock(&t->mutex);
    if (h->renewed)
        rl_hold_stop_renewal_locked(t, h);
    rl_mutex_unlock(&t->mutex);
}

bool rl_hold_arrive(rl_holds *t, rl_hold *h, int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    bool valid = rl_hold_is_valid_locked(t, h, now_us);
    h->passing = false;
    if (valid)
        rl_hold_list_locked(t, h);
    else
        rl_hold_end_locked(t, h, now_us);
    rl_mutex_unlock(&t->mutex);
    return valid;
}

void rl_hold_list_absent(rl_holds *t, rl_hold *h, bool answered, int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    rl_hold_list_locked(t, h);
    h->count = 1;
    if (answered && rl_group_is_renewed(h->group))
        rl_hold_vacate_locked(t, h, now_us);
    else if (answered)
        h->state = RL_VACANT;
    rl_mutex_unlock(&t->mutex);
}

void rl_hold_set_policy(rl_holds *t, rl_hold *h, bool renewed, int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    if (h->state == RL_VACANT && renewed && !h->in_flight)
        rl_hold_schedule_locked(t, h, now_us);
    if (h->state == RL_HELD && renewed && !h->renewed)
        rl_hold_start_renewal_locked(
            t, h, now_us - rl_hold_renewal_period_us(t, h, now_us), now_us);
    else if (h->state == RL_HELD && renewed && h->paused)
        rl_hold_resume_renewal_locked(t, h, now_us);
    else if (h->state == RL_HELD && !renewed && h->renewed)
        rl_hold_stop_renewal_locked(t, h);
    rl_mutex_unlock(&t->mutex);
}
