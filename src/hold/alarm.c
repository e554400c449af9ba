#include "hold/alarm.h"

#include <stdlib.h>
#include <string.h>

void rl_alarm_init(rl_alarm *a, const rl_uuid *of)
{
    atomic_init(&a->refs, 1);
    rl_mutex_init(&a->mutex, RL_RANK_ALARM);
    a->raised = a->over = false;
    a->of = *of;
}

void rl_alarm_unref(rl_alarm *a)
{
    if (atomic_fetch_sub(&a->refs, 1) != 1)
        return;
    if (rl_mutex_retire(&a->mutex) && !a->over)
        a->close(a);
    free(a);
}

static void raise_alarm(rl_alarm *a)
{
    rl_mutex_lock(&a->mutex);
    if (!a->raised && !a->over)
        a->raise(a);
    a->raised = true;
    rl_mutex_unlock(&a->mutex);
}

void rl_alarm_end(rl_alarm *a)
{
    rl_mutex_lock(&a->mutex);
    if (!a->over)
        a->close(a);
    a->over = true;
    rl_mutex_unlock(&a->mutex);
}

static bool is_over(rl_alarm *a)
{
    rl_mutex_lock(&a->mutex);
    bool over = a->over;
    rl_mutex_unlock(&a->mutex);
    return over;
}

rl_alarm *rl_alarms_find(const rl_alarms *l, const rl_uuid *of)
{
    for (rl_alarm_link *k = l->first; k; k = k->next) {
        rl_alarm *a = k->alarm;
        if (memcmp(&a->of, of, sizeof *of) == 0 && !is_over(a)) {
            atomic_fetch_add(&a->refs, 1);
            return a;
        }
    }
    return NULL;
}

/* Takes off the first of what *from leads to. */
static void drop(rl_alarm_link **from)
{
    rl_alarm_link *k = *from;
    *from = k->next;
    rl_alarm_unref(k->alarm);
    free(k);
}

/* Of Multi locks that are over, though this member is still held. */
static void drop_those_over(rl_alarms *l)
{
    rl_alarm_link **k = &l->first;
    while (*k) {
        if (is_over((*k)->alarm))
            drop(k);
        else
            k = &(*k)->next;
    }
}

static bool add(rl_alarms *l, rl_alarm *a)
{
    rl_alarm_link *k = malloc(sizeof *k);
    if (!k)
        return false;
    atomic_fetch_add(&a->refs, 1);
    *k = (rl_alarm_link){a, l->first};
    l->first = k;
    return true;
}

bool rl_alarms_add(rl_alarms *l, rl_alarm *a, bool lost)
{
    drop_those_over(l);
    if (lost)
        raise_alarm(a);
    return add(l, a);
}

void rl_alarms_raise(rl_alarms *l)
{
    for (rl_alarm_link *k = l->first; k; k = k->next)
        raise_alarm(k->alarm);
}

void rl_alarms_end(rl_alarms *l)
{
    for (rl_alarm_link *k = l->first; k; k = k->next)
        rl_alarm_end(k->alarm);
    rl_alarms_leave(l);
}

void rl_alarms_keep(const rl_alarms *l, rl_alarms *in)
{
    for (rl_alarm_link *k = l->first; k; k = k->next)
        (void)add(in, k->alarm);
}

void rl_alarms_hand_over(rl_alarms *l, rl_alarms *to)
{
    rl_alarms_raise(l);
    rl_alarms_keep(l, to);
    rl_alarms_leave(l);
}

void rl_alarms_leave(rl_alarms *l)
{
    while (l->first)
        drop(&l->first);
}
