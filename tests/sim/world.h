/*
 * The simulated world: true time, servers, processes and what is under way
 * between them. All that happens is a timer that rings; the seed decides when.
 *
 *   server    a store with a clock of its own, and connections (server.c)
 *   process   some clients, one for each server it uses, with a clock (world.c)
 *   client    the library's engine, whose threads are played (keeper.c ...)
 *   task      what plays a thread: it runs, and sleeps until a timer or a wake
 *   conn      a connection: two ways in which bytes take their time (net.c)
 *   owner     a thread of the program that locks and unlocks (owner.c)
 *
 * Times end in _us and are true time, or a process' own clock, which is called
 * local. Only task code reads the latter.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "chance.h"
#include "core/acquire.h"
#include "core/extend.h"
#include "core/round.h"
#include "drive/client.h"
#include "store.h"

#define SERVERS_MAX 5
#define PROCS_MAX   256
#define OWNERS_MAX  4
#define NAMES_MAX   4

/* Of one generation; who follows one that ends has a number so much larger. */
#define THREADS_MAX (PROCS_MAX * OWNERS_MAX)

#define MS INT64_C(1000)
#define S  INT64_C(1000000)

typedef struct world world;
typedef struct process process;
typedef struct client client;
typedef struct owner owner;
typedef struct conn conn;
typedef struct task task;

/* --- what a seed is about ------------------------------------------------- */

/* Faults, each with how often it comes, in a million steps. */
typedef enum fault {
    FAULT_CUT,      /* a connection breaks, at any byte */
    FAULT_FREEZE,   /* what is under way on one comes very late */
    FAULT_SILENCE,  /* one carries nothing any more, and nobody is told */
    FAULT_PAUSE,    /* a server stands still */
    FAULT_RESTART,  /* a server restarts, and has kept its data */
    FAULT_ROLLBACK, /* the same, without its last writes */
    FAULT_WIPE,     /* the same, without any data */
    FAULT_FLUSH,    /* a server forgets its scripts */
    FAULT_MEMORY,   /* a server has no memory for a while */
    FAULT_STEP,     /* a server's clock jumps */
    FAULT_DELETE,   /* somebody deletes keys by hand */
    FAULT_DEAF,     /* messages of a server are lost for a while */
    FAULT_REFUSAL,  /* a server answers with an error for a while */
    FAULT_ODDITY,   /* a server gives one answer that no script gives */
    FAULT_FOREIGN,  /* another library takes locks, or the key for its own */
    FAULT_STOP,     /* a process stands still; its clock runs on */
    FAULT_SCARCITY, /* a process has hardly any memory for a while */
    FAULT_DEATH,    /* a process is gone */
    FAULT_CANCEL,   /* a waiting owner is canceled */
    FAULT_FORCE,    /* an owner frees a lock by force */
    FAULT_ENDING,   /* a thread ends while it holds locks */
    FAULT_CLOSING,  /* a client is freed while owners wait and hold */
    FAULTS
} fault;

extern const char *const fault_names[FAULTS];

typedef struct config {
    size_t servers, processes, owners, names;
    bool red;         /* all locks are Red locks, over all servers */
    bool multi;       /* there are Multi locks, too */
    bool is_quick;    /* owners lock and unlock, and do nothing else */
    bool calm;        /* no fault at all: the bounds of judge 5 and 6 hold */
    bool wiped;       /* none but that servers restart, and lose their data */
    int64_t steps;    /* after which faults and new locks end */
    int64_t delay_us; /* most messages take no longer */
    int64_t tail_ppm; /* the others take up to tail_us */
    int64_t tail_us;
    int64_t latency_us; /* from a wake to a run, mostly */
    int64_t stall_ppm;  /* otherwise up to stall_us */
    int64_t stall_us;
    int64_t event_ppm; /* so often on_event takes long: up to event_us */
    int64_t event_us;
    int64_t think_us; /* an owner's pauses */
    int64_t watchdog_ms, timeout_ms, max_hold_ms, turn_ms;
    bool redisson;
    bool pieces;           /* bytes come one by one */
    int64_t drift_ppm;     /* of clocks, either way */
    int64_t wild_ppm;      /* of those of some processes; 0: none */
    int64_t steps_back_us; /* so far may a server's clock be set back */
    int64_t fault_ppm[FAULTS];
} config;

/* --- time ----------------------------------------------------------------- */

typedef struct timer {
    rl_heap_node node;
    void (*ring)(struct timer *a);
} timer;

void timer_init(world *w, timer *a, void (*ring)(timer *a));
void timer_fini(world *w, timer *a);
void timer_set(world *w, timer *a, int64_t at_us);
void timer_clear(world *w, timer *a);

/* A clock that drifts, and may be set. */
typedef struct sim_clock {
    int64_t base_us, since_us; /* it showed base_us at the true time since_us */
    int64_t drift_ppm;
} sim_clock;

int64_t clock_at(const sim_clock *c, int64_t true_us);
int64_t clock_true(const sim_clock *c, int64_t local_us); /* when it shows so */
void clock_step(sim_clock *c, int64_t true_us, int64_t by_us);

/* --- tasks ---------------------------------------------------------------- */

struct task {
    timer timer;
    process *p;
    void (*run)(task *t);
    bool running;
    bool woken; /* while it ran */
    const char *what;
};

void task_init(task *t, process *p, void (*run)(task *t), const char *what);
void task_fini(task *t);
void task_wake(task *t); /* it runs soon */

/* From within run(): until local time; RL_NEVER: until it is woken. */
void task_sleep(task *t, int64_t local_us);

/* --- servers and connections ---------------------------------------------- */

typedef struct server {
    world *w;
    unsigned index;
    store store, saved; /* saved: what a rollback goes back to */
    sim_clock clock;
    unsigned run;     /* counts restarts */
    unsigned scripts; /* those it knows: a bit for each */
    bool is_paused, is_deaf;
    timer resume;        /* from a pause */
    timer hear;          /* from deafness */
    timer remember;      /* memory is back */
    timer obey;          /* it answers again */
    const char *refusal; /* what it says instead; NULL: it answers */
    bool has_refused;    /* a release, perhaps, that is asked for once */
    bool garbles;        /* its next answer */
    timer save;
    bool clock_broke; /* it jumped ahead: leases ended early */
    bool clock_went_back;
    bool data_lost, lacked_memory;
    int64_t lost_us; /* when it last lost all; 0: never */
    /* Grow when locks may be lost through nobody's fault: also with data, or
       only through what somebody does to them. */
    unsigned harm, misuse;
    unsigned long long calls; /* of scripts */
} server;

void server_open(world *w, server *s, unsigned index);
void server_close(server *s);
int64_t server_now(const server *s);
void server_take(conn *c);    /* what has come on a connection */
void server_hang_up(conn *c); /* it is closed on the server's side */
void server_restart(server *s, fault how);
void server_pause(server *s, int64_t us);
void server_is_misused(server *s);
void server_refuse(server *s, int64_t us);
void server_garble(server *s);
void server_say_oddity(server *s, text *out, size_t from);

typedef enum conn_state {
    CONN_DIALING,
    CONN_IDENTIFYING,
    CONN_OPEN,
    CONN_FAILED
} conn_state;

typedef struct way {
    rl_list chunks;
    int64_t last_us;   /* when the last of them arrives */
    int64_t frozen_us; /* nothing arrives before */
} way;

#define CHANNELS_MAX 8

struct conn {
    rl_conn c; /* what the library's own code sees of it; must be the first */
    rl_link all;
    world *w;
    client *of;
    server *s;
    unsigned number;
    unsigned server_run;
    conn_state state;
    task *user; /* is woken when something comes */
    timer dialed;
    int64_t dial_until_us; /* local */
    rl_ask identify;
    rl_fault fault; /* why it failed */
    way up, down;
    bool silent; /* it carries nothing any more */
    bool client_open, server_open;
    bool ended; /* after what is in the inbox, the server has closed it */
    text inbox; /* come and not read yet */
    text input; /* at the server: no whole command yet */
    text channel[CHANNELS_MAX]; /* that the server knows it listens on */
    size_t channels;
};

/* Begins to connect; the user is woken when it is open or has failed. */
conn *conn_dial(client *of, task *user, int64_t until_local_us);
conn_state conn_settle(conn *c); /* reads what came, if it is identifying */
bool conn_send(conn *c);         /* false: it is broken */
bool conn_receive(conn *c);
void conn_time_out(conn *c);
void conn_close(conn *c); /* NULL is accepted */
bool conn_is_stale(conn *c);
void conn_cut(conn *c);                      /* at any byte */
void conn_end_all(world *w);                 /* at the end of the world */
void conn_reply(conn *c, const text *bytes); /* from the server */
void conn_forget_if_over(conn *c);

static inline bool conn_is_broken(const conn *c)
{
    return c->c.line.failed;
}

static inline conn *conn_of(rl_conn *c)
{
    return (conn *)(void *)c;
}

/* --- clients -------------------------------------------------------------- */

#define LEGS_MAX SERVERS_MAX

typedef struct leg {
    rl_way way; /* expecting: conn is being dialed */
    client *to;
    conn *conn; /* NULL: none yet */
} leg;

/* Plays drive/caller.c: makes one operation go at a time. */
typedef struct runner {
    task task;
    rl_waker waker;
    rl_wake why;
    unsigned rung;
    rl_op *op; /* NULL: none */
    rl_next next;
    size_t n;
    leg leg[LEGS_MAX];
    void (*done)(struct runner *r);
} runner;

void runner_init(runner *r, process *p, void (*run)(task *t), const char *what);
void runner_start(runner *r, rl_op *op, void (*done)(runner *r));

/* From within the task's run(). False: there is no operation any more. */
bool runner_go_on(runner *r);

typedef struct keeper {
    task task;
    conn *dialing;
    bool is_stopping, has_stopped; /* its last try is under way, or over */
} keeper;

typedef enum client_stage {
    CLIENT_OPEN,
    CLIENT_CLOSING, /* calls are still inside */
    CLIENT_STOPPING,
    CLIENT_CLOSED /* its tables are gone */
} client_stage;

typedef struct doorbell {
    runner runner; /* passes rings on */
    rl_op op;
    rl_part part;
    rl_target what;
    text names; /* rings for nobody, each with a NUL behind it */
    char name[RLOCK_NAME_MAX + 1];
    conn *conn;
    bool is_over, started, subscribed, refused, poked, asked;
    int64_t pause_us, until_us, heard_us, began_us;
    text known; /* of Redisson's channels, each with a NUL behind it */
} doorbell;

struct client {
    union { /* must be the first: the library's own code has it */
        rlock_client handle;
        struct {
            char before[offsetof(rlock_client, engine)];
            rl_engine e;
        };
    };
    world *w;
    process *p;
    server *s;
    int homes;    /* references to it as the home of a group */
    rl_list idle; /* connections that are open and nobody's */
    int64_t last_trouble_us;
    bool down;
    int64_t down_until_us;
    conn *trial; /* of a server that is down */
    keeper keeper;
    task notifier, closer;
    int64_t event_us; /* local: until when an on_event is under way */
    doorbell doorbell;
    client_stage stage;
    int64_t closing_us; /* true time: since when */
};

void client_open(process *p, server *s, client *c);
static inline client *client_of(rl_core *core)
{
    return RL_CONTAINER(core, client, e.core);
}
int64_t client_now(const client *c);
void client_end(client *c);
void client_fini(client *c);

/* closing.c: somebody frees it. */
void client_free(client *c);
bool client_is_open(const client *c);
rl_hold *client_find(client *c, const rl_target *what, uint64_t serial);
void closer_open(client *c);
void closer_close(client *c);

void keeper_open(client *c);
void keeper_close(client *c);
void keeper_stop(client *c); /* after a last try */
void keeper_expect(client *c, int64_t now_us);
bool keeper_is_idle(const client *c);
void doorbell_open(client *c);
void doorbell_close(client *c);
void doorbell_start(client *c);
void notifier_open(client *c);
void notifier_close(client *c);
void notifier_finish(client *c); /* all that is to be told is told */

/* Of the pool. */
conn *pool_take(client *c, const void *behind, bool owing);
void pool_give_back(client *c, conn *k);
void pool_close(client *c);
void client_suspect(client *c);

struct process {
    world *w;
    unsigned index;
    sim_clock clock;
    int64_t paused_us;  /* until when it stands still */
    int64_t resumed_us; /* when it last went on */
    int64_t scarce_us;  /* until when it has hardly any memory */
    int64_t event_us;   /* until when the last on_event was under way that took
                           long */
    bool is_dead;       /* cut off, and not judged any more */
    bool is_victim;     /* of the scheduler */
    bool clock_broke;
    client client[SERVERS_MAX];
    size_t owners;
    owner *owner[OWNERS_MAX];
};

int64_t process_now(const process *p);
process *process_open(world *w, unsigned index);
void process_close(process *p);
void process_stop(process *p, int64_t us);
bool process_is_open(const process *p); /* all of its clients */

/* Whose memory is asked for from here on; NULL: there is enough. */
void memory_is_of(process *p);
void process_die(process *p);

/* --- the world ------------------------------------------------------------ */

/* What the judges know of one name. */
typedef struct lock_truth {
    char name[16];
    size_t server;
    bool shares_token; /* with another name */
    rl_target what, red;
    uint64_t last_token; /* of what was told */
    bool was_held;       /* when last looked at; of the first server */
    bool freed_by_call;
    int64_t free_us; /* since when it is free and waited for; 0: it is not */
    bool is_late;    /* for longer than it should be */
    unsigned handed_over; /* so often since somebody was granted it */
} lock_truth;

/* What a thread that has ended held on a server. */
typedef struct leftover {
    char uuid[RL_UUID_LEN + 1];
    int64_t until_ms; /* by the server's clock; 0: nothing */
} leftover;

typedef struct figures {
    unsigned long long steps, acquires, busy, timeouts, canceled, failed;
    unsigned long long reentries, extends, releases, releases_lost, losses;
    unsigned long long inspects;
    unsigned long long calls, rings, faults[FAULTS];
    unsigned long long hand_overs, late_wakes, handed_over, passes;
    int64_t simulated_us;
} figures;

struct world {
    uint64_t seed;
    config set;
    chance chance;
    int64_t now_us;
    rl_heap heap;
    uint64_t history; /* a hash of all that has happened */
    rl_list conns;
    unsigned conn_number;
    server server[SERVERS_MAX];
    size_t processes;
    process *process[PROCS_MAX];
    lock_truth lock[NAMES_MAX];
    leftover left[SERVERS_MAX][NAMES_MAX]; /* the latest of each */
    const owner *contends; /* has begun to wait in this step; NULL: nobody */
    bool is_quiet;         /* faults are over */
    bool is_ending;        /* and nobody begins anything any more */
    int64_t quiet_us;      /* since when */
    int64_t settled_us;    /* by then nothing of before is under way any more */
    bool traces;
    bool failed;
    char failure[512];
    const char *complaint; /* the same, with nobody's name in it */
    figures figures;
};

void config_draw(config *c, uint64_t seed);
void world_open(world *w, uint64_t seed, const config *set, bool traces);
void world_close(world *w);
bool world_step(world *w); /* false: nothing is going to happen any more */
void fate_look(world *w);  /* after a step: what goes wrong? */
void fate_end(world *w);   /* no faults from here on, and those there are end */

/* A line of the trace; and the same, as part of the history in any case. */
void trace(world *w, const char *fmt, ...) RL_PRINTF(2, 3);
void history_add(world *w, uint64_t what);

/* A judge's word. */
void judge_fail(world *w, const char *fmt, ...) RL_PRINTF(2, 3);

#endif
