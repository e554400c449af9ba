/*
 * Locks for C++20 coroutines: co_await lock.acquire() suspends the coroutine,
 * and the callback of rlock resumes it. An owned_lock has an owner of its own:
 * make one for each coroutine, so that they exclude each other.
 */
#ifndef AWAITABLE_HPP
#define AWAITABLE_HPP

#include <coroutine>
#include <exception>
#include <rlock/rlock.h>

/* clang-format off: what the language asks for is short */

/* A coroutine that begins at once, and that nobody waits for. */
struct task {
    struct promise_type {
        task get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

class owned_lock
{
    rlock *lk = nullptr;
    rlock_owner *owner = nullptr;

    /* What is awaited; it lives in the coroutine. One thread dispatches. */
    struct operation {
        owned_lock &lock;
        bool acquires;
        rlock_status status = RLOCK_OK;
        std::coroutine_handle<> coroutine = nullptr;

        bool await_ready() const noexcept { return false; }
        /* False: it could not be started, and the coroutine goes on. */
        bool await_suspend(std::coroutine_handle<> h)
        {
            coroutine = h;
            rlock_owner *former = rlock_owner_set(lock.owner);
            status =
                acquires ? rlock_acquire_start(lock.lk, RLOCK_FOREVER,
                                               RLOCK_WATCHDOG, done, this)
                         : rlock_unlock_start(lock.lk, done, this);
            rlock_owner_set(former);
            return status == RLOCK_OK;
        }
        rlock_status await_resume() const noexcept { return status; }
        static void done(rlock *, rlock_status s, void *arg)
        {
            auto *o = static_cast<operation *>(arg);
            o->status = s;
            o->coroutine.resume();
        }
    };

  public:
    /* On failure every operation answers RLOCK_EINVAL. */
    owned_lock(rlock_client *client, const char *name)
    {
        if (rlock_owner_new(nullptr, &owner) == RLOCK_OK)
            rlock_new(client, name, &lk);
    }
    owned_lock(const owned_lock &) = delete;
    owned_lock &operator=(const owned_lock &) = delete;
    ~owned_lock()
    {
        rlock_free(lk);
        rlock_owner_free(owner);
    }
    operation acquire() { return {*this, true}; }
    operation unlock() { return {*this, false}; }
};

#endif
