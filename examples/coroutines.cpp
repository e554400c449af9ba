/*
 * coroutines [URI]: C++20 coroutines wait for a lock, and no thread does.
 *
 * Twenty coroutines on one thread add one to a variable, ten times each, and
 * let others run between reading and writing it. Without a lock steps are lost;
 * under co_await lock.acquire(me) none is.
 */
#include <cstdio>
#include <deque>
#include <poll.h>
#include <rlock/rlock.hpp>

static const int coroutines = 20, rounds = 10;
static int counter, unfinished;

/* A coroutine that begins at once, and that nobody waits for. */
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
            std::terminate();
        }
    };
};

/* co_await others_turn(): the coroutine goes on in the loop's next round. */
static std::deque<std::coroutine_handle<>> ready;
struct others_turn : std::suspend_always {
    void await_suspend(std::coroutine_handle<> h) const
    {
        ready.push_back(h);
    }
};

static task count(rlockpp::mutex &lock, bool locked)
{
    rlockpp::owner me; /* one for each, so that they exclude each other */
    for (int i = 0; i < rounds; i++) {
        if (locked)
            co_await lock.acquire(me);
        int seen = counter;
        co_await others_turn();
        counter = seen + 1;
        if (locked)
            co_await lock.unlock(me);
    }
    unfinished--;
}

static int run(rlockpp::client &client, bool locked)
{
    rlockpp::mutex lock(client, "example:coroutines");
    counter = 0;
    for (unfinished = 0; unfinished < coroutines; unfinished++)
        count(lock, locked);
    while (unfinished > 0) {
        pollfd p = {client.fd(), POLLIN, 0};
        poll(&p, 1, ready.empty() ? -1 : 0);
        client.dispatch();
        for (auto n = ready.size(); n > 0; n--) {
            std::coroutine_handle<> next = ready.front();
            ready.pop_front();
            next.resume();
        }
    }
    std::printf("%s lock: %d of %d steps\n", locked ? "with the" : "without a",
                counter, coroutines * rounds);
    return counter;
}

int main(int argc, char **argv)
try {
    rlockpp::client client(argc > 1 ? argv[1] : nullptr);
    bool lost = run(client, false) < coroutines * rounds;
    bool kept = run(client, true) == coroutines * rounds;
    return lost && kept ? 0 : 1;
} catch (const rlockpp::error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
