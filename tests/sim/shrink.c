/*
 * A world that fails is made smaller: each key is set to its least, or halved,
 * as long as the same judge has the same complaint. What is left out changes
 * every later throw of the dice, so each smaller world is tried with some other
 * dice as well.
 */
#include <stdio.h>
#include <string.h>

#include "seeds.h"

#define OTHER_DICE 20

static bool fails_so(const config *c, const char *complaint)
{
    return seeds_run_one(c, 0) && seeds_failed() &&
           strcmp(outcome->complaint, complaint) == 0;
}

static bool still_fails(config *c, const char *complaint)
{
    bool fails = fails_so(c, complaint);
    for (int64_t i = 1; !fails && i <= OTHER_DICE; i++) {
        c->dice = i;
        fails = fails_so(c, complaint);
    }
    return fails;
}

/* Keys that are no amounts stay. */
static bool is_amount(int i)
{
    return strcmp(keys[i].name, "dice") != 0 &&
           strcmp(keys[i].name, "calm") != 0;
}

static bool make_smaller(config *c, int i, const char *complaint)
{
    int64_t most = *key_value(c, i), few = keys[i].least;
    int64_t tries[] = {few, (most + few) / 2};
    for (int k = 0; k < 2 && most > few; k++) {
        config smaller = *c;
        *key_value(&smaller, i) = tries[k];
        config_reconcile(&smaller);
        if (smaller.singles + smaller.reds == 0)
            continue;
        if (*key_value(&smaller, i) < most &&
            still_fails(&smaller, complaint)) {
            *c = smaller;
            return true;
        }
    }
    return false;
}

static void tell(const options *o, uint64_t seed, config *is)
{
    config was;
    const char *between = " --set ";
    (void)o;
    config_draw(&was, seed);
    printf("    tests/sim/run.sh --seed %llu", (unsigned long long)seed);
    for (int i = 0; i < keys_n; i++) {
        if (*key_value(&was, i) == *key_value(is, i))
            continue;
        printf("%s%s=%lld", between, keys[i].name,
               (long long)*key_value(is, i));
        between = ",";
    }
    printf(" --trace\n");
}

void shrink(const options *o, uint64_t seed)
{
    char complaint[sizeof outcome->complaint];
    config c;
    bool smaller = true;
    config_draw(&c, seed);
    if (o->set)
        config_set(&c, o->set);
    strcpy(complaint, outcome->complaint);
    while (smaller) {
        smaller = false;
        for (int i = 0; i < keys_n; i++)
            smaller =
                (is_amount(i) && make_smaller(&c, i, complaint)) || smaller;
    }
    seeds_run_one(&c, 0);
    printf("smaller: %s -- at %s\n", outcome->finding, outcome->where);
    tell(o, seed, &c);
    fflush(stdout);
}
