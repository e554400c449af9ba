/*
 * rlock for C++17: mutexes for std::unique_lock, std::scoped_lock and
 * std::lock, and in C++20 for co_await. Header only: link what C links.
 *
 *     rlockpp::client redis("redis://127.0.0.1");
 *     rlockpp::mutex orders(redis, "orders");
 *     {
 *         std::unique_lock guard(orders, 2s);
 *         if (guard)
 *             write(data, orders.token());
 *     }
 *
 * What a member does, how long it blocks, and whom "thread" means say the
 * headers of C, which rlock.h lists, over the function that it calls; this one
 * says what differs. Objects own a handle of C, and are moved, not copied. One
 * without a handle (moved from, or could not be made) answers RLOCK_EINVAL and
 * holds nothing. Members may be called by several threads at a time, unless
 * they say otherwise, but not while their object is moved, assigned to or
 * destroyed.
 *
 * A failure is thrown, as rlockpp::error. Who hands in a std::error_code finds
 * it there instead, and is thrown nothing but std::bad_alloc. With a compiler
 * that throws nothing, or RLOCKPP_NO_EXCEPTIONS, one has to be handed in; what
 * m.lock(ec) has locked a guard takes over: std::unique_lock guard(m,
 * std::adopt_lock).
 */
#ifndef RLOCK_RLOCK_HPP
#define RLOCK_RLOCK_HPP

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rlock/await.hpp>
#include <rlock/error.hpp>
#include <rlock/rlock.h>

extern "C" void freeReplyObject(void *reply); /* of hiredis */

namespace rlockpp
{
RLOCKPP_BEGIN_NAMESPACE

/* A lease that is renewed while the lock is held: RLOCK_WATCHDOG. */
inline constexpr std::chrono::milliseconds watchdog{RLOCK_WATCHDOG};

namespace detail
{

/* Frees the handles of C. */
struct end {
    void operator()(rlock_client *c) const noexcept
    {
        rlock_client_free(c);
    }
    void operator()(rlock_owner *o) const noexcept
    {
        rlock_owner_free(o);
    }
    void operator()(::rlock *lk) const noexcept
    {
        rlock_free(lk);
    }
    void operator()(redisReply *r) const noexcept
    {
        freeReplyObject(r);
    }
};
template <class T> using handle = std::unique_ptr<T, end>;

/* Rounded up, as nobody waits for less than was asked. More than the library
   counts is for ever; what is no number is nothing. */
template <class Rep, class Period>
int64_t wait_ms(const std::chrono::duration<Rep, Period> &d)
{
    using fractions = std::chrono::duration<double, std::milli>;
    if (!(d > d.zero()))
        return 0;
    if (fractions(d) >= fractions(static_cast<double>(RLOCK_LEASE_MAX_MS)))
        return RLOCK_FOREVER;
    return std::chrono::ceil<std::chrono::milliseconds>(d).count();
}

/* In fractions, as the last of all times may be farther than is counted. */
template <class Clock, class Duration>
int64_t wait_ms(const std::chrono::time_point<Clock, Duration> &until)
{
    using seconds = std::chrono::duration<double>;
    return wait_ms(seconds(until.time_since_epoch()) -
                   seconds(Clock::now().time_since_epoch()));
}

/* What is no lease becomes one that the library refuses. */
template <class Rep, class Period>
int64_t lease_ms(const std::chrono::duration<Rep, Period> &d)
{
    return d == d.zero() ? RLOCK_WATCHDOG : d > d.zero() ? wait_ms(d) : -1;
}

/* Words as C wants them. */
struct words {
    std::vector<const char *> at;
    std::vector<size_t> len;

    void add(const std::vector<std::string_view> &more)
    {
        for (std::string_view word : more) {
            at.push_back(word.data() ? word.data() : "");
            len.push_back(word.size());
        }
    }
    /* Beyond what the library takes, all are too many. */
    static int count(size_t n) noexcept
    {
        return n > 2000000 ? 2000000 : static_cast<int>(n);
    }
};

} // namespace detail

/* --- clients and owners --------------------------------------------------- */

/* A client (client.h). Mutexes and guards may outlive it: they end quietly, and
   answer RLOCK_ECLOSED. Must not be destroyed in a callback, nor in a coroutine
   that goes on in one. */
class client
{
    detail::handle<rlock_client> cl;

    static rlock_options options(const char *uri) noexcept
    {
        rlock_options o = RLOCK_OPTIONS_INIT;
        o.uri = uri;
        return o;
    }

  public:
    /* Of options.h, as rlock_client_new(). */
    explicit client(const rlock_options &o, on_failure f RLOCKPP_OR_THROW)
    {
        rlock_client *it;
        rlock_status s = rlock_client_new(&o, &it);
        cl.reset(it);
        f(s);
    }
    /* Of a URI; nullptr, or none: the default. */
    explicit client(const char *uri, on_failure f RLOCKPP_OR_THROW)
        : client(options(uri), f)
    {
    }
    explicit client(const std::string &uri, on_failure f RLOCKPP_OR_THROW)
        : client(options(uri.c_str()), f)
    {
    }
    explicit client(on_failure f RLOCKPP_OR_THROW) : client(options(nullptr), f)
    {
    }

    /* As rlock_client_close(), also of none. It is kept with RLOCK_EINVAL. */
    rlock_status close(unsigned flags) noexcept
    {
        rlock_status s = rlock_client_close(cl.get(), flags);
        if (s != RLOCK_EINVAL)
            (void)cl.release();
        return s;
    }
    rlock_status cancel(bool on) const noexcept
    {
        return rlock_client_cancel(cl.get(), on);
    }

    /* For event loops and coroutines: async.h. */
    int fd() const noexcept
    {
        return rlock_client_fd(cl.get());
    }
    rlock_status dispatch() const noexcept
    {
        return rlock_client_dispatch(cl.get());
    }

    /* For all else that C has. */
    rlock_client *native_handle() const noexcept
    {
        return cl.get();
    }
    explicit operator bool() const noexcept
    {
        return cl != nullptr;
    }
};

/* An owner that is no thread (owner.h): a request, a job, a coroutine. When it
   is destroyed, what it holds is abandoned. */
class owner
{
    detail::handle<rlock_owner> it;

    void make(const char *label, on_failure f)
    {
        rlock_owner *o;
        rlock_status s = rlock_owner_new(label, &o);
        it.reset(o);
        f(s);
    }

  public:
    explicit owner(on_failure f RLOCKPP_OR_THROW)
    {
        make(nullptr, f);
    }
    explicit owner(const std::string &label, on_failure f RLOCKPP_OR_THROW)
    {
        make(label.c_str(), f);
    }

    /* Ends the wait that it has started, as rlock_owner_cancel(). */
    void cancel() const noexcept
    {
        rlock_owner_cancel(it.get());
    }
    bool busy() const noexcept
    {
        return rlock_owner_is_busy(it.get());
    }
    rlock_owner *native_handle() const noexcept
    {
        return it.get();
    }
    explicit operator bool() const noexcept
    {
        return it != nullptr;
    }
};

/* The calling thread acts as the owner (one without a handle: as itself) to the
   end of the scope, then as before. There must be no co_await in the scope. */
class [[nodiscard]] acting_as
{
    rlock_owner *former;

  public:
    explicit acting_as(const owner &o) noexcept
        : former(rlock_owner_set(o.native_handle()))
    {
    }
    acting_as(const acting_as &) = delete;
    acting_as &operator=(const acting_as &) = delete;
    ~acting_as()
    {
        (void)rlock_owner_set(former);
    }
};

/* --- locks ---------------------------------------------------------------- */

/* An answer of the server, whose members hiredis/hiredis.h has. */
using reply = detail::handle<redisReply>;

/* A lock (lock.h): Lockable, TimedLockable, and re-entrant. Who locks it twice
   unlocks it twice; std::scoped_lock(m, m) is two levels. One that is destroyed
   unlocks nothing. */
class mutex
{
    detail::handle<::rlock> lk;
    int64_t lease = RLOCK_WATCHDOG;

  public:
    /* A handle for the lock of that name, of any bytes; asks no server. */
    mutex(const client &c, std::string_view name, on_failure f RLOCKPP_OR_THROW)
        : mutex(c, name, RLOCK_LOCK_OPTIONS_INIT, f)
    {
    }
    mutex(const client &c, std::string_view name, const rlock_lock_options &o,
          on_failure f RLOCKPP_OR_THROW)
    {
        ::rlock *it;
        rlock_status s =
            rlock_new_ex(c.native_handle(), name.data(), name.size(), &o, &it);
        own(s, it, f);
    }
    /* Takes over a handle of C, of any kind. */
    explicit mutex(::rlock *it) noexcept : lk(it)
    {
    }

    /* The lease of what is acquired by this object from now on, also by guards:
       then the lock frees itself. To be set before threads share it. */
    template <class Rep, class Period>
    void set_lease(const std::chrono::duration<Rep, Period> &d)
    {
        lease = detail::lease_ms(d);
    }

    /* As rlock_acquire(), by a thread. That others have the lock is no failure:
       false. Until when is asked of the clock once, at the beginning. */
    void lock(on_failure f RLOCKPP_OR_THROW)
    {
        f(take(RLOCK_FOREVER));
    }
    bool try_lock(on_failure f RLOCKPP_OR_THROW)
    {
        return f.got(take(0));
    }
    template <class Rep, class Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &d,
                      on_failure f RLOCKPP_OR_THROW)
    {
        return f.got(take(detail::wait_ms(d)));
    }
    template <class Clock, class Duration>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &t,
                        on_failure f RLOCKPP_OR_THROW)
    {
        return f.got(take(detail::wait_ms(t)));
    }

    /* As rlock_unlock(). Guards unlock in destructors, so nothing is thrown:
       what was wrong tell events, or release(), of this or of a guard. */
    void unlock() noexcept
    {
        (void)release();
    }
    rlock_status release() noexcept
    {
        return rlock_unlock(lk.get());
    }

    /* As rlock_extend(); watchdog: it is renewed from now on. */
    template <class Rep, class Period>
    void extend(const std::chrono::duration<Rep, Period> &d,
                on_failure f RLOCKPP_OR_THROW)
    {
        f(rlock_extend(lk.get(), detail::lease_ms(d)));
    }

    /* Ends all waits through this object, as rlock_cancel(). */
    void cancel() noexcept
    {
        rlock_cancel(lk.get());
    }

    /* By the clock alone, for the calling thread, or an owner. */
    bool held() const noexcept
    {
        return rlock_is_held(lk.get());
    }
    int levels() const noexcept
    {
        return rlock_hold_count(lk.get());
    }
    std::chrono::milliseconds valid_for() const noexcept
    {
        return std::chrono::milliseconds(rlock_valid_ms(lk.get()));
    }
    uint64_t token() const noexcept
    {
        return rlock_token(lk.get());
    }
    bool held(const owner &o) const noexcept
    {
        acting_as self(o);
        return o && held();
    }
    std::chrono::milliseconds valid_for(const owner &o) const noexcept
    {
        acting_as self(o);
        return o ? valid_for() : std::chrono::milliseconds();
    }
    uint64_t token(const owner &o) const noexcept
    {
        acting_as self(o);
        return o ? token() : 0;
    }

    /* For all else that C has: rlock_lost_fd(), rlock_ttl(), ... */
    ::rlock *native_handle() const noexcept
    {
        return lk.get();
    }
    explicit operator bool() const noexcept
    {
        return lk != nullptr;
    }

    /* Guarded writes (guard.h), executed only while the thread holds the lock:
       m.command({"HINCRBY", "stock", "left", "-1"})->integer. After a failure
       that is not thrown: the server's error, or nullptr. Who calls these links
       hiredis. */
    reply command(const std::vector<std::string_view> &line,
                  on_failure f RLOCKPP_OR_THROW)
    {
        detail::words w;
        redisReply *it;
        w.add(line);
        rlock_status s =
            rlock_command_argv(lk.get(), &it, detail::words::count(line.size()),
                               w.at.data(), w.len.data());
        reply r(it);
        f(s);
        return r;
    }
    reply eval(const std::string &script,
               const std::vector<std::string_view> &keys,
               const std::vector<std::string_view> &args,
               on_failure f RLOCKPP_OR_THROW)
    {
        detail::words w;
        redisReply *it;
        w.add(keys);
        w.add(args);
        rlock_status s = rlock_eval(
            lk.get(), script.c_str(), detail::words::count(keys.size()),
            detail::words::count(args.size()), w.at.data(), w.len.data(), &it);
        reply r(it);
        f(s);
        return r;
    }

#if defined(__cpp_lib_coroutine)
    /* To be awaited (await.hpp), for an owner, who does one thing at a time:
       lock(), try_lock_for(), extend() and release(). */
    awaitable<detail::verb::acquire> acquire(const owner &o,
                                             on_failure f RLOCKPP_OR_THROW)
    {
        return call<detail::verb::acquire>(o, RLOCK_FOREVER, lease, f);
    }
    template <class Rep, class Period>
    awaitable<detail::verb::acquire_for>
    acquire_for(const owner &o, const std::chrono::duration<Rep, Period> &d,
                on_failure f RLOCKPP_OR_THROW)
    {
        return call<detail::verb::acquire_for>(o, detail::wait_ms(d), lease, f);
    }
    template <class Rep, class Period>
    awaitable<detail::verb::extend>
    extend(const owner &o, const std::chrono::duration<Rep, Period> &d,
           on_failure f RLOCKPP_OR_THROW)
    {
        return call<detail::verb::extend>(o, 0, detail::lease_ms(d), f);
    }
    awaitable<detail::verb::unlock> unlock(const owner &o)
    {
        return call<detail::verb::unlock>(o, 0, 0,
                                          on_failure(detail::nobody()));
    }
#endif

  protected:
    mutex() = default;
    void own(rlock_status s, ::rlock *it, on_failure f)
    {
        lk.reset(it);
        f(s);
    }

  private:
    rlock_status take(int64_t wait_ms) noexcept
    {
        return rlock_acquire(lk.get(), wait_ms, lease);
    }
#if defined(__cpp_lib_coroutine)
    template <detail::verb Verb>
    awaitable<Verb> call(const owner &o, int64_t wait_ms, int64_t lease_ms,
                         on_failure f)
    {
        return awaitable<Verb>(
            {lk.get(), o.native_handle(), wait_ms, lease_ms, f});
    }
#endif
};

/* A read-write lock (rw.h), for std::unique_lock, std::scoped_lock and
   std::shared_lock. As a mutex it is the side that writes. Both sides are
   re-entrant, and first come is first served over all processes. Who reads may
   lock it, too, if nobody else reads: else that is RLOCK_EDEADLK. */
class shared_mutex : public mutex
{
    mutex readers{nullptr};

  public:
    shared_mutex(const client &c, std::string_view name,
                 on_failure f RLOCKPP_OR_THROW)
        : shared_mutex(c, name, RLOCK_LOCK_OPTIONS_INIT, f)
    {
    }
    shared_mutex(const client &c, std::string_view name,
                 const rlock_lock_options &o, on_failure f RLOCKPP_OR_THROW)
    {
        ::rlock *read, *write;
        rlock_status s = rlock_rw_new_ex(c.native_handle(), name.data(),
                                         name.size(), &o, &read, &write);
        readers = mutex(read);
        own(s, write, f);
    }

    /* Of both sides. */
    template <class Rep, class Period>
    void set_lease(const std::chrono::duration<Rep, Period> &d)
    {
        mutex::set_lease(d);
        readers.set_lease(d);
    }

    void lock_shared(on_failure f RLOCKPP_OR_THROW)
    {
        readers.lock(f);
    }
    bool try_lock_shared(on_failure f RLOCKPP_OR_THROW)
    {
        return readers.try_lock(f);
    }
    template <class Rep, class Period>
    bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &d,
                             on_failure f RLOCKPP_OR_THROW)
    {
        return readers.try_lock_for(d, f);
    }
    template <class Clock, class Duration>
    bool
    try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &t,
                          on_failure f RLOCKPP_OR_THROW)
    {
        return readers.try_lock_until(t, f);
    }
    void unlock_shared() noexcept
    {
        readers.unlock();
    }

    /* The side that reads, for all else that a mutex has. */
    mutex &reading() noexcept
    {
        return readers;
    }
};

/* Several mutexes as one, all or nothing (rlock_multi_new(), multi.h), of any
   clients; they may be used, and destroyed, at any time. Of two: multi_mutex
   both({a, b}). */
class multi_mutex : public mutex
{
    using members = std::vector<std::reference_wrapper<const mutex>>;

  public:
    explicit multi_mutex(const members &of, on_failure f RLOCKPP_OR_THROW)
    {
        std::vector<::rlock *> locks;
        for (const mutex &m : of)
            locks.push_back(m.native_handle());
        ::rlock *it;
        rlock_status s = rlock_multi_new(locks.data(), locks.size(), &it);
        own(s, it, f);
    }
};

/* One name on several servers, held by who has it on most of them: Redlock
   (rlock_red_new_ex(), multi.h). The first client is its home. */
class red_mutex : public mutex
{
    using nodes = std::vector<std::reference_wrapper<const client>>;

  public:
    red_mutex(const nodes &of, std::string_view name,
              const rlock_red_options &o, on_failure f RLOCKPP_OR_THROW)
    {
        std::vector<rlock_client *> clients;
        for (const client &c : of)
            clients.push_back(c.native_handle());
        ::rlock *it;
        rlock_status s = rlock_red_new_ex(clients.data(), clients.size(),
                                          name.data(), name.size(), &o, &it);
        own(s, it, f);
    }
    red_mutex(const nodes &of, std::string_view name,
              on_failure f RLOCKPP_OR_THROW)
        : red_mutex(of, name, RLOCK_RED_OPTIONS_INIT, f)
    {
    }
};

/* Unlocks by a guard, which has nothing any more, and tells what its destructor
   hides, RLOCK_LOST for one; RLOCK_NOT_HELD if the guard had nothing. */
template <class Mutex>
rlock_status release(std::unique_lock<Mutex> &guard) noexcept
{
    return guard.owns_lock() ? guard.release()->release() : RLOCK_NOT_HELD;
}

RLOCKPP_END_NAMESPACE
} // namespace rlockpp

#endif
