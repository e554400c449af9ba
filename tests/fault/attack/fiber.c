#include "fiber.h"

#include <stdint.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#elif __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#endif

#if defined(HAS_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(HAS_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

#if !defined(__GLIBC__)

bool fiber_is_possible(void)
{
    return false;
}

bool fiber_init(fiber *f, void (*call)(void *arg), void *arg)
{
    (void)f, (void)call, (void)arg;
    return false;
}

void fiber_fini(fiber *f)
{
    (void)f;
}

void fiber_enter(fiber *f)
{
    (void)f;
}

void fiber_leave(fiber *f)
{
    (void)f;
}

#else

enum { STACK_SIZE = 512 * 1024 };

/* --- what the sanitizers are told ----------------------------------------- */

/* A call that began on one stack must not seem to end on the other. */
#define PART_OF_IT static inline __attribute__((always_inline))

PART_OF_IT void begin_entering(fiber *f, void **fake)
{
    (void)f, (void)fake;
#if defined(HAS_ASAN)
    __sanitizer_start_switch_fiber(fake, f->stack, STACK_SIZE);
#endif
#if defined(HAS_TSAN)
    f->back_thread = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(f->own_thread, 0);
#endif
}

PART_OF_IT void is_back(void *fake)
{
    (void)fake;
#if defined(HAS_ASAN)
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

PART_OF_IT void begin_leaving(fiber *f)
{
    (void)f;
#if defined(HAS_ASAN)
    __sanitizer_start_switch_fiber(f->over ? NULL : &f->fake, f->back_stack,
                                   f->back_size);
#endif
#if defined(HAS_TSAN)
    __tsan_switch_to_fiber(f->back_thread, 0);
#endif
}

PART_OF_IT void is_entered(fiber *f)
{
    (void)f;
#if defined(HAS_ASAN)
    __sanitizer_finish_switch_fiber(f->fake, &f->back_stack, &f->back_size);
#endif
}

/* --- stacks --------------------------------------------------------------- */

bool fiber_is_possible(void)
{
    return true;
}

/*
 * As swapcontext(), of which AddressSanitizer warns, as if nobody had told it.
 * Its call begins, for ThreadSanitizer, on the stack where it ends.
 */
static __attribute__((noinline)) void swap(ucontext_t *from,
                                           const ucontext_t *to)
{
    volatile bool left = false;
    getcontext(from); /* it is entered again here */
    if (left)
        return;
    left = true;
    setcontext(to);
}

/* makecontext() hands over no pointers. It does not return. */
static void begin(unsigned high, unsigned low)
{
    fiber *f = (fiber *)((uintptr_t)high << 32 | (uintptr_t)low);
    is_entered(f);
    f->call(f->arg);
    f->over = true;
    begin_leaving(f);
    swap(&f->own, &f->back);
}

bool fiber_init(fiber *f, void (*call)(void *arg), void *arg)
{
    uint64_t at = (uintptr_t)f;
    *f = (fiber){.call = call, .arg = arg};
    void *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED || getcontext(&f->own) != 0)
        return false;
    f->stack = stack;
    f->own.uc_stack.ss_sp = stack;
    f->own.uc_stack.ss_size = STACK_SIZE;
    makecontext(&f->own, (void (*)(void))begin, 2, (unsigned)(at >> 32),
                (unsigned)at);
#if defined(HAS_TSAN)
    f->own_thread = __tsan_create_fiber(0);
#endif
    return true;
}

void fiber_fini(fiber *f)
{
#if defined(HAS_TSAN)
    __tsan_destroy_fiber(f->own_thread);
#endif
    munmap(f->stack, STACK_SIZE);
}

void fiber_enter(fiber *f)
{
    void *fake = NULL;
    begin_entering(f, &fake);
    swap(&f->back, &f->own);
    is_back(fake);
}

void fiber_leave(fiber *f)
{
    begin_leaving(f);
    swap(&f->own, &f->back);
    is_entered(f);
}

#endif
