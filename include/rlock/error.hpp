/*
 * rlock's statuses in C++: as error codes, and as exceptions. rlock.hpp, which
 * includes this, tells when there are exceptions.
 */
#ifndef RLOCK_ERROR_HPP
#define RLOCK_ERROR_HPP

#include <string>
#include <system_error>
#include <type_traits>

#include <rlock/base.h>

#if !defined(__cpp_exceptions) && !defined(RLOCKPP_NO_EXCEPTIONS)
#define RLOCKPP_NO_EXCEPTIONS
#endif

namespace rlockpp
{

/*
 * The category "rlock". A status is an error code (ec == RLOCK_LOST), and some
 * are like one of the system's (ec == std::errc::timed_out):
 *
 * RLOCK_BUSY      device_or_resource_busy
 * RLOCK_TIMEOUT   timed_out
 * RLOCK_CANCELED  operation_canceled
 * RLOCK_NOT_HELD  operation_not_permitted
 * RLOCK_EINVAL    invalid_argument
 * RLOCK_ENOMEM    not_enough_memory
 * RLOCK_EIO       io_error
 * RLOCK_ENOTSUP   not_supported
 * RLOCK_EDEADLK   resource_deadlock_would_occur
 */
class RLOCK_API error_category final : public std::error_category
{
  public:
    const char *name() const noexcept override
    {
        return "rlock";
    }
    std::string message(int status) const override
    {
        return rlock_status_str(static_cast<rlock_status>(status));
    }
    std::error_condition
    default_error_condition(int status) const noexcept override
    {
        switch (status) {
        case RLOCK_BUSY:
            return std::errc::device_or_resource_busy;
        case RLOCK_TIMEOUT:
            return std::errc::timed_out;
        case RLOCK_CANCELED:
            return std::errc::operation_canceled;
        case RLOCK_NOT_HELD:
            return std::errc::operation_not_permitted;
        case RLOCK_EINVAL:
            return std::errc::invalid_argument;
        case RLOCK_ENOMEM:
            return std::errc::not_enough_memory;
        case RLOCK_EIO:
            return std::errc::io_error;
        case RLOCK_ENOTSUP:
            return std::errc::not_supported;
        case RLOCK_EDEADLK:
            return std::errc::resource_deadlock_would_occur;
        default:
            return std::error_condition(status, *this);
        }
    }
};

RLOCK_API inline const std::error_category &category() noexcept
{
    static const error_category it;
    return it;
}

} // namespace rlockpp

template <> struct std::is_error_code_enum<rlock_status> : std::true_type {
};

inline std::error_code make_error_code(rlock_status s) noexcept
{
    return std::error_code(static_cast<int>(s), rlockpp::category());
}

namespace rlockpp
{

#ifndef RLOCKPP_NO_EXCEPTIONS
/* What is thrown. what() begins with the library's message, which names lock,
   server and cause; code() is the status. */
class RLOCK_API error : public std::system_error
{
    int err;

  public:
    explicit error(const rlock_error &e)
        : std::system_error(make_error_code(e.status), e.message),
          err(e.sys_errno)
    {
    }
    rlock_status status() const noexcept
    {
        return static_cast<rlock_status>(code().value());
    }
    /* Of the system call that failed, or 0. */
    int sys_errno() const noexcept
    {
        return err;
    }
};

/* Behind a parameter: failures are thrown if it is left out. */
#define RLOCKPP_OR_THROW = {}
#define RLOCKPP_BEGIN_NAMESPACE
#define RLOCKPP_END_NAMESPACE
#else
#define RLOCKPP_OR_THROW
/* Lest a program that has both be given functions of the other kind. */
#define RLOCKPP_BEGIN_NAMESPACE                                                \
    inline namespace quiet                                                     \
    {
#define RLOCKPP_END_NAMESPACE }
#endif

RLOCKPP_BEGIN_NAMESPACE

namespace detail
{
struct nobody {
};
} // namespace detail

/* What becomes of a failure: the std::error_code that was handed in has it, and
   has nothing if all went well; without one it is thrown. */
class on_failure
{
    std::error_code *ec = nullptr;

  public:
#ifndef RLOCKPP_NO_EXCEPTIONS
    on_failure() = default;
#endif
    on_failure(std::error_code &to) noexcept : ec(&to)
    {
    }
    /* Of what does not fail. */
    explicit on_failure(detail::nobody) noexcept
    {
    }
    void operator()(rlock_status s, const rlock_error &why) const
    {
        if (ec)
            *ec = s;
#ifndef RLOCKPP_NO_EXCEPTIONS
        else if (s != RLOCK_OK)
            throw error(why);
#endif
        (void)why;
    }
    void operator()(rlock_status s) const
    {
        (*this)(s, *rlock_last_error());
    }
    /* Of an acquire: that others have the lock is no failure, but false. */
    bool got(rlock_status s, const rlock_error &why) const
    {
        bool busy = s == RLOCK_BUSY || s == RLOCK_TIMEOUT;
        (*this)(busy ? RLOCK_OK : s, why);
        return s == RLOCK_OK;
    }
    bool got(rlock_status s) const
    {
        return got(s, *rlock_last_error());
    }
};

RLOCKPP_END_NAMESPACE

} // namespace rlockpp

#endif
