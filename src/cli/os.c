#include "os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sched.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#endif

#ifdef CLOCK_BOOTTIME
#define LEASE_CLOCK CLOCK_BOOTTIME
#else
#define LEASE_CLOCK CLOCK_MONOTONIC
#endif

int64_t cli_now_us(void)
{
    struct timespec t;
    clock_gettime(LEASE_CLOCK, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

#if defined(__linux__)

/* poll()'s own clock stands still while the machine sleeps: a timer's does
   not, and it is exact. */
static int timer(int64_t at_us)
{
    static int fd = -1;
    static pid_t whose;
    if (whose != getpid()) {
        fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        whose = getpid();
    }
    struct itimerspec when = {0};
    if (at_us != CLI_NEVER) {
        when.it_value.tv_sec = at_us / 1000000;
        when.it_value.tv_nsec = at_us % 1000000 * 1000;
    }
    return fd >= 0 && timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL) == 0
               ? fd
               : -1;
}

#else

static int timer(int64_t at_us)
{
    (void)at_us;
    return -1;
}

#endif

void cli_poll(struct pollfd *fds, size_t n, int64_t until_us)
{
    struct pollfd all[8];
    int ms = -1;
    /* A time of zero would disarm the timer. */
    until_us = until_us < 1 ? 1 : until_us;
    for (size_t i = 0; i < n; i++)
        all[i] = fds[i];
    all[n] = (struct pollfd){.fd = timer(until_us), .events = POLLIN};
    if (all[n].fd < 0 && until_us != CLI_NEVER) {
        int64_t left = until_us - cli_now_us();
        ms = left <= 0 ? 0 : left > 1000000 ? 1000 : (int)(left / 1000) + 1;
    }
    bool any = poll(all, (nfds_t)n + 1, ms) > 0;
    for (size_t i = 0; i < n; i++)
        fds[i].revents = any ? all[i].revents : 0;
}

void cli_be_prompt(void)
{
#if defined(__linux__)
    /* To who asked for another class than the usual one, that is left. */
    struct sched_param least = {.sched_priority =
                                    sched_get_priority_min(SCHED_RR)};
    if (sched_getscheduler(0) == SCHED_OTHER)
        sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &least);
#endif
}

bool cli_die_with(pid_t parent)
{
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    return getppid() == parent;
}

#if defined(__linux__)

const int64_t cli_look_again_us = 100000;

/* One process, as /proc has it. */
typedef struct process {
    pid_t pid, parent, group;
    char state;
    unsigned long long started; /* in ticks since the machine's start */
} process;

static bool read_process(const char *name, process *p)
{
    char path[40], text[512], *end;
    long pid = strtol(name, &end, 10), parent, group;
    if (*end || pid <= 0)
        return false;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    /* The name in between may hold anything, also a parenthesis. */
    char *after = strrchr(text, ')');
    if (!after || sscanf(after + 1,
                         " %c %ld %ld %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                         "%*s %*s %*s %*s %*s %*s %llu",
                         &p->state, &parent, &group, &p->started) != 4)
        return false;
    p->pid = (pid_t)pid;
    p->parent = (pid_t)parent;
    p->group = (pid_t)group;
    return true;
}

/* Does /proc know processes by our numbers? Not where there is none, nor where
   it is that of another namespace. */
static bool proc_is_ours(void)
{
    char self[24];
    ssize_t n = readlink("/proc/self", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    return strtol(self, NULL, 10) == getpid();
}

/* Does it hold of one of all processes? Asks each, and not only until one. */
static bool any_process(bool (*is)(const process *p, pid_t arg), pid_t arg)
{
    DIR *all = proc_is_ours() ? opendir("/proc") : NULL;
    struct dirent *entry;
    process p;
    bool any = false;
    while (all && (entry = readdir(all)) != NULL) {
        if (read_process(entry->d_name, &p) && is(&p, arg))
            any = true;
    }
    if (all)
        closedir(all);
    return any;
}

static bool lives_as(const process *p, pid_t target)
{
    return (p->pid == target || p->group == -target) && p->state != 'Z' &&
           p->state != 'X';
}

bool cli_is_alive(int target)
{
    /* A dead process that nobody has waited for counts for kill(). */
    return (kill(target, 0) == 0 || errno != ESRCH) &&
           (!proc_is_ours() || any_process(lives_as, target));
}

/* Children of who was this process before it became rlock. */
static process *earlier;
static size_t earlier_len;

static bool is_earlier(const process *p)
{
    for (size_t i = 0; i < earlier_len; i++)
        if (earlier[i].pid == p->pid && earlier[i].started == p->started)
            return true;
    return false;
}

static bool note_child(const process *p, pid_t parent)
{
    process *more;
    if (p->parent != parent ||
        !(more = realloc(earlier, (earlier_len + 1) * sizeof *more)))
        return false;
    earlier = more;
    earlier[earlier_len++] = *p;
    return true;
}

void cli_adopt_orphans(void)
{
    any_process(note_child, getpid());
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static bool killed_unless(const process *p, pid_t spared)
{
    if (p->parent != getpid() || p->pid == spared || p->state == 'Z' ||
        is_earlier(p))
        return false;
    kill(p->pid, SIGKILL);
    return true;
}

bool cli_kill_children_but(pid_t spared)
{
    return any_process(killed_unless, spared);
}

#else

const int64_t cli_look_again_us = 10000;

bool cli_is_alive(int target)
{
    return kill(target, 0) == 0 || errno != ESRCH;
}

void cli_adopt_orphans(void)
{
}

bool cli_kill_children_but(pid_t spared)
{
    (void)spared;
    return false;
}

#endif

void cli_close_all_but(int a, int b)
{
    long most = sysconf(_SC_OPEN_MAX);
#if defined(__linux__)
    DIR *all = opendir("/proc/self/fd");
    struct dirent *entry;
    while (all && (entry = readdir(all)) != NULL) {
        int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fd != a && fd != b && fd != dirfd(all))
            close(fd);
    }
    if (all) {
        closedir(all);
        return;
    }
#endif
    for (int fd = STDERR_FILENO + 1; fd < (most < 65536 ? most : 65536); fd++) {
        if (fd != a && fd != b)
            close(fd);
    }
}
