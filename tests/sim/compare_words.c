/*
 * Random commands: the scripts of the library with arguments that are mostly
 * good, on few keys, and in between commands of all kinds on the same keys, so
 * that types are wrong and TTLs odd.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "wire/keys.h"
#include "wire/script.h"

#define NAMES 5

/* Which of a lock's keys: 0 to 3, the last of them for each holder; and these.
 */
#define WHO   6
#define KINDS 10

/* One for each layout of programs', a latch, and a semaphore. */
#define LATCH     3
#define SEMAPHORE 4
static const char *const names[NAMES] = {"a", "{a}", "b", "c", "d"};

const char *holder(int i)
{
    static const char *const all[HOLDERS + 1] = {
        "host:1:11:00000000-0000-4000-8000-0000000000a1",
        "host:1:12:00000000-0000-4000-8000-0000000000b2",
        "host:2:11:00000000-0000-4000-8000-0000000000c3", "somebody"};
    return all[i];
}

static void copy_key(char out[WORD_SIZE], rl_key key)
{
    snprintf(out, WORD_SIZE, "%.*s", (int)key.len, key.text);
}

/* Which is only written, "$<length>\r\n<key>\r\n". */
static void copy_put_key(char out[WORD_SIZE],
                         void (*put)(rl_bytes *to, const void *name,
                                     size_t len),
                         const char *name, size_t len)
{
    rl_bytes to = {0};
    char *key;
    put(&to, name, len);
    int of_key = (int)strtol((char *)to.at + to.begin + 1, &key, 10);
    snprintf(out, WORD_SIZE, "%.*s", of_key, key + 2);
    rl_bytes_fini(&to);
}

static void key_of(char out[WORD_SIZE], const char *name, int which, int whose)
{
    size_t len = strlen(name);
    if (which == 0)
        snprintf(out, WORD_SIZE, "%s", name);
    else if (which == 1)
        copy_key(out, rl_key_token(name, len));
    else if (which == 2)
        copy_key(out, rl_key_queue(name, len));
    else if (which == LINE)
        copy_key(out, rl_key_line(name, len));
    else if (which == WANTS)
        copy_key(out, rl_key_wants(name, len));
    else if (which == WHO)
        copy_put_key(out, rl_put_waits_key, name, len);
    else if (which == PERMITS)
        copy_put_key(out, rl_put_permits_key, name, len);
    else
        copy_key(out, rl_key_tombstone(name, len, holder(whose)));
}

const char *known_key(size_t i)
{
    static char key[WORD_SIZE];
    if (i >= NAMES * KINDS)
        return NULL;
    int which = (int)(i % KINDS);
    bool tombstone = which >= 3 && which < WHO;
    key_of(key, names[i / KINDS], tombstone ? 3 : which,
           tombstone ? which - 3 : 0);
    return key;
}

void say_word(command_line *to, const char *text)
{
    char *at = to->room[to->n];
    size_t len = (size_t)snprintf(at, WORD_SIZE, "%s", text);
    to->argv[to->n++] = (word){at, len};
}

void say_number(command_line *to, long long n)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", n);
    say_word(to, digits);
}

void say_one(chance *c, command_line *to, const char *const *of, int count)
{
    say_word(to, of[chance_below(c, count)]);
}

void say_lease(chance *c, command_line *to)
{
    static const char *const all[] = {"1",      "20",      "1000",    "30000",
                                      "200000", "2000000", "5000000", "0",
                                      "-1",     "x",       "1e3"};
    say_one(c, to, all, chance_ppm(c, 30000) ? 11 : 7);
}

static void say_level(chance *c, command_line *to, const char *most)
{
    static const char *const all[] = {"1", "2", "3", "0", "x"};
    if (*most)
        say_word(to, most);
    else
        say_one(c, to, all, chance_ppm(c, 30000) ? 5 : 3);
}

void say_bell(chance *c, command_line *to)
{
    char bell[32];
    snprintf(bell, sizeof bell, BELL_FORMAT, (int)chance_below(c, BELLS));
    say_word(to, bell);
}

static void say_token(chance *c, command_line *to)
{
    static const char *const all[] = {"0",
                                      "1",
                                      "999",
                                      "1600000000000000",
                                      "1700000000000099",
                                      "17000000000000999",
                                      "999999999999999999",
                                      "01",
                                      "x"};
    say_one(c, to, all, 9);
}

void say_key(command_line *to, const char *name, int which, int whose)
{
    char key[WORD_SIZE];
    key_of(key, name, which, whose);
    say_word(to, key);
}

/* --- scripts -------------------------------------------------------------- */

static void call_acquire(chance *c, command_line *to, const char *name, int who,
                         bool tokenless)
{
    static const int all[] = {0, 1, 3, 2, WHO}, few[] = {0, 3, 2, WHO};
    const int *keys = tokenless ? few : all, first = tokenless ? 2 : 3;
    bool brief = chance_ppm(c, 300000);
    int n = first + (brief ? 0 : chance_ppm(c, 300000) ? 2 : 1);
    say_number(to, n);
    for (int i = 0; i < n; i++)
        say_key(to, name, keys[i], who);
    say_word(to, holder(who));
    say_lease(c, to);
    if (brief)
        return;
    say_level(c, to, chance_ppm(c, 700000) ? "1" : "");
    if (chance_ppm(c, 500000))
        say_bell(c, to);
    else
        say_word(to, "");
    say_number(to, chance_ppm(c, 500000)
                       ? 0
                       : 1600000000000000 + chance_below(c, 1000));
    bool wants = n == first + 2 && chance_ppm(c, 800000);
    if (wants)
        say_word(to, "");
    else if (chance_ppm(c, 300000))
        say_token(c, to);
    if (wants)
        say_number(to, 1 + chance_below(c, 1000000));
}

/* In the queue, or not; what it wanted by that bell is granted no more. */
static void call_release_that_grants(chance *c, command_line *to,
                                     const char *name, int who)
{
    static const int keys[] = {0, 2, 3, WHO, 1};
    say_number(to, 5);
    for (int i = 0; i < 5; i++)
        say_key(to, name, keys[i], who);
    say_word(to, holder(who));
    say_word(to, chance_ppm(c, 800000) ? "redisson_lock__channel:{x}" : "");
    say_word(to, "0");
    say_word(to, chance_ppm(c, 500000) ? "0" : "1000");
    say_word(to, "PUBLISH");
    if (chance_ppm(c, 300000))
        say_bell(c, to);
    else
        say_word(to, "");
}

static void call_release(chance *c, command_line *to, const char *name, int who)
{
    static const char *const tombstones[] = {"0", "60000", "1000", "x"};
    bool brief = chance_ppm(c, 300000);
    if (!brief && chance_ppm(c, 500000)) {
        call_release_that_grants(c, to, name, who);
        return;
    }
    say_word(to, brief ? "2" : "3");
    say_key(to, name, 0, who);
    say_key(to, name, chance_ppm(c, 200000) ? 3 : 2, who);
    if (!brief)
        say_key(to, name, 3, who);
    say_word(to, holder(who));
    say_word(to, chance_ppm(c, 800000) ? "redisson_lock__channel:{x}" : "");
    if (brief)
        return;
    say_level(c, to, chance_ppm(c, 800000) ? "0" : "");
    say_one(c, to, tombstones, chance_ppm(c, 30000) ? 4 : 3);
}

static void call_fair_acquire(chance *c, command_line *to, const char *name,
                              int who)
{
    static const int keys[] = {0, 1, 3, LINE, WANTS, 2};
    bool brief = chance_ppm(c, 200000);
    say_number(to, brief ? 5 : 6);
    for (int i = 0; i < (brief ? 5 : 6); i++)
        say_key(to, name, keys[i], who);
    say_word(to, holder(who));
    say_lease(c, to);
    if (brief)
        return;
    say_level(c, to, chance_ppm(c, 800000) ? "1" : "");
    if (chance_ppm(c, 800000))
        say_bell(c, to);
    else
        say_word(to, "-rlock_bell:00000000-0000-4000-8000-0000000000d4");
    say_number(to, chance_ppm(c, 500000)
                       ? 0
                       : 1600000000000000 + chance_below(c, 1000));
    say_token(c, to);
}

static void call_fair_release(chance *c, command_line *to, const char *name,
                              int who)
{
    static const int keys[] = {0, 2, 3, 1, LINE, WANTS};
    say_word(to, "6");
    for (int i = 0; i < 6; i++)
        say_key(to, name, keys[i], who);
    say_word(to, holder(who));
    say_word(to, chance_ppm(c, 800000) ? "redisson_lock__channel:{x}" : "");
    if (chance_ppm(c, 500000))
        return;
    say_level(c, to, chance_ppm(c, 800000) ? "0" : "");
    say_word(to, chance_ppm(c, 800000) ? "0" : "60000");
}

static void call_fair(chance *c, command_line *to, const char *name)
{
    int who = (int)chance_below(c, HOLDERS);
    bool takes = chance_ppm(c, 600000);
    const rl_layout *l = &rl_layouts[RL_LAYOUT_FAIR];
    to->argv[1] = (word){rl_scripts[takes ? l->acquire : l->release].sha1, 40};
    if (takes)
        call_fair_acquire(c, to, name, who);
    else
        call_fair_release(c, to, name, who);
}

static void call_handover(chance *c, command_line *to, const char *name,
                          int who)
{
    static const char *const patiences[] = {"2000", "0", "999999999999", "x"};
    static const char *const kept[] = {"63", "1", "-", "x", "0", ""};
    bool keeps = chance_ppm(c, 500000), grants = chance_ppm(c, 300000);
    int next = (int)chance_below(c, HOLDERS);
    say_word(to, grants ? "5" : "4");
    say_key(to, name, 0, who);
    say_key(to, name, 1, who);
    say_key(to, name, 3, next);
    say_key(to, name, 2, who);
    if (grants)
        say_key(to, name, WHO, who);
    say_word(to, holder(who));
    say_word(to, holder(next));
    say_lease(c, to);
    say_one(c, to, patiences, chance_ppm(c, 30000) ? 4 : 3);
    say_word(to, chance_ppm(c, 800000) ? "redisson_lock__channel:{x}" : "");
    if (chance_ppm(c, 500000))
        say_bell(c, to);
    else
        say_word(to, "");
    if (keeps)
        say_one(c, to, kept, chance_ppm(c, 30000) ? 6 : 3);
}

static void call_lease(chance *c, command_line *to, const char *name, int who)
{
    bool compare = chance_ppm(c, 300000);
    bool keeps = compare || chance_ppm(c, 200000);
    say_word(to, keeps ? "2" : "1");
    say_key(to, name, 0, who);
    if (keeps)
        say_key(to, name, 1, who);
    say_word(to, holder(who));
    say_lease(c, to);
    if (compare)
        say_token(c, to);
}

/* Names of other layouts are among them. */
static void call_renew_many(chance *c, command_line *to)
{
    size_t n = 1 + (size_t)chance_below(c, 6);
    size_t kept = chance_ppm(c, 300000) ? (size_t)chance_below(c, 8) : 0;
    int which[6];
    say_number(to, (int64_t)(n + kept));
    for (size_t i = 0; i < n; i++) {
        which[i] = (int)chance_below(c, HOLDERS);
        say_key(to, names[chance_below(c, NAMES)], 0, 0);
    }
    for (size_t i = 0; i < kept; i++)
        say_key(to, names[chance_below(c, NAMES)], 1, 0);
    say_lease(c, to);
    for (size_t i = 0; i < n; i++)
        say_word(to, holder(which[i]));
}

/* Keys and holders of so many, mostly different ones. */
static void call_many(chance *c, command_line *to, bool takes)
{
    size_t n = 1 + (size_t)chance_below(c, NAMES);
    size_t first = (size_t)chance_below(c, NAMES);
    static const int taken[] = {0, 3, 1}, freed[] = {0, 2};
    size_t groups = takes ? 3 : 2;
    int who = (int)chance_below(c, HOLDERS);
    say_number(to, (int64_t)(n * groups));
    for (size_t k = 0; k < groups; k++)
        for (size_t i = 0; i < n; i++)
            say_key(to, names[(first + i) % NAMES], (takes ? taken : freed)[k],
                    who);
    if (takes)
        say_lease(c, to);
    for (size_t i = 0; i < n; i++)
        say_word(to, holder(who));
    for (size_t i = 0; !takes && i < n; i++)
        say_word(to, "redisson_lock__channel:{x}");
}

static void call_short(chance *c, command_line *to, const char *name,
                       rl_script_id id)
{
    if (id == RL_SCRIPT_RAISE) {
        say_word(to, "1");
        say_key(to, name, 1, 0);
        say_token(c, to);
    } else if (id == RL_SCRIPT_LEAVE) {
        bool wants = chance_ppm(c, 500000);
        say_word(to, wants ? "4" : "3");
        say_key(to, name, 0, 0);
        say_key(to, name, 2, 0);
        say_key(to, name, 1, 0);
        if (wants)
            say_key(to, name, WHO, 0);
        say_bell(c, to);
    } else if (id == RL_SCRIPT_WAITS || id == RL_SCRIPT_SURVEY) {
        bool in_line = chance_ppm(c, 500000);
        say_word(to, in_line ? "5" : "3");
        say_key(to, name, 0, 0);
        say_key(to, name, 2, 0);
        say_key(to, name, id == RL_SCRIPT_WAITS ? WHO : 1, 0);
        for (int which = LINE; in_line && which <= WANTS; which++)
            say_key(to, name, which, 0);
    } else if (id == RL_SCRIPT_TOUCH) {
        say_word(to, "1");
        say_key(to, name, 0, 0);
    } else if (id == RL_SCRIPT_PROBE) {
        say_word(to, "3");
        for (int which = 1; which < 4; which++)
            say_key(to, "rlock_probe:1", which, 0);
        say_bell(c, to);
    } else {
        say_word(to, "0");
    }
}

static void call_layout(chance *c, command_line *to, const char *name,
                        const rl_layout *l)
{
    rl_script_id all[] = {l->acquire,   l->acquire,       l->acquire,
                          l->release,   l->release,       l->renew,
                          l->extend,    l->inspect,       l->renew_many,
                          l->take_many, l->force_release, l->free_many};
    rl_script_id id = chance_ppm(c, 80000) ? RL_SCRIPT_HASH_HANDOVER
                                           : all[chance_below(c, 12)];
    if (id == RL_SCRIPT_COUNT)
        id = l->acquire;
    int who = (int)chance_below(c, HOLDERS);
    to->argv[1].at = rl_scripts[id].sha1;
    to->argv[1].len = 40;
    if (id == l->acquire) {
        call_acquire(c, to, name, who, false);
    } else if (id == l->release) {
        call_release(c, to, name, who);
    } else if (id == RL_SCRIPT_HASH_HANDOVER) {
        call_handover(c, to, name, who);
    } else if (id == l->renew || id == l->extend) {
        call_lease(c, to, name, who);
    } else if (id == l->renew_many) {
        call_renew_many(c, to);
    } else if (id == l->take_many || id == l->free_many) {
        call_many(c, to, id == l->take_many);
    } else if (id == l->inspect) {
        say_word(to, "1");
        say_key(to, name, 0, 0);
    } else {
        say_word(to, "2");
        say_key(to, name, 0, 0);
        say_key(to, name, 2, 0);
        say_word(to, "redisson_lock__channel:{x}");
    }
}

static void say_count(chance *c, command_line *to)
{
    static const char *const all[] = {"1", "1",  "2",  "3", "9999999999999999",
                                      "0", "-1", "01", "x"};
    say_one(c, to, all, chance_ppm(c, 30000) ? 9 : 5);
}

/* Its mark has the name of a tombstone. */
static void call_latch(chance *c, command_line *to, const char *name)
{
    static const rl_script_id all[] = {
        RL_SCRIPT_LATCH_COUNT_DOWN, RL_SCRIPT_LATCH_COUNT_DOWN,
        RL_SCRIPT_LATCH_LOOK, RL_SCRIPT_LATCH_SET, RL_SCRIPT_LATCH_DELETE};
    rl_script_id id = all[chance_below(c, 5)];
    int mark = (int)chance_below(c, HOLDERS);
    bool looks = id == RL_SCRIPT_LATCH_LOOK, sets = id == RL_SCRIPT_LATCH_SET;
    to->argv[1] = (word){rl_scripts[id].sha1, 40};
    say_word(to, id == RL_SCRIPT_LATCH_COUNT_DOWN ? "3" : "2");
    say_key(to, name, 0, 0);
    if (!sets)
        say_key(to, name, 2, 0);
    if (sets || id == RL_SCRIPT_LATCH_COUNT_DOWN) {
        say_key(to, name, 3, mark);
        say_count(c, to);
    }
    if (looks && chance_ppm(c, 700000))
        say_bell(c, to);
    else if (looks)
        say_word(to, "");
    if (sets)
        say_lease(c, to);
    if (sets || id == RL_SCRIPT_LATCH_COUNT_DOWN)
        say_lease(c, to);
    if (!looks)
        say_word(to, "redisson_countdownlatch__channel__{x}");
}

static void random_call(chance *c, command_line *to)
{
    static const rl_script_id others[] = {
        RL_SCRIPT_LEAVE, RL_SCRIPT_RAISE, RL_SCRIPT_TOUCH, RL_SCRIPT_IDENTIFY,
        RL_SCRIPT_PROBE, RL_SCRIPT_WAITS, RL_SCRIPT_SURVEY};
    /* A name stays with its layout, mostly. */
    int which = (int)chance_below(c, NAMES);
    int kind = chance_ppm(c, 950000) ? which : (int)chance_below(c, NAMES);
    say_word(to, "EVALSHA");
    say_word(to, "");
    if (kind == LATCH) {
        call_latch(c, to, names[which]);
        return;
    }
    if (kind == SEMAPHORE) {
        call_permit(c, to, names[which]);
        return;
    }
    if (which < 2 && chance_ppm(c, 300000)) {
        call_fair(c, to, names[which]);
        return;
    }
    bool tokenless = which < 2 && chance_ppm(c, 150000);
    if (!tokenless && chance_ppm(c, 900000)) {
        call_layout(c, to, names[which], &rl_layouts[kind]);
        return;
    }
    rl_script_id id =
        tokenless ? RL_SCRIPT_TOKENLESS_ACQUIRE : others[chance_below(c, 7)];
    to->argv[1] = (word){rl_scripts[id].sha1, 40};
    if (tokenless)
        call_acquire(c, to, names[which], (int)chance_below(c, HOLDERS), true);
    else
        call_short(c, to, names[which], id);
}

/* --- plain commands ------------------------------------------------------- */

/* Letters stand for words: k key, v value, h holder, n number, b bell. */
static const char *const shapes[] = {
    "EXISTS k",
    "EXISTS k k",
    "GET k",
    "SET k v",
    "SET k v PX n",
    "SET k v NX PX n",
    "SET k v XX",
    "SET k v GET",
    "SET k v PX n GET",
    "SET k v NX XX",
    "SET k v PX",
    "DEL k",
    "HSET k h n",
    "HSET k h n v n",
    "HSET k h",
    "HDEL k h",
    "HEXISTS k h",
    "HLEN k",
    "HSCAN k n",
    "HINCRBY k h n",
    "INCRBY k n",
    "DECRBY k n",
    "PEXPIRE k n",
    "PTTL k",
    "ZADD k n b",
    "ZADD k XX n b",
    "ZADD k NX n b",
    "ZSCORE k b",
    "ZREVRANGE k 0 0 WITHSCORES",
    "ZRANGE k 0 0",
    "HGET k h",
    "ZADD k v b",
    "ZREM k b",
    "ZRANK k b",
    "ZPOPMIN k",
    "ZCARD k",
    "GETRANGE k 0 511",
    "GETRANGE k 0 1",
    "GETRANGE k 0 v",
    "PUBLISH b v",
    "TIME",
    "TYPE k",
    "HGETALL k",
    "ZRANGE k 0 -1 WITHSCORES",
    "ZRANGE k 0 0 WITHSCORES",
    "PING",
    "GET",
    "PEXPIRE k v",
    "HINCRBY k h v",
    "INCRBY k v",
    "PEXPIRE k n",
    "SET k 1600000123.5",
};

static void say_letter(chance *c, command_line *to, char letter)
{
    static const char *const values[] = {
        "1", "17", "x", "", "1600000050", "999999999999999999", "0"};
    static const char *const numbers[] = {"1",    "5",      "-1",     "0",
                                          "2000", "100000", "5000000"};
    if (letter == 'k')
        say_key(to, names[chance_below(c, NAMES)], (int)chance_below(c, 4),
                (int)chance_below(c, HOLDERS));
    else if (letter == 'h')
        say_word(to, holder((int)chance_below(c, HOLDERS + 1)));
    else if (letter == 'b')
        say_bell(c, to);
    else if (letter == 'v')
        say_one(c, to, values, 7);
    else
        say_one(c, to, numbers, 7);
}

static void random_plain(chance *c, command_line *to)
{
    const char *at = shapes[chance_below(c, sizeof shapes / sizeof *shapes)];
    while (*at) {
        char text[32];
        size_t len = strcspn(at, " ");
        snprintf(text, sizeof text, "%.*s", (int)len, at);
        if (len == 1 && *at >= 'a' && *at <= 'z')
            say_letter(c, to, *at);
        else
            say_word(to, text);
        at += len + (at[len] == ' ');
    }
}

void random_command(chance *c, command_line *to)
{
    to->n = 0;
    if (chance_ppm(c, 800000))
        random_call(c, to);
    else
        random_plain(c, to);
}
