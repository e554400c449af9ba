/* Patterns, and what fits them. */
#include "base/glob.h"

#include "test.h"

#define FITS(name, pattern, text)                                              \
    TEST(glob, name)                                                           \
    {                                                                          \
        EXPECT(rl_glob_fits(pattern, text, sizeof(text) - 1));                 \
    }
#define FITS_NOT(name, pattern, text)                                          \
    TEST(glob, name)                                                           \
    {                                                                          \
        EXPECT(!rl_glob_fits(pattern, text, sizeof(text) - 1));                \
    }

FITS(a_text_fits_itself, "job", "job")
FITS_NOT(a_longer_text_does_not, "job", "jobs")
FITS_NOT(a_shorter_text_does_not, "job", "jo")
FITS(nothing_fits_nothing, "", "")
FITS_NOT(something_does_not_fit_nothing, "", "a")
FITS(a_star_is_any_text, "*", "a\nb")
FITS(a_star_is_no_text, "a*", "a")
FITS(a_star_is_a_nul, "a*b", "a\0b")
FITS(a_star_goes_on_where_it_must, "*ab*ab", "abcabab")
FITS_NOT(a_star_does_not_end_a_text, "*b", "ba")
FITS(stars_are_one, "***a", "a")
FITS(a_mark_is_one_byte, "j?b",
     "j\xff"
     "b")
FITS_NOT(a_mark_is_no_text, "job?", "job")
FITS(a_set_has_bytes, "[ab]", "b")
FITS_NOT(a_set_has_no_other, "[ab]", "c")
FITS(a_range_has_its_ends, "[a-c][a-c]", "ac")
FITS_NOT(a_range_has_no_more, "[a-c]", "d")
FITS(a_range_may_be_turned, "[c-a]", "b")
FITS(a_range_may_be_of_any_bytes, "[\x80-\xff]", "\xc3")
FITS(the_others_are_in_a_set_with_a_roof, "[^a-c]", "d")
FITS_NOT(its_own_are_not, "[^a-c]", "b")
FITS(a_range_may_end_with_a_bracket, "[X-]", "Z")
FITS(what_is_behind_a_backslash_is_itself, "\\*[\\]]", "*]")
FITS_NOT(and_nothing_else, "\\*", "a")
FITS(a_backslash_at_the_end_is_one, "a\\", "a\\")
FITS(a_set_that_does_not_end_is_one, "[ab", "a")
FITS_NOT(a_set_of_nothing_fits_nothing, "[]", "a")
FITS(braces_are_themselves, "{a}*", "{a}{}")

/* Not two to the power of its stars. */
TEST(glob, many_stars_take_no_time)
{
    char text[500];
    memset(text, 'a', sizeof text);
    int64_t began_ms = test_now_ms();
    EXPECT(!rl_glob_fits("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text,
                         sizeof text));
    EXPECT_BETWEEN(test_now_ms() - began_ms, 0, 1000);
}
