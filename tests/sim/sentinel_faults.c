/*
 * What happens where Sentinels watch: the master dies, or is told to step down
 * while it lives; somebody makes another one the master by hand, and has the
 * Sentinels watch that, with epochs that begin anew; one of them contradicts
 * the others for a while, with an epoch of any height.
 */
#include <stdio.h>
#include <string.h>

#include "change.h"
#include "judge.h"
#include "sentinel.h"

static bool keeps; /* the heir has what had to be with a replica */

static event hears[SENTINELS], ends_lie[SENTINELS];

/* --- who says what -------------------------------------------------------- */

/* "name old-ip old-port new-ip new-port", to who listens. */
static void announce(server *s, int old, int heir)
{
    static text out;
    word channel = {"+switch-master", 14};
    char said[100];
    int n = snprintf(said, sizeof said, "%s 127.0.0.1 %d 127.0.0.1 %d",
                     SENTINEL_NAME, servers[old].port, servers[heir].port);
    word publish[] = {{"PUBLISH", 7}, channel, {said, (size_t)n}};
    out.len = 0;
    if (server_is_up(s))
        store_command(&s->store, publish, 3, &out);
}

static void hear(event *e)
{
    int i = (int)(e - hears), old = says[i].master;
    says[i] = office;
    trace("Sentinel %d says that server %d is the master, epoch %lld", i,
          office.master, (long long)office.epoch);
    if (old != office.master)
        announce(sentinel_of(i), old, office.master);
}

/* Each after a while; when all have. */
static int64_t spread(void)
{
    int64_t all = 0;
    for (int i = 0; i < SENTINELS; i++) {
        int64_t ns = US + chance_skewed(&w.dice, cfg.gossip_us * US);
        hears[i].fire = hear;
        event_clear(&ends_lie[i]);
        event_set(&hears[i], w.now + ns);
        all = ns > all ? ns : all;
    }
    return all;
}

/* --- a failover ----------------------------------------------------------- */

static bool draw_heir(void)
{
    int n = servers_n - SENTINELS;
    int first = (int)chance_below(&w.dice, n);
    if (change.is_on || !server_is_up(&servers[office.master]))
        return false;
    for (int i = 0; i < n; i++) {
        const server *s = &servers[(first + i) % n];
        if (server_is_up(s) && replica_is_synced(s)) {
            change_begin(office.master, s->index);
            return true;
        }
    }
    return false;
}

/* The others copy it; who is dead is told when he is back. Until then: how
   long until all Sentinels say so. */
static int64_t promote(int64_t epoch)
{
    trace("server %d is the master in place of %d", change.heir, change.old);
    keeps = cfg.min_replicas > 0 && replica_is_synced(&servers[change.heir]);
    replica_follow(&servers[change.heir], NULL);
    office = (sentinel_view){.master = change.heir, .epoch = epoch};
    for (int i = 0; i < servers_n - SENTINELS; i++)
        if (i != change.heir && i != change.old)
            replica_follow(&servers[i], &servers[change.heir]);
    return spread();
}

/* After that all learn of it. */
static void note_loss(int64_t learned, int64_t grace)
{
    if (!keeps)
        judge_shake(judge_things_at(office.master), change.began,
                    w.now + learned);
    judge_replaced(judge_things_at(office.master), w.now + learned, grace);
}

static void convert(event *e)
{
    (void)e;
    server_restart(&servers[change.old], 0); /* cuts its connections */
    replica_follow(&servers[change.old], &servers[office.master]);
    change_then(change_settled, S);
}

/* For a while it thinks that it is the master still, and grants to who has not
   heard of the other. */
static void come_back(event *e)
{
    int64_t ns = 10 * MS + chance_skewed(&w.dice, 2 * S);
    (void)e;
    server_start(&servers[change.old]);
    if (cfg.min_replicas == 0)
        judge_shake(judge_things_at(office.master), change.began, w.now + ns);
    change_then(convert, ns);
}

static void replace(event *e)
{
    (void)e;
    int64_t learned = promote(office.epoch + 1);
    note_loss(learned, 0);
    change_then(come_back, learned + 50 * MS + chance_skewed(&w.dice, 4 * S));
}

static void notice(event *e)
{
    (void)e;
    says[chance_below(&w.dice, SENTINELS)].is_passing = true;
    change_then(replace, 20 * MS + chance_skewed(&w.dice, 500 * MS));
}

static void kill_master(void)
{
    if (!draw_heir())
        return;
    server_kill(&servers[change.old], chance_below(&w.dice, 2));
    change_then(notice, 20 * MS + chance_skewed(&w.dice, cfg.failover_us * US));
}

/* SENTINEL FAILOVER: the old one grants on until it is told. */
static void take_over(void)
{
    if (!draw_heir())
        return;
    int64_t told = MS + chance_skewed(&w.dice, cfg.gossip_us * US);
    int64_t learned = promote(office.epoch + 1);
    note_loss(told > learned ? told : learned, 0);
    change_then(convert, told);
}

/* --- epochs that begin anew ----------------------------------------------- */

static void watch_anew(event *e)
{
    (void)e;
    int64_t learned = promote(0);
    /* It is believed at the third asking; they are up to 2 s apart. */
    note_loss(learned, 8 * S);
    change_then(come_back, learned + 12 * S);
}

/* The master is dead for good; REMOVE and MONITOR at each Sentinel. */
static void begin_anew(void)
{
    if (!draw_heir())
        return;
    trace("the Sentinels are to watch another master");
    server_kill(&servers[change.old], chance_below(&w.dice, 2));
    change_then(watch_anew, 100 * MS + chance_skewed(&w.dice, S));
}

/* --- one who contradicts -------------------------------------------------- */

static void end_lie(event *e)
{
    int i = (int)(e - ends_lie);
    says[i] = office;
}

static void contradict(void)
{
    int i = (int)chance_below(&w.dice, SENTINELS);
    int other = (int)chance_below(&w.dice, servers_n - SENTINELS);
    if (change.is_on || ends_lie[i].pos || hears[i].pos)
        return;
    for (int k = 0; k < SENTINELS; k++)
        if (ends_lie[k].pos)
            return; /* most say what is so */
    int64_t epoch = office.epoch + chance_between(&w.dice, -1, 3);
    trace("Sentinel %d says that server %d is the master, epoch %lld", i, other,
          (long long)epoch);
    says[i].master = other;
    says[i].epoch = epoch < 0 ? 0 : epoch;
    announce(sentinel_of(i), office.master, other);
    ends_lie[i].fire = end_lie;
    event_set(&ends_lie[i], w.now + chance_skewed(&w.dice, 15 * S));
}

/* --- all of them ---------------------------------------------------------- */

static const struct {
    const int64_t *ppm;
    void (*strike)(void);
} faults[] = {
    {&cfg.death_ppm, kill_master},
    {&cfg.takeover_ppm, take_over},
    {&cfg.anew_ppm, begin_anew},
    {&cfg.contradict_ppm, contradict},
};

void sentinel_strike(void)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (fault_is_due(*faults[i].ppm))
            faults[i].strike();
}
