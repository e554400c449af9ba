/*
 * What concerns a master that has a replica. It begins when that has all, and
 * the repair is over when another one may go; see nemesis_strike().
 */
#include "harm.h"

#include "locks.h"

/* Stays down until another one has its place, and becomes a replica. */
bool master_killed(nemesis *n, fault *f)
{
    server *master = n->sv[HOME], *heir = home_heir(n->home, master);
    (void)f;
    home_kill(n->home, master);
    home_await_master(n->home, heir);
    pause_ms(some_ms(n, SHORT_MS));
    home_restart(n->home, master);
    return true;
}

/* It goes on as a master, with what it has in its sockets. */
bool master_stopped(nemesis *n, fault *f)
{
    server *master = n->sv[HOME], *heir = home_heir(n->home, master);
    (void)f;
    home_pause(n->home, master);
    home_await_master(n->home, heir);
    pause_ms(some_ms(n, SHORT_MS));
    home_resume(n->home, master);
    return true;
}

bool master_relieved(nemesis *n, fault *f)
{
    (void)f;
    home_fail_over(n->home, home_heir(n->home, n->sv[HOME]));
    return true;
}

bool replica_takes_over(nemesis *n, fault *f)
{
    (void)f;
    home_take_over(n->home, home_heir(n->home, n->sv[HOME]));
    return true;
}

bool replica_killed(nemesis *n, fault *f)
{
    server *replica = home_heir(n->home, n->sv[HOME]);
    (void)f;
    home_kill(n->home, replica);
    pause_ms(some_ms(n, SHORT_MS));
    home_restart(n->home, replica);
    return true;
}

bool home_made_anew(nemesis *n, fault *f)
{
    (void)f;
    home_make_anew(n->home);
    return true;
}

bool slot_moved(nemesis *n, fault *f)
{
    char key[LOCK_KEY_MAX];
    if (f->servers != 1U << HOME)
        return false;
    lock_key(f->lock, key);
    home_move_slot(n->home, key, some_ms(n, SHORT_MS), &n->rng);
    return true;
}
