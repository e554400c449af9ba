#include "route/sentinel_link.h"

#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "wire/error.h"

#define FIRST_PAUSE_US (100 * 1000)
#define LAST_PAUSE_US  (2000 * 1000)

/* Its connections have been of use. */
#define LASTED_US (5 * 1000 * 1000)

static void init_dialing(rl_dialing *d, rl_sentinel_link *n, rl_tls *tls,
                         const char *user, const char *password)
{
    rl_dialing_init(d);
    d->dialer.uri = (rl_uri){.host = n->host,
                             .port = n->port,
                             .user = user,
                             .password = password,
                             .secure = "rediss-sentinel://"};
    d->dialer.tls = tls;
    d->dialer.connect_timeout_ms = n->connect_timeout_ms;
}

void rl_sentinel_link_init(rl_sentinel_link *n, const char *host, int port,
                           rl_tls *tls, const char *user, const char *password,
                           int64_t connect_timeout_ms)
{
    n->pause_us = FIRST_PAUSE_US;
    n->over = true;
    n->port = port;
    n->connect_timeout_ms = connect_timeout_ms;
    strncpy(n->host, host, sizeof n->host - 1);
    init_dialing(&n->to_speak, n, tls, user, password);
    init_dialing(&n->to_hear, n, tls, user, password);
}

void rl_sentinel_link_copy_dialer(const rl_sentinel_link *n, rl_dialer *to)
{
    const rl_dialer *d = &n->to_speak.dialer;
    to->uri = d->uri;
    to->tls = d->tls;
    to->connect_timeout_ms = d->connect_timeout_ms;
}

void rl_sentinel_link_call_off(rl_sentinel_link *n)
{
    rl_dialing_call_off(&n->to_speak);
    rl_dialing_call_off(&n->to_hear);
}

void rl_sentinel_link_fini(rl_sentinel_link *n)
{
    rl_conn_free(n->listen_conn);
    rl_conn_free(n->ask_conn);
    rl_dialing_fini(&n->to_speak, false);
    rl_dialing_fini(&n->to_hear, false);
}

void rl_sentinel_link_leave_behind(rl_sentinel_link *n)
{
    rl_dialing_fini(&n->to_speak, true);
    rl_dialing_fini(&n->to_hear, true);
}

static void note(rl_sentinel_link *n, const rl_fault *f)
{
    n->fault = *f;
    n->failed = true;
}

/* "message", the channel, "name old-ip old-port new-ip new-port" */
static void hear(void *arg, const rl_reply *r)
{
    rl_sentinel_link *n = arg;
    size_t len = strlen(n->master);
    if (rl_reply_is_array(r, 3) && r->item[0].str && r->item[2].str &&
        strcmp(r->item[0].str, "message") == 0 &&
        strncmp(r->item[2].str, n->master, len) == 0 &&
        r->item[2].str[len] == ' ')
        n->named = true;
}

static bool subscribe(rl_sentinel_link *n)
{
    rl_line *l = &n->listen_conn->line;
    rl_bytes *to = rl_line_begin(l);
    l->pushed = hear;
    l->arg = n;
    rl_put_array(to, 2);
    rl_put_text(to, "SUBSCRIBE");
    rl_put_text(to, "+switch-master");
    return rl_line_push(l, NULL) && rl_conn_send(n->listen_conn);
}

static bool begin(rl_sentinel_link *n, rl_dialing *d, const rl_signal *signal)
{
    rl_fault f;
    if (rl_dialing_begin(d, rl_after_ms(rl_now_us(), n->connect_timeout_ms),
                         signal))
        return true;
    rl_fault_set(&f, RLOCK_ENOMEM, 0, "no thread to connect with");
    note(n, &f);
    return false;
}

rl_progress rl_sentinel_link_connect(rl_sentinel_link *n,
                                     const rl_signal *signal)
{
    return begin(n, &n->to_speak, signal) ? RL_PROGRESS_NONE : RL_PROGRESS_LOST;
}

/* NULL: it has failed. */
static rl_conn *take(rl_sentinel_link *n, rl_dialing *d)
{
    rl_conn *c = rl_dialing_end(d);
    if (!c)
        note(n, &d->fault);
    return c;
}

static bool take_ask_conn(rl_sentinel_link *n, const rl_signal *signal)
{
    n->ask_conn = take(n, &n->to_speak);
    n->since_us = rl_now_us();
    if (!n->ask_conn)
        return false;
    n->took_us = n->to_speak.took_us;
    n->ask_conn->line.reply.table = &n->table;
    return begin(n, &n->to_hear, signal);
}

static bool take_listen_conn(rl_sentinel_link *n)
{
    n->listen_conn = take(n, &n->to_hear);
    if (!n->listen_conn)
        return false;
    bool listens = subscribe(n);
    if (!listens)
        note(n, &n->listen_conn->line.fault);
    return listens;
}

rl_progress rl_sentinel_link_look(rl_sentinel_link *n, const rl_signal *signal)
{
    rl_dialing_reap(&n->to_speak);
    rl_dialing_reap(&n->to_hear);
    bool speaks = rl_dialing_is_over(&n->to_speak);
    if (!speaks && !rl_dialing_is_over(&n->to_hear))
        return RL_PROGRESS_NONE;
    return (speaks ? take_ask_conn(n, signal) : take_listen_conn(n))
               ? RL_PROGRESS_MADE
               : RL_PROGRESS_LOST;
}

void rl_sentinel_link_disconnect(rl_sentinel_link *n)
{
    rl_dialing_leave(&n->to_speak);
    rl_dialing_leave(&n->to_hear);
    if (!n->over)
        rl_conn_break(n->ask_conn, &n->fault);
    rl_conn_free(n->listen_conn);
    rl_conn_free(n->ask_conn);
    n->listen_conn = n->ask_conn = NULL;
    if (rl_now_us() - n->since_us > LASTED_US)
        n->pause_us = FIRST_PAUSE_US;
    n->next_us = rl_now_us() + rl_jitter(n->pause_us);
    n->pause_us = rl_min(2 * n->pause_us, LAST_PAUSE_US);
}

static void answered(rl_slot *slot, const rl_reply *r, int64_t now_us)
{
    rl_sentinel_link *n = RL_CONTAINER(slot, rl_sentinel_link, slot);
    rl_fault f;
    (void)now_us;
    n->over = true;
    n->answered = rl_reply_is(r, REDIS_REPLY_ARRAY);
    if (n->answered)
        return;
    rl_fault_set(&f, RLOCK_EIO, 0, "unexpected answer");
    if (rl_reply_is(r, REDIS_REPLY_ERROR))
        rl_error_reply(r, &f);
    note(n, &f);
}

static void failed(rl_slot *slot, bool whole, const rl_fault *why,
                   int64_t now_us)
{
    rl_sentinel_link *n = RL_CONTAINER(slot, rl_sentinel_link, slot);
    (void)whole, (void)now_us;
    n->over = true;
    note(n, why);
}

void rl_sentinel_link_ask(rl_sentinel_link *n, const char *what)
{
    n->answered = false;
    n->over = !n->ask_conn;
    if (n->over)
        return;
    rl_bytes *to = rl_line_begin(&n->ask_conn->line);
    rl_put_array(to, 3);
    rl_put_text(to, "SENTINEL");
    rl_put_text(to, what);
    rl_put_text(to, n->master);
    n->slot = (rl_slot){.answered = answered, .failed = failed};
    n->over = !rl_line_push(&n->ask_conn->line, &n->slot);
    rl_conn_send(n->ask_conn);
}

void rl_sentinel_link_serve(rl_sentinel_link *n, bool late)
{
    if (n->over || (rl_conn_send(n->ask_conn) && rl_conn_receive(n->ask_conn) &&
                    (n->over || !late)))
        return;
    if (!n->over)
        rl_conn_time_out(n->ask_conn);
}

/* What nobody has asked for breaks the one that asks. */
bool rl_sentinel_link_listen(rl_sentinel_link *n)
{
    rl_conn *of[] = {n->listen_conn, n->over ? n->ask_conn : NULL};
    for (size_t i = 0; i < 2; i++) {
        if (!of[i] || (rl_conn_send(of[i]) && rl_conn_receive(of[i])))
            continue;
        note(n, &of[i]->line.fault);
        return false;
    }
    return true;
}

size_t rl_sentinel_link_poll(const rl_sentinel_link *n, struct pollfd *p)
{
    const rl_conn *of[] = {n->listen_conn, n->ask_conn};
    for (size_t i = 0; i < 2; i++)
        p[i] = (struct pollfd){.fd = of[i] ? of[i]->io.fd : -1,
                               .events = of[i] ? rl_conn_events(of[i]) : 0};
    return 2;
}
