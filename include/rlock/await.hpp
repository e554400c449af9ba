/*
 * Locks for C++20's coroutines, where the compiler has them; rlock.hpp includes
 * this, and mutex there has the functions.
 *
 *     task work(rlockpp::mutex &orders)
 *     {
 *         rlockpp::owner me;                  one for each coroutine
 *         co_await orders.acquire(me);
 *         ...
 *         co_await orders.unlock(me);
 *     }
 *
 * A loop watches client::fd(), and calls client::dispatch(), as async.h says.
 */
#ifndef RLOCK_AWAIT_HPP
#define RLOCK_AWAIT_HPP

#if __has_include(<version>)
#include <version>
#endif
#if defined(__cpp_lib_coroutine)

#include <atomic>
#include <coroutine>
#include <optional>
#include <utility>
#if defined(__cpp_lib_jthread)
#include <stop_token>
#endif

#include <rlock/async.h>
#include <rlock/error.hpp>

namespace rlockpp
{
RLOCKPP_BEGIN_NAMESPACE

namespace detail
{

enum class verb { acquire, acquire_for, unlock, extend };

struct call {
    ::rlock *lk;
    rlock_owner *who;
    int64_t wait_ms, lease_ms;
    on_failure fail;
};

struct nothing {
};

struct canceler {
    rlock_owner *who;
    void operator()() const noexcept
    {
        rlock_owner_cancel(who);
    }
};

template <class Token> struct watch {
    using type = nothing;
};
#if defined(__cpp_lib_jthread)
template <> struct watch<std::stop_token> {
    using type = std::optional<std::stop_callback<canceler>>;
};
#endif

/*
 * What is awaited; it lives in the coroutine. The coroutine goes on when two
 * have come, in whatever order: who has started the call, and the callback,
 * perhaps on another thread. Who comes first touches nothing afterwards, as the
 * coroutine may be over by then.
 */
template <verb Verb, class Hook, class Token> class operation
{
    call what;
    Hook hook;
    Token token;
    rlock_status status = RLOCK_OK;
    rlock_error why = {};
    std::atomic<bool> met{false};
    std::coroutine_handle<> coroutine = nullptr;
    typename watch<Token>::type stop;

    static constexpr bool is_watching = !std::is_same_v<Token, nothing>;
    static constexpr bool is_hooked = !std::is_same_v<Hook, nothing>;

    void note(rlock_status s) noexcept
    {
        status = s;
        if (s != RLOCK_OK)
            why = *rlock_last_error();
    }
    rlock_status start_as_owner() noexcept
    {
        if constexpr (Verb == verb::unlock)
            return rlock_unlock_start(what.lk, called_back, this);
        else if constexpr (Verb == verb::extend)
            return rlock_extend_start(what.lk, what.lease_ms, called_back,
                                      this);
        else
            return rlock_acquire_start(what.lk, what.wait_ms, what.lease_ms,
                                       called_back, this);
    }
    bool start() noexcept
    {
        rlock_owner *former = rlock_owner_set(what.who);
        rlock_status s = start_as_owner();
        (void)rlock_owner_set(former);
        if (s != RLOCK_OK)
            note(s);
        return s == RLOCK_OK;
    }
    /* The hook goes with the coroutine, and may run on. */
    void go_on()
    {
        std::coroutine_handle<> h = coroutine;
        if constexpr (is_hooked) {
            Hook mine = std::move(hook);
            mine(h);
        } else {
            h.resume();
        }
    }
    static void called_back(::rlock *, rlock_status s, void *arg) noexcept
    {
        auto *me = static_cast<operation *>(arg);
        me->note(s);
        if (!me->met.exchange(true))
            return;
        (void)rlock_owner_set(nullptr);
        me->go_on();
    }

  public:
    operation(const call &c, const Hook &h, const Token &t)
        : what(c), hook(h), token(t)
    {
    }
    operation(const operation &) = delete;
    operation &operator=(const operation &) = delete;

    bool await_ready() noexcept
    {
        if constexpr (is_watching) {
            if (token.stop_requested()) {
                why = {RLOCK_CANCELED, 0, "stopped before it began"};
                status = why.status;
                return true;
            }
        }
        return false;
    }
    bool await_suspend(std::coroutine_handle<> h)
    {
        coroutine = h;
        if (!start())
            return false;
        if constexpr (is_watching)
            stop.emplace(token, canceler{what.who});
        if (!met.exchange(true))
            return true;
        if constexpr (is_hooked)
            go_on();
        return is_hooked;
    }
    auto await_resume()
    {
        if constexpr (is_watching)
            stop.reset(); /* waits until a cancel that is under way is over */
        if constexpr (Verb == verb::unlock)
            return status;
        else if constexpr (Verb == verb::acquire_for)
            return what.fail.got(status, why);
        else
            what.fail(status, why);
    }
};

} // namespace detail

/*
 * What acquire(), acquire_for(), extend() and unlock() of a mutex give, to be
 * awaited at once. The call is started for the owner (async.h), and the
 * coroutine goes on in client::dispatch(), or when the client is freed, on a
 * thread that acts as itself; or at once on its own, if nothing was started,
 * or it was over by then. The coroutine must not be destroyed while it is
 * suspended here, and what it throws must not leave it there.
 *
 * resume_by(f)    f(h) is called instead of h.resume(), and hands the coroutine
 *                 to the program's executor; it must not throw
 * stop_by(token)  a wait ends with RLOCK_CANCELED once somebody requests a
 *                 stop; others' waits for that mutex go on. The owner has to
 *                 live as long as the wait. Where there is std::stop_token
 */
template <detail::verb Verb, class Hook = detail::nothing,
          class Token = detail::nothing>
class [[nodiscard]] awaitable
{
    detail::call what;
    Hook hook;
    Token token;

  public:
    explicit awaitable(const detail::call &c, Hook h = {}, Token t = {})
        : what(c), hook(std::move(h)), token(std::move(t))
    {
    }
    template <class F> awaitable<Verb, F, Token> resume_by(F f) const
    {
        return awaitable<Verb, F, Token>(what, std::move(f), token);
    }
#if defined(__cpp_lib_jthread)
    awaitable<Verb, Hook, std::stop_token> stop_by(std::stop_token t) const
    {
        static_assert(Verb == detail::verb::acquire ||
                          Verb == detail::verb::acquire_for,
                      "only waits can be stopped");
        return awaitable<Verb, Hook, std::stop_token>(what, hook, std::move(t));
    }
#endif
    detail::operation<Verb, Hook, Token> operator co_await() const
    {
        return {what, hook, token};
    }
};

RLOCKPP_END_NAMESPACE
} // namespace rlockpp

#endif
#endif
