/* What the files of the command `rlock` share. It sees public headers only. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <rlock/rlock.h>

/* Exit statuses of rlock itself; COMMAND has all the others. */
enum {
    CLI_LOST = 123, /* the lock was lost, and COMMAND was ended for it */
    CLI_NOT_OBTAINED = 124, /* somebody else has it; -E changes the number */
    CLI_FAILED = 125,       /* rlock itself failed, or was used wrongly */
    CLI_NOT_EXECUTABLE = 126,
    CLI_NOT_FOUND = 127
};

/* The options before the verb. */
typedef struct cli_options {
    char *uri[RLOCK_RED_MAX]; /* several servers: a Red lock; owned */
    size_t uris;
    rlock_options client; /* all but the URI and the limits */
    bool askpass, json;
} cli_options;

/* An option of a verb: for the parser, for --help, and for completion. */
typedef struct cli_option {
    int letter;               /* 256 and more: it has none */
    const char *name, *value; /* value: what it wants; NULL: nothing */
    const char *help;         /* NULL: it is not told of */
} cli_option;

typedef struct cli_verb {
    const char *name;
    const char *usage;         /* all behind the verb */
    const cli_option *options; /* up to one that has no name */
    const char *help;          /* what --help tells besides; NULL: it does not
                                  tell of the verb */
    /* argv[0] is the verb. Returns the exit status. */
    int (*run)(cli_options *o, int argc, char **argv);
    bool prints; /* so it has --json */
    bool starts; /* COMMAND, whose options stand behind its name */
} cli_verb;

/* All of them; and what stands before the verb, as a verb without a name. */
extern const cli_verb *const cli_verbs[]; /* up to NULL */
extern const cli_verb cli_itself;
int cli_take_before_verb(void *o, int letter); /* for cli_take_options() */
extern const cli_verb cli_run, cli_ls, cli_who, cli_show, cli_wait, cli_waits,
    cli_watch, cli_top, cli_break, cli_doctor, cli_bench, cli_exporter,
    cli_complete;

/* --- args.c --- */

/*
 * Takes the verb's options: its own by take(), which returns 0 or the exit
 * status, and has the value in optarg; --help and --json by itself. What stands
 * behind them begins at optind. False: *status is what to exit with.
 */
bool cli_take_options(const cli_verb *v, cli_options *o, int argc, char **argv,
                      int (*take)(void *arg, int letter), void *arg,
                      int *status);
/* For take(), of verbs that look again and again: -n and -d, as optarg has them.
   0, or the exit status. */
int cli_take_rounds(const cli_verb *v, long *rounds);
int cli_take_delay(const cli_verb *v, int64_t least_ms, int64_t *us);
/* At least and at most so many words stand there; false: it has complained. */
bool cli_words(const cli_verb *v, int argc, int least, int most);
/* The i-th option that the verb has, those of all verbs included; or NULL. */
const cli_option *cli_option_at(const cli_verb *v, size_t i);

/* --- text.c --- */

/* Bytes that are not printable ASCII as \xNN, so that nothing raw reaches a
   terminal; cut to the size. Returns to. */
char *cli_printable(char *to, size_t size, const char *text);
char *cli_printable_n(char *to, size_t size, const char *text, size_t len);
/* The same of a word that was given in the wrong place, and may be a URI: of that
   without what may be its password. */
char *cli_printable_word(char *to, size_t size, const char *text);
/* "2.3s", "4m05s", "3h07m", "2d03h"; "-": not known (below zero). */
char *cli_duration(char *to, size_t size, int64_t ms);
/* One line to stderr, in one write: "rlock: ...". */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, and how the verb is used (NULL: rlock itself); CLI_FAILED. */
int cli_misused(const cli_verb *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* After getopt_long() has returned '?' or ':'. */
int cli_bad_option(const cli_verb *v, char **argv);
/* Seconds with fractions, as milliseconds, rounded up; false if it is none. */
bool cli_seconds(const char *text, int64_t *ms);
/* A decimal number from least to most; false if it is none. */
bool cli_number(const char *text, long least, long most, long *n);

/* --- uri.c --- */

/* Each takes what was said into o; false: it has complained. */
bool cli_add_uri(cli_options *o, const char *uri);
bool cli_add_uris(cli_options *o, const char *list); /* blanks between them */
bool cli_add_uri_file(cli_options *o, const char *path);
/* What is missing: $RLOCK_URI, the default, a password from the terminal. */
bool cli_complete_uris(cli_options *o);
/* One, without its password, to be freed; NULL: no memory. */
char *cli_public_uri(const cli_options *o, size_t i);
/* All of them, as $RLOCK_URI has them, without passwords; NULL: no memory. */
char *cli_public_uris(const cli_options *o);

/* --- server.c --- */

typedef struct cli_server {
    rlock_client *client[RLOCK_RED_MAX];
    size_t n;
} cli_server;

/* Connects to the servers. lease_ms: the watchdog's. Any other status than
   RLOCK_OK: rlock_last_error() tells, and nothing is to be closed. */
rlock_status cli_open(cli_server *s, const cli_options *o, int64_t lease_ms);
/* The same for who asks each by itself, so that one that is there is enough. */
rlock_status cli_open_any(cli_server *s, const cli_options *o,
                          int64_t lease_ms);
/* Asks nobody until it is asked itself: a server that is away is no failure. */
rlock_status cli_open_lazily(cli_server *s, const cli_options *o);
/* The lock of that name on them. */
rlock_status cli_lock(const cli_server *s, const char *name, rlock **out);
void cli_close(cli_server *s);

#endif
