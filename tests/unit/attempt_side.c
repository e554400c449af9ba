/* The wait for a side of a read-write lock, in what differs from a fair lock's. */
#include "wait.h"

/* Busy, in line behind another one. */
#define STANDS  "*6\r\n:0\r\n:30000\r\n$3\r\n500\r\n:0\r\n:1\r\n:0\r\n"
#define REFUSED "*1\r\n:-3\r\n"

static rl_target side_of(unsigned layout)
{
    return (rl_target){
        .name = "job", .len = 3, .scope = layout, .layout = (uint8_t)layout};
}

static void open_side(wait_for *w, const rl_target *what)
{
    open_wait(w, RLOCK_FOREVER);
    w->a.attempt = &rl_attempt_line;
    w->a.what = what;
    hear_bell(w);
}

/* Whoever asks for all is in front of it. */
typedef struct front {
    rl_waiter waiter;
    rl_waker waker;
} front;

static void ignore(rl_waker *w, rl_wake why, unsigned node)
{
    (void)w;
    (void)why;
    (void)node;
}

/* For how long it stands before it asks by itself; 60: for longer. */
static int asks_after_s(unsigned layout)
{
    wait_for w;
    rl_target what = side_of(layout);
    front first = {.waker = {ignore}};
    int s = 0;
    open_side(&w, &what);
    EXPECT(rl_room_enter(&core(&w)->rooms, &first.waiter, &what, NULL,
                         &first.waker, w.p.now_us));
    EXPECT_INT(begin(&w), RL_ASK);
    rl_next next = answer(&w, STANDS);
    int64_t began_us = w.p.now_us;
    while (next == RL_SLEEP && s < 60) {
        next = play_sleep(&w.p);
        s = (int)((w.p.now_us - began_us) / (1000 * MS));
    }
    if (next == RL_ASK)
        EXPECT_INT(answer(&w, STANDS), RL_SLEEP);
    rl_room_leave(&core(&w)->rooms, &first.waiter, false);
    rl_rooms_cancel(&core(&w)->rooms, &what, &w);
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, NO), RL_DONE);
    close_wait(&w, RLOCK_CANCELED);
    return s;
}

/* For its mark, which Redisson looks at. */
TEST(attempt_side, who_waits_to_read_asks_by_himself_before_his_mark_ends)
{
    EXPECT_BETWEEN(asks_after_s(RL_LAYOUT_READ), 20, 23);
}

TEST(attempt_side, who_waits_to_write_leaves_it_to_the_front)
{
    EXPECT_INT(asks_after_s(RL_LAYOUT_WRITE) >= 60, true);
}

TEST(attempt_side, who_reads_beside_others_is_refused_and_leaves)
{
    wait_for w;
    rl_target what = side_of(RL_LAYOUT_WRITE);
    open_side(&w, &what);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, REFUSED), RL_ASK);
    EXPECT_STR(play_called(&w.p, 0), "write/release");
    EXPECT_INT(answer(&w, NO), RL_DONE);
    EXPECT_STR(w.a.fault.text, "deadlock: others read it, too");
    close_wait(&w, RLOCK_EDEADLK);
}
