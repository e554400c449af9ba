/*
 * What a run says: its trace, its history, and how it ends when something is
 * found. A finding is told from any thread's stack, and nothing of the world
 * goes on behind it, so the process ends by the kernel's own call: exit() would
 * run what the library and OpenSSL have left for it.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "outcome.h"
#include "world.h"

world w = {.now = BEGIN, .hash = UINT64_C(14695981039346656037)};

void *next_symbol(const char *name)
{
    void *p = dlsym(RTLD_NEXT, name);
    if (!p)
        die("libc has no %s", name);
    return p;
}

long raw_call(long n, long a, long b, long c, long d, long e, long f)
{
#ifdef __x86_64__
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
                       "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    static __typeof__(&syscall) real;
    if (!real)
        real = REAL(syscall);
    return real(n, a, b, c, d, e, f);
#endif
}

/* FNV-1a */
void history_add_bytes(const void *at, size_t n)
{
    for (const unsigned char *p = at; n > 0; n--, p++)
        w.hash = (w.hash ^ *p) * UINT64_C(1099511628211);
}

void history_add(uint64_t x)
{
    history_add_bytes(&x, sizeof x);
}

static void in_one_line(char *line)
{
    for (; *line; line++)
        if (*line == '\r' || *line == '\n')
            *line = ' ';
}

void trace(const char *fmt, ...)
{
    char line[1500];
    va_list args;
    if (!w.traces)
        return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    in_one_line(line);
    printf("%12.6f %3d %-17s %s\n", seconds(w.now), running->id, running->name,
           line);
}

_Noreturn static void end_run(void)
{
    fflush(stdout);
    raw_call(SYS_exit_group, 1, 0, 0, 0, 0, 0);
    abort();
}

void finding(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(outcome->finding, sizeof outcome->finding, fmt, args);
    va_end(args);
    in_one_line(outcome->finding);
    snprintf(outcome->complaint, sizeof outcome->complaint, "%s", fmt);
    snprintf(outcome->where, sizeof outcome->where, "%.6f s, %s",
             seconds(w.now), running->name);
    trace("FINDING: %s", outcome->finding);
    if (w.traces)
        threads_tell();
    end_run();
}

static const char *state_of(const thread *t)
{
    return t->state == BLOCKED ? t->waits_in : "about to run";
}

void threads_tell(void)
{
    for (int i = 0; i < threads_n; i++) {
        const thread *t = threads[i];
        if (t->state != DONE && t->wake.pos)
            printf("  thread %d, %s: %s, goes on at %.6f\n", t->id, t->name,
                   state_of(t), seconds(t->wake.at));
        else if (t->state != DONE)
            printf("  thread %d, %s: %s\n", t->id, t->name, state_of(t));
    }
}

void stuck(void)
{
    char all[1000] = "";
    size_t n = 0;
    for (int i = 0; i < threads_n && n < sizeof all - 60; i++) {
        const thread *t = threads[i];
        if (t->state != DONE)
            n += (size_t)snprintf(all + n, sizeof all - n, " %s(%s)", t->name,
                                  state_of(t));
    }
    finding("stuck:%s", all);
}
