/* The keeper: has the lease, and ends COMMAND in time. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "run.h"

/* A busy machine takes that long to begin COMMAND, whatever the lease. */
enum { BEGIN_MS = 3000 };

typedef struct keeper {
    const run_options *r;
    run_shared *sh;
    int from_front, to_front;
    cli_server server;
    run_lease lease;
    bool answered; /* the acquire; status says what */
    rlock_status status;
    bool begun; /* COMMAND; to be by begin_us */
    int64_t begin_us;
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
    const rlock_error *e = rlock_last_error();
    bool other = e->status == RLOCK_EWRONGTYPE;
    snprintf(k->sh->message, sizeof k->sh->message, "%s%s", e->message,
             other ? RUN_OTHER_KIND : "");
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

/* What then has the lock may be our own first try, which is still being undone. */
static bool lacked_replicas(const keeper *k)
{
    return k->r->cli->client.min_replicas > 0 && k->r->cli->uris == 1 &&
           k->status == RLOCK_EQUORUM;
}

static void got(rlock_status s, void *arg)
{
    keeper *k = arg;
    k->answered = true;
    if (s == RLOCK_TIMEOUT && lacked_replicas(k))
        return; /* as the first try has said */
    k->status = s;
    if (s != RLOCK_OK)
        note(k);
}

/* One try without a wait, over the connection that there is. False: there is
   something to wait for. */
static bool try_once(keeper *k)
{
    k->status = run_lease_take(&k->lease, 0);
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
    must(k, run_lease_start(&k->lease, wait_ms, got, k));
    while (!k->answered) {
        bool asks = atomic_load(&k->sh->wants_who);
        cli_poll(p, 2, asks ? look_us : CLI_NEVER);
        if (p[0].revents) {
            p[0].fd = -1;
            run_lease_cancel(&k->lease);
        }
        if (p[1].revents)
            rlock_client_dispatch(home);
        if (asks && cli_now_us() >= look_us && !k->answered) {
            /* For a person who waits. */
            if (run_lease_who(&k->lease, k->sh->who, sizeof k->sh->who))
                tell(k, RUN_WHO);
            look_us = cli_now_us() + 2000000;
        }
    }
}

static void acquire(keeper *k)
{
    int64_t began_us = cli_now_us(), wait_ms = k->r->wait_ms;
    if (!try_once(k)) {
        int64_t took_ms = (cli_now_us() - began_us) / 1000;
        if (wait_ms != RLOCK_FOREVER)
            wait_ms = wait_ms > took_ms ? wait_ms - took_ms : 0;
        if (wait_ms != 0)
            wait_for_lock(k, wait_ms);
    }
    if (k->status != RLOCK_OK)
        refuse(k, k->status);
}

/* How long the lock is ours; the clock is read first, so it is no longer. */
static void publish(keeper *k)
{
    long long now = cli_now_us();
    int64_t valid_ms = run_lease_valid_ms(&k->lease);
    atomic_store(&k->sh->deadline_us, valid_ms ? now + valid_ms * 1000 : 0);
}

static void grant(keeper *k)
{
    rlock_status s = run_lease_settle(&k->lease, k->sh);
    if (s != RLOCK_OK) {
        note(k);
        run_lease_release(&k->lease);
        refuse(k, s);
    }
    int64_t ms = k->r->lease_ms > BEGIN_MS ? k->r->lease_ms : BEGIN_MS;
    k->begin_us = cli_now_us() + ms * 1000;
    publish(k);
    tell(k, RUN_GRANTED);
}

/* A front that was stopped while it waited cannot begin COMMAND. Others wait: when
   it goes on, the lock is lost. */
static bool give_up(keeper *k)
{
    k->begun = k->begun || atomic_load(&k->sh->target) != 0;
    if (k->begun || cli_now_us() < k->begin_us)
        return false;
    snprintf(k->sh->message, sizeof k->sh->message,
             "rlock was stopped, and did not begin it in time");
    atomic_store(&k->sh->deadline_us, 0); /* so it does not begin any more */
    return true;
}

/*
 * Until the front is done, or gone, or the lock is lost. The deadline is looked
 * at often enough that no renewal is seen too late, once more just before COMMAND
 * would be told, and more often when it was: it may end any time.
 */
static void keep(keeper *k)
{
    struct pollfd p[] = {
        {.fd = k->from_front, .events = POLLIN},
        {.fd = run_lease_lost_fd(&k->lease), .events = POLLIN}};
    const int64_t before_us = 10000;
    do {
        publish(k);
        if (give_up(k))
            return;
        int64_t due = run_guard(k->sh, k->r->grace_ms), now = cli_now_us();
        bool told = atomic_load(&k->sh->ended) &&
                    !run_guard_renewed(k->sh, k->r->lease_ms);
        int64_t look = now + (told ? 20000 : k->r->lease_ms * 1000 / 6);
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
           run_lease_valid_ms(&k->lease) > 0 && cli_is_alive(target))
        cli_poll(NULL, 0, cli_now_us() + 2000);
}

static void release(keeper *k)
{
    rlock_status s = run_lease_release(&k->lease);
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
    must(&k, cli_open(&k.server, r->cli, r->lease_ms));
    must(&k, run_lease_open(&k.lease, &k.server, r));
    acquire(&k);
    grant(&k);
    cli_be_prompt();
    keep(&k);
    if (!atomic_load(&sh->over))
        end_command(&k);
    release(&k);
    end(&k);
}
