/* Who acts as whom: threads, owners that are none, and their ends. */
#include "run/owner.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rlock/owner.h>

#include "base/os.h"
#include "ear.h"
#include "run/async.h"
#include "shim.h"

static rlock_owner *owner_new(const char *label)
{
    rlock_owner *o = NULL;
    EXPECT_STATUS(rlock_owner_new(label, &o), RLOCK_OK);
    EXPECT(o && o->refs == 1 && o->process == rl_os_process());
    EXPECT_STR(o->self.label, o->label);
    return o;
}

static void expect_refused(const char *text)
{
    EXPECT_STATUS(rl_owner_check(), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, text);
}

/* --- who is who ----------------------------------------------------------- */

static intptr_t serial_of_thread(void *arg)
{
    (void)arg;
    const rl_owner *self = rl_owner_self();
    EXPECT(self->tid == rl_os_thread_id() && !self->label);
    return (intptr_t)self->serial;
}

TEST(owner, each_thread_and_each_owner_is_another_one)
{
    rlock_owner *o = owner_new("a");
    uint64_t own = rl_owner_self()->serial;
    test_thread *t = test_spawn(serial_of_thread, NULL);
    uint64_t thread = (uint64_t)test_join(t);
    EXPECT(own && thread && o->self.serial);
    EXPECT(own != thread && own != o->self.serial && thread != o->self.serial);
    EXPECT_INT(rl_owner_self()->serial, own);
    EXPECT_INT(o->self.tid, rl_os_thread_id());
    rlock_owner_free(o);
}

static void expect_label(const char *label, const char *is)
{
    rlock_owner *o = owner_new(label);
    char by_number[RLOCK_LABEL_MAX + 1];
    snprintf(by_number, sizeof by_number, "owner-%llu",
             (unsigned long long)o->self.serial);
    EXPECT_STR(o->label, is ? is : by_number);
    rlock_owner_free(o);
}

TEST_CASE(owner, has_the_label_that_it_is_given, expect_label("job-7", "job-7"))
TEST_CASE(owner, has_a_label_without_blanks, expect_label("job 7", "job_7"))
TEST_CASE(owner, without_a_label_has_its_number, expect_label(NULL, NULL))
TEST_CASE(owner, with_an_empty_label_has_its_number, expect_label("", NULL))

TEST(owner, a_label_is_cut_and_has_nothing_that_parts_holder_ids)
{
    char text[2 * RLOCK_LABEL_MAX];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    text[2] = ':';
    rlock_owner *o = owner_new(text);
    EXPECT_INT(strlen(o->label), RLOCK_LABEL_MAX);
    EXPECT(!strchr(o->label, ':'));
    rlock_owner_free(o);
}

TEST(owner, cannot_be_had_without_memory_or_a_place)
{
    rlock_owner *o = (rlock_owner *)&o;
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    rlock_status s = rlock_owner_new("a", &o);
    shim_clear(shim_here());
    EXPECT_STATUS(s, RLOCK_ENOMEM);
    EXPECT(!o);
    EXPECT_STATUS(rlock_owner_new("a", NULL), RLOCK_EINVAL);
    rlock_owner_free(NULL);
}

/* --- to act as one -------------------------------------------------------- */

TEST(owner, a_thread_acts_as_the_one_that_was_set_last)
{
    rlock_owner *a = owner_new("a"), *b = owner_new("b");
    EXPECT(!rl_owner_acting() && !rlock_owner_set(a));
    EXPECT(rl_owner_self() == &a->self && rl_owner_acting() == a);
    EXPECT(rlock_owner_set(a) == a && a->refs == 2);
    EXPECT(rlock_owner_set(b) == a && a->refs == 1 && a->user == 0);
    EXPECT(rl_owner_self() == &b->self);
    EXPECT_STATUS(rl_owner_check(), RLOCK_OK);
    EXPECT(rlock_owner_set(NULL) == b && !rl_owner_acting());
    EXPECT_STATUS(rl_owner_check(), RLOCK_OK);
    rlock_owner_free(a);
    rlock_owner_free(b);
}

static intptr_t try_as(void *arg)
{
    rlock_owner *o = arg;
    EXPECT(rlock_owner_is_busy(o));
    rlock_owner_set(o);
    expect_refused("the owner 'a' is used by another thread");
    rlock_owner_set(NULL);
    return 0;
}

static intptr_t use_as(void *arg)
{
    rlock_owner *o = arg;
    EXPECT(!rlock_owner_is_busy(o));
    rlock_owner_set(o);
    EXPECT_STATUS(rl_owner_check(), RLOCK_OK);
    EXPECT(!rlock_owner_is_busy(o));
    return 0; /* the end of the thread gives it back */
}

TEST(owner, one_thread_at_a_time_is_its_user)
{
    rlock_owner *o = owner_new("a");
    EXPECT(!rlock_owner_is_busy(o) && !rlock_owner_is_busy(NULL));
    rlock_owner_set(o);
    EXPECT(!rlock_owner_is_busy(o));
    test_join(test_spawn(try_as, o));
    EXPECT_STATUS(rl_owner_check(), RLOCK_OK);
    rlock_owner_set(NULL);
    EXPECT(!rlock_owner_is_busy(o));
    rlock_owner_free(o);
}

/* Without a listener there is no key whose destructor would see the end. */
static void note_end(void *arg, uint64_t owner)
{
    *(uint64_t *)arg = owner;
}

TEST(owner, the_end_of_its_thread_gives_it_back)
{
    uint64_t ended = 0;
    rl_owner_listener l = {.ended = note_end, .arg = &ended};
    EXPECT(rl_owner_listen(&l));
    rlock_owner *o = owner_new("a");
    test_join(test_spawn(use_as, o));
    EXPECT(o->user == 0 && o->refs == 1 && ended == 0);
    test_join(test_spawn(use_as, o));
    rl_owner_unlisten(&l);
    rlock_owner_free(o);
}

TEST(owner, that_is_freed_is_refused_to_who_still_acts_as_it)
{
    rlock_owner *o = owner_new("a");
    rl_owner_drive_as(o);
    rlock_owner *former = rl_owner_drive_as(o);
    EXPECT(former == o && !rl_owner_has_ended());
    rlock_owner_free(o); /* it is what the thread acts as: no more */
    EXPECT(!rl_owner_acting() && !rl_owner_has_ended());
    rl_owner_drive_as(o);
    EXPECT(rl_owner_has_ended());
    expect_refused("has been freed");
    rl_owner_drive_end(NULL);
    EXPECT_INT(o->refs, 1);
    rl_owner_unref(o);
}

TEST(owner, of_the_parent_is_refused_in_a_child)
{
    rlock_owner *o = owner_new("a");
    rlock_owner_set(o);
    pid_t child = fork();
    if (child == 0) {
        EXPECT(!rlock_owner_is_busy(o));
        EXPECT_STATUS(rl_owner_check(), RLOCK_EFORKED);
        EXPECT_CONTAINS(rlock_last_error()->message, "the owner 'a' was made");
        _exit(0);
    }
    int status;
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT_INT(status, 0);
    rlock_owner_set(NULL);
    rlock_owner_free(o);
}

/* --- to call in its name -------------------------------------------------- */

TEST(owner, who_drives_for_one_is_itself_again_afterwards)
{
    rlock_owner *a = owner_new("a"), *b = owner_new("b");
    rlock_owner_set(a);
    rlock_owner *former = rl_owner_act_as(b);
    EXPECT(former == a && rl_owner_acting() == b && b->refs == 2);
    EXPECT_INT(b->user, a->user);
    rl_owner_drive_end(former);
    EXPECT(rl_owner_acting() == a && b->refs == 1 && b->user == 0);
    former = rl_owner_drive_as(b);
    EXPECT(b->refs == 2 && b->user == 0);
    rl_owner_drive_end(former);
    EXPECT_INT(b->refs, 1);
    former = rl_owner_act_as(a); /* for the same one */
    EXPECT(former == a && a->refs == 3);
    rl_owner_drive_end(former);
    EXPECT(rl_owner_acting() == a && a->refs == 2 && a->user != 0);
    rlock_owner_set(NULL);
    rl_owner_drive_end(NULL);
    rlock_owner_free(a);
    rlock_owner_free(b);
}

TEST(owner, what_it_has_started_keeps_it_busy_for_everybody)
{
    rl_started s = {.owner = NULL};
    rlock_owner *o = owner_new("a");
    rlock_owner_set(o);
    EXPECT_STATUS(rl_owner_engage(&s), RLOCK_OK);
    EXPECT(s.owner == o && o->refs == 3 && o->user == 0);
    EXPECT(rlock_owner_is_busy(o));
    expect_refused("has an operation under way");
    EXPECT_STATUS(rl_owner_engage(&s), RLOCK_EINVAL);
    EXPECT_INT(o->refs, 3);
    rlock_owner_set(NULL);
    rlock_owner_set(o); /* who drives it is its user */
    EXPECT_INT(o->user, 0);
    rl_owner_disengage(o);
    EXPECT(!rlock_owner_is_busy(o) && !o->started);
    EXPECT_STATUS(rl_owner_check(), RLOCK_OK);
    rl_owner_unref(o);
    rlock_owner_set(NULL);
    rlock_owner_free(o);
}

TEST(owner, a_thread_by_itself_starts_nothing)
{
    rl_started s = {.owner = NULL};
    EXPECT_STATUS(rl_owner_engage(&s), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "acts as no owner");
    EXPECT(!s.owner);
}

TEST(owner, one_piece_of_memory_is_kept_for_its_next_start)
{
    rlock_owner *o = owner_new("a");
    void *first = malloc(8), *second = malloc(8);
    EXPECT(!rl_owner_take_spare());
    rl_owner_leave_spare(NULL, malloc(8)); /* nobody's: it is freed */
    rl_owner_leave_spare(o, first);
    EXPECT(!rl_owner_take_spare()); /* not this thread's */
    rlock_owner_set(o);
    EXPECT(rl_owner_take_spare() == first && !rl_owner_take_spare());
    rl_owner_leave_spare(o, first);
    rl_owner_leave_spare(o, second);
    EXPECT(o->spare == second);
    rlock_owner_set(NULL);
    rlock_owner_free(o); /* and the spare with it */
}

/* --- their ends ----------------------------------------------------------- */

TEST(owner, whoever_listens_is_told_that_one_is_freed)
{
    ear e[3];
    for (int i = 0; i < 3; i++)
        listen_by(&e[i]);
    rl_owner_unlisten(&e[1].l);
    rlock_owner *o = owner_new("a");
    uint64_t serial = o->self.serial;
    rlock_owner_free(o);
    EXPECT(e[0].told == 1 && e[1].told == 0 && e[2].told == 1);
    EXPECT(e[0].owner == serial && e[2].owner == serial);
    rl_owner_unlisten(&e[0].l);
    rl_owner_unlisten(&e[2].l);
    rl_owner_report_end(serial);
    EXPECT(e[0].told == 1 && e[2].told == 1);
}

/* Once anybody listens, which each client does. */
TEST(owner, a_child_is_another_thread_and_holds_nothing)
{
    ear e;
    listen_by(&e);
    rl_owner *self = rl_owner_self();
    self->holds = 1;
    pid_t child = fork();
    if (child == 0) {
        bool other = rl_owner_self()->tid == rl_os_thread_id();
        _exit(other && rl_owner_self()->holds == 0 ? 0 : 1);
    }
    int status;
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT_INT(status, 0);
    self->holds = 0;
    rl_owner_unlisten(&e.l);
}

static intptr_t end_with(void *holds)
{
    EXPECT(rl_owner_watch());
    rl_owner_self()->holds = (int)(intptr_t)holds;
    return (intptr_t)rl_owner_self()->serial;
}

TEST(owner, the_end_of_a_thread_that_holds_something_is_told_once)
{
    ear e;
    listen_by(&e);
    test_join(test_spawn(end_with, (void *)0));
    EXPECT_INT(e.told, 0);
    uint64_t serial = (uint64_t)test_join(test_spawn(end_with, (void *)2));
    EXPECT_INT(e.told, 1);
    EXPECT_INT(e.owner, serial);
    rl_owner_unlisten(&e.l);
}

/* What it was granted since is nobody's. */
TEST(owner, that_was_freed_meanwhile_has_ended_with_what_it_started)
{
    ear e;
    rl_started s = {.owner = NULL};
    listen_by(&e);
    rlock_owner *o = owner_new("a");
    rlock_owner_set(o);
    EXPECT_STATUS(rl_owner_engage(&s), RLOCK_OK);
    atomic_store(&o->self.ended, true);
    rl_owner_disengage(o);
    EXPECT(e.told == 1 && e.owner == o->self.serial);
    atomic_store(&o->self.ended, false);
    rl_owner_disengage(o);
    EXPECT_INT(e.told, 1);
    rl_owner_unlisten(&e.l);
    rl_owner_unref(o);
    rlock_owner_set(NULL);
    rlock_owner_free(o);
}
