/*
 * What a server has: held and waited for, the oldest hold, the longest wait,
 * circles. What a program has of itself it tells by rlock_metrics_write(). A
 * round goes through the keys of the server, so one that takes long is told
 * again for a while to whoever asks.
 */
#include "exporter.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os.h"

#define DEFAULT_LISTEN "127.0.0.1:9868"

enum { LISTEN = 256, TEXTFILE };

static const cli_option options[] = {
    {LISTEN, "listen", "ADDR:PORT", "serve it there; " DEFAULT_LISTEN},
    {TEXTFILE, "textfile", "FILE",
     "write it into a file instead, as node_exporter\nreads them"},
    {'d', "delay", "SECONDS", "between two files; 15"},
    {'n', "rounds", "N", "so many files, and end"},
    {0},
};

static int take(void *arg, int letter)
{
    exporter *x = arg;
    if (letter == 'n')
        return cli_take_rounds(&cli_exporter, &x->rounds);
    if (letter == 'd')
        return cli_take_delay(&cli_exporter, 100, &x->pause_us);
    if (letter == LISTEN)
        x->listen = optarg;
    else
        x->textfile = optarg;
    return 0;
}

/* --- The text ------------------------------------------------------------- */

/* What is told of one server. */
typedef struct sums {
    double up, held, waiting, oldest_s, longest_s, circles, took_s;
} sums;

static sums sum_up(const top *t)
{
    sums s = {.up = t->error[0] == '\0'};
    if (!s.up)
        return s;
    s.held = (double)t->held;
    s.waiting = (double)t->waiting;
    s.circles = (double)t->circles;
    s.took_s = (double)t->took_us / 1000000;
    for (size_t i = 0; i < t->now.n; i++) {
        double held_s = (double)t->now.at[i].is.held_ms / 1000;
        double longest_s = (double)t->now.at[i].longest_ms / 1000;
        s.oldest_s = held_s > s.oldest_s ? held_s : s.oldest_s;
        s.longest_s = longest_s > s.longest_s ? longest_s : s.longest_s;
    }
    return s;
}

static const struct {
    const char *name, *help;
    size_t at;
    bool always; /* also of a server that could not be asked */
} families[] = {
    {"rlock_up", "1: the server was asked, and answered.", offsetof(sums, up),
     true},
    {"rlock_server_held", "Locks that are held.", offsetof(sums, held), false},
    {"rlock_server_waiting", "Processes that wait for locks.",
     offsetof(sums, waiting), false},
    {"rlock_server_oldest_hold_seconds",
     "For how long the oldest hold has been held.", offsetof(sums, oldest_s),
     false},
    {"rlock_server_longest_wait_seconds",
     "For how long the longest wait lasts.", offsetof(sums, longest_s), false},
    {"rlock_server_circles", "Circles of owners who wait for each other.",
     offsetof(sums, circles), false},
    {"rlock_server_look_seconds", "How long it took to find that out.",
     offsetof(sums, took_s), false},
};

/* As Prometheus wants values of labels. */
static void put_label(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"' || *text == '\n')
            fputc('\\', f);
        fputc(*text == '\n' ? 'n' : *text, f);
    }
}

static void put_family(FILE *f, const exporter *x, const sums *of, size_t k)
{
    fprintf(f, "# HELP %s %s\n# TYPE %s gauge\n", families[k].name,
            families[k].help, families[k].name);
    for (size_t i = 0; i < x->s.n; i++) {
        double value;
        memcpy(&value, (const char *)&of[i] + families[k].at, sizeof value);
        if (of[i].up == 0 && !families[k].always)
            continue;
        fprintf(f, "%s{server=\"", families[k].name);
        put_label(f, x->server[i]);
        fprintf(f, "\"} %.15g\n", value);
    }
}

static void look(exporter *x, sums *of)
{
    for (size_t i = 0; i < x->s.n; i++) {
        top *t = &x->round[i];
        if (cli_now_us() >= x->next_us[i]) {
            top_look(t);
            x->next_us[i] = cli_now_us() + top_pause_us(t);
        }
        of[i] = sum_up(t);
    }
}

char *exporter_text(exporter *x, size_t *len)
{
    sums of[RLOCK_RED_MAX];
    char *text = NULL;
    FILE *f = open_memstream(&text, len);
    if (!f)
        return NULL;
    look(x, of);
    for (size_t k = 0; k < sizeof families / sizeof *families; k++)
        put_family(f, x, of, k);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

/* --- Into a file ---------------------------------------------------------- */

/* Who reads it never sees half of it. */
static bool write_file(exporter *x)
{
    char path[4096];
    size_t len;
    char *text = exporter_text(x, &len);
    int n = snprintf(path, sizeof path, "%s.%ld", x->textfile, (long)getpid());
    FILE *f = text && n < (int)sizeof path ? fopen(path, "we") : NULL;
    bool ok = f && fwrite(text, 1, len, f) == len;
    ok = f && fclose(f) == 0 && ok;
    ok = ok && rename(path, x->textfile) == 0;
    int why = errno;
    free(text);
    if (ok)
        return true;
    if (f)
        remove(path);
    cli_say("cannot write %s: %s",
            cli_printable_word(path, sizeof path, x->textfile), strerror(why));
    return false;
}

/* What else is there, as /dev/stdout, would be replaced, and not be written to. */
static bool is_file(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0 || S_ISREG(st.st_mode);
}

static int write_files(exporter *x)
{
    for (long i = 0; !x->rounds || i < x->rounds; i++) {
        if (i > 0)
            cli_poll(NULL, 0, cli_now_us() + x->pause_us);
        if (!write_file(x))
            return CLI_FAILED;
    }
    return 0;
}

/* --- The verb ------------------------------------------------------------- */

/* Of one server the same sample would be there twice, and nobody reads that. */
static bool name_servers(exporter *x)
{
    for (size_t i = 0; i < x->s.n; i++) {
        x->server[i] = cli_public_uri(x->o, i);
        if (!x->server[i]) {
            cli_say("out of memory");
            return false;
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(x->server[i], x->server[k]) != 0)
                continue;
            cli_say("exporter: %s is there twice", x->server[i]);
            return false;
        }
    }
    return true;
}

static bool open_rounds(exporter *x)
{
    if (!cli_complete_uris(x->o))
        return false;
    if (cli_open_lazily(&x->s, x->o) != RLOCK_OK) {
        look_failed();
        return false;
    }
    for (size_t i = 0; i < x->s.n; i++)
        x->round[i] = (top){.s = {.client = {x->s.client[i]}, .n = 1}};
    return name_servers(x);
}

static void close_rounds(exporter *x)
{
    for (size_t i = 0; i < x->s.n; i++) {
        locks_clear(&x->round[i].now);
        free(x->server[i]);
    }
    cli_close(&x->s);
}

static int run(cli_options *o, int argc, char **argv)
{
    exporter x = {.o = o, .pause_us = 15000000};
    char shown[120];
    int status;
    if (!cli_take_options(&cli_exporter, o, argc, argv, take, &x, &status))
        return status;
    if (!cli_words(&cli_exporter, argc, 0, 0))
        return CLI_FAILED;
    if (o->json)
        return cli_misused(&cli_exporter, "exporter: there is no --json of it");
    if (x.listen && x.textfile)
        return cli_misused(&cli_exporter, "either --listen or --textfile");
    if (x.textfile && !is_file(x.textfile)) {
        cli_say("exporter: '%s' is there, and is no file",
                cli_printable_word(shown, sizeof shown, x.textfile));
        return CLI_FAILED;
    }
    if (!x.listen)
        x.listen = DEFAULT_LISTEN;
    status = !open_rounds(&x) ? CLI_FAILED
             : x.textfile     ? write_files(&x)
                              : exporter_serve(&x);
    close_rounds(&x);
    return status;
}

const cli_verb cli_exporter = {
    .name = "exporter",
    .usage = "[--listen ADDR:PORT | --textfile FILE [-d SECONDS] [-n N]]",
    .options = options,
    .help = "What the servers have, for Prometheus: locks that are held and "
            "waited for, the\noldest hold, the longest wait, circles; rlock_up "
            "is 0 if a server cannot be asked.\nServes it by HTTP until a "
            "signal ends it. Exit status: 0 after -n files; 125 it\nfailed.\n",
    .run = run,
};
