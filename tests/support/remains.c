#include "remains.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);

int __real_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a);
int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a);
int __real_pthread_mutex_destroy(pthread_mutex_t *m);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *m);
int __real_pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *a);
int __wrap_pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *a);
int __real_pthread_cond_destroy(pthread_cond_t *c);
int __wrap_pthread_cond_destroy(pthread_cond_t *c);

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

#ifdef SANITIZED

void *blocks_malloc(size_t size)
{
    return __real_malloc(size);
}

void *blocks_calloc(size_t n, size_t size)
{
    return __real_calloc(n, size);
}

void *blocks_realloc(void *p, size_t size)
{
    return __real_realloc(p, size);
}

void blocks_free(void *p)
{
    __real_free(p);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a)
{
    return __real_pthread_mutex_init(m, a);
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *m)
{
    return __real_pthread_mutex_destroy(m);
}

int __wrap_pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *a)
{
    return __real_pthread_cond_init(c, a);
}

int __wrap_pthread_cond_destroy(pthread_cond_t *c)
{
    return __real_pthread_cond_destroy(c);
}

remains remains_now(void)
{
    return (remains){.blocks = 0};
}

#else

#define FRESH   0xa5
#define FREED   0xdd
#define BEHIND  0x5c
#define MARGIN  16
#define BUCKETS 4096

/* Beside the blocks, not in them: others free ours, and we theirs. */
typedef struct block {
    struct block *next;
    void *at;
    size_t size;
    uint64_t nth;
} block;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static block *buckets[BUCKETS];
static uint64_t made;

static block **find(const void *at)
{
    block **b = &buckets[((uintptr_t)at >> 4) % BUCKETS];
    while (*b && (*b)->at != at)
        b = &(*b)->next;
    return b;
}

static void lock(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(lock, unlock, unlock);
}

/* One that is known there already was freed by somebody else. */
static void keep(block *b)
{
    lock();
    block **at = find(b->at), *old = *at;
    b->next = old ? old->next : NULL;
    b->nth = ++made;
    *at = b;
    unlock();
    __real_free(old);
}

static block *take(const void *p)
{
    lock();
    block **at = find(p), *b = *at;
    if (b)
        *at = b->next;
    unlock();
    return b;
}

void *blocks_malloc(size_t size)
{
    block *b = __real_malloc(sizeof *b);
    char *p = size < SIZE_MAX - MARGIN ? __real_malloc(size + MARGIN) : NULL;
    if (!b || !p) {
        __real_free(b);
        __real_free(p);
        return NULL;
    }
    memset(p, FRESH, size);
    memset(p + size, BEHIND, MARGIN);
    *b = (block){.at = p, .size = size};
    keep(b);
    return p;
}

void *blocks_calloc(size_t n, size_t size)
{
    void *p = size && n > SIZE_MAX / size ? NULL : blocks_malloc(n * size);
    return p ? memset(p, 0, n * size) : NULL;
}

/* A stale pointer to what was freed reads rubbish, as long as nobody else has
   that memory. */
static void end_block(block *b)
{
    const unsigned char *end = (unsigned char *)b->at + b->size;
    for (int i = 0; i < MARGIN; i++) {
        if (end[i] != BEHIND) {
            fprintf(stderr, "written behind a block of %zu bytes\n", b->size);
            abort();
        }
    }
    memset(b->at, FREED, b->size);
    __real_free(b->at);
    __real_free(b);
}

void blocks_free(void *p)
{
    block *b = p ? take(p) : NULL;
    if (b)
        end_block(b);
    else
        __real_free(p);
}

void *blocks_realloc(void *p, size_t size)
{
    block *b = p ? take(p) : NULL;
    if (p && !b)
        return __real_realloc(p, size);
    void *to = blocks_malloc(size);
    if (b && to) {
        memcpy(to, p, b->size < size ? b->size : size);
        end_block(b);
    } else if (b) {
        keep(b);
    }
    return to;
}

/* --- mutexes and conditions: some are moved once they are made -------------- */

static atomic_long objects;

int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a)
{
    atomic_fetch_add(&objects, 1);
    return __real_pthread_mutex_init(m, a);
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *m)
{
    atomic_fetch_sub(&objects, 1);
    return __real_pthread_mutex_destroy(m);
}

int __wrap_pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *a)
{
    atomic_fetch_add(&objects, 1);
    return __real_pthread_cond_init(c, a);
}

int __wrap_pthread_cond_destroy(pthread_cond_t *c)
{
    atomic_fetch_sub(&objects, 1);
    return __real_pthread_cond_destroy(c);
}

/* A port's claim is kept until the program ends (process_take_port()). */
static bool is_claim(int fd)
{
    struct sockaddr_un name = {.sun_family = AF_UNSPEC};
    socklen_t size = sizeof name;
    return getsockname(fd, (struct sockaddr *)&name, &size) == 0 &&
           name.sun_family == AF_UNIX &&
           strncmp(name.sun_path + 1, "rlock-test-port-", 16) == 0;
}

remains remains_now(void)
{
    remains r = {.objects = atomic_load(&objects)};
    uint64_t last = 0;
    for (int fd = 0; fd < FD_SETSIZE; fd++)
        r.descriptors += fcntl(fd, F_GETFD) >= 0 && !is_claim(fd);
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const block *b = buckets[i]; b; b = b->next) {
            r.blocks++;
            if (b->nth > last) {
                last = b->nth;
                r.last = b->size;
            }
        }
    }
    return r;
}

#endif
