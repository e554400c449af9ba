/* The keeper: has the lock, and ends COMMAND in time. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

typedef struct keeper {
    const run_options *r;
    run_shared *sh;
    int from_front, to_front;
    cli_server server;
    rlock *lk;
    rlock_owner *owner;
    bool answered; /* the acquire; status says what */
    rlock_status status;
} keeper;

/* Signals are the front's to pass on; and nothing that was inherited is kept
   open, nor a terminal, so that whoever waits for the end of a pipe sees it. */
static void leave_everything(const keeper *k)
{
    static const int ignored[] = {SIGTERM, SIGINT,  SIGHUP, SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGPIPE};
    setsid();
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    cli_close_all_but(k->from_front, k->to_front);
}

static void tell(const keeper *k, char what)
{
    (void)!write(k->to_front, &what, 1);
}

static _Noreturn void end(keeper *k)
{
    cli_close(&k->server);
    _exit(0);
}

static void note(keeper *k)
{
    snprintf(k->sh->message, sizeof k->sh->message, "%s",
             rlock_last_error()->message);
}

/* There is no lock; the front says why. */
static _Noreturn void refuse(keeper *k, rlock_status s)
{
    k->sh->busy = s == RLOCK_BUSY || s == RLOCK_TIMEOUT;
    k->sh->status = k->sh->busy ? k->r->not_obtained : CLI_FAILED;
    tell(k, RUN_REFUSED);
    end(k);
}

static void must(keeper *k, rlock_status s)
{
    if (s == RLOCK_OK)
        return;
    note(k);
    refuse(k, s);
}

/* Holder ids show it, so that an administrator sees what a lock is held for. */
static const char *label(const run_options *r)
{
    const char *name = r->shell_line ? "sh" : r->command[0];
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

static void open_lock(keeper *k)
{
    must(k, cli_open(&k->server, k->r->cli, k->r->lease_ms));
    must(k, cli_lock(&k->server, k->r->name, &k->lk));
    must(k, rlock_owner_new(label(k->r), &k->owner));
}

static void got(rlock *lk, rlock_status s, void *arg)
{
    keeper *k = arg;
    (void)lk;
    k->answered = true;
    k->status = s;
    if (s != RLOCK_OK)
        note(k);
}

/* For a person who waits. The owner has its acquire under way: a thread asks. */
static void look_who(keeper *k)
{
    rlock_holder h;
    rlock_owner *owner = rlock_owner_set(NULL);
    char *who = k->sh->who;
    if (rlock_holder_info(k->lk, &h, sizeof h) == RLOCK_OK) {
        if (h.host[0])
            snprintf(who, sizeof k->sh->who, "%.255s:%lld%s%.63s", h.host,
                     (long long)h.pid, h.owner[0] ? "/" : "", h.owner);
        else
            cli_printable(who, sizeof k->sh->who, h.raw);
        tell(k, RUN_WHO);
    }
    rlock_owner_set(owner);
}

/* One try without a wait, over the connection that there is. False: there is
   something to wait for. */
static bool try_once(keeper *k)
{
    rlock_owner_set(k->owner);
    k->status = rlock_acquire(k->lk, 0, RLOCK_WATCHDOG);
    if (k->status == RLOCK_OK)
        return true;
    note(k);
    return k->r->wait_ms == 0 ||
           (k->status != RLOCK_BUSY && k->status != RLOCK_EIO &&
            k->status != RLOCK_EQUORUM);
}

/* Waits for the lock, or for the front to want it no more. */
static void wait_for_lock(keeper *k, int64_t wait_ms)
{
    rlock_client *home = k->server.client[0];
    struct pollfd p[] = {{.fd = k->from_front, .events = POLLIN},
                         {.fd = rlock_client_fd(home), .events = POLLIN}};
    int64_t look_us = cli_now_us() + 1000000;
    must(k, p[1].fd < 0 ? rlock_last_error()->status : RLOCK_OK);
    must(k, rlock_acquire_start(k->lk, wait_ms, RLOCK_WATCHDOG, got, k));
    while (!k->answered) {
        bool asks = atomic_load(&k->sh->wants_who);
        cli_poll(p, 2, asks ? look_us : CLI_NEVER);
        if (p[0].revents) {
            p[0].fd = -1;
            rlock_cancel(k->lk);
        }
        if (p[1].revents)
            rlock_client_dispatch(home);
        if (asks && cli_now_us() >= look_us && !k->answered) {
            look_who(k);
            look_us = cli_now_us() + 2000000;
        }
    }
    rlock_owner_set(k->owner);
}

static void acquire(keeper *k)
{
    int64_t began_us = cli_now_us(), wait_ms = k->r->wait_ms;
    if (!try_once(k)) {
        int64_t took_ms = (cli_now_us() - began_us) / 1000;
        if (wait_ms != RLOCK_FOREVER)
            wait_ms = wait_ms > took_ms ? wait_ms - took_ms : 0;
        wait_for_lock(k, wait_ms);
    }
    if (k->status != RLOCK_OK)
        refuse(k, k->status);
}

/* How long the lock is ours; the clock is read first, so it is no longer. */
static void publish(keeper *k)
{
    long long now = cli_now_us();
    int64_t valid_ms = rlock_valid_ms(k->lk);
    atomic_store(&k->sh->deadline_us, valid_ms ? now + valid_ms * 1000 : 0);
}

static void grant(keeper *k)
{
    rlock_holder h;
    rlock_status s = rlock_holder_info(k->lk, &h, sizeof h);
    if (s != RLOCK_OK) {
        note(k);
        rlock_unlock(k->lk);
        refuse(k, s);
    }
    memcpy(k->sh->holder, h.raw, sizeof k->sh->holder);
    k->sh->token = rlock_token(k->lk);
    publish(k);
    tell(k, RUN_GRANTED);
}

/*
 * Until the front is done, or gone, or the lock is lost. The deadline is looked
 * at often enough that no renewal is seen too late, and once more just before
 * COMMAND would be told.
 */
static void keep(keeper *k)
{
    struct pollfd p[] = {{.fd = k->from_front, .events = POLLIN},
                         {.fd = rlock_lost_fd(k->lk), .events = POLLIN}};
    const int64_t before_us = 10000;
    do {
        publish(k);
        int64_t now = cli_now_us(), look = now + k->r->lease_ms * 1000 / 6;
        int64_t due = run_guard(k->sh, k->r->grace_ms);
        if (due == CLI_NEVER) {
            tell(k, RUN_LOST);
            return;
        }
        if (due - before_us > now)
            due -= before_us;
        cli_poll(p, 2, due < look ? due : look);
    } while (!p[0].revents);
}

/* The front is gone, and COMMAND's group is nobody's child: it is killed, and
   looked for until it is gone, or the lock would not be ours any more. */
static void end_command(keeper *k)
{
    int target;
    run_signal(k->sh, SIGKILL);
    while ((target = atomic_load(&k->sh->target)) != 0 &&
           rlock_valid_ms(k->lk) > 0 && cli_is_alive(target))
        cli_poll(NULL, 0, cli_now_us() + 2000);
}

static void release(keeper *k)
{
    rlock_status s = rlock_unlock(k->lk);
    if (s == RLOCK_OK)
        return;
    note(k);
    k->sh->status = s == RLOCK_LOST ? CLI_LOST : CLI_FAILED;
}

_Noreturn void run_keeper(const run_options *r, run_shared *sh, int from_front,
                          int to_front)
{
    keeper k = {
        .r = r, .sh = sh, .from_front = from_front, .to_front = to_front};
    leave_everything(&k);
    open_lock(&k);
    acquire(&k);
    grant(&k);
    cli_be_prompt();
    keep(&k);
    if (!atomic_load(&sh->over))
        end_command(&k);
    release(&k);
    end(&k);
}
