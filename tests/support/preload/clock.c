/*
 * To be loaded into a redis-server (LD_PRELOAD): its wall clock is ahead of the
 * machine's by what the file named in RLOCK_TEST_CLOCK says, a long long in
 * seconds; or it stands still, at what a second long long says, in us, if that
 * is not 0. The file is mapped, so that a change takes effect at once. The
 * other clocks stay what they are.
 *
 * libfaketime cannot do this: it allocates memory before jemalloc, which Redis
 * is linked with, can be asked the time.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const atomic_llong *told; /* NULL: not loaded yet */

__attribute__((constructor)) static void map(void)
{
    const char *path = getenv("RLOCK_TEST_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        abort();
    void *page = mmap(NULL, 2 * sizeof *told, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        abort();
    told = page;
}

/* May be called before map(). */
int clock_gettime(clockid_t id, struct timespec *ts)
{
    int err = (int)syscall(SYS_clock_gettime, id, ts);
    if (err || !told || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
        return err;
    long long still_us = atomic_load(&told[1]);
    ts->tv_sec += atomic_load(&told[0]);
    if (still_us)
        *ts = (struct timespec){still_us / 1000000, still_us % 1000000 * 1000};
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
