/* The table of judges, and what of the world relaxes them. */
#include "judge.h"

hold *holds[THINGS_MAX];

static const judge *const judges[] = {
    &judge_holding, &judge_tokens,  &judge_losses,
    &judge_calls,   &judge_rest,    &judge_watch,
    &judge_work,    &judge_latches, &judge_semaphores};

#define JUDGES (sizeof judges / sizeof *judges)

void judge_called(const act *a)
{
    for (size_t i = 0; i < JUDGES; i++)
        if (judges[i]->called)
            judges[i]->called(a);
}

void judge_taken(hold *h)
{
    for (size_t i = 0; i < JUDGES; i++)
        if (judges[i]->taken)
            judges[i]->taken(h);
}

void judge_looked(hold *h, const look *l)
{
    for (size_t i = 0; i < JUDGES; i++)
        if (judges[i]->looked)
            judges[i]->looked(h, l);
}

void judge_told(program *g, const rlock_event *e)
{
    for (size_t i = 0; i < JUDGES; i++)
        if (judges[i]->told)
            judges[i]->told(g, e);
}

void judge_closed(program *g, int client, rlock_status s)
{
    for (size_t i = 0; i < JUDGES; i++)
        if (judges[i]->closed)
            judges[i]->closed(g, client, s);
}

void judge_executing(const call *c)
{
    for (size_t i = 0; i < JUDGES; i++)
        if (judges[i]->executing)
            judges[i]->executing(c);
}

void judge_executed(const call *c, const text *reply)
{
    for (size_t i = 0; i < JUDGES; i++)
        if (judges[i]->executed)
            judges[i]->executed(c, reply);
}

void judge_rang(server *s, const word *bell, const word *name)
{
    for (size_t i = 0; i < JUDGES; i++)
        if (judges[i]->rang)
            judges[i]->rang(s, bell, name);
}

void judge_ended(void)
{
    for (size_t i = 0; i < JUDGES; i++)
        if (judges[i]->ended)
            judges[i]->ended();
}

int64_t judge_slack(void)
{
    if (cfg.calm)
        return 50 * MS;
    if (cfg.stall_ppm > 0 || cfg.change_ppm > 0)
        return 1000 * S; /* any thread may be late by seconds */
    int64_t wake = cfg.latency_us * US << (cfg.mode == 1 ? 7 : 0);
    if (cfg.mode == 2) /* the last may have to wait for its second's end */
        wake += S / 50;
    return 300 * MS + 50 * wake;
}

int64_t judge_callbacks(void)
{
    return cfg.callback_us * US * 50;
}

bool judge_excuses(const program *g, rlock_status s, int64_t since)
{
    int64_t dial = cfg.connect_ms * MS + judge_slack();
    return s == RLOCK_ENOMEM && memory_was_short(&g->p, since - dial, w.now);
}

/* --- shocks --------------------------------------------------------------- */

#define SHOCKS_MAX 16384

static struct {
    unsigned things;
    int64_t from, to;
} shocks[SHOCKS_MAX];
static int shocks_n;

/* While one thread turns and turns, another one being kept from running, faults
   strike every few microseconds; those are one. */
static bool is_aftershock(unsigned which, int64_t from, int64_t to)
{
    for (int i = shocks_n; i > 0 && i > shocks_n - 16; i--) {
        if (shocks[i - 1].things != which || from - shocks[i - 1].to > MS)
            continue;
        if (shocks[i - 1].to < to)
            shocks[i - 1].to = to;
        return true;
    }
    return false;
}

/* With turns a hold is passed on for so long without the server. */
void judge_shake(unsigned which, int64_t from, int64_t to)
{
    to += cfg.turn_ms * MS;
    if (which == 0 || is_aftershock(which, from, to))
        return;
    if (shocks_n == SHOCKS_MAX)
        finding("the world has too many shocks");
    shocks[shocks_n].things = which;
    shocks[shocks_n].from = from;
    shocks[shocks_n++].to = to;
}

static int64_t lost_at[SERVERS_MAX];

static bool has_thing(int server, const thing *t)
{
    return server_in_office(t->home, t->name)->index == server;
}

/* Which of the locks the server has; or, half of a slot, is getting. */
static unsigned things_of(int server, bool is_second, bool half)
{
    unsigned which = 0;
    for (int i = 0; i < things_n; i++)
        if (half               ? server_gets(&servers[server], things[i].name)
            : things[i].is_red ? is_second
                               : has_thing(server, &things[i]))
            which |= 1u << i;
    return which;
}

/*
 * One node of a Red lock may lose its data: it gives no vote until the longest
 * lease is over, and nothing is owed to it. A second one soon after is more
 * than the lock is made for; and so is one of which a client that is made later
 * cannot know.
 */
void judge_shake_server(int server)
{
    bool is_second = cfg.servers < 3 || (cfg.early && !cfg.uptime);
    for (int i = 0; i < cfg.servers; i++)
        is_second = is_second ||
                    (i != server && lost_at[i] && w.now - lost_at[i] < 60 * S);
    lost_at[server] = w.now;
    latch_forget(server);
    rw_forget(server);
    semaphore_forget(server);
    unsigned whole = things_of(server, is_second, false);
    unsigned half = things_of(server, is_second, true);
    judge_shake(whole | half, w.now, w.now);
    judge_replaced(whole, servers[server].down_until, 0);
}

bool is_thinned(const hold *h)
{
    for (int i = 0; i < cfg.servers && things[h->thing].is_red; i++)
        if (lost_at[i] >= h->asked)
            return true;
    return false;
}

bool was_shaken(int thing, int64_t since)
{
    for (int i = 0; i < shocks_n; i++)
        if (shocks[i].things >> thing & 1 && shocks[i].to >= since)
            return true;
    return false;
}

static bool is_shaken_since(const hold *h, int64_t since)
{
    for (int i = 0; i < shocks_n; i++)
        if (shocks[i].things >> h->thing & 1 && h->asked <= shocks[i].to &&
            shocks[i].to >= since && (!h->ended || h->ended >= shocks[i].from))
            return true;
    return false;
}

bool is_shaken(const hold *h)
{
    return is_shaken_since(h, 0);
}

bool is_still_shaken(const hold *h)
{
    int64_t own = cfg.lease_ms + 100;
    int64_t lease = cfg.watchdog_ms > own ? cfg.watchdog_ms : own;
    return is_shaken_since(h, w.now - lease * MS / 100 * 105);
}
