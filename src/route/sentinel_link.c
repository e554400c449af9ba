#include "route/sentinel_link.h"

#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "wire/error.h"

#define FIRST_PAUSE_US (100 * 1000)
#define LAST_PAUSE_US  (2000 * 1000)

/* Its connections have been of use. */
#define LASTED_US (5 * 1000 * 1000)

static void init_dialing(rl_dialing *d, rl_informant *n, rl_tls *tls,
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

void rl_informant_init(rl_informant *n, const char *host, int port, rl_tls *tls,
                       const char *user, const char *password,
                       int64_t connect_timeout_ms)
{
    n->pause_us = FIRST_PAUSE_US;
    n->port = port;
    n->connect_timeout_ms = connect_timeout_ms;
    strncpy(n->host, host, sizeof n->host - 1);
    init_dialing(&n->to_speak, n, tls, user, password);
    init_dialing(&n->to_hear, n, tls, user, password);
}

void rl_informant_call_off(rl_informant *n)
{
    rl_dialing_call_off(&n->to_speak);
    rl_dialing_call_off(&n->to_hear);
}

void rl_informant_fini(rl_informant *n)
{
    rl_conn_free(n->ear);
    rl_conn_free(n->mouth);
    rl_dialing_fini(&n->to_speak, false);
    rl_dialing_fini(&n->to_hear, false);
}

void rl_informant_leave_behind(rl_informant *n)
{
    rl_dialing_fini(&n->to_speak, true);
    rl_dialing_fini(&n->to_hear, true);
}

static void note(rl_informant *n, const rl_fault *f)
{
    n->fault = *f;
    n->failed = true;
}

/* "message", the channel, "name old-ip old-port new-ip new-port" */
static void hear(void *arg, const rl_reply *r)
{
    rl_informant *n = arg;
    size_t len = strlen(n->master);
    if (rl_reply_is_array(r, 3) && r->item[0].str && r->item[2].str &&
        strcmp(r->item[0].str, "message") == 0 &&
        strncmp(r->item[2].str, n->master, len) == 0 &&
        r->item[2].str[len] == ' ')
        n->named = true;
}

static bool subscribe(rl_informant *n)
{
    rl_line *l = &n->ear->line;
    rl_bytes *to = rl_line_begin(l);
    l->pushed = hear;
    l->arg = n;
    rl_put_array(to, 2);
    rl_put_text(to, "SUBSCRIBE");
    rl_put_text(to, "+switch-master");
    return rl_line_push(l, NULL) && rl_conn_send(n->ear);
}

static bool begin(rl_informant *n, rl_dialing *d, const rl_signal *signal)
{
    rl_fault f;
    if (rl_dialing_begin(d, rl_after_ms(rl_now_us(), n->connect_timeout_ms),
                         signal))
        return true;
    rl_fault_set(&f, RLOCK_ENOMEM, 0, "no thread to connect with");
    note(n, &f);
    return false;
}

rl_progress rl_informant_connect(rl_informant *n, const rl_signal *signal)
{
    return begin(n, &n->to_speak, signal) ? RL_PROGRESS_NONE : RL_PROGRESS_LOST;
}

/* NULL: it has failed. */
static rl_conn *take(rl_informant *n, rl_dialing *d)
{
    rl_conn *c = rl_dialing_end(d);
    if (!c)
        note(n, &d->fault);
    return c;
}

static bool take_mouth(rl_informant *n, const rl_signal *signal)
{
    n->mouth = take(n, &n->to_speak);
    n->since_us = rl_now_us();
    if (!n->mouth)
        return false;
    n->took_us = n->to_speak.took_us;
    n->mouth->line.reply.table = &n->table;
    return begin(n, &n->to_hear, signal);
}

static bool take_ear(rl_informant *n)
{
    n->ear = take(n, &n->to_hear);
    if (!n->ear)
        return false;
    bool listens = subscribe(n);
    if (!listens)
        note(n, &n->ear->line.fault);
    return listens;
}

rl_progress rl_informant_look(rl_informant *n, const rl_signal *signal)
{
    bool speaks = rl_dialing_is_over(&n->to_speak);
    if (!speaks && !rl_dialing_is_over(&n->to_hear))
        return RL_PROGRESS_NONE;
    return (speaks ? take_mouth(n, signal) : take_ear(n)) ? RL_PROGRESS_MADE
                                                          : RL_PROGRESS_LOST;
}

void rl_informant_disconnect(rl_informant *n)
{
    rl_informant_call_off(n);
    rl_conn_free(n->ear);
    rl_conn_free(n->mouth);
    n->ear = n->mouth = NULL;
    if (rl_now_us() - n->since_us > LASTED_US)
        n->pause_us = FIRST_PAUSE_US;
    n->next_us = rl_now_us() + rl_jitter(n->pause_us);
    n->pause_us = rl_min(2 * n->pause_us, LAST_PAUSE_US);
}

static void answered(rl_slot *slot, const rl_reply *r, int64_t now_us)
{
    rl_informant *n = RL_CONTAINER(slot, rl_informant, slot);
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
    rl_informant *n = RL_CONTAINER(slot, rl_informant, slot);
    (void)whole, (void)now_us;
    n->over = true;
    note(n, why);
}

void rl_informant_ask(rl_informant *n, const char *what)
{
    n->answered = false;
    n->over = !n->mouth;
    if (n->over)
        return;
    rl_bytes *to = rl_line_begin(&n->mouth->line);
    rl_put_array(to, 3);
    rl_put_text(to, "SENTINEL");
    rl_put_text(to, what);
    rl_put_text(to, n->master);
    n->slot = (rl_slot){.answered = answered, .failed = failed};
    n->over = !rl_line_push(&n->mouth->line, &n->slot);
    rl_conn_send(n->mouth);
}

void rl_informant_serve(rl_informant *n, bool late)
{
    if (n->over || (rl_conn_send(n->mouth) && rl_conn_receive(n->mouth) &&
                    (n->over || !late)))
        return;
    if (!n->over)
        rl_conn_time_out(n->mouth);
}

bool rl_informant_listen(rl_informant *n)
{
    return rl_conn_send(n->ear) && rl_conn_receive(n->ear);
}
