/* The mutexes of rlock.hpp under the guards of the standard library. */
#include <cmath>
#include <hiredis/hiredis.h>
#include <mutex>

#include "place.hpp"

namespace
{

struct place : running {
    rlockpp::client redis{uri()};
    rlockpp::mutex a{redis, "a"}, b{redis, "b"};

    bool is_free(const char *name)
    {
        return server_int(sv, "EXISTS %s", name) == 0;
    }
};

} // namespace

TEST(guards, a_unique_lock_holds_until_its_end)
{
    place p;
    {
        std::unique_lock guard(p.a);
        EXPECT(p.a.held() && p.a.token() > 0 && p.a.valid_for() > 1s);
        EXPECT(!p.is_free("a"));
        elsewhere([&] { EXPECT(!p.a.try_lock() && !p.a.held()); });
    }
    EXPECT(!p.a.held() && p.is_free("a"));
}

TEST(guards, scoped_locks_in_both_orders_lose_no_increment)
{
    place p;
    int counter = 0;
    by_threads(8, [&](int i) {
        for (int k = 0; k < 50; k++) {
            if ((i + k) % 2) {
                std::scoped_lock both(p.a, p.b);
                add_one(counter);
            } else {
                std::scoped_lock both(p.b, p.a);
                add_one(counter);
            }
        }
    });
    EXPECT_INT(counter, 8 * 50);
    EXPECT(p.is_free("a") && p.is_free("b"));
}

TEST(guards, std_lock_takes_both_or_waits)
{
    place p;
    int counter = 0;
    by_threads(4, [&](int i) {
        for (int k = 0; k < 50; k++) {
            std::unique_lock x(i % 2 ? p.a : p.b, std::defer_lock);
            std::unique_lock y(i % 2 ? p.b : p.a, std::defer_lock);
            std::lock(x, y);
            add_one(counter);
        }
    });
    EXPECT_INT(counter, 4 * 50);
}

TEST(guards, a_scoped_lock_of_one_mutex_twice_is_two_levels)
{
    place p;
    rlockpp::mutex &same = p.a;
    {
        std::scoped_lock twice(p.a, same);
        EXPECT_INT(p.a.levels(), 2);
        std::lock_guard third(p.a);
        EXPECT_INT(p.a.levels(), 3);
    }
    EXPECT_INT(p.a.levels(), 0);
    EXPECT(p.is_free("a"));
}

TEST(guards, who_waits_for_a_time_waits_that_long)
{
    place p;
    std::lock_guard guard(p.a);
    elsewhere([&] {
        using clock = std::chrono::steady_clock;
        auto began = clock::now();
        std::unique_lock for_a_while(p.a, 150ms);
        EXPECT(!for_a_while);
        EXPECT_BETWEEN(ms(clock::now() - began), 150, 150 + SLACK_MS);
        began = clock::now();
        std::unique_lock until(p.a, clock::now() + 150ms);
        EXPECT(!until);
        EXPECT_BETWEEN(ms(clock::now() - began), 149, 150 + SLACK_MS);
        EXPECT(!p.a.try_lock_until(std::chrono::system_clock::now() + 1500us));
    });
}

TEST(guards, who_waits_for_a_time_gets_what_is_freed_meanwhile)
{
    place p;
    p.a.lock();
    std::thread thread([&] {
        std::unique_lock guard(p.a, 30s);
        EXPECT(guard.owns_lock());
    });
    EVENTUALLY(SOON, waiting(p.redis) == 1);
    p.a.unlock();
    thread.join();
}

TEST(guards, who_waits_for_the_longest_time_waits)
{
    place p;
    p.a.lock();
    std::thread one([&] {
        EXPECT(p.a.try_lock_for(std::chrono::hours::max()));
        p.a.unlock();
    });
    std::thread other([&] {
        EXPECT(
            p.a.try_lock_until(std::chrono::system_clock::time_point::max()));
        p.a.unlock();
    });
    EVENTUALLY(SOON, waiting(p.redis) == 2);
    p.a.unlock();
    one.join();
    other.join();
}

TEST(guards, who_waits_for_no_time_or_less_tries_once)
{
    place p;
    using system = std::chrono::system_clock;
    using big = std::chrono::time_point<system, std::chrono::hours>;
    auto each_is = [&](bool expected) {
        auto is = [&](bool got) {
            EXPECT_INT(got, expected);
            if (got)
                p.a.unlock();
        };
        is(p.a.try_lock_for(0s));
        is(p.a.try_lock_for(-1ns));
        is(p.a.try_lock_for(std::chrono::hours::min()));
        is(p.a.try_lock_for(std::chrono::duration<double>(std::nan(""))));
        is(p.a.try_lock_until(system::now() - 1h));
        is(p.a.try_lock_until(system::time_point::min()));
        is(p.a.try_lock_until(big::min()));
    };
    each_is(true);
    std::lock_guard guard(p.a);
    elsewhere([&] { each_is(false); });
}

TEST(guards, a_guard_whose_lock_was_lost_ends_quietly)
{
    place p;
    {
        std::unique_lock guard(p.a);
        EXPECT_STATUS(rlock_force_unlock(p.a.native_handle()), RLOCK_OK);
    }
    EXPECT(!p.a.held());
    EXPECT_INT(p.a.levels(), 0);
}

TEST(guards, to_release_by_a_guard_tells_of_the_loss)
{
    place p;
    std::unique_lock guard(p.a), other(p.b);
    EXPECT_STATUS(rlock_force_unlock(p.a.native_handle()), RLOCK_OK);
    EXPECT_STATUS(rlockpp::release(guard), RLOCK_LOST);
    EXPECT(!guard.owns_lock() && guard.mutex() == nullptr);
    EXPECT_STATUS(rlockpp::release(guard), RLOCK_NOT_HELD);
    EXPECT_STATUS(release(other), RLOCK_OK);
    EXPECT(p.is_free("b"));
}

TEST(guards, a_guard_whose_client_is_gone_ends_quietly_and_release_tells)
{
    running r;
    auto redis = std::make_unique<rlockpp::client>(r.uri());
    rlockpp::mutex a(*redis, "a"), b(*redis, "b");
    {
        std::unique_lock guard(a), other(b);
        redis.reset();
        EXPECT_STATUS(rlockpp::release(other), RLOCK_ECLOSED);
    }
    EXPECT(!a.held() && a.token() == 0 && a.valid_for() == 0ms);
}

TEST(guards, a_client_that_closes_can_release_what_is_held)
{
    place p;
    std::unique_lock guard(p.a);
    EXPECT_STATUS(p.redis.close(77), RLOCK_EINVAL);
    EXPECT(static_cast<bool>(p.redis));
    EXPECT_STATUS(p.redis.close(RLOCK_CLOSE_RELEASE_HELD), RLOCK_OK);
    EXPECT(!p.redis);
    EXPECT(p.is_free("a"));
}

TEST(guards, what_was_moved_from_holds_nothing_and_says_so)
{
    place p;
    p.a.lock();
    rlockpp::mutex moved = std::move(p.a);
    EXPECT(moved.held() && !p.a.held() && !p.a);
    EXPECT(p.a.token() == 0 && p.a.valid_for() == 0ms && p.a.levels() == 0);
    p.a.unlock();
    p.a.cancel();
    EXPECT_STATUS(p.a.release(), RLOCK_EINVAL);
    std::error_code ec;
    p.a.lock(ec);
    EXPECT(ec == RLOCK_EINVAL && !p.a.try_lock(ec) && ec == RLOCK_EINVAL);
    p.a = std::move(moved);
    EXPECT_STATUS(p.a.release(), RLOCK_OK);
    rlockpp::client redis = std::move(p.redis);
    EXPECT(redis && !p.redis);
    EXPECT_STATUS(p.redis.dispatch(), RLOCK_EINVAL);
    EXPECT_STATUS(p.redis.close(0), RLOCK_OK);
    EXPECT_INT(p.redis.fd(), -1);
    rlockpp::mutex none(p.redis, "a", ec);
    EXPECT(ec == RLOCK_EINVAL && !none);
    EXPECT(p.b.try_lock()); /* the client's new place is no matter */
}

TEST(guards, a_lease_ends_and_can_be_extended)
{
    test_lease(2000);
    place p;
    p.a.set_lease(2s);
    std::unique_lock guard(p.a);
    EXPECT_BETWEEN(p.a.valid_for().count(), 1, 2000);
    p.a.extend(60s);
    EXPECT_BETWEEN(p.a.valid_for().count(), 2001, 60000);
    p.a.extend(rlockpp::watchdog);
    EXPECT_BETWEEN(p.a.valid_for().count(), 2001, 30000);
}

TEST(guards, what_is_no_lease_is_refused)
{
    place p;
    std::error_code ec;
    auto refused = [&] {
        p.a.lock(ec);
        return ec == RLOCK_EINVAL && !p.a.held();
    };
    p.a.set_lease(-1us);
    EXPECT(refused());
    p.a.set_lease(10us);
    EXPECT(refused());
    p.a.set_lease(std::chrono::hours::max());
    EXPECT(refused());
    p.a.set_lease(0s); /* the watchdog's */
    p.a.lock(ec);
    EXPECT(!ec);
    p.a.extend(-1us, ec);
    EXPECT(ec == RLOCK_EINVAL);
}

TEST(guards, a_cancel_ends_the_wait_of_a_guard)
{
    place p;
    std::lock_guard guard(p.a);
    rlockpp::mutex same(p.redis, "a");
    std::error_code ec;
    std::thread thread([&] { same.lock(ec); });
    EVENTUALLY(SOON, waiting(p.redis) == 1);
    same.cancel();
    thread.join();
    EXPECT(ec == std::errc::operation_canceled);
}

/* --- several -------------------------------------------------------------- */

TEST(guards, several_mutexes_are_one)
{
    place p;
    rlockpp::multi_mutex both({p.a, p.b});
    {
        std::unique_lock guard(both);
        EXPECT(both.held() && p.a.held() && p.b.held());
        EXPECT(both.token() == std::max(p.a.token(), p.b.token()));
    }
    EXPECT(p.is_free("a") && p.is_free("b"));
    std::lock_guard guard(p.b);
    elsewhere([&] { EXPECT(!both.try_lock() && !p.a.held()); });
    std::error_code ec;
    EXPECT(!rlockpp::multi_mutex({}, ec) && ec == RLOCK_EINVAL);
}

TEST(guards, a_name_on_a_majority_of_servers_is_one_lock)
{
    running r[3];
    rlockpp::client x(r[0].uri()), y(r[1].uri()), z(r[2].uri());
    rlockpp::red_mutex m({x, y, z}, "m"), n({z, y, x}, "m");
    {
        std::unique_lock guard(m);
        EXPECT(m.held());
        elsewhere([&] { EXPECT(!n.try_lock()); });
    }
    server_kill(r[2].sv);
    {
        std::unique_lock guard(m);
        EXPECT(m.held());
        EXPECT_INT(server_int(r[0].sv, "EXISTS m"), 1);
        EXPECT_INT(server_int(r[1].sv, "EXISTS m"), 1);
    }
    std::error_code ec;
    EXPECT(!rlockpp::red_mutex({x, x}, "m", ec) && ec == RLOCK_EINVAL);
}

/* --- guarded writes ------------------------------------------------------- */

TEST(guards, who_holds_the_lock_writes_guarded)
{
    place p;
    std::unique_lock guard(p.a);
    EXPECT_INT(p.a.command({"INCRBY", "n", "41"})->integer, 41);
    std::string zero("x\0y", 3);
    p.a.command({"SET", "bytes", zero});
    EXPECT_INT(server_int(p.sv, "STRLEN bytes"), 3);
    p.a.command({"SET", "empty", {}});
    EXPECT_INT(server_int(p.sv, "STRLEN empty"), 0);
    rlockpp::reply r =
        p.a.eval("return redis.call('INCRBY', KEYS[1], ARGV[1])", {"n"}, {"1"});
    EXPECT_INT(r->integer, 42);
}

TEST(guards, who_has_lost_the_lock_writes_nothing)
{
    place p;
    std::unique_lock guard(p.a);
    EXPECT_STATUS(rlock_force_unlock(p.a.native_handle()), RLOCK_OK);
    std::error_code ec;
    rlockpp::reply r = p.a.command({"SET", "n", "1"}, ec);
    EXPECT(ec == RLOCK_LOST && !r);
    EXPECT(p.is_free("n"));
    p.b.lock();
    r = p.b.command({"INCR", "wrong", "number"}, ec);
    EXPECT(ec == RLOCK_ESERVER && r && r->type == REDIS_REPLY_ERROR);
    EXPECT(!p.b.command({}, ec) && ec == RLOCK_EINVAL);
}
