/* What a lock and its unlock cost by a guard of C++, against the calls of C. Short
   blocks of each take turns, in a changing order. */
#include <mutex>
#include <rlock/rlock.hpp>

#include "bench.h"

namespace
{

enum { CYCLES = 1500, BLOCK = 20 };

struct subjects {
    rlockpp::client redis;
    rlockpp::mutex m{redis, "bench:guards"};

    explicit subjects(const char *uri) : redis(uri)
    {
    }
    void pair(bool guarded)
    {
        if (guarded) {
            std::unique_lock guard(m);
        } else {
            bench_ok(rlock_lock(m.native_handle()));
            bench_ok(rlock_unlock(m.native_handle()));
        }
    }
    /* Microseconds for one. */
    double block(bool guarded)
    {
        int64_t began = bench_now_ns();
        for (int i = 0; i < BLOCK; i++)
            pair(guarded);
        return static_cast<double>(bench_now_ns() - began) / 1000 / BLOCK;
    }
};

} // namespace

int main(int argc, char **argv)
{
    static double us[2][CYCLES];
    const char *uri = bench_uri(argc, argv);
    bool placed = bench_place(uri, true);
    subjects s(uri);
    s.block(false); /* connects, loads scripts */
    bench_begin();
    for (int cycle = 0; cycle < CYCLES; cycle++)
        for (int i = 0; i < 2; i++)
            us[(cycle + i) % 2][cycle] = s.block((cycle + i) % 2);
    double c = bench_median(us[0], CYCLES), cxx = bench_median(us[1], CYCLES);
    bench_row("lock and unlock by a `std::unique_lock`, as a multiple of "
              "`rlock_lock` + `rlock_unlock`",
              1.01, cxx / c, "", "%.1f µs against %.1f µs%s", cxx, c,
              placed ? "" : "; where the kernel puts them");
    return 0;
}
