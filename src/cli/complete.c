/*
 * The verb `complete`, which shells call, and nobody else: what may stand where
 * the last word of a command line is. src/cli/completion/ has the shells' part.
 *
 * A line for each candidate, with what it means behind a tab; or a line that
 * begins with a tab, for what the shell knows better:
 *
 *   file N       a file's name, or a folder's, behind the word's first N bytes
 *   command N    a command and its words, from the N-th word (counted from 0) on
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli.h"

/* Names are told within that time, or none is. */
#define NAMES_MS 300

typedef struct place {
    const cli_verb *v;
    const cli_option *wants; /* the word before is this, and wants a value */
    int verb_at, first;      /* the verb, and the first that stands behind it
                                and is no option; 0: none does */
    bool no_options;         /* as -- says */
} place;

/* --- Where the last word is ----------------------------------------------- */

static const cli_option *find_option(const cli_verb *v, const char *name,
                                     size_t len)
{
    const cli_option *o;
    for (size_t i = 0; (o = cli_option_at(v, i)); i++) {
        if (strncmp(o->name, name, len) == 0 && !o->name[len])
            return o;
    }
    return NULL;
}

static const cli_option *find_letter(const cli_verb *v, char letter)
{
    const cli_option *o;
    for (size_t i = 0; (o = cli_option_at(v, i)); i++) {
        if (o->letter == letter)
            return o;
    }
    return NULL;
}

/* "-nw" wants a value next, "-w3" has it. */
static void pass_letters(place *p, const char *letters)
{
    for (; *letters; letters++) {
        const cli_option *o = find_letter(p->v, *letters);
        if (o && o->value) {
            p->wants = letters[1] ? NULL : o;
            return;
        }
    }
}

static void pass_option(place *p, const char *word)
{
    if (strcmp(word, "--") == 0) {
        p->no_options = true;
    } else if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        const cli_option *o = find_option(p->v, word + 2, len);
        p->wants = o && o->value && !word[2 + len] ? o : NULL;
    } else {
        pass_letters(p, word + 1);
    }
}

static const cli_verb *find_verb(const char *name)
{
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (strcmp(cli_verbs[i]->name, name) == 0)
            return cli_verbs[i];
    }
    return NULL;
}

/* False: nothing is known of such a line. */
static bool pass(place *p, char **word, int n)
{
    *p = (place){.v = &cli_itself};
    for (int i = 0; i < n; i++) {
        if (p->wants) {
            p->wants = NULL;
        } else if (word[i][0] == '-' && word[i][1] && !p->no_options) {
            pass_option(p, word[i]);
        } else if (p->v->name) {
            p->first = i;
            return true;
        } else {
            p->v = find_verb(word[i]);
            p->verb_at = i;
            p->no_options = false;
        }
        if (!p->v)
            return false;
    }
    return true;
}

/* --- Candidates ----------------------------------------------------------- */

/* With the first line, or sentence, of what is said of it. */
static void tell(const char *begin, const char *prefix, const char *name,
                 const char *help)
{
    char word[80];
    snprintf(word, sizeof word, "%s%s", prefix, name);
    if (strncmp(word, begin, strlen(begin)) == 0)
        printf("%s\t%.*s\n", word, (int)strcspn(help, "\n"), help);
}

static void tell_options(const cli_verb *v, const char *begin)
{
    const cli_option *o;
    for (size_t i = 0; (o = cli_option_at(v, i)); i++) {
        char letter[2] = {(char)o->letter};
        if (!o->help)
            continue;
        tell(begin, "--", o->name, o->help);
        if (o->letter < 256)
            tell(begin, "-", letter, o->help);
    }
}

static void tell_verbs(const char *begin)
{
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (cli_verbs[i]->help)
            tell(begin, "", cli_verbs[i]->name, cli_verbs[i]->usage);
    }
}

/* "full|ca|none" are words; what is in capitals is what it says. The word may be
   the value alone, or have the option in front, as in --until=free: that is the
   prefix. */
static void tell_values(const cli_option *o, const char *prefix,
                        const char *begin)
{
    char values[80];
    snprintf(values, sizeof values, "%s", o->value);
    if (strcmp(values, "FILE") == 0 || strcmp(values, "DIR") == 0)
        printf("\tfile %zu\n", strlen(prefix));
    if (!strchr(values, '|'))
        return;
    for (char *rest, *v = strtok_r(values, "|", &rest); v;
         v = strtok_r(NULL, "|", &rest))
        tell(begin, prefix, v, o->help);
}

/* Is it "--option=" and what there is of a value? */
static bool tell_joined(const cli_verb *v, const char *begin)
{
    char prefix[80];
    size_t len = strcspn(begin, "=");
    if (strncmp(begin, "--", 2) != 0 || !begin[len] || len > 70)
        return false;
    const cli_option *o = find_option(v, begin + 2, len - 2);
    snprintf(prefix, sizeof prefix, "%.*s", (int)len + 1, begin);
    if (o && o->value)
        tell_values(o, prefix, begin);
    return true;
}

static void tell_dashes(const cli_verb *v, const char *begin)
{
    if (!tell_joined(v, begin))
        tell_options(v, begin);
}

/* --- Names of locks ------------------------------------------------------- */

/* Nothing raw reaches a terminal, so what has other bytes is not completed. */
static bool tell_name(const rlock_lock_info *l, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < l->name_len; i++) {
        if (l->name[i] < 0x20 || l->name[i] > 0x7e)
            return true;
    }
    printf("%s\t%s\n", l->name, l->n_holders > 0 ? "held" : "waited for");
    return true;
}

static void give_up(int sig)
{
    (void)sig;
    _exit(0);
}

/* What has been told by then is in stdio's buffer, and goes with it. */
static void limit_time(void)
{
    struct itimerval limit = {.it_value = {.tv_usec = NAMES_MS * 1000}};
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    signal(SIGALRM, give_up);
    setitimer(ITIMER_REAL, &limit, NULL);
}

/* As a glob: all that begins so. */
static char *glob_of(const char *begin)
{
    char *glob = malloc(2 * strlen(begin) + 2), *to = glob;
    for (; glob && *begin; begin++) {
        if (strchr("?*[\\", *begin))
            *to++ = '\\';
        *to++ = *begin;
    }
    if (glob)
        strcpy(to, "*");
    return glob;
}

/* As `ls` tells them, by the options that stand before the verb. Nobody is asked
   for a password. */
static void tell_names(cli_options *o, char **word, int verb_at,
                       const char *begin)
{
    cli_server s;
    int status;
    char *glob = glob_of(begin);
    limit_time();
    /* word[-1] stands for the program's name. */
    if (glob && cli_take_options(&cli_itself, o, verb_at + 1, word - 1,
                                 cli_take_before_verb, o, &status)) {
        o->askpass = false;
        if (cli_complete_uris(o) && cli_open(&s, o, 30000) == RLOCK_OK) {
            for (size_t i = 0; i < s.n; i++)
                rlock_scan(s.client[i], glob, 0, tell_name, NULL);
            fflush(stdout);
            _exit(0); /* closing takes time, and nothing is held */
        }
    }
    free(glob);
}

/* --- The verb ------------------------------------------------------------- */

/* COMMAND begins behind NAME, and behind -- if that is there. */
static void tell_command(char **word, int n, int name_at)
{
    const char *next = name_at + 1 < n - 1 ? word[name_at + 1] : "";
    if (strcmp(next, "-c") != 0 && strcmp(next, "--command") != 0)
        printf("\tcommand %d\n", name_at + 1 + (strcmp(next, "--") == 0));
}

static int run(cli_options *o, int argc, char **argv)
{
    char **word = argv + 2; /* behind the verb and -- */
    int n = argc - 2;
    place p;
    if (n < 1 || !pass(&p, word, n - 1))
        return 0;
    const char *begin = word[n - 1];
    const char *usage = p.v->usage;
    if (p.wants)
        tell_values(p.wants, "", begin);
    else if (p.first && strstr(usage, "COMMAND"))
        tell_command(word, n, p.first);
    else if (*begin == '-' && !p.no_options)
        tell_dashes(p.v, begin);
    else if (!p.v->name)
        tell_verbs(begin);
    else if (!p.first && (strstr(usage, "NAME") || strstr(usage, "GLOB")))
        tell_names(o, word, p.verb_at, begin);
    return fflush(stdout) == 0 ? 0 : CLI_FAILED;
}

static const cli_option options[] = {{0}};

const cli_verb cli_complete = {
    .name = "complete",
    .usage = "-- [WORD...]",
    .options = options,
    .run = run,
};
