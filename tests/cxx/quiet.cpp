/* rlock.hpp without exceptions, by the macro or by the compiler's option. */
#include <mutex>

#include "place.hpp"

#ifndef RLOCKPP_NO_EXCEPTIONS
#error "this is for what throws nothing"
#endif

namespace
{

template <class M, class = void> struct locks_without_code : std::false_type {
};
template <class M>
struct locks_without_code<M, std::void_t<decltype(std::declval<M &>().lock())>>
    : std::true_type {
};
static_assert(!locks_without_code<rlockpp::mutex>::value);
static_assert(!std::is_default_constructible_v<rlockpp::client> &&
              !std::is_constructible_v<rlockpp::owner>);

} // namespace

TEST(quiet, all_can_be_done_with_error_codes)
{
    running r;
    std::error_code ec = RLOCK_EIO;
    rlockpp::client redis(r.uri(), ec);
    EXPECT(redis && !ec);
    rlockpp::mutex m(redis, "m", ec);
    m.lock(ec);
    EXPECT(!ec);
    std::unique_lock guard(m, std::adopt_lock);
    elsewhere([&] {
        std::error_code mine = RLOCK_EIO;
        EXPECT(!m.try_lock(mine) && !mine);
        EXPECT(!m.try_lock_for(1ms, mine) && !mine);
    });
    m.extend(60s, ec);
    EXPECT(!ec && m.valid_for() > 31s);
    EXPECT_STATUS(rlockpp::release(guard), RLOCK_OK);
    m.extend(60s, ec);
    EXPECT(ec == RLOCK_NOT_HELD);
}

TEST(quiet, what_could_not_be_made_is_none)
{
    std::error_code ec;
    rlockpp::client none("redis://127.0.0.1:1", ec);
    EXPECT(!none && ec == std::errc::io_error);
    rlockpp::mutex m(none, "m", ec);
    EXPECT(!m && ec == std::errc::invalid_argument);
    m.lock(ec);
    EXPECT(ec == RLOCK_EINVAL);
    m.unlock();
    EXPECT(!rlockpp::multi_mutex({m}, ec) && ec == RLOCK_EINVAL);
    EXPECT(!rlockpp::red_mutex({none}, "m", ec) && ec == RLOCK_EINVAL);
}

TEST(quiet, an_owner_locks)
{
    running r;
    std::error_code ec;
    rlockpp::client redis(r.uri(), ec);
    rlockpp::mutex m(redis, "m", ec);
    rlockpp::owner job("job", ec), other(ec);
    EXPECT(job && other && !ec);
    rlockpp::acting_as self(job);
    m.lock(ec);
    EXPECT(m.held() && !m.held(other));
    EXPECT_STATUS(m.release(), RLOCK_OK);
}

#if defined(__cpp_lib_coroutine)
namespace
{
struct task {
    struct promise_type {
        task get_return_object()
        {
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
        }
        void unhandled_exception()
        {
        }
    };
};
} // namespace

static task work(rlockpp::mutex &m, const rlockpp::owner &o, bool &done)
{
    std::error_code ec = RLOCK_EIO;
    co_await m.acquire(o, ec);
    EXPECT(!ec && m.held(o));
    ec = RLOCK_EIO;
    EXPECT(co_await m.acquire_for(o, 1s, ec));
    EXPECT(!ec);
    EXPECT_STATUS(co_await m.unlock(o), RLOCK_OK);
    EXPECT_STATUS(co_await m.unlock(o), RLOCK_OK);
    co_await m.extend(o, 1s, ec);
    EXPECT(ec == RLOCK_NOT_HELD);
    done = true;
}

TEST(quiet, a_coroutine_locks)
{
    running r;
    std::error_code ec;
    rlockpp::client redis(r.uri(), ec);
    rlockpp::mutex m(redis, "m", ec);
    rlockpp::owner me(ec);
    bool done = false;
    work(m, me, done);
    EVENTUALLY(SOON, redis.dispatch() == RLOCK_OK && done);
}
#endif
