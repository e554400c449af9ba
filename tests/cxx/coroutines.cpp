/* co_await on the mutexes of rlock.hpp: a loop, a pool, stops. */
#include <condition_variable>
#include <coroutine>
#include <deque>
#include <poll.h>

#include "place.hpp"

namespace
{

/* Begins at once, and counts itself out at its end. What it throws ends the
   test. */
std::atomic<int> under_way;

struct task {
    struct promise_type {
        task get_return_object()
        {
            under_way++;
            return {};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
        {
            return {};
        }
        void return_void()
        {
            under_way--;
        }
        void unhandled_exception()
        {
            FAIL("a coroutine throws");
        }
    };
};

struct place : running {
    rlockpp::client redis{uri()};
    rlockpp::mutex m{redis, "m"};

    void turn(int limit_ms = 10) const
    {
        struct pollfd p = {redis.fd(), POLLIN, 0};
        poll(&p, 1, limit_ms);
        EXPECT_STATUS(redis.dispatch(), RLOCK_OK);
    }
    /* Until all coroutines have ended. */
    void loop() const
    {
        while (under_way > 0)
            turn();
    }
    bool is_free()
    {
        return server_int(sv, "EXISTS m") == 0;
    }
};

#define TURN_UNTIL(p, cond)                                                    \
    while (!(cond))                                                            \
    (p).turn()

/* Threads that resume what they are given. */
class pool
{
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::coroutine_handle<>> ready;
    bool is_over = false;
    std::vector<std::thread> threads;

    void work()
    {
        std::unique_lock guard(mutex);
        for (;;) {
            changed.wait(guard, [&] { return is_over || !ready.empty(); });
            if (ready.empty())
                return;
            std::coroutine_handle<> h = ready.front();
            ready.pop_front();
            guard.unlock();
            h.resume();
            guard.lock();
        }
    }

  public:
    std::atomic<int> posted{0};

    explicit pool(int n)
    {
        for (int i = 0; i < n; i++)
            threads.emplace_back([this] { work(); });
    }
    ~pool()
    {
        {
            std::lock_guard guard(mutex);
            is_over = true;
        }
        changed.notify_all();
        for (std::thread &t : threads)
            t.join();
    }
    void post(std::coroutine_handle<> h)
    {
        posted++;
        std::lock_guard guard(mutex);
        ready.push_back(h);
        changed.notify_one();
    }
    bool is_mine() const
    {
        for (const std::thread &t : threads)
            if (t.get_id() == std::this_thread::get_id())
                return true;
        return false;
    }
};

} // namespace

static task lock_and_unlock(rlockpp::mutex &m)
{
    rlockpp::owner me("me");
    co_await m.acquire(me);
    EXPECT(m.held(me) && m.token(me) > 0);
    EXPECT(!m.held()); /* the coroutine's, not the thread's */
    co_await m.extend(me, 60s);
    EXPECT(m.valid_for(me) > 31s);
    EXPECT_STATUS(co_await m.unlock(me), RLOCK_OK);
    EXPECT(!m.held(me));
    EXPECT_STATUS(co_await m.unlock(me), RLOCK_NOT_HELD);
}

TEST(coroutines, a_lock_is_the_owners_until_it_is_unlocked)
{
    place p;
    lock_and_unlock(p.m);
    p.loop();
    EXPECT(p.is_free());
}

static task nest(rlockpp::mutex &m)
{
    rlockpp::owner me;
    co_await m.acquire(me);
    EXPECT(co_await m.acquire_for(me, 0s));
    EXPECT_STATUS(co_await m.unlock(me), RLOCK_OK);
    EXPECT(m.held(me));
    EXPECT_STATUS(co_await m.unlock(me), RLOCK_OK);
}

TEST(coroutines, an_owner_locks_again_what_it_has)
{
    place p;
    nest(p.m);
    p.loop();
    EXPECT(p.is_free());
}

static task wait_for(rlockpp::mutex &m, std::chrono::milliseconds limit,
                     bool expected)
{
    rlockpp::owner me;
    auto began = std::chrono::steady_clock::now();
    bool got = co_await m.acquire_for(me, limit);
    EXPECT_INT(got, expected);
    if (!got)
        EXPECT_BETWEEN(ms(std::chrono::steady_clock::now() - began),
                       limit.count(), limit.count() + SLACK_MS);
    else
        EXPECT_STATUS(co_await m.unlock(me), RLOCK_OK);
}

TEST(coroutines, a_wait_ends_in_time_without_the_lock)
{
    place p;
    p.m.lock();
    wait_for(p.m, 150ms, false);
    wait_for(p.m, 0ms, false);
    p.loop();
    wait_for(p.m, 60s, true);
    TURN_UNTIL(p, waiting(p.redis) == 1);
    p.m.unlock();
    p.loop();
}

template <class Awaited>
static task expect(Awaited awaited, rlock_status wanted, const char *words)
{
    rlock_status s = RLOCK_OK;
    try {
        co_await awaited;
    } catch (const rlockpp::error &e) {
        s = e.status();
        EXPECT_CONTAINS(e.what(), words);
    }
    EXPECT_STATUS(s, wanted);
}

TEST(coroutines, what_fails_is_thrown_where_it_is_awaited)
{
    place p;
    rlockpp::owner me("me"), none = std::move(me), other("other");
    expect(p.m.acquire(me), RLOCK_EINVAL, "acts as no owner");
    expect(p.m.extend(other, 1s), RLOCK_NOT_HELD, "lock 'm'");
    p.loop();
    p.m.lock();
    expect(p.m.acquire(none), RLOCK_CANCELED, "lock 'm'");
    expect(p.m.acquire_for(other, 60s), RLOCK_CANCELED, "lock 'm'");
    TURN_UNTIL(p, waiting(p.redis) == 2);
    p.m.cancel();
    p.loop();
}

static task note(rlockpp::mutex &m, const rlockpp::owner &o,
                 std::error_code &ec)
{
    co_await m.acquire(o, ec);
}

TEST(coroutines, who_hands_in_an_error_code_finds_failures_there)
{
    place p;
    rlockpp::owner a("a"), b("b");
    std::error_code ec = RLOCK_EIO;
    note(p.m, a, ec);
    p.loop();
    EXPECT(!ec);
    note(p.m, b, ec);
    TURN_UNTIL(p, waiting(p.redis) == 1);
    b.cancel();
    p.loop();
    EXPECT(ec == std::errc::operation_canceled);
}

static task wait_at_a_client_that_goes(rlockpp::mutex &m, rlock_status &s)
{
    rlockpp::owner me;
    try {
        co_await m.acquire(me);
    } catch (const rlockpp::error &e) {
        s = e.status();
    }
}

TEST(coroutines, a_client_that_is_freed_ends_all_waits)
{
    running r;
    rlock_status s = RLOCK_OK;
    auto redis = std::make_unique<rlockpp::client>(r.uri());
    rlockpp::mutex m(*redis, "m");
    m.lock();
    wait_at_a_client_that_goes(m, s);
    redis.reset();
    EXPECT_INT(under_way, 0);
    EXPECT_STATUS(s, RLOCK_ECLOSED);
}

/* --- many ----------------------------------------------------------------- */

enum { TASKS = 30, SECTIONS = 20 };

static task count(rlockpp::mutex &m, int &counter)
{
    rlockpp::owner me;
    for (int i = 0; i < SECTIONS; i++) {
        co_await m.acquire(me);
        int seen = counter;
        co_await m.extend(me, 60s); /* others may run */
        counter = seen + 1;
        EXPECT_STATUS(co_await m.unlock(me), RLOCK_OK);
    }
}

TEST(coroutines, thirty_tasks_of_twenty_sections_lose_no_increment)
{
    place p;
    int counter = 0;
    for (int i = 0; i < TASKS; i++)
        count(p.m, counter);
    p.loop();
    EXPECT_INT(counter, TASKS * SECTIONS);
    EXPECT(p.is_free());
}

static task count_in(pool &threads, rlockpp::mutex &m, int &counter)
{
    auto post = [&](std::coroutine_handle<> h) { threads.post(h); };
    rlockpp::owner me;
    for (int i = 0; i < SECTIONS; i++) {
        co_await m.acquire(me).resume_by(post);
        EXPECT(threads.is_mine());
        add_one(counter);
        EXPECT_STATUS(co_await m.unlock(me).resume_by(post), RLOCK_OK);
        EXPECT(threads.is_mine());
    }
}

TEST(coroutines, an_executor_of_the_programs_resumes_them)
{
    place p;
    int counter = 0;
    {
        pool threads(3);
        for (int i = 0; i < TASKS; i++)
            count_in(threads, p.m, counter);
        p.loop();
        EXPECT_INT(threads.posted, TASKS * SECTIONS * 2);
    }
    EXPECT_INT(counter, TASKS * SECTIONS);
}

namespace
{

/* Threads that dispatch until all coroutines have ended. */
template <class Turn> void by_dispatchers(int n, Turn turn)
{
    std::atomic<bool> is_over{false};
    std::thread watch([&] {
        EVENTUALLY(SOON, under_way == 0);
        is_over = true;
    });
    by_threads(n, [&](int) {
        while (!is_over)
            turn();
    });
    watch.join();
}

} // namespace

TEST(coroutines, several_threads_may_dispatch)
{
    place p;
    int counter = 0;
    for (int i = 0; i < TASKS; i++)
        count(p.m, counter);
    by_dispatchers(3, [&] { p.turn(1); });
    EXPECT_INT(counter, TASKS * SECTIONS);
}

/* Stands for a token: to begin to watch it takes until others have dispatched
   often, so that the callback comes before the start of the call returns. */
namespace
{

std::atomic<int> turns;

struct slow {
    bool stop_requested() const
    {
        return false;
    }
};
struct slow_watch {
    void emplace(slow, rlockpp::detail::canceler)
    {
        int seen = turns;
        EVENTUALLY(SOON, turns > seen + 20);
    }
    void reset()
    {
    }
};

} // namespace

template <> struct rlockpp::detail::watch<slow> {
    using type = slow_watch;
};

namespace
{

auto acquire_slowly(rlockpp::mutex &m, const rlockpp::owner &o,
                    std::error_code &ec)
{
    using namespace rlockpp::detail;
    return rlockpp::awaitable<verb::acquire, nothing, slow>(
        {m.native_handle(), o.native_handle(), RLOCK_FOREVER, 0, ec});
}

} // namespace

static task go_on_here(rlockpp::mutex &m, int times)
{
    rlockpp::owner me;
    std::error_code ec;
    for (int i = 0; i < times; i++) {
        auto here = std::this_thread::get_id();
        co_await acquire_slowly(m, me, ec);
        EXPECT(ec == RLOCK_CANCELED && std::this_thread::get_id() == here);
    }
}

static task go_on_there(rlockpp::mutex &m, pool &threads, int times)
{
    auto post = [&](std::coroutine_handle<> h) { threads.post(h); };
    rlockpp::owner me;
    std::error_code ec;
    for (int i = 0; i < times; i++) {
        co_await acquire_slowly(m, me, ec).resume_by(post);
        EXPECT(ec == RLOCK_CANCELED && threads.is_mine());
    }
}

TEST(coroutines, what_is_over_before_its_start_returns_goes_on_once)
{
    place p;
    pool threads(1);
    EXPECT_STATUS(p.redis.cancel(true), RLOCK_OK);
    under_way++;
    std::thread starting([&] {
        go_on_here(p.m, 20);
        go_on_there(p.m, threads, 20);
        under_way--;
    });
    by_dispatchers(1, [&] {
        p.redis.dispatch();
        turns++;
    });
    starting.join();
    EXPECT_INT(threads.posted, 20);
}

static task look_whom_it_acts_as(rlockpp::mutex &m)
{
    rlockpp::owner me;
    co_await m.acquire(me);
    EXPECT(rlock_owner_set(nullptr) == nullptr);
    EXPECT(!m.try_lock()); /* by the thread */
    EXPECT_STATUS(co_await m.unlock(me), RLOCK_OK);
}

TEST(coroutines, one_that_goes_on_acts_as_its_thread)
{
    place p;
    rlockpp::owner other("other");
    look_whom_it_acts_as(p.m);
    rlockpp::acting_as self(other);
    p.loop();
    EXPECT(rlock_owner_set(other.native_handle()) == other.native_handle());
}

/* --- stops ---------------------------------------------------------------- */

#if defined(__cpp_lib_jthread)
static task wait_until_stopped(rlockpp::mutex &m, std::stop_token stop,
                               rlock_status &s)
{
    rlockpp::owner me;
    s = RLOCK_OK;
    try {
        co_await m.acquire(me).stop_by(stop);
        EXPECT_STATUS(co_await m.unlock(me), RLOCK_OK);
    } catch (const rlockpp::error &e) {
        s = e.status();
    }
}

TEST(coroutines, a_stop_ends_its_own_wait_and_no_other)
{
    place p;
    std::stop_source stop, other;
    rlock_status a = RLOCK_EIO, b = RLOCK_EIO;
    p.m.lock();
    wait_until_stopped(p.m, stop.get_token(), a);
    wait_until_stopped(p.m, other.get_token(), b);
    TURN_UNTIL(p, waiting(p.redis) == 2);
    stop.request_stop();
    TURN_UNTIL(p, under_way == 1);
    EXPECT_STATUS(a, RLOCK_CANCELED);
    EXPECT_INT(waiting(p.redis), 1);
    p.m.unlock();
    p.loop();
    EXPECT_STATUS(b, RLOCK_OK);
}

TEST(coroutines, one_that_is_stopped_already_does_not_begin)
{
    place p;
    std::stop_source stop;
    rlock_status s = RLOCK_OK;
    stop.request_stop();
    wait_until_stopped(p.m, stop.get_token(), s);
    EXPECT_INT(under_way, 0);
    EXPECT_STATUS(s, RLOCK_CANCELED);
    EXPECT(p.is_free());
}

TEST(coroutines, a_stop_after_the_grant_changes_nothing)
{
    place p;
    std::stop_source stop;
    rlock_status s = RLOCK_EIO;
    wait_until_stopped(p.m, stop.get_token(), s);
    p.loop();
    stop.request_stop();
    EXPECT_STATUS(s, RLOCK_OK);
    EXPECT(p.is_free());
}

/* Whichever comes first, each ends once, and what was granted is unlocked. */
TEST(coroutines, stops_race_with_grants)
{
    place p;
    rlock_status s[2];
    for (int i = 0; i < 100; i++) {
        std::stop_source stop;
        for (rlock_status &each : s)
            wait_until_stopped(p.m, stop.get_token(), each);
        std::thread stopping([&] { stop.request_stop(); });
        p.loop();
        stopping.join();
        for (rlock_status each : s)
            EXPECT(each == RLOCK_OK || each == RLOCK_CANCELED);
    }
    EXPECT(p.is_free());
}
#else
TEST(coroutines, a_stop_ends_its_own_wait_and_no_other)
{
    SKIP("this library has no std::stop_token");
}
#endif
