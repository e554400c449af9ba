/*
 * Exclusion holds for COMMAND, and not only for rlock: before the server may
 * free the lock, the last instruction of COMMAND and of its child is over,
 * whoever stops. RLOCK_CLI_ROUNDS: how often each is tried; it then prints what
 * was left at least (bench.sh).
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "scene.h"

enum { SERVER = 1, KEEPER = 2, FRONT = 4 };

static int64_t lease_clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Where stamp writes, once both of it have. */
static volatile int64_t *stamps(const char *path)
{
    volatile int64_t *at = MAP_FAILED;
    int64_t until = test_now_ms() + SOON;
    while (at == MAP_FAILED && test_now_ms() < until) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct stat st;
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size >= 32)
            at = mmap(NULL, 32, PROT_READ, MAP_SHARED, fd, 0);
        if (fd >= 0)
            close(fd);
        test_pause_ms(1);
    }
    EXPECT(at != MAP_FAILED);
    EVENTUALLY(SOON, at[2] != 0 && at[3] != 0);
    return at;
}

/* When the server may free the lock, at the earliest. It has just been renewed,
   so that is true until a third of the lease is over. */
static int64_t freed_at_us(server *sv)
{
    int64_t began = 0;
    long long before, now = key_ttl(sv, SCENE_LOCK);
    do {
        before = now;
        began = lease_clock_us();
        now = key_ttl(sv, SCENE_LOCK);
    } while (now <= before + 50);
    return began + now * 1000;
}

/* How much time was left. */
static int64_t once(server *sv, int stops)
{
    const char *path = command_file(sv, "stamps");
    unlink(path);
    command *c = RLOCK(sv, "run", "-l", "1.5", "-k", "0.3", SCENE_LOCK,
                       RLOCK_STAMP, path);
    volatile int64_t *at = stamps(path);
    pid_t keeper = command_keeper(c), front = command_front(c);
    int64_t freed = freed_at_us(sv);
    if (stops & SERVER)
        server_pause(sv);
    if (stops & KEEPER)
        kill(keeper, SIGSTOP);
    if (stops & FRONT)
        kill(front, SIGSTOP);
    EVENTUALLY(SOON, !process_is_alive((pid_t)at[0]) &&
                         !process_is_alive((pid_t)at[1]));
    int64_t last = at[2] > at[3] ? at[2] : at[3];
    kill(front, SIGCONT);
    EXPECT_INT(command_end(c), 123);
    server_resume(sv);
    EVENTUALLY(SOON, levels(sv, SCENE_LOCK) == 0);
    munmap((void *)at, 32);
    return freed - last;
}

static void try_all(const char *what, int stops)
{
    const char *rounds = getenv("RLOCK_CLI_ROUNDS");
    int64_t least = INT64_MAX;
    server *sv = server_start(NULL);
    test_lease(1500);
    for (int n = rounds ? atoi(rounds) : 1; n > 0; n--) {
        int64_t left = once(sv, stops);
        least = left < least ? left : least;
    }
    server_stop(sv);
    if (rounds)
        fprintf(stderr, "%s stopped, %s runs: %lld ms left at least\n", what,
                rounds, (long long)least / 1000);
    EXPECT(least > 0);
}

TEST_CASE(exclusion, when_the_server_stops, try_all("server", SERVER))
TEST_CASE(exclusion, when_the_keeper_stops, try_all("keeper", KEEPER))
TEST_CASE(exclusion, when_front_and_server_stop,
          try_all("front and server", FRONT | SERVER))
TEST_CASE(exclusion, when_keeper_and_server_stop,
          try_all("keeper and server", KEEPER | SERVER))
