"""rlock: a distributed, re-entrant lock on Redis.

    import rlock

    with rlock.Client("redis://127.0.0.1:6379") as client:
        with client.lock("orders", timeout=5) as lock:
            write(..., token=lock.token)

and on an event loop, where each task is an owner of its own:

    async with client.lock("orders"):
        ...

While lock.held says so, no other owner holds the lock, of any process, thread or
task, if the server keeps its data, its clock does not jump ahead, and nobody frees
the lock by force. All that such a lock promises, and cannot, is in the README of
the C library, which this module calls: librlock.so.0.3, found as the system finds
libraries, or where $RLOCK_LIBRARY says.
"""
from ._client import Client, Event, EventType, Holder, LockInfo
from ._errors import (Busy, Canceled, Closed, Deadlock, Error, Forked,
                      InvalidArgument, Lost, NoQuorum, NotAcquired, NotHeld,
                      NotSupported, OutOfMemory, ServerError, Status, Timeout,
                      Unreachable, WrongType)
from ._library import lib as _lib
from ._lock import Layout, Lock, MultiLock, RedLock
from ._loop import Owner

__version__ = "0.3.0"

__all__ = [
    "Busy", "Canceled", "Client", "Closed", "Deadlock", "Error", "Event",
    "EventType", "Forked", "Holder", "InvalidArgument", "Layout", "Lock",
    "LockInfo", "Lost", "MultiLock", "NoQuorum", "NotAcquired", "NotHeld",
    "NotSupported", "OutOfMemory", "Owner", "RedLock", "ServerError", "Status",
    "Timeout", "Unreachable", "WrongType", "library_version"]


def library_version() -> str:
    """Of the C library that was found: "0.3.0"."""
    return _lib.rlock_version().decode()
