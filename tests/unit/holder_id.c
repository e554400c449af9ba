/* Who holds a lock: holder ids of ours, and whatever else is found there. */
#include "op/verb_query.h"

#include "test.h"

#define UUID "01234567-89ab-4def-8123-456789abcdef"

static rlock_holder parse(const char *raw, bool wanted)
{
    rlock_holder h = {.pid = -7, .tid = -7};
    snprintf(h.raw, sizeof h.raw, "%s", raw);
    EXPECT_INT(rl_parse_holder(&h), wanted);
    return h;
}

static void expect_holder(const char *raw, const char *host, long long pid,
                          long long tid, const char *owner)
{
    rlock_holder h = parse(raw, true);
    EXPECT_STR(h.host, host);
    EXPECT_INT(h.pid, pid);
    EXPECT_INT(h.tid, tid);
    EXPECT_STR(h.owner, owner);
    EXPECT_STR(h.hold_id, UUID);
}

TEST(holder_id, an_id_of_ours_is_taken_apart)
{
    expect_holder("db-1:17:4711:" UUID, "db-1", 17, 4711, "");
    expect_holder("db-1:17:4711/request 9:" UUID, "db-1", 17, 4711,
                  "request 9");
    expect_holder("db-1:17:4711/:" UUID, "db-1", 17, 4711, "");
}

static void expect_foreign(const char *raw)
{
    rlock_holder h = parse(raw, false);
    EXPECT(!*h.host && !*h.owner && !*h.hold_id);
    EXPECT(h.pid == -7 && h.tid == -7);
}

TEST(holder_id, what_others_have_written_is_left_alone)
{
    static const char *const others[] = {
        "",
        "x",
        ":",
        ":::",
        ":0:0:" UUID,
        "0f3a5c1e-8a2b-4c6d-9e7f-112233445566:41", /* Redisson's */
        UUID,
        "1:" UUID,
        "1:2:" UUID,
        "host:17:4711:" UUID "0",
        "host:17:4711:" UUID ":",
        "host:17:4711:0123",
        "host:seventeen:4711:" UUID,
        "host::4711:" UUID,
        "host:17x:4711:" UUID,
        "host:17:four:" UUID,
        "host:17::" UUID,
        "host:17:/label:" UUID,
        "host:17:4711 label:" UUID};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        expect_foreign(others[i]);
}

/* One more than there is room for. */
TEST(holder_id, what_is_too_long_is_not_ours)
{
    char raw[sizeof((rlock_holder *)0)->raw],
        part[sizeof((rlock_holder *)0)->raw];
    rlock_holder h;
    memset(part, 'h', sizeof part);
    snprintf(raw, sizeof raw, "%.*s:1:2:" UUID, (int)sizeof h.host, part);
    expect_foreign(raw);
    snprintf(raw, sizeof raw, "%.*s:1:2:" UUID, (int)sizeof h.host - 1, part);
    EXPECT_INT(strlen(parse(raw, true).host), sizeof h.host - 1);
    snprintf(raw, sizeof raw, "h:1:2/%.*s:" UUID, (int)sizeof h.owner, part);
    expect_foreign(raw);
    snprintf(raw, sizeof raw, "h:1:2/%.*s:" UUID, (int)sizeof h.owner - 1,
             part);
    EXPECT_INT(strlen(parse(raw, true).owner), sizeof h.owner - 1);
}

TEST(holder_id, a_part_of_an_id_has_nothing_that_would_cut_it)
{
    char text[] = "a b:c\td\x7f"
                  "e\xc3\xa9";
    rl_holder_clean(text);
    EXPECT_STR(text, "a_b_c_d_e\xc3\xa9");
}

/* --- a reply of inspect --------------------------------------------------- */

static rlock_status read_of(rl_item item[3], size_t count, rlock_holder *out)
{
    rl_fault f = {.status = RLOCK_OK};
    rl_reply r = {.count = count};
    memcpy(r.item, item, 3 * sizeof *item);
    memset(out, 0, sizeof *out);
    rlock_status s = rl_read_holder(&r, out, &f);
    EXPECT(s != RLOCK_EIO || strstr(f.text, "unexpected reply to inspect"));
    return s;
}

static rl_item text_of(const char *text)
{
    return (rl_item){
        .type = REDIS_REPLY_STRING, .str = text, .len = strlen(text)};
}

static rl_item number_of(long long n)
{
    return (rl_item){.type = REDIS_REPLY_INTEGER, .integer = n};
}

TEST(holder_id, a_reply_is_read_and_an_odd_one_is_none)
{
    rlock_holder h;
    char longest[sizeof((rlock_holder *)0)->raw + 1];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    rl_item item[3] = {text_of("h:1:2:" UUID), text_of("3"), number_of(700)};
    EXPECT_INT(read_of(item, 3, &h), RLOCK_OK);
    EXPECT(h.count == 3 && h.ttl_ms == 700 && h.pid == 1);
    EXPECT_INT(read_of(item, 0, &h), RLOCK_NOT_HELD);
    EXPECT_INT(read_of(item, 2, &h), RLOCK_EIO);
    item[0] = number_of(1);
    EXPECT_INT(read_of(item, 3, &h), RLOCK_EIO);
    item[0] = text_of(longest);
    EXPECT_INT(read_of(item, 3, &h), RLOCK_EIO);
    item[0].len = sizeof h.raw - 1; /* a text of its own follows there */
    longest[sizeof h.raw - 1] = '\0';
    EXPECT_INT(read_of(item, 3, &h), RLOCK_OK);
    EXPECT_INT(strlen(h.raw), sizeof h.raw - 1);
}
