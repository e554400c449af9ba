/*
 * Owners and what is done in their names: calls, operations that they have started,
 * and what is told when they end meanwhile.
 */
#include "run/owner.h"

#include <pthread.h>

#include <rlock/owner.h>

#include "base/os.h"
#include "ear.h"
#include "jobs.h"

static rlock_owner *open_owner(ear *e)
{
    rlock_owner *o = NULL;
    listen_by(e);
    EXPECT_STATUS(rlock_owner_new("a", &o), RLOCK_OK);
    return o;
}

static int cancel_state(void)
{
    int state, now;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcancelstate(state, &now);
    return state;
}

/* --- who is apart --------------------------------------------------------- */

TEST(owner_calls, who_is_apart_is_another_one_each_time_and_has_the_threads_id)
{
    rl_owner a = rl_owner_apart(), b = rl_owner_apart();
    uint64_t own = rl_owner_self()->serial;
    EXPECT(a.serial && b.serial && a.serial != b.serial);
    EXPECT(a.serial != own && b.serial != own);
    EXPECT(a.tid == rl_os_thread_id() && a.holds == 0 && !a.label);
}

TEST(owner_calls, to_free_one_owner_leaves_who_acts_as_another_alone)
{
    ear e;
    rlock_owner *o = open_owner(&e), *b = NULL;
    EXPECT_STATUS(rlock_owner_new("b", &b), RLOCK_OK);
    rlock_owner_set(o);
    rlock_owner_free(b);
    EXPECT(rl_owner_acting() == o && o->user != 0);
    rlock_owner_free(o);
    EXPECT(!rl_owner_acting());
    rl_owner_unlisten(&e.l);
}

/* --- a call that the thread drives ---------------------------------------- */

TEST(owner_calls, a_thread_by_itself_calls_as_nobody)
{
    rlock_owner *as = (rlock_owner *)&as;
    EXPECT_STATUS(rl_owner_begin(&as), RLOCK_OK);
    EXPECT(!as);
}

TEST(owner_calls, an_owner_stays_until_the_call_in_its_name_is_over)
{
    ear e;
    rlock_owner *as, *o = open_owner(&e);
    rlock_owner_set(o);
    EXPECT_STATUS(rl_owner_begin(&as), RLOCK_OK);
    EXPECT(as == o && o->refs == 3);
    EXPECT(rl_owner_end(o));
    EXPECT(o->refs == 2 && e.told == 0);
    rlock_owner_set(NULL);
    rlock_owner_free(o);
    rl_owner_unlisten(&e.l);
}

TEST(owner_calls, who_may_not_call_as_an_owner_does_not_keep_it)
{
    ear e;
    rl_started s = {.owner = NULL};
    rlock_owner *as, *o = open_owner(&e);
    rlock_owner_set(o);
    EXPECT_STATUS(rl_owner_engage(&s), RLOCK_OK);
    int refs = (int)o->refs;
    EXPECT_STATUS(rl_owner_begin(&as), RLOCK_EINVAL);
    EXPECT_INT(o->refs, refs);
    rl_owner_disengage(o);
    rl_owner_unref(o);
    rlock_owner_set(NULL);
    rlock_owner_free(o);
    rl_owner_unlisten(&e.l);
}

/* What it was granted after that is told once more. */
TEST(owner_calls, an_owner_that_is_freed_during_the_call_is_told_of_at_its_end)
{
    ear e;
    rlock_owner *as, *o = open_owner(&e);
    uint64_t serial = o->self.serial;
    rlock_owner_set(o);
    EXPECT_STATUS(rl_owner_begin(&as), RLOCK_OK);
    rlock_owner_free(o);
    EXPECT(!rl_owner_acting() && e.told == 1 && o->refs == 1);
    EXPECT(!rl_owner_end(o));
    EXPECT(e.told == 2 && e.owner == serial);
    rl_owner_unlisten(&e.l);
}

TEST(owner_calls,
     who_was_set_before_is_not_claimed_while_what_it_started_goes_on)
{
    ear e;
    rl_started s = {.owner = NULL};
    rlock_owner *o = open_owner(&e), *b = NULL;
    EXPECT_STATUS(rlock_owner_new("b", &b), RLOCK_OK);
    rlock_owner_set(o);
    EXPECT_STATUS(rl_owner_engage(&s), RLOCK_OK);
    rlock_owner *former = rl_owner_act_as(b);
    EXPECT(former == o && b->user != 0 && o->user == 0);
    rl_owner_drive_end(former);
    EXPECT(o->user == 0 && b->user == 0);
    rl_owner_disengage(o);
    former = rl_owner_act_as(b);
    rl_owner_drive_end(former);
    EXPECT(o->user != 0); /* the thread acts as it still */
    rl_owner_unref(o);
    rlock_owner_set(NULL);
    EXPECT_INT(o->user, 0);
    rlock_owner_free(o);
    rlock_owner_free(b);
    rl_owner_unlisten(&e.l);
}

/* --- an operation that it has started ------------------------------------- */

typedef struct works {
    stage g;
    job x;
    ear e;
    rlock_owner *o;
    uint64_t serial;
} works;

/* It sleeps, for ever. */
static void open_works(works *w, bool unlocks)
{
    open_stage(&w->g);
    w->o = open_owner(&w->e);
    w->serial = w->o->self.serial;
    make_job(&w->g, &w->x, 60000 * MS);
    rlock_owner_set(w->o);
    EXPECT_STATUS(rl_owner_engage(&w->x.s), RLOCK_OK);
    rlock_owner_set(NULL);
    w->x.s.unlocks = unlocks;
    rl_async_put(w->g.a, &w->x.s);
    take_turn(&w->g);
    EXPECT(w->x.resumed == 1 && !w->x.overs);
}

static void expect_canceled(works *w, bool canceled)
{
    take_turn(&w->g);
    EXPECT_INT(w->x.overs, canceled);
    if (canceled)
        EXPECT_INT(w->x.why, RL_WAKE_CANCEL);
}

static void close_works(works *w)
{
    rl_started_cancel(&w->x.s);
    take_turn(&w->g);
    EXPECT_INT(w->x.overs, 1);
    rl_owner_disengage(w->o);
    rl_owner_unref(w->o);
    rl_owner_unlisten(&w->e.l);
    close_stage(&w->g);
}

TEST(owner_calls, to_cancel_an_owner_ends_what_it_has_started)
{
    works w;
    open_works(&w, false);
    int state = cancel_state();
    rlock_owner_cancel(NULL);
    rlock_owner_cancel(w.o);
    EXPECT_INT(cancel_state(), state);
    expect_canceled(&w, true);
    EXPECT_INT(w.e.told, 0);
    rlock_owner_free(w.o);
    close_works(&w);
}

/* They stay the parent's. */
TEST(owner_calls, an_owner_of_another_process_is_neither_canceled_nor_told_of)
{
    works w;
    open_works(&w, false);
    w.o->process--;
    rlock_owner_cancel(w.o);
    expect_canceled(&w, false);
    rlock_owner_free(w.o);
    expect_canceled(&w, false);
    EXPECT_INT(w.e.told, 0);
    EXPECT_INT(w.o->refs, 1);
    w.o->process++;
    close_works(&w);
}

TEST(owner_calls, to_free_an_owner_ends_what_it_has_started_and_is_told)
{
    works w;
    open_works(&w, false);
    int state = cancel_state();
    rlock_owner_free(w.o);
    EXPECT_INT(cancel_state(), state);
    EXPECT(w.e.told == 1 && w.e.owner == w.serial && w.o->self.ended);
    expect_canceled(&w, true);
    close_works(&w);
    EXPECT_INT(w.e.told, 2); /* what it was granted since */
}

/* That goes on, and ends what it holds. */
TEST(owner_calls, of_an_owner_that_is_freed_an_unlock_goes_on_and_is_told_then)
{
    works w;
    open_works(&w, true);
    rlock_owner_free(w.o);
    EXPECT(w.e.told == 0 && w.o->self.ended);
    rl_owner_has_unlocked(&w.x.s);
    EXPECT(!w.x.s.unlocks && w.e.told == 1 && w.e.owner == w.serial);
    close_works(&w);
}

TEST(owner_calls, an_unlock_of_an_owner_that_is_there_is_told_nobody)
{
    works w;
    open_works(&w, true);
    rl_owner_has_unlocked(&w.x.s);
    EXPECT(!w.x.s.unlocks && w.e.told == 0);
    rlock_owner_free(w.o);
    EXPECT_INT(w.e.told, 1);
    close_works(&w);
}

/* --- the end of a thread -------------------------------------------------- */

static pthread_key_t key;
static int rounds; /* of destructors, until the program lets go */

/* The program's own destructor lets go of what the thread holds. */
static void let_go(void *value)
{
    if (--rounds > 0)
        pthread_setspecific(key, value);
    else
        rl_owner_self()->holds = 0;
}

static intptr_t end_holding(void *arg)
{
    (void)arg;
    EXPECT(rl_owner_watch() && rl_owner_watch());
    rl_owner_self()->holds = 1;
    EXPECT_INT(pthread_setspecific(key, &key), 0);
    return 0;
}

static void expect_told(int after_rounds, int told)
{
    ear e;
    rlock_owner *o = open_owner(&e);
    rlock_owner_free(o);
    e.told = 0;
    rounds = after_rounds;
    EXPECT_INT(pthread_key_create(&key, let_go), 0);
    test_join(test_spawn(end_holding, NULL));
    EXPECT_INT(e.told, told);
    pthread_key_delete(key);
    rl_owner_unlisten(&e.l);
}

TEST_CASE(owner_calls, what_a_programs_destructor_unlocks_has_not_been_held,
          expect_told(1, 0))
TEST_CASE(owner_calls, what_it_unlocks_in_the_second_round_has_not_been_held,
          expect_told(2, 0))

/* It locks as the thread ends already. */
static void take_late(void *value)
{
    (void)value;
    EXPECT(rl_owner_watch());
    rl_owner_self()->holds = 1;
}

static intptr_t end_without(void *arg)
{
    (void)arg;
    EXPECT_INT(pthread_setspecific(key, &key), 0);
    return 0;
}

TEST(owner_calls, what_a_programs_destructor_locks_is_told)
{
    ear e;
    if (SANITIZED)
        SKIP(
            "a sanitizer has left the thread by the last round of destructors");
    rlock_owner *o = open_owner(&e);
    rlock_owner_free(o);
    e.told = 0;
    EXPECT_INT(pthread_key_create(&key, take_late), 0);
    test_join(test_spawn(end_without, NULL));
    EXPECT_INT(e.told, 1);
    pthread_key_delete(key);
    rl_owner_unlisten(&e.l);
}

TEST(owner_calls, without_memory_the_end_of_a_thread_cannot_be_watched)
{
    ear e;
    rlock_owner *o = open_owner(&e);
    shim_fail(shim_here(), SHIM_SPECIFIC, 1, 1, ENOMEM);
    bool ok = rl_owner_watch();
    shim_clear(shim_here());
    EXPECT(!ok && rl_owner_watch());
    shim_fail(shim_here(), SHIM_SPECIFIC, 1, SHIM_EVER, ENOMEM);
    ok = rl_owner_watch(); /* it is already */
    shim_clear(shim_here());
    EXPECT(ok);
    rlock_owner_free(o);
    rl_owner_unlisten(&e.l);
}
