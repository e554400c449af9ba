/*
 * What is said to a server, word by word: the script, how many keys, the keys,
 * and the arguments behind a bar. In a row stand for
 *   L T Q U W R  the lock, its token, queue, tombstone, who waits, channel
 *   I J          its line, and what those in it want
 *   P S          who has permits of it, and the channel on which that is told
 *   C            the channel on which it is told that a latch is open
 *   A, B         the holder, and the one of a draft; V is B's tombstone
 *   L2 ...       the same of the second lock
 */
#include "op/call.h"
#include "op/call_permit.h"

#include "play.h"

#define BELL  RL_BELL_PREFIX "01234567-89ab-4def-8123-456789abcdef"
#define SBELL RL_SBELL_PREFIX "01234567-89ab-4def-8123-456789abcdef"

typedef struct stage {
    play p;
    rl_hold *h, *next, *second;
    rl_owner_record *own; /* the second one's, while another takes its place */
    char names[35][2][200]; /* a short one, and what it stands for */
    size_t n;
} stage;

static void name_it(stage *s, const char *brief, const void *text, size_t len)
{
    EXPECT(s->n < 35 && len < sizeof s->names[0][1]);
    snprintf(s->names[s->n][0], sizeof s->names[0][0], "%s", brief);
    memcpy(s->names[s->n][1], text, len);
    s->names[s->n++][1][len] = '\0';
}

static void name_key(stage *s, const char *brief, rl_key k)
{
    name_it(s, brief, k.text, k.len);
}

static void name_keys(stage *s, const rl_hold *h, const char *number)
{
    const char *name = rl_hold_name(h);
    play_id id = play_holder(h);
    char brief[8];
#define NAMED(letter)                                                          \
    (snprintf(brief, sizeof brief, letter "%s", number), brief)
    name_it(s, NAMED("L"), name, h->name_len);
    name_key(s, NAMED("T"), rl_key_token(name, h->name_len));
    name_key(s, NAMED("Q"), rl_key_queue(name, h->name_len));
    name_key(s, NAMED("U"), rl_key_tombstone(name, h->name_len, id.text));
    name_key(s, NAMED("R"), rl_key_redisson(name, h->name_len));
    name_key(s, NAMED("S"), rl_key_redisson_semaphore(name, h->name_len));
    name_it(s, NAMED("A"), id.text, strlen(id.text));
#undef NAMED
}

static void open_stage(stage *s, unsigned layout)
{
    s->n = 0;
    s->own = NULL;
    play_open(&s->p, 1);
    s->h = play_hold(&s->p, 0, "job", LEASE_MS);
    s->second = play_hold(&s->p, 0, "{b}", LEASE_MS);
    s->next = play_draft(&s->p, 0, &play_job, LEASE_MS);
    s->h->layout = s->second->layout = s->next->layout = (uint8_t)layout;
    name_keys(s, s->h, "");
    name_keys(s, s->second, "2");
    play_id id = play_holder(s->next);
    name_it(s, "B", id.text, strlen(id.text));
    name_key(s, "V", rl_key_tombstone("job", 3, id.text));
    name_it(s, "W", "rlock_undone:{job}:who", 22);
    name_key(s, "I", rl_key_line("job", 3));
    name_key(s, "J", rl_key_wants("job", 3));
    name_it(s, "P", "{job}:timeout", 13);
    name_it(s, "C", "redisson_countdownlatch__channel__{job}", 39);
    name_it(s, "P2", "{b}:timeout", 11);
    name_it(s, "bell", BELL, strlen(BELL));
    name_it(s, "-bell", "-" BELL, 1 + strlen(BELL));
    name_key(s, "sbell", rl_key_bell("job", 3, SBELL));
    name_it(s, "''", "", 0);
}

static void close_stage(stage *s)
{
    if (s->own)
        s->second->record = s->own;
    rl_give_up(play_core(&s->p, 0), s->next, s->p.now_us);
    play_close(&s->p);
}

/* --- what was written ------------------------------------------------------- */

static const char *brief_of(const stage *s, const char *word)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->names[i][1], word) == 0)
            return s->names[i][0];
    for (size_t i = 0; i < RL_SCRIPT_COUNT; i++)
        if (strcmp(rl_scripts[i].sha1, word) == 0 ||
            strcmp(rl_scripts[i].body, word) == 0)
            return rl_scripts[i].name;
    return word;
}

/* "EVALSHA name 2 L Q | A 5": all of it, and nothing behind. */
static void show(const stage *s, const rl_bytes *b, char *out, size_t size)
{
    static char word[20000];
    const char *at = b->at + b->begin, *end = b->at + b->end;
    char *next;
    long words = strtol(at + 1, &next, 10), keys = -1;
    size_t used = 0;
    EXPECT(*at == '*');
    *out = '\0';
    at = next + 2;
    for (long i = 0; i < words; i++) {
        EXPECT(at < end && *at == '$');
        size_t len = strtoul(at + 1, &next, 10);
        EXPECT(len < sizeof word && next + 2 + len + 2 <= end);
        snprintf(word, sizeof word, "%.*s", (int)len, next + 2);
        at = next + 2 + len + 2;
        keys = i == 2 ? atol(word) : keys;
        used += (size_t)snprintf(out + used, size - used, "%s%s%s",
                                 i ? " " : "", brief_of(s, word),
                                 i > 1 && i == 2 + keys ? " |" : "");
    }
    EXPECT(at == end);
}

static void expect_said(stage *s, rl_bytes *b, const char *wanted)
{
    char said[1000];
    EXPECT(!b->lacking);
    show(s, b, said, sizeof said);
    EXPECT_STR(said, wanted);
    rl_bytes_fini(b);
    *b = (rl_bytes){0};
}

/* --- in line ------------------------------------------------------------------ */

static void expect_acquire_of(unsigned layout, rl_request r,
                              const char *wanted);

#define FAIR(name, wanted, ...)                                                \
    TEST_CASE(                                                                 \
        call, fair_##name,                                                     \
        expect_acquire_of(RL_LAYOUT_FAIR, (rl_request){__VA_ARGS__}, wanted))

FAIR(acquire_without_a_bell_is_brief,
     "EVALSHA fair/acquire 5 L T U I J | A 7000", .level = 1)
FAIR(acquire_stands_with_a_bell,
     "EVALSHA fair/acquire 6 L T U I J Q | A 7000 1 bell 9 77", .level = 1,
     .bell = BELL, .ticket = 9, .beat_us = 77)
FAIR(acquire_of_who_is_deaf_says_so,
     "EVALSHA fair/acquire 6 L T U I J Q | A 7000 1 -bell 0 77", .level = 1,
     .bell = BELL, .deaf = true, .beat_us = 77)
FAIR(acquire_of_another_level_says_which,
     "EVALSHA fair/acquire 6 L T U I J Q | A 7000 2 '' 0 0", .level = 2)

TEST(call, fair_release_brings_what_a_grant_needs)
{
    stage s;
    rl_bytes b = {0};
    rl_target what = play_job;
    open_stage(&s, RL_LAYOUT_FAIR);
    rl_call_release(&b, false, s.h, 0, false, BELL);
    expect_said(&s, &b, "EVALSHA fair/release 6 L Q U T I J | A R");
    rl_call_release(&b, false, s.h, 2, false, "");
    expect_said(&s, &b, "EVALSHA fair/release 6 L Q U T I J | A R 2 0");
    s.h->unknown = s.h->sharded = true;
    rl_call_release(&b, false, s.h, 0, false, BELL);
    expect_said(&s, &b,
                "EVALSHA fair/release 6 L Q U T I J | A R 0 60000 SPUBLISH");
    what.layout = RL_LAYOUT_FAIR;
    rl_call_release_of(&b, false, &what, "who");
    expect_said(&s, &b, "EVALSHA fair/release 6 L Q Q T I J | who R");
    rl_call_waits(&b, false, "job", 3, true, RLOCK_KIND_LOCK);
    expect_said(&s, &b, "EVALSHA waits 5 L Q W I J |");
    for (rlock_kind k = RLOCK_KIND_READ; k <= RLOCK_KIND_WRITE; k++) {
        rl_call_waits(&b, false, "job", 3, true, k);
        expect_said(&s, &b, "EVALSHA waits 6 L Q W I J rlock_leases:{job} |");
    }
    rl_call_waits(&b, false, "job", 3, true, RLOCK_KIND_PERMIT);
    expect_said(&s, &b, "EVALSHA waits 6 L Q W I J P |");
    rl_call_survey(&b, false, "job", 3, true, false);
    expect_said(&s, &b, "EVALSHA survey 5 L Q T I J |");
    rl_call_survey(&b, false, "job", 3, false, true);
    expect_said(&s, &b, "EVALSHA survey 6 L Q T I J P |");
    rl_call_force_release(&b, false, &what);
    expect_said(&s, &b, "EVALSHA hash/force_release 2 L Q | R");
    close_stage(&s);
}

/* --- permits ------------------------------------------------------------------ */

/* Each is an owner of its own. */
static void open_permits(stage *s)
{
    static _Alignas(rl_owner_record) char other[sizeof(rl_owner_record) + 64];
    open_stage(s, RL_LAYOUT_PERMIT);
    s->own = s->second->record;
    memcpy(other, s->own, offsetof(rl_owner_record, name) + s->own->name_len);
    s->second->record = (rl_owner_record *)other;
    s->h->record->weight = 3;
    s->second->record->weight = 1;
    s->second->record->idle_s = 9;
}

static void expect_take(rl_request r, const char *wanted)
{
    stage s;
    rl_bytes b = {0};
    open_permits(&s);
    r.lease_ms = 7000;
    r.level = 1;
    r.permits = 5;
    if (!r.bell)
        r.bell = "";
    rl_call_acquire(&b, false, s.h, &r);
    expect_said(&s, &b, wanted);
    close_stage(&s);
}

#define TAKE(name, wanted, ...)                                                \
    TEST_CASE(call, permits_##name,                                            \
              expect_take((rl_request){__VA_ARGS__}, wanted))

TAKE(are_taken_with_few_words,
     "EVALSHA permit/acquire 5 L P U I J | A 7000 3 5 0", .ticket = 0)
TAKE(are_stood_for_with_a_bell,
     "EVALSHA permit/acquire 5 L P U I J | A 7000 3 5 0 bell 9 77",
     .bell = BELL, .ticket = 9, .beat_us = 77)
TAKE(are_stood_for_without_being_told,
     "EVALSHA permit/acquire 5 L P U I J | A 7000 3 5 0 -bell 0 77",
     .bell = BELL, .deaf = true, .beat_us = 77)

TEST(call, permits_are_given_back_and_granted_to_others)
{
    stage s;
    rl_bytes b = {0};
    open_permits(&s);
    rl_call_release(&b, false, s.h, 0, false, BELL);
    expect_said(&s, &b, "EVALSHA permit/release 5 L P U I J | A S 3 0 0");
    s.h->unknown = s.h->sharded = true;
    rl_call_release(&b, false, s.h, 0, false, BELL);
    expect_said(&s, &b,
                "EVALSHA permit/release 5 L P U I J | A S 3 60000 0 SPUBLISH");
    close_stage(&s);
}

TEST(call, permits_are_kept_by_what_they_are_and_how_many)
{
    stage s;
    rl_bytes b = {0};
    open_permits(&s);
    const rl_hold *both[] = {s.h, s.second};
    rl_call_renew(&b, false, s.h, 7000, false);
    expect_said(&s, &b, "EVALSHA permit/renew 2 L P | A 7000 3 0");
    rl_call_extend(&b, false, s.second, 100, false);
    expect_said(&s, &b, "EVALSHA permit/extend 2 L2 P2 | A2 100 1 9");
    rl_call_renew_many(&b, false, both, 2, 7000);
    expect_said(&s, &b,
                "EVALSHA permit/renew_many 4 L P L2 P2 | 7000 A 3 0 A2 1 9");
    rl_call_touch(&b, false, s.h);
    expect_said(&s, &b, "EVALSHA permit/touch 1 L |");
    close_stage(&s);
}

TEST(call, permits_are_added_once_and_counted)
{
    stage s;
    rl_bytes b = {0};
    rl_target what = play_job;
    rl_semaphore five = {.permits = 5};
    open_permits(&s);
    what.semaphore = &five;
    s.h->token = (uint64_t)-2;
    s.h->lease_ms = 5;
    rl_call_add_permits(&b, false, s.h);
    expect_said(&s, &b, "EVALSHA permit/add 5 L P U I J | -2 5 0 120000 S");
    s.h->sharded = true;
    rl_call_add_permits(&b, false, s.h);
    expect_said(&s, &b,
                "EVALSHA permit/add 5 L P U I J | -2 5 0 120000 S SPUBLISH");
    rl_call_available(&b, false, &what);
    expect_said(&s, &b, "EVALSHA permit/available 2 L P | 5");
    close_stage(&s);
}

/* --- acquire ------------------------------------------------------------------ */

static void expect_acquire_of(unsigned layout, rl_request r, const char *wanted)
{
    stage s;
    rl_bytes b = {0};
    open_stage(&s, layout);
    r.lease_ms = 7000;
    r.bell = r.bell ? r.bell : "";
    rl_call_acquire(&b, false, s.h, &r);
    expect_said(&s, &b, wanted);
    close_stage(&s);
}

static void expect_acquire(rl_request r, const char *wanted)
{
    expect_acquire_of(RLOCK_LAYOUT_HASH, r, wanted);
}

#define ACQUIRE(name, wanted, ...)                                             \
    TEST_CASE(call, acquire_##name,                                            \
              expect_acquire((rl_request){__VA_ARGS__}, wanted))

ACQUIRE(is_brief_where_nothing_more_is_wanted,
        "EVALSHA hash/acquire 3 L T U | A 7000", .level = 1)
ACQUIRE(of_another_level_says_which,
        "EVALSHA hash/acquire 4 L T U Q | A 7000 2 '' 0", .level = 2)
ACQUIRE(that_may_queue_says_where,
        "EVALSHA hash/acquire 4 L T U Q | A 7000 1 bell 9", .level = 1,
        .bell = BELL, .ticket = 9)
ACQUIRE(in_a_cluster_says_the_names_bell,
        "EVALSHA hash/acquire 4 L T U Q | A 7000 1 sbell 9", .level = 1,
        .bell = SBELL, .ticket = 9)
ACQUIRE(that_queues_may_say_who,
        "EVALSHA hash/acquire 5 L T U Q W | A 7000 1 bell 0", .level = 1,
        .bell = BELL, .says_who = true)
ACQUIRE(that_does_not_queue_says_not_who,
        "EVALSHA hash/acquire 3 L T U | A 7000", .level = 1, .says_who = true)
ACQUIRE(with_a_least_token_says_it,
        "EVALSHA hash/acquire 4 L T U Q | A 7000 1 '' 0 77", .level = 1,
        .says_least = true, .least = 77)
ACQUIRE(with_all_says_all,
        "EVALSHA hash/acquire 5 L T U Q W | A 7000 1 bell 9 77", .level = 1,
        .bell = BELL, .ticket = 9, .says_who = true, .says_least = true,
        .least = 77)

ACQUIRE(that_wants_says_so,
        "EVALSHA hash/acquire 5 L T U Q W | A 7000 1 bell 9 '' 44", .level = 1,
        .bell = BELL, .ticket = 9, .wants = true, .beat_us = 44)
ACQUIRE(that_wants_needs_a_bell, "EVALSHA hash/acquire 3 L T U | A 7000",
        .level = 1, .wants = true, .beat_us = 44)

/* --- release -------------------------------------------------------------------- */

typedef struct freed {
    int level;
    bool unknown, sharded, quiet, stood;
    const char *bell;
    int64_t lease_ms; /* 0: as it is */
} freed;

static void expect_release(freed f, const char *wanted)
{
    stage s;
    rl_bytes b = {0};
    open_stage(&s, RLOCK_LAYOUT_HASH);
    s.h->unknown = f.unknown;
    s.h->sharded = f.sharded;
    s.h->stood = f.stood;
    if (f.lease_ms)
        s.h->lease_ms = f.lease_ms;
    rl_call_release(&b, false, s.h, f.level, f.quiet, f.bell ? f.bell : "");
    expect_said(&s, &b, wanted);
    close_stage(&s);
}

#define RELEASE(name, wanted, ...)                                             \
    TEST_CASE(call, release_##name,                                            \
              expect_release((freed){__VA_ARGS__}, wanted))

RELEASE(is_brief_where_nothing_is_in_doubt, "EVALSHA hash/release 2 L Q | A R",
        .level = 0)
RELEASE(to_a_level_says_which, "EVALSHA hash/release 3 L Q U | A R 3 0",
        .level = 3)
RELEASE(to_a_level_buries_nothing, "EVALSHA hash/release 3 L Q U | A R 1 0",
        .level = 1, .unknown = true)
RELEASE(in_doubt_leaves_a_tombstone_for_a_minute,
        "EVALSHA hash/release 3 L Q U | A R 0 60000", .unknown = true)
RELEASE(in_doubt_leaves_a_tombstone_for_its_lease,
        "EVALSHA hash/release 3 L Q U | A R 0 90000", .unknown = true,
        .lease_ms = 90000)
RELEASE(in_doubt_leaves_a_tombstone_for_ten_minutes_at_most,
        "EVALSHA hash/release 3 L Q U | A R 0 600000", .unknown = true,
        .lease_ms = 700000)
RELEASE(in_a_cluster_rings_there,
        "EVALSHA hash/release 3 L Q U | A R 0 0 SPUBLISH", .sharded = true)
RELEASE(of_who_has_stood_grants,
        "EVALSHA hash/release 5 L Q U W T | A R 0 0 PUBLISH ''", .stood = true)
RELEASE(of_who_has_stood_grants_there_in_a_cluster,
        "EVALSHA hash/release 5 L Q U W T | A R 0 0 SPUBLISH ''", .stood = true,
        .sharded = true)
RELEASE(of_who_may_stand_yet_takes_that_back,
        "EVALSHA hash/release 5 L Q U W T | A R 0 0 PUBLISH bell",
        .stood = true, .bell = BELL)
RELEASE(of_who_may_stand_yet_in_doubt_leaves_a_tombstone,
        "EVALSHA hash/release 5 L Q U W T | A R 0 60000 PUBLISH bell",
        .stood = true, .unknown = true, .bell = BELL)
RELEASE(to_a_level_grants_nothing, "EVALSHA hash/release 3 L Q U | A R 1 0",
        .level = 1, .stood = true)
RELEASE(of_a_vote_rings_nobody, "EVALSHA hash/release 2 L U | A ''",
        .quiet = true)
RELEASE(of_a_vote_in_doubt_rings_nobody,
        "EVALSHA hash/release 3 L U U | A '' 0 60000", .unknown = true,
        .quiet = true)

/* --- the others --------------------------------------------------------------- */

TEST(call, hand_over_of_who_has_stood_grants)
{
    stage s;
    rl_bytes b = {0};
    rl_request r = {.bell = BELL, .lease_ms = 7000};
    open_stage(&s, RLOCK_LAYOUT_HASH);
    for (int i = 0; i < 2; i++) {
        s.h->stood = i == 0;
        s.next->stood = i == 1;
        rl_call_hand_over(&b, false, s.h, s.next, &r, 5000);
        expect_said(&s, &b,
                    "EVALSHA hash/handover 5 L T V Q W | A B 7000 5000 R bell");
    }
    close_stage(&s);
}

static void expect_hand_over(rl_request r, bool sharded, const char *wanted)
{
    stage s;
    rl_bytes b = {0};
    open_stage(&s, RLOCK_LAYOUT_HASH);
    s.h->sharded = sharded;
    r.lease_ms = 7000;
    rl_call_hand_over(&b, false, s.h, s.next, &r, 5000);
    expect_said(&s, &b, wanted);
    close_stage(&s);
}

TEST_CASE(call, hand_over_names_both,
          expect_hand_over((rl_request){.bell = ""}, false,
                           "EVALSHA hash/handover 4 L T V Q | A B 7000 5000 R "
                           "''"))
TEST_CASE(call, hand_over_takes_a_bell_out_and_keeps_tokens,
          expect_hand_over((rl_request){.bell = BELL, .keep = 8}, false,
                           "EVALSHA hash/handover 4 L T V Q | A B 7000 5000 R "
                           "bell 8"))
TEST_CASE(call, hand_over_in_a_cluster_rings_there,
          expect_hand_over((rl_request){.bell = SBELL}, true,
                           "EVALSHA hash/handover 4 L T V Q | A B 7000 5000 R "
                           "sbell 0 SPUBLISH"))

TEST(call, renew_and_extend_compare_tokens_and_renew_keeps_them)
{
    stage s;
    rl_bytes b = {0};
    open_stage(&s, RLOCK_LAYOUT_STRING);
    s.h->token = 55;
    rl_call_renew(&b, false, s.h, 7000, false);
    expect_said(&s, &b, "EVALSHA string/renew 1 L | A 7000");
    rl_call_renew(&b, false, s.h, 7000, true);
    expect_said(&s, &b, "EVALSHA string/renew 2 L T | A 7000 55");
    s.h->keeps = true;
    rl_call_renew(&b, false, s.h, 7000, false);
    expect_said(&s, &b, "EVALSHA string/renew 2 L T | A 7000");
    rl_call_extend(&b, false, s.h, 7000, false);
    expect_said(&s, &b, "EVALSHA string/extend 1 L | A 7000");
    rl_call_extend(&b, false, s.h, 7000, true);
    expect_said(&s, &b, "EVALSHA string/extend 2 L T | A 7000 55");
    close_stage(&s);
}

TEST(call, of_many_each_is_named)
{
    stage s;
    rl_bytes b = {0};
    open_stage(&s, RLOCK_LAYOUT_HASH);
    const rl_hold *both[] = {s.h, s.second};
    rl_call_renew_many(&b, false, both, 2, 7000);
    expect_said(&s, &b, "EVALSHA hash/renew_many 2 L L2 | 7000 A A2");
    s.second->keeps = true;
    rl_call_renew_many(&b, false, both, 2, 7000);
    expect_said(&s, &b, "EVALSHA hash/renew_many 3 L L2 T2 | 7000 A A2");
    rl_call_take_many(&b, false, both, 2, 7000);
    expect_said(&s, &b, "EVALSHA hash/take_many 6 L L2 U U2 T T2 | 7000 A A2");
    rl_call_free_many(&b, false, both, 2);
    expect_said(&s, &b, "EVALSHA hash/free_many 4 L L2 Q Q2 | A A2 R R2");
    s.h->sharded = true;
    rl_call_free_many(&b, false, both, 2);
    expect_said(&s, &b,
                "EVALSHA hash/free_many 4 L L2 Q Q2 | A A2 R R2 SPUBLISH");
    close_stage(&s);
}

TEST(call, of_a_hold_needs_little)
{
    stage s;
    rl_bytes b = {0};
    open_stage(&s, RLOCK_LAYOUT_TIMESTAMP);
    rl_call_drop(&b, false, s.h);
    expect_said(&s, &b, "EVALSHA timestamp/drop 1 L | A");
    rl_call_touch(&b, false, s.h);
    expect_said(&s, &b, "EVALSHA touch 1 L |");
    rl_call_raise(&b, false, s.h, 99);
    expect_said(&s, &b, "EVALSHA raise 1 T | 99");
    close_stage(&s);
}

TEST(call, of_a_name_needs_no_holder)
{
    stage s;
    rl_bytes b = {0};
    rl_target what = play_job;
    open_stage(&s, RLOCK_LAYOUT_HASH);
    rl_call_waits(&b, false, "job", 3, false, RLOCK_KIND_LOCK);
    expect_said(&s, &b, "EVALSHA waits 3 L Q W |");
    rl_call_survey(&b, false, "job", 3, false, false);
    expect_said(&s, &b, "EVALSHA survey 3 L Q T |");
    rl_call_inspect(&b, false, &what, NULL);
    expect_said(&s, &b, "EVALSHA hash/inspect 1 L |");
    rl_call_inspect(&b, false, &what, "h:1:2:x");
    expect_said(&s, &b, "EVALSHA hash/inspect 1 L |");
    rl_call_force_release(&b, false, &what);
    expect_said(&s, &b, "EVALSHA hash/force_release 2 L Q | R");
    what.sharded = true;
    rl_call_force_release(&b, false, &what);
    expect_said(&s, &b, "EVALSHA hash/force_release 2 L Q | R SPUBLISH");
    rl_call_leave(&b, false, "job", 3, BELL, false);
    expect_said(&s, &b, "EVALSHA leave 3 L Q T | bell");
    rl_call_leave(&b, false, "job", 3, BELL, true);
    expect_said(&s, &b, "EVALSHA leave 4 L Q T W | bell");
    rl_call_release_of(&b, false, &what, "who");
    expect_said(&s, &b, "EVALSHA hash/release 3 L Q Q | who R 0 0 SPUBLISH");
    what.sharded = false;
    rl_call_release_of(&b, false, &what, "who");
    expect_said(&s, &b, "EVALSHA hash/release 2 L Q | who R");
    close_stage(&s);
}

TEST(call, of_a_latch_marks_what_changes_it_and_says_who_is_told)
{
    stage s;
    rl_bytes b = {0};
    rl_target what = play_job;
    open_stage(&s, RLOCK_LAYOUT_HASH);
    s.h->token = 3;
    s.h->lease_ms = 5000;
    rl_call_count_down(&b, false, s.h);
    expect_said(&s, &b, "EVALSHA latch/count_down 3 L Q U | 3 120000 C");
    rl_call_latch_set(&b, false, s.h);
    expect_said(&s, &b, "EVALSHA latch/set 2 L U | 3 5000 120000 C");
    rl_call_latch_look(&b, false, &what, BELL);
    expect_said(&s, &b, "EVALSHA latch/look 2 L Q | bell");
    rl_call_latch_look(&b, false, &what, "");
    expect_said(&s, &b, "EVALSHA latch/look 2 L Q | ''");
    rl_call_latch_delete(&b, false, &what);
    expect_said(&s, &b, "EVALSHA latch/delete 2 L Q | C");
    s.h->sharded = what.sharded = true;
    rl_call_count_down(&b, false, s.h);
    expect_said(&s, &b,
                "EVALSHA latch/count_down 3 L Q U | 3 120000 C SPUBLISH");
    rl_call_latch_set(&b, false, s.h);
    expect_said(&s, &b, "EVALSHA latch/set 2 L U | 3 5000 120000 C SPUBLISH");
    rl_call_latch_delete(&b, false, &what);
    expect_said(&s, &b, "EVALSHA latch/delete 2 L Q | C SPUBLISH");
    close_stage(&s);
}

TEST(call, goes_whole_to_who_lacks_it)
{
    stage s;
    rl_bytes b = {0};
    rl_request r = {.level = 1, .bell = "", .lease_ms = 7000};
    const rl_hold *one[1];
    open_stage(&s, RLOCK_LAYOUT_STRING);
    one[0] = s.h;
    rl_call_acquire(&b, true, s.h, &r);
    expect_said(&s, &b, "EVAL string/acquire 3 L T U | A 7000");
    rl_call_release(&b, true, s.h, 0, false, BELL);
    expect_said(&s, &b, "EVAL string/release 2 L Q | A R");
    rl_call_renew(&b, true, s.h, 7000, false);
    expect_said(&s, &b, "EVAL string/renew 1 L | A 7000");
    rl_call_renew_many(&b, true, one, 1, 7000);
    expect_said(&s, &b, "EVAL string/renew_many 1 L | 7000 A");
    rl_call_take_many(&b, true, one, 1, 7000);
    expect_said(&s, &b, "EVAL string/take_many 3 L U T | 7000 A");
    rl_call_free_many(&b, true, one, 1);
    expect_said(&s, &b, "EVAL string/free_many 2 L Q | A R");
    rl_call_drop(&b, true, s.h);
    expect_said(&s, &b, "EVAL string/drop 1 L | A");
    close_stage(&s);
}
