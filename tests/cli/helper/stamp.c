/*
 * stamp FILE: a COMMAND that will not end, for a minute. It ignores SIGTERM, has
 * a child, and both write the lease clock into the file as fast as they can, so
 * that what is there in the end is their last instruction. The file begins with
 * their pids.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    signal(SIGTERM, SIG_IGN);
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4 * sizeof(int64_t)) != 0)
        return 2;
    volatile int64_t *at = mmap(NULL, 4 * sizeof(int64_t),
                                PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return 2;
    int child = fork() == 0;
    alarm(60); /* should a test fail */
    at[child] = getpid();
    for (;;) {
        struct timespec t;
        clock_gettime(CLOCK_BOOTTIME, &t);
        at[2 + child] = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
        usleep(child ? 200 : 100);
    }
}
