#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *map_file(const char *path, size_t size, bool create, int how)
{
    int fd =
        open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600);
    if (fd < 0 || (create && ftruncate(fd, (off_t)size) < 0))
        attack_die("%s: %s", path, strerror(errno));
    void *at =
        mmap(NULL, size, PROT_READ | PROT_WRITE, how | MAP_NORESERVE, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        attack_die("cannot map %s: %s", path, strerror(errno));
    return at;
}

arena *arena_map(const char *dir, bool create)
{
    char path[512];
    snprintf(path, sizeof path, "%s/arena", dir);
    return map_file(path, sizeof(arena), create, MAP_SHARED);
}

static uint64_t sum(const _Atomic uint64_t figures[LOCK_KINDS], int first)
{
    uint64_t sum = 0;
    for (int kind = first; kind < LOCK_KINDS; kind++)
        sum += atomic_load(&figures[kind]);
    return sum;
}

uint64_t arena_grants(const arena *a)
{
    return sum(a->grants, 0);
}

uint64_t arena_loop_grants(const arena *a)
{
    return sum(a->loop_grants, 0);
}

uint64_t arena_kinds_grants(const arena *a)
{
    return sum(a->grants, LOCK_FAIR);
}

static void path_of(char *path, size_t size, const char *dir, int life)
{
    snprintf(path, size, "%s/history.%04d", dir, life);
}

history *history_map(const char *dir, int life, bool create)
{
    char path[512];
    path_of(path, sizeof path, dir, life);
    return map_file(path, sizeof(history), create,
                    create ? MAP_SHARED : MAP_PRIVATE);
}

bool history_exists(const char *dir, int life)
{
    char path[512];
    path_of(path, sizeof path, dir, life);
    return access(path, R_OK) == 0;
}

void history_unmap(history *h)
{
    munmap(h, sizeof *h);
}

hold *history_hold(history *h)
{
    uint32_t i = atomic_fetch_add(&h->n_holds, 1);
    if (i >= HOLDS_MAX)
        attack_die("more than %d holds in one history", HOLDS_MAX);
    return &h->holds[i];
}

void history_note(history *h, const note *n)
{
    uint32_t i = atomic_fetch_add(&h->n_notes, 1);
    if (i >= NOTES_MAX)
        attack_die("more than %d notes in one history", NOTES_MAX);
    h->notes[i] = *n;
}
