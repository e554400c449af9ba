/* The sides of a read-write lock in the hold table: an owner's two holds know of each
   other, and who waits for one side waits for whoever has either. */
#include "hold/side.h"

#include "hold/deadlock.h"
#include "play.h"

static const rl_target reading = {
    .name = "job", .len = 3, .scope = RL_LAYOUT_READ, .layout = RL_LAYOUT_READ};
static const rl_target writing = {.name = "job",
                                  .len = 3,
                                  .scope = RL_LAYOUT_WRITE,
                                  .layout = RL_LAYOUT_WRITE};
static const rl_target b = {.name = "b",
                            .len = 1,
                            .scope = RLOCK_LAYOUT_HASH,
                            .layout = RLOCK_LAYOUT_HASH};

static rl_owner owner_of(int i)
{
    return (rl_owner){.serial = (uint64_t)i, .tid = 100 + i, .holds = 1};
}

static rl_holds *table(play *p)
{
    return &play_core(p, 0)->holds;
}

static rl_hold *take(play *p, int owner, const rl_target *what)
{
    p->owner = owner_of(owner);
    rl_hold *h = play_draft(p, 0, what, LEASE_MS);
    rl_hold_expect(h, p->now_us, LEASE_MS);
    rl_mutex_lock(&table(p)->mutex);
    rl_hold_grant_locked(table(p), h, 100, p->now_us, false, p->now_us);
    rl_mutex_unlock(&table(p)->mutex);
    return h;
}

static rl_hold *other_of(play *p, const rl_hold *h)
{
    rl_mutex_lock(&table(p)->mutex);
    rl_hold *other = rl_hold_other_side_locked(table(p), h);
    rl_mutex_unlock(&table(p)->mutex);
    return other;
}

/* --- an owner's two holds ------------------------------------------------- */

TEST(side, an_owner_finds_its_other_side_and_nobody_elses)
{
    play p;
    play_open(&p, 1);
    rl_hold *read = take(&p, 1, &reading), *plain = take(&p, 2, &b);
    EXPECT(!other_of(&p, read) && !other_of(&p, plain));
    rl_hold *write = take(&p, 1, &writing), *others = take(&p, 2, &reading);
    EXPECT(other_of(&p, read) == write && other_of(&p, write) == read);
    EXPECT(!other_of(&p, others));
    play_close(&p);
}

TEST(side, who_wants_the_other_side_says_which_hold_he_has)
{
    play p;
    rl_uuid id;
    play_open(&p, 1);
    rl_hold *read = take(&p, 1, &reading);
    rl_hold *write = play_draft(&p, 0, &writing, LEASE_MS);
    EXPECT(rl_hold_joins(table(&p), write, &id));
    EXPECT(memcmp(&id, &read->id, sizeof id) == 0);
    EXPECT(rl_hold_is_paired(table(&p), read));
    EXPECT(rl_hold_is_paired(table(&p), write));
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_lose_locked(table(&p), read, RL_LOSS_GONE, p.now_us);
    rl_mutex_unlock(&table(&p)->mutex);
    EXPECT(!rl_hold_joins(table(&p), write, &id));
    rl_give_up(play_core(&p, 0), write, p.now_us);
    play_close(&p);
}

TEST(side, who_has_no_other_side_is_not_paired)
{
    play p;
    rl_uuid id;
    play_open(&p, 1);
    rl_hold *others = take(&p, 1, &reading), *plain = take(&p, 2, &b);
    rl_hold *write = play_draft(&p, 0, &writing, LEASE_MS);
    EXPECT(!rl_hold_joins(table(&p), write, &id));
    EXPECT(!rl_hold_is_paired(table(&p), write));
    EXPECT(!rl_hold_is_paired(table(&p), others));
    EXPECT(!rl_hold_is_paired(table(&p), plain));
    rl_give_up(play_core(&p, 0), write, p.now_us);
    play_close(&p);
}

/* Its renewals may say the token that it has: a later one would mean a loss. */
TEST(side, who_begins_to_write_while_it_reads_has_the_new_token_for_both)
{
    play p;
    rl_part x = {.heap = false};
    rl_op op;
    play_open(&p, 1);
    rl_hold *read = take(&p, 1, &reading);
    rl_hold *write = play_draft(&p, 0, &writing, LEASE_MS);
    play_one(&p, &op, &x);
    rl_part_acquire(&x, play_core(&p, 0), write, LEASE_MS, p.now_us);
    x.op = &op;
    EXPECT(x.request.joins);
    EXPECT_INT(play_begin(&p, &op), RL_ASK);
    EXPECT_INT(play_answer(&p, 0, GRANTED(123)), RL_DONE);
    rl_take_over(&x, x.grant.token, p.now_us);
    EXPECT_INT(read->token, 123);
    EXPECT_INT(write->token, 123);
    play_close(&p);
}

/* --- circles -------------------------------------------------------------- */

/* Two read, of whom the second waits for what the third has. */
static void open_readers(play *p, rl_awaited *noted)
{
    rl_fault f;
    rl_owner second = owner_of(2);
    play_open(p, 1);
    take(p, 1, &reading);
    take(p, 2, &reading);
    take(p, 3, &b);
    EXPECT(rl_wait_begins(table(p), &second, &b, p->now_us, noted, &f));
    EXPECT(noted->record);
}

static void expect_circle(const rl_target *what)
{
    play p;
    rl_fault f;
    rl_owner third = owner_of(3);
    rl_awaited noted, none;
    open_readers(&p, &noted);
    EXPECT(!rl_wait_begins(table(&p), &third, what, p.now_us, &none, &f));
    EXPECT_STR(f.text, "deadlock: thread 103 waits for 'job' of thread 102, "
                       "which waits for 'b' of thread 103");
    rl_wait_ends(table(&p), &noted);
    play_close(&p);
}

TEST_CASE(side, one_of_several_who_read_is_in_a_circle_with_who_wants_to_write,
          expect_circle(&writing))
TEST_CASE(side, and_with_who_wants_to_read_behind_one_who_wants_to_write,
          expect_circle(&reading))

/* It is about to wake, and waits for nobody. */
TEST(side, who_has_just_been_let_in_is_in_no_circle)
{
    play p;
    rl_fault f;
    rl_owner first = owner_of(1), second = owner_of(2);
    rl_awaited noted, noted_too;
    play_open(&p, 1);
    take(&p, 1, &reading);
    take(&p, 2, &b);
    EXPECT(rl_wait_begins(table(&p), &second, &reading, p.now_us, &noted, &f));
    take(&p, 2, &reading);
    EXPECT(rl_wait_begins(table(&p), &first, &b, p.now_us, &noted_too, &f));
    rl_wait_ends(table(&p), &noted);
    rl_wait_ends(table(&p), &noted_too);
    play_close(&p);
}

TEST(side, who_is_refused_is_told_one_who_reads_too)
{
    play p;
    rl_fault f;
    play_open(&p, 1);
    take(&p, 1, &reading);
    p.owner = owner_of(1);
    rl_hold *draft = play_draft(&p, 0, &writing, LEASE_MS);
    rl_wait_is_refused(table(&p), draft, p.now_us, &f);
    EXPECT_STR(f.text, "deadlock: others read it, too");
    EXPECT(f.status == RLOCK_EDEADLK && !f.transient);
    take(&p, 2, &reading);
    rl_wait_is_refused(table(&p), draft, p.now_us, &f);
    EXPECT_STR(f.text, "deadlock: thread 102 reads it, too");
    rl_give_up(play_core(&p, 0), draft, p.now_us);
    play_close(&p);
}
