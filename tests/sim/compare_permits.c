/* Random calls of a semaphore's scripts. */
#include "compare.h"
#include "wire/script.h"

static void say_many(chance *c, command_line *to)
{
    static const char *const all[] = {"1", "1", "2", "3", "0", "1001", "x"};
    say_one(c, to, all, chance_ppm(c, 30000) ? 7 : 4);
}

static void say_total(chance *c, command_line *to)
{
    static const char *const all[] = {"3", "3", "0", "-1", "x"};
    say_one(c, to, all, chance_ppm(c, 30000) ? 5 : 3);
}

static void say_idle(chance *c, command_line *to)
{
    static const char *const all[] = {"0", "0", "1", "60", "x"};
    say_one(c, to, all, chance_ppm(c, 30000) ? 5 : 4);
}

static void call_acquire(chance *c, command_line *to)
{
    static const char *const tickets[] = {"0", "0", "1600000000000000", "x"};
    static const char *const beats[] = {"1", "17", "0", "1.5"};
    say_lease(c, to);
    say_many(c, to);
    say_total(c, to);
    say_idle(c, to);
    if (chance_ppm(c, 400000))
        return;
    if (chance_ppm(c, 800000))
        say_bell(c, to);
    else
        say_word(to, "-rlock_bell:00000000-0000-4000-8000-0000000000d4");
    say_one(c, to, tickets, chance_ppm(c, 30000) ? 4 : 3);
    say_one(c, to, beats, chance_ppm(c, 30000) ? 4 : 3);
}

static void call_release(chance *c, command_line *to)
{
    static const char *const tombstones[] = {"0", "60000", "x"};
    say_word(to, "redisson_sc:{d}");
    say_many(c, to);
    say_one(c, to, tombstones, chance_ppm(c, 30000) ? 3 : 2);
    say_idle(c, to);
}

static void call_add(chance *c, command_line *to)
{
    static const char *const deltas[] = {
        "1", "2", "-1", "-3", "0", "4503599627370496", "-0", "1.5"};
    say_one(c, to, deltas, chance_ppm(c, 30000) ? 8 : 5);
    say_total(c, to);
    say_idle(c, to);
    say_lease(c, to); /* of its mark */
    say_word(to, "redisson_sc:{d}");
}

static void call_many(chance *c, command_line *to, const char *name)
{
    int n = 1 + (int)chance_below(c, 3);
    say_number(to, 2 * n);
    for (int i = 0; i < n; i++) {
        say_key(to, name, 0, 0);
        say_key(to, name, PERMITS, 0);
    }
    say_lease(c, to);
    for (int i = 0; i < n; i++) {
        say_word(to, holder((int)chance_below(c, HOLDERS)));
        say_many(c, to);
        say_idle(c, to);
    }
}

static void call_one(chance *c, command_line *to, const char *name,
                     rl_script_id id)
{
    static const int keys[] = {0, PERMITS, 3, LINE, WANTS};
    int who = (int)chance_below(c, HOLDERS);
    bool lease = id == RL_SCRIPT_PERMIT_RENEW || id == RL_SCRIPT_PERMIT_EXTEND;
    int n = id == RL_SCRIPT_PERMIT_TOUCH                ? 1
            : lease || id == RL_SCRIPT_PERMIT_AVAILABLE ? 2
                                                        : 5;
    say_number(to, n);
    for (int i = 0; i < n; i++)
        say_key(to, name, keys[i], who);
    if (id == RL_SCRIPT_PERMIT_AVAILABLE)
        say_total(c, to);
    else if (n > 1 && id != RL_SCRIPT_PERMIT_ADD)
        say_word(to, holder(who));
    if (id == RL_SCRIPT_PERMIT_ACQUIRE)
        call_acquire(c, to);
    else if (id == RL_SCRIPT_PERMIT_RELEASE)
        call_release(c, to);
    else if (id == RL_SCRIPT_PERMIT_ADD)
        call_add(c, to);
    if (!lease)
        return;
    say_lease(c, to);
    say_many(c, to);
    say_idle(c, to);
}

void call_permit(chance *c, command_line *to, const char *name)
{
    static const rl_script_id all[] = {
        RL_SCRIPT_PERMIT_ACQUIRE,    RL_SCRIPT_PERMIT_ACQUIRE,
        RL_SCRIPT_PERMIT_ACQUIRE,    RL_SCRIPT_PERMIT_RELEASE,
        RL_SCRIPT_PERMIT_RELEASE,    RL_SCRIPT_PERMIT_RENEW,
        RL_SCRIPT_PERMIT_RENEW_MANY, RL_SCRIPT_PERMIT_EXTEND,
        RL_SCRIPT_PERMIT_ADD,        RL_SCRIPT_PERMIT_AVAILABLE,
        RL_SCRIPT_PERMIT_TOUCH};
    rl_script_id id = all[chance_below(c, 11)];
    to->argv[1] = (word){rl_scripts[id].sha1, 40};
    if (id == RL_SCRIPT_PERMIT_RENEW_MANY)
        call_many(c, to, name);
    else
        call_one(c, to, name, id);
}
