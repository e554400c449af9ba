/*
 * The whole library in one seeded world: what the files of tests/sim share.
 *
 *   event      something that happens at a time (events.c)
 *   thread     of the library's or the program's: one runs, the seed says which
 *              and when (switch.c, schedule.c, threads.c, mutexes.c)
 *   process    threads that share a pid, a host name and a clock (clocks.c)
 *   descriptor what socket(), eventfd() and epoll_create1() give out
 *              (descriptors.c, sockets.c)
 *   conn       a connection: two queues of bytes that take their time (link.c)
 *   server     a store with a clock of its own that answers (server.c, ...)
 *   config     what a seed draws (fate.c)
 *
 * The library is librlock.a as it is shipped. What it calls of libc to wait, to
 * tell the time, to talk and to draw is defined here, in the executable, and so
 * stands before libc's; seam.sh looks that nothing else is called. Program and
 * judges are in program.h.
 *
 * All times are in nanoseconds of true time.
 */
#ifndef WORLD_H
#define WORLD_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "chance.h"
#include "keys.h"
#include "store.h"
#include "text.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define S  INT64_C(1000000000)

#define BEGIN (1000 * S) /* when a world begins */
#define NEVER INT64_MAX

#define SERVERS_MAX   8
#define PROCESSES_MAX 4

/* The struct in which a member lies. */
#define OWNER_OF(at, type, member)                                             \
    ((type *)((char *)(at)-offsetof(type, member)))

/* --- the world ------------------------------------------------------------ */

typedef struct world {
    int64_t now;
    int64_t until;  /* whoever is not done by then is stuck */
    uint64_t hash;  /* of all that has happened */
    chance dice;    /* which decides all */
    bool is_on;     /* before and after, calls go to the kernel */
    bool is_quiet;  /* no faults any more, or none yet */
    bool is_scarce; /* memory is refused now and then */
    int traces;     /* 1: what happens; 2: and what is said */
    unsigned long calls, steps, switches, scripts, faults;
} world;

extern world w;

/* --- what is told (tell.c) ------------------------------------------------ */

void trace(const char *fmt, ...) RL_PRINTF(1, 2);

/* The run ends here: a judge has something to say, or the world does. */
_Noreturn void finding(const char *fmt, ...) RL_PRINTF(1, 2);

/* Nobody can go on: a finding that says who waits where. */
_Noreturn void stuck(void);

void history_add(uint64_t x);
void history_add_bytes(const void *at, size_t n);

static inline double seconds(int64_t at)
{
    return (double)(at - BEGIN) / 1e9;
}

/* --- what happens when (events.c) ----------------------------------------- */

typedef struct event {
    int64_t at;
    uint64_t tie;                  /* of two at one time chance decides */
    size_t pos;                    /* in the heap, from 1; 0: not set */
    void (*fire)(struct event *e); /* NULL: a thread goes on */
} event;

void event_set(event *e, int64_t at);
void event_clear(event *e);
event *event_next(void); /* the first, which is taken out; NULL: none */
bool event_is_due(void);

/* --- processes (clocks.c) ------------------------------------------------- */

typedef struct process {
    int index, pid;
    char host[32];
    int64_t base, drift_ppm; /* of its clock */
} process;

int64_t process_now(const process *p);

/* How much true time goes by while the running thread's clock shows so much. */
int64_t true_span(int64_t local);

/* --- threads -------------------------------------------------------------- */

typedef enum thread_state { READY, RUNS, BLOCKED, DONE } thread_state;

#define KEYS_MAX 32

typedef struct thread {
    event wake; /* when it goes on; the first member */
    int id;
    process *p;
    thread_state state;
    char name[20];
    bool is_library; /* it was given a name */
    const void *waits_for;
    const char *waits_in;
    bool was_woken;
    struct pollfd *polls; /* what it sleeps on in poll() */
    nfds_t polls_n;
    int rank;           /* mode 1: how slowly it wakes; ranks double */
    int64_t place;      /* mode 2: the largest that can run does */
    int mutexes;        /* how many it has */
    bool is_spared;     /* there is memory for it: hiredis aborts without */
    unsigned long busy; /* calls since it last slept */
    void *(*run)(void *arg);
    void *arg, *result;
    void *specific[KEYS_MAX];
    int64_t told_ns;                 /* spent in the program's callbacks */
    const struct rlock_event *tells; /* the event that it is told; or NULL */
    pthread_t real;
    void *sp; /* switch.c */
    unsigned long fs;
    volatile int go;
} thread;

#define THREADS_MAX 4000

extern thread *running;
extern thread *threads[THREADS_MAX];
extern int threads_n;

/* As pthread_create(), which the library may be refused. */
pthread_t program_thread(void *(*run)(void *arg), void *arg);

/* A call: time passes, and others may run. */
void step(void);

/* Sleeps until it is woken for `what`, or the time has come: then false. */
bool block(const void *what, const char *in, int64_t until);
void wake(thread *t);
void wake_waiters(const void *what, bool all);
void ready(thread *t, int64_t at);
void schedule(void); /* runs others until the running thread is to go on */
int64_t latency(const thread *t);

/* Mode 2, in its second: nobody runs out of turn (strict.c). */
bool is_strict(void);
void strict_begin(void);
void strict_step(void);
thread *strict_first(thread *t); /* t, or who can run and is before it */

void sleep_for(int64_t ns); /* by the thread's own clock */

void threads_begin(process *p);
void threads_tell(void); /* who waits where */
void thread_begins(void);

/* switch.c: how the kernel's one thread becomes another one. */
void switch_begin(thread *first);
void switch_make(thread *t);
void switch_to(thread *from, thread *to);

/* --- the kernel's own calls (tell.c) -------------------------------------- */

long raw_call(long n, long a, long b, long c, long d, long e, long f);
void *next_symbol(const char *name);
/* libc's own function of that name. */
#define REAL(name) ((__typeof__(&name))next_symbol(#name))

/* --- descriptors ---------------------------------------------------------- */

typedef enum fd_kind { FD_SOCKET, FD_EVENT, FD_EPOLL, FD_CLOSED } fd_kind;

typedef struct conn conn;

typedef struct descriptor {
    fd_kind kind;
    int fd;
    bool blocks;
    int patience_ms; /* of reads that block */
    conn *c;         /* a socket's, once it connects */
    uint64_t count;  /* an eventfd's */
    int *watches;    /* an epoll's */
    size_t watches_n, watches_room;
} descriptor;

/* NULL: it is none of the world's. */
descriptor *descriptor_of(int fd);

/* The same for a call, which one that is closed, or was never made, ends. */
descriptor *descriptor_for(int fd, const char *call);
descriptor *descriptor_new(fd_kind kind);
void descriptor_changed(int fd); /* wakes who polls it */
int descriptors_open(void);
void descriptors_die(const process *p);
void descriptors_tell(void);
short socket_state(const descriptor *d);

/* --- memory of the library and of hiredis (memory.c) ---------------------- */

int64_t memory_blocks(void);

/* Are so many bytes refused? Of sockets and threads, too, there are none while
   memory is short. */
bool memory_refuses(size_t n);

/* Was an allocation of the process refused between these times? */
bool memory_was_short(const process *p, int64_t from, int64_t to);

/* --- connections (link.c) ------------------------------------------------- */

typedef struct server server;
typedef struct secure secure;

#define LOCAL_PATH "/run/server-%d" /* of the socket of the server at a port */

#define CHANNELS_MAX 16

struct conn {
    conn *next; /* of all that were ever made */
    server *s;
    const process *by;
    int fd; /* the client's; -1: it has closed it */
    unsigned number;
    unsigned run;                       /* of the server, that it leads to */
    bool is_dialing, is_open;           /* open: it was accepted */
    int error;                          /* of the connect */
    bool was_reset, has_ended, is_shut; /* as the client sees it */
    bool is_ending, server_closed;      /* as the server does */
    bool is_silent, is_doomed;          /* nothing comes through any more */
    bool is_full;                       /* the kernel takes no more, for now */
    bool is_known;                      /* it has logged in, */
    int64_t known_until;                /* 0: for good */
    int db;
    bool is_asking;  /* ASKING was its last command */
    bool is_waiting; /* in WAIT, and executes nothing */
    int64_t last[2], frozen[2];
    text inbox;  /* at the client */
    text sealed; /* at the server, with TLS: not deciphered yet */
    text input;  /* at the server, not executed yet */
    secure *tls; /* NULL: nothing has come yet */
    text channel[CHANNELS_MAX];
    bool is_sharded[CHANNELS_MAX]; /* by SSUBSCRIBE, and heard by SPUBLISH */
    size_t channels;
    void *state; /* what a kind of server keeps of it */
    event dialed, drained;
};

extern conn *conns;

conn *conn_dial(int fd, int port);
void conn_settle(conn *c); /* it is accepted, or refused */
ssize_t conn_send(conn *c, const void *bytes, size_t n); /* as send() */
ssize_t conn_receive(conn *c, void *at, size_t room, bool peeks);
void conn_close(conn *c);  /* by the client */
void conn_unseal(conn *c); /* the server deciphers what has come */
void conn_reply(conn *c, const text *t); /* by the server */
void conn_cut(conn *c);                  /* a reset, at once */
void conn_end(conn *c);                  /* the server closes it */

/* --- the server's end of TLS (secure.c) ----------------------------------- */

void secure_warm(void);             /* once, before any world */
const char *secure_authority(void); /* the file that vouches for all servers */

/* Deciphers what has come into c->input; says what TLS itself has to say. False:
   that is no TLS, or its end. */
bool secure_hear(conn *c, text *said);
void secure_say(conn *c, const text *t, text *sealed); /* empty: the end */
void secure_end(conn *c);

/* --- logins, and databases (logins.c) ------------------------------------- */

#define LOGIN_USER "worker"

typedef enum login {
    LOGIN_NONE,
    LOGIN_PASSWORD,
    LOGIN_USER_TOO,
    LOGIN_ASKED
} login;

bool login_answers(conn *c, const word *argv, size_t n, text *out);
void login_check(const conn *c);  /* it may ask for keys */
void login_rotate(server *s);     /* all have another password from now on */
const char *login_password(void); /* as the program knows it */
const char *login_of_sentinels(void);

/* --- servers -------------------------------------------------------------- */

/*
 * A kind of server: what it answers to a command, after what every server
 * answers (server.c: scripts, PING, SELECT, ...). False: it knows none such,
 * which is a finding.
 */
typedef struct server_kind {
    const char *name;
    bool (*execute)(conn *c, const word *argv, size_t n, text *out);
    /* May refuse a call with these keys: it answers, and says false. Or NULL.
     */
    bool (*admits)(conn *c, const word *keys, size_t n, text *out);
    /* Who has the key at present; NULL: the server itself. */
    server *(*in_office)(const word *key);
    /* Keys of its slot come to this one, one by one. Or NULL. */
    bool (*is_coming)(const server *s, const word *key);
} server_kind;

extern const server_kind server_single;

struct server {
    const server_kind *kind;
    int index, port;
    store store;
    int64_t base, drift_ppm;
    unsigned run;     /* how often it has started */
    uint64_t scripts; /* that it knows, a bit each */
    bool is_paused;
    const char *foreign; /* what somebody else has; or NULL */
    int64_t down_until;  /* NEVER: it is dead */
    int64_t loading_until, full_until, busy_until;
    bool is_dark;   /* it is dead, and nobody says so */
    server *master; /* whom it copies; NULL: it is a master */
    event resume, foreign_ends, power_is_back;
};

extern server servers[SERVERS_MAX];
extern int servers_n; /* those of cfg.servers, and others that belong to them */

void servers_warm(void); /* once, before any world: scripts are compiled */
void servers_begin(void);
int64_t server_now_us(const server *s);
void server_set_clock(server *s);
void server_step_clock(
    server *s, int64_t back_ns); /* of its store, before it is looked at */
size_t server_keys(server *s);
void server_name_run(server *s);
void server_take(conn *c); /* executes what has come */
void server_put_role(const server *s, text *out);
void server_set_up(server *s, int index, const server_kind *kind);
/* It starts anew, with the data that it has. */
void server_restart(server *s, int64_t down_ns);
void server_kill(server *s, bool is_dark); /* until server_start() */
void server_start(server *s);
bool server_is_up(const server *s);

/* Who has the key now: of all that the clients of server `home` ask. */
server *server_in_office(int home, const char *key);

/* May a part of the key's slot have come to the server already? */
bool server_gets(const server *s, const char *key);

/* --- masters and replicas (replicas.c) ------------------------------------ */

/* From now on it copies that master; NULL: it is one. */
void replica_follow(server *s, server *master);
bool replica_is_synced(const server *s);
void replica_catch_up(server *s);     /* has all that its master has */
void replicas_resync(server *master); /* it was away */
void replicas_send(server *master);   /* what has changed */
void replicas_wait(conn *c, const word *argv, text *out);
int replicas_backing(const server *master); /* that are there */

extern const server_kind server_cluster, server_watched;
void sentinel_begin(void);
void sentinel_strike(void);
void cluster_begin(void);
void cluster_strike(void); /* something happens to it, perhaps */

/* Subscriptions, for kinds of servers. */
void server_subscribe(conn *c, const char *kind, const word *channel,
                      text *out);
void server_unsubscribe(conn *c, const char *kind, const word *channel,
                        text *out);
void server_unsubscribe_all(conn *c, const char *kind, text *out);

/* --- faults (faults.c) ---------------------------------------------------- */

/* Something that goes wrong at a server, now and then. */
typedef struct fault {
    const char *name;
    const int64_t *ppm;
    void (*strike)(server *s);
} fault;

void faults_strike(void); /* perhaps */

/* In so many of a million times; then it is counted, and judges know. */
bool fault_is_due(int64_t ppm);

#endif
