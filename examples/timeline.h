/*
 * Writes a program's events down for rlock-timeline, which draws them:
 *
 *     opts.on_event = timeline_event;
 *     opts.event_arg = timeline_open("web3.events");
 *     timeline_lane(opts.event_arg, "web3, worker 1");  in each thread, if it likes
 *
 * Any number of threads and processes may write into one file. A line is an event:
 * microseconds since 1970, process:thread, what, lock, token, levels, and words;
 * tabs lie between them. ASKED, written before a call that may wait, shows from
 * when on it does. What the notifier tells has the hold's token, by which it
 * comes into the lane of whoever holds.
 */
#ifndef TIMELINE_H
#define TIMELINE_H

#include <inttypes.h>
#include <pthread.h>
#include <rlock/rlock.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Opens the file to go on with it; NULL if that cannot be. */
static inline FILE *timeline_open(const char *path)
{
    FILE *file = fopen(path, "a");
    if (file)
        setvbuf(file, NULL, _IOLBF, BUFSIZ); /* lines stay whole */
    return file;
}

static inline int64_t timeline_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* As holder ids have it; elsewhere than on Linux any number of the thread's. */
static inline long timeline_thread(void)
{
#ifdef SYS_gettid
    return (long)syscall(SYS_gettid);
#else
    return (long)(intptr_t)pthread_self();
#endif
}

static inline void timeline_line(FILE *file, const char *what, const char *lock,
                                 uint64_t token, int64_t count,
                                 const char *text)
{
    fprintf(file,
            "%" PRId64 "\t%ld:%ld\t%s\t%s\t%" PRIu64 "\t%" PRId64 "\t%s\n",
            timeline_now_us(), (long)getpid(), timeline_thread(), what, lock,
            token, count, text);
}

/* What the calling thread is called in the picture. */
static inline void timeline_lane(FILE *file, const char *label)
{
    timeline_line(file, "LANE", "", 0, 0, label);
}

/* For rlock_options.on_event; event_arg is the file. */
static inline void timeline_event(const rlock_event *ev, void *file)
{
    static const char *const names[] = {
        "",          "ACQUIRED",  "RELEASED",
        "CONTENDED", "RENEWED",   "RENEW_FAILED",
        "LOST",      "ABANDONED", "RECONNECTED",
        "WARNING",   "FAILOVER"};
    if ((size_t)ev->type < sizeof names / sizeof *names)
        timeline_line((FILE *)file, names[ev->type], ev->name, ev->token,
                      ev->count, ev->message);
}

#endif
