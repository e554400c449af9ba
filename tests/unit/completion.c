/* What is to be delivered on a thread of the program's, and its descriptor. */
#include "run/completion.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "shim.h"
#include "test.h"

typedef struct letter {
    rl_completion it;
    int told;                 /* the how manieth it was; 0: not delivered */
    rl_completions *posts_to; /* one more, from its delivery; NULL: none */
    struct letter *more;
} letter;

static int delivered;

static void deliver(rl_completion *l)
{
    letter *x = RL_CONTAINER(l, letter, it);
    EXPECT_INT(x->told, 0);
    x->told = ++delivered;
    if (x->posts_to)
        rl_completions_post(x->posts_to, &x->more->it);
}

static void post(rl_completions *b, letter *x)
{
    *x = (letter){.it.deliver = deliver};
    rl_completions_post(b, &x->it);
}

static void open_completions(rl_completions *b)
{
    *b = (rl_completions){.fd = 0};
    rl_completions_init(b);
    EXPECT(b->fd == -1 && b->watch == -1 && b->signal.fd == -1);
    delivered = 0;
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1 && p.revents == POLLIN;
}

TEST(completion, each_is_delivered_once_in_their_order)
{
    rl_completions b;
    letter x[3];
    open_completions(&b);
    for (int i = 0; i < 3; i++)
        post(&b, &x[i]);
    EXPECT_INT(b.count, 3);
    rl_completions_deliver(&b);
    for (int i = 0; i < 3; i++)
        EXPECT_INT(x[i].told, i + 1);
    EXPECT_INT(b.count, 0);
    rl_completions_deliver(&b);
    EXPECT_INT(delivered, 3);
    rl_completions_fini(&b, false);
}

/* One that always posts another would never come back. */
TEST(completion, what_is_posted_by_a_delivery_is_delivered_the_next_time)
{
    rl_completions b;
    letter x, more = {.it.deliver = deliver};
    open_completions(&b);
    int fd = rl_completions_fd(&b);
    post(&b, &x);
    x.posts_to = &b;
    x.more = &more;
    rl_completions_attend(&b);
    EXPECT(!is_readable(fd));
    rl_completions_deliver(&b);
    rl_completions_attended(&b);
    EXPECT(delivered == 1 && more.told == 0);
    EXPECT(is_readable(fd));
    rl_completions_deliver(&b);
    EXPECT_INT(more.told, 2);
    rl_completions_fini(&b, false);
}

typedef struct one_of_two {
    rl_completion it;
    rl_completions *in;
    int fd;
    letter *behind, *beside;
} one_of_two;

/* Another thread might dispatch meanwhile, as often as it likes. */
static void deliver_the_others(rl_completion *l)
{
    one_of_two *x = RL_CONTAINER(l, one_of_two, it);
    for (int i = 0; i < 3; i++) {
        rl_completions_attend(x->in);
        rl_completions_attended(x->in);
        rl_completions_deliver(x->in);
    }
    EXPECT(x->beside->told == 1 && x->behind->told == 0);
    EXPECT(!is_readable(x->fd) && x->in->count == 1);
}

TEST(completion, those_of_one_call_are_delivered_one_after_the_other)
{
    rl_completions b;
    bool two = false;
    letter behind = {.it = {.deliver = deliver, .busy = &two, .ends = true}},
           beside;
    open_completions(&b);
    one_of_two x = {.it = {.deliver = deliver_the_others, .busy = &two},
                    .in = &b,
                    .fd = rl_completions_fd(&b),
                    .behind = &behind,
                    .beside = &beside};
    rl_completions_post(&b, &x.it);
    rl_completions_post(&b, &behind.it);
    post(&b, &beside);
    rl_completions_attend(&b);
    rl_completions_attended(&b);
    rl_completions_deliver(&b);
    EXPECT(behind.told == 2 && !two && b.count == 0);
    rl_completions_fini(&b, false);
}

/* It was posted when nobody could deliver it, by somebody who did not know. */
TEST(completion, who_has_delivered_makes_what_waited_for_it_be_seen)
{
    rl_completions b;
    bool two = false;
    letter x, more = {.it = {.deliver = deliver, .busy = &two, .ends = true}};
    open_completions(&b);
    int fd = rl_completions_fd(&b);
    x = (letter){.it = {.deliver = deliver, .busy = &two},
                 .posts_to = &b,
                 .more = &more};
    rl_completions_post(&b, &x.it);
    rl_completions_attend(&b);
    rl_completions_attended(&b);
    rl_completions_deliver(&b);
    EXPECT(x.told == 1 && more.told == 0 && is_readable(fd));
    rl_completions_deliver(&b);
    EXPECT_INT(more.told, 2);
    rl_completions_fini(&b, false);
}

TEST(completion, its_descriptor_is_the_same_each_time_and_inherited_by_nobody)
{
    rl_completions b;
    open_completions(&b);
    int fd = rl_completions_fd(&b);
    EXPECT(fd >= 0 && rl_completions_fd(&b) == fd && fd != b.watch);
    EXPECT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    EXPECT(!is_readable(fd));
    rl_completions_fini(&b, false);
    EXPECT(fcntl(fd, F_GETFD) == -1 && b.fd == -1 && b.watch == -1);
}

TEST(completion, its_descriptor_is_readable_until_somebody_attends)
{
    rl_completions b;
    letter x[3];
    open_completions(&b);
    int fd = rl_completions_fd(&b);
    post(&b, &x[0]);
    EXPECT(is_readable(fd) && is_readable(fd));
    post(&b, &x[1]);
    rl_completions_attend(&b);
    EXPECT(!is_readable(fd));
    post(&b, &x[2]); /* who attends sees it by the count */
    EXPECT(!is_readable(fd));
    rl_completions_deliver(&b);
    rl_completions_attended(&b);
    EXPECT(delivered == 3 && !is_readable(fd) && b.attending == 0);
    rl_completions_nudge(&b);
    EXPECT(is_readable(fd));
    rl_completions_attend(&b);
    rl_completions_attended(&b);
    EXPECT(!is_readable(fd));
    rl_completions_fini(&b, false);
}

TEST(completion, what_was_there_before_the_descriptor_makes_it_readable)
{
    rl_completions b;
    letter x;
    open_completions(&b);
    post(&b, &x);
    EXPECT(!b.raised);
    EXPECT(is_readable(rl_completions_fd(&b)));
    rl_completions_attend(&b);
    rl_completions_deliver(&b);
    rl_completions_attended(&b);
    rl_completions_fini(&b, false);
}

TEST(completion, its_descriptor_is_readable_while_a_connection_is)
{
    rl_completions b;
    int fds[2];
    open_completions(&b);
    EXPECT_INT(pipe(fds), 0);
    EXPECT(!rl_completions_watch(&b, fds[0])); /* nobody looks there yet */
    int fd = rl_completions_fd(&b);
    EXPECT(rl_completions_watch(&b, fds[0]));
    EXPECT(!is_readable(fd));
    EXPECT_INT(write(fds[1], "x", 1), 1);
    EXPECT(is_readable(fd));
    rl_completions_attend(&b); /* that is no signal */
    rl_completions_attended(&b);
    EXPECT(is_readable(fd));
    rl_completions_unwatch(&b, fds[0]);
    EXPECT(!is_readable(fd));
    close(fds[0]);
    close(fds[1]);
    rl_completions_fini(&b, false);
}

/* Whichever descriptor is the one that cannot be had. */
TEST(completion, without_a_descriptor_it_may_be_asked_for_again)
{
    static const shim_call calls[] = {SHIM_EVENTFD, SHIM_FCNTL};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        rl_completions b;
        letter x;
        open_completions(&b);
        shim_fail(shim_here(), calls[i], 1, SHIM_EVER, EMFILE);
        int fd = rl_completions_fd(&b), err = errno;
        shim_clear(shim_here());
        EXPECT(fd == -1 && err == EMFILE && b.watch == -1 && b.fd == -1);
        post(&b, &x);
        fd = rl_completions_fd(&b);
        EXPECT(fd >= 0 && is_readable(fd));
        rl_completions_deliver(&b);
        rl_completions_fini(&b, false);
    }
}

TEST(completion, in_a_child_closes_its_descriptors)
{
    rl_completions b;
    open_completions(&b);
    int fd = rl_completions_fd(&b);
    rl_completions_fini(&b, true);
    EXPECT(fcntl(fd, F_GETFD) == -1 && b.fd == -1 && b.signal.fd == -1);
    rl_mutex_fini(&b.mutex); /* which a child leaves alone */
}
