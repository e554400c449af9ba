/*
 * Exclusion holds for COMMAND, and not only for rlock: before the server may
 * free the lock, the last instruction of COMMAND and of its child is over,
 * whoever stops; and it is over at once when one of the two processes is
 * killed. RLOCK_CLI_ROUNDS: how often each is tried; it then prints the worst
 * (bench.sh).
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "scene.h"

/* A question that took longer was held up by a busy machine: its time tells
   nothing. */
#define PROMPT_US 10000

enum {
    SERVER = 1,
    KEEPER = 2,
    FRONT = 4,
    READS = 8,
    PERMIT = 16,
    NO_GRACE = 32 /* -k 0 */
};

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

/* What is left of the lease; below zero: nothing is held. */
static long long lease_left(server *sv, int whom)
{
    static const char of_permit[] =
        "local ends = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] "
        "local now = redis.call('TIME') "
        "return ends and math.floor(ends - now[1] * 1000 - now[2] / 1000) or "
        "-2";
    return whom & PERMIT
               ? server_int(sv, "EVAL %s 1 {" SCENE_LOCK "}:timeout", of_permit)
               : key_ttl(sv, SCENE_LOCK);
}

/* When the server may free the lock, at the earliest. It was renewed so long ago
   that both processes know, and is not renewed again for a tenth of the lease. Others
   are measured at the same time, and want the processor, too. */
static int64_t freed_at_us(server *sv, int whom)
{
    for (;;) {
        int64_t began = 0;
        long long before, now = lease_left(sv, whom), left;
        do {
            before = now;
            test_pause_ms(1);
            began = lease_clock_us();
            now = lease_left(sv, whom);
        } while (now <= before + 50);
        bool prompt = lease_clock_us() - began < PROMPT_US;
        do {
            test_pause_ms(1);
            left = lease_left(sv, whom);
        } while (left > now - 300 && left <= now);
        if (prompt && left > now - 400 && left <= now - 300)
            return began + now * 1000;
    }
}

static command *start(server *sv, int whom, volatile int64_t **at)
{
    const char *kind = whom & READS ? "-s" : whom & PERMIT ? "-N1" : "-q";
    const char *path = command_file(sv, "stamps");
    unlink(path);
    command *c =
        RLOCK(sv, "run", kind, "-l", "1.5", "-k", whom & NO_GRACE ? "0" : "0.3",
              SCENE_LOCK, RLOCK_STAMP, path);
    *at = stamps(path);
    return c;
}

/* When the last instruction was, once both are dead. */
static int64_t last_of(volatile int64_t *at)
{
    EVENTUALLY(SOON, !process_is_alive((pid_t)at[0]) &&
                         !process_is_alive((pid_t)at[1]));
    int64_t last = at[2] > at[3] ? at[2] : at[3];
    munmap((void *)at, 32);
    return last;
}

/* The next renewal is due when 1,000 ms are left. */
#define BEFORE_RENEWAL_US 1050000

/* True: no renewal has come in between. */
static bool stop_all(const command *c, server *sv, int whom, int64_t freed)
{
    if (whom & SERVER)
        server_pause(sv);
    if (whom & KEEPER)
        kill(command_keeper(c), SIGSTOP);
    if (whom & FRONT)
        kill(command_front(c), SIGSTOP);
    return freed - lease_clock_us() > BEFORE_RENEWAL_US;
}

/* How much time was left, in us. */
static int64_t stop(server *sv, int whom)
{
    volatile int64_t *at;
    command *c = start(sv, whom, &at);
    int64_t freed = freed_at_us(sv, whom);
    bool tells = stop_all(c, sv, whom, freed);
    int64_t left = freed - last_of(at);
    kill(command_front(c), SIGCONT);
    EXPECT_INT(command_end(c), 123);
    server_resume(sv);
    EVENTUALLY(SOON, lease_left(sv, whom) < 0);
    return tells ? left : stop(sv, whom);
}

/* How long it took, in us. */
static int64_t end(server *sv, int whom)
{
    volatile int64_t *at;
    command *c = start(sv, whom, &at);
    pid_t keeper = command_keeper(c), front = command_front(c);
    int64_t began = lease_clock_us();
    kill(whom & KEEPER ? keeper : front, SIGKILL);
    int64_t took = last_of(at) - began;
    command_free(c);
    EVENTUALLY(SOON, lease_left(sv, whom) < 0);
    return took;
}

/* The worst of so many: the least, or the most. */
static int64_t worst(int64_t (*once)(server *sv, int whom), int whom, int sign,
                     const char *what)
{
    const char *rounds = getenv("RLOCK_CLI_ROUNDS");
    int64_t found = INT64_MAX;
    server *sv = server_start(NULL);
    test_lease(1500);
    for (int n = rounds ? atoi(rounds) : 1; n > 0; n--) {
        int64_t one = sign * once(sv, whom);
        found = one < found ? one : found;
    }
    server_stop(sv);
    if (rounds)
        fprintf(stderr, "| %s, the worst of %s | %.1f ms |\n", what, rounds,
                (double)(sign * found) / 1000);
    return sign * found;
}

static void ends_in_time(int whom, const char *what)
{
    EXPECT(worst(stop, whom, 1, what) > 0);
}

static void ends_at_once(int whom, const char *what)
{
    EXPECT_BETWEEN(worst(end, whom, -1, what), INT64_MIN,
                   (100 + SLACK_MS) * 1000);
}

TEST_CASE(exclusion, when_the_server_stops,
          ends_in_time(SERVER, "left when the server is stopped"))
TEST_CASE(exclusion, when_the_keeper_stops,
          ends_in_time(KEEPER, "left when the keeper is stopped"))
TEST_CASE(exclusion, of_who_reads_when_the_server_stops,
          ends_in_time(READS | SERVER,
                       "left to a reader when the server is stopped"))
TEST_CASE(exclusion, of_a_permit_when_the_server_stops,
          ends_in_time(PERMIT | SERVER,
                       "left to a permit when the server is stopped"))
TEST_CASE(exclusion, of_who_reads_when_keeper_and_server_stop,
          ends_in_time(READS | KEEPER | SERVER,
                       "left to a reader when keeper and server are stopped"))
TEST_CASE(exclusion, of_a_permit_when_keeper_and_server_stop,
          ends_in_time(PERMIT | KEEPER | SERVER,
                       "left to a permit when keeper and server are stopped"))
TEST_CASE(exclusion, when_front_and_server_stop,
          ends_in_time(FRONT | SERVER,
                       "left when front and server are stopped"))
TEST_CASE(exclusion, when_keeper_and_server_stop,
          ends_in_time(KEEPER | SERVER,
                       "left when keeper and server are stopped"))
TEST_CASE(exclusion, when_the_front_is_killed,
          ends_at_once(FRONT, "to the last instruction, the front killed"))
TEST_CASE(exclusion, when_the_keeper_is_killed,
          ends_at_once(KEEPER, "to the last instruction, the keeper killed"))

/* Of 1.5 s a hundredth, and 2 ms, are left behind what rlock takes for the end; who
   is killed by then only has no more. A busy machine may take some of the rest. */
TEST(exclusion, without_a_grace_the_front_kills_20_ms_before_the_end)
{
    int64_t left = 0;
    for (int n = 0; n < 5 && left <= 25000; n++)
        left = worst(stop, KEEPER | SERVER | NO_GRACE, 1, "left without grace");
    EXPECT_BETWEEN(left, 25000, 200000);
}
