/* What the tests of rlock.hpp share: a server, a client of it, and threads. */
#ifndef TEST_CXX_PLACE_HPP
#define TEST_CXX_PLACE_HPP

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <rlock/rlock.hpp>

#include "server.h"

using namespace std::chrono_literals;

/* First made, last stopped: clients go before their server. */
struct running {
    server *sv = server_start(nullptr);

    running() = default;
    running(const running &) = delete;
    ~running()
    {
        server_stop(sv);
    }
    const char *uri() const
    {
        return server_uri(sv);
    }
};

/* Whatever has to be done by another thread, which is over then. */
template <class F> void elsewhere(F f)
{
    std::thread(f).join();
}

template <class F> void by_threads(int n, F f)
{
    std::vector<std::thread> all;
    for (int i = 0; i < n; i++)
        all.emplace_back(f, i);
    for (std::thread &t : all)
        t.join();
}

/* How many wait for locks of this client. */
inline uint64_t waiting(const rlockpp::client &c)
{
    rlock_stats s;
    EXPECT_STATUS(rlock_client_stats(c.native_handle(), &s, sizeof s),
                  RLOCK_OK);
    return s.waiting_now;
}

/* Lets others run in the middle, so that who is not excluded shows. */
inline void add_one(int &counter)
{
    volatile int &v = counter;
    int seen = v;
    std::this_thread::yield();
    v = seen + 1;
}

inline int64_t ms(std::chrono::nanoseconds d)
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
}

#endif
