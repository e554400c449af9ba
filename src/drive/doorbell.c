#include "drive/doorbell.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "drive/engine.h"

#define FIRST_PAUSE_US   50000
#define LAST_PAUSE_US    2000000
#define REFUSED_PAUSE_US 60000000

/* Other rings wait while one is passed on. */
#define PASS_ON_MS 500

/* A connection that lasted for so long was worth having. */
#define LASTED_US 1000000

/* A connection that is silent for so long is asked whether it is alive. */
#define SILENCE_MS 15000

bool rl_doorbell_init(rl_doorbell *d)
{
    d->wake_fd = -1;
    rl_mutex_init(&d->starting);
    strcpy(d->channel, RL_BELL_PREFIX);
    return rl_ears_init(&d->ears) &&
           rl_uuid_new(d->channel + strlen(RL_BELL_PREFIX));
}

void rl_doorbell_fini(rl_doorbell *d, bool forked)
{
    rl_ears_fini(&d->ears);
    if (d->wake_fd >= 0)
        close(d->wake_fd);
    if (!forked)
        rl_mutex_fini(&d->starting);
}

static bool is_message(const rl_reply *r, const char *kind, size_t elements)
{
    return rl_reply_is_array(r, elements) &&
           rl_item_is(&r->item[0], REDIS_REPLY_STRING) &&
           strcmp(r->item[0].str, kind) == 0;
}

/* A server that refuses (an ACL, a proxy) will do so again: no hurry then. */
static bool subscribe(rl_engine *e, rl_conn *c, int64_t *pause_us)
{
    rl_reply r;
    rl_fault f;
    if (rl_conn_ask(c, rl_command_deadline(e), &r, &f, 2,
                    (const char *[]){"SUBSCRIBE", e->doorbell.channel}) !=
        RLOCK_OK)
        return false;
    if (is_message(&r, "subscribe", 3))
        return true;
    *pause_us = REFUSED_PAUSE_US;
    return false;
}

static void ring(rl_engine *e, const rl_reply *r)
{
    const rl_item *name = &r->item[2];
    if (rl_ears_hear(e, r))
        return;
    if (!is_message(r, "message", 3) || !rl_item_is(name, REDIS_REPLY_STRING) ||
        name->len == 0 || name->len > RLOCK_NAME_MAX)
        return;
    if (!rl_rooms_wake(&e->rooms, name->str, name->len, RL_WAKE_RUNG))
        rl_leave_queue(e, name->str, name->len,
                       rl_min(rl_command_deadline(e),
                              rl_after_ms(rl_now_us(), PASS_ON_MS)));
}

/* Reads what has come. False: the connection is broken. */
static bool hear(rl_engine *e, rl_conn *c)
{
    do {
        rl_reply r;
        rl_fault f;
        if (rl_conn_read(c, rl_command_deadline(e), &r, &f) != RLOCK_OK)
            return false;
        ring(e, &r);
    } while (rl_conn_has_input(c));
    return true;
}

static bool send_ping(rl_engine *e, rl_conn *c)
{
    const char *ping = "PING";
    size_t len = 4;
    rl_fault f;
    return rl_conn_append(c, 1, &ping, &len) &&
           rl_conn_flush(c, rl_command_deadline(e), &f) == RLOCK_OK;
}

/* Waits for the socket, a poke or the end; returns poll's result. */
static int listen_to(rl_engine *e, rl_conn *c, int timeout_ms, bool *readable,
                     bool *poked)
{
    struct pollfd p[2] = {{.fd = e->doorbell.wake_fd, .events = POLLIN},
                          {.fd = c ? c->ctx->fd : -1, .events = POLLIN}};
    int n = poll(p, 2, timeout_ms);
    *readable = n > 0 && p[1].revents;
    *poked = n > 0 && p[0].revents;
    if (*poked && !atomic_load(&e->doorbell.stopping))
        eventfd_read(e->doorbell.wake_fd, &(eventfd_t){0});
    return n;
}

/* Serves rings until the connection breaks or the client closes. */
static void serve(rl_engine *e, rl_conn *c)
{
    bool asked = false;
    while (!atomic_load(&e->doorbell.stopping)) {
        bool readable, poked;
        int64_t patience_ms =
            asked ? e->set.command_timeout_ms : (int64_t)SILENCE_MS;
        int n = listen_to(e, c, (int)rl_min(patience_ms, SILENCE_MS), &readable,
                          &poked);
        if (poked && e->set.redisson_channel && !rl_ears_adjust(e, c))
            return;
        if (readable) {
            if (!hear(e, c))
                return;
            asked = false;
        } else if (n == 0) {
            if (asked || !send_ping(e, c))
                break;
            asked = true;
        }
    }
    c->broken = !atomic_load(&e->doorbell.stopping);
}

static void pause_for(rl_engine *e, int64_t us)
{
    bool readable, poked;
    int64_t until_us = rl_now_us() + rl_jitter(us);
    while (rl_now_us() < until_us && !atomic_load(&e->doorbell.stopping))
        listen_to(e, NULL, rl_poll_ms(until_us), &readable, &poked);
}

/*
 * One connection's life; true: it was worth having. A server that refuses to
 * subscribe us makes the pause longer.
 */
static bool connect_and_serve(rl_engine *e, int64_t *pause_us)
{
    rl_doorbell *d = &e->doorbell;
    rl_conn *c = NULL;
    rl_fault f;
    int64_t served_us = 0;
    if (rl_source_open(e->source, RL_NEVER, &c, &f) == RLOCK_OK &&
        subscribe(e, c, pause_us)) {
        int64_t began_us = rl_now_us();
        rl_ears_forget(&d->ears);
        rl_doorbell_poke(e);
        atomic_store(&d->up, true);
        rl_rooms_wake_all(&e->rooms);
        serve(e, c);
        atomic_store(&d->up, false);
        served_us = rl_now_us() - began_us;
    }
    rl_source_close(e->source, c);
    return served_us >= LASTED_US;
}

static void *run(void *arg)
{
    rl_engine *e = arg;
    int64_t pause_us = FIRST_PAUSE_US;
    while (!atomic_load(&e->doorbell.stopping)) {
        if (connect_and_serve(e, &pause_us)) {
            pause_us = FIRST_PAUSE_US;
            continue;
        }
        pause_for(e, pause_us);
        pause_us = rl_min(pause_us * 2, LAST_PAUSE_US);
    }
    return NULL;
}

void rl_doorbell_start(rl_engine *e)
{
    rl_doorbell *d = &e->doorbell;
    if (atomic_load(&d->started))
        return;
    rl_mutex_lock(&d->starting);
    if (d->wake_fd < 0)
        d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->wake_fd >= 0 && !d->thread.started &&
        rl_thread_start(&d->thread, "rlock-doorbell", run, e))
        atomic_store(&d->started, true);
    rl_mutex_unlock(&d->starting);
}

void rl_doorbell_poke(rl_engine *e)
{
    if (e->set.redisson_channel && atomic_load(&e->doorbell.started))
        eventfd_write(e->doorbell.wake_fd, 1);
}

void rl_doorbell_stop(rl_engine *e)
{
    rl_doorbell *d = &e->doorbell;
    atomic_store(&d->stopping, true);
    if (d->wake_fd >= 0)
        eventfd_write(d->wake_fd, 1);
    rl_thread_join(&d->thread);
}
