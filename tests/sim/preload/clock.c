/*
 * To be loaded into a redis-server (LD_PRELOAD): its wall clock stands at what
 * the mapped file named in RLOCK_SIM_CLOCK says, in microseconds, and does not
 * run by itself. So what it answers can be compared to the last digit.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const atomic_llong *stands_us; /* NULL: not loaded yet */

__attribute__((constructor)) static void map(void)
{
    const char *path = getenv("RLOCK_SIM_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        abort();
    void *page = mmap(NULL, sizeof *stands_us, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        abort();
    stands_us = page;
}

/* May be called before map(). */
int clock_gettime(clockid_t id, struct timespec *ts)
{
    if (!stands_us || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
        return (int)syscall(SYS_clock_gettime, id, ts);
    long long us = atomic_load(stands_us);
    ts->tv_sec = us / 1000000;
    ts->tv_nsec = us % 1000000 * 1000;
    return 0;
}

int gettimeofday(struct timeval *tv, void *zone)
{
    struct timespec ts;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *t)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (t)
        *t = ts.tv_sec;
    return ts.tv_sec;
}
