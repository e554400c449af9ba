/* What is told of locks, of what servers say: which are, held by whom. */
#include "client/found.h"

#include <errno.h>

#include "shim.h"
#include "test.h"

#define UUID   "1f2f9e64-6f0c-4f0e-a1f5-7a8f5a0d3c52"
#define OURS   "web3:18201:18207:" UUID
#define CLOCK  "1800000000000000"
#define BEFORE "1799999998500000" /* by a second and a half */

/* What survey.lua answers. */
typedef struct answer {
    long long fields;
    const char *holder, *count;
    long long pttl, waiting;
    const char *token;
} answer;

static rl_item text_of(const char *s)
{
    return (rl_item){.type = REDIS_REPLY_STRING, .str = s, .len = strlen(s)};
}

static rl_item number_of(long long n)
{
    return (rl_item){.type = REDIS_REPLY_INTEGER, .integer = n};
}

static rl_reply reply_of(const answer *a)
{
    rl_reply r = {.top = {.type = REDIS_REPLY_ARRAY}, .count = 7};
    r.item[0] = text_of(CLOCK);
    r.item[1] = number_of(a->fields);
    r.item[2] = text_of(a->holder ? a->holder : "");
    r.item[3] = text_of(a->count ? a->count : "0");
    r.item[4] = number_of(a->pttl);
    r.item[5] = number_of(a->waiting);
    r.item[6] = text_of(a->token ? a->token : "");
    return r;
}

static bool note(rl_found *f, const char *name, const answer *a)
{
    rl_reply r = reply_of(a);
    EXPECT(rl_names_add(&f->names, name, strlen(name), false));
    return rl_found_note(f, f->names.at[f->names.n - 1], &r);
}

typedef struct told {
    rl_found f;
    rlock_lock_info l;
    rlock_holder h;
} told;

/* Of a lock "a" that this was said of. */
static told *tell(unsigned flags, const answer *a)
{
    static told t;
    rl_found_init(&t.f, flags);
    EXPECT(note(&t.f, "a", a) && rl_found_sort(&t.f));
    EXPECT_INT(t.f.n, 1);
    memset(&t.h, 'x', sizeof t.h); /* as another lock has left it */
    rl_found_tell(&t.f, 0, &t.l, &t.h);
    EXPECT_STR(t.l.name, "a");
    EXPECT_INT(t.l.name_len, 1);
    return &t;
}

static void expect_nothing(unsigned flags, const answer *a)
{
    rl_found f;
    rl_found_init(&f, flags);
    EXPECT(note(&f, "a", a));
    EXPECT_INT(f.n, 0);
    rl_found_fini(&f);
}

static size_t names_after(const char *name, const answer *a)
{
    rl_found f;
    rl_found_init(&f, 0);
    EXPECT(note(&f, name, a));
    size_t n = f.names.n - 1;
    EXPECT(n == 0 || f.names.at[1].guessed);
    rl_found_fini(&f);
    return n;
}

#define HELD(...) tell(0, &(answer){__VA_ARGS__})
#define NONE(...) expect_nothing(RLOCK_SCAN_ALL, &(answer){__VA_ARGS__})
#define NO_LOCK(name, ...)                                                     \
    TEST(found, name)                                                          \
    {                                                                          \
        NONE(__VA_ARGS__);                                                     \
    }

TEST(found, all_that_was_said_is_told)
{
    told *t = HELD(1, OURS, "2", 700, 3, BEFORE);
    EXPECT_INT(t->l.layout, RLOCK_LAYOUT_HASH);
    EXPECT_INT(t->l.kind, RLOCK_KIND_LOCK);
    EXPECT(t->l.holders == &t->h && t->l.n_holders == 1);
    EXPECT_INT(t->l.holders_in_all, 1);
    EXPECT_INT(t->l.waiting, 3);
    EXPECT_INT(t->l.ttl_ms, 700);
    EXPECT_INT(t->l.token, 1799999998500000);
    EXPECT_INT(t->l.held_ms, 1500);
    EXPECT(!t->l.foreign);
    EXPECT_STR(t->h.raw, OURS);
    EXPECT_STR(t->h.host, "web3");
    EXPECT(t->h.pid == 18201 && t->h.count == 2 && t->h.ttl_ms == 700);
    rl_found_fini(&t->f);
}

TEST(found, of_those_who_read_one_is_told_and_how_many_there_are)
{
    told *t = HELD(4, OURS, "read 2", 700, 3, BEFORE);
    EXPECT_INT(t->l.kind, RLOCK_KIND_READ);
    EXPECT(t->l.n_holders == 1 && t->l.holders_in_all == 3 && !t->l.foreign);
    EXPECT_STR(t->h.raw, OURS);
    EXPECT_INT(t->h.count, 2);
    EXPECT_INT(t->l.held_ms, -1);
    rl_found_fini(&t->f);
}

TEST(found, one_who_reads_alone_is_told_as_one)
{
    told *t = HELD(2, OURS, "read 1", 700, 0, NULL);
    EXPECT_INT(t->l.kind, RLOCK_KIND_READ);
    EXPECT(t->l.holders_in_all == 1 && t->h.count == 1);
    rl_found_fini(&t->f);
}

NO_LOCK(who_reads_a_hash_without_a_mode_is_none, 1, OURS, "read 1", 700, 1,
        NULL)

TEST(found, who_writes_is_told_alone_although_he_reads_too)
{
    told *t = HELD(3, UUID ":117", "write 1", 700, 0, NULL);
    EXPECT_INT(t->l.kind, RLOCK_KIND_WRITE);
    EXPECT(t->l.holders_in_all == 1 && t->l.foreign);
    rl_found_fini(&t->f);
}

NO_LOCK(a_mode_alone_is_no_lock, 1, "read", "read x", 700, 0, NULL)
NO_LOCK(a_hash_with_a_mode_and_no_holder_is_no_lock, 2, "color", "read 7", 700,
        1, NULL)
NO_LOCK(a_mode_that_begins_as_one_who_reads_is_no_lock, 2, OURS, "reads1 7",
        700, 0, NULL)
NO_LOCK(a_mode_that_begins_as_one_who_writes_is_no_lock, 2, OURS, "writes1 7",
        700, 0, NULL)

TEST(found, a_hash_is_asked_about_whichever_field_of_a_lock_it_shows)
{
    EXPECT(rl_found_is_hash(OURS, strlen(OURS)));
    EXPECT(rl_found_is_hash("mode", 4));
    EXPECT(rl_found_is_hash(OURS ":write", strlen(OURS) + 6));
    EXPECT(!rl_found_is_hash("color", 5) && !rl_found_is_hash(":write", 6));
}

TEST(found, whoever_else_has_it_minted_no_token)
{
    told *t = HELD(1, UUID ":117", "1", -1, 0, BEFORE);
    EXPECT(t->l.foreign && t->l.token == 0 && t->l.held_ms == -1);
    EXPECT_STR(t->h.raw, UUID ":117");
    EXPECT(t->h.pid == 0 && t->l.ttl_ms == -1);
    rl_found_fini(&t->f);
}

TEST(found, a_clock_that_was_put_back_holds_nothing_for_less_than_no_time)
{
    told *t = HELD(1, OURS, "1", 700, 0, "1900000000000000");
    EXPECT_INT(t->l.held_ms, 0);
    rl_found_fini(&t->f);
}

TEST(found, the_smallest_token_is_one)
{
    told *t = HELD(1, OURS, "1", 700, 0, "1");
    EXPECT(t->l.token == 1 && t->l.held_ms == 1799999999999);
    rl_found_fini(&t->f);
    t = tell(RLOCK_SCAN_IDLE, &(answer){.pttl = -2, .token = "1"});
    EXPECT(t->l.token == 1 && !t->l.holders);
    rl_found_fini(&t->f);
    EXPECT_INT(names_after("a", &(answer){.token = "1"}), 1);
}

static void expect_raw(size_t said, size_t told_of)
{
    static const rlock_holder none;
    char id[sizeof none.raw + 2];
    memset(id, 'y', said);
    id[said] = '\0';
    told *t = HELD(-1, id, "1", 700, 0, NULL);
    EXPECT_INT(strspn(t->h.raw, "y"), told_of);
    EXPECT(memcmp(t->h.raw + told_of, none.raw, sizeof none.raw - told_of) ==
           0);
    EXPECT_STR(t->h.host, "");
    rl_found_fini(&t->f);
}

/* Nor is anything behind it. */
TEST_CASE(found, of_a_holder_nothing_else_is_told, expect_raw(9, 9))
TEST_CASE(found, the_longest_holder_is_told_whole, expect_raw(511, 511))
TEST_CASE(found, a_longer_holder_is_cut, expect_raw(512, 511))

TEST(found, a_token_that_is_none_is_not_known)
{
    told *t = HELD(1, OURS, "1", 700, 0, "Ada");
    EXPECT(t->l.token == 0 && t->l.held_ms == -1 && !t->l.foreign);
    rl_found_fini(&t->f);
}

/* --- layouts -------------------------------------------------------------- */

TEST(found, a_string_of_ours_is_ours)
{
    told *t = HELD(-1, OURS, "1", 700, 0, BEFORE);
    EXPECT(t->l.layout == RLOCK_LAYOUT_STRING && !t->l.foreign);
    EXPECT_INT(t->l.held_ms, 1500);
    rl_found_fini(&t->f);
}

TEST(found, any_string_is_somebodys_if_a_side_key_tells_of_it)
{
    told *t = HELD(-1, "6f1c0e", "1", 700, 1, NULL);
    EXPECT(t->l.layout == RLOCK_LAYOUT_STRING && t->l.foreign);
    EXPECT_STR(t->h.raw, "6f1c0e");
    rl_found_fini(&t->f);
}

TEST(found, a_timestamp_of_ours_is_held_until_then)
{
    told *t = HELD(-1, "1800000001.0134756109728850", "1", 61000, 0, BEFORE);
    EXPECT(t->l.layout == RLOCK_LAYOUT_TIMESTAMP && !t->l.foreign);
    EXPECT_INT(t->l.ttl_ms, 1013); /* as inspect reads it */
    EXPECT_INT(t->h.ttl_ms, 1013);
    EXPECT_INT(t->l.held_ms, 1500);
    rl_found_fini(&t->f);
}

TEST(found, a_timestamp_of_another_program_is_too)
{
    told *t = HELD(-1, "1800000000.25", "1", -1, 0, BEFORE);
    EXPECT(t->l.layout == RLOCK_LAYOUT_TIMESTAMP && t->l.foreign);
    EXPECT_INT(t->l.ttl_ms, 250);
    EXPECT_INT(t->l.token, 0);
    rl_found_fini(&t->f);
}

/* The clock says 1800000000. */
TEST(found, a_timestamp_is_held_in_its_last_moment)
{
    told *t = HELD(-1, "1800000000", "1", -1, 0, NULL);
    EXPECT_INT(t->l.layout, RLOCK_LAYOUT_TIMESTAMP);
    EXPECT(t->l.ttl_ms == 0 && t->l.n_holders == 1);
    rl_found_fini(&t->f);
}

static void expect_text(const char *text, bool is_text)
{
    told *t = HELD(-1, text, "1", -1, 0, NULL);
    EXPECT((t->l.layout == RLOCK_LAYOUT_STRING) == is_text);
    rl_found_fini(&t->f);
}

TEST_CASE(found, a_timestamp_may_have_13_digits,
          expect_text("1800000000000", false))
TEST_CASE(found, a_timestamp_that_is_broken_by_a_letter_is_a_text,
          expect_text("1800000001x5", true))

NO_LOCK(a_number_of_14_digits_is_a_count, -1, "18000000000000", "1", -1, 1,
        NULL)
NO_LOCK(a_number_of_9_digits_is_a_count, -1, "180000000", "1", -1, 1, NULL)
NO_LOCK(a_timestamp_of_a_moment_ago_is_free, -1, "1799999999.999", "1", -1, 0,
        NULL)
NO_LOCK(the_first_timestamp_of_all_is_free, -1, "0000000000", "1", -1, 0, NULL)
NO_LOCK(a_timestamp_that_has_passed_is_free, -1, "1799999999", "1", -1, 0, NULL)

/* Of a latch, or of a semaphore. */
NO_LOCK(a_small_number_is_a_count, -1, "1", "1", -1, 1, NULL)
NO_LOCK(one_below_zero_is_a_count, -1, "-2", "1", -1, 1, NULL)

TEST(found, a_time_with_a_word_behind_it_is_a_text)
{
    told *t = HELD(-1, "1800000000.5s", "1", -1, 0, NULL);
    EXPECT_INT(t->l.layout, RLOCK_LAYOUT_STRING);
    rl_found_fini(&t->f);
}

/* --- what is no lock ------------------------------------------------------ */

NO_LOCK(a_hash_of_two_fields_is_none, 2, OURS, "1", 700, 1, BEFORE)
NO_LOCK(a_hash_without_a_holder_is_none, 1, "name", "1", 700, 1, BEFORE)
NO_LOCK(a_hash_without_a_count_is_none, 1, OURS, "Ada", 700, 1, BEFORE)
NO_LOCK(a_count_of_nought_is_none, 1, OURS, "0", 700, 1, BEFORE)
NO_LOCK(another_type_is_none, -2, "", "0", 700, 1, BEFORE)
NO_LOCK(what_is_not_there_is_none, 0, "", "0", -2, 0, NULL)
NO_LOCK(what_is_free_is_told_only_when_asked_for, 0, "", "0", -2, 0, BEFORE)

TEST(found, one_that_is_free_and_waited_for_is_told)
{
    told *t = HELD(0, "", "0", -2, 2, BEFORE);
    EXPECT(t->l.holders == NULL && t->l.n_holders == 0);
    EXPECT(t->l.holders_in_all == 0 && t->l.waiting == 2);
    EXPECT(t->l.ttl_ms == -2 && t->l.held_ms == -1 && !t->l.foreign);
    EXPECT_INT(t->l.token, 1799999998500000);
    rl_found_fini(&t->f);
}

TEST(found, one_that_is_free_and_was_held_is_told_who_asks_for_it)
{
    told *t = tell(RLOCK_SCAN_IDLE, &(answer){0, "", "0", -2, 0, BEFORE});
    EXPECT(t->l.holders == NULL && t->l.ttl_ms == -2);
    rl_found_fini(&t->f);
}

TEST(found, one_that_was_never_held_is_not)
{
    expect_nothing(RLOCK_SCAN_IDLE, &(answer){.pttl = -2});
}

/* --- names in braces ------------------------------------------------------ */

TEST(found, who_has_the_token_may_be_one_in_braces)
{
    EXPECT_INT(names_after("a", &(answer){.token = BEFORE}), 1);
    EXPECT_INT(names_after("a", &(answer){.fields = 0}), 0);
    EXPECT_INT(names_after("{a}", &(answer){.token = BEFORE}), 0);
    EXPECT_INT(names_after("a", &(answer){1, OURS, "1", 1, 0, BEFORE}), 0);
    EXPECT_INT(names_after("a", &(answer){2, OURS, "1", 1, 0, BEFORE}), 1);
}

TEST(found, one_that_is_guessed_is_not_told_for_its_token)
{
    rl_found f;
    answer a = {.pttl = -2, .token = BEFORE};
    rl_reply r = reply_of(&a);
    rl_found_init(&f, RLOCK_SCAN_IDLE);
    EXPECT(rl_names_add(&f.names, "{a}", 3, true));
    EXPECT(rl_found_note(&f, f.names.at[0], &r));
    EXPECT_INT(f.n, 0);
    r.item[5] = number_of(1); /* somebody waits */
    EXPECT(rl_found_note(&f, f.names.at[0], &r));
    EXPECT_INT(f.n, 1);
    rl_found_fini(&f);
}

/* --- semaphores ----------------------------------------------------------- */

TEST(found, of_those_who_have_permits_one_is_told_and_how_many_there_are)
{
    told *t = HELD(3, OURS, "permits 2 5", 700, 1, BEFORE);
    EXPECT_INT(t->l.kind, RLOCK_KIND_PERMIT);
    EXPECT(t->l.n_holders == 1 && t->l.holders_in_all == 3 && !t->l.foreign);
    EXPECT_STR(t->h.raw, OURS);
    EXPECT(t->h.count == 2 && t->l.ttl_ms == 700 && t->l.available == 5);
    EXPECT(t->l.token == 0 && t->l.held_ms == -1); /* which it has none of */
    rl_found_fini(&t->f);
}

TEST(found, a_permit_of_another_program_is_foreign)
{
    told *t = HELD(1, "62fd10", "permits 1 -3", -1, 0, "");
    EXPECT(t->l.foreign && t->l.available == -3 && t->l.ttl_ms == -1);
    rl_found_fini(&t->f);
}

TEST(found, of_permits_there_may_be_more_than_a_few)
{
    told *t = HELD(2, OURS, "permits 10 29", 700, 0, "");
    EXPECT(t->h.count == 10 && t->l.available == 29);
    rl_found_fini(&t->f);
}

NO_LOCK(what_begins_as_permits_do_is_none, 3, OURS, "permits:2 5", 700, 1, "")

/* A key with that end tells of a semaphore, and of nothing else. */
static size_t told_by_permits(const answer *a)
{
    rl_found f;
    rl_reply r = reply_of(a);
    rl_found_init(&f, RLOCK_SCAN_IDLE);
    rl_name lock = {.text = rl_names_keep(&f.names, "a", 1),
                    .len = 1,
                    .guessed = true,
                    .permits = true};
    EXPECT(rl_found_note(&f, lock, &r));
    size_t n = f.n;
    rl_found_fini(&f);
    return n;
}

TEST(found, what_was_guessed_of_permits_is_told_if_it_is_a_semaphore)
{
    EXPECT_INT(told_by_permits(&(answer){1, OURS, "permits 1 2", 7, 0, ""}), 1);
    EXPECT_INT(told_by_permits(&(answer){1, OURS, "1", 700, 1, BEFORE}), 0);
    EXPECT_INT(told_by_permits(&(answer){-1, OURS, "1", 700, 1, BEFORE}), 0);
    EXPECT_INT(told_by_permits(&(answer){.pttl = -2, .waiting = 1}), 0);
}

TEST(found, a_semaphore_that_is_waited_for_is_told_also_if_nobody_has_some)
{
    told *t = HELD(0, "", "permits 0 2", -1, 1, "");
    EXPECT_INT(t->l.kind, RLOCK_KIND_PERMIT);
    EXPECT(!t->l.holders && t->l.waiting == 1 && t->l.available == 2);
    rl_found_fini(&t->f);
}

/* --- all of them ---------------------------------------------------------- */

TEST(found, they_are_told_by_name_and_each_once)
{
    rl_found f;
    rlock_lock_info l;
    rlock_holder h;
    rl_found_init(&f, RLOCK_SCAN_IDLE);
    EXPECT(note(&f, "b", &(answer){1, OURS, "1", 1, 0, BEFORE}));
    EXPECT(note(&f, "a", &(answer){0, "", "0", -2, 0, CLOCK}));
    EXPECT(note(&f, "a", &(answer){1, OURS, "1", 1, 0, BEFORE}));
    EXPECT(note(&f, "a", &(answer){0, "", "0", -2, 0, CLOCK}));
    EXPECT(rl_found_sort(&f));
    EXPECT_INT(f.n, 2);
    rl_found_tell(&f, 0, &l, &h);
    EXPECT_STR(l.name, "a");
    EXPECT(l.holders == &h);
    rl_found_tell(&f, 1, &l, &h);
    EXPECT_STR(l.name, "b");
    rl_found_fini(&f);
}

/* A slot that moves may be at two servers. */
static void expect_kept(const char *first, const char *second)
{
    rl_found f;
    rlock_lock_info l;
    rlock_holder h;
    rl_found_init(&f, 0);
    EXPECT(note(&f, "a", &(answer){1, OURS, "1", 1, 0, first}));
    EXPECT(note(&f, "a", &(answer){1, OURS, "1", 1, 0, second}));
    EXPECT(rl_found_sort(&f));
    EXPECT_INT(f.n, 1);
    rl_found_tell(&f, 0, &l, &h);
    EXPECT_INT(l.token, 1799999998500000);
    rl_found_fini(&f);
}

TEST_CASE(found, of_two_that_are_held_the_later_is_told,
          expect_kept("1799999998400000", BEFORE))
TEST_CASE(found, of_two_that_are_held_the_later_is_told_if_it_came_first,
          expect_kept(BEFORE, "1799999998400000"))

TEST(found, of_nothing_there_is_nothing_to_tell)
{
    rl_found f;
    rl_found_init(&f, 0);
    EXPECT(rl_found_sort(&f));
    EXPECT_INT(f.n, 0);
    rl_found_fini(&f);
}

/* --- what may be a lock, by a command ------------------------------------- */

static bool is_string(const char *text)
{
    return rl_found_is_string(text, strlen(text));
}

static bool is_hash(const char *field)
{
    return rl_found_is_hash(field, strlen(field));
}

TEST(found, of_strings_those_of_ours_may_be_locks)
{
    EXPECT(is_string(OURS) && is_string("1800000001.0134756109728850"));
    EXPECT(!is_string("") && !is_string("1800000001") && !is_string("Ada"));
    EXPECT(!is_string(UUID ":117"));
    EXPECT(!rl_found_is_string(OURS, 512)); /* there is more of it */
}

TEST(found, of_hashes_those_with_a_holder_may_be_locks)
{
    EXPECT(is_hash(OURS) && is_hash(UUID ":117"));
    EXPECT(!is_hash("") && !is_hash("name"));
    EXPECT(!rl_found_is_hash(OURS, 512));
}

/* --- what goes wrong ------------------------------------------------------ */

static bool is_taken(rl_reply *r)
{
    rl_found f;
    rl_found_init(&f, RLOCK_SCAN_IDLE);
    EXPECT(rl_names_add(&f.names, "a", 1, false));
    bool taken = rl_found_note(&f, f.names.at[0], r);
    rl_found_fini(&f);
    return taken;
}

TEST(found, a_reply_of_another_shape_is_refused)
{
    answer a = {1, OURS, "1", 700, 0, BEFORE};
    rl_reply good = reply_of(&a), r = good;
    EXPECT(is_taken(&r)); /* the control */
    r.count = 6;
    EXPECT(!is_taken(&r));
    for (size_t i = 0; i < 7; i++) {
        r = good;
        r.item[i] = (rl_item){.type = REDIS_REPLY_NIL};
        EXPECT(!is_taken(&r));
    }
}

static void expect_lacking(const answer *a)
{
    rl_found f;
    rl_reply r = reply_of(a);
    rl_found_init(&f, 0);
    EXPECT(rl_names_add(&f.names, "a", 1, false));
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    bool taken = rl_found_note(&f, f.names.at[0], &r);
    shim_clear(shim_here());
    EXPECT(!taken && f.names.lacking);
    rl_found_fini(&f);
}

TEST_CASE(found, without_memory_nothing_is_kept,
          expect_lacking(&(answer){1, OURS, "1", 700, 0, BEFORE}))
TEST_CASE(found, without_memory_nobody_is_guessed,
          expect_lacking(&(answer){.token = BEFORE}))

static void expect_unsorted(int which)
{
    rl_found f;
    rl_found_init(&f, 0);
    EXPECT(note(&f, "b", &(answer){1, OURS, "1", 700, 0, BEFORE}));
    EXPECT(note(&f, "a", &(answer){1, OURS, "1", 700, 0, BEFORE}));
    shim_fail(shim_here(), SHIM_ALLOC, which, which, ENOMEM);
    bool sorted = rl_found_sort(&f);
    shim_clear(shim_here());
    EXPECT(!sorted);
    rl_found_fini(&f);
}

TEST_CASE(found, without_memory_for_their_names_they_are_not_sorted,
          expect_unsorted(1))
TEST_CASE(found, without_memory_for_the_sorted_they_are_not_sorted,
          expect_unsorted(2))
