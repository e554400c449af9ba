/*
 * The descriptor of rlock_lost_fd(). A kind leads to its holds' alarms; here
 * they are looked through up to three times: for the ids, for an alarm that is
 * there already, and to leave a new one. In between a mutex is given back, but
 * only the calling thread unlocks its holds. What is lost meanwhile raises an
 * alarm when it is left.
 */
#include <errno.h>
#include <string.h>

#include "lock/lock.h"
#include "run/lost_fd.h"

typedef struct search {
    rl_alarm_visit visit;
    rl_uuid of;
    rl_alarm *alarm; /* referenced; NULL: none yet */
    bool lacking;    /* out of memory */
} search;

static search *search_of(rl_alarm_visit *v)
{
    return RL_CONTAINER(v, search, visit);
}

static void note_id(rl_alarm_visit *v, rl_alarms *l, const rl_uuid *hold,
                    bool lost)
{
    search *s = search_of(v);
    (void)l;
    (void)lost;
    for (size_t i = 0; i < sizeof hold->bytes; i++)
        s->of.bytes[i] ^= hold->bytes[i];
}

static void find(rl_alarm_visit *v, rl_alarms *l, const rl_uuid *hold,
                 bool lost)
{
    search *s = search_of(v);
    (void)hold;
    (void)lost;
    if (!s->alarm)
        s->alarm = rl_alarms_find(l, &s->of);
}

static void leave_alarm(rl_alarm_visit *v, rl_alarms *l, const rl_uuid *hold,
                        bool lost)
{
    search *s = search_of(v);
    (void)hold;
    s->lacking = s->lacking || !rl_alarms_add(l, s->alarm, lost);
}

static bool visit(search *s, rlock *lk,
                  void (*at)(rl_alarm_visit *v, rl_alarms *l,
                             const rl_uuid *hold, bool lost))
{
    s->visit.at = at;
    return lk->kind->visit_alarms(lk, &s->visit) == RLOCK_OK;
}

static bool lacks(const rlock *lk, int err)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_ENOMEM, err == ENOMEM ? 0 : err,
                 err == ENOMEM ? "out of memory" : "no descriptor can be had");
    rl_lock_fail(lk, &f);
    return false;
}

static bool make(search *s, rlock *lk)
{
    s->alarm = rl_lost_fd_new(&s->of);
    if (!s->alarm)
        return lacks(lk, errno);
    bool ok = visit(s, lk, leave_alarm);
    if (ok && s->lacking)
        ok = lacks(lk, ENOMEM);
    if (!ok)
        rl_alarm_end(s->alarm);
    return ok;
}

int rl_lock_lost_fd(rlock *lk)
{
    search s = {.alarm = NULL};
    bool ok = visit(&s, lk, note_id) && visit(&s, lk, find) &&
              (s.alarm || make(&s, lk));
    int fd = ok ? rl_lost_fd(s.alarm) : -1;
    if (s.alarm)
        rl_alarm_unref(s.alarm);
    return fd;
}
