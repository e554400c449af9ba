"""Statuses of the library as exceptions."""
from __future__ import annotations

import enum
from typing import Any, NoReturn

from ._library import lib


class Status(enum.IntEnum):
    """What a call came to: the statuses of include/rlock/base.h."""
    OK = 0
    BUSY = 1
    TIMEOUT = 2
    CANCELED = 3
    NOT_HELD = 4
    LOST = 5
    EINVAL = 6
    ENOMEM = 7
    EIO = 8
    ESERVER = 9
    EWRONGTYPE = 10
    EQUORUM = 11
    ECLOSED = 12
    EFORKED = 13
    ENOTSUP = 14
    EDEADLK = 15


class Error(Exception):
    """A call failed. str() names the lock, the server and the cause, and never
    has a password.

    status     why (Status; an int that a later library has added)
    message    what str() gives
    sys_errno  errno of the system call that failed, or 0
    """

    def __init__(self, status: int, message: str, sys_errno: int = 0) -> None:
        super().__init__(message)
        try:
            self.status: int = Status(status)
        except ValueError:
            self.status = status
        self.message = message
        self.sys_errno = sys_errno

    def __str__(self) -> str:
        return self.message

    def __reduce__(self):
        return type(self), (int(self.status), self.message, self.sys_errno)


class NotAcquired(Error):
    """The lock could not be had in the time that there was for it."""


class Busy(NotAcquired):
    """Another owner has it, and no wait was asked for."""


class Timeout(NotAcquired, TimeoutError):
    """The wait ran out."""


class Canceled(Error):
    """cancel() has ended the wait."""


class NotHeld(Error):
    """This thread, task or owner does not hold it."""


class Lost(Error):
    """It was held, and was lost: another one may have it since."""


class InvalidArgument(Error, ValueError):
    """An argument that cannot be; nothing was sent."""


class OutOfMemory(Error, MemoryError):
    """No memory, no descriptor, or no thread can be started."""


class Unreachable(Error, ConnectionError):
    """No answer of the server, or none in time."""


class ServerError(Error):
    """The server answered with an error: a wrong password, a missing right."""


class WrongType(ServerError):
    """The key is there, and is no lock of this kind."""


class NoQuorum(Error):
    """Too few nodes, or replicas, did their part."""


class Closed(Error):
    """The client was closed."""


class Forked(Error):
    """The client, lock or owner was made before fork(): make a new one."""


class NotSupported(Error):
    """Not possible with this library, server or kind of lock."""


class Deadlock(Error):
    """The wait would close a circle of owners, which the message names: release
    what is held, pause for a random time, and begin again."""


_BY_STATUS: dict[int, type[Error]] = {
    Status.BUSY: Busy, Status.TIMEOUT: Timeout, Status.CANCELED: Canceled,
    Status.NOT_HELD: NotHeld, Status.LOST: Lost,
    Status.EINVAL: InvalidArgument, Status.ENOMEM: OutOfMemory,
    Status.EIO: Unreachable, Status.ESERVER: ServerError,
    Status.EWRONGTYPE: WrongType, Status.EQUORUM: NoQuorum,
    Status.ECLOSED: Closed, Status.EFORKED: Forked,
    Status.ENOTSUP: NotSupported, Status.EDEADLK: Deadlock}


def failure(status: int) -> Error:
    """The exception for a call of this thread that has just failed."""
    last = lib.rlock_last_error().contents
    if last.status == status:
        message, sys_errno = last.message.decode("utf-8", "replace"), \
            last.sys_errno
    else:  # of callbacks that tell a status only
        message, sys_errno = lib.rlock_status_str(status).decode(), 0
    return _BY_STATUS.get(status, Error)(status, message, sys_errno)


def check(status: int) -> None:
    if status != Status.OK:
        raise failure(status)


def invalid(message: str) -> InvalidArgument:
    return InvalidArgument(Status.EINVAL, message)


def no_copy(it: Any) -> NoReturn:
    """__reduce__ of what has a handle of the library, which a copy would free a
    second time; so says who copies or pickles it."""
    raise TypeError(f"a {type(it).__name__} cannot be copied, nor pickled")
