/*
 * What is said to a server about a side of a read-write lock, word by word. In a row
 * {A} stands for the holder, and {B} for the other side's hold.
 */
#include "op/call_side.h"
#include "op/call.h"

#include "play.h"

#define UUID "01234567-89ab-4def-8123-456789abcdef"
#define BELL RL_BELL_PREFIX UUID

#define TWO_KEYS  "job rlock_token:{job} "
#define LINE_KEYS "rlock_line:{job} rlock_wants:{job} "
#define WRITE_KEYS                                                             \
    TWO_KEYS "rlock_undone:{job}:{u} " LINE_KEYS "rlock_leases:{job}"
#define READ_KEYS WRITE_KEYS " {job}:{A}:rwlock_timeout:1"
#define CHANNEL   "redisson_rwlock:{job}"

/* As UUID has it. */
static const rl_uuid other = {{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0x4d, 0xef,
                               0x81, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}};

typedef struct stage {
    play p;
    rl_hold *h;
    rl_target what;
    char holder[RL_HOLDER_MAX], other[RL_HOLDER_MAX], uuid[RL_UUID_LEN + 1];
    rl_bytes b;
} stage;

static void open_stage(stage *s, unsigned layout)
{
    *s = (stage){.what = play_job};
    play_open(&s->p, 1);
    s->h = play_hold(&s->p, 0, "job", LEASE_MS);
    s->h->layout = (uint8_t)layout;
    s->what.layout = (uint8_t)layout;
    rl_hold_write_id(s->h, s->holder);
    snprintf(s->uuid, sizeof s->uuid, "%s",
             s->holder + strlen(s->holder) - RL_UUID_LEN);
    snprintf(s->other, sizeof s->other, "%.*s" UUID,
             (int)(strlen(s->holder) - RL_UUID_LEN), s->holder);
}

static void close_stage(stage *s)
{
    play_close(&s->p);
}

/* A row with what stands for something put in. */
static void fill(const stage *s, const char *row, char *out, size_t size)
{
    size_t n = 0;
    for (const char *at = row; *at; at++) {
        const char *is = strncmp(at, "{A}", 3) == 0   ? s->holder
                         : strncmp(at, "{B}", 3) == 0 ? s->other
                         : strncmp(at, "{u}", 3) == 0 ? s->uuid
                                                      : NULL;
        n += (size_t)snprintf(out + n, size - n, is ? "%s" : "%.1s",
                              is ? is : at);
        at += is ? 2 : 0;
    }
}

/* The words of a call, with blanks between them; of the script its name. */
static void read_words(const rl_bytes *b, char *out, size_t size)
{
    const char *at = b->at + b->begin, *end = b->at + b->end;
    size_t n = 0;
    char *next;
    long words = strtol(at + 1, &next, 10);
    for (long i = 0; i < words; i++) {
        size_t len = strtoul(next + 3, &next, 10);
        const char *word = next + 2;
        for (int k = 0; i == 1 && k < RL_SCRIPT_COUNT; k++)
            if (memcmp(rl_scripts[k].sha1, word, 40) == 0)
                n += (size_t)snprintf(out + n, size - n, "%s",
                                      rl_scripts[k].name);
        if (i > 1)
            n += (size_t)snprintf(out + n, size - n, " %.*s", (int)len, word);
        next = (char *)word + len;
    }
    EXPECT(next + 2 == end);
}

static void expect_said(stage *s, const char *row)
{
    char said[3000], wanted[3000];
    EXPECT(!s->b.lacking);
    read_words(&s->b, said, sizeof said);
    fill(s, row, wanted, sizeof wanted);
    EXPECT_STR(said, wanted);
    rl_bytes_fini(&s->b);
    s->b = (rl_bytes){0};
}

/* --- acquire, release ----------------------------------------------------- */

static void expect_acquire(unsigned layout, rl_request r, const char *row)
{
    stage s;
    open_stage(&s, layout);
    r.lease_ms = 7000;
    r.bell = r.bell ? r.bell : "";
    r.other = other;
    rl_call_acquire(&s.b, false, s.h, &r);
    expect_said(&s, row);
    close_stage(&s);
}

#define ACQUIRE(name, layout, row, ...)                                        \
    TEST_CASE(call_side, name,                                                 \
              expect_acquire(layout, (rl_request){__VA_ARGS__}, row))

ACQUIRE(reading_is_brief_where_nothing_more_is_wanted, RL_LAYOUT_READ,
        "read/acquire 7 " READ_KEYS " {A} 7000", .level = 1)
ACQUIRE(writing_is_brief_where_nothing_more_is_wanted, RL_LAYOUT_WRITE,
        "write/acquire 6 " WRITE_KEYS " {A} 7000", .level = 1)
ACQUIRE(who_waits_gives_his_bell, RL_LAYOUT_READ,
        "read/acquire 7 " READ_KEYS " {A} 7000 1 " BELL " 9 77", .level = 1,
        .bell = BELL, .ticket = 9, .beat_us = 77)
ACQUIRE(who_is_deaf_says_so, RL_LAYOUT_WRITE,
        "write/acquire 6 " WRITE_KEYS " {A} 7000 1 -" BELL " 0 77", .level = 1,
        .bell = BELL, .deaf = true, .beat_us = 77)
ACQUIRE(another_level_says_which, RL_LAYOUT_WRITE,
        "write/acquire 6 " WRITE_KEYS " {A} 7000 2  0 0", .level = 2)
ACQUIRE(who_reads_says_so_when_he_wants_to_write, RL_LAYOUT_WRITE,
        "write/acquire 6 " WRITE_KEYS " {A} 7000 1  0 0 {B}", .level = 1,
        .joins = true)
ACQUIRE(who_writes_says_so_when_he_wants_to_read, RL_LAYOUT_READ,
        "read/acquire 7 " READ_KEYS " {A} 7000 1  0 0 {B}:write", .level = 1,
        .joins = true)

static void expect_release(unsigned layout, const char *name, const char *keys)
{
    stage s;
    char row[1500];
    open_stage(&s, layout);
    rl_call_release(&s.b, false, s.h, 0, false, "");
    snprintf(row, sizeof row, "%s %s {A} " CHANNEL, name, keys);
    expect_said(&s, row);
    rl_call_release(&s.b, false, s.h, 2, false, "");
    snprintf(row, sizeof row, "%s %s {A} " CHANNEL " 2 0", name, keys);
    expect_said(&s, row);
    s.h->unknown = s.h->sharded = true;
    rl_call_release(&s.b, false, s.h, 0, false, "");
    snprintf(row, sizeof row, "%s %s {A} " CHANNEL " 0 60000 SPUBLISH", name,
             keys);
    expect_said(&s, row);
    close_stage(&s);
}

TEST_CASE(call_side, a_release_brings_what_a_grant_needs_after_reading,
          expect_release(RL_LAYOUT_READ, "read/release", "7 " READ_KEYS))
TEST_CASE(call_side, a_release_brings_what_a_grant_needs_after_writing,
          expect_release(RL_LAYOUT_WRITE, "write/release", "6 " WRITE_KEYS))

TEST(call_side, a_hold_that_was_looked_at_is_released_with_its_mark)
{
    stage s;
    open_stage(&s, RL_LAYOUT_READ);
    rl_call_release_of(&s.b, false, &s.what, s.holder);
    expect_said(&s,
                "read/release 7 " TWO_KEYS "rlock_leases:{job} " LINE_KEYS
                "rlock_leases:{job} {job}:{A}:rwlock_timeout:1 {A} " CHANNEL);
    rl_call_force_release(&s.b, false, &s.what);
    expect_said(&s, "read/force_release 5 " TWO_KEYS LINE_KEYS
                    "rlock_leases:{job} " CHANNEL);
    s.what.layout = RL_LAYOUT_WRITE;
    s.what.sharded = true;
    rl_call_release_of(&s.b, false, &s.what, s.holder);
    expect_said(&s, "write/release 6 " TWO_KEYS "rlock_leases:{job} " LINE_KEYS
                    "rlock_leases:{job} {A} " CHANNEL " 0 0 SPUBLISH");
    rl_call_force_release(&s.b, false, &s.what);
    expect_said(&s, "write/force_release 5 " TWO_KEYS LINE_KEYS
                    "rlock_leases:{job} " CHANNEL " SPUBLISH");
    close_stage(&s);
}

/* --- leases --------------------------------------------------------------- */

TEST(call_side, a_renewal_names_all_that_a_lease_is_kept_in)
{
    stage s;
    open_stage(&s, RL_LAYOUT_READ);
    rl_call_renew(&s.b, false, s.h, 9000, false);
    expect_said(&s, "read/renew 4 " TWO_KEYS
                    "rlock_leases:{job} {job}:{A}:rwlock_timeout:1 {A} 9000");
    s.h->token = 77;
    rl_call_extend(&s.b, false, s.h, 9000, true);
    expect_said(&s,
                "read/extend 4 " TWO_KEYS
                "rlock_leases:{job} {job}:{A}:rwlock_timeout:1 {A} 9000 77");
    s.h->layout = RL_LAYOUT_WRITE;
    rl_call_renew(&s.b, false, s.h, 9000, false);
    expect_said(&s, "write/renew 3 " TWO_KEYS "rlock_leases:{job} {A} 9000");
    rl_call_drop(&s.b, false, s.h);
    expect_said(&s, "write/drop 1 job {A}");
    rl_call_renew_bare(&s.b, false, s.h, 9000); /* as Redisson would */
    expect_said(&s, "hash/renew 1 job {A}:write 9000");
    close_stage(&s);
}

TEST(call_side, many_are_renewed_by_their_keys_kind_by_kind)
{
    stage s;
    open_stage(&s, RL_LAYOUT_READ);
    const rl_hold *both[] = {s.h, s.h};
    rl_call_renew_many(&s.b, false, both, 2, 9000);
    expect_said(&s, "read/renew_many 6 job job rlock_leases:{job} "
                    "rlock_leases:{job} {job}:{A}:rwlock_timeout:1 "
                    "{job}:{A}:rwlock_timeout:1 9000 {A} {A}");
    s.h->layout = RL_LAYOUT_WRITE;
    s.h->keeps = true;
    rl_call_renew_many(&s.b, false, both, 1, 9000);
    expect_said(&s, "write/renew_many 3 job rlock_leases:{job} "
                    "rlock_token:{job} 9000 {A}");
    close_stage(&s);
}

TEST(call_side, questions_bring_the_leases)
{
    stage s;
    open_stage(&s, RL_LAYOUT_READ);
    rl_call_inspect(&s.b, false, &s.what, NULL);
    expect_said(&s, "read/inspect 2 job rlock_leases:{job}");
    rl_call_inspect(&s.b, false, &s.what, s.holder);
    expect_said(&s, "read/inspect 2 job rlock_leases:{job} {A}");
    rl_call_rw_state(&s.b, false, &s.what);
    expect_said(&s, "rw/state 3 job rlock_line:{job} rlock_leases:{job}");
    close_stage(&s);
}

/* --- keys ----------------------------------------------------------------- */

static void expect_mark(const char *name, const char *wanted)
{
    rl_bytes b = {0};
    char word[200];
    rl_put_mark_key(&b, name, strlen(name), "h:1:2:" UUID);
    snprintf(word, sizeof word, "$%zu\r\n%s\r\n", strlen(wanted), wanted);
    EXPECT_INT(b.end - b.begin, strlen(word));
    EXPECT(memcmp(b.at + b.begin, word, strlen(word)) == 0);
    rl_bytes_fini(&b);
}

TEST(call_side, a_mark_is_named_as_redisson_names_it)
{
    expect_mark("a", "{a}:h:1:2:" UUID ":rwlock_timeout:1");
    expect_mark("{a}b", "{a}b:h:1:2:" UUID ":rwlock_timeout:1");
    rl_key channel = rl_key_redisson_rw("a", 1);
    EXPECT_INT(channel.len, strlen("redisson_rwlock:{a}"));
    EXPECT(memcmp(channel.text, "redisson_rwlock:{a}", channel.len) == 0);
}
