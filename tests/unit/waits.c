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

static bool pour(rl_sink *s, const char *text, int depth)
{
    rl_cell c = text_of(text, depth);
    return s->take(s, &c, strlen(text));
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

/* The lock's holder, and one who waits for it. */
static void say(rl_waits *w, const char *name, const char *holder,
                const char *waiter)
{
    rl_waits_begin(w, name_of(w, name));
    EXPECT(pour_array(&w->reply, 0));
    EXPECT(pour(&w->reply, "5000000", 1) && pour(&w->reply, holder, 1));
    EXPECT(pour(&w->reply, "2", 1) && pour(&w->reply, "700", 1));
    EXPECT(pour(&w->reply, BELL(7), 1) && pour(&w->reply, "2000000", 1));
    EXPECT(pour(&w->reply, waiter, 1) && pour(&w->reply, "3", 1));
}

static unsigned circle(const rl_waits *w, size_t i)
{
    rlock_wait told;
    rlock_holder holder, waiter;
    rl_waits_tell(w, i, &told, &holder, &waiter);
    return told.circle;
}

/* --- who waits ------------------------------------------------------------ */

TEST(waits, all_that_was_said_is_told)
{
    rl_waits w;
    rlock_wait told;
    rlock_holder holder, waiter;
    rl_waits_init(&w);
    say(&w, "a", BY(10), BY(11));
    EXPECT(rl_waits_find_circles(&w));
    EXPECT_INT(w.n, 1);
    rl_waits_tell(&w, 0, &told, &holder, &waiter);
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
    rl_waits_fini(&w);
}

/* Its ticket is of a clock that was put back since. */
TEST(waits, nobody_has_waited_for_less_than_nothing)
{
    rl_waits w;
    rlock_wait told;
    rlock_holder holder, waiter;
    rl_waits_init(&w);
    say(&w, "a", BY(10), BY(11));
    w.wait[0].clock_us = w.wait[0].since_us - 1000000;
    rl_waits_tell(&w, 0, &told, &holder, &waiter);
    EXPECT_INT(told.waited_ms, 0);
    rl_waits_fini(&w);
}

TEST(waits, what_is_not_known_is_null)
{
    rl_waits w;
    rlock_wait told;
    rlock_holder holder, waiter;
    rl_waits_init(&w);
    say(&w, "a", "", "");
    say(&w, "b", "another program's", "");
    EXPECT(rl_waits_find_circles(&w));
    rl_waits_tell(&w, 0, &told, &holder, &waiter);
    EXPECT(!told.holder && !told.waiter);
    rl_waits_tell(&w, 1, &told, &holder, &waiter);
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

/* --- what goes wrong ------------------------------------------------------ */

TEST(waits, replies_of_another_shape_are_refused)
{
    rl_waits w;
    rl_waits_init(&w);
    rl_waits_begin(&w, name_of(&w, "a"));
    EXPECT(!pour(&w.reply, "text", 0));
    EXPECT(pour_array(&w.reply, 0) && !pour_array(&w.reply, 1));
    rl_waits_fini(&w);
}

TEST(waits, without_memory_nothing_is_taken)
{
    rl_waits w;
    rl_waits_init(&w);
    rl_waits_begin(&w, name_of(&w, "a"));
    EXPECT(pour_array(&w.reply, 0));
    for (int i = 0; i < 7; i++)
        EXPECT(pour(&w.reply, "1", 1));
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    bool taken = pour(&w.reply, "0", 1);
    shim_clear(shim_here());
    EXPECT(!taken && w.names.lacking);
    rl_waits_fini(&w);
}
