/*
 * A process of the attack, from start to end: a client for each server, two
 * handles of each lock, threads that use them, and what the library tells.
 */
#include "worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "excuse.h"
#include "fiber.h"
#include "locks.h"
#include "loop.h"
#include "metronome.h"
#include "queued.h"
#include "rest.h"

worker me;

void worker_notice(note_kind kind, int lock, int64_t from_us, int64_t to_us,
                   uint64_t value)
{
    note n = {attack_now_us(), from_us, to_us, value, kind, (uint32_t)lock};
    history_note(me.h, &n);
}

void pause_us(int64_t us)
{
    if (me.on_loop && loop_owner_runs()) {
        loop_sleep(us);
        return;
    }
    struct timespec ts = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&ts, NULL);
}

int64_t worker_replicas_ms(void)
{
    return me.a->min_replicas ? REPLICAS_MS : 0;
}

/* --- events -------------------------------------------------------------- */

void remember(hold *r)
{
    recent *of = &me.recent[r->lock];
    pthread_mutex_lock(&of->mutex);
    of->holds[of->n++ % RECENT] = r;
    pthread_mutex_unlock(&of->mutex);
}

static hold *recall(int lock, uint64_t token)
{
    hold *found = NULL;
    if (lock < 0)
        return NULL;
    recent *of = &me.recent[lock];
    pthread_mutex_lock(&of->mutex);
    for (unsigned i = 0; i < RECENT && i < of->n && !found; i++)
        if (atomic_load(&of->holds[i]->token) == token)
            found = of->holds[i];
    pthread_mutex_unlock(&of->mutex);
    return found;
}

static int lock_of(const rlock_event *ev)
{
    return lock_with_key(ev->name) + (ev->kind == RLOCK_KIND_WRITE);
}

/*
 * The end of a hold, told on a thread of the library's. The client may be that
 * of another member of a Multi lock, so it does not tell which server's it is.
 */
static void note_end(const rlock_event *ev)
{
    bool lost = ev->type == RLOCK_EVENT_LOST;
    int lock = lock_of(ev);
    if (lock_is_shared(lock)) {
        worker_notice(NOTE_TOLD, lock, lost, 0, ev->token);
        return;
    }
    hold *r = recall(lock, ev->token);
    if (!r)
        r = recall(lock_twin(lock), ev->token);
    if (!r) { /* told before our acquire has returned */
        worker_notice(NOTE_EARLY_END, lock, lost, 0, ev->token);
        return;
    }
    if (r->whole)
        r = &me.h->holds[r->whole - 1];
    if (!r->told_ms)
        r->told_ms = (uint32_t)((attack_now_us() - r->granted_us) / 1000 + 1);
    atomic_fetch_add(lost ? &r->lost_events : &r->abandoned_events, 1);
}

static _Thread_local actor itself;
static _Thread_local actor *acting;

void act_as(actor *a)
{
    acting = a;
}

static actor *who_acts(void)
{
    return acting ? acting : &itself;
}

uint64_t granted_token(int lock)
{
    return who_acts()->granted[lock];
}

int64_t stood_us(void)
{
    return who_acts()->stood_us;
}

void forget_grants(void)
{
    memset(who_acts()->granted, 0, sizeof itself.granted);
    who_acts()->stood_us = 0;
}

void count_by_events(bool yes)
{
    who_acts()->by_events = yes;
}

/* A single lock's own server, or the first in the list of a Red lock's. */
static int lock_on(const rlock_event *ev, int server)
{
    int lock = lock_of(ev), twin = lock_twin(lock);
    return twin >= 0 && lock_servers(lock) != 1U << server ? twin : lock;
}

/* A Multi lock may have let go of it meanwhile, and have lost it by then. */
static void note_grant(actor *who, int lock, uint64_t token)
{
    uint64_t *granted = &who->granted[lock];
    if (who->by_events && *granted && *granted != token)
        worker_notice(NOTE_TAKEN, lock, 0, 0, *granted);
    *granted = token;
}

/* What a loop's owners have started. */
static actor *who_is_told(const rlock_event *ev)
{
    bool of_call = ev->type == RLOCK_EVENT_ACQUIRED ||
                   ev->type == RLOCK_EVENT_RELEASED ||
                   ev->type == RLOCK_EVENT_CONTENDED;
    actor *owner = me.on_loop && of_call ? loop_actor(ev->owner) : NULL;
    return owner ? owner : &itself;
}

static void on_event(const rlock_event *ev, void *arg)
{
    int server = (int)(intptr_t)arg;
    actor *who = who_is_told(ev);
    if (lock_with_key(ev->name) < 0) /* see use_before() */
        return;
    if (ev->type == RLOCK_EVENT_ACQUIRED) {
        note_grant(who, lock_on(ev, server), ev->token);
        atomic_fetch_add(&me.acquires[server], who->by_events);
    } else if (ev->type == RLOCK_EVENT_CONTENDED) {
        who->stood_us = attack_now_us();
    } else if (ev->type == RLOCK_EVENT_RELEASED) {
        atomic_fetch_add(&me.releases[server], who->by_events);
    } else if (ev->type == RLOCK_EVENT_LOST ||
               ev->type == RLOCK_EVENT_ABANDONED) {
        note_end(ev);
    }
}

/* --- clients and locks --------------------------------------------------- */

rlock_options worker_options(int server)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = me.a->uri[me.proc][server];
    opts.connect_timeout_ms = COMMAND_MS;
    opts.command_timeout_ms = COMMAND_MS;
    opts.watchdog_lease_ms = LEASE_MS;
    if (server == HOME) {
        opts.min_replicas = me.a->min_replicas;
        opts.replica_wait_ms = REPLICAS_MS;
    }
    return opts;
}

static void make_client(int server)
{
    rlock_options opts = worker_options(server);
    opts.turn_ms = me.a->turn_ms;
    opts.grants = me.proc % 2 == 0; /* the others are rung */
    opts.lazy = me.life % 4 < 2;
    opts.on_event = on_event;
    opts.event_arg = (void *)(intptr_t)server;
    /* A process may be started while the server is being attacked. */
    while (rlock_client_new(&opts, &me.cl[server]) != RLOCK_OK) {
        pause_us(20000);
        if (atomic_load(&me.a->stop)) /* no sanitizer looks at what is left */
            syscall(SYS_exit_group, 0);
    }
}

static rlock *make_single(int lock)
{
    char key[LOCK_KEY_MAX];
    rlock *lk = NULL;
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    opts.layout = lock_layout(lock);
    opts.local_levels = me.proc % 2 == 1;
    opts.fair = lock_kind_of(lock) == LOCK_FAIR;
    lock_key(lock, key);
    if (rlock_new_ex(me.cl[lock_home(lock)], key, strlen(key), &opts, &lk))
        attack_die("%s", rlock_last_error()->message);
    return lk;
}

static rlock *make_side(int lock)
{
    char key[LOCK_KEY_MAX];
    rlock *lk = NULL;
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    opts.local_levels = me.proc % 2 == 1;
    bool reads = lock_kind_of(lock) == LOCK_READ;
    lock_key(lock, key);
    if (rlock_rw_new_ex(me.cl[HOME], key, strlen(key), &opts,
                        reads ? &lk : NULL, reads ? NULL : &lk))
        attack_die("%s", rlock_last_error()->message);
    return lk;
}

static rlock_semaphore *make_semaphore(int lock)
{
    char key[LOCK_KEY_MAX];
    rlock_semaphore *s = NULL;
    rlock_semaphore_options opts = RLOCK_SEMAPHORE_OPTIONS_INIT;
    opts.permits = lock_permits(lock);
    opts.idle_ms = lock_idles(lock) ? LEASE_MS : 0;
    lock_key(lock, key);
    if (rlock_semaphore_new_ex(me.cl[HOME], key, strlen(key), &opts, &s))
        attack_die("%s", rlock_last_error()->message);
    return s;
}

/*
 * This process may be younger than a node's last restart, and what it does not
 * know from its clients the node's uptime tells.
 */
static rlock *make_red(int lock)
{
    char key[LOCK_KEY_MAX];
    rlock *lk = NULL;
    rlock_client *nodes[NODES];
    int n = servers_count(lock_servers(lock));
    int first = lock_home(lock) - 1;
    rlock_red_options opts = RLOCK_RED_OPTIONS_INIT;
    opts.layout = lock_layout(lock);
    opts.check_uptime = true;
    for (int i = 0; i < n; i++)
        nodes[i] = me.cl[1 + (first + i) % n];
    lock_key(lock, key);
    if (rlock_red_new_ex(nodes, (size_t)n, key, strlen(key), &opts, &lk))
        attack_die("%s", rlock_last_error()->message);
    return lk;
}

/* Each worker lists the members in another order. */
static rlock *make_multi(int lock, rlock *const handles[])
{
    int members[MEMBERS_MAX];
    int n = lock_members(lock, members);
    rlock *list[MEMBERS_MAX], *lk = NULL;
    for (int i = 0; i < n; i++)
        list[me.proc % 2 ? n - 1 - i : i] =
            handles[members[(i + me.proc / 2) % n]];
    if (rlock_multi_new(list, (size_t)n, &lk))
        attack_die("%s", rlock_last_error()->message);
    return lk;
}

int lock_home(int lock)
{
    unsigned servers = lock_servers(lock);
    return lock_kind_of(lock) == LOCK_RED ? 1 + me.proc % servers_count(servers)
                                          : servers_first(servers);
}

static rlock *make_handle(int lock, rlock *const handles[])
{
    switch (lock_kind_of(lock)) {
    case LOCK_SINGLE:
    case LOCK_FAIR:
        return make_single(lock);
    case LOCK_RED:
        return make_red(lock);
    case LOCK_MULTI:
        return make_multi(lock, handles);
    case LOCK_READ:
    case LOCK_WRITE:
        return make_side(lock);
    default:
        return NULL;
    }
}

static void make_handles(rlock *handles[])
{
    for (int i = 0; i < LOCKS; i++)
        handles[i] = make_handle(i, handles);
}

static void make_semaphores(void)
{
    for (int i = FIRST_SEMAPHORE; i < LOCKS; i++)
        me.semaphores[i] = make_semaphore(i);
}

/* A Multi lock before its members. */
static void free_handles(rlock *handles[])
{
    for (int i = LOCKS; i-- > 0;)
        rlock_free(handles[i]);
}

/*
 * A client may have been used for something else before it becomes a Red lock's
 * node, or a Multi lock's: it has connections then, and has met its server.
 */
static void use_before(int server)
{
    char name[LOCK_KEY_MAX];
    rlock *lk = NULL;
    snprintf(name, sizeof name, "before:%d", me.life);
    if (rlock_new(me.cl[server], name, &lk) != RLOCK_OK)
        attack_die("%s", rlock_last_error()->message);
    if (rlock_acquire(lk, 0, LEASE_MS) == RLOCK_OK) {
        me.acquires[server]++;
        me.releases[server] += rlock_unlock(lk) == RLOCK_OK;
    }
    rlock_free(lk);
}

static void make_all(void)
{
    for (int i = 0; i < SERVERS; i++)
        make_client(i);
    for (int i = 0; i < SERVERS && me.life % 2; i++)
        use_before(i);
    shim_spare_me(true);
    make_handles(me.outer);
    make_handles(me.inner);
    make_semaphores();
    shim_spare_me(false);
}

static void free_all_handles(void)
{
    free_handles(me.inner);
    free_handles(me.outer);
    for (int i = FIRST_SEMAPHORE; i < LOCKS; i++)
        rlock_semaphore_free(me.semaphores[i]);
}

static void free_client(rlock_client *cl)
{
    int64_t from_us = attack_now_us();
    uint64_t queued = queued_us();
    rlock_client_free(cl);
    int64_t to_us = attack_now_us();
    if (to_us - from_us > client_end_us(me.a))
        worker_notice(NOTE_LATE_END, 0, from_us, to_us, queued_us() - queued);
}

void worker_free_clients(void)
{
    for (int i = 0; i < SERVERS; i++)
        free_client(me.cl[i]);
}

void worker_begin_anew(void)
{
    free_all_handles();
    for (int i = 0; i < SERVERS; i++) {
        atomic_store(&me.acquires[i], 0);
        atomic_store(&me.releases[i], 0);
    }
    make_all();
}

/* --- from start to end --------------------------------------------------- */

static void *labour_on_thread(void *arg)
{
    queued_begin();
    labour((int)(intptr_t)arg);
    queued_end();
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        int err = pthread_create(&threads[i], NULL, labour_on_thread,
                                 (void *)(intptr_t)i);
        if (err)
            attack_die("cannot start a thread: %s", strerror(err));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void compare(uint64_t clients, uint64_t ours)
{
    if (clients != ours)
        worker_notice(NOTE_COUNT, 0, (int64_t)clients, (int64_t)ours, 0);
}

static rlock_stats stats_of(int server)
{
    rlock_stats stats;
    if (rlock_client_stats(me.cl[server], &stats, sizeof stats) != RLOCK_OK)
        attack_die("%s", rlock_last_error()->message);
    return stats;
}

/*
 * Nobody holds anything any more. Only what a Red lock has on a node may end a
 * moment later.
 */
static void compare_counts(int server)
{
    int64_t until_us = attack_now_us() + LEASE_MS * 1000;
    rlock_stats stats = stats_of(server);
    while (server != HOME && stats.held_now && attack_now_us() < until_us) {
        pause_us(10000);
        stats = stats_of(server);
    }
    compare(stats.acquires, atomic_load(&me.acquires[server]));
    compare(stats.releases, atomic_load(&me.releases[server]));
    compare(stats.held_now, 0);
}

static void ignore_signal(int sig)
{
    (void)sig;
}

/* System calls are interrupted, not restarted. */
static void take_signals(void)
{
    struct sigaction sa = {.sa_handler = ignore_signal};
    sigaction(SIGUSR1, &sa, NULL);
}

int worker_main(const char *dir, int proc, int life, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    take_signals();
    me.a = arena_map(dir, false);
    me.h = history_map(dir, life, true);
    shim_share(&me.a->panels[proc]);
    me.proc = proc;
    me.life = life;
    me.on_loop = proc >= PROCS - LOOPS && fiber_is_possible();
    metronome beat;
    rest resting;
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&me.recent[i].mutex, NULL);
    make_all();
    metronome_start(&beat, me.h);
    rest_start(&resting);
    if (me.on_loop)
        loop_run();
    else
        run_threads();
    rest_stop(&resting);
    for (int i = 0; i < SERVERS && !me.closed; i++)
        compare_counts(i);
    free_all_handles();
    queued_begin();
    if (!me.closed)
        worker_free_clients();
    queued_end();
    metronome_stop(&beat);
    history_unmap(me.h);
    return 0;
}
