/* How rlock.hpp tells of failures: codes, what they compare with, messages. */
#include <cerrno>

#include "place.hpp"

static_assert(std::is_error_code_enum_v<rlock_status>);
static_assert(!std::is_copy_constructible_v<rlockpp::client> &&
              !std::is_copy_constructible_v<rlockpp::mutex> &&
              !std::is_copy_constructible_v<rlockpp::owner>);
static_assert(std::is_nothrow_move_constructible_v<rlockpp::client> &&
              std::is_nothrow_move_assignable_v<rlockpp::mutex> &&
              std::is_nothrow_move_constructible_v<rlockpp::owner>);
static_assert(noexcept(std::declval<rlockpp::mutex &>().unlock()));
static_assert(noexcept(std::declval<rlockpp::mutex &>().release()));

namespace
{

/* What a call throws, which is no other thing; RLOCK_OK: nothing. */
struct outcome {
    rlock_status status = RLOCK_OK;
    std::error_code code;
    std::string what;
    int sys_errno = 0;

    template <class F> explicit outcome(F f)
    {
        try {
            f();
        } catch (const rlockpp::error &e) {
            status = e.status();
            code = e.code();
            what = e.what();
            sys_errno = e.sys_errno();
        }
    }
    bool says(const char *words) const
    {
        return what.find(words) != std::string::npos;
    }
};

} // namespace

TEST(errors, each_status_compares_with_what_it_is_like)
{
    const struct {
        rlock_status status;
        std::errc like;
    } rows[] = {
        {RLOCK_BUSY, std::errc::device_or_resource_busy},
        {RLOCK_TIMEOUT, std::errc::timed_out},
        {RLOCK_CANCELED, std::errc::operation_canceled},
        {RLOCK_NOT_HELD, std::errc::operation_not_permitted},
        {RLOCK_EINVAL, std::errc::invalid_argument},
        {RLOCK_ENOMEM, std::errc::not_enough_memory},
        {RLOCK_EIO, std::errc::io_error},
        {RLOCK_ENOTSUP, std::errc::not_supported},
        {RLOCK_EDEADLK, std::errc::resource_deadlock_would_occur},
    };
    for (const auto &row : rows) {
        std::error_code ec = row.status;
        EXPECT(ec && ec == row.status && ec == row.like);
        EXPECT(ec != RLOCK_LOST && ec != std::errc::broken_pipe);
        EXPECT(ec.message() == rlock_status_str(row.status));
    }
    std::error_code lost = RLOCK_LOST, ok = RLOCK_OK;
    EXPECT(lost && lost == RLOCK_LOST && !ok);
    EXPECT(lost.default_error_condition().category() == rlockpp::category());
    EXPECT_STR(lost.category().name(), "rlock");
}

TEST(errors, that_others_have_it_is_no_failure)
{
    running r;
    rlockpp::client redis(r.uri());
    rlockpp::mutex m(redis, "m");
    std::lock_guard guard(m);
    elsewhere([&] {
        std::error_code ec = RLOCK_EIO;
        EXPECT(!m.try_lock());
        EXPECT_STATUS(rlock_last_error()->status, RLOCK_BUSY);
        EXPECT_CONTAINS(rlock_last_error()->message, "held by");
        EXPECT(!m.try_lock(ec) && !ec);
        EXPECT(!m.try_lock_for(10ms));
        EXPECT_STATUS(rlock_last_error()->status, RLOCK_TIMEOUT);
        ec = RLOCK_EIO;
        EXPECT(!m.try_lock_for(10ms, ec) && !ec);
        ec = RLOCK_EIO;
        EXPECT(!m.try_lock_until(std::chrono::steady_clock::now(), ec) && !ec);
    });
}

TEST(errors, a_server_that_is_not_there_is_an_io_error)
{
    outcome o([] { rlockpp::client c("redis://127.0.0.1:1"); });
    EXPECT(o.code == std::errc::io_error && o.code == RLOCK_EIO);
    EXPECT_STATUS(o.status, RLOCK_EIO);
    EXPECT_INT(o.sys_errno, ECONNREFUSED);
    EXPECT(o.says("127.0.0.1:1"));
    std::error_code ec;
    rlockpp::client c("redis://127.0.0.1:1", ec);
    EXPECT(ec == std::errc::io_error && !c);
    try {
        rlockpp::client again(std::string("redis://127.0.0.1:1"));
        FAIL("there is a client");
    } catch (const std::system_error &e) {
        EXPECT(e.code() == std::errc::io_error);
    }
}

TEST(errors, a_server_that_dies_is_an_io_error_of_the_lock)
{
    running r;
    rlockpp::client redis(r.uri());
    rlockpp::mutex m(redis, "orders:7");
    std::unique_lock held(m);
    rlockpp::mutex other(redis, "orders:8");
    server_kill(r.sv);
    outcome o([&] { other.try_lock(); });
    EXPECT(o.code == std::errc::io_error);
    EXPECT(o.says("orders:8"));
    EXPECT_STATUS(rlockpp::release(held), RLOCK_EIO);
}

TEST(errors, bad_arguments_are_thrown_as_such)
{
    running r;
    rlockpp::client redis(r.uri());
    EXPECT(outcome([&] { rlockpp::client("nonsense"); }).code ==
           std::errc::invalid_argument);
    EXPECT(outcome([&] { rlockpp::mutex(redis, ""); }).code == RLOCK_EINVAL);
    EXPECT(outcome([&] { rlockpp::mutex(redis, {}); }).code == RLOCK_EINVAL);
    EXPECT(outcome([&] { rlockpp::multi_mutex({}); }).code == RLOCK_EINVAL);
    EXPECT(outcome([&] { rlockpp::red_mutex({}, "m"); }).code == RLOCK_EINVAL);
    rlockpp::mutex m(redis, "m");
    EXPECT(outcome([&] { m.extend(1s); }).code ==
           std::errc::operation_not_permitted);
    EXPECT(outcome([&] { m.command({"PING"}); }).code == RLOCK_NOT_HELD);
    EXPECT(outcome([&] { m.eval("return 1", {}, {}); }).status ==
           RLOCK_NOT_HELD);
    redis.close(0);
    EXPECT(outcome([&] { m.lock(); }).code == RLOCK_ECLOSED);
}

TEST(errors, names_may_have_any_bytes)
{
    running r;
    rlockpp::client redis(r.uri());
    rlockpp::mutex m(redis, std::string_view("a\0b", 3));
    std::lock_guard guard(m);
    EXPECT_INT(server_int(r.sv, "EXISTS %b", "a\0b", size_t{3}), 1);
}

TEST(errors, who_would_close_a_circle_is_told_of_the_deadlock)
{
    running r;
    rlockpp::client redis(r.uri());
    rlockpp::mutex m[2] = {{redis, "hen"}, {redis, "egg"}};
    std::atomic<int> inside{0}, told{0};
    by_threads(2, [&](int i) {
        std::unique_lock first(m[i]);
        inside++;
        while (inside < 2)
            std::this_thread::yield();
        outcome o([&] { std::unique_lock second(m[1 - i]); });
        if (o.code == std::errc::resource_deadlock_would_occur &&
            o.says("deadlock") && o.says("hen") && o.says("egg"))
            told++;
        else
            EXPECT(o.status == RLOCK_OK);
    });
    EXPECT_INT(told, 1);
}

TEST(errors, a_client_that_cancels_is_thrown)
{
    running r;
    rlockpp::client redis(r.uri());
    rlockpp::mutex m(redis, "m");
    EXPECT_STATUS(redis.cancel(true), RLOCK_OK);
    EXPECT(outcome([&] { m.lock(); }).code == std::errc::operation_canceled);
    EXPECT(outcome([&] { m.try_lock_for(1s); }).code == RLOCK_CANCELED);
    EXPECT(m.try_lock()); /* no wait */
    m.unlock();
}

TEST(errors, a_lost_lock_cannot_be_locked_again)
{
    running r;
    rlockpp::client redis(r.uri());
    rlockpp::mutex m(redis, "m");
    std::unique_lock guard(m);
    EXPECT_STATUS(rlock_force_unlock(m.native_handle()), RLOCK_OK);
    EXPECT(outcome([&] { m.lock(); }).code == RLOCK_LOST);
    EXPECT_INT(m.levels(), 0);
}
