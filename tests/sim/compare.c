/*
 * compare [COMMANDS [SEED]]
 *
 * Gives the same random commands and script calls to the simulator's store and
 * to a redis-server whose clock is moved along with the store's. Each reply has
 * to be the same to the byte, but for where in a script an error came up; so
 * have all keys, what they hold and how long, and what subscribers hear. Closes
 * with "N passed, N failed".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "script.h"
#include "wire/script.h"

#define EVERY 500 /* so often, all keys are compared */

static store ours;
static real theirs;
static text heard; /* by those who listen to ours */
static long long failures;

/* Of the bells, every other one is listened to, here and at the server. */
static bool is_listened_to(const word *channel)
{
    for (int i = 0; i < BELLS; i += 2) {
        char name[32];
        snprintf(name, sizeof name, BELL_FORMAT, i);
        if (word_is(channel, name))
            return true;
    }
    return false;
}

static int publish(void *arg, bool is_sharded, const word *channel,
                   const word *message)
{
    (void)arg;
    (void)is_sharded;
    if (!is_listened_to(channel))
        return 0;
    text_print(&heard, "*3\r\n$7\r\nmessage\r\n");
    text_bulk(&heard, channel->at, channel->len);
    text_bulk(&heard, message->at, message->len);
    return 1;
}

/* As server.c does it, for a server that has all scripts. */
static void ask_ours(const word *argv, size_t n, text *reply)
{
    long long keys = 0;
    reply->len = 0;
    if (!word_is(&argv[0], "EVALSHA")) {
        store_command(&ours, argv, n, reply);
        return;
    }
    word_number(&argv[2], &keys);
    script_call(&ours, script_by_sha1(&argv[1]), argv + 3, n - 3, (size_t)keys,
                reply);
}

/* " script: SHA1, on @user_script:LINE." is not compared. */
static void cut_place(text *reply)
{
    text_add(reply, "", 1);
    char *place = *reply->at == '-' ? strstr(reply->at, " script: ") : NULL;
    if (place) {
        memcpy(place, "\r\n", 3);
        reply->len = (size_t)(place - reply->at) + 3;
    }
    reply->len--;
}

static void show(const char *what, const text *t)
{
    printf("  %s: ", what);
    for (size_t i = 0; i < t->len; i++)
        putchar(t->at[i] == '\r' ? ' ' : t->at[i] == '\n' ? '|' : t->at[i]);
    putchar('\n');
}

static const char *name_of(const word *sha1)
{
    int script = script_by_sha1(sha1);
    return script < 0 ? sha1->at : rl_scripts[script].name;
}

static void complain(const char *what, const word *argv, size_t n,
                     const text *a, const text *b)
{
    failures++;
    printf("not the same %s:", what);
    for (size_t i = 0; i < n; i++)
        printf(" %s",
               i == 1 && argv[i].len == 40 ? name_of(&argv[i]) : argv[i].at);
    printf("\n");
    show("ours", a);
    show("real", b);
}

static bool same(const text *a, const text *b)
{
    return a->len == b->len && (a->len == 0 || !memcmp(a->at, b->at, a->len));
}

static void ask_both(const word *argv, size_t n, const char *what)
{
    static text a, b;
    ask_ours(argv, n, &a);
    real_ask(&theirs, argv, n, &b);
    cut_place(&a);
    cut_place(&b);
    if (!same(&a, &b))
        complain(what, argv, n, &a, &b);
}

static void compare_key(const char *key)
{
    static const char *const reads[] = {
        "TYPE k", "PTTL k", "GET k", "HGETALL k", "ZRANGE k 0 -1 WITHSCORES"};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        command_line line = {0};
        char copy[64], *rest = copy;
        snprintf(copy, sizeof copy, "%s", reads[i]);
        for (char *w; (w = strtok_r(rest, " ", &rest)) != NULL;)
            say_word(&line, strcmp(w, "k") == 0 ? key : w);
        ask_both(line.argv, line.n, "key");
    }
}

static void compare_all(void)
{
    for (size_t i = 0; known_key(i); i++)
        compare_key(known_key(i));
    if (!same(&heard, &theirs.heard))
        complain("messages", NULL, 0, &heard, &theirs.heard);
    heard.len = theirs.heard.len = 0;
}

/*
 * Both clocks, mostly not far; and rarely back. The server removes keys by
 * itself, at any moment, when their time has passed, and the store when it
 * comes across them: so all are looked at before time goes back.
 */
static void pass_time(chance *c)
{
    if (chance_ppm(c, 600000))
        ours.now_us += chance_skewed(c, 20000000);
    if (chance_ppm(c, 1000))
        ours.now_us += chance_between(c, 300000000, 4000000000);
    *theirs.clock_us = ours.now_us;
    if (chance_ppm(c, 2000)) {
        compare_all();
        ours.now_us -= chance_skewed(c, 100000000);
        *theirs.clock_us = ours.now_us;
    }
}

static void load_scripts(void)
{
    text reply = {0};
    for (int i = 0; i < RL_SCRIPT_COUNT; i++) {
        word argv[] = {{"SCRIPT", 6},
                       {"LOAD", 4},
                       {rl_scripts[i].body, rl_scripts[i].len}};
        real_ask(&theirs, argv, 3, &reply);
    }
    text_free(&reply);
}

static void start(void)
{
    text reply = {0};
    word argv[] = {{"INFO", 4}, {"server", 6}};
    real_start(&theirs);
    ours.now_us = ours.started_us = *theirs.clock_us;
    ours.publish = publish;
    real_ask(&theirs, argv, 2, &reply);
    text_add(&reply, "", 1);
    const char *id = strstr(reply.at, "run_id:");
    if (!id)
        die("the server does not tell its run_id");
    memcpy(ours.run_id, id + 7, 40);
    text_free(&reply);
    load_scripts();
}

int main(int argc, char **argv)
{
    long long commands = argc > 1 ? atoll(argv[1]) : 200000;
    chance c;
    chance_init(&c, argc > 2 ? (uint64_t)atoll(argv[2]) : 1);
    setvbuf(stdout, NULL, _IOLBF, 0);
    start();
    for (long long i = 0; i < commands && failures < 10; i++) {
        command_line line;
        pass_time(&c);
        random_command(&c, &line);
        ask_both(line.argv, line.n, "reply");
        if (i % EVERY == EVERY - 1)
            compare_all();
    }
    real_stop(&theirs);
    store_clear(&ours);
    script_end();
    text_free(&heard);
    printf("%lld random commands, given to the store and to a redis-server\n",
           commands);
    printf("%d passed, %d failed\n", failures == 0, failures != 0);
    return failures != 0;
}
