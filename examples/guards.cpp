/*
 * guards [URI]: the lock under the guards of the standard library.
 *
 * Four threads move money between two accounts, in both directions, each under
 * std::scoped_lock of both. Then: a guard that waits at most for a while, a
 * function that locks again what its caller holds, a loss, and a deadlock.
 */
#include <cstdio>
#include <rlock/rlock.hpp>
#include <string>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;

static void transfers(rlockpp::mutex &a, rlockpp::mutex &b)
{
    int balance[2] = {1000, 1000};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            for (int k = 0; k < 25; k++) {
                std::scoped_lock both(i % 2 ? a : b, i % 2 ? b : a);
                balance[i % 2] -= 10;
                balance[1 - i % 2] += 10;
            }
        });
    for (std::thread &t : threads)
        t.join();
    std::printf("100 transfers both ways: %d and %d\n", balance[0], balance[1]);
}

static void audit(rlockpp::mutex &a)
{
    std::lock_guard guard(a); /* one level more: never blocks */
    std::printf("level %d, fencing token %llu\n", a.levels(),
                static_cast<unsigned long long>(a.token()));
}

static void wait_in_vain(rlockpp::mutex &a)
{
    std::thread([&] {
        std::unique_lock guard(a, 200ms);
        std::printf("after 200 ms: %s\n", guard ? "locked" : "still held");
    }).join();
}

/* A destructor says nothing of a loss; who must know asks. */
static rlock_status lose(rlockpp::mutex &a)
{
    std::unique_lock guard(a);
    rlock_force_unlock(a.native_handle()); /* somebody else's doing */
    rlock_status s = rlockpp::release(guard);
    std::printf("at the release: %s\n", rlock_status_str(s));
    return s;
}

static void meet(rlockpp::mutex &mine, rlockpp::mutex &other)
try {
    std::unique_lock first(mine);
    std::this_thread::sleep_for(100ms);
    std::unique_lock second(other);
} catch (const rlockpp::error &e) {
    if (e.code() != std::errc::resource_deadlock_would_occur)
        throw;
    std::printf("one was told: %s\n", e.what());
}

int main(int argc, char **argv)
try {
    rlockpp::client redis(argc > 1 ? argv[1] : nullptr);
    /* This run's own: of a circle over two processes nobody is told. */
    std::string run = std::to_string(getpid());
    rlockpp::mutex a(redis, "example:a:" + run), b(redis, "example:b:" + run);
    transfers(a, b);
    {
        std::unique_lock guard(a);
        audit(a);
        wait_in_vain(a);
    }
    rlock_status s = lose(a);
    std::thread one([&] { meet(a, b); });
    meet(b, a);
    one.join();
    return s == RLOCK_LOST ? 0 : 1;
} catch (const rlockpp::error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
