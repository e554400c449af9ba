/* From the options before the verb to a lock. */
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

/*
 * One of several servers may be away: the others decide, and it is asked when
 * it is back. *away counts them.
 */
static rlock_status open_one(cli_server *s, rlock_options *opts, bool several,
                             size_t *away)
{
    opts->lazy = false;
    rlock_status status = rlock_client_new(opts, &s->client[s->n]);
    if (status == RLOCK_EIO && several) {
        (*away)++;
        opts->lazy = true;
        status = rlock_client_new(opts, &s->client[s->n]);
    }
    s->n += status == RLOCK_OK;
    return status;
}

rlock_status cli_open(cli_server *s, const cli_options *o, int64_t lease_ms)
{
    rlock_options opts = o->client;
    rlock_status status = RLOCK_OK;
    size_t away = 0;
    opts.connect_timeout_ms = CONNECT_MS;
    opts.command_timeout_ms = lease_ms / 3 < 100          ? 100
                              : lease_ms / 3 > COMMAND_MS ? COMMAND_MS
                                                          : lease_ms / 3;
    opts.watchdog_lease_ms = lease_ms;
    *s = (cli_server){0};
    for (size_t i = 0; i < o->uris && status == RLOCK_OK; i++) {
        opts.uri = o->uri[i];
        status = open_one(s, &opts, o->uris > 1, &away);
    }
    /* Without a majority there is no lock, and nothing to wait for. */
    if (status == RLOCK_OK && o->uris > 1 && o->uris - away <= o->uris / 2)
        status = rlock_last_error()->status;
    if (status != RLOCK_OK)
        cli_close(s);
    return status;
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
