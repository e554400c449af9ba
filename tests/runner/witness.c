/*
 * witness LOG COMMAND [ARGUMENT]...
 *
 * Runs the command, and notes in LOG when nobody could run: it sleeps for 10 ms
 * at a time, and whatever it overslept by, by as much a thread of the command
 * or of a server may have been late. It is a process of its own, so that
 * nothing of it is in what is tested: no thread, no signal, nothing that a
 * fork() takes along.
 *
 *     stall FROM TO     in us of CLOCK_MONOTONIC
 *
 * The command finds its number in RLOCK_TEST_WITNESS, and its exit status is
 * that of the command; 128 and the signal, if one has ended that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BEAT_US = 10000, NOTABLE_US = 5000 };

static int64_t now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void sleep_until(int64_t us)
{
    struct timespec ts = {us / 1000000, us % 1000000 * 1000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

/* In one write, as the command's tests write there, too. */
static void note_stall(int log, int64_t from_us, int64_t to_us)
{
    if (to_us - from_us > NOTABLE_US)
        dprintf(log, "stall %lld %lld\n", (long long)from_us, (long long)to_us);
}

/* Until it has ended; its exit status. */
static int watch(pid_t command, int log)
{
    int status;
    pid_t ended = 0;
    while (ended == 0) {
        int64_t due_us = now_us() + BEAT_US;
        sleep_until(due_us);
        note_stall(log, due_us, now_us());
        ended = waitpid(command, &status, WNOHANG);
    }
    if (ended < 0)
        return 127;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    char number[24];
    if (argc < 3) {
        fprintf(stderr, "usage: %s LOG COMMAND [ARGUMENT]...\n", argv[0]);
        return 2;
    }
    int log = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (log < 0) {
        perror(argv[1]);
        return 2;
    }
    snprintf(number, sizeof number, "%ld", (long)getpid());
    setenv("RLOCK_TEST_WITNESS", number, 1);
    pid_t command = fork();
    if (command == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    return command < 0 ? 2 : watch(command, log);
}
