/*
 * The program that uses the library: owners, which are threads in straight-line
 * C on the public API, and what they use.
 *
 *   thing    what a name locks: at one server, or (Red) at all
 *   lock     what an owner takes: one thing, or (Multi) several
 *   program  one process' clients and handles
 *   owner    who takes locks; a verb is what it does next
 *   hold     an owner's of a thing, as it was told of it (judge.h)
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include <rlock/rlock.h>

#include "world.h"

#define SINGLES_MAX 3
#define REDS_MAX    2
#define MULTIS_MAX  2
#define THINGS_MAX  (SINGLES_MAX + REDS_MAX)
#define LOCKS_MAX   (THINGS_MAX + MULTIS_MAX)
#define OWNERS_MAX  32
#define DEPTH_MAX   8

typedef struct thing {
    const char *name;
    bool is_red;
    int home; /* the server, of a single one */
} thing;

typedef struct lock {
    char name[40]; /* for the trace */
    int member[THINGS_MAX];
    int n;
    bool is_multi, has_red;
} lock;

extern thing things[THINGS_MAX];
extern lock locks[LOCKS_MAX];
extern int things_n, locks_n;

typedef struct program {
    process p;
    rlock_client *client[SERVERS_MAX];
    rlock *handle[LOCKS_MAX];
    rlock_latch *gate;
    rlock *shared[2]; /* to read, and to write */
    rlock_semaphore *pool;
    int64_t canceled_at[LOCKS_MAX], canceled_all;
    int canceling[LOCKS_MAX]; /* owners that cancel its waits, just now */
    int cancelers;            /* clients that cancel all waits, likewise */
    bool is_silent[SERVERS_MAX];
    int64_t closing_at;      /* 0: it is open */
    bool is_closed, is_dead; /* dead: as if its clients were closed */
    int loops;               /* that run */
} program;

extern program programs[PROCESSES_MAX];

typedef struct hold hold;
typedef struct act act;

/* Of an owner that is no thread (loops.c). */
typedef enum task_state {
    TASK_NONE, /* it is still to be made */
    TASK_RESTS,
    TASK_ACTS,  /* a loop works for it */
    TASK_WAITS, /* for what it has started */
    TASK_ENDED
} task_state;

typedef struct owner {
    int id;
    program *g;
    chance dice;
    int64_t steps;         /* that are left to it */
    rlock *own[LOCKS_MAX]; /* handles of its own; NULL: the program's */
    int taken[DEPTH_MAX];  /* locks, one for each acquire to be undone */
    int taken_n;
    hold *hold[THINGS_MAX]; /* NULL: it has none */
    const act *waits;       /* the acquire that it is in; or NULL */
    const thread *calls;    /* whose acquire or unlock it is in; or NULL */
    int through;            /* which lock's handle that uses */
    bool lives;             /* a thread acts as it, one after the other */
    bool is_task;
    task_state state;
    rlock_owner *self;
    char label[24];
    int made_by;         /* the thread's id, which shows in its holder ids */
    int acting;          /* how many threads act as it */
    int64_t due;         /* when it has rested */
    int generation;      /* the how many'th thread */
    int64_t canceled_at; /* its own wait */
} owner;

extern owner owners[OWNERS_MAX];

/* --- program.c ------------------------------------------------------------ */

/* Of the seed: what was drawn is in cfg. Returns when all is judged. */
void program_run(void);

rlock *program_make_handle(program *g, int lock);
program *program_of(const rlock_client *cl);
int thing_of(const char *name);

/* prefix:{name}, whose slot is the name's; if it has braces, as it is. */
int key_beside(char *at, size_t room, const char *prefix, const char *name);

/* --- clients.c ------------------------------------------------------------ */

void client_make(program *g, int server);
bool client_is_heard(int server); /* has it an on_event? */

/* --- death.c -------------------------------------------------------------- */

void death_begin(void);         /* the last process dies, if it is drawn */
bool death_leaves_leases(void); /* then some wait for longer: for their ends */
bool death_has_been(void);
bool death_was_since(int64_t when);
/* How long a dead process may stand in a line: from its last sign of life on, and
   for the claim of a grant. lua/line.lua. */
#define DEAD_STANDS (9 * S)

/* --- owners.c ------------------------------------------------------------- */

void owners_start(void);
void owners_join(void);
void owners_died(const program *g); /* with their process; likewise below */

/* In on_event: the handle of the call may go. */
void owner_frees_handle(void);

/* Its wait ends, and it is not told how. */
void owner_note_wait(owner *o, bool is_abandoned);

/* --- loops.c -------------------------------------------------------------- */

void loops_start(void);
void loops_join(void);
void loops_stop(program *g);
void loops_closed(program *g);
void loops_died(void);

void task_rests(owner *o); /* it has something to do in a while */

/* --- asks.c ----------------------------------------------------------------
 */

void act_ask(owner *o);

/* --- cancels.c ------------------------------------------------------------ */

void act_cancel(owner *o);
void act_silence(owner *o);
bool was_canceled(const program *g, int lock, int64_t since);

/* --- alarms.c ------------------------------------------------------------- */

void act_mind(owner *o);

/* --- latches.c ------------------------------------------------------------ */

void act_latch(owner *o);
void latch_make(program *g);
bool latch_is(const char *name); /* is that its name? */
void latch_forget(int server);   /* it has lost its data, just now */

/* --- rw.c ----------------------------------------------------------------- */

void act_rw(owner *o);
void rw_make(program *g);
bool rw_is(const char *name); /* is that its name? */
void rw_forget(int server);   /* it has lost its data, just now */
void rw_died(const program *g);

/* --- semaphores.c --------------------------------------------------------- */

void act_permits(owner *o);
void semaphore_make(program *g);
bool semaphore_is(const char *name); /* is that its name? */
void semaphore_told(const rlock_event *e);
void semaphore_died(const program *g);
void semaphore_forget(int server); /* it has lost its data, just now */
size_t semaphore_keys(int server); /* which are there for ever */

/* --- lent.c --------------------------------------------------------------- */

#define LENT "lent" /* what such owners are called by */
void act_lend(owner *o);

/* --- used.c --------------------------------------------------------------- */

void use_clients(program *g);
bool used_is(const char *name); /* is that the name of such a lock? */

/* --- guard.c -------------------------------------------------------------- */

void act_guard(owner *o);
bool start_guard(owner *o); /* false: there is nothing to be guarded */

/* --- verbs.c -------------------------------------------------------------- */

/* What an owner may do next. */
typedef struct verb {
    const char *name;
    const int64_t *weight; /* how often, against the others; NULL: as 10 */
    bool needs_hold, needs_none;
    void (*act)(owner *o);
} verb;

extern const verb verbs[];
extern const int verbs_n;

rlock *owner_handle(const owner *o, int lock);
bool holds_all(const owner *o, int lock);
void owner_unlock_all(owner *o);
/* Its thread ends and holds what it holds. */
void owner_abandon(owner *o);

#endif
