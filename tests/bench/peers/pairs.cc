// pairs PORT; see peers.c. The lock of redis-plus-plus that renews itself. Its
// lock() sleeps up to 5 ms before it asks, so what is measured is try_lock().
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sw/redis++/patterns/redlock.h>

namespace
{

using sw::redis::RedMutex;

constexpr int most_threads = 16;

void work(RedMutex &mutex, std::atomic<int> &left)
{
    while (left-- > 0) {
        if (!mutex.try_lock())
            std::abort();
        mutex.unlock();
    }
}

// Microseconds; this thread is the first one.
long long block(std::vector<std::unique_ptr<RedMutex>> &mutexes, int threads,
                int pairs)
{
    std::atomic<int> left(pairs);
    std::vector<std::thread> others;
    auto began = std::chrono::steady_clock::now();
    for (int i = 1; i < threads; i++)
        others.emplace_back([&, i] { work(*mutexes[i], left); });
    work(*mutexes[0], left);
    for (auto &other : others)
        other.join();
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::steady_clock::now() - began)
        .count();
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    sw::redis::ConnectionOptions server;
    sw::redis::ConnectionPoolOptions pool;
    server.host = "127.0.0.1";
    server.port = std::atoi(argv[1]);
    pool.size = most_threads; // a connection for each thread
    auto redis = std::make_shared<sw::redis::Redis>(server, pool);
    auto watcher = std::make_shared<sw::redis::LockWatcher>();
    std::vector<std::unique_ptr<RedMutex>> mutexes;
    for (int i = 0; i < most_threads; i++)
        mutexes.emplace_back(new RedMutex(redis, "redis++:" + std::to_string(i),
                                          nullptr, sw::redis::RedMutexOptions{},
                                          watcher));

    int threads, pairs;
    while (std::scanf("%d %d", &threads, &pairs) == 2) {
        std::printf("%lld\n", block(mutexes, threads, pairs));
        std::fflush(stdout);
    }
}
