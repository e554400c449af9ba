#include "route/informant.h"

#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "wire/error.h"

#define FIRST_PAUSE_US (100 * 1000)
#define LAST_PAUSE_US  (2000 * 1000)

/* Its connections have been of use. */
#define LASTED_US (5 * 1000 * 1000)

#define FIRST_PATIENCE_US (50 * 1000)
#define LAST_PATIENCE_US  (1000 * 1000)

void rl_informant_init(rl_informant *n, const char *host, int port,
                       const rl_tls *tls, const char *user,
                       const char *password)
{
    n->pause_us = FIRST_PAUSE_US;
    n->patience_us = FIRST_PATIENCE_US;
    strncpy(n->host, host, sizeof n->host - 1);
    rl_dialer_init(&n->dialer);
    n->dialer.uri = (rl_uri){
        .host = n->host, .port = port, .user = user, .password = password};
    n->dialer.tls = tls;
    n->dialer.connect_timeout_ms = LAST_PATIENCE_US / 1000;
}

void rl_informant_fini(rl_informant *n)
{
    rl_conn_free(n->ear);
    rl_conn_free(n->mouth);
    rl_dialer_fini(&n->dialer);
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

bool rl_informant_connect(rl_informant *n)
{
    rl_fault f = {.status = RLOCK_EIO};
    int64_t until_us = rl_now_us() + n->patience_us;
    rlock_status s = rl_dial(&n->dialer, until_us, &n->mouth, &f);
    if (s == RLOCK_OK)
        s = rl_dial(&n->dialer, until_us, &n->ear, &f);
    if (s == RLOCK_OK && !subscribe(n)) {
        f = n->ear->line.fault;
        s = RLOCK_EIO;
    }
    if (s != RLOCK_OK) {
        note(n, &f);
        n->since_us = rl_now_us();
        n->patience_us = rl_min(2 * n->patience_us, LAST_PATIENCE_US);
        rl_informant_disconnect(n);
        return false;
    }
    n->since_us = rl_now_us();
    n->mouth->line.reply.table = &n->table;
    return true;
}

void rl_informant_disconnect(rl_informant *n)
{
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
