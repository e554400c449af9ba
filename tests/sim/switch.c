/*
 * How one thread of the world stops, and another one goes on.
 *
 * Each thread has a stack of its own and the thread control block of a real
 * thread, which is parked for ever. To switch is six registers, the stack
 * pointer and the FS base: so thread-local variables, errno, pthread_self() and
 * malloc's caches are those of a real thread, and the library cannot tell. One
 * thread of the kernel runs them all.
 *
 * The portable form (SIM_BATON) is real threads of which a futex lets one
 * run: another processor, valgrind, a processor without FSGSBASE. The same
 * world and the same histories, at half the speed.
 *
 * Called by schedule.c only; what stays true is that whoever runs is `running`.
 */
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "world.h"

#if !defined(__x86_64__) && !defined(SIM_BATON)
#define SIM_BATON
#endif

#define STACK  (256 * 1024)
#define PARKED (64 * 1024)

static void futex_wait(volatile int *at)
{
    while (!__atomic_exchange_n(at, 0, __ATOMIC_ACQUIRE))
        raw_call(SYS_futex, (long)at, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
}

static void futex_wake(volatile int *at)
{
    __atomic_store_n(at, 1, __ATOMIC_RELEASE);
    raw_call(SYS_futex, (long)at, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static void make_real(thread *t, void *(*run)(void *arg), size_t stack)
{
    static __typeof__(&pthread_create) create;
    pthread_attr_t attr;
    if (!create)
        create = REAL(pthread_create);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, stack);
    if (create(&t->real, &attr, run, t) != 0)
        finding("the kernel gives the world no thread");
    pthread_attr_destroy(&attr);
}

#ifdef SIM_BATON

static void *carry(void *arg)
{
    thread *t = arg;
    futex_wait(&t->go);
    thread_begins();
    return NULL;
}

void switch_begin(thread *first)
{
    first->real = pthread_self();
}

void switch_make(thread *t)
{
    make_real(t, carry, STACK);
}

void switch_to(thread *from, thread *to)
{
    futex_wake(&to->go);
    futex_wait(&from->go);
}

#else

#include <elf.h>
#include <sys/auxv.h>

static unsigned long fs_base(void)
{
    unsigned long fs;
    __asm__ volatile("rdfsbase %0" : "=r"(fs));
    return fs;
}

/* Lends its control block, and never runs again. */
static void *park(void *arg)
{
    thread *t = arg;
    t->fs = fs_base();
    futex_wake(&t->go);
    for (;;)
        raw_call(SYS_pause, 0, 0, 0, 0, 0, 0);
    return NULL;
}

void switch_begin(thread *first)
{
    if (!(getauxval(AT_HWCAP2) & 2))
        die("this processor, or kernel, lets no program set its FS base: "
            "build the world with -DRLOCK_SIM_BATON=ON");
    first->real = pthread_self();
    first->fs = fs_base();
}

void switch_make(thread *t)
{
    make_real(t, park, PARKED);
    futex_wait(&t->go);
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        finding("the kernel gives the world no stack");
    mprotect(stack, 4096, PROT_NONE); /* who goes over it crashes */
    void **sp = (void **)(stack + STACK - 16);
    *--sp = NULL; /* so that the stack is aligned as after a call */
    *--sp = (void *)thread_begins;
    for (int i = 0; i < 6; i++)
        *--sp = NULL;
    t->sp = sp;
}

/* Saves the registers that a call keeps, and where they are; and the reverse.
 */
void world_swap(void **save, void *sp, unsigned long fs);

__asm__(".text\n"
        ".globl world_swap\n"
        ".type world_swap, @function\n"
        "world_swap:\n"
        "pushq %rbp\n"
        "pushq %rbx\n"
        "pushq %r12\n"
        "pushq %r13\n"
        "pushq %r14\n"
        "pushq %r15\n"
        "movq %rsp, (%rdi)\n"
        "movq %rsi, %rsp\n"
        "wrfsbase %rdx\n"
        "popq %r15\n"
        "popq %r14\n"
        "popq %r13\n"
        "popq %r12\n"
        "popq %rbx\n"
        "popq %rbp\n"
        "ret\n"
        ".size world_swap, . - world_swap\n");

void switch_to(thread *from, thread *to)
{
    world_swap(&from->sp, to->sp, to->fs);
}

#endif
