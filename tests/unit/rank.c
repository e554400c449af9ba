/* The check of the order of mutexes, where it is built in. */
#include "base/rank.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "test.h"

#ifdef RLOCK_CHECK_RANKS

/* How a process ends that takes these two, the second inside of the first. */
static int status_of(rl_rank first, rl_rank second)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        rl_mutex a, b;
        rl_mutex_init(&a, first);
        rl_mutex_init(&b, second);
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        rl_mutex_lock(&a);
        rl_mutex_lock(&b);
        rl_mutex_unlock(&b);
        rl_mutex_unlock(&a);
        rl_mutex_lock(&b);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    return status;
}

static bool is_aborted(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

TEST(rank, who_keeps_the_order_goes_on)
{
    EXPECT_INT(status_of(RL_RANK_HOLDS, RL_RANK_ROOMS), 0);
}

TEST(rank, who_takes_an_outer_one_inside_ends)
{
    EXPECT(is_aborted(status_of(RL_RANK_ROOMS, RL_RANK_HOLDS)));
}

TEST(rank, who_takes_two_of_one_rank_ends)
{
    EXPECT(is_aborted(status_of(RL_RANK_ALONE, RL_RANK_ALONE)));
}

#endif
