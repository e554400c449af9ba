/*
 * world [--from N] [--seeds M] [--seed N] [--trace] [--twice] [--first]
 *       [--verbose] [--shrink] [--set KEY=VALUE,...]
 *
 * Runs M seeds from N on, each a world and a process of its own, and tells what
 * was found; --first: up to the first finding. --trace tells what happens in a
 * seed, --trace --trace what is said as well. --twice runs all of them once
 * more, backwards: each has to be the same history. --set changes what a seed
 * draws, --shrink makes a world that fails smaller. Closes with figures and
 * "N passed, N failed".
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <unistd.h>

#include "seeds.h"

static void usage(const char *what)
{
    if (what)
        fprintf(stderr, "world: %s\n", what);
    fprintf(stderr, "usage: world [--from N] [--seeds M] [--seed N] [--trace] "
                    "[--twice] [--first] [--verbose] [--shrink] "
                    "[--set KEY=VALUE,...]\n");
    exit(2);
}

static uint64_t number(const char *name, const char *value)
{
    char *end, what[100];
    bool begins = value && *value >= '0' && *value <= '9';
    errno = 0;
    uint64_t n = strtoull(begins ? value : "x", &end, 10);
    if (!begins || *end || errno == ERANGE) {
        snprintf(what, sizeof what, "%s wants a number below 2^64", name);
        usage(what);
    }
    return n;
}

/* An option without a value; false: it is none. */
static bool read_flag(options *o, const char *name)
{
    if (strcmp(name, "--trace") == 0)
        o->traces++;
    else if (strcmp(name, "--twice") == 0)
        o->twice = true;
    else if (strcmp(name, "--first") == 0)
        o->first = true;
    else if (strcmp(name, "--verbose") == 0)
        o->verbose = true;
    else if (strcmp(name, "--shrink") == 0)
        o->shrinks = true;
    else
        return false;
    return true;
}

static void read_value(options *o, const char *name, const char *value)
{
    char what[200];
    config c;
    if (strcmp(name, "--from") == 0) {
        o->from = number(name, value);
    } else if (strcmp(name, "--seeds") == 0) {
        o->seeds = number(name, value);
        if (o->seeds == 0)
            usage("--seeds wants one at least");
    } else if (strcmp(name, "--seed") == 0) {
        o->from = number(name, value);
        o->seeds = 1;
    } else if (strcmp(name, "--set") == 0) {
        config_draw(&c, 1);
        if (!value || !config_set(&c, value))
            usage("--set wants KEY=VALUE,... of keys.h");
        o->set = value;
    } else {
        snprintf(what, sizeof what, "there is no option %s", name);
        usage(what);
    }
}

static void read_options(options *o, int argc, char **argv)
{
    *o = (options){.from = 1, .seeds = 1000};
    for (int i = 1; i < argc; i++)
        if (!read_flag(o, argv[i])) {
            read_value(o, argv[i], argv[i + 1]);
            i++;
        }
}

/* So that addresses are the same each time: they are seen by hashes, and by
   sorting. */
static void fix_addresses(char **argv)
{
    if (personality(0xffffffff) & ADDR_NO_RANDOMIZE)
        return;
    if (personality(ADDR_NO_RANDOMIZE) < 0)
        die("the kernel does not let addresses be fixed");
    execv("/proc/self/exe", argv);
    die("cannot start anew");
}

/* Each world is a process of its own, in which one thread runs at a time. */
static void share_memory(void)
{
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TOP_PAD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

int main(int argc, char **argv)
{
    options o;
    read_options(&o, argc, argv);
    fix_addresses(argv);
    share_memory();
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    return seeds_run(&o);
}
