/*
 * `rlock run`: COMMAND under a lock, in two processes. src/doc/run.md has the
 * table of who may die, stop or hang, and what ends COMMAND then.
 *
 * front   what the shell knows, and what has the terminal: starts COMMAND, and
 *         waits for it
 * keeper  in a session of its own: has the client and the lock, and renews
 *
 * Each has the end of a pipe that the other one writes to, and sees by its end
 * that the other is gone. COMMAND inherits neither.
 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include <signal.h>
#include <stdatomic.h>

#include "cli.h"
#include "os.h"

/* Before the local deadline, which is before the server's, COMMAND is dead. */
#define RUN_MARGIN_US 20000

/* Behind a message that says so. */
#define RUN_OTHER_KIND " (-s and -x: read-write locks; -N: semaphores)"

typedef struct run_options {
    const cli_options *cli;
    rlock_kind kind; /* what COMMAND runs under: a lock, -s, -x, or -N */
    int64_t permits; /* how many there are, of -N; else 0 */
    const char *name, *shell_line; /* of -c; NULL: command */
    char **command;
    int64_t wait_ms, lease_ms, grace_ms;
    int not_obtained; /* -E */
    bool ends_with_command, foreground, quiet, verbose;
} run_options;

/* What front and keeper share, in memory. Texts are written before the byte
   that tells of them. */
typedef struct run_shared {
    atomic_llong deadline_us; /* of the lease clock; 0: lost, or not yet had */
    atomic_llong told_us;     /* the deadline for which SIGTERM was sent */
    atomic_int ended;         /* COMMAND was told to end, or killed, for that */
    atomic_int target;        /* for kill(): -group of COMMAND, or its pid
                                 (--foreground); 0: there is none */
    atomic_int over;          /* nothing of it is left: the lock may go */
    int status;               /* of the keeper: 0, or what to exit with */
    bool busy;                /* because somebody else has the lock */
    uint64_t token;
    char holder[sizeof((rlock_holder *)0)->raw];
    char message[sizeof((rlock_error *)0)->message + sizeof RUN_OTHER_KIND];
    char who[400]; /* has it, while the keeper waits */
    _Atomic bool wants_who;
} run_shared;

/* What the keeper writes to the front, a byte each. */
enum {
    RUN_GRANTED = 'g',
    RUN_REFUSED = 'r',
    RUN_WHO = 'w',
    RUN_LOST = 'l' /* look at the deadline */
};

/*
 * Does what is due by the clock: SIGTERM for COMMAND when only the grace is
 * left, SIGKILL before the deadline. Returns when it is to be called again.
 * Both processes call it, so that either alone is enough.
 */
int64_t run_guard(run_shared *sh, int64_t grace_ms);
/* Has the lease been renewed since COMMAND was told to end for it? */
bool run_guard_renewed(const run_shared *sh, int64_t lease_ms);
/* A signal for COMMAND, if it is there. */
void run_signal(run_shared *sh, int sig);

/* A pipe that no program inherits. False: errno tells. */
bool run_pipe(int ends[2]);
/* The keeper's whole life. */
_Noreturn void run_keeper(const run_options *r, run_shared *sh, int from_front,
                          int to_front);
/* The front's; the exit status. */
int run_front(const run_options *r, run_shared *sh, pid_t keeper,
              int from_keeper, int to_keeper);

/* --- run_lease.c: what the keeper holds, whatever kind that is --- */

typedef struct run_lease {
    rlock_owner *owner;    /* whom the keeper acts as */
    rlock *lk, *other;     /* of a side: the other one, to ask about */
    rlock_semaphore *pool; /* NULL: it is no permit */
    rlock_permit *permit;
    void (*done)(rlock_status s, void *arg); /* of a start */
    void *arg;
} run_lease;

/* Of these, rlock_last_error() has the detail. */
rlock_status run_lease_open(run_lease *l, const cli_server *server,
                            const run_options *r);
rlock_status run_lease_take(run_lease *l, int64_t wait_ms);
/* The same by the client's loop; done is called by who dispatches. */
rlock_status run_lease_start(run_lease *l, int64_t wait_ms,
                             void (*done)(rlock_status s, void *arg),
                             void *arg);
void run_lease_cancel(run_lease *l);
/* Who has what is waited for, as text; false: nobody, or it was not told. */
bool run_lease_who(const run_lease *l, char *who, size_t size);
/* For COMMAND to begin: the whole lease, and token and holder of what was taken; 0
   and "" where there is none. */
rlock_status run_lease_settle(const run_lease *l, run_shared *sh);
int64_t run_lease_valid_ms(const run_lease *l); /* 0: it was lost */
int run_lease_lost_fd(run_lease *l);
rlock_status run_lease_release(run_lease *l);

/* --- run_signals.c: those that the front gets --- */

enum { RUN_SIGNALS = 9 };

typedef struct run_signals {
    int fd; /* readable when there is one */
    sigset_t mask;
    struct sigaction former[RUN_SIGNALS]; /* for COMMAND */
} run_signals;

/* False: it cannot be; errno tells. */
bool run_signals_begin(run_signals *s);
/* The next one, or 0. *by_terminal: which sent it to a whole group. */
int run_signals_next(const run_signals *s, bool *by_terminal);
/* Ends this process, or all of its group, as that signal does. */
_Noreturn void run_signals_die(int sig, bool group);
/* In a child, before exec: as whoever started rlock had them. */
void run_signals_restore(const run_signals *s);

/* --- run_env.c --- */

typedef struct run_hold {
    char token[24], holder[sizeof((rlock_holder *)0)->raw];
    bool innermost; /* RLOCK_URI tells where it is */
} run_hold;

/* Tells COMMAND of its lock, and of the servers. False: no memory. */
bool run_env_put(const run_options *r, const run_hold *h);
/* The hold of the `run` of that name that this process was started in, however
   far out. False: there is none. */
bool run_env_find(const char *name, run_hold *h);

/* --- run_command.c: COMMAND, and its terminal --- */

typedef struct run_command {
    pid_t pid;
    int tty;     /* of this session; -1: none, or it is not handed over */
    bool handed; /* COMMAND has the terminal */
    int gate[2]; /* a pipe, at whose end COMMAND begins; [1] is -1 then */
} run_command;

/* Makes its process, which gets signals, but waits at the gate. False: it could
   not be; errno tells. */
bool run_command_start(run_command *c, const run_options *r, run_shared *sh,
                       const run_signals *s);
/* Lets it begin. */
void run_command_go(run_command *c);
/* Executes it in place of this process; the exit status if that fails. */
int run_command_exec(const run_options *r);
/* Stops this process and its group, as the terminal does, if there is a shell
   that would make it go on. */
void run_stop(void);
/* The terminal is the front's again. */
void run_command_take_tty(run_command *c);
/* COMMAND was stopped by that signal. So is this process, by ^Z; then both go
   on together. What reads the terminal gets it. */
void run_command_stop(run_command *c, run_shared *sh, int sig);

#endif
