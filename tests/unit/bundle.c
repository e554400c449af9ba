/* Parts that go to the server in one call, and what each makes of it. */
#include "hold/level.h"
#include "op/op.h"

#include "play.h"

#define N        3
#define LEASE_MS 10000

typedef struct bundle {
    play p;
    rl_op op;
    rl_part *parts[N];
    rl_hold *h[N];
    rl_part part[N];
} bundle;

static const char *const names[N] = {"a", "b", "c"};

static rl_core *core(bundle *b)
{
    return play_core(&b->p, 0);
}

static void add(bundle *b, size_t i)
{
    rl_part *x = &b->part[i];
    x->op = &b->op;
    if (i == 0) {
        play_one(&b->p, &b->op, x);
        b->op.part = b->parts;
        b->parts[0] = x;
        return;
    }
    EXPECT(rl_bundle_join(&b->part[0], x));
}

static void open_takes(bundle *b)
{
    memset(b, 0, sizeof *b);
    play_open(&b->p, 1);
    for (size_t i = 0; i < N; i++) {
        rl_target what = play_job;
        what.name = names[i];
        what.len = 1;
        b->h[i] = play_draft(&b->p, 0, &what, LEASE_MS);
        rl_part_acquire(&b->part[i], core(b), b->h[i], LEASE_MS, b->p.now_us);
        add(b, i);
    }
    EXPECT_INT(play_begin(&b->p, &b->op), RL_ASK);
}

/* Ours is one more reference to each hold. */
static void open_frees(bundle *b)
{
    memset(b, 0, sizeof *b);
    play_open(&b->p, 1);
    for (size_t i = 0; i < N; i++) {
        b->h[i] = play_hold(&b->p, 0, names[i], LEASE_MS);
        b->h[i]->refs++;
        EXPECT_INT(rl_hold_count_down(&core(b)->holds, b->h[i], 0, b->p.now_us),
                   RL_COUNTED);
        rl_part_release(&b->part[i], core(b), b->h[i], 0, b->p.now_us);
        add(b, i);
    }
    EXPECT_INT(play_begin(&b->p, &b->op), RL_ASK);
}

static void close_takes(bundle *b)
{
    for (size_t i = 0; i < N; i++)
        rl_give_up(core(b), b->h[i], b->p.now_us);
    play_close(&b->p);
}

static void close_frees(bundle *b)
{
    for (size_t i = 0; i < N; i++)
        rl_holds_put(&core(b)->holds, b->h[i]);
    play_close(&b->p);
}

static bool all_unknown(const bundle *b)
{
    return b->h[0]->unknown && b->h[1]->unknown && b->h[2]->unknown;
}

static bool none_unknown(const bundle *b)
{
    return !b->h[0]->unknown && !b->h[1]->unknown && !b->h[2]->unknown;
}

/* It ended as if it had not been asked. */
static bool is_left(const rl_part *x)
{
    return x->over && !x->ok && x->fault.status == RLOCK_OK;
}

static rl_next answer(bundle *b, const char *reply)
{
    return play_answer(&b->p, 0, reply);
}

TEST(bundle, locks_are_taken_in_one_call)
{
    bundle b;
    open_takes(&b);
    EXPECT_INT(b.p.client[0].calls, 1);
    EXPECT_STR(play_called(&b.p, 0), "hash/take_many");
    EXPECT_STR(play_word(&b.p, 0, 2), "9");
    for (int i = 0; i < N; i++) {
        EXPECT_STR(play_key(&b.p, 0, 1 + i), names[i]);
        EXPECT_CONTAINS(play_key(&b.p, 0, 4 + i), "rlock_undone:{");
        EXPECT_CONTAINS(play_key(&b.p, 0, 7 + i), "rlock_token:{");
        EXPECT_STR(play_arg(&b.p, 0, 2 + i), play_holder(b.h[i]).text);
    }
    EXPECT_STR(play_arg(&b.p, 0, 1), "10000");
    EXPECT_INT(play_args(&b.p, 0), 1 + N);
    EXPECT_INT(answer(&b, ":1\r\n"), RL_DONE);
    close_takes(&b);
}

TEST(bundle, each_gets_its_own_token)
{
    bundle b;
    open_takes(&b);
    int64_t sent_us = b.p.now_us;
    play_pass(&b.p, 1000);
    EXPECT_INT(answer(&b, "$8\r\n17 234 5\r\n"), RL_DONE);
    static const uint64_t tokens[N] = {17, 234, 5};
    for (size_t i = 0; i < N; i++) {
        EXPECT(b.part[i].ok && b.part[i].verdict == RL_ACQUIRED);
        EXPECT_INT(b.part[i].grant.token, tokens[i]);
        EXPECT_INT(b.part[i].grant.sent_us, sent_us);
    }
    EXPECT(none_unknown(&b));
    close_takes(&b);
}

TEST(bundle, only_the_one_in_the_way_is_busy_and_the_others_were_not_asked)
{
    for (size_t k = 0; k < N; k++) {
        bundle b;
        char reply[8];
        open_takes(&b);
        snprintf(reply, sizeof reply, ":%zu\r\n", k + 1);
        EXPECT_INT(answer(&b, reply), RL_DONE);
        for (size_t i = 0; i < N; i++) {
            EXPECT(is_left(&b.part[i]) == (i != k));
            EXPECT((b.part[i].verdict == RL_BUSY) == (i == k));
        }
        EXPECT(none_unknown(&b));
        close_takes(&b);
    }
}

TEST(bundle, one_that_was_given_up_stops_all)
{
    for (size_t k = 0; k < N; k++) {
        bundle b;
        char reply[8];
        open_takes(&b);
        snprintf(reply, sizeof reply, ":-%zu\r\n", k + 1);
        EXPECT_INT(answer(&b, reply), RL_DONE);
        for (size_t i = 0; i < N; i++)
            EXPECT(is_left(&b.part[i]) == (i != k));
        EXPECT_CONTAINS(b.part[k].fault.text, "given up");
        EXPECT(none_unknown(&b));
        close_takes(&b);
    }
}

TEST(bundle, what_was_asked_again_is_in_doubt_for_each)
{
    bundle b;
    open_takes(&b);
    EXPECT_INT(play_cut(&b.p, 0), RL_ASK);
    EXPECT_STR(play_called(&b.p, 0), "hash/take_many");
    EXPECT_INT(answer(&b, "$5\r\n1 2 3\r\n"), RL_DONE);
    for (size_t i = 0; i < N; i++)
        EXPECT(b.part[i].ok);
    EXPECT(all_unknown(&b));
    close_takes(&b);
}

TEST(bundle, without_an_answer_each_may_have_been_granted)
{
    bundle b;
    open_takes(&b);
    play_lose(&b.p, 0);
    for (size_t i = 0; i < N; i++) {
        EXPECT(b.part[i].over && !b.part[i].ok);
        EXPECT_INT(b.part[i].outcome, RL_UNKNOWN);
        EXPECT_INT(b.part[i].fault.status, RLOCK_EIO);
        /* Why there was none, and not that one made no sense. */
        EXPECT(!strstr(b.part[i].fault.text, "sense"));
    }
    EXPECT(all_unknown(&b));
    close_takes(&b);
}

/* Singly, and their answers come in the order in which they were asked. */
static void expect_each_alone(bundle *b, bool unknown)
{
    EXPECT(b->part[0].refused);
    EXPECT_INT(b->op.n, N);
    EXPECT_INT(b->op.quorum, N);
    EXPECT_INT(b->p.client[0].calls, 1 + N);
    EXPECT_STR(play_called(&b->p, 0), "hash/acquire");
    EXPECT_INT(answer(b, "$2\r\n17\r\n"), RL_ASK);
    EXPECT_INT(answer(b, "*5\r\n:0\r\n:9\r\n:0\r\n:0\r\n:0\r\n"), RL_ASK);
    EXPECT_INT(answer(b, "$2\r\n19\r\n"), RL_DONE);
    EXPECT(b->part[0].ok && !b->part[1].ok && b->part[2].ok);
    EXPECT_INT(b->part[1].verdict, RL_BUSY);
    EXPECT(unknown ? all_unknown(b) : none_unknown(b));
    close_takes(b);
}

TEST(bundle, a_call_that_is_refused_is_made_for_each)
{
    bundle b;
    open_takes(&b);
    EXPECT_INT(answer(&b, "-CROSSSLOT Keys in request don't hash to the same "
                          "slot\r\n"),
               RL_ASK);
    expect_each_alone(&b, false);
}

static void answer_nonsense(const char *reply)
{
    bundle b;
    open_takes(&b);
    EXPECT_INT(answer(&b, reply), RL_ASK);
    EXPECT_INT(b.p.client[0].lines, 1); /* on another one */
    expect_each_alone(&b, true);
}

TEST_CASE(bundle, after_too_few_tokens_each_is_asked_in_doubt,
          answer_nonsense("$3\r\n1 2\r\n"))
TEST_CASE(bundle, after_too_many_tokens_each_is_asked_in_doubt,
          answer_nonsense("$7\r\n1 2 3 4\r\n"))
TEST_CASE(bundle, after_a_blank_before_the_tokens_each_is_asked_in_doubt,
          answer_nonsense("$6\r\n 1 2 3\r\n"))
TEST_CASE(bundle, after_a_blank_behind_the_tokens_each_is_asked_in_doubt,
          answer_nonsense("$6\r\n1 2 3 \r\n"))
TEST_CASE(bundle, after_a_busy_one_that_is_none_each_is_asked_in_doubt,
          answer_nonsense(":4\r\n"))
TEST_CASE(bundle, after_one_given_up_that_is_none_each_is_asked_in_doubt,
          answer_nonsense(":-4\r\n"))
TEST_CASE(bundle, after_nobody_in_the_way_each_is_asked_in_doubt,
          answer_nonsense(":0\r\n"))

/* A token that is none may be anybody's. */
TEST(bundle, a_token_that_is_none_is_no_grant_and_in_doubt)
{
    bundle b;
    open_takes(&b);
    EXPECT_INT(answer(&b, "$5\r\n1 x 3\r\n"), RL_DONE);
    EXPECT(b.part[0].ok && !b.part[1].ok && b.part[2].ok);
    EXPECT(!b.h[0]->unknown && b.h[1]->unknown && !b.h[2]->unknown);
    close_takes(&b);
}

TEST(bundle, locks_are_freed_in_one_call)
{
    bundle b;
    open_frees(&b);
    EXPECT_INT(b.p.client[0].calls, 1);
    EXPECT_STR(play_called(&b.p, 0), "hash/free_many");
    EXPECT_STR(play_word(&b.p, 0, 2), "6");
    for (int i = 0; i < N; i++) {
        EXPECT_STR(play_key(&b.p, 0, 1 + i), names[i]);
        EXPECT_CONTAINS(play_key(&b.p, 0, 4 + i), "rlock_queue:{");
        EXPECT_STR(play_arg(&b.p, 0, 1 + i), play_holder(b.h[i]).text);
        EXPECT_CONTAINS(play_arg(&b.p, 0, 4 + i), "redisson_lock__channel:{");
    }
    EXPECT_INT(answer(&b, "$3\r\n121\r\n"), RL_DONE);
    for (size_t i = 0; i < N; i++)
        EXPECT(b.part[i].ok && b.h[i]->refs == 1);
    close_frees(&b);
}

TEST(bundle, one_that_is_gone_is_lost_and_the_others_are_freed)
{
    bundle b;
    open_frees(&b);
    EXPECT_INT(answer(&b, "$3\r\n101\r\n"), RL_DONE);
    EXPECT(b.part[0].ok && !b.part[1].ok && b.part[2].ok);
    EXPECT_INT(b.part[1].fault.status, RLOCK_LOST);
    close_frees(&b);
}

TEST(bundle, one_with_which_something_is_wrong_is_released_by_itself)
{
    bundle b;
    open_frees(&b);
    EXPECT_INT(answer(&b, "$3\r\n1e1\r\n"), RL_ASK);
    EXPECT(b.part[0].ok && !b.part[1].over && b.part[2].ok);
    EXPECT(!b.part[0].refused);
    EXPECT_STR(play_called(&b.p, 0), "hash/release");
    EXPECT_STR(play_key(&b.p, 0, 1), "b");
    EXPECT_INT(answer(&b, "-WRONGTYPE Operation against a key\r\n"), RL_DONE);
    EXPECT_INT(b.part[1].fault.status, RLOCK_EWRONGTYPE);
    close_frees(&b);
}

TEST(bundle, an_unlock_without_an_answer_is_undone_for_each)
{
    bundle b;
    open_frees(&b);
    play_lose(&b.p, 0);
    EXPECT_INT(core(&b)->holds.undoing, N);
    close_frees(&b);
}

static bool would_join(bundle *b, void (*change)(bundle *b))
{
    open_takes(b);
    b->part[0].next = b->part[1].next = NULL;
    change(b);
    bool joins = rl_bundle_join(&b->part[0], &b->part[1]);
    b->part[0].next = &b->part[1];
    b->part[1].next = &b->part[2];
    EXPECT_INT(answer(b, ":1\r\n"), RL_DONE);
    close_takes(b);
    return joins;
}

static void change_nothing(bundle *b)
{
    (void)b;
}

static void give_it_a_bell(bundle *b)
{
    b->part[1].request.bell = "rlock_bell:x";
}

static void change_its_lease(bundle *b)
{
    b->part[1].request.lease_ms++;
}

static void change_its_layout(bundle *b)
{
    b->h[1]->layout = RLOCK_LAYOUT_STRING;
}

static void change_both_layouts(bundle *b)
{
    b->h[0]->layout = b->h[1]->layout = RLOCK_LAYOUT_TIMESTAMP;
}

TEST(bundle, only_what_one_call_can_say_goes_together)
{
    bundle b;
    EXPECT(would_join(&b, change_nothing));
    EXPECT(!would_join(&b, give_it_a_bell));
    EXPECT(!would_join(&b, change_its_lease));
    EXPECT(!would_join(&b, change_its_layout));
    EXPECT(!would_join(&b, change_both_layouts));
}

/* It leaves a tombstone, which only a release by itself does. */
TEST(bundle, a_hold_that_is_in_doubt_is_released_by_itself)
{
    bundle b;
    open_frees(&b);
    b.part[0].next = NULL;
    b.h[1]->unknown = true;
    EXPECT(!rl_bundle_join(&b.part[0], &b.part[1]));
    b.h[1]->unknown = false;
    b.part[0].next = &b.part[1];
    EXPECT_INT(answer(&b, "$3\r\n111\r\n"), RL_DONE);
    close_frees(&b);
}
