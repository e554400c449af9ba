"""The client, and what it tells."""
from __future__ import annotations

import asyncio
import atexit
import ctypes as c
import dataclasses
import enum
import functools
import os
import threading
from typing import (TYPE_CHECKING, Any, Callable, Iterator, Optional, Tuple,
                    Union)

from . import _library as L
from ._errors import Closed, Error, Status, check, invalid, no_copy
from ._library import lib
from ._loop import Watch

if TYPE_CHECKING:
    from ._lock import Lock

Name = Union[str, bytes]


class EventType(enum.IntEnum):
    """What has happened: include/rlock/event.h."""
    ACQUIRED = 1
    RELEASED = 2
    CONTENDED = 3
    RENEWED = 4
    RENEW_FAILED = 5
    LOST = 6
    ABANDONED = 7
    RECONNECTED = 8
    WARNING = 9
    FAILOVER = 10


@dataclasses.dataclass(frozen=True)
class Event:
    """What on_event is told."""
    type: int  # an EventType, or a number that a later library has added
    name: bytes  # the lock's; b"" if it is about none
    token: int
    count: int
    elapsed: float  # seconds
    status: int
    message: str
    owner: str


@dataclasses.dataclass(frozen=True)
class Holder:
    """Who holds a lock, as the server has it."""
    host: str
    pid: int
    tid: int
    hold_id: str
    count: int
    ttl: Optional[float]  # seconds; None: it has no end
    raw: str
    owner: str


@dataclasses.dataclass(frozen=True)
class LockInfo:
    """A lock, or a semaphore, that scan() has found."""
    name: bytes
    holders: Tuple[Holder, ...]  # empty: it is free
    holders_in_all: int
    waiting: int
    ttl: Optional[float]  # seconds; None: no end, or it is free
    token: int
    held: Optional[float]  # seconds; None: not known, or it is free
    foreign: bool
    available: Optional[int]  # permits that are free; None: it is no semaphore


def text(b: bytes) -> str:
    return b.decode("utf-8", "backslashreplace")


def seconds(ms: int) -> Optional[float]:
    return ms / 1000 if ms >= 0 else None


def milliseconds(value: Optional[float], none: int) -> int:
    """What the library is told: a wait or a lease that is given in seconds.
    What is not zero does not become that."""
    if value is None:
        return none
    if not 0 <= value < 2 ** 43:
        raise invalid(f"{value!r} is no time in seconds")
    return max(round(value * 1000), 1 if value else 0)


def lease_in_ms(value: Optional[float]) -> int:
    """None is one that is renewed, which nothing else may become."""
    if value == 0:
        raise invalid("a lease of 0 s ends before it begins")
    return milliseconds(value, 0)


def holder_of(h: L.HolderStruct) -> Holder:
    return Holder(text(h.host), h.pid, h.tid, text(h.hold_id), h.count,
                  seconds(h.ttl_ms), text(h.raw), text(h.owner))


def _event_of(e: L.EventStruct) -> Event:
    kind: int = e.type
    if kind in EventType._value2member_map_:
        kind = EventType(kind)
    return Event(kind, c.string_at(e.name, e.name_len), e.token, e.count,
                 e.elapsed_ms / 1000, e.status, text(e.message),
                 text(e.owner))


# Those that are not closed. They live until they are: to free one may wait for
# a thread of its own, on which a collection may run.
_open: set[Client] = set()

_TIMES = {"connect_timeout", "command_timeout", "watchdog_lease", "max_hold",
          "turn", "replica_wait"}
_TEXTS = {"host_id", "tls_ca_file", "tls_ca_dir", "tls_cert_file",
          "tls_key_file", "tls_server_name", "sentinel_user",
          "sentinel_password"}
_OTHERS = {"pool_size", "redisson_channel", "lazy", "tls_verify",
           "min_replicas", "no_deadlock_check"}


def _set_options(o: L.Options, uri: Optional[str], given: dict) -> None:
    o.size = c.sizeof(o)
    if uri is not None:
        o.uri = L.c_text(os.fsencode(uri))
    for name, value in given.items():
        if name in _TIMES:
            setattr(o, name + "_ms", milliseconds(value, 0))
        elif name in _TEXTS:
            setattr(o, name, None if value is None else L.c_text(os.fsencode(value)))
        elif name in _OTHERS:
            setattr(o, name, value)
        else:
            raise TypeError(f"there is no option {name!r}")


class Client:
    """The connections to a server, or to those of Sentinels or of a cluster,
    and the threads that renew leases. One serves all threads of a process, or
    all tasks of an event loop.

        with rlock.Client("redis://127.0.0.1:6379") as client:
            with client.lock("orders"):
                ...

    Checks the server once, so that a wrong address or password fails here; that
    blocks: in a program with an event loop make the client before the loop runs,
    or by asyncio.to_thread().

    uri       redis://[user[:password]@]host[:port][/db], unix:///path, rediss://,
              redis-sentinel://, redis-cluster://; None: redis://127.0.0.1:6379
    on_event  on_event(event) is called for each Event, on the calling thread or
              one of the library's; in tasks, on the loop's. What it raises goes
              to sys.unraisablehook. It must not close the client. It costs each
              acquire and release some microseconds
    credentials  credentials() is called before each login, and returns (user,
              password) or (user, password, seconds for which they are valid)

    Other options, all by name; times are in seconds, and mean what they do in
    include/rlock/options.h: connect_timeout, command_timeout, watchdog_lease,
    max_hold, turn, replica_wait; host_id, tls_ca_file, tls_ca_dir, tls_cert_file,
    tls_key_file, tls_server_name, tls_verify (0 to 2), sentinel_user,
    sentinel_password; pool_size, redisson_channel, lazy, min_replicas,
    no_deadlock_check.

    A client that is not closed lives until the interpreter ends, which releases
    what is still held. A child of fork() needs a client of its own: there each
    call on this one, and on its locks, raises Forked.
    """

    __reduce__ = no_copy

    def __init__(self, uri: Optional[str] = None, *,
                 on_event: Optional[Callable[[Event], None]] = None,
                 credentials: Optional[Callable[[], tuple]] = None,
                 **options: Any) -> None:
        self._cl: Optional[int] = None
        o = L.Options()
        _set_options(o, uri, options)
        self._logged_in: list = []
        self._kept: list = []  # what the library calls, as long as it does
        if on_event:
            o.on_event = self._keep(L.ON_EVENT(
                lambda e, _: on_event(_event_of(e.contents))))
        if credentials:
            o.credentials = self._keep(L.CREDENTIALS(
                functools.partial(self._log_in, credentials)))
        out = L.pointer()
        check(lib.rlock_client_new(o, out))
        self._cl = out.value
        self._pid = os.getpid()
        self._watch = Watch(self)
        self._closing = threading.Lock()
        _open.add(self)

    @property
    def _handle(self) -> int:
        if self._cl is None:
            raise Closed(Status.ECLOSED, "the client was closed")
        return self._cl

    def _keep(self, what: Any) -> Any:
        self._kept.append(what)
        return what

    def _log_in(self, credentials: Callable[[], tuple], out: Any,
                _: Any) -> int:
        user, password, *valid = credentials()
        words = [None if w is None else L.c_text(w.encode())
                 for w in (user, password)]
        out.contents.user, out.contents.password = words
        out.contents.valid_ms = milliseconds(valid[0] if valid else None, 0)
        self._logged_in = words  # they have to last until the next login
        return 1

    def lock(self, name: Name, *, timeout: Optional[float] = None,
             lease: Optional[float] = None, **options: Any) -> Lock:
        """A handle for the lock of that name; see Lock."""
        from ._lock import Lock
        return Lock(self, name, timeout=timeout, lease=lease, **options)

    def ping(self) -> None:
        """Asks the server for a sign of life."""
        check(lib.rlock_client_ping(self._handle))

    def cancel(self, on: bool = True) -> None:
        """While it is on, each wait for a lock of this client ends with
        Canceled, now and later: say so before you join threads that are to
        stop."""
        check(lib.rlock_client_cancel(self._handle, on))

    def stats(self) -> dict[str, int]:
        """Counters and gauges, as include/rlock/client.h tells them."""
        s = L.StatsStruct()
        check(lib.rlock_client_stats(self._handle, s, c.sizeof(s)))
        return {name: getattr(s, name) for name, *_ in s._fields_}

    def scan(self, glob: Optional[Name] = None, *, all: bool = False,
             idle: bool = False) -> Iterator[LockInfo]:
        """Which locks there are, over all processes. Blocks, for as long as it
        takes to go through the keys; in a task: asyncio.to_thread(client.scan).

        glob  which names (? * [a-z] \\\\); None: all
        all   also those of other programs
        idle  also those that are free, and were held within the last minutes
        """
        found: list[LockInfo] = []

        def each(info: Any, _: Any) -> bool:
            i = info.contents
            found.append(LockInfo(
                c.string_at(i.name, i.name_len),
                tuple(holder_of(i.holders[k]) for k in range(i.n_holders)),
                i.holders_in_all, i.waiting, seconds(i.ttl_ms), i.token,
                seconds(i.held_ms), i.foreign,
                i.available if i.kind == L.KIND_PERMIT else None))
            return True

        pattern = glob.encode() if isinstance(glob, str) else glob
        check(lib.rlock_scan(self._handle, pattern, all | 2 * idle,
                             L.EACH_LOCK(each), None))
        return iter(found)

    def close(self, *, release: bool = True) -> None:
        """Closes the client; a second time is nothing. Its waiters are told
        Closed. Blocks for as long as running calls take.

        release  what is held with it, by any thread or task, is released; else
                 its leases run out by themselves

        Raises what kept it from releasing all; it is closed all the same.
        """
        with self._closing:
            handle, self._cl = self._cl, None
        if handle is None:
            return
        _open.discard(self)
        forked = self._pid != os.getpid()
        if forked:
            self._watch.forget()
        else:
            self._watch.stop()
        status = lib.rlock_client_close(handle, int(release))
        self._kept.clear()
        if not forked:
            check(status)

    async def close_async(self, *, release: bool = True) -> None:
        """Closes it, as close(), on another thread, while the loop runs on."""
        loop = asyncio.get_running_loop()
        self._watch.stop()
        await loop.run_in_executor(
            None, functools.partial(self.close, release=release))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close_async()


@atexit.register
def _close_all() -> None:
    for client in list(_open):
        try:
            client.close()
        except Error:
            pass  # nobody is there to be told; leases run out
