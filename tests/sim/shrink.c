/*
 * A seed that fails is made smaller: faults, owners, processes, names and steps
 * are dropped one after the other, as long as the same judge complains of the
 * same thing. What is dropped changes every later throw of the dice, so each
 * smaller world is tried with some other dice as well.
 */
#include "shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OTHER_DICE 40

typedef struct knob {
    const char *name;
    size_t at;
    int64_t least;
    bool is_size; /* a size_t, otherwise an int64_t */
} knob;

#define SIZE(member)   #member, offsetof(config, member), 1, true
#define NUMBER(member) #member, offsetof(config, member), 0, false

static const knob knobs[] = {
    {SIZE(processes)},
    {SIZE(owners)},
    {SIZE(names)},
    {NUMBER(tail_ppm)},
    {NUMBER(stall_ppm)},
    {NUMBER(drift_ppm)},
    {NUMBER(wild_ppm)},
    {NUMBER(max_hold_ms)},
    {NUMBER(turn_ms)},
    {NUMBER(event_ppm)},
    {"steps", offsetof(config, steps), 50, false},
};

#define KNOBS (sizeof knobs / sizeof *knobs)

static int64_t get(const config *c, size_t i)
{
    const char *at = (const char *)c;
    if (i >= KNOBS)
        return c->fault_ppm[i - KNOBS];
    return knobs[i].is_size ? (int64_t) * (const size_t *)(at + knobs[i].at)
                            : *(const int64_t *)(at + knobs[i].at);
}

static void put(config *c, size_t i, int64_t value)
{
    char *at = (char *)c;
    if (i >= KNOBS)
        c->fault_ppm[i - KNOBS] = value;
    else if (knobs[i].is_size)
        *(size_t *)(at + knobs[i].at) = (size_t)value;
    else
        *(int64_t *)(at + knobs[i].at) = value;
}

/* A Multi lock has two names at least. */
static int64_t least(const config *c, size_t i)
{
    if (i >= KNOBS)
        return 0;
    if (c->multi && knobs[i].at == offsetof(config, names))
        return 2;
    return knobs[i].least;
}

static const char *name_of(size_t i)
{
    return i < KNOBS ? knobs[i].name : fault_names[i - KNOBS];
}

bool config_set(config *c, uint64_t *dice, const char *list)
{
    char copy[1024], *rest = copy, name[32];
    snprintf(copy, sizeof copy, "%s", list);
    for (char *w; (w = strtok_r(rest, ",", &rest)) != NULL;) {
        long long value;
        size_t i = 0;
        if (sscanf(w, "%31[^=]=%lld", name, &value) != 2)
            return false;
        while (i < KNOBS + FAULTS && strcmp(name_of(i), name) != 0)
            i++;
        if (i < KNOBS + FAULTS && value >= least(c, i))
            put(c, i, value);
        else if (strcmp(name, "world") == 0)
            *dice = (uint64_t)value;
        else
            return false;
    }
    return true;
}

static void tell(uint64_t seed, uint64_t dice, const config *was,
                 const config *is)
{
    const char *between = " --set ";
    printf("--seed %llu", (unsigned long long)seed);
    for (size_t i = 0; i < KNOBS + FAULTS; i++) {
        if (get(was, i) == get(is, i))
            continue;
        printf("%s%s=%lld", between, name_of(i), (long long)get(is, i));
        between = ",";
    }
    if (dice != seed)
        printf("%sworld=%llu", between, (unsigned long long)dice);
    printf("\n");
}

/* By the same judge, and for the same reason. */
static bool fails_so(const config *c, uint64_t dice, const char *complaint)
{
    outcome out;
    run_world(dice, c, false, &out);
    return out.failed && strcmp(out.complaint, complaint) == 0;
}

static bool still_fails(const config *c, uint64_t *dice, const char *complaint)
{
    bool fails = fails_so(c, *dice, complaint);
    for (uint64_t i = 1; !fails && i <= OTHER_DICE; i++) {
        *dice = i;
        fails = fails_so(c, i, complaint);
    }
    return fails;
}

/* First nothing of it, then half of it. */
static bool make_smaller(config *c, size_t i, uint64_t *dice,
                         const char *complaint)
{
    int64_t most = get(c, i), few = least(c, i);
    int64_t tries[] = {few, (most + few) / 2};
    for (size_t k = 0; k < 2 && most > few; k++) {
        config smaller = *c;
        uint64_t other = *dice;
        put(&smaller, i, tries[k]);
        if (tries[k] < most && still_fails(&smaller, &other, complaint)) {
            *c = smaller;
            *dice = other;
            return true;
        }
    }
    return false;
}

void shrink(uint64_t seed, const config *set)
{
    outcome out;
    config c = *set;
    uint64_t dice = seed;
    bool smaller = true;
    run_world(dice, &c, false, &out);
    if (!out.failed) {
        printf("it does not fail\n");
        return;
    }
    while (smaller) {
        smaller = false;
        for (size_t i = 0; i < KNOBS + FAULTS; i++)
            smaller = make_smaller(&c, i, &dice, out.complaint) || smaller;
    }
    run_world(dice, &c, false, &out);
    printf("%s\nafter %llu steps, by\n", out.failure, out.figures.steps);
    tell(seed, dice, set, &c);
}
