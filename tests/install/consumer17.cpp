/* consumer17 URI: a program in C++17 with nothing but the installed library, and
   so without hiredis. */
#include <rlock/rlock.hpp>

#include <cstdio>

using namespace std::chrono_literals;

static bool nested(rlockpp::mutex &m)
{
    std::lock_guard guard(m);
    return m.levels() == 2;
}

static bool works(const char *uri)
{
    rlockpp::client client(uri);
    rlockpp::mutex m(client, "consumer"), other(client, "other");
    rlockpp::multi_mutex both({m, other});
    rlockpp::owner owner("consumer");
    std::unique_lock guard(m, 5s);
    if (!guard || !nested(m) || m.token() == 0 || m.held(owner))
        return false;
    std::scoped_lock all(both, other);
    return rlockpp::release(guard) == RLOCK_OK && m.levels() == 1;
}

int main(int argc, char **argv)
try {
    return argc == 2 && works(argv[1]) ? 0 : 1;
} catch (const rlockpp::error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
