/* Bytes on their way to a server: commands, growth, and memory that lacks. */
#include "wire/bytes.h"

#include <errno.h>

#include "shim.h"
#include "test.h"

static void expect_left(const rl_bytes *b, const char *wanted)
{
    EXPECT_INT(rl_bytes_left(b), strlen(wanted));
    EXPECT(memcmp(b->at + b->begin, wanted, strlen(wanted)) == 0);
}

TEST(bytes, a_command_is_an_array_of_words)
{
    rl_bytes b = {0};
    rl_put_array(&b, 3);
    rl_put_text(&b, "SET");
    rl_put_bytes(&b, "a\0b", 3);
    rl_put_number(&b, -30);
    static const char wanted[] =
        "*3\r\n$3\r\nSET\r\n$3\r\na\0b\r\n$3\r\n-30\r\n";
    EXPECT_INT(rl_bytes_left(&b), sizeof wanted - 1);
    EXPECT(memcmp(b.at, wanted, sizeof wanted - 1) == 0);
    rl_bytes_fini(&b);
}

TEST(bytes, an_empty_word_is_one)
{
    rl_bytes b = {0};
    rl_put_text(&b, "");
    expect_left(&b, "$0\r\n\r\n");
    rl_bytes_fini(&b);
}

TEST(bytes, a_word_can_be_written_in_place)
{
    rl_bytes b = {0};
    char *word = rl_put_word(&b, 3);
    EXPECT(word);
    memcpy(word, "job", 3);
    expect_left(&b, "$3\r\njob\r\n");
    rl_bytes_fini(&b);
}

static void expect_number(int64_t number, const char *wanted)
{
    rl_bytes b = {0};
    rl_put_number(&b, number);
    expect_left(&b, wanted);
    rl_bytes_fini(&b);
}

#define NUMBER(name, number, wanted)                                           \
    TEST_CASE(bytes, name, expect_number(number, wanted))

NUMBER(the_number_0, 0, "$1\r\n0\r\n")
NUMBER(a_number_of_one_digit, 7, "$1\r\n7\r\n")
NUMBER(a_number_that_ends_in_zeros, 30000, "$5\r\n30000\r\n")
NUMBER(a_token, 1700000000000001, "$16\r\n1700000000000001\r\n")
NUMBER(a_negative_number, -1, "$2\r\n-1\r\n")
NUMBER(the_largest_number, INT64_MAX, "$19\r\n9223372036854775807\r\n")
NUMBER(the_least_number, INT64_MIN, "$20\r\n-9223372036854775808\r\n")

TEST(bytes, they_grow_and_keep_what_was_written)
{
    rl_bytes b = {0};
    for (int i = 0; i < 1000; i++)
        rl_put_text(&b, "word");
    EXPECT(!b.lacking);
    EXPECT_INT(rl_bytes_left(&b), 1000 * 10);
    for (int i = 0; i < 1000; i++)
        EXPECT(memcmp(b.at + 10 * i, "$4\r\nword\r\n", 10) == 0);
    rl_bytes_fini(&b);
}

TEST(bytes, what_has_been_sent_is_no_longer_there)
{
    rl_bytes b = {0};
    rl_put_text(&b, "one");
    rl_put_text(&b, "two");
    rl_bytes_sent(&b, 9);
    expect_left(&b, "$3\r\ntwo\r\n");
    rl_bytes_fini(&b);
}

/* A line lives for days: what it sends must not add up. */
TEST(bytes, what_has_been_sent_makes_room)
{
    rl_bytes b = {0};
    rl_put_text(&b, "first");
    size_t room = 0;
    for (int i = 0; i < 10000; i++) {
        rl_put_text(&b, "later");
        rl_bytes_sent(&b, 11);
        expect_left(&b, "$5\r\nlater\r\n");
        if (i == 100)
            room = b.room;
    }
    EXPECT(b.room == room && room < 1000);
    rl_bytes_fini(&b);
}

TEST(bytes, begin_anew_when_all_has_been_sent)
{
    rl_bytes b = {0};
    rl_put_text(&b, "one");
    rl_bytes_sent(&b, rl_bytes_left(&b));
    EXPECT(b.begin == 0 && b.end == 0);
    rl_bytes_fini(&b);
}

TEST(bytes, a_command_that_lacks_memory_can_be_taken_back)
{
    rl_bytes b = {0};
    rl_put_text(&b, "kept");
    size_t end = b.end;
    static char large[100000];
    rl_put_text(&b, "small");
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    rl_put_bytes(&b, large, sizeof large);
    shim_clear(shim_here());
    EXPECT(b.lacking);
    rl_put_text(&b, "more"); /* there would be room for it */
    EXPECT(b.lacking);
    rl_bytes_cut(&b, end);
    expect_left(&b, "$4\r\nkept\r\n");
    EXPECT(!b.lacking);
    rl_bytes_fini(&b);
}

TEST(bytes, nothing_more_is_written_once_memory_was_lacking)
{
    rl_bytes b = {0};
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    rl_put_array(&b, 2);
    shim_clear(shim_here());
    EXPECT(!rl_put_word(&b, 3));
    rl_put_text(&b, "word");
    rl_put_number(&b, 1);
    rl_put_raw(&b, "word", 4);
    EXPECT_INT(rl_bytes_left(&b), 0);
    rl_bytes_fini(&b);
}

/* Nobody asks the system for memory with each command. */
TEST(bytes, what_fits_takes_no_memory)
{
    static const char text[400] = "";
    rl_bytes b = {0};
    rl_put_raw(&b, text, 100);
    EXPECT(b.room >= 200 && b.room <= sizeof text);
    shim_fail(shim_here(), SHIM_ALLOC, 0, 0, 0);
    rl_put_raw(&b, text, 10);
    rl_put_raw(&b, text, b.room - b.end);
    EXPECT_INT(b.end, b.room);
    rl_bytes_sent(&b, b.room - 50);
    rl_put_raw(&b, text, b.room - 100); /* as much as is there in front */
    EXPECT_INT(rl_bytes_left(&b), b.room - 50);
    EXPECT_INT(shim_seen(shim_here(), SHIM_ALLOC), 0);
    rl_bytes_fini(&b);
}

TEST(bytes, a_large_buffer_that_is_empty_is_given_back)
{
    static char large[64 * 1024];
    rl_bytes b = {0};
    rl_put_raw(&b, large, sizeof large);
    rl_bytes_trim(&b);
    EXPECT_INT(rl_bytes_left(&b), sizeof large);
    rl_bytes_sent(&b, sizeof large);
    rl_bytes_trim(&b);
    EXPECT(!b.at && b.room == 0);
}

TEST(bytes, a_small_buffer_stays)
{
    rl_bytes b = {0};
    rl_put_raw(&b, "PING", 4);
    rl_bytes_sent(&b, 4);
    rl_bytes_trim(&b);
    EXPECT(b.at);
    rl_bytes_fini(&b);
}
