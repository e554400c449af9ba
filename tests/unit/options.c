/* Option structs of programs that were built for other versions. */
#include "base/options.h"
#include "test.h"

/* Three versions of one struct; the library knows the second. */
typedef struct first {
    size_t size;
    int a;
} first;

typedef struct second {
    size_t size;
    int a, b;
    const char *text;
} second;

typedef struct third {
    second s;
    int c;
} third;

static second to;

static bool read_options(const void *from)
{
    memset(&to, 0xff, sizeof to); /* none of it may stay */
    return rl_options_read(&to, sizeof to, from);
}

TEST(options, none_are_all_zero)
{
    const second zero = {0};
    EXPECT(read_options(NULL));
    EXPECT(memcmp(&to, &zero, sizeof to) == 0);
}

TEST(options, of_this_version_are_copied)
{
    second s = {sizeof s, 1, 2, "x"};
    EXPECT(read_options(&s));
    EXPECT_INT(to.a, 1);
    EXPECT_INT(to.b, 2);
    EXPECT(to.text == s.text);
}

TEST(options, of_an_older_version_leave_the_rest_zero)
{
    first f = {sizeof f, 1};
    EXPECT(read_options(&f));
    EXPECT_INT(to.a, 1);
    EXPECT(!to.text);
}

TEST(options, of_a_newer_version_are_refused)
{
    third t = {{sizeof t, 1, 2, "x"}, 3};
    EXPECT(!read_options(&t));
}

/* Who forgets RLOCK_OPTIONS_INIT mostly gives zero, or anything. */
#define REFUSED(name, wrong_size)                                              \
    TEST(options, name)                                                        \
    {                                                                          \
        second s = {wrong_size, 1, 2, "x"};                                    \
        EXPECT(!read_options(&s));                                             \
    }

REFUSED(without_a_size_are_refused, 0)
REFUSED(too_short_for_their_own_size_are_refused, sizeof(size_t) - 1)
REFUSED(of_one_byte_too_many_are_refused, sizeof(second) + 1)
REFUSED(of_an_absurd_size_are_refused, (size_t)-1)

TEST(options, of_nothing_but_their_size_are_zero)
{
    second s = {sizeof s.size, 1, 2, "x"};
    EXPECT(read_options(&s));
    EXPECT_INT(to.a, 0);
    EXPECT_INT(to.b, 0);
}

TEST(options, are_read_from_any_address)
{
    char bytes[sizeof(second) + 1];
    second s = {sizeof s, 1, 2, NULL};
    memcpy(bytes + 1, &s, sizeof s);
    EXPECT(read_options(bytes + 1));
    EXPECT_INT(to.b, 2);
}

/* What the macros of the headers give is taken, and stands for defaults. */
#define INITIAL(name, type, init)                                              \
    TEST(options, name)                                                        \
    {                                                                          \
        type given = init, got;                                                \
        EXPECT_INT(given.size, sizeof given);                                  \
        EXPECT(rl_options_read(&got, sizeof got, &given));                     \
        EXPECT(memcmp(&got, &given, sizeof got) == 0);                         \
    }

INITIAL(of_a_client_begin_as_defaults, rlock_options, RLOCK_OPTIONS_INIT)
INITIAL(of_a_lock_begin_as_defaults, rlock_lock_options,
        RLOCK_LOCK_OPTIONS_INIT)
INITIAL(of_a_red_lock_begin_as_defaults, rlock_red_options,
        RLOCK_RED_OPTIONS_INIT)

/* --- structs that the library fills --------------------------------------- */

static const second known = {sizeof known, 1, 2, "x"};
#define LEAST RL_SIZE_UP_TO(second, a)

static bool fill(void *struct_, size_t given)
{
    return rl_struct_fill(struct_, given, &known, sizeof known, LEAST);
}

TEST(options, a_struct_of_this_version_is_filled)
{
    second s;
    EXPECT(fill(&s, sizeof s));
    EXPECT(memcmp(&s, &known, sizeof s) == 0);
}

TEST(options, of_an_older_struct_no_byte_behind_it_is_touched)
{
    struct {
        first f;
        char behind[64];
    } program;
    memset(&program, 0xee, sizeof program);
    EXPECT(fill(&program.f, RL_SIZE_UP_TO(first, a)));
    EXPECT_INT(program.f.a, 1);
    for (size_t i = 0; i < sizeof program.behind; i++)
        EXPECT_INT((unsigned char)program.behind[i], 0xee);
}

TEST(options, of_a_newer_struct_the_rest_is_zero)
{
    third t = {.c = 7};
    EXPECT(fill(&t, sizeof t));
    EXPECT_INT(t.s.b, 2);
    EXPECT_INT(t.c, 0);
}

TEST(options, a_struct_that_never_was_is_refused_and_left_alone)
{
    first f = {.a = 7};
    EXPECT(!fill(&f, 0));
    EXPECT(!fill(&f, LEAST - 1));
    EXPECT_INT(f.a, 7);
}
