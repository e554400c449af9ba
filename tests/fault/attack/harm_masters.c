/*
 * What concerns a master that has a replica. It begins when that has all, and
 * the repair is over when another one may go; see nemesis_strike().
 */
#include "harm.h"

/* Stays down until another one has its place, and becomes a replica. */
bool master_killed(nemesis *n, fault *f)
{
    server *master = n->sv[HOME];
    (void)f;
    server_kill(master);
    home_await_master(n->home, home_heir(n->home, master));
    pause_ms(some_ms(n, SHORT_MS));
    server_restart(master);
    return true;
}

/* It goes on as a master, with what it has in its sockets. */
bool master_stopped(nemesis *n, fault *f)
{
    server *master = n->sv[HOME];
    (void)f;
    server_pause(master);
    home_await_master(n->home, home_heir(n->home, master));
    pause_ms(some_ms(n, SHORT_MS));
    server_resume(master);
    return true;
}

bool master_relieved(nemesis *n, fault *f)
{
    (void)f;
    home_fail_over(n->home, home_heir(n->home, n->sv[HOME]));
    return true;
}

bool replica_killed(nemesis *n, fault *f)
{
    server *replica = home_heir(n->home, n->sv[HOME]);
    (void)f;
    server_kill(replica);
    pause_ms(some_ms(n, SHORT_MS));
    server_restart(replica);
    return true;
}
