/* From the options before the verb to a lock. */
#include <pthread.h>
#include <string.h>

#include "cli.h"

/* Who wants to know that there is no server waits for no more than both. */
#define CONNECT_MS 1000
#define COMMAND_MS 1500

void cli_close(cli_server *s)
{
    for (size_t i = 0; i < s->n; i++)
        rlock_client_free(s->client[i]);
    s->n = 0;
}

typedef struct opening {
    rlock_options opts;
    rlock_client *client; /* NULL: there is none yet */
    rlock_status status;
    bool away;
    pthread_t thread;
    bool runs;
} opening;

/* It cannot be reached, or answers that it is not ready yet. */
static bool is_away(const rlock_error *e)
{
    static const char *const words[] = {": LOADING ", ": BUSY ",
                                        ": MASTERDOWN ", ": CLUSTERDOWN "};
    bool away = e->status == RLOCK_EIO;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        away = away || strstr(e->message, words[i]);
    return away;
}

static void *open_one(void *arg)
{
    opening *x = arg;
    x->status = rlock_client_new(&x->opts, &x->client);
    x->away = x->status != RLOCK_OK && is_away(rlock_last_error());
    return NULL;
}

/* All at a time, as each may take its second; one alone on this thread, which
   is told why it failed. */
static void open_all(opening *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i].runs = n > 1 && !x[i].client &&
                    pthread_create(&x[i].thread, NULL, open_one, &x[i]) == 0;
        if (!x[i].runs && !x[i].client)
            open_one(&x[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (x[i].runs)
            pthread_join(x[i].thread, NULL);
    }
}

/* Some of several servers may be away, if there are at least so many: they are
   asked when they are back. */
static rlock_status open_least(opening *x, size_t n, size_t least)
{
    size_t there = 0;
    open_all(x, n);
    for (size_t i = 0; i < n; i++)
        there += x[i].status == RLOCK_OK;
    for (size_t i = 0; i < n; i++) {
        bool away = x[i].away && there >= least;
        if (n > 1 && x[i].status != RLOCK_OK && !away)
            open_one(&x[i]); /* so that this thread is told why, too */
        if (x[i].status != RLOCK_OK && !away)
            return x[i].status;
        x[i].opts.lazy = away;
    }
    open_all(x, n);
    return RLOCK_OK;
}

static rlock_status open_servers(cli_server *s, const cli_options *o,
                                 int64_t lease_ms, size_t least)
{
    opening x[RLOCK_RED_MAX];
    rlock_options opts = o->client;
    opts.connect_timeout_ms = CONNECT_MS;
    opts.command_timeout_ms = lease_ms / 3 < 100          ? 100
                              : lease_ms / 3 > COMMAND_MS ? COMMAND_MS
                                                          : lease_ms / 3;
    opts.watchdog_lease_ms = lease_ms;
    opts.lazy = false;
    for (size_t i = 0; i < o->uris; i++) {
        opts.uri = o->uri[i];
        x[i] = (opening){.opts = opts};
    }
    rlock_status status = open_least(x, o->uris, least);
    *s = (cli_server){.n = o->uris};
    for (size_t i = 0; i < o->uris; i++) {
        s->client[i] = x[i].client;
        if (status == RLOCK_OK)
            status = x[i].status;
    }
    if (status != RLOCK_OK)
        cli_close(s);
    return status;
}

/* Without a majority there is no lock, and nothing to wait for. */
rlock_status cli_open(cli_server *s, const cli_options *o, int64_t lease_ms)
{
    return open_servers(s, o, lease_ms, o->uris / 2 + 1);
}

rlock_status cli_open_any(cli_server *s, const cli_options *o, int64_t lease_ms)
{
    return open_servers(s, o, lease_ms, 1);
}

rlock_status cli_open_lazily(cli_server *s, const cli_options *o)
{
    rlock_options opts = o->client;
    rlock_status status = RLOCK_OK;
    opts.lazy = true;
    opts.connect_timeout_ms = CONNECT_MS;
    opts.command_timeout_ms = COMMAND_MS;
    *s = (cli_server){0};
    for (size_t i = 0; i < o->uris && status == RLOCK_OK; i++) {
        opts.uri = o->uri[i];
        status = rlock_client_new(&opts, &s->client[s->n]);
        s->n += status == RLOCK_OK;
    }
    if (status != RLOCK_OK)
        cli_close(s);
    return status;
}

rlock_status cli_lock(const cli_server *s, const char *name, rlock **out)
{
    return s->n == 1 ? rlock_new(s->client[0], name, out)
                     : rlock_red_new(s->client, s->n, name, out);
}
