/* Ids that never repeat, and jitter that may. */
#include "base/random.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim.h"
#include "test.h"

enum { DRAWS = 8 };

static void draw(int64_t out[DRAWS])
{
    for (int i = 0; i < DRAWS; i++)
        out[i] = rl_random_below(1000000000);
}

static void draw_in_child(int64_t out[DRAWS])
{
    int fd[2];
    EXPECT_INT(pipe(fd), 0);
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0) {
        int64_t mine[DRAWS];
        draw(mine);
        _exit(write(fd[1], mine, sizeof mine) == sizeof mine ? 0 : 1);
    }
    close(fd[1]);
    EXPECT_INT(read(fd[0], out, DRAWS * sizeof *out), DRAWS * sizeof *out);
    close(fd[0]);
    int status;
    EXPECT_INT(waitpid(pid, &status, 0), pid);
    EXPECT_INT(status, 0);
}

TEST(random, forked_processes_draw_apart)
{
    int64_t parent[DRAWS], first[DRAWS], second[DRAWS];
    rl_random_below(2);
    draw_in_child(first);
    draw_in_child(second);
    draw(parent);
    EXPECT(memcmp(first, second, sizeof first) != 0);
    EXPECT(memcmp(first, parent, sizeof first) != 0);
    EXPECT(memcmp(second, parent, sizeof second) != 0);
}

static long kernels(void)
{
    return shim_seen(shim_everywhere(), SHIM_GETRANDOM);
}

static intptr_t count_seeds(void *arg)
{
    (void)arg;
    long before = kernels();
    for (int i = 0; i < 100; i++)
        rl_random_below(10);
    return (intptr_t)(kernels() - before);
}

/* Addresses and times are much alike in processes that start together. */
TEST(random, a_series_begins_with_what_the_kernel_draws_once_a_thread)
{
    EXPECT_INT(test_join(test_spawn(count_seeds, NULL)), 1);
    EXPECT_INT(test_join(test_spawn(count_seeds, NULL)), 1);
    count_seeds(NULL);
    EXPECT_INT(count_seeds(NULL), 0);
}

TEST(random, a_forked_process_draws_a_seed_of_its_own)
{
    int status;
    count_seeds(NULL);
    pid_t pid = fork();
    EXPECT(pid >= 0);
    if (pid == 0)
        _exit((int)count_seeds(NULL));
    EXPECT_INT(waitpid(pid, &status, 0), pid);
    EXPECT_INT(WEXITSTATUS(status), 1);
}

TEST(random, without_the_kernels_help_it_draws_all_the_same)
{
    int64_t a[DRAWS], b[DRAWS];
    shim_fail(shim_everywhere(), SHIM_GETRANDOM, 1, SHIM_EVER, ENOSYS);
    draw_in_child(a);
    draw_in_child(b);
    EXPECT(memcmp(a, b, sizeof a) != 0);
    shim_clear(shim_everywhere());
}

TEST(random, draws_lie_below_the_limit_and_differ)
{
    bool seen[10] = {false};
    for (int i = 0; i < 1000; i++) {
        int64_t n = rl_random_below(10);
        EXPECT_BETWEEN(n, 0, 9);
        seen[n] = true;
    }
    for (int i = 0; i < 10; i++)
        EXPECT(seen[i]);
}

TEST(random, jitter_stays_within_a_quarter)
{
    for (int i = 0; i < 1000; i++)
        EXPECT_BETWEEN(rl_jitter(1000), 750, 1250);
    EXPECT_INT(rl_jitter(3), 3);
    EXPECT_INT(rl_jitter(0), 0);
}

TEST(random, uuids_are_of_version_4_and_differ)
{
    rl_uuid id;
    char a[RL_UUID_LEN + 1], b[RL_UUID_LEN + 1];
    EXPECT(rl_uuid_new(&id));
    rl_uuid_write(&id, a);
    EXPECT(rl_uuid_new(&id));
    rl_uuid_write(&id, b);
    EXPECT_INT(strlen(a), RL_UUID_LEN);
    EXPECT_INT(a[14], '4');
    EXPECT(strchr("89ab", a[19]));
    EXPECT(strcmp(a, b) != 0);
}
