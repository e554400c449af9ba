/* A call in a cluster: sent elsewhere, asked for patience, and back. */
#include "ask.h"

#define MOVED    "-MOVED 3999 10.0.0.2:6381\r\n"
#define ASK      "-ASK 3999 10.0.0.3:6382\r\n"
#define TRYAGAIN "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
#define DOWN     "-CLUSTERDOWN The cluster is down\r\n"

typedef struct guide {
    rl_redirects r;
    int moved, asked, troubles;
    unsigned slot, number;
    char place[64];
} guide;

static void go_to(rl_redirects *r, unsigned slot, const char *host, int port)
{
    guide *g = RL_CONTAINER(r, guide, r);
    g->slot = slot;
    snprintf(g->place, sizeof g->place, "%s|%d", host, port);
}

static void moved(rl_redirects *r, unsigned slot, const char *host, int port)
{
    RL_CONTAINER(r, guide, r)->moved++;
    go_to(r, slot, host, port);
}

static unsigned asked(rl_redirects *r, unsigned slot, const char *host,
                      int port)
{
    RL_CONTAINER(r, guide, r)->asked++;
    go_to(r, slot, host, port);
    return RL_CONTAINER(r, guide, r)->number;
}

static void trouble(rl_redirects *r)
{
    RL_CONTAINER(r, guide, r)->troubles++;
}

static void open_guided(call *c, guide *g)
{
    *g = (guide){.r = {moved, asked, trouble}, .number = 4};
    open_call(c);
    c->ask.redirects = &g->r;
    c->ask.patient = true;
}

static void expect_rest(call *c, int64_t least_us, int64_t most_us)
{
    EXPECT_INT(c->done, 0);
    EXPECT_INT(c->ask.next, RL_ASK_RESTS);
    EXPECT_BETWEEN(c->ask.rest_until_us - 5, least_us, most_us);
    rl_ask_wake(&c->ask, c->ask.rest_until_us - 1);
    EXPECT_INT(c->ask.next, RL_ASK_RESTS);
    rl_ask_wake(&c->ask, c->ask.rest_until_us);
    expect_again(c);
}

TEST(ask_redirects, moved_is_followed_at_once)
{
    call c;
    guide g;
    open_guided(&c, &g);
    push(&c);
    EXPECT(hear(&c, MOVED));
    expect_again(&c);
    EXPECT(g.moved == 1 && g.slot == 3999 && !c.ask.unknown);
    EXPECT_STR(g.place, "10.0.0.2|6381");
    push(&c);
    EXPECT(hear(&c, ":1\r\n"));
    expect_end(&c, RL_ANSWERED);
    close_call(&c);
}

TEST(ask_redirects, fault_148_places_of_every_form_are_read)
{
    static const struct {
        const char *reply, *place;
    } forms[] = {
        {"-MOVED 1 ::1:7\r\n", "::1|7"},
        {"-MOVED 1 :7\r\n", "|7"},
        {"-MOVED 1 ?:7\r\n", "|7"},
        {"-MOVED 1 a.b.example.com:65535\r\n", "a.b.example.com|65535"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        call c;
        guide g;
        open_guided(&c, &g);
        push(&c);
        EXPECT(hear(&c, forms[i].reply));
        EXPECT_STR(g.place, forms[i].place);
        close_call(&c);
    }
}

/* "MOVED 1 :0" says a server that has lost sight of the one with the slot. */
TEST(ask_redirects, fault_148_what_is_no_place_is_trouble_that_passes)
{
    static const char *const replies[] = {
        "-MOVED 1 :0\r\n",      "-MOVED 1\r\n",       "-MOVED x a:1\r\n",
        "-MOVED 1 a\r\n",       "-MOVED 1 a:0\r\n",   "-MOVED 1 a:70000\r\n",
        "-MOVED 99999 a:1\r\n", "-ASK 1 nowhere\r\n", "-MOVED 1x a:1\r\n",
        "-MOVED - a:1\r\n"};
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        call c;
        guide g;
        open_guided(&c, &g);
        push(&c);
        EXPECT(hear(&c, replies[i]));
        EXPECT(g.moved == 0 && g.asked == 0 && g.troubles == 1);
        expect_rest(&c, 1, 20000);
        push(&c);
        EXPECT(hear(&c, ":1\r\n"));
        expect_end(&c, RL_ANSWERED);
        close_call(&c);
    }
}

TEST(ask_redirects, fault_148_six_in_a_row_are_followed_by_a_pause)
{
    call c;
    guide g;
    open_guided(&c, &g);
    for (int i = 0; i < RL_ASK_REDIRECTS; i++) {
        push(&c);
        EXPECT(hear(&c, MOVED));
        expect_again(&c);
    }
    push(&c);
    EXPECT(hear(&c, MOVED));
    expect_rest(&c, 1, 20000);
    push(&c);
    EXPECT(hear(&c, MOVED));
    expect_again(&c);
    close_call(&c);
}

/* --- what ends a row of redirects ------------------------------------------ */

static void say_down(call *c)
{
    push(c);
    EXPECT(hear(c, DOWN));
}

static void say_nowhere(call *c)
{
    push(c);
    EXPECT(hear(c, "-MOVED 1 :0\r\n"));
}

static void say_tryagain(call *c)
{
    push(c);
    EXPECT(hear(c, TRYAGAIN));
}

static void cut_it(call *c)
{
    push(c);
    break_line(c);
}

static void find_nobody(call *c)
{
    rl_fault_set(&c->fault, RLOCK_EIO, 0, "nobody at home");
    rl_ask_miss(&c->ask, 5);
}

/* It rests, though the redirect before was followed at once; the next one is. */
static void expect_row_ends(void (*end)(call *c), const char *redirect)
{
    call c;
    guide g;
    open_guided(&c, &g);
    push(&c);
    EXPECT(hear(&c, redirect));
    expect_again(&c);
    end(&c);
    expect_rest(&c, 1, 20000);
    EXPECT_INT(c.ask.detour, 0);
    push(&c);
    EXPECT(hear(&c, MOVED));
    expect_again(&c);
    close_call(&c);
}

#define ENDS_ROW(name, how)                                                    \
    TEST_CASE(ask_redirects, name##_is_followed_by_a_pause,                    \
              expect_row_ends(how, MOVED))

ENDS_ROW(a_cluster_that_is_down, say_down)
ENDS_ROW(a_redirect_to_nowhere, say_nowhere)
ENDS_ROW(tryagain, say_tryagain)
ENDS_ROW(a_connection_that_breaks, cut_it)
ENDS_ROW(a_server_that_cannot_be_had, find_nobody)
TEST_CASE(ask_redirects, a_detour_to_who_cannot_be_had_ends,
          expect_row_ends(find_nobody, ASK))

TEST(ask_redirects, what_is_split_is_so_until_the_connection_breaks)
{
    call c;
    guide g;
    open_guided(&c, &g);
    say_tryagain(&c);
    EXPECT(c.ask.split);
    cut_it(&c);
    EXPECT(!c.ask.split);
    close_call(&c);
}

/* With two tries left there is no end to them yet. */
TEST(ask_redirects, patience_ends_with_the_last_try)
{
    call c;
    open_call(&c);
    c.ask.patient = true;
    c.ask.tries = 2;
    push(&c);
    EXPECT(hear(&c, LOADING));
    expect_rest(&c, 1, 20000);
    EXPECT_INT(c.ask.tries, 2);
    c.ask.tries = 1;
    push(&c);
    EXPECT(hear(&c, LOADING));
    expect_end(&c, RL_NOT_EXECUTED);
    close_call(&c);
}

TEST(ask_redirects, ask_sends_one_attempt_elsewhere_with_asking_before_it)
{
    call c;
    guide g;
    const char *bytes;
    open_guided(&c, &g);
    push(&c);
    EXPECT(hear(&c, ASK));
    expect_again(&c);
    EXPECT(g.asked == 1 && g.moved == 0 && c.ask.detour == 4);
    rl_ask_push(&c.ask, &c.line, 3);
    EXPECT(rl_line_bytes(&c.line, &bytes) > 16 &&
           memcmp(bytes, "*1\r\n$6\r\nASKING\r\n", 16) == 0);
    send_all(&c);
    EXPECT(hear(&c, "+OK\r\n"));
    EXPECT_INT(c.done, 0);
    EXPECT(hear(&c, TRYAGAIN));
    EXPECT_INT(c.ask.detour, 0);
    expect_rest(&c, 1, 20000);
    push(&c);
    EXPECT(hear(&c, ":1\r\n"));
    expect_end(&c, RL_ANSWERED);
    close_call(&c);
}

/* The server to which it is sent on may not have the script. */
TEST(ask_redirects, asking_is_said_again_with_the_whole_script)
{
    call c;
    guide g;
    open_guided(&c, &g);
    push(&c);
    EXPECT(hear(&c, ASK));
    push(&c);
    EXPECT(hear(&c, "+OK\r\n" NOSCRIPT));
    EXPECT(c.ask.detour == 4 && c.wholes == 1);
    send_all(&c);
    EXPECT(hear(&c, "+OK\r\n:1\r\n"));
    expect_end(&c, RL_ANSWERED);
    close_call(&c);
}

TEST(ask_redirects, ask_is_not_followed_to_a_server_that_cannot_be_had)
{
    call c;
    guide g;
    open_guided(&c, &g);
    g.number = 0;
    push(&c);
    EXPECT(hear(&c, ASK));
    expect_again(&c);
    EXPECT_INT(c.ask.detour, 0);
    close_call(&c);
}

TEST(ask_redirects, pauses_grow_to_a_tenth_of_a_second_and_never_end_it)
{
    call c;
    guide g;
    open_guided(&c, &g);
    static const int64_t pauses[] = {10000, 20000, 40000, 80000, 100000};
    for (int i = 0; i < 20; i++) {
        push(&c);
        EXPECT(hear(&c, DOWN));
        expect_rest(&c, 1, 200000);
        EXPECT_INT(c.ask.pause_us, pauses[i < 4 ? i : 4]);
    }
    EXPECT_INT(g.troubles, 20);
    EXPECT(!c.ask.unknown);
    close_call(&c);
}

TEST(ask_redirects, tryagain_troubles_nobody_and_tells_that_the_slot_moves)
{
    call c;
    guide g;
    open_guided(&c, &g);
    push(&c);
    EXPECT(hear(&c, TRYAGAIN));
    EXPECT(c.ask.split && g.troubles == 0 && g.moved == 0);
    expect_rest(&c, 1, 20000);
    close_call(&c);
}

/* Sentinels name no slots, but they replace a master. */
TEST(ask_redirects, where_sentinels_watch_there_is_patience_without_redirects)
{
    call c;
    open_call(&c);
    c.ask.patient = true;
    for (int i = 0; i < 5; i++) {
        push(&c);
        EXPECT(hear(&c, "-LOADING Redis is loading\r\n"));
        expect_rest(&c, 1, 200000);
        rl_fault_set(&c.fault, RLOCK_EIO, 0, "cannot connect");
        rl_ask_miss(&c.ask, 5);
        expect_rest(&c, 1, 200000);
    }
    push(&c);
    EXPECT(hear(&c, MOVED));
    expect_end(&c, RL_NOT_EXECUTED);
    close_call(&c);
}

TEST(ask_redirects, what_is_tried_once_is_sent_nowhere)
{
    call c;
    guide g;
    open_guided(&c, &g);
    c.ask.tries = 1;
    push(&c);
    EXPECT(hear(&c, MOVED));
    expect_end(&c, RL_NOT_EXECUTED);
    EXPECT(g.moved == 1 && c.ask.redirected == 1);
    close_call(&c);
}

/* The program has named a server of a cluster as if it were by itself. */
TEST(ask_redirects, without_a_cluster_moved_is_an_error)
{
    call c;
    open_call(&c);
    push(&c);
    EXPECT(hear(&c, MOVED));
    expect_end(&c, RL_NOT_EXECUTED);
    EXPECT_CONTAINS(c.fault.text, "MOVED");
    close_call(&c);
}
