/* The read-write lock of rlock.hpp under the guards of the standard library. */
#include <mutex>
#include <shared_mutex>

#include "place.hpp"

namespace
{

struct place : running {
    rlockpp::client redis{uri()};
    rlockpp::shared_mutex prices{redis, "prices"};
};

} // namespace

TEST(shared, readers_read_together_and_nobody_writes)
{
    place p;
    std::shared_lock mine(p.prices);
    elsewhere([&] {
        std::shared_lock theirs(p.prices, std::try_to_lock);
        EXPECT(theirs.owns_lock() && p.prices.reading().held());
        theirs.unlock();
        EXPECT(!p.prices.try_lock());
        EXPECT(!p.prices.try_lock_for(20ms));
    });
    EXPECT(p.prices.reading().held() && !p.prices.held());
    mine.unlock();
    elsewhere([&] { EXPECT(std::unique_lock(p.prices, 30s).owns_lock()); });
}

TEST(shared, who_writes_is_alone)
{
    place p;
    std::unique_lock mine(p.prices);
    EXPECT(p.prices.held() && p.prices.token() > 0);
    elsewhere([&] {
        EXPECT(!p.prices.try_lock_shared());
        std::shared_lock theirs(p.prices, 20ms);
        EXPECT(!theirs.owns_lock());
        EXPECT(!p.prices.try_lock_shared_until(
            std::chrono::steady_clock::now() + 20ms));
    });
}

TEST(shared, writers_under_guards_lose_no_increment)
{
    place p;
    int counter = 0;
    by_threads(6, [&](int i) {
        for (int k = 0; k < 20; k++) {
            if ((i + k) % 2) {
                std::scoped_lock alone(p.prices);
                add_one(counter);
            } else {
                std::shared_lock reads(p.prices);
                EXPECT(p.prices.reading().held());
            }
        }
    });
    EXPECT_INT(counter, 6 * 20 / 2);
    EXPECT_INT(server_int(p.sv, "EXISTS prices"), 0);
}

TEST(shared, the_only_reader_may_write_and_two_may_not)
{
    place p;
    std::shared_lock reads(p.prices);
    p.prices.lock();
    p.prices.unlock();
    elsewhere([&] {
        std::shared_lock too(p.prices);
        std::error_code ec;
        p.prices.lock(ec);
        EXPECT(ec == RLOCK_EDEADLK);
        EXPECT(p.prices.reading().held());
    });
}

TEST(shared, its_lease_is_that_of_both_sides)
{
    place p;
    p.prices.set_lease(2s);
    std::shared_lock reads(p.prices);
    EXPECT_BETWEEN(ms(p.prices.reading().valid_for()), 1, 2000);
    reads.unlock();
    std::unique_lock writes(p.prices);
    EXPECT_BETWEEN(ms(p.prices.valid_for()), 1, 2000);
}
