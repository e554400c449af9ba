/* What a lock and its unlock cost by a guard of C++, against the calls of C; and
   beside them a PING, and the least that any lock on Redis needs. Short blocks of
   each take turns, in a changing order. */
#include <mutex>
#include <rlock/rlock.hpp>

#include "bench.h"

namespace
{

enum { CYCLES = 1500, BLOCK = 20 };
enum { C, GUARD, RAW, PING, SUBJECTS };

struct subjects {
    rlockpp::client redis;
    rlockpp::mutex m{redis, "bench:guards"};
    redisContext *raw;
    char sha1[41];

    explicit subjects(const char *uri) : redis(uri), raw(bench_connect(uri))
    {
        bench_load_raw(raw, sha1);
    }
    void once(int subject)
    {
        if (subject == GUARD) {
            std::unique_lock guard(m);
        } else if (subject == C) {
            bench_ok(rlock_lock(m.native_handle()));
            bench_ok(rlock_unlock(m.native_handle()));
        } else if (subject == RAW) {
            bench_raw_pair(raw, sha1, "bench:raw");
        } else {
            bench_ask(raw, "PING");
        }
    }
    /* Microseconds for one. */
    double block(int subject)
    {
        int64_t began = bench_now_ns();
        for (int i = 0; i < BLOCK; i++)
            once(subject);
        return static_cast<double>(bench_now_ns() - began) / 1000 / BLOCK;
    }
};

/* Whose turn it is: one that comes before another comes after it as often. */
int turn(int cycle, int i)
{
    int at = cycle % 2 ? SUBJECTS - 1 - i : i;
    return (cycle / 2 + at) % SUBJECTS;
}

} // namespace

int main(int argc, char **argv)
{
    static double us[SUBJECTS][CYCLES];
    double median[SUBJECTS];
    const char *uri = bench_uri(argc, argv);
    bool placed = bench_place(uri, true);
    subjects s(uri);
    for (int i = 0; i < SUBJECTS; i++)
        s.block(i); /* connects, loads scripts */
    bench_begin();
    for (int cycle = 0; cycle < CYCLES; cycle++)
        for (int i = 0; i < SUBJECTS; i++) {
            int subject = turn(cycle, i);
            us[subject][cycle] = s.block(subject);
        }
    for (int i = 0; i < SUBJECTS; i++)
        median[i] = bench_median(us[i], CYCLES);
    bench_row("lock and unlock by a `std::unique_lock`, as a multiple of "
              "`rlock_lock` + `rlock_unlock`",
              1.01, median[GUARD] / median[C], "", "%.1f µs against %.1f µs%s",
              median[GUARD], median[C],
              placed ? "" : "; where the kernel puts them");
    bench_note("- the same, as a multiple of `SET NX PX` + compare-and-delete",
               "%.2f; %.1f µs against %.1f µs", median[GUARD] / median[RAW],
               median[GUARD], median[RAW]);
    bench_note("- in PINGs", "%.1f; a PING %.1f µs",
               median[GUARD] / median[PING], median[PING]);
    redisFree(s.raw);
    return 0;
}
