#include "harm.h"

#include <stdio.h>
#include <string.h>

#include "locks.h"

void pause_ms(int64_t ms)
{
    test_pause_ms((int)ms);
}

void last(fault *f, int64_t ms)
{
    pause_ms(ms);
    f->mended_us = attack_now_us();
}

int64_t some_ms(nemesis *n, int most)
{
    return 50 + attack_pick(&n->rng, most - 50);
}

/* Those that the fault is about, one after the other. */
static void each(const nemesis *n, const fault *f, void (*act)(server *sv))
{
    for (int i = 0; i < SERVERS; i++)
        if (f->servers & 1U << i)
            act(n->sv[i]);
}

/* Where it is about one. */
static server *the_server(const nemesis *n, const fault *f)
{
    return n->sv[servers_first(f->servers)];
}

static const char *key_of(const fault *f)
{
    static char key[LOCK_KEY_MAX];
    lock_key(f->lock, key);
    return key;
}

/* --- processes ----------------------------------------------------------- */

static bool server_stops(nemesis *n, fault *f, int64_t ms)
{
    each(n, f, server_pause);
    last(f, ms);
    each(n, f, server_resume);
    return true;
}

bool server_stops_shortly(nemesis *n, fault *f)
{
    return server_stops(n, f, some_ms(n, SHORT_MS));
}

bool server_stops_long(nemesis *n, fault *f)
{
    return server_stops(n, f, LONG_MS);
}

/*
 * The server writes its append-only file before it answers, so nothing that
 * was promised is lost when its process is killed.
 */
bool server_killed(nemesis *n, fault *f)
{
    each(n, f, server_kill);
    pause_ms(some_ms(n, SHORT_MS));
    each(n, f, server_restart);
    return true;
}

bool server_killed_long(nemesis *n, fault *f)
{
    each(n, f, server_kill);
    last(f, LONG_MS);
    each(n, f, server_restart);
    return true;
}

bool server_restarted(nemesis *n, fault *f)
{
    each(n, f, server_restart);
    return true;
}

bool server_emptied(nemesis *n, fault *f)
{
    each(n, f, server_kill);
    each(n, f, server_forget);
    pause_ms(some_ms(n, SHORT_MS));
    each(n, f, server_restart);
    return true;
}

/*
 * What was written last, and promised, is missing when it comes back. If the log
 * breaks off within a script's commands, the next restart would take those before for
 * good (promises.md).
 */
bool power_cut(nemesis *n, fault *f)
{
    server *sv = the_server(n, f);
    server_kill(sv);
    bool done = server_cut_log(sv, 2000);
    server_restart(sv);
    server_rewrite_log(sv);
    return done;
}

static void refuse_all(const nemesis *n, int server, bool refuse)
{
    for (int i = 0; i < PROCS; i++) {
        proxy_refuse(n->px[i][server], refuse);
        proxy_cut_all(n->px[i][server]);
    }
}

/*
 * A Red lock that was taken without the first node has the second one's vote,
 * which that forgets. If it voted at once, the two would be a majority.
 */
bool other_one_emptied(nemesis *n, fault *f)
{
    int cut = servers_first(f->servers);
    fault other = *f;
    other.servers &= ~(1U << cut);
    f->emptied = other.servers;
    refuse_all(n, cut, true);
    pause_ms(SHORT_MS);
    refuse_all(n, cut, false);
    each(n, &other, server_kill);
    each(n, &other, server_forget);
    each(n, &other, server_restart);
    pause_ms(SHORT_MS);
    return true;
}

/* --- commands ------------------------------------------------------------ */

static bool obeys(server *sv, const char *command)
{
    return server_cmd(sv, command)->type != REDIS_REPLY_ERROR;
}

static bool all_obey(const nemesis *n, const fault *f, const char *command)
{
    bool all = true;
    for (int i = 0; i < SERVERS; i++)
        if (f->servers & 1U << i)
            all = obeys(n->sv[i], command) && all;
    return all;
}

/* What takes only a command, and perhaps another one for the repair. */
bool commanded(nemesis *n, fault *f)
{
    const nemesis_kind *k = &nemesis_kinds[f->kind];
    bool done = all_obey(n, f, k->harm);
    if (k->repair) {
        pause_ms(some_ms(n, SHORT_MS));
        done = all_obey(n, f, k->repair) && done;
    }
    return done;
}

bool server_sleeps(nemesis *n, fault *f)
{
    int64_t ms = some_ms(n, SHORT_MS);
    return server_cmd(the_server(n, f), "DEBUG SLEEP %d.%03d", (int)(ms / 1000),
                      (int)(ms % 1000))
               ->type != REDIS_REPLY_ERROR;
}

bool server_busy(nemesis *n, fault *f)
{
    server_cmd(the_server(n, f), "EVAL %s 0 %d",
               "local from = os.clock() "
               "while (os.clock() - from) * 1000 < tonumber(ARGV[1]) do end",
               (int)some_ms(n, SHORT_MS));
    return true;
}

static bool server_paused(nemesis *n, const fault *f, const char *what)
{
    int ms = (int)some_ms(n, SHORT_MS);
    bool done =
        server_cmd(the_server(n, f), "CLIENT PAUSE %d %s", ms, what)->type !=
        REDIS_REPLY_ERROR;
    pause_ms(ms);
    return done;
}

bool server_pauses_writes(nemesis *n, fault *f)
{
    return server_paused(n, f, "WRITE");
}

bool server_pauses_all(nemesis *n, fault *f)
{
    return server_paused(n, f, "ALL");
}

bool server_crowded(nemesis *n, fault *f)
{
    server *sv = the_server(n, f);
    bool done = obeys(sv, "CONFIG SET maxclients 1") &&
                obeys(sv, "CLIENT KILL TYPE normal SKIPME yes");
    pause_ms(some_ms(n, SHORT_MS));
    return obeys(sv, "CONFIG SET maxclients 10000") && done;
}

bool bells_forged(nemesis *n, fault *f)
{
    server *sv = the_server(n, f);
    const redisReply *all = server_cmd(sv, "PUBSUB CHANNELS *");
    char channel[8][128];
    size_t count = 0;
    for (; count < all->elements && count < 8; count++)
        snprintf(channel[count], sizeof channel[count], "%s",
                 all->element[count]->str);
    for (size_t i = 0; i < count; i++) {
        server_cmd(sv, "PUBLISH %s %s", channel[i], "garbage \r\n$9$9");
        for (int lock = 0; lock < HOMES; lock++)
            server_cmd(sv, "PUBLISH %s attack:%d", channel[i], lock);
    }
    return count > 0;
}

/* --- data ---------------------------------------------------------------- */

bool lock_deleted(nemesis *n, fault *f)
{
    return server_int(the_server(n, f), "DEL %s", key_of(f)) == 1;
}

bool lock_renamed(nemesis *n, fault *f)
{
    /* To a name that ends by itself: the key keeps its TTL. */
    server *sv = the_server(n, f);
    const redisReply *r = server_cmd(sv, "RENAME %s attack-renamed", key_of(f));
    bool done = r->type != REDIS_REPLY_ERROR;
    server_cmd(sv, "DEL attack-renamed");
    return done;
}

bool lock_forced(nemesis *n, fault *f)
{
    rlock *lk = NULL;
    if (f->servers != 1U << HOME || lock_layout(f->lock) != RLOCK_LAYOUT_HASH ||
        rlock_new(n->cl, key_of(f), &lk))
        return false;
    bool done = rlock_force_unlock(lk) == RLOCK_OK;
    rlock_free(lk);
    return done;
}

bool lock_of_another_type(nemesis *n, fault *f)
{
    server *sv = the_server(n, f);
    server_cmd(sv, "DEL %s", key_of(f));
    server_cmd(sv, "SADD %s x", key_of(f));
    pause_ms(some_ms(n, SHORT_MS));
    server_cmd(sv, "DEL %s", key_of(f));
    return true;
}

bool lease_cut_short(nemesis *n, fault *f)
{
    return server_int(the_server(n, f), "PEXPIRE %s 5", key_of(f)) == 1;
}

/* A holder that renews sets it right; otherwise nobody else would ever. */
bool lease_without_end(nemesis *n, fault *f)
{
    server *sv = the_server(n, f);
    if (server_int(sv, "PERSIST %s", key_of(f)) != 1)
        return false;
    pause_ms(SHORT_MS);
    if (server_int(sv, "PTTL %s", key_of(f)) == -1)
        server_int(sv, "PEXPIRE %s %d", key_of(f), LEASE_MS);
    return true;
}
