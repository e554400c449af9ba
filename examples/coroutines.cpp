/*
 * coroutines [URI]: C++20 coroutines wait for a lock, and no thread does.
 *
 * Twenty coroutines on one thread add one to a variable, ten times each, and
 * let others run between reading and writing it. Without a lock steps are lost;
 * under co_await lock.acquire() none is. awaitable.hpp is all it takes.
 */
#include "awaitable.hpp"
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <poll.h>

static const int coroutines = 20, rounds = 10;
static int counter, unfinished;

static void must(rlock_status s)
{
    if (s == RLOCK_OK)
        return;
    std::fprintf(stderr, "%s\n", rlock_last_error()->message);
    std::exit(1);
}

/* co_await others_turn(): the coroutine goes on in the loop's next round. */
static std::deque<std::coroutine_handle<>> ready;
struct others_turn : std::suspend_always {
    void await_suspend(std::coroutine_handle<> h) const
    {
        ready.push_back(h);
    }
};

static task count(rlock_client *client, bool locked)
{
    owned_lock lock(client, "example:coroutines");
    for (int i = 0; i < rounds; i++) {
        if (locked)
            must(co_await lock.acquire());
        int seen = counter;
        co_await others_turn();
        counter = seen + 1;
        if (locked)
            must(co_await lock.unlock());
    }
    unfinished--;
}

static int run(rlock_client *client, bool locked)
{
    counter = 0;
    for (unfinished = 0; unfinished < coroutines; unfinished++)
        count(client, locked);
    while (unfinished > 0) {
        pollfd p = {rlock_client_fd(client), POLLIN, 0};
        poll(&p, 1, ready.empty() ? -1 : 0);
        must(rlock_client_dispatch(client));
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
{
    rlock_options options = RLOCK_OPTIONS_INIT;
    rlock_client *client;
    options.uri = argc > 1 ? argv[1] : nullptr;
    must(rlock_client_new(&options, &client));
    bool lost = run(client, false) < coroutines * rounds;
    bool kept = run(client, true) == coroutines * rounds;
    rlock_client_free(client);
    return lost && kept ? 0 : 1;
}
