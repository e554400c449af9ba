/* Owners that are no threads, in C++: who acts as whom, and since when. */
#include "place.hpp"

TEST(owners, two_on_one_thread_exclude_each_other)
{
    running r;
    rlockpp::client redis(r.uri());
    rlockpp::mutex m(redis, "m");
    rlockpp::owner x("x"), y(std::string("y"));
    {
        rlockpp::acting_as self(x);
        m.lock();
        EXPECT(m.held());
    }
    EXPECT(!m.held());
    {
        rlockpp::acting_as self(y);
        EXPECT(!m.try_lock());
        EXPECT_CONTAINS(rlock_last_error()->message, "x");
    }
    EXPECT(m.held(x) && !m.held(y) && m.token(x) > 0 && m.token(y) == 0);
    EXPECT(m.valid_for(x) > 0ms);
    rlockpp::acting_as self(x);
    EXPECT_STATUS(m.release(), RLOCK_OK);
}

TEST(owners, the_end_of_a_scope_gives_back_whom_one_acted_as)
{
    rlockpp::owner x("x"), y("y");
    {
        rlockpp::acting_as outer(x);
        {
            rlockpp::acting_as inner(y);
        }
        EXPECT(rlock_owner_set(x.native_handle()) == x.native_handle());
    }
    EXPECT(rlock_owner_set(nullptr) == nullptr);
}

TEST(owners, one_that_was_moved_from_holds_nothing)
{
    running r;
    rlockpp::client redis(r.uri());
    rlockpp::mutex m(redis, "m");
    rlockpp::owner x("x"), y = std::move(x);
    std::unique_lock guard(m); /* the thread's */
    EXPECT(!m.held(x) && m.token(x) == 0 && m.valid_for(x) == 0ms);
    EXPECT(!x && !x.busy());
    x.cancel();
    EXPECT(m.held() && !m.held(y));
}

TEST(owners, one_locks_here_and_unlocks_elsewhere)
{
    running r;
    rlockpp::client redis(r.uri());
    rlockpp::mutex m(redis, "m");
    rlockpp::owner job;
    elsewhere([&] {
        rlockpp::acting_as self(job);
        m.lock();
    });
    EXPECT(m.held(job) && !job.busy());
    elsewhere([&] {
        rlockpp::acting_as self(job);
        EXPECT_STATUS(m.release(), RLOCK_OK);
    });
}

TEST(owners, those_of_several_threads_lose_no_increment)
{
    running r;
    rlockpp::client redis(r.uri());
    rlockpp::mutex m(redis, "m");
    int counter = 0;
    by_threads(4, [&](int) {
        rlockpp::owner mine[3];
        for (int k = 0; k < 60; k++) {
            rlockpp::acting_as self(mine[k % 3]);
            std::unique_lock guard(m);
            EXPECT_INT(m.levels(), 1);
            add_one(counter);
        }
    });
    EXPECT_INT(counter, 4 * 60);
}

TEST(owners, one_that_another_thread_acts_as_is_busy_and_answers_questions)
{
    running r;
    rlockpp::client redis(r.uri());
    rlockpp::mutex m(redis, "m");
    rlockpp::owner job("job");
    rlockpp::acting_as self(job);
    std::unique_lock guard(m);
    uint64_t token = m.token();
    elsewhere([&] {
        EXPECT(job.busy() && m.token(job) == token);
        rlockpp::acting_as same(job);
        std::error_code ec;
        m.lock(ec);
        EXPECT(ec == RLOCK_EINVAL);
    });
}

TEST(owners, one_that_ends_abandons_what_it_holds)
{
    running r;
    events *ev = events_new();
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = r.uri();
    events_hook(ev, &o);
    {
        rlockpp::client redis(o);
        rlockpp::mutex m(redis, "m");
        rlockpp::owner job("job");
        {
            rlockpp::acting_as self(job);
            m.lock();
        }
        rlockpp::owner ended = std::move(job);
        EXPECT(ended && !job);
        ended = rlockpp::owner();
        events_wait(ev, RLOCK_EVENT_ABANDONED, 1, SOON);
    }
    events_free(ev);
}
