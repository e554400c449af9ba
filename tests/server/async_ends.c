/*
 * How what has been started ends: whatever the program does in a callback, or
 * frees meanwhile, each start is called back once, or, in a child of fork(),
 * never.
 */
#include "loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- in a callback -------------------------------------------------------- */

static void free_lock(request *r)
{
    rlock_free(r->lk);
    r->lk = NULL;
}

TEST(async_ends, a_callback_may_free_the_lock)
{
    scene s = scene_start(0, 0);
    request r = request_new(test_lock(s.cl, "other"));
    r.then = free_lock;
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, 60000), RLOCK_OK);
    EXPECT(!r.lk);
    request_free(&r);
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, SOON);
    scene_stop(&s);
}

TEST(async_ends, a_lock_may_be_freed_as_soon_as_the_start_has_returned)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, "other", 100);
    request r = request_new(test_lock(s.cl, "other"));
    EXPECT_STATUS(request_acquire(&r, RLOCK_FOREVER, RLOCK_WATCHDOG), RLOCK_OK);
    rlock_free(r.lk);
    LOOP_UNTIL(s.cl, r.told);
    EXPECT_STATUS(r.status, RLOCK_OK);
    r.lk = test_lock(s.cl, "other");
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    rlock_free(r.lk);
    request_free(&r);
    scene_stop(&s);
}

static void go_round(request *r)
{
    int *left = r->arg;
    EXPECT_STATUS(r->status, RLOCK_OK);
    if (--*left == 0)
        return;
    EXPECT_STATUS(*left % 2 ? request_acquire(r, 0, RLOCK_WATCHDOG)
                            : request_unlock(r),
                  RLOCK_OK);
}

TEST(async_ends, a_callback_may_start_the_next)
{
    scene s = scene_start(0, 0);
    int left = 201;
    request r = request_new(s.lk);
    r.then = go_round;
    r.arg = &left;
    EXPECT_STATUS(request_acquire(&r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    LOOP_UNTIL(s.cl, left == 0);
    EXPECT_INT(r.told, 201);
    EXPECT_STATUS((r.then = NULL, loop_unlock(s.cl, &r)), RLOCK_OK);
    request_free(&r);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

static void dispatch_again(request *r)
{
    EXPECT_STATUS(rlock_client_dispatch(r->arg), RLOCK_OK);
}

TEST(async_ends, a_callback_may_dispatch)
{
    enum { N = 20 };
    scene s = scene_start(0, 0);
    request r[N];
    for (int i = 0; i < N; i++) {
        r[i] = request_new(s.lk);
        r[i].then = dispatch_again;
        r[i].arg = s.cl;
        EXPECT_STATUS(request_unlock(&r[i]), RLOCK_OK);
    }
    for (int i = 0; i < N; i++) {
        LOOP_UNTIL(s.cl, r[i].told);
        EXPECT_STATUS(r[i].status, RLOCK_NOT_HELD);
    }
    for (int i = 0; i < N; i++) {
        EXPECT_INT(r[i].told, 1);
        request_free(&r[i]);
    }
    scene_stop(&s);
}

static void free_owner(request *r)
{
    EXPECT(rlock_is_held(r->lk)); /* the thread acts as the owner */
    rlock_owner_free(r->owner);
    r->owner = NULL;
    EXPECT(!rlock_is_held(r->lk));
}

TEST(async_ends, a_callback_may_free_the_owner)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    r.then = free_owner;
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, 60000), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, SOON);
    EXPECT(!rlock_owner_set(NULL));
    scene_stop(&s);
}

TEST(async_ends, nobody_has_to_be_called_back)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    rlock_owner_set(r.owner);
    EXPECT_STATUS(rlock_unlock_start(s.lk, NULL, NULL), RLOCK_OK);
    rlock_owner_set(NULL);
    loop_turn(s.cl);
    expect_nothing_left(s.sv);
    request_free(&r);
    scene_stop(&s);
}

/* --- canceled ------------------------------------------------------------- */

static void begin_to_wait(scene *s, request *r)
{
    *r = request_new(s->lk);
    EXPECT_STATUS(request_acquire(r, RLOCK_FOREVER, RLOCK_WATCHDOG), RLOCK_OK);
}

TEST(async_ends, a_cancel_ends_the_waits_of_all_owners_on_that_handle)
{
    scene s = scene_start(0, 0);
    rlock *other = test_lock(s.cl, SCENE_LOCK);
    request a = request_new(s.lk), b = request_new(s.lk);
    request c = request_new(other);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    EXPECT_STATUS(request_acquire(&a, RLOCK_FOREVER, 60000), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&b, RLOCK_FOREVER, 60000), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&c, RLOCK_FOREVER, 60000), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 3);
    rlock_cancel(s.lk);
    LOOP_UNTIL(s.cl, a.told && b.told);
    EXPECT_STATUS(a.status, RLOCK_CANCELED);
    EXPECT_STATUS(b.status, RLOCK_CANCELED);
    EXPECT_INT(c.told, 0);
    rlock_cancel(other);
    LOOP_UNTIL(s.cl, c.told);
    EXPECT_STATUS(c.status, RLOCK_CANCELED);
    request_free(&a);
    request_free(&b);
    request_free(&c);
    rlock_free(other);
    scene_stop(&s);
}

TEST(async_ends, a_cancel_of_an_owner_ends_its_wait_and_nobody_elses)
{
    scene s = scene_start(0, 0);
    request a, b;
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    begin_to_wait(&s, &a);
    begin_to_wait(&s, &b);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 2);
    rlock_owner_cancel(a.owner);
    LOOP_UNTIL(s.cl, a.told);
    EXPECT_STATUS(a.status, RLOCK_CANCELED);
    EXPECT_INT(b.told, 0);
    rlock_owner_cancel(b.owner);
    LOOP_UNTIL(s.cl, b.told);
    EXPECT_STATUS(b.status, RLOCK_CANCELED);
    request_free(&a);
    request_free(&b);
    scene_stop(&s);
}

TEST(async_ends, a_cancel_of_an_owner_ends_no_later_wait_and_no_other_call)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    rlock_owner_cancel(NULL);
    rlock_owner_cancel(r.owner);
    EXPECT_STATUS(loop_acquire(s.cl, &r, RLOCK_FOREVER, 60000), RLOCK_OK);
    server_pause(s.sv);
    EXPECT_STATUS(request_extend(&r, 50000), RLOCK_OK);
    rlock_owner_cancel(r.owner);
    server_resume(s.sv);
    LOOP_UNTIL(s.cl, r.told == 2);
    EXPECT_STATUS(r.status, RLOCK_OK);
    server_pause(s.sv);
    EXPECT_STATUS(request_unlock(&r), RLOCK_OK);
    rlock_owner_cancel(r.owner);
    server_resume(s.sv);
    LOOP_UNTIL(s.cl, r.told == 3);
    EXPECT_STATUS(r.status, RLOCK_OK);
    request_free(&r);
    scene_stop(&s);
}

TEST(async_ends, a_cancel_of_the_client_ends_every_wait)
{
    enum { N = 50 };
    scene s = scene_start(0, 0);
    request r[N];
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    for (int i = 0; i < N; i++) {
        r[i] = request_new(s.lk);
        EXPECT_STATUS(request_acquire(&r[i], RLOCK_FOREVER, RLOCK_WATCHDOG),
                      RLOCK_OK);
    }
    waiters_settle(s.sv, 1, s.cl, N);
    EXPECT_STATUS(rlock_client_cancel(s.cl, true), RLOCK_OK);
    for (int i = 0; i < N; i++) {
        LOOP_UNTIL(s.cl, r[i].told);
        EXPECT_STATUS(r[i].status, RLOCK_CANCELED);
        request_free(&r[i]);
    }
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 0);
    scene_stop(&s);
}

TEST(async_ends, an_owner_that_is_freed_waits_no_more)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    request r;
    begin_to_wait(&s, &r);
    rlock_owner_free(r.owner);
    LOOP_UNTIL(s.cl, r.told);
    EXPECT_STATUS(r.status, RLOCK_CANCELED);
    EXPECT_INT(stats_of(s.cl).waiting_now, 0);
    scene_stop(&s);
}

/* Jobs of a thread are begun in their order, and this one needs no server. */
static void all_have_begun(scene *s)
{
    request r = request_new(s->lk);
    EXPECT_STATUS(loop_unlock(s->cl, &r), RLOCK_NOT_HELD);
    request_free(&r);
}

TEST(async_ends, an_owner_is_freed_while_the_lock_is_handed_over_to_it)
{
    scene s = scene_start(0, 0);
    request holder = request_new(s.lk), heir;
    EXPECT_STATUS(loop_acquire(s.cl, &holder, 0, RLOCK_WATCHDOG), RLOCK_OK);
    begin_to_wait(&s, &heir);
    waiters_settle(s.sv, 1, s.cl, 1);
    server_pause(s.sv);
    EXPECT_STATUS(request_unlock(&holder), RLOCK_OK);
    all_have_begun(&s);
    rlock_owner_free(heir.owner);
    all_have_begun(&s);
    server_resume(s.sv);
    LOOP_UNTIL(s.cl, holder.told == 2);
    EXPECT_STATUS(holder.status, RLOCK_OK);
    LOOP_UNTIL(s.cl, heir.told);
    EXPECT_STATUS(heir.status, RLOCK_CANCELED);
    request_free(&holder);
    scene_stop(&s);
}

/* It has been granted, and the program does not know yet. */
TEST(async_ends, what_an_owner_that_is_freed_was_granted_is_abandoned)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    EXPECT_STATUS(request_acquire(&r, 0, 60000), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s.cl).held_now == 1);
    rlock_owner_free(r.owner);
    LOOP_UNTIL(s.cl, r.told);
    EXPECT_STATUS(r.status, RLOCK_CANCELED);
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, SOON);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    scene_stop(&s);
}

static rlock_status start_level(request *r)
{
    return request_acquire(r, 0, 60000);
}

static rlock_status start_extend(request *r)
{
    return request_extend(r, 60000);
}

/* There is no connection yet over which it could be asked. */
static void free_owner_before_it_is_sent(rlock_status (*start)(request *r))
{
    enum { LEASE_MS = 5000 };
    scene s = scene_proxied(0, 0);
    request r = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, LEASE_MS), RLOCK_OK);
    proxy_freeze(s.px, true);
    proxy_cut_all(s.px);
    EXPECT_STATUS(start(&r), RLOCK_OK);
    rlock_owner_free(r.owner);
    proxy_freeze(s.px, false);
    LOOP_UNTIL(s.cl, r.told == 2);
    EXPECT_STATUS(r.status, RLOCK_CANCELED);
    EXPECT_CONTAINS(r.error.message, "the owner was freed");
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), -2, LEASE_MS);
    EXPECT_INT(proxy_count(s.px, "60000"), 0);
    scene_stop(&s);
}

TEST_CASE(async_ends, a_level_more_for_an_owner_that_was_freed_is_not_sent,
          free_owner_before_it_is_sent(start_level))
TEST_CASE(async_ends, an_extend_for_an_owner_that_was_freed_is_not_sent,
          free_owner_before_it_is_sent(start_extend))

/* At a server that has been asked, and is slow to answer. */
static void free_owner_meanwhile(rlock_status (*start)(request *r))
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, 5000), RLOCK_OK);
    server_pause(s.sv);
    EXPECT_STATUS(start(&r), RLOCK_OK);
    rlock_owner_free(r.owner);
    server_resume(s.sv);
    LOOP_UNTIL(s.cl, r.told == 2);
    EXPECT_STATUS(r.status, RLOCK_CANCELED);
    EXPECT_CONTAINS(r.error.message, "the owner was freed");
    scene_stop(&s);
}

TEST_CASE(async_ends, an_owner_is_freed_while_a_level_more_is_asked_for,
          free_owner_meanwhile(start_level))
TEST_CASE(async_ends, an_owner_is_freed_while_its_lease_is_extended,
          free_owner_meanwhile(start_extend))

/* --- the client ----------------------------------------------------------- */

TEST(async_ends, freeing_the_client_ends_every_wait_and_calls_back)
{
    enum { N = 50 };
    scene s = scene_start(0, 0);
    request r[N];
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    for (int i = 0; i < N; i++) {
        r[i] = request_new(s.lk);
        EXPECT_STATUS(request_acquire(&r[i], RLOCK_FOREVER, RLOCK_WATCHDOG),
                      RLOCK_OK);
    }
    int64_t began_ms = test_now_ms();
    rlock_client_free(s.cl);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, 1000 + SLACK_MS);
    for (int i = 0; i < N; i++) {
        EXPECT_INT(r[i].told, 1);
        EXPECT_STATUS(r[i].status, RLOCK_ECLOSED);
        request_free(&r[i]);
    }
    s.cl = NULL;
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 0);
    scene_stop(&s);
}

TEST(async_ends, freeing_the_client_calls_back_for_what_was_not_dispatched)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    EXPECT_STATUS(request_acquire(&r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s.cl).held_now == 1);
    EXPECT_INT(r.told, 0);
    rlock_client_free(s.cl);
    s.cl = NULL;
    EXPECT_INT(r.told, 1);
    request_free(&r);
    scene_stop(&s);
}

TEST(async_ends, a_closed_client_starts_nothing)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    rlock_client_free(s.cl);
    s.cl = NULL;
    EXPECT_STATUS(request_acquire(&r, 0, RLOCK_WATCHDOG), RLOCK_ECLOSED);
    EXPECT_STATUS(request_unlock(&r), RLOCK_ECLOSED);
    EXPECT_STATUS(request_extend(&r, 0), RLOCK_ECLOSED);
    EXPECT_INT(r.told, 0);
    request_free(&r);
    scene_stop(&s);
}

/* --- the descriptor ------------------------------------------------------- */

TEST(async_ends, the_descriptor_stays_the_same_and_goes_with_the_client)
{
    scene s = scene_start(0, 0);
    int fd = rlock_client_fd(s.cl);
    EXPECT(fd >= 0);
    EXPECT_INT(rlock_client_fd(s.cl), fd);
    EXPECT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    EXPECT_INT(poll(&p, 1, 0), 0);
    EXPECT_STATUS(rlock_client_dispatch(s.cl), RLOCK_OK);
    rlock_client_free(s.cl);
    s.cl = NULL;
    EXPECT_INT(fcntl(fd, F_GETFD), -1);
    scene_stop(&s);
}

enum { EDGES = 5 };

typedef struct edges {
    scene s;
    rlock *lk[EDGES];
    request r[EDGES];
} edges;

/* What was started before has been posted when the next one is held. */
static void start_two(edges *e, int first)
{
    for (int i = first; i < first + 2; i++)
        EXPECT_STATUS(request_acquire(&e->r[i], 0, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(e->s.cl).held_now == (uint64_t)first + 2);
}

/* While another one is still to be delivered. */
static void start_the_last(request *r)
{
    start_two(r->arg, 3);
}

static edges *edges_start(void)
{
    static edges e;
    e.s = scene_start(0, 0);
    for (int i = 0; i < EDGES; i++) {
        e.lk[i] = test_lock(e.s.cl, (char[]){(char)('a' + i), '\0'});
        e.r[i] = request_new(e.lk[i]);
    }
    return &e;
}

TEST(async_ends, who_watches_for_edges_is_told_of_what_came_while_it_dispatched)
{
    edges *e = edges_start();
    rlock_client *cl = e->s.cl;
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
    int ep = epoll_create1(EPOLL_CLOEXEC);
    EXPECT_INT(epoll_ctl(ep, EPOLL_CTL_ADD, rlock_client_fd(cl), &ev), 0);
    e->r[0].then = start_the_last;
    e->r[0].arg = e;
    EXPECT_STATUS(request_acquire(&e->r[0], 0, RLOCK_WATCHDOG), RLOCK_OK);
    start_two(e, 1);
    EXPECT_INT(epoll_wait(ep, &ev, 1, SOON), 1);
    EXPECT_STATUS(rlock_client_dispatch(cl), RLOCK_OK);
    EXPECT_INT(e->r[0].told, 1);
    while (!e->r[4].told) {
        EXPECT_INT(epoll_wait(ep, &ev, 1, SOON), 1);
        EXPECT_STATUS(rlock_client_dispatch(cl), RLOCK_OK);
    }
    close(ep);
    for (int i = 0; i < EDGES; i++) {
        request_free(&e->r[i]);
        rlock_free(e->lk[i]);
    }
    scene_stop(&e->s);
}

/* It is told nothing any more; what it dispatches by itself comes. */
TEST(async_ends, a_descriptor_that_the_program_closed_is_never_written_to)
{
    scene s = scene_start(0, 0);
    int fd = rlock_client_fd(s.cl), other[2];
    char byte;
    close(fd);
    EXPECT_INT(pipe(other), 0);
    EXPECT(other[0] == fd || other[1] == fd);
    EXPECT_INT(fcntl(other[0], F_SETFL, O_NONBLOCK), 0);
    request r = request_new(s.lk);
    EXPECT_STATUS(request_acquire(&r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, rlock_client_dispatch(s.cl) == RLOCK_OK && r.told);
    EXPECT_STATUS(r.status, RLOCK_OK);
    EXPECT_INT(read(other[0], &byte, 1), -1);
    rlock_client_free(s.cl); /* which closes that number, as is written */
    s.cl = NULL;
    close(other[0] == fd ? other[1] : other[0]);
    request_free(&r);
    scene_stop(&s);
}

/* --- fork ----------------------------------------------------------------- */

static void in_child(scene *s, request *waits)
{
    alarm(20);
    rlock_owner *o;
    int good = rlock_client_fd(s->cl) == -1;
    good += rlock_last_error()->status == RLOCK_EFORKED;
    good += rlock_client_dispatch(s->cl) == RLOCK_EFORKED;
    rlock_owner_set(waits->owner);
    good += rlock_acquire_start(s->lk, 0, 0, NULL, NULL) == RLOCK_EFORKED;
    rlock_owner_set(NULL);
    rlock_owner_free(waits->owner);
    rlock_free(s->lk);
    rlock_client_free(s->cl);
    good += rlock_owner_new("child", &o) == RLOCK_OK;
    rlock_owner_free(o);
    good += waits->told == 0;
    _exit(good == 6 ? 0 : 1);
}

TEST(async_ends, in_a_child_nothing_is_called_back_and_the_parent_goes_on)
{
    scene s = scene_start(0, 0);
    int status;
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    request r;
    begin_to_wait(&s, &r);
    waiters_settle(s.sv, 1, s.cl, 1);
    rlock_client_fd(s.cl);
    pid_t child = fork();
    if (child == 0)
        in_child(&s, &r);
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT(WIFEXITED(status));
    EXPECT_INT(WEXITSTATUS(status), 0);
    rlock_cancel(s.lk);
    LOOP_UNTIL(s.cl, r.told);
    EXPECT_STATUS(r.status, RLOCK_CANCELED);
    request_free(&r);
    scene_stop(&s);
}
