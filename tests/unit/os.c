/* What operating systems do differently. */
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void expect_ready_for_use(int fd)
{
    EXPECT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    EXPECT(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

TEST(os, a_signal_is_readable_from_raise_to_clear)
{
    rl_signal s;
    EXPECT(rl_signal_init(&s));
    expect_ready_for_use(s.fd);
    EXPECT(!is_readable(s.fd));
    rl_signal_raise(&s);
    EXPECT(is_readable(s.fd));
    EXPECT(is_readable(s.fd));
    rl_signal_clear(&s);
    EXPECT(!is_readable(s.fd));
    rl_signal_fini(&s);
    EXPECT_INT(s.fd, -1);
}

TEST(os, a_signal_raised_often_is_cleared_once)
{
    rl_signal s;
    EXPECT(rl_signal_init(&s));
    for (int i = 0; i < 100000; i++)
        rl_signal_raise(&s);
    EXPECT(is_readable(s.fd));
    rl_signal_clear(&s);
    EXPECT(!is_readable(s.fd));
    rl_signal_fini(&s);
    rl_signal_fini(&s);
}

TEST(os, a_signal_whose_number_is_another_files_is_found_out_and_let_alone)
{
    rl_signal s;
    rl_os_file made, now;
    EXPECT(rl_signal_init(&s));
    int fd = s.fd, files[2];
    EXPECT(rl_os_file_of(fd, &made) && rl_os_file_of(fd, &now));
    EXPECT(rl_os_file_is(&now, &made));
    EXPECT_INT(pipe(files), 0);
    EXPECT_INT(dup2(files[1], fd), fd);
    EXPECT(rl_os_file_of(fd, &now) && !rl_os_file_is(&now, &made));
    rl_signal_forget(&s);
    rl_signal_raise(&s);
    rl_signal_fini(&s);
    EXPECT(fcntl(fd, F_GETFD) >= 0 && !is_readable(files[0]));
    close(fd);
    EXPECT(!rl_os_file_of(fd, &now));
    close(files[0]);
    close(files[1]);
}

TEST(os, a_socket_does_not_block_and_ends_with_exec)
{
    int fd = rl_os_socket(AF_UNIX);
    EXPECT(fd >= 0);
    expect_ready_for_use(fd);
    close(fd);
}

static void expect_no_sigpipe(void)
{
    sigset_t pending;
    sigpending(&pending);
    EXPECT(!sigismember(&pending, SIGPIPE));
}

TEST(os, sigpipe_of_a_write_is_taken_back)
{
    int fd[2];
    EXPECT_INT(pipe(fd), 0);
    close(fd[0]);
    rl_os_sigpipe p;
    rl_os_block_sigpipe(&p);
    EXPECT_INT(write(fd[1], "x", 1), -1);
    rl_os_restore_sigpipe(&p); /* would end this process */
    EXPECT_INT(errno, EPIPE);
    expect_no_sigpipe();
    close(fd[1]);
}

TEST(os, send_raises_no_sigpipe)
{
    int fd[2];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    close(fd[0]);
    EXPECT_INT(rl_os_send(fd[1], "x", 1), -1);
    EXPECT_INT(errno, EPIPE);
    close(fd[1]);
}

TEST(os, randomness_differs)
{
    unsigned char a[16] = {0}, b[16] = {0};
    EXPECT(rl_os_random(a, sizeof a));
    EXPECT(rl_os_random(b, sizeof b));
    EXPECT(memcmp(a, b, sizeof a) != 0);
}

TEST(os, threads_have_numbers_of_their_own)
{
    long mine = rl_os_thread_id();
    EXPECT(mine > 0);
    EXPECT_INT(mine, rl_os_thread_id());
}

static void put_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    EXPECT(f && fputs(text, f) >= 0);
    fclose(f);
}

static bool has_changed(const char *path, rl_os_stamp *since)
{
    rl_os_stamp now = rl_os_stamp_of(path);
    bool changed = !rl_os_stamp_is(&now, since);
    *since = now;
    return changed;
}

TEST(os, a_file_that_is_written_replaced_or_taken_away_has_another_stamp)
{
    char dir[] = "/tmp/rlock-os-XXXXXX", path[64], other[64];
    EXPECT(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/file", dir);
    snprintf(other, sizeof other, "%s/other", dir);
    rl_os_stamp stamp = rl_os_stamp_of(path), none = {0};
    EXPECT(rl_os_stamp_is(&stamp, &none));
    put_text(path, "one");
    EXPECT(has_changed(path, &stamp));
    EXPECT(!has_changed(path, &stamp));
    put_text(path, "more");
    EXPECT(has_changed(path, &stamp));
    put_text(other, "else"); /* as long */
    EXPECT_INT(rename(other, path), 0);
    EXPECT(has_changed(path, &stamp));
    EXPECT(!has_changed(path, &stamp));
    EXPECT_INT(unlink(path), 0);
    EXPECT(has_changed(path, &stamp));
    rmdir(dir);
}

/* --- processes ------------------------------------------------------------ */

/* Past the C library, whose handlers are not called then. */
static pid_t fork_by_hand(void)
{
#if defined(__linux__)
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#else
    return fork();
#endif
}

static bool ends_well(pid_t child)
{
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void expect_numbers_of_their_own(pid_t (*make)(void))
{
    uint64_t parent = rl_os_process();
    pid_t child = make();
    if (child == 0) {
        uint64_t own = rl_os_process();
        pid_t grandchild = make();
        if (grandchild == 0)
            _exit(rl_os_process() == own || rl_os_process() == parent);
        _exit(own == parent || rl_os_process() != own ||
              !ends_well(grandchild));
    }
    EXPECT(ends_well(child));
    EXPECT_INT(rl_os_process(), parent);
}

TEST_CASE(os, a_child_and_its_child_have_numbers_of_their_own,
          expect_numbers_of_their_own(fork))
TEST_CASE(os, a_child_made_by_a_system_call_has_one_too,
          expect_numbers_of_their_own(fork_by_hand))
