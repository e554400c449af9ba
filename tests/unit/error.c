/* Status texts, the thread's last error, and names in printable form. */
#include "base/error.h"

#include <errno.h>

#include "test.h"

TEST(error, every_status_has_a_text_of_its_own)
{
    for (int s = RLOCK_OK; s <= RLOCK_EDEADLK; s++) {
        const char *text = rlock_status_str((rlock_status)s);
        EXPECT(text && *text);
        EXPECT(strcmp(text, "unknown status") != 0);
        for (int other = RLOCK_OK; other < s; other++)
            EXPECT(strcmp(text, rlock_status_str((rlock_status)other)) != 0);
    }
}

TEST(error, an_unknown_status_has_a_text)
{
    EXPECT_STR(rlock_status_str((rlock_status)(RLOCK_EDEADLK + 1)),
               "unknown status");
    EXPECT_STR(rlock_status_str((rlock_status)1000000), "unknown status");
    EXPECT_STR(rlock_status_str((rlock_status)-1), "unknown status");
}

TEST(error, version_is_that_of_the_header)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%d.%d.%d", RLOCK_VERSION_MAJOR,
             RLOCK_VERSION_MINOR, RLOCK_VERSION_PATCH);
    EXPECT_STR(rlock_version(), wanted);
}

TEST(error, there_is_none_before_the_first_failure)
{
    EXPECT_INT(rlock_last_error()->status, RLOCK_OK);
    EXPECT_STR(rlock_last_error()->message, "");
}

TEST(error, is_set_and_kept)
{
    EXPECT_INT(rl_error_set(RLOCK_EIO, ETIMEDOUT, "%s %d", "n", 7), RLOCK_EIO);
    EXPECT_INT(rlock_last_error()->status, RLOCK_EIO);
    EXPECT_INT(rlock_last_error()->sys_errno, ETIMEDOUT);
    EXPECT_STR(rlock_last_error()->message, "n 7");
}

static intptr_t fail_elsewhere(void *arg)
{
    EXPECT_INT(rlock_last_error()->status, RLOCK_OK);
    rl_error_set(RLOCK_EINVAL, 0, "%s", (const char *)arg);
    return 0;
}

TEST(error, belongs_to_the_thread)
{
    rl_error_set(RLOCK_EIO, 0, "mine");
    test_join(test_spawn(fail_elsewhere, "theirs"));
    EXPECT_INT(rlock_last_error()->status, RLOCK_EIO);
    EXPECT_STR(rlock_last_error()->message, "mine");
}

TEST(error, a_long_message_is_cut)
{
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    rl_error_set(RLOCK_EIO, 0, "%s", text);
    EXPECT_INT(strlen(rlock_last_error()->message),
               sizeof rlock_last_error()->message - 1);
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, 0, "%s", text);
    EXPECT_INT(strlen(f.text), sizeof f.text - 1);
}

TEST(error, only_eio_is_worth_another_try)
{
    rl_fault f;
    for (int s = RLOCK_OK; s <= RLOCK_EDEADLK; s++) {
        EXPECT_INT(rl_fault_set(&f, (rlock_status)s, 0, "x"), s);
        EXPECT_INT(f.transient, s == RLOCK_EIO);
    }
}

TEST(error, a_fault_keeps_errno)
{
    rl_fault f;
    errno = EAGAIN;
    rl_fault_set(&f, RLOCK_EIO, EPIPE, "%s", strerror(EPIPE));
    EXPECT_INT(errno, EAGAIN);
    EXPECT_INT(rl_fault_set(NULL, RLOCK_EIO, 0, "x"), RLOCK_EIO);
}

static const char *shown(const void *name, size_t len, size_t size)
{
    static char out[4096];
    memset(out, '#', sizeof out);
    EXPECT(rl_printable(out, size, name, len) == out);
    EXPECT(strlen(out) < size);
    EXPECT_INT(out[size], '#');
    return out;
}

TEST(error, a_fault_that_passes_is_worth_another_try)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_ESERVER, 0, "busy");
    EXPECT_INT(rl_fault_passes(&f, RLOCK_ESERVER), RLOCK_ESERVER);
    EXPECT(f.transient);
    EXPECT_STR(f.text, "busy");
    EXPECT_INT(rl_fault_passes(NULL, RLOCK_EIO), RLOCK_EIO);
}

TEST(error, a_fault_says_what_it_was_told)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, ETIMEDOUT, "%s:%d", "h", 6379);
    EXPECT_INT(f.status, RLOCK_EIO);
    EXPECT_INT(f.sys_errno, ETIMEDOUT);
    EXPECT_STR(f.text, "h:6379");
}

TEST(error, the_next_failure_takes_the_place_of_the_last)
{
    rl_error_set(RLOCK_EIO, ETIMEDOUT, "a rather long message");
    rl_error_set(RLOCK_EINVAL, 0, "short");
    EXPECT_INT(rlock_last_error()->status, RLOCK_EINVAL);
    EXPECT_INT(rlock_last_error()->sys_errno, 0);
    EXPECT_STR(rlock_last_error()->message, "short");
}

TEST(error, an_empty_message_is_one)
{
    rl_error_set(RLOCK_EIO, 0, "%s", "");
    EXPECT_STR(rlock_last_error()->message, "");
}

TEST(printable, keeps_plain_text)
{
    const char *all = " !\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~";
    EXPECT_STR(shown(all, strlen(all), 200), all);
    EXPECT_STR(shown("", 0, 200), "");
}

TEST(printable, shows_other_bytes_as_hex)
{
    EXPECT_STR(shown("a\0b", 3, 200), "a\\x00b");
    EXPECT_STR(shown("\r\n\x1f\x7f\x80\xff", 6, 200),
               "\\x0d\\x0a\\x1f\\x7f\\x80\\xff");
    EXPECT_STR(shown("\xc3\xa9", 2, 200), "\\xc3\\xa9");
}

TEST(printable, shortens_a_long_name)
{
    char name[RLOCK_NAME_MAX];
    memset(name, 'x', sizeof name);
    const char *text = shown(name, sizeof name, 65);
    EXPECT_CONTAINS(text, "xxx...");
    EXPECT_BETWEEN(strlen(text), 50, 64);
}

TEST(printable, never_cuts_an_escape_and_never_overflows)
{
    char name[RLOCK_NAME_MAX];
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = i % 3 ? '\x01' : 'y';
    for (size_t size = 5; size < 300; size++) {
        const char *text = shown(name, sizeof name, size);
        size_t len = strlen(text);
        EXPECT_STR(text + len - 3, "...");
        const char *last = strrchr(text, '\\');
        EXPECT(!last || strlen(last) >= 4 + 3);
    }
}

TEST(printable, backslashes_are_plain)
{
    EXPECT_STR(shown("a\\x00", 5, 200), "a\\x00");
}

TEST(printable, a_nul_does_not_end_a_name)
{
    EXPECT_STR(shown("\0\0z", 3, 200), "\\x00\\x00z");
}

TEST(printable, a_name_that_just_fits_is_whole)
{
    EXPECT_STR(shown("abcd", 4, 8), "abcd");
}
