/*
 * Owners that are no threads: tasks, which threads of the program that are
 * loops start things for, and are called back. A loop polls the descriptors of
 * its process' clients, dispatches, and goes on with tasks that have something
 * to do; with several loops each may be called back for what another has
 * started.
 *
 * Judged here: each start that returned OK is called back exactly once, never
 * inside of the call, on a thread that dispatches or closes, with no mutex; and
 * what was freed meanwhile is not held. What came of it is judged as a call is.
 *
 * What stays true: who works for a task has set its state before, so no other
 * loop does; a start of a former owner of the task knows so by the generation.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"

typedef struct start {
    struct start *next;
    act a;
    int generation, by; /* by: the thread that is in the call; -1: none */
    bool is_started, is_over;
} start;

static start *starts;
static int tasks_alive;

/* --- the owner of a task -------------------------------------------------- */

static void make_owner(owner *o)
{
    rlock_status s;
    int64_t since = w.now;
    o->generation++;
    snprintf(o->label, sizeof o->label, "task%d.%d", o->id, o->generation);
    o->made_by = running->id;
    for (; (s = rlock_owner_new(o->label, &o->self)); since = w.now) {
        if (!judge_excuses(o->g, s, since))
            finding("no owner: %s", rlock_status_str(s));
        sleep_for(MS);
    }
}

/* With all that it holds, and what it has started. */
static void free_owner(owner *o)
{
    rlock_owner *self = o->self;
    trace("owner %d, %s, is freed", o->id, o->label);
    if (o->waits)
        owner_note_wait(o, true);
    o->waits = NULL;
    o->self = NULL;
    owner_abandon(o);
    rlock_owner_free(self);
}

static void rest(owner *o, int64_t ns)
{
    o->due = w.now + ns;
    o->state = TASK_RESTS;
}

static void end_task(owner *o)
{
    rlock_owner *self = o->self;
    o->state = TASK_ENDED;
    o->self = NULL;
    rlock_owner_free(self);
    tasks_alive--;
    wake_waiters(&tasks_alive, true);
}

/* --- what is called back -------------------------------------------------- */

static void check_callback(const start *s)
{
    const program *g = s->a.o->g;
    if (s->is_over)
        finding("judge 4: %s of %s, which was started, is called back twice",
                s->a.verb, locks[s->a.lock].name);
    if (s->by == running->id)
        finding("judge 10: %s of %s is called back inside of the start",
                s->a.verb, locks[s->a.lock].name);
    if (running->mutexes > 0)
        finding("judge 10: %s of %s is called back under %d mutexes", s->a.verb,
                locks[s->a.lock].name, running->mutexes);
    if (running->is_library || running->p != &g->p)
        finding("judge 10: %s of %s is called back on a thread of the library",
                s->a.verb, locks[s->a.lock].name);
}

/* Of several locks each event is told by its own client, and one may be at it
   when the next verb is over. */
static void check_told(const start *s)
{
    const lock *l = &locks[s->a.lock];
    bool judged =
        cfg.multis == 0 && !l->has_red && s->generation == s->a.o->generation;
    for (int i = 1; judged && i < threads_n; i++) {
        const rlock_event *e = threads[i]->tells;
        if (e &&
            (e->type == RLOCK_EVENT_ACQUIRED ||
             e->type == RLOCK_EVENT_RELEASED ||
             e->type == RLOCK_EVENT_CONTENDED ||
             e->type == RLOCK_EVENT_WAITED_LONG) &&
            strcmp(e->owner, s->a.o->label) == 0 && threads[i] != running)
            finding("judge 10: %s of %s is called back while its event %d is "
                    "being told",
                    s->a.verb, l->name, (int)e->type);
    }
}

/* Of several locks another one's client may have been closed before. */
static void check_closed(const start *s, rlock_status status)
{
    const lock *l = &locks[s->a.lock];
    if (status == RLOCK_ECLOSED && strcmp(s->a.verb, "acquire") != 0 &&
        !l->is_multi && !l->has_red)
        finding("judge 4: %s of %s, which was started before, is told that its "
                "client is closed",
                s->a.verb, l->name);
}

/* Its owner was freed meanwhile: what it has got is nobody's. Of several who
   dispatch another one may have begun to call back before that: loops, and who
   waits for permits or a latch. An unlock is done. */
static void check_freed(const start *s, rlock_status status)
{
    const char *name = locks[s->a.lock].name;
    bool unlocks = strcmp(s->a.verb, "unlock") == 0;
    if (unlocks && status == RLOCK_NOT_HELD)
        finding("judge 3: unlock of %s, which was started before its owner was "
                "freed, finds nothing",
                name);
    bool alone = cfg.loops == 1 && cfg.permits == 0 && cfg.latch == 0;
    if (alone && status == RLOCK_OK && !unlocks)
        finding("judge 3: %s of %s is ok, and its owner was freed", s->a.verb,
                name);
}

static void note_unlocked(owner *o, const act *a)
{
    const lock *l = &locks[a->lock];
    rlock_status each = l->n > 1 ? RLOCK_OK : a->status;
    for (int i = 0; i < o->taken_n; i++)
        if (o->taken[i] == a->lock) {
            o->taken[i] = o->taken[--o->taken_n];
            break;
        }
    for (int k = 0; k < l->n; k++)
        drop_level(o, l->member[k], each);
}

static void note_outcome(owner *o, act *a)
{
    if (strcmp(a->verb, "unlock") == 0)
        note_unlocked(o, a);
    else if (strcmp(a->verb, "extend") == 0)
        note_extended(a);
    else if (a->status == RLOCK_OK)
        note_taken(o, a);
    if (strcmp(a->verb, "unlock") != 0)
        note_lease(a);
    look_at_all(o);
}

static void task_step(owner *o);

void task_rests(owner *o)
{
    rest(o, chance_skewed(&o->dice, cfg.think_ms * MS));
}

static void done(rlock *lk, rlock_status status, void *arg)
{
    start *s = arg;
    owner *o = s->a.o;
    (void)lk;
    check_callback(s);
    check_told(s);
    check_closed(s, status);
    s->is_over = true;
    if (s->generation != o->generation || !o->self) {
        check_freed(s, status);
        return;
    }
    o->state = TASK_ACTS;
    if (o->g->closing_at && o->waits)
        owner_note_wait(o, false);
    o->waits = NULL;
    act_end(&s->a, status);
    if (o->g->closing_at)
        return;
    note_outcome(o, &s->a);
    if (chance_below(&o->dice, 3) == 0)
        task_step(o);
    else
        task_rests(o);
}

/* --- what is started ------------------------------------------------------ */

static start *new_start(owner *o, const char *verb, int lock)
{
    start *s = need_memory(sizeof *s);
    s->a = act_begin(o, verb, lock);
    s->a.is_started = true;
    s->generation = o->generation;
    s->by = running->id;
    s->next = starts;
    starts = s;
    o->state = TASK_WAITS;
    return s;
}

/* Another loop may still act as the owner, which the manual has it refuse. What
   was started is unlocked whether there is memory or not. */
static void check_start(const start *s, rlock_status status)
{
    const owner *o = s->a.o;
    if (status == RLOCK_OK || o->g->closing_at)
        return;
    if (strcmp(s->a.verb, "unlock") != 0 &&
        judge_excuses(o->g, status, s->a.began))
        return;
    if (status != RLOCK_EINVAL || o->acting < 2)
        finding("the start of %s of %s: %s (%s)", s->a.verb,
                locks[s->a.lock].name, rlock_status_str(status),
                rlock_last_error()->message);
}

static void started(start *s, rlock_status status)
{
    owner *o = s->a.o;
    s->by = -1;
    check_start(s, status);
    s->is_started = status == RLOCK_OK;
    if (status == RLOCK_OK)
        return;
    s->is_over = true;
    o->waits = NULL;
    rest(o, MS);
}

/* Its handle may be freed as soon as that has returned. */
static rlock *take_handle(owner *o, int lock, bool *is_own)
{
    *is_own = cfg.remake > 0 && cfg.close_at_ms == 0 &&
              chance_below(&o->dice, 4) == 0;
    return *is_own ? program_make_handle(o->g, lock) : o->g->handle[lock];
}

static void start_acquire(owner *o, int lock)
{
    bool own;
    bool nested = holds_all(o, lock), is_idle = o->taken_n == 0;
    start *s = new_start(o, "acquire", lock);
    act *a = &s->a;
    a->is_nested = nested;
    a->wait_ms = chance_below(&o->dice, 3) == 0
                     ? 0
                     : chance_skewed(&o->dice, is_idle ? 5000 : 1000);
    if (is_idle && chance_below(&o->dice, 100) < cfg.forever_pct)
        a->wait_ms = RLOCK_FOREVER;
    a->lease_ms = chance_below(&o->dice, 100) < cfg.lease_pct
                      ? 50 + chance_skewed(&o->dice, cfg.lease_ms)
                      : RLOCK_WATCHDOG;
    o->waits = a;
    expect_nested(a);
    trace("owner %d: wait %lld ms, lease %lld ms, started", o->id,
          (long long)a->wait_ms, (long long)a->lease_ms);
    rlock *lk = take_handle(o, lock, &own);
    a->began = w.now;
    started(s, rlock_acquire_start(lk, a->wait_ms, a->lease_ms, done, s));
    if (own)
        rlock_free(lk);
}

static void start_unlock(owner *o)
{
    bool own;
    int lock = o->taken[chance_below(&o->dice, o->taken_n)];
    look_at_all(o);
    start *s = new_start(o, "unlock", lock);
    s->a.is_nested = true;
    for (int k = 0; k < locks[lock].n; k++)
        if (o->hold[locks[lock].member[k]]->levels == 1)
            o->hold[locks[lock].member[k]]->unlocking = w.now;
    rlock *lk = take_handle(o, lock, &own);
    s->a.began = w.now;
    started(s, rlock_unlock_start(lk, done, s));
    if (own)
        rlock_free(lk);
}

static void start_extend(owner *o)
{
    int lock = o->taken[chance_below(&o->dice, o->taken_n)];
    start *s = new_start(o, "extend", lock);
    s->a.is_nested = true;
    s->a.lease_ms = chance_below(&o->dice, 3) == 0
                        ? RLOCK_WATCHDOG
                        : 50 + chance_skewed(&o->dice, 1500);
    expect_extended(&s->a);
    started(s, rlock_extend_start(o->g->handle[lock], s->a.lease_ms, done, s));
}

/* --- what a task does next ------------------------------------------------ */

static void act_holding(owner *o)
{
    int64_t which =
        chance_below(&o->dice, 20 + cfg.extend + cfg.more + cfg.guard);
    look_at_all(o);
    if (which < 10 || o->steps <= 0)
        start_unlock(o);
    else if (which < 20)
        rest(o, chance_skewed(&o->dice, cfg.hold_ms * MS));
    else if (which < 20 + cfg.extend)
        start_extend(o);
    else if (which < 20 + cfg.extend + cfg.guard && start_guard(o))
        ;
    else if (o->taken_n < DEPTH_MAX)
        start_acquire(o, (int)chance_below(&o->dice, locks_n));
    else
        rest(o, MS);
}

/* As the owner, whoever it acts as. */
static void task_step(owner *o)
{
    o->state = TASK_ACTS;
    rlock_owner *former = rlock_owner_set(o->self);
    o->acting++;
    if (o->g->closing_at)
        o->state = TASK_ENDED;
    else if (o->taken_n > 0)
        act_holding(o);
    else
        start_acquire(o, (int)chance_below(&o->dice, locks_n));
    o->steps--;
    rlock_owner_set(former);
    o->acting--;
}

/* Until it is called back. Threads that dispatch act as it, too, meanwhile. */
static void check_busy(const owner *o)
{
    bool is_busy = rlock_owner_is_busy(o->self);
    if (cfg.loops == 1 && o->state == TASK_WAITS && !is_busy)
        finding("owner %d has something under way, and is not busy", o->id);
    if (cfg.loops == 1 && o->state == TASK_RESTS && !o->acting && is_busy)
        finding("owner %d has nothing under way, and is busy", o->id);
}

/* Another loop might end the owner meanwhile. */
static void cancel_wait(owner *o)
{
    if (cfg.loops != 1 || !o->waits)
        return;
    trace("owner %d cancels its wait", o->id);
    o->canceled_at = w.now;
    rlock_owner_cancel(o->self);
}

static void check_canceled(const owner *o)
{
    if (cfg.calm && o->waits && o->canceled_at >= o->waits->began &&
        w.now - o->canceled_at > 1000 * MS)
        finding("judge 6: owner %d has canceled its wait for %s, and waits on",
                o->id, locks[o->waits->lock].name);
}

#define CHANCES 3000
#define CANCELS 10

/* Freed with what it holds or waits for; canceled; or gone on with. */
static void look_after(owner *o)
{
    int64_t chance = CHANCES;
    if (o->self)
        check_busy(o);
    if (o->state == TASK_WAITS)
        chance = chance_below(&o->dice, CHANCES);
    check_canceled(o);
    if (chance < CHANCES && chance >= CHANCES - CANCELS) {
        cancel_wait(o);
    } else if (chance < cfg.end_pct && o->acting == 0) {
        o->state = TASK_ACTS; /* not by two loops */
        free_owner(o);
        make_owner(o);
        rest(o, MS);
    } else if (o->state == TASK_RESTS && o->due <= w.now) {
        if (o->steps > 0 || o->taken_n > 0)
            task_step(o);
        else
            end_task(o);
    }
}

/* --- loops ---------------------------------------------------------------- */

static bool is_task_of(const owner *o, const program *g)
{
    return o->g == g && o->is_task;
}

static int64_t next_due(const program *g)
{
    int64_t due = w.now + 100 * MS;
    for (int i = 0; i < OWNERS_MAX; i++)
        if (is_task_of(&owners[i], g) && owners[i].state == TASK_RESTS &&
            owners[i].due < due)
            due = owners[i].due;
    return due > w.now ? (due - w.now) / MS + 1 : 0;
}

static void make_tasks(program *g)
{
    for (int i = 0; i < OWNERS_MAX; i++)
        if (is_task_of(&owners[i], g) && owners[i].state == TASK_NONE) {
            owners[i].state = TASK_ACTS;
            make_owner(&owners[i]);
            rest(&owners[i], MS);
        }
}

static void dispatch(program *g, int k)
{
    rlock_status s = rlock_client_dispatch(g->client[k]);
    if (s && !g->closing_at)
        finding("dispatching: %s (%s)", rlock_status_str(s),
                rlock_last_error()->message);
}

static void turn(program *g, struct pollfd *fds)
{
    poll(fds, (nfds_t)cfg.servers, (int)next_due(g));
    for (int k = 0; k < cfg.servers && !g->closing_at; k++)
        if (fds[k].revents || chance_below(&w.dice, 50) == 0)
            dispatch(g, k);
    for (int i = 0; i < OWNERS_MAX && !g->closing_at; i++)
        if (is_task_of(&owners[i], g))
            look_after(&owners[i]);
    faults_strike();
}

static void *loop(void *arg)
{
    program *g = arg;
    struct pollfd fds[SERVERS_MAX];
    pthread_setname_np(pthread_self(), "loop");
    running->is_library = false;
    for (int k = 0; k < cfg.servers; k++) {
        fds[k] = (struct pollfd){rlock_client_fd(g->client[k]), POLLIN, 0};
        if (fds[k].fd < 0 && !g->closing_at)
            finding("no descriptor: %s", rlock_last_error()->message);
    }
    make_tasks(g);
    while (!g->closing_at)
        turn(g, fds);
    for (int i = 0; i < OWNERS_MAX; i++)
        if (is_task_of(&owners[i], g) && owners[i].state == TASK_RESTS)
            owners[i].state = TASK_ENDED;
    g->loops--;
    wake_waiters(&g->loops, true);
    return NULL;
}

/* --- all of them ---------------------------------------------------------- */

static void begin_task(program *g, int i)
{
    owner *o = &owners[i];
    o->id = i;
    o->g = g;
    o->is_task = true;
    o->steps = cfg.steps;
    chance_init(&o->dice, chance_next(&w.dice));
    tasks_alive++;
}

void loops_start(void)
{
    for (int i = 0; i < cfg.tasks && cfg.loops > 0; i++)
        begin_task(&programs[i % cfg.processes], (int)cfg.owners + i);
    for (int i = 0; i < cfg.processes * cfg.loops; i++) {
        program *g = &programs[i % cfg.processes];
        running->p = &g->p;
        g->loops++;
        program_thread(loop, g);
    }
}

/* Their ends, but of a process that was closed meanwhile. */
static bool all_ended(void)
{
    for (int i = 0; i < OWNERS_MAX; i++)
        if (owners[i].is_task && owners[i].state != TASK_ENDED &&
            !owners[i].g->closing_at)
            return false;
    return true;
}

void loops_join(void)
{
    while (!all_ended())
        block(&tasks_alive, "the end of tasks", NEVER);
}

void loops_died(void)
{
    wake_waiters(&tasks_alive, true);
}

/* Nobody polls or dispatches any more: then clients may be freed. */
void loops_stop(program *g)
{
    while (g->loops > 0)
        block(&g->loops, "the end of loops", NEVER);
    wake_waiters(&tasks_alive, true);
}

/* Its clients are closed: so all has been called back. */
void loops_closed(program *g)
{
    for (const start *s = starts; s; s = s->next)
        if (s->a.o->g == g && s->is_started && !s->is_over)
            finding("judge 4: %s of %s, which was started, is never called "
                    "back",
                    s->a.verb, locks[s->a.lock].name);
    for (int i = 0; i < OWNERS_MAX; i++)
        if (is_task_of(&owners[i], g) && owners[i].self) {
            rlock_owner_free(owners[i].self);
            owners[i].self = NULL;
        }
}
