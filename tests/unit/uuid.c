/* Ids that never repeat. */
#include "base/random.h"

#include <ctype.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

typedef struct uuid {
    char text[RL_UUID_LEN + 1];
} uuid;

static uuid draw_uuid(void)
{
    rl_uuid id;
    uuid u;
    memset(&u, '#', sizeof u);
    EXPECT(rl_uuid_new(&id));
    rl_uuid_write(&id, u.text);
    EXPECT_INT(strlen(u.text), RL_UUID_LEN);
    return u;
}

TEST(uuid, is_lower_case_in_five_groups)
{
    for (int i = 0; i < 100; i++) {
        uuid u = draw_uuid();
        for (int k = 0; k < RL_UUID_LEN; k++) {
            char c = u.text[k];
            if (k == 8 || k == 13 || k == 18 || k == 23)
                EXPECT_INT(c, '-');
            else
                EXPECT(isxdigit((unsigned char)c) && !isupper(c));
        }
    }
}

TEST(uuid, says_that_it_is_random)
{
    for (int i = 0; i < 100; i++) {
        uuid u = draw_uuid();
        EXPECT_INT(u.text[14], '4');
        EXPECT(strchr("89ab", u.text[19]));
    }
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

TEST(uuid, does_not_repeat)
{
    enum { MANY = 5000 };
    static uuid all[MANY];
    for (int i = 0; i < MANY; i++)
        all[i] = draw_uuid();
    qsort(all, MANY, sizeof *all, compare);
    for (int i = 1; i < MANY; i++)
        EXPECT(strcmp(all[i - 1].text, all[i].text) != 0);
}

/* A pool of randomness would be in both processes. */
TEST(uuid, is_not_repeated_by_a_fork)
{
    int fds[2];
    uuid theirs;
    draw_uuid();
    EXPECT_INT(pipe(fds), 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        uuid u = draw_uuid();
        _exit(write(fds[1], &u, sizeof u) != (ssize_t)sizeof u);
    }
    uuid ours = draw_uuid();
    EXPECT_INT(read(fds[0], &theirs, sizeof theirs), sizeof theirs);
    EXPECT_INT(waitpid(child, NULL, 0), child);
    EXPECT(strcmp(ours.text, theirs.text) != 0);
    close(fds[0]);
    close(fds[1]);
}

TEST(uuid, leaves_the_host_programs_random_sequence_alone)
{
    srandom(1);
    long first = random();
    srandom(1);
    draw_uuid();
    rl_jitter(1000);
    EXPECT_INT(random(), first);
}
