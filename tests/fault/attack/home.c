#include "home.h"

#include <stdlib.h>

#include "sentinels.h"

enum { SERVERS_MAX = 6, SENTINELS = 3, HEALTH_MS = 60000 };

struct home {
    home_kind kind;
    int n;
    server *sv[SERVERS_MAX];
    int master; /* with Sentinels: which of the two */
    sentinels *s;
};

/* One that comes back has to catch up soon, and to have what it had promised.
 */
static const char *arguments(void)
{
    return server_unlocked(
        SERVER_DURABLE " --lua-time-limit 100 --repl-diskless-sync-delay 0");
}

/* --- Sentinels ------------------------------------------------------------ */

/*
 * Each starts as a master of its own, as whoever has been down comes back, and
 * is told by command whom it follows: an argument would outlive a failover.
 */
static void start_watched(home *h)
{
    for (h->n = 0; h->n < 2; h->n++)
        h->sv[h->n] = server_start_tcp(arguments());
    server_cmd(h->sv[1], "REPLICAOF 127.0.0.1 %d", server_port(h->sv[0]));
    EVENTUALLY(HEALTH_MS, replica_follows(h->sv[0]));
    h->s = sentinels_start(h->sv[0], SENTINELS);
    for (int i = 0; i < SENTINELS; i++) {
        /* Quicker ones take a promotion that is under way for a mistake, and a
           new master for dead that has too much to do. */
        sentinels_say(h->s, i, "SENTINEL DEBUG publish-period 1000");
        sentinels_say(h->s, i,
                      "SENTINEL SET " SENTINELS_MASTER
                      " down-after-milliseconds 600");
    }
}

static bool watched_is_well(home *h)
{
    for (h->master = 0; h->master < h->n; h->master++)
        if (sentinels_agree(h->s, h->sv[h->master]))
            return replica_follows(h->sv[h->master]);
    return false;
}

/* --- whichever it is ------------------------------------------------------ */

home *home_start(home_kind kind)
{
    home *h = calloc(1, sizeof *h);
    EXPECT(h);
    h->kind = kind;
    if (kind == WATCHED)
        start_watched(h);
    else
        h->sv[h->n++] = server_start(arguments());
    home_await_health(h);
    return h;
}

void home_stop(home *h)
{
    if (h->s)
        sentinels_stop(h->s);
    for (int i = 0; i < h->n; i++)
        server_stop(h->sv[i]);
    free(h);
}

const char *home_uri(const home *h)
{
    return h->kind == WATCHED ? sentinels_uri(h->s) : server_uri(h->sv[0]);
}

void home_await_health(home *h)
{
    EVENTUALLY(HEALTH_MS, h->kind != WATCHED || watched_is_well(h));
}

int home_masters(const home *h, server *masters[MASTERS_MAX])
{
    masters[0] = h->sv[h->master];
    return 1;
}

server *home_heir(const home *h, const server *master)
{
    return h->sv[master == h->sv[0]];
}

int64_t home_epoch(const home *h)
{
    return h->kind == WATCHED ? sentinels_epoch(h->s) : 0;
}

void home_await_master(home *h, server *sv)
{
    EVENTUALLY(HEALTH_MS, sentinels_naming(h->s, sv) == SENTINELS);
}

void home_fail_over(home *h, server *heir)
{
    sentinels_fail_over(h->s);
    home_await_master(h, heir);
}
