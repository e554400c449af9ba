/*
 * What the loop polls: for whom there is memory, and whether it notices that the
 * machine slept.
 */
#include "run/loop.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "shim.h"
#include "test.h"

enum { MOST = 600 };

/* A watcher of so many descriptors: all of them one end of a pipe. */
typedef struct crowd {
    rl_watcher watcher;
    int pipe[2];
    atomic_size_t n;        /* that it wants to be polled */
    atomic_size_t had, got; /* room for so many; and so many have told */
    atomic_int turns;
    atomic_llong next_us;
} crowd;

static int64_t turn(rl_watcher *w, int64_t now_us)
{
    crowd *c = RL_CONTAINER(w, crowd, watcher);
    size_t got = 0;
    for (size_t i = 0; i < w->n; i++)
        got += w->polled[i].fd == c->pipe[0] && w->polled[i].revents != 0;
    atomic_store(&c->had, w->n);
    atomic_store(&c->got, got);
    atomic_fetch_add(&c->turns, 1);
    int64_t us = atomic_load(&c->next_us);
    return us == RL_NEVER || us == RL_LOOP_LEAVE ? us : now_us + us;
}

static size_t look(rl_watcher *w, struct pollfd *p, size_t room)
{
    const crowd *c = RL_CONTAINER(w, crowd, watcher);
    size_t n = atomic_load(&c->n);
    for (size_t i = 0; i < n && i < room; i++)
        p[i] = (struct pollfd){.fd = c->pipe[0], .events = POLLOUT};
    return n;
}

static void begin(rl_loop *l, crowd *c, size_t most)
{
    memset(l, 0, sizeof *l);
    memset(c, 0, sizeof *c);
    rl_loop_init(l);
    EXPECT(rl_loop_open(l));
    c->watcher = (rl_watcher){.turn = turn, .look = look, .most = most};
    EXPECT_INT(pipe(c->pipe), 0);
    atomic_store(&c->n, most);
    atomic_store(&c->next_us, RL_NEVER);
}

static void run(rl_loop *l, crowd *c)
{
    EXPECT(rl_loop_add(l, &c->watcher));
    EXPECT(rl_loop_start(l));
    EVENTUALLY(SOON, atomic_load(&c->turns) > 0);
}

/* In the next turn but one it has been polled with so many. */
static void poll_with(rl_loop *l, crowd *c, size_t n)
{
    atomic_store(&c->n, n);
    for (int i = 0; i < 2; i++) {
        int turns = atomic_load(&c->turns);
        rl_loop_nudge(l, &c->watcher);
        EVENTUALLY(SOON, atomic_load(&c->turns) > turns);
    }
}

static void end(rl_loop *l, crowd *c)
{
    atomic_store(&c->next_us, RL_LOOP_LEAVE);
    rl_loop_nudge(l, &c->watcher);
    rl_loop_await_end(l, &c->watcher);
    rl_loop_stop(l);
    rl_loop_fini(l, false);
    close(c->pipe[0]);
    close(c->pipe[1]);
}

/* --- memory --------------------------------------------------------------- */

TEST(loop_room, without_memory_nobody_is_added)
{
    rl_loop l;
    crowd c;
    begin(&l, &c, 10);
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    bool ok = rl_loop_add(&l, &c.watcher);
    shim_clear(shim_here());
    EXPECT(!ok && !c.watcher.in && l.promised == 0);
    EXPECT(rl_list_is_empty(&l.joining));
    run(&l, &c);
    EXPECT(l.promised == 10 && c.watcher.in);
    end(&l, &c);
    EXPECT(l.promised == 0 && !c.watcher.in);
}

TEST(loop_room, without_a_thread_it_does_not_run_and_may_be_started_later)
{
    rl_loop l;
    crowd c;
    begin(&l, &c, 1);
    EXPECT(rl_loop_add(&l, &c.watcher));
    shim_fail(shim_here(), SHIM_THREAD, 1, 1, EAGAIN);
    bool ok = rl_loop_start(&l);
    shim_clear(shim_here());
    EXPECT(!ok && !l.thread.started);
    rl_loop_await_end(&l, &c.watcher); /* at once, as it does not run */
    EXPECT(!c.watcher.in && rl_list_is_empty(&l.joining));
    run(&l, &c);
    EXPECT(rl_loop_start(&l)); /* it runs already */
    end(&l, &c);
}

TEST(loop_room, its_descriptors_are_opened_once)
{
    rl_loop l = {.promised = 0};
    rl_loop_init(&l);
    EXPECT(rl_loop_open(&l));
    int fd = l.signal.fd;
    EXPECT(fd >= 0 && rl_loop_open(&l) && l.signal.fd == fd);
    rl_loop_fini(&l, false);
}

/* It is polled less, and has its turns all the same. */
TEST(loop_room, who_cannot_say_how_much_he_needs_gets_what_there_is)
{
    rl_loop l;
    crowd c;
    begin(&l, &c, 0);
    run(&l, &c);
    shim_fail(shim_everywhere(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    poll_with(&l, &c, 50);
    shim_clear(shim_everywhere());
    size_t had = atomic_load(&c.had);
    EXPECT(had < 50);
    poll_with(&l, &c, 50);
    EXPECT_INT(atomic_load(&c.had), 50);
    end(&l, &c);
}

TEST(loop_room, of_those_who_say_it_each_has_his_room)
{
    rl_loop l;
    crowd c, other;
    begin(&l, &c, 40);
    run(&l, &c);
    other = (crowd){.pipe = {c.pipe[0], c.pipe[1]}};
    other.watcher = (rl_watcher){.turn = turn, .look = look, .most = 30};
    atomic_store(&other.n, 30);
    atomic_store(&other.next_us, RL_NEVER);
    EXPECT(rl_loop_add(&l, &other.watcher));
    EXPECT_INT(l.promised, 70);
    EVENTUALLY(SOON, atomic_load(&other.turns) > 0);
    poll_with(&l, &other, 30);
    EXPECT_INT(atomic_load(&other.had), 30);
    poll_with(&l, &c, 40);
    EXPECT_INT(atomic_load(&c.had), 40);
    atomic_store(&other.next_us, RL_LOOP_LEAVE);
    rl_loop_nudge(&l, &other.watcher);
    rl_loop_await_end(&l, &other.watcher);
    EXPECT_INT(l.promised, 40);
    end(&l, &c);
    EXPECT(l.room >= 71 && l.least >= 71);
}

TEST(loop_room, what_a_burst_has_needed_is_given_back)
{
    rl_loop l;
    crowd c;
    begin(&l, &c, 0);
    run(&l, &c);
    poll_with(&l, &c, MOST);
    EXPECT_INT(atomic_load(&c.had), MOST);
    for (int i = 0; i < 10; i++)
        poll_with(&l, &c, 1);
    EXPECT_INT(atomic_load(&c.had), 1);
    end(&l, &c);
    EXPECT_BETWEEN(l.room, l.least, 256);
}

TEST(loop_room, what_is_needed_is_kept)
{
    rl_loop l;
    crowd c;
    begin(&l, &c, 0);
    run(&l, &c);
    for (int i = 0; i < 5; i++)
        poll_with(&l, &c, MOST);
    EXPECT_INT(atomic_load(&c.had), MOST);
    end(&l, &c);
    EXPECT_BETWEEN(l.room, MOST + 1, 4 * MOST);
}

/* --- time ----------------------------------------------------------------- */

/* poll() does not see that the machine slept. */
TEST(loop_room, a_turn_is_not_late_because_the_machine_slept)
{
    rl_loop l;
    crowd c;
    begin(&l, &c, 1);
    atomic_store(&c.next_us, INT64_C(3600) * 1000000);
    run(&l, &c);
    EXPECT_INT(atomic_load(&c.turns), 1);
    int64_t began_us = test_now_us();
    shim_clock(shim_everywhere(), RL_LEASE_CLOCK, 3601 * 1000);
    EVENTUALLY(SOON, atomic_load(&c.turns) > 1);
    EXPECT(test_now_us() - began_us < 5000000);
    end(&l, &c);
}

TEST(loop_room, that_has_nothing_to_do_leaves_the_processor_to_others)
{
    rl_loop l;
    crowd c;
    begin(&l, &c, 1);
    atomic_store(&c.next_us, INT64_C(3600) * 1000000);
    run(&l, &c);
    poll_with(&l, &c, 1);
    int64_t before_us = test_clock_us(CLOCK_PROCESS_CPUTIME_ID);
    test_pause_ms(200);
    EXPECT(test_clock_us(CLOCK_PROCESS_CPUTIME_ID) - before_us <
           100 * 1000 * test_slowness());
    end(&l, &c);
}
