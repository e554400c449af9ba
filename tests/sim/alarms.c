/*
 * Descriptors that tell of losses. Who polls one sleeps for as long as he has
 * what he took, whatever happens; it is readable when he has lost it, and not
 * before.
 */
#include <poll.h>

#include "judge.h"

static bool is_readable(int fd, int64_t ms)
{
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, (int)ms) > 0;
}

/* No descriptor is for what is not held, any more. */
static void check_refusal(const owner *o, int lock, int64_t since)
{
    rlock_status s = rlock_last_error()->status;
    if (s != RLOCK_NOT_HELD && !o->g->closing_at &&
        !judge_excuses(o->g, s, since))
        finding("judge 4: owner %d has no descriptor of %s: %s", o->id,
                locks[lock].name, rlock_status_str(s));
}

static void check_silence(const owner *o, int lock, int fd)
{
    if (judge_slack() >= 100 * S)
        return;
    sleep_for(20 * MS + judge_slack());
    if (!o->g->closing_at && !is_readable(fd, 0))
        finding("judge 4: owner %d has lost %s, and the descriptor does not "
                "tell",
                o->id, locks[lock].name);
}

void act_mind(owner *o)
{
    int lock = o->taken[chance_below(&o->dice, o->taken_n)];
    int64_t ms = chance_skewed(&o->dice, cfg.hold_ms);
    rlock *lk = owner_handle(o, lock);
    int64_t since = w.now;
    int fd = cfg.close_at_ms > 0 ? -1 : rlock_lost_fd(lk);
    if (cfg.close_at_ms > 0)
        return; /* it may be closed while it is polled */
    if (fd < 0) {
        check_refusal(o, lock, since);
        return;
    }
    trace("owner %d minds %s for %lld ms", o->id, locks[lock].name,
          (long long)ms);
    bool told = is_readable(fd, ms);
    bool is_held = rlock_is_held(lk);
    trace("owner %d is told %s", o->id, told ? "of a loss" : "nothing");
    if (told && is_held)
        finding("judge 4: owner %d has %s, and the descriptor tells of a loss",
                o->id, locks[lock].name);
    if (!told && !is_held)
        check_silence(o, lock, fd);
    look_at_all(o);
}
