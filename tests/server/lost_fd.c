/* rlock_lost_fd() of a lock on one server: when it tells, and how long it is
   there. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "busy.h"
#include "descriptor.h"
#include "other_client.h"

/* --- a loss --------------------------------------------------------------- */

/* A client that has no on_event. */
static scene quiet_scene(int64_t max_hold_ms)
{
    scene s = scene_server(NULL);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.watchdog_lease_ms = BRISK_MS;
    o.max_hold_ms = max_hold_ms;
    s.cl = server_client(s.sv, &o);
    s.lk = test_lock(s.cl, SCENE_LOCK);
    return s;
}

TEST(lost_fd, is_readable_at_the_deadline_of_a_lease_and_not_before)
{
    scene s = quiet_scene(0);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK);
    int fd = lost_fd_of_held(s.lk);
    EXPECT_BETWEEN(fd_wait(fd, SOON) - began, 985, 1000 + SLACK_MS);
    EXPECT(fd_is_readable(fd));
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(lost_fd, tells_what_is_believed_after_an_extend)
{
    scene s = quiet_scene(0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 400), RLOCK_OK);
    int fd = lost_fd_of_held(s.lk);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_extend(s.lk, 1000), RLOCK_OK);
    EXPECT_BETWEEN(fd_wait(fd, SOON) - began, 985, 1000 + SLACK_MS);
    scene_stop(&s);
}

TEST(lost_fd, is_quiet_while_the_hold_is_renewed)
{
    scene s = scene_held(900, 0);
    int fd = lost_fd_of_held(s.lk);
    expect_renewals(&s, 4);
    EXPECT(!fd_is_readable(fd));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lost_fd, is_readable_when_a_renewal_finds_the_lock_gone)
{
    scene s = scene_held(6000, 0);
    int fd = lost_fd_of_held(s.lk);
    int64_t began = test_now_ms();
    server_cmd(s.sv, "DEL " SCENE_LOCK);
    EXPECT_BETWEEN(fd_wait(fd, SOON) - began, 0, 5000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(lost_fd, is_readable_when_the_lock_was_freed_by_force)
{
    scene s = scene_held(6000, 0);
    other_client r = other_client_join(&s, NULL);
    int fd = lost_fd_of_held(s.lk);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_force_unlock(r.lk), RLOCK_OK);
    EXPECT_BETWEEN(fd_wait(fd, SOON) - began, 0, 5000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    other_client_leave(&r);
    scene_stop(&s);
}

TEST(lost_fd, is_readable_at_the_deadline_when_the_server_is_stopped)
{
    scene s = quiet_scene(0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int fd = lost_fd_of_held(s.lk);
    int64_t began = test_now_ms();
    server_pause(s.sv);
    EXPECT_BETWEEN(fd_wait(fd, SOON) - began, 0, BRISK_MS + SLACK_MS);
    EXPECT(!rlock_is_held(s.lk));
    server_resume(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(lost_fd, is_readable_when_the_hold_is_older_than_max_hold_ms)
{
    scene s = quiet_scene(1800);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int fd = lost_fd_of_held(s.lk);
    EXPECT_BETWEEN(fd_wait(fd, SOON) - began, 1790, 1800 + SLACK_MS);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

/* An explicit lease is looked at by nobody else. */
TEST(lost_fd, is_readable_when_a_call_finds_the_lock_gone)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    int fd = lost_fd_of_held(s.lk);
    server_cmd(s.sv, "DEL " SCENE_LOCK);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_LOST);
    EXPECT(fd_is_readable(fd));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT(!fd_is_open(fd));
    scene_stop(&s);
}

TEST(lost_fd, of_a_hold_that_is_lost_already_is_readable)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 300), RLOCK_OK);
    lock_times(s.lk, 1);
    server_cmd(s.sv, "DEL " SCENE_LOCK);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_LOST);
    int fd = lost_fd_of_lost(s.lk);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_INT(lost_fd_of_lost(s.lk), fd);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    expect_no_lost_fd(s.lk, RLOCK_NOT_HELD);
    EXPECT(!fd_is_open(fd));
    scene_stop(&s);
}

static void expect_told_of_layout(scene *s, rlock_layout layout)
{
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk;
    o.layout = layout;
    o.local_levels = true;
    EXPECT_STATUS(rlock_new_ex(s->cl, "other", 5, &o, &lk), RLOCK_OK);
    lock_times(lk, 2);
    int fd = lost_fd_of_held(lk);
    server_cmd(s->sv, "DEL other");
    fd_wait(fd, SOON);
    unlock_times(lk, 2, RLOCK_LOST);
    EXPECT(!fd_is_open(fd));
    rlock_free(lk);
}

TEST(lost_fd, tells_of_locks_in_every_layout)
{
    scene s = scene_start(BRISK_MS, 0);
    expect_told_of_layout(&s, RLOCK_LAYOUT_HASH);
    expect_told_of_layout(&s, RLOCK_LAYOUT_STRING);
    expect_told_of_layout(&s, RLOCK_LAYOUT_TIMESTAMP);
    scene_stop(&s);
}

/* --- one for each hold ---------------------------------------------------- */

TEST(lost_fd, is_the_same_for_all_levels_and_handles_and_closed_by_the_last)
{
    scene s = scene_held(0, 0);
    rlock *same = test_lock(s.cl, SCENE_LOCK);
    int fd = lost_fd_of_held(s.lk);
    EXPECT_INT(lost_fd_of_held(s.lk), fd);
    lock_times(same, 2);
    EXPECT_INT(lost_fd_of_held(same), fd);
    unlock_times(s.lk, 2, RLOCK_OK);
    EXPECT_INT(lost_fd_of_held(s.lk), fd);
    rlock_free(same);
    EXPECT(fd_is_open(fd));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!fd_is_open(fd));
    scene_stop(&s);
}

TEST(lost_fd, of_the_next_hold_knows_nothing_of_the_last_one)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 200), RLOCK_OK);
    fd_wait(lost_fd_of_held(s.lk), SOON);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    lost_fd_of_held(s.lk);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lost_fd, is_closed_also_when_the_unlock_fails)
{
    scene s = scene_held_proxied(0, 500);
    int fd = lost_fd_of_held(s.lk);
    proxy_refuse(s.px, true);
    server_pause(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EIO);
    EXPECT(!fd_is_open(fd));
    server_resume(s.sv);
    scene_stop(&s);
}

static intptr_t hold_another(void *lk)
{
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    int fd = lost_fd_of_held(lk);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT(!fd_is_open(fd));
    return fd;
}

static intptr_t expect_not_held(void *lk)
{
    expect_no_lost_fd(lk, RLOCK_NOT_HELD);
    return 0;
}

TEST(lost_fd, is_the_owners)
{
    scene s = scene_held(0, 0);
    rlock *other = test_lock(s.cl, "other");
    int fd = lost_fd_of_held(s.lk);
    test_join(test_spawn(expect_not_held, s.lk));
    EXPECT(test_join(test_spawn(hold_another, other)) != fd);
    EXPECT(fd_is_open(fd) && !fd_is_readable(fd));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_free(other);
    scene_stop(&s);
}

TEST(lost_fd, a_thousand_holds_leave_no_descriptor)
{
    scene s = scene_held(0, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    int before = fds_open();
    for (int i = 0; i < 1000; i++) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        lost_fd_of_held(s.lk);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    EXPECT_INT(fds_open(), before);
    scene_stop(&s);
}

static void ask(busy *b)
{
    lost_fd_of_held(b->lk);
}

TEST(lost_fd, stays_with_its_owner_when_the_lock_is_passed_on)
{
    scene s = scene_server(NULL);
    s.opts.turn_ms = 5;
    s.opts.pool_size = 1; /* or a second connection may come meanwhile */
    scene_client(&s, 0, 0);
    busy b = {.lk = s.lk};
    busy_start(&b, 100);
    /* With the doorbell's connection all are there. */
    EVENTUALLY(SOON, server_info(s.sv, "pubsub_channels") == 1);
    busy_stop(&b);
    uint64_t passes = stats_of(s.cl).passes;
    int before = fds_open();
    b = (busy){.lk = s.lk, .inside = ask};
    busy_start(&b, 1000);
    busy_stop(&b);
    EXPECT(stats_of(s.cl).passes > passes);
    EXPECT_BETWEEN(fds_open(), 0, before);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    scene_stop(&s);
}

/* --- ends ----------------------------------------------------------------- */

TEST(lost_fd, of_a_freed_client_is_readable_until_its_handles_are_freed)
{
    scene s = scene_held(0, 0);
    int fd = lost_fd_of_held(s.lk);
    rlock_client_free(s.cl);
    s.cl = NULL;
    EXPECT(fd_is_readable(fd));
    expect_no_lost_fd(s.lk, RLOCK_ECLOSED);
    EXPECT(fd_is_readable(fd));
    rlock_free(s.lk);
    s.lk = NULL;
    EXPECT(!fd_is_open(fd));
    scene_stop(&s);
}

TEST(lost_fd, of_a_client_that_has_released_all_is_readable_until_then_too)
{
    scene s = scene_held(0, 0);
    int fd = lost_fd_of_held(s.lk);
    EXPECT_STATUS(rlock_client_close(s.cl, RLOCK_CLOSE_RELEASE_HELD), RLOCK_OK);
    s.cl = NULL;
    EXPECT(fd_is_readable(fd));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_ECLOSED);
    EXPECT(fd_is_readable(fd));
    rlock_free(s.lk);
    s.lk = NULL;
    EXPECT(!fd_is_open(fd));
    scene_stop(&s);
}

TEST(lost_fd, of_a_client_without_handles_is_closed_when_it_is_freed)
{
    scene s = scene_held(0, 0);
    int fd = lost_fd_of_held(s.lk);
    rlock_free(s.lk);
    s.lk = NULL;
    EXPECT(fd_is_open(fd) && !fd_is_readable(fd));
    scene_free_client(&s);
    EXPECT(!fd_is_open(fd));
    scene_stop(&s);
}

enum { WORKERS = 4 };

/* Locks of its own until the client is freed, which it may be at any moment:
   what it was told last is good to poll, and tells. */
static intptr_t work_until_closed(void *lk)
{
    int fd = -1;
    rlock_status s = RLOCK_OK;
    while (s == RLOCK_OK) {
        s = rlock_lock(lk);
        fd = s == RLOCK_OK ? rlock_lost_fd(lk) : -1;
        if (s == RLOCK_OK && fd < 0)
            s = rlock_last_error()->status;
        if (fd >= 0)
            test_pause_ms(1); /* the work */
        if (s == RLOCK_OK)
            s = rlock_unlock(lk);
    }
    EXPECT_STATUS(s, RLOCK_ECLOSED);
    if (fd >= 0)
        fd_wait(fd, SOON);
    return 0;
}

TEST(lost_fd, is_good_to_poll_whenever_the_client_is_freed)
{
    scene s = scene_start(0, 0);
    test_thread *t[WORKERS];
    rlock *lk[WORKERS];
    int before = fds_open();
    for (int i = 0; i < WORKERS; i++) {
        char name[] = {(char)('a' + i), '\0'};
        lk[i] = test_lock(s.cl, name);
        t[i] = test_spawn(work_until_closed, lk[i]);
    }
    EVENTUALLY(SOON, stats_of(s.cl).releases > 100);
    rlock_client_free(s.cl);
    s.cl = NULL;
    for (int i = 0; i < WORKERS; i++)
        test_join(t[i]);
    for (int i = 0; i < WORKERS; i++)
        rlock_free(lk[i]);
    scene_free_client(&s);
    EXPECT_BETWEEN(fds_open(), 0, before);
    scene_stop(&s);
}

static intptr_t hold_and_end(void *lk)
{
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    return lost_fd_of_held(lk);
}

TEST(lost_fd, is_closed_when_the_owning_thread_ends)
{
    scene s = scene_start(0, 0);
    int fd = (int)test_join(test_spawn(hold_and_end, s.lk));
    EXPECT(!fd_is_open(fd));
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, SOON);
    scene_stop(&s);
}

typedef struct short_hold {
    rlock *lk;
    int pipe[2]; /* tells the number; and when to end */
} short_hold;

static intptr_t hold_until_told(void *arg)
{
    const short_hold *x = arg;
    EXPECT_STATUS(rlock_lock(x->lk), RLOCK_OK);
    int fd = lost_fd_of_held(x->lk);
    EXPECT_INT(write(x->pipe[1], &fd, sizeof fd), sizeof fd);
    test_pause_ms(100); /* the other may poll by then, or not */
    return 0;
}

TEST(lost_fd, wakes_who_polls_for_an_owner_that_ends)
{
    scene s = scene_start(0, 0);
    short_hold x = {.lk = s.lk};
    EXPECT_INT(pipe(x.pipe), 0);
    test_thread *t = test_spawn(hold_until_told, &x);
    struct pollfd p = {.events = POLLIN};
    EXPECT_INT(read(x.pipe[0], &p.fd, sizeof p.fd), sizeof p.fd);
    EXPECT_INT(poll(&p, 1, SOON), 1);
    test_join(t);
    close(x.pipe[0]);
    close(x.pipe[1]);
    scene_stop(&s);
}

/* Not if a thread of the library had the hold table at the fork. */
static bool is_closed_in_child(scene *s, int fd)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        expect_no_lost_fd(s->lk, RLOCK_EFORKED);
        scene_free_client(s);
        _exit(fd_is_open(fd) ? 2 : 0);
    }
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) != 1);
    return WEXITSTATUS(status) == 0;
}

TEST(lost_fd, of_a_child_is_a_copy_that_tells_the_parent_nothing)
{
    scene s = scene_held(0, 0);
    int fd = lost_fd_of_held(s.lk);
    EVENTUALLY(SOON, is_closed_in_child(&s, fd));
    EXPECT(fd_is_open(fd) && !fd_is_readable(fd));
    EXPECT_INT(lost_fd_of_held(s.lk), fd);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- bad use -------------------------------------------------------------- */

TEST(lost_fd, without_a_hold_says_why_there_is_none)
{
    scene s = scene_start(0, 0);
    expect_no_lost_fd(NULL, RLOCK_EINVAL);
    expect_no_lost_fd(s.lk, RLOCK_NOT_HELD);
    EXPECT_CONTAINS(rlock_last_error()->message, SCENE_LOCK);
    scene_stop(&s);
}

TEST(lost_fd, without_a_free_descriptor_says_so_and_may_be_asked_again)
{
    scene s = scene_held(0, 0);
    struct rlimit limit, none;
    EXPECT_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    EXPECT_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
    expect_no_lost_fd(s.lk, RLOCK_ENOMEM);
    EXPECT_INT(rlock_last_error()->sys_errno, EMFILE);
    EXPECT_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT(rlock_is_held(s.lk));
    lost_fd_of_held(s.lk);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* It must not; but the file that has its number now is not to pay for it. */
TEST(lost_fd, that_the_program_has_closed_is_let_alone)
{
    scene s = scene_start(0, 0);
    int mine[2];
    EXPECT_INT(pipe(mine), 0);
    for (int lost = 0; lost < 2; lost++) {
        EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
        int fd = lost_fd_of_held(s.lk);
        EXPECT_INT(dup2(mine[lost], fd), fd);
        if (lost)
            server_cmd(s.sv, "DEL " SCENE_LOCK);
        EXPECT_STATUS(rlock_extend(s.lk, 60000), lost ? RLOCK_LOST : RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(s.lk), lost ? RLOCK_LOST : RLOCK_OK);
        EXPECT(fcntl(fd, F_GETFD) >= 0 && !fd_is_readable(mine[0]));
        close(fd);
    }
    close(mine[0]);
    close(mine[1]);
    scene_stop(&s);
}
