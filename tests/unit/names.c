/* Names of locks, as pages of SCAN tell of them. */
#include "client/names.h"

#include <errno.h>

#include "shim.h"
#include "test.h"
#include "wire/keys.h"

typedef bool reader(rl_names *into, const char *key, size_t len);

static rl_names read_key(reader *take, const void *key, size_t len)
{
    rl_names n = {0};
    EXPECT(take(&n, key, len));
    return n;
}

static void expect_name(reader *take, rl_key key, const char *name, size_t len)
{
    rl_names n = read_key(take, key.text, key.len);
    EXPECT_INT(n.n, 1);
    EXPECT_INT(n.at[0].len, len);
    EXPECT(!n.at[0].guessed);
    EXPECT(memcmp(rl_names_text(&n, n.at[0].text), name, len + 1) == 0);
    rl_names_fini(&n);
}

/* That of its queue, and that of its token: told by which name? */
#define KNOWN(name, text, by_token)                                            \
    TEST(names, name)                                                          \
    {                                                                          \
        size_t len = sizeof(text) - 1;                                         \
        expect_name(rl_names_of_waits, rl_key_queue(text, len), text, len);    \
        expect_name(rl_names_of_waits, rl_key_line(text, len), text, len);     \
        expect_name(rl_names_of_side_key, rl_key_queue(text, len), text, len); \
        expect_name(rl_names_of_side_key, rl_key_token(text, len), by_token,   \
                    sizeof(by_token) - 1);                                     \
    }

KNOWN(a_plain_one_is_found_in_its_side_keys, "a", "a")
KNOWN(one_in_braces_is_and_shares_a_token, "{a}", "a")
KNOWN(one_in_braces_with_more_of_them_is, "{a}{}{}", "{a}{}{}")
KNOWN(one_of_braces_is, "{}", "{}")
KNOWN(one_with_braces_inside_is, "a{b}c", "a{b}c")
KNOWN(one_with_one_that_closes_is, "a}", "a}")
KNOWN(one_with_one_that_opens_is, "{a", "{a")
KNOWN(one_with_a_nul_is, "b\0c", "b\0c")
KNOWN(one_that_begins_with_braces_is, "{a}b", "{a}b")

#define NONE(take, name, key)                                                  \
    TEST(names, name)                                                          \
    {                                                                          \
        rl_names n = read_key(take, key, sizeof(key) - 1);                     \
        EXPECT_INT(n.n, 0);                                                    \
        rl_names_fini(&n);                                                     \
    }

#define OTHER(name, key) NONE(rl_names_of_side_key, name, key)

OTHER(a_prefix_alone_is_no_key, "rlock_queue:")
OTHER(a_queue_of_no_name_is_none, "rlock_queue:{}")
OTHER(a_line_of_no_name_is_none, "rlock_line:{}")
OTHER(what_is_wanted_in_line_tells_of_none, "rlock_wants:{a}")
OTHER(a_token_of_no_name_is_none, "rlock_token:")
OTHER(a_tombstone_tells_of_none, "rlock_undone:{a}:who")
OTHER(a_queue_of_a_side_key_is_none, "rlock_queue:{rlock_queue:a}")
OTHER(a_token_of_a_side_key_is_none, "rlock_token:{rlock_token:a}")
OTHER(another_key_is_none, "rlock_quite_another")

#define PERMITS(name, key, of)                                                 \
    TEST(names, name)                                                          \
    {                                                                          \
        rl_names n = read_key(rl_names_of_permits, key, sizeof(key) - 1);      \
        EXPECT(n.n == 1 && n.at[0].permits && n.at[0].guessed);                \
        EXPECT_STR(rl_names_text(&n, n.at[0].text), of);                       \
        rl_names_fini(&n);                                                     \
    }

PERMITS(a_semaphore_is_found_by_who_has_permits, "{pool}:timeout", "pool")
PERMITS(a_semaphore_with_a_brace_is, "a{b}c:timeout", "a{b}c")
PERMITS(a_semaphore_that_ends_so_itself_is, "{a:timeout}:timeout", "a:timeout")

#define NO_PERMITS(name, key) NONE(rl_names_of_permits, name, key)

NO_PERMITS(a_semaphore_is_in_braces, "pool:timeout")
NO_PERMITS(a_semaphore_has_a_name, ":timeout")
NO_PERMITS(permits_of_a_side_key_are_none, "{rlock_line:a}:timeout")
NO_PERMITS(a_key_that_ends_otherwise_tells_of_none, "{pool}:timeouts")

/* Only what no other key tells of was guessed. */
TEST(names, a_name_has_what_one_of_its_keys_says)
{
    rl_names n = {0};
    EXPECT(rl_names_of_permits(&n, "{a}:timeout", 11));
    EXPECT(rl_names_of_side_key(&n, "rlock_line:{a}", 14));
    EXPECT(rl_names_of_permits(&n, "{b}:timeout", 11));
    rl_names_sort(&n);
    EXPECT_INT(n.n, 2);
    EXPECT(n.at[0].permits && n.at[0].in_line && !n.at[0].guessed);
    EXPECT(n.at[1].permits && !n.at[1].in_line && n.at[1].guessed);
    rl_names_fini(&n);
}

TEST(names, a_lock_is_its_own_key)
{
    char longest[RLOCK_NAME_MAX + 1];
    rl_names n = read_key(rl_names_of_lock, "a{}b", 4);
    memset(longest, 'x', sizeof longest);
    EXPECT(n.at[0].len == 4 && !n.at[0].guessed);
    EXPECT_STR(rl_names_text(&n, n.at[0].text), "a{}b");
    EXPECT(rl_names_of_lock(&n, "", 0));
    EXPECT(rl_names_of_lock(&n, "rlock_token:{a}", 15));
    EXPECT(rl_names_of_lock(&n, longest, RLOCK_NAME_MAX + 1));
    EXPECT_INT(n.n, 1);
    EXPECT(rl_names_of_lock(&n, longest, RLOCK_NAME_MAX));
    EXPECT_INT(n.n, 2);
    rl_names_fini(&n);
}

TEST(names, what_is_told_twice_counts_once)
{
    rl_names n = {0};
    for (int i = 0; i < 200; i++)
        EXPECT(rl_names_add(&n, i % 2 ? "ab" : "b", i % 2 ? 2 : 1, false));
    EXPECT(rl_names_add(&n, "a", 1, false));
    rl_names_sort(&n);
    EXPECT_INT(n.n, 3);
    EXPECT_STR(rl_names_text(&n, n.at[0].text), "a");
    EXPECT_STR(rl_names_text(&n, n.at[1].text), "ab");
    EXPECT_STR(rl_names_text(&n, n.at[2].text), "b");
    rl_names_fini(&n);
}

static void add(rl_names *n, const char *name, size_t len)
{
    EXPECT(rl_names_add(n, name, len, false));
}

/* What is behind a name is no part of it. */
TEST(names, the_shorter_of_two_that_begin_alike_comes_first)
{
    rl_names n = {0};
    add(&n, "a", 1);
    add(&n, "z", 1);
    add(&n, "a\0b", 3);
    rl_names_sort(&n);
    EXPECT_INT(n.n, 3);
    EXPECT(n.at[0].len == 1 && n.at[1].len == 3 && n.at[2].len == 1);
    EXPECT_STR(rl_names_text(&n, n.at[2].text), "z");
    rl_names_fini(&n);
}

TEST(names, of_none_there_is_none)
{
    rl_names n = {0};
    rl_names_sort(&n);
    EXPECT(n.n == 0 && !n.lacking);
    rl_names_fini(&n);
}

/* As for names that are guessed of those that were asked about. */
TEST(names, behind_those_that_were_sorted_there_is_room_for_others)
{
    char name[8];
    rl_names n = {0};
    for (int half = 1; half <= 2; half++) {
        for (int i = 0; i < 65; i++) {
            snprintf(name, sizeof name, "%03d", i + 100 * half);
            add(&n, name, 3);
        }
        rl_names_sort(&n);
        EXPECT_INT(n.n, 65 * half);
        EXPECT(n.room >= n.n);
    }
    for (size_t i = 0; i < 130; i++) {
        snprintf(name, sizeof name, "%03zu", i < 65 ? 100 + i : 135 + i);
        EXPECT_STR(rl_names_text(&n, n.at[i].text), name);
    }
    rl_names_fini(&n);
}

/* Whichever of its keys SCAN tells first. */
TEST(names, a_name_has_a_line_if_one_of_its_keys_is_that)
{
    static const char *const keys[] = {"rlock_line:{a}", "rlock_queue:{a}",
                                       "rlock_queue:{b}", "rlock_queue:{c}",
                                       "rlock_line:{c}"};
    rl_names n = {0};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        EXPECT(rl_names_of_waits(&n, keys[i], strlen(keys[i])));
    rl_names_sort(&n);
    EXPECT_INT(n.n, 3);
    EXPECT(n.at[0].in_line && !n.at[1].in_line && n.at[2].in_line);
    rl_names_fini(&n);
}

static void expect_in_braces(const char *name, size_t len, size_t wanted)
{
    char out[RLOCK_NAME_MAX];
    EXPECT_INT(rl_name_in_braces(name, len, out), wanted);
    EXPECT(wanted == 0 || (out[0] == '{' && out[wanted - 1] == '}' &&
                           memcmp(out + 1, name, len) == 0));
}

TEST(names, a_name_in_braces_is_two_longer_if_that_is_one)
{
    char longest[RLOCK_NAME_MAX];
    memset(longest, 'x', sizeof longest);
    expect_in_braces("a", 1, 3);
    expect_in_braces("a}", 2, 4);
    expect_in_braces("{a", 2, 0);
    expect_in_braces(longest, RLOCK_NAME_MAX - 2, RLOCK_NAME_MAX);
    expect_in_braces(longest, RLOCK_NAME_MAX - 1, 0);
}

/* --- pages ---------------------------------------------------------------- */

static bool pour(rl_scan *s, const char *text, int depth)
{
    rl_cell c = {REDIS_REPLY_STRING, depth, 0, text};
    return s->sink.take(&s->sink, &c, strlen(text));
}

static bool pour_array(rl_scan *s, int depth)
{
    rl_cell c = {REDIS_REPLY_ARRAY, depth, 2, NULL};
    return s->sink.take(&s->sink, &c, 2);
}

static bool pour_page(rl_scan *s, const char *cursor, const char *key)
{
    return pour_array(s, 0) && pour(s, cursor, 1) && pour_array(s, 1) &&
           pour(s, key, 2);
}

TEST(names, a_scan_is_over_when_its_cursor_is_nought_again)
{
    rl_names n = {0};
    rl_scan s;
    rl_scan_begin(&s, &n, rl_names_of_lock);
    EXPECT_STR(s.cursor, "0");
    EXPECT(pour_page(&s, "18446744073709551615", "a"));
    EXPECT(!rl_scan_is_over(&s));
    EXPECT_STR(s.cursor, "18446744073709551615");
    EXPECT(pour_page(&s, "0", "b"));
    EXPECT(rl_scan_is_over(&s));
    EXPECT_INT(n.n, 2);
    rl_names_fini(&n);
}

TEST(names, a_page_of_another_shape_is_refused)
{
    rl_names n = {0};
    rl_scan s;
    rl_scan_begin(&s, &n, rl_names_of_lock);
    rl_cell number = {REDIS_REPLY_INTEGER, 0, 7, NULL};
    EXPECT(!s.sink.take(&s.sink, &number, 0));
    EXPECT(!pour(&s, "", 1));
    EXPECT(!pour(&s, "123456789012345678901234", 1));
    rl_names_fini(&n);
}

TEST(names, without_memory_none_is_taken)
{
    rl_names n = {0};
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    bool taken = rl_names_of_waits(&n, "rlock_queue:{a}", 15);
    shim_clear(shim_here());
    EXPECT(!taken && n.lacking);
    rl_names_fini(&n);
}

static void expect_unsorted(int which)
{
    rl_names n = {0};
    add(&n, "b", 1);
    add(&n, "a", 1);
    shim_fail(shim_here(), SHIM_ALLOC, which, which, ENOMEM);
    rl_names_sort(&n);
    shim_clear(shim_here());
    EXPECT(n.lacking && n.n == 2);
    EXPECT_STR(rl_names_text(&n, n.at[0].text), "b");
    rl_names_fini(&n);
}

TEST_CASE(names, without_memory_to_sort_by_they_stay_as_they_are,
          expect_unsorted(1))
TEST_CASE(names, without_memory_for_the_sorted_they_stay_as_they_are,
          expect_unsorted(2))

TEST(names, without_memory_for_more_there_is_as_much_room_as_before)
{
    rl_names n = {0};
    size_t many = 0;
    while (many == 0 || n.n < n.room) {
        add(&n, "a", 1);
        many++;
    }
    size_t room = n.room;
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    bool added = rl_names_put(&n, n.at[0]);
    shim_clear(shim_here());
    EXPECT(!added && n.room == room && n.n == many && n.lacking);
    rl_names_fini(&n);
}
