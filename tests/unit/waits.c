/* What servers say of waiting clients: names, circles, and what makes no sense.
 */
#include "client/waits_graph.h"

#include <errno.h>

#include "shim.h"
#include "test.h"
#include "wire/keys.h"

#define UUID(digit)                                                            \
#digit #digit #digit #digit #digit #digit #digit #digit                    \
        "-0000-0000-0000-000000000000"
#define BY(tid)   "host:1:" #tid ":" UUID(1)
#define BELL(who) "rlock_bell:" UUID(who)

static rl_cell text_of(const char *s, int depth)
{
    return (rl_cell){REDIS_REPLY_STRING, depth, 0, s};
}

/* As on a line, it has no end of its own: more digits follow. */
static bool pour(rl_sink *s, const char *text, int depth)
{
    char said[700];
    size_t len = (size_t)snprintf(said, sizeof said, "%s7777:", text);
    EXPECT(len < sizeof said);
    rl_cell c = text_of(said, depth);
    return s->take(s, &c, strlen(text));
}

static bool pour_number(rl_sink *s, int64_t n)
{
    rl_cell c = {REDIS_REPLY_INTEGER, 1, n, NULL};
    return s->take(s, &c, 0);
}

static bool pour_array(rl_sink *s, int depth)
{
    rl_cell c = {REDIS_REPLY_ARRAY, depth, 2, NULL};
    return s->take(s, &c, 2);
}

static rl_name name_of(rl_waits *w, const char *name)
{
    rl_key q = rl_key_queue(name, strlen(name));
    w->names.n = 0;
    EXPECT(rl_names_of_waits(&w->names, q.text, q.len));
    return w->names.at[0];
}

static void begin(rl_waits *w, const char *name)
{
    rl_waits_begin(w, name_of(w, name));
    EXPECT(pour_array(&w->reply, 0) && pour(&w->reply, "5000000", 1));
}

/* So many have the lock, each at its second level. */
static void say_holders(rl_waits *w, const char *const *holder, int n)
{
    char text[12];
    snprintf(text, sizeof text, "%d", n);
    EXPECT(pour(&w->reply, text, 1));
    for (int i = 0; i < n; i++)
        EXPECT(pour(&w->reply, holder[i], 1) && pour(&w->reply, "2", 1) &&
               pour(&w->reply, "700", 1));
}

static void say_waiter(rl_waits *w, const char *waiter, const char *want)
{
    EXPECT(pour(&w->reply, BELL(7), 1) && pour(&w->reply, "2000000", 1));
    EXPECT(pour(&w->reply, waiter, 1) && pour(&w->reply, "3", 1));
    EXPECT(pour(&w->reply, want, 1));
}

/* The lock's holder, and one who waits for it. */
static void say(rl_waits *w, const char *name, const char *holder,
                const char *waiter)
{
    begin(w, name);
    say_holders(w, &holder, *holder != '\0');
    say_waiter(w, waiter, "");
}

/* Two who read, and one who waits for them. */
static void say_read(rl_waits *w, const char *name, const char *one,
                     const char *other, const char *waiter)
{
    const char *both[] = {one, other};
    begin(w, name);
    say_holders(w, both, 2);
    say_waiter(w, waiter, "w");
}

/* What is told of one who waits; good until the next. */
static rlock_wait told_of(const rl_waits *w, size_t i)
{
    static rlock_holder waiter, holders[RL_WAITS_TOLD];
    rlock_wait told;
    memset(&waiter, 'x', sizeof waiter); /* as the last one has left them */
    memset(holders, 'x', sizeof holders);
    rl_waits_tell(w, i, &told, &waiter, holders);
    return told;
}

static unsigned circle(const rl_waits *w, size_t i)
{
    return told_of(w, i).circle;
}

/* --- who waits ------------------------------------------------------------ */

TEST(waits, all_that_was_said_is_told)
{
    rl_waits w;
    rl_waits_init(&w);
    say(&w, "a", BY(10), BY(11));
    EXPECT(rl_waits_find_circles(&w));
    EXPECT_INT(w.n, 1);
    rlock_wait told = told_of(&w, 0);
    EXPECT_STR(told.name, "a");
    EXPECT_INT(told.name_len, 1);
    EXPECT_STR(told.client, UUID(7));
    EXPECT_INT(told.since_us, 2000000);
    EXPECT_INT(told.waited_ms, 3000);
    EXPECT_INT(told.circle, 0);
    EXPECT_INT(told.rank, 3);
    EXPECT_STR(told.holder->host, "host");
    EXPECT(told.holder->pid == 1 && told.holder->tid == 10);
    EXPECT(told.holder->count == 2 && told.holder->ttl_ms == 700);
    EXPECT(told.waiter->pid == 1 && told.waiter->tid == 11);
    EXPECT_STR(told.waiter->hold_id, UUID(1));
    EXPECT(told.kind == RLOCK_KIND_LOCK && told.n_holders == 1);
    EXPECT(told.holders == told.holder);
    rl_waits_fini(&w);
}

TEST(waits, each_is_told_what_it_waits_for)
{
    static const struct {
        const char *want;
        rlock_kind kind;
    } say_of[] = {{"", RLOCK_KIND_LOCK},    {"f", RLOCK_KIND_LOCK},
                  {"r", RLOCK_KIND_READ},   {"w", RLOCK_KIND_WRITE},
                  {"1", RLOCK_KIND_PERMIT}, {"1000", RLOCK_KIND_PERMIT},
                  {"0", RLOCK_KIND_PERMIT}, {"9", RLOCK_KIND_PERMIT},
                  {"l", RLOCK_KIND_LATCH},  {"?", RLOCK_KIND_LOCK}};
    enum { N = sizeof say_of / sizeof *say_of };
    rl_waits w;
    rl_waits_init(&w);
    begin(&w, "a");
    say_holders(&w, NULL, 0);
    for (size_t i = 0; i < N; i++)
        say_waiter(&w, BY(11), say_of[i].want);
    for (size_t i = 0; i < N; i++)
        EXPECT_INT(told_of(&w, i).kind, say_of[i].kind);
    rl_waits_fini(&w);
}

TEST(waits, who_waits_for_what_is_free_is_told_as_any_other)
{
    rl_waits w;
    rl_waits_init(&w);
    begin(&w, "a");
    say_holders(&w, NULL, 0);
    say_waiter(&w, BY(11), "");
    rlock_wait told = told_of(&w, 0);
    EXPECT(!told.holder && told.n_holders == 0 && told.since_us == 2000000);
    EXPECT_STR(told.client, UUID(7));
    EXPECT_INT(told.waiter->tid, 11);
    rl_waits_fini(&w);
}

TEST(waits, what_is_said_as_a_number_is_read_as_one)
{
    const int64_t said[] = {5000000,
                            1,
                            /* a holder, */ 0,
                            2,
                            700,
                            /* and who waits */ 0,
                            2000000,
                            0,
                            3,
                            0};
    rl_waits w;
    rl_waits_init(&w);
    rl_waits_begin(&w, name_of(&w, "a"));
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        EXPECT(pour_number(&w.reply, said[i]));
    EXPECT_INT(w.n, 1);
    rlock_wait told = told_of(&w, 0);
    EXPECT(told.since_us == 2000000 && told.waited_ms == 3000);
    EXPECT(told.rank == 3 && told.kind == RLOCK_KIND_LOCK);
    EXPECT(told.n_holders == 1 && told.holder->count == 2);
    EXPECT_INT(told.holder->ttl_ms, 700);
    EXPECT_STR(told.holder->raw, ""); /* these are no texts */
    EXPECT_STR(told.client, "");
    EXPECT(!told.waiter);
    rl_waits_fini(&w);
}

/* Of more digits than any number has the first are read. */
TEST(waits, a_number_that_is_too_long_is_cut)
{
    rl_waits w;
    rl_waits_init(&w);
    rl_waits_begin(&w, name_of(&w, "a"));
    EXPECT(pour(&w.reply, "000000000000000000000012", 1));
    EXPECT_INT(w.next.clock_us, 1);
    rl_waits_begin(&w, name_of(&w, "a"));
    EXPECT(pour(&w.reply, "00000000000000000000001", 1));
    EXPECT_INT(w.next.clock_us, 1);
    rl_waits_fini(&w);
}

static void expect_client(const char *bell, const char *client)
{
    rl_waits w;
    rl_waits_init(&w);
    begin(&w, "a");
    say_holders(&w, NULL, 0);
    EXPECT(pour(&w.reply, bell, 1) && pour(&w.reply, "2000000", 1) &&
           pour(&w.reply, BY(11), 1) && pour(&w.reply, "3", 1) &&
           pour(&w.reply, "", 1));
    EXPECT_STR(told_of(&w, 0).client, client);
    rl_waits_fini(&w);
}

TEST_CASE(waits, a_client_is_known_by_the_end_of_its_bell,
          expect_client("any:prefix:" UUID(3), UUID(3)))
TEST_CASE(waits, a_client_whose_bell_is_a_uuid_is_known_by_it,
          expect_client(UUID(3), UUID(3)))
TEST_CASE(waits, of_another_programs_client_the_whole_bell_is_told,
          expect_client("the bell of another program: x" UUID(3),
                        "the bell of another program: x" UUID(3)))
TEST_CASE(waits, of_another_programs_client_a_short_bell_is_told,
          expect_client("bell", "bell"))

/* Of thousands so many as can be read. */
TEST(waits, all_who_have_it_are_told_up_to_a_number)
{
    enum { N = RL_WAITS_TOLD + 3 };
    static const char *holder[N];
    rl_waits w;
    rl_waits_init(&w);
    for (int i = 0; i < N; i++)
        holder[i] = i % 2 ? BY(20) : BY(21);
    begin(&w, "a");
    say_holders(&w, holder, 3);
    say_waiter(&w, BY(11), "w");
    begin(&w, "b");
    say_holders(&w, holder, N);
    say_waiter(&w, BY(12), "w");
    rlock_wait told = told_of(&w, 0);
    EXPECT_INT(told.n_holders, 3);
    EXPECT(told.holder == told.holders && told.holders[0].tid == 21);
    EXPECT(told.holders[1].tid == 20 && told.holders[2].tid == 21);
    EXPECT(told.holders[2].count == 2 && told.holders[2].ttl_ms == 700);
    EXPECT_INT(told_of(&w, 1).n_holders, RL_WAITS_TOLD);
    rl_waits_fini(&w);
}

/* The key that it needs depends on what is waited for. */
TEST(waits, a_lock_is_asked_about_again_once_with_the_key_for_its_kind)
{
    rl_waits w;
    rl_waits_init(&w);
    rl_waits_begin(&w, name_of(&w, "a"));
    EXPECT(pour(&w.reply, "w", 0));
    EXPECT_INT(w.names.n, 2);
    EXPECT_INT(w.names.at[1].kind, RLOCK_KIND_WRITE);
    EXPECT_STR(rl_names_text(&w.names, w.names.at[1].text), "a");
    rl_waits_begin(&w, w.names.at[1]);
    EXPECT(!pour(&w.reply, "w", 0));
    rl_waits_begin(&w, w.names.at[0]);
    EXPECT(pour(&w.reply, "3", 0));
    EXPECT_INT(w.names.at[2].kind, RLOCK_KIND_PERMIT);
    EXPECT(!pour(&w.reply, "f", 0) && !pour(&w.reply, "l", 0));
    EXPECT_INT(w.names.n, 3);
    rl_waits_fini(&w);
}

/* Its ticket is of a clock that was put back since. */
TEST(waits, nobody_has_waited_for_less_than_nothing)
{
    rl_waits w;
    rl_waits_init(&w);
    say(&w, "a", BY(10), BY(11));
    w.wait[0].clock_us = w.wait[0].since_us - 1000000;
    rlock_wait told = told_of(&w, 0);
    EXPECT_INT(told.waited_ms, 0);
    rl_waits_fini(&w);
}

static void expect_raw(size_t said, size_t told)
{
    static const rlock_holder none;
    char id[sizeof none.raw + 2];
    const char *holder = id;
    rl_waits w;
    rl_waits_init(&w);
    memset(id, 'y', said);
    id[said] = '\0';
    begin(&w, "a");
    say_holders(&w, &holder, 1);
    say_waiter(&w, BY(11), "");
    const rlock_holder *h = told_of(&w, 0).holder;
    EXPECT_INT(strspn(h->raw, "y"), told);
    EXPECT(memcmp(h->raw + told, none.raw, sizeof none.raw - told) == 0);
    EXPECT_STR(h->host, "");
    rl_waits_fini(&w);
}

/* Nor is anything behind it. */
TEST_CASE(waits, of_a_holder_nothing_else_is_told, expect_raw(9, 9))
TEST_CASE(waits, the_longest_holder_is_told_whole,
          expect_raw(sizeof((rlock_holder *)0)->raw - 1,
                     sizeof((rlock_holder *)0)->raw - 1))
TEST_CASE(waits, a_longer_holder_is_cut,
          expect_raw(sizeof((rlock_holder *)0)->raw,
                     sizeof((rlock_holder *)0)->raw - 1))

TEST(waits, what_is_not_known_is_null)
{
    rl_waits w;
    rl_waits_init(&w);
    say(&w, "a", "", "");
    say(&w, "b", "another program's", "");
    EXPECT(rl_waits_find_circles(&w));
    rlock_wait told = told_of(&w, 0);
    EXPECT(!told.holder && !told.waiter);
    told = told_of(&w, 1);
    EXPECT_STR(told.holder->raw, "another program's");
    EXPECT_STR(told.holder->host, "");
    rl_waits_fini(&w);
}

TEST(waits, circles_have_numbers_of_their_own)
{
    rl_waits w;
    rl_waits_init(&w);
    say(&w, "a", BY(10), BY(11));
    say(&w, "b", BY(11), BY(10));
    say(&w, "c", BY(20), BY(21));
    say(&w, "d", BY(21), BY(22));
    say(&w, "e", BY(22), BY(20));
    say(&w, "f", BY(22), BY(30)); /* leads into one, and is in none */
    say(&w, "g", BY(30), BY(31));
    say(&w, "h", BY(40), BY(40)); /* an own one, in two clients */
    EXPECT(rl_waits_find_circles(&w));
    EXPECT(circle(&w, 0) == 1 && circle(&w, 1) == 1);
    for (size_t i = 2; i < 5; i++)
        EXPECT_INT(circle(&w, i), 2);
    EXPECT(circle(&w, 5) == 0 && circle(&w, 6) == 0);
    EXPECT_INT(circle(&w, 7), 3);
    rl_waits_fini(&w);
}

/* Whichever of those who read is in one with who wants to write. */
TEST(waits, who_waits_for_several_is_in_a_circle_with_any_of_them)
{
    rl_waits w;
    rl_waits_init(&w);
    say_read(&w, "a", BY(20), BY(10), BY(11));
    say(&w, "b", BY(11), BY(10));
    say_read(&w, "c", BY(12), BY(13), BY(14)); /* in none */
    say(&w, "d", BY(14), BY(15));
    EXPECT(rl_waits_find_circles(&w));
    EXPECT(circle(&w, 0) == 1 && circle(&w, 1) == 1);
    EXPECT(circle(&w, 2) == 0 && circle(&w, 3) == 0);
    rl_waits_fini(&w);
}

TEST(waits, circles_with_somebody_in_common_have_one_number)
{
    rl_waits w;
    rl_waits_init(&w);
    say(&w, "x", BY(10), BY(9)); /* leads into them */
    say_read(&w, "a", BY(10), BY(11), BY(12));
    say(&w, "b", BY(12), BY(10));
    say(&w, "c", BY(12), BY(11));
    say(&w, "d", BY(9), BY(8));
    EXPECT(rl_waits_find_circles(&w));
    EXPECT(circle(&w, 0) == 0 && circle(&w, 4) == 0);
    for (size_t i = 1; i < 4; i++)
        EXPECT_INT(circle(&w, i), 1);
    rl_waits_fini(&w);
}

TEST(waits, a_circle_that_leads_into_another_is_one_by_itself)
{
    rl_waits w;
    rl_waits_init(&w);
    say(&w, "a", BY(10), BY(11));
    say(&w, "b", BY(11), BY(10));
    say_read(&w, "c", BY(10), BY(21), BY(20));
    say(&w, "d", BY(20), BY(21));
    EXPECT(rl_waits_find_circles(&w));
    EXPECT(circle(&w, 0) == 1 && circle(&w, 1) == 1);
    EXPECT(circle(&w, 2) == 2 && circle(&w, 3) == 2);
    rl_waits_fini(&w);
}

/* There is room for more of them. */
TEST(waits, nobody_is_looked_at_behind_the_last)
{
    rl_waits w;
    rl_waits_init(&w);
    say(&w, "a", BY(10), BY(10));
    EXPECT(w.n == 1 && w.room > 1);
    memset(&w.wait[1], 0, sizeof w.wait[1]);
    EXPECT(rl_waits_find_circles(&w));
    EXPECT(circle(&w, 0) == 1 && w.wait[1].met == 0);
    rl_waits_fini(&w);
}

/* Another one may give his back. */
TEST(waits, who_waits_for_permits_is_in_no_circle)
{
    const char *holder = BY(10);
    rl_waits w;
    rl_waits_init(&w);
    begin(&w, "a");
    say_holders(&w, &holder, 1);
    say_waiter(&w, BY(11), "2");
    say(&w, "b", BY(11), BY(10));
    EXPECT(rl_waits_find_circles(&w));
    EXPECT(circle(&w, 0) == 0 && circle(&w, 1) == 0);
    EXPECT_INT(told_of(&w, 0).n_holders, 1);
    rl_waits_fini(&w);
}

/* Each stands once on the way, however long that is. */
TEST(waits, a_circle_of_thousands_is_found)
{
    enum { N = 20000 };
    char holder[80], waiter[80];
    rl_waits w;
    rl_waits_init(&w);
    for (int i = 0; i < N; i++) {
        snprintf(holder, sizeof holder, "host:1:%d:" UUID(1), i);
        snprintf(waiter, sizeof waiter, "host:1:%d:" UUID(2), (i + 1) % N);
        say(&w, "a", holder, waiter);
    }
    EXPECT(rl_waits_find_circles(&w));
    for (size_t i = 0; i < N; i++)
        EXPECT_INT(circle(&w, i), 1);
    rl_waits_fini(&w);
}

TEST(waits, threads_with_a_number_in_two_processes_are_two)
{
    rl_waits w;
    rl_waits_init(&w);
    say(&w, "a", "host:1:10:" UUID(1), "host:2:10:" UUID(2));
    say(&w, "b", "other:2:10:" UUID(1), "host:1:10:" UUID(2));
    EXPECT(rl_waits_find_circles(&w));
    EXPECT(circle(&w, 0) == 0 && circle(&w, 1) == 0);
    rl_waits_fini(&w);
}

/* One that holds what it waits for itself: is it known to be one thread? */
static void expect_alone(const char *holder, const char *waiter, bool known)
{
    rl_waits w;
    rl_waits_init(&w);
    say(&w, "a", holder, waiter);
    EXPECT(rl_waits_find_circles(&w));
    EXPECT_INT(circle(&w, 0), known);
    rl_waits_fini(&w);
}

TEST_CASE(waits, a_thread_is_known_by_what_is_before_the_uuid,
          expect_alone("h:" UUID(1), "h:" UUID(2), true))
TEST_CASE(waits, who_names_no_thread_is_in_no_circle,
          expect_alone("another's", "another's", false))
TEST_CASE(waits, a_uuid_alone_names_no_thread,
          expect_alone(UUID(1), UUID(1), false))
TEST_CASE(waits, a_long_name_of_another_program_is_no_thread,
          expect_alone("another program's own x" UUID(1),
                       "another program's own x" UUID(1), false))

/* --- what goes wrong ------------------------------------------------------ */

TEST(waits, without_memory_no_circle_is_looked_for)
{
    rl_waits w;
    rl_waits_init(&w);
    say(&w, "a", BY(10), BY(10));
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    bool found = rl_waits_find_circles(&w);
    shim_clear(shim_here());
    EXPECT(!found && circle(&w, 0) == 0);
    rl_waits_fini(&w);
}

TEST(waits, replies_of_another_shape_are_refused)
{
    rl_waits w;
    rl_waits_init(&w);
    rl_waits_begin(&w, name_of(&w, "a"));
    EXPECT(!pour(&w.reply, "text", 0));
    EXPECT(pour_array(&w.reply, 0) && !pour_array(&w.reply, 1));
    EXPECT(pour(&w.reply, "5000000", 1));
    EXPECT(!pour(&w.reply, "-1", 1)); /* so many have it */
    rl_waits_begin(&w, name_of(&w, "a"));
    EXPECT(pour(&w.reply, "5000000", 1) && !pour(&w.reply, "1000001", 1));
    rl_waits_begin(&w, name_of(&w, "a"));
    EXPECT(pour(&w.reply, "5000000", 1) && pour(&w.reply, "1000000", 1));
    rl_waits_fini(&w);
}

/* Of which a word, or the last of one who waits or has it, cannot be kept. */
TEST(waits, without_memory_nothing_is_taken)
{
    static const struct {
        const char *holders;
        int words; /* behind that */
    } at[] = {{"1", 0}, {"0", 4}};
    for (size_t k = 0; k < 2; k++) {
        rl_waits w;
        rl_waits_init(&w);
        begin(&w, "a");
        EXPECT(pour(&w.reply, at[k].holders, 1));
        for (int i = 0; i < at[k].words; i++)
            EXPECT(pour(&w.reply, "1", 1));
        shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
        bool taken = pour(&w.reply, "1", 1);
        shim_clear(shim_here());
        EXPECT(!taken && w.names.lacking);
        rl_waits_fini(&w);
    }
}
