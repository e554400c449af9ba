"""Locks: of a server, of several names, of several servers."""
from __future__ import annotations

import asyncio
import ctypes as c
import enum
import os
from asyncio.events import _get_running_loop
from typing import Any, Coroutine, Iterable, Optional, Sequence, Union

from . import _library as L
from ._client import (Client, Holder, Name, holder_of, lease_in_ms,
                      milliseconds, seconds)
from ._errors import Lost, Status, check, failure, invalid, no_copy
from ._library import lib
from ._loop import Owner, as_caller, ended, owner_of_task, started

Word = Union[str, bytes, int]


class Layout(enum.IntEnum):
    """How a lock is kept in Redis; all who share it use one."""
    HASH = 0  # also Redisson's
    STRING = 1  # also redis-py's, redsync's and most others'
    TIMESTAMP = 2


class _Default:
    def __repr__(self) -> str:
        return "the lock's own"


_DEFAULT = _Default()
Seconds = Union[float, None, _Default]
_OK, _BUSY, _TIMEOUT = int(Status.OK), int(Status.BUSY), int(Status.TIMEOUT)
_FOREVER = -1


def _in_loop() -> None:
    """All tasks of a loop would be one owner, and none would be kept out."""
    if _get_running_loop() is not None:
        raise invalid("an event loop runs on this thread, which this call would "
                      "block: use `async with`, or the calls with _async")


def _bytes(word: Word) -> bytes:
    """None is what somebody has forgotten, and no word."""
    if isinstance(word, bytes):
        return word
    if word is None:
        raise TypeError("None is no name, key or argument")
    return str(word).encode()


def _words(words: Sequence[Word]) -> tuple:
    values = [_bytes(w) for w in words]
    n = len(values)
    return n, (L.text * n)(*values), (L.size_t * n)(*map(len, values))


class Lock:
    """A distributed lock, held by a thread, by a task of asyncio, or by an Owner.

        with lock: ...                          in threads
        async with lock: ...                    in tasks
        if lock.acquire(timeout=2): ...         False: another one has it

    All handles of one name on one client are the same lock, and any number of
    threads and tasks may share one handle. Who holds it may acquire it again, and
    releases it as often. Its lease is renewed while it is held; a process that
    dies leaves it to that.

    A lock can be lost: the server was away for longer than the lease, or somebody
    freed it by force. Then held is False, release() and the end of `with` raise
    Lost (unless the body raises something itself), and lost() and lost_fd() tell
    at once. What writes to a database should hand token to it, which grows from
    hold to hold.

    client   a Client
    name     the key in Redis; a str is UTF-8
    timeout  how long to wait, in seconds; None: without a limit; 0: not at all.
             `with` raises Timeout, or Busy, when that was in vain
    lease    seconds after which the lock frees itself; None: it is renewed
    layout   a Layout
    local_levels, min_replicas, fair, no_tokens  as include/rlock/lock.h says

    What the server, or the use of the lock, makes impossible is raised: see Error.
    A call that asks the server blocks for at most the client's command_timeout,
    besides the wait. While the main thread waits, Ctrl-C is answered when the wait
    is over, and then nothing was acquired: give it a timeout.
    """

    _lk: Optional[int] = None
    __reduce__ = no_copy

    def __init__(self, client: Client, name: Name, *,
                 timeout: Optional[float] = None,
                 lease: Optional[float] = None,
                 layout: Layout = Layout.HASH, local_levels: bool = False,
                 min_replicas: int = 0, fair: bool = False,
                 no_tokens: bool = False) -> None:
        key = _bytes(name)
        o = L.LockOptions(c.sizeof(L.LockOptions), layout, local_levels,
                          min_replicas, fair, no_tokens)
        out = L.pointer()
        check(lib.rlock_new_ex(client._handle, key, len(key), o, out))
        self._begin(out, client, name, timeout, lease)

    def _begin(self, out: c.c_void_p, client: Client, name: Name,
               timeout: Optional[float], lease: Optional[float]) -> None:
        self._lk = out.value
        self._client = client  # also who dispatches what is started
        self.name = name
        self._wait = milliseconds(timeout, _FOREVER)
        self._lease = lease_in_ms(lease)

    def __del__(self, free=lib.rlock_free) -> None:
        free(self._lk)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def _limits(self, timeout: Seconds, lease: Seconds) -> tuple[int, int]:
        return (self._wait if isinstance(timeout, _Default)
                else milliseconds(timeout, _FOREVER),
                self._lease if isinstance(lease, _Default)
                else lease_in_ms(lease))

    # --- threads ----------------------------------------------------------

    def acquire(self, timeout: Seconds = _DEFAULT, lease: Seconds = _DEFAULT) -> bool:
        """Locks, and waits while another owner has it: True. False: it could not
        be had within timeout. Both as for Lock(), which they override."""
        _in_loop()
        status = self._take(*self._limits(timeout, lease))
        if status == _OK:
            return True
        if status == _BUSY or status == _TIMEOUT:
            return False
        raise failure(status)

    def _take(self, wait: int, lease: int) -> int:
        """Who is interrupted by a signal's exception does not learn that there is
        something to release."""
        levels = self._levels()
        try:
            return lib.rlock_acquire(self._lk, wait, lease)
        except BaseException:
            if self._levels() > levels:
                lib.rlock_unlock(self._lk)
            raise

    def release(self) -> None:
        """Undoes one acquire; with the last one the lock is free. That is so also
        when it raises, so a release belongs to each acquire.

        Lost     it had been lost
        NotHeld  this thread holds nothing
        """
        _in_loop()
        status = lib.rlock_unlock(self._lk)
        if status:
            raise failure(status)

    def extend(self, lease: Optional[float] = None) -> None:
        """Sets what is left of the lease, in seconds, and ends its renewal; None:
        the client's watchdog_lease, and it is renewed."""
        _in_loop()
        check(lib.rlock_extend(self._lk, lease_in_ms(lease)))

    def __enter__(self) -> Lock:
        _in_loop()
        status = self._take(self._wait, self._lease)
        if status:
            raise failure(status)
        return self

    def __exit__(self, raised: Any, *_: Any) -> None:
        status = lib.rlock_unlock(self._lk)
        if status and raised is None:
            raise failure(status)

    def eval(self, script: str, keys: Sequence[Word] = (),
             args: Sequence[Word] = ()) -> None:
        """Has the lock's server execute a Lua script if, and only if, this owner
        has the lock at that moment: include/rlock/guard.h. Lost: it was not, and
        will not be. What the script answers is not told."""
        _in_loop()
        n, words, lens = _words([*keys, *args])
        check(lib.rlock_eval(self._lk, L.c_text(script.encode()), len(keys),
                             n - len(keys), words, lens, None))

    def command(self, *words: Word) -> None:
        """Executes one command, as eval(): lock.command("SET", key, value)."""
        _in_loop()
        check(lib.rlock_command_argv(self._lk, None, *_words(words)))

    def cancel(self) -> None:
        """Ends each wait on this handle, of any thread or task, with Canceled."""
        lib.rlock_cancel(self._lk)

    # --- tasks ------------------------------------------------------------

    # These are no coroutines themselves: they note whose task calls them, as
    # asyncio.wait_for() and gather() run coroutines in tasks of their own.

    def acquire_async(self, timeout: Seconds = _DEFAULT,
                      lease: Seconds = _DEFAULT) -> Coroutine[Any, Any, bool]:
        """acquire() for a task. One that is cancelled while it waits leaves the
        queue, and holds no more than before."""
        return self._acquire(_task_owner(), *self._limits(timeout, lease))

    async def _acquire(self, owner: Owner, wait: int, lease: int,
                       must: bool = False) -> bool:
        error = await ended(
            started(self._client, owner, lib.rlock_acquire_start, L.DONE,
                    self._lk, wait, lease),
            owner.cancel, lambda: self._undo(owner))
        if error is None:
            return True
        if error.status in (_BUSY, _TIMEOUT) and not must:
            return False
        raise error

    async def _undo(self, owner: Owner) -> None:
        await ended(started(self._client, owner, lib.rlock_unlock_start, L.DONE,
                            self._lk), _nothing)

    def release_async(self) -> Coroutine[Any, Any, None]:
        """release() for a task. It is done also if the task is cancelled."""
        return self._release(_task_owner())

    async def _release(self, owner: Owner) -> None:
        future = started(self._client, owner, lib.rlock_unlock_start, L.DONE,
                         self._lk)
        try:
            error = await ended(future, _nothing)
        finally:
            _close_losses(owner)
        if error is not None:
            raise error

    def extend_async(self, lease: Optional[float] = None
                     ) -> Coroutine[Any, Any, None]:
        """extend() for a task."""
        return self._await(_task_owner(), lib.rlock_extend_start, L.DONE,
                           lease_in_ms(lease))

    def eval_async(self, script: str, keys: Sequence[Word] = (),
                   args: Sequence[Word] = ()) -> Coroutine[Any, Any, None]:
        """eval() for a task."""
        n, words, lens = _words([*keys, *args])
        return self._await(_task_owner(), lib.rlock_eval_start, L.REPLIED,
                           L.c_text(script.encode()), len(keys),
                           n - len(keys), words, lens)

    def command_async(self, *words: Word) -> Coroutine[Any, Any, None]:
        """command() for a task."""
        return self._await(_task_owner(), lib.rlock_command_argv_start,
                           L.REPLIED, *_words(words))

    async def _await(self, owner: Owner, function: Any, callback: Any,
                     *arguments: Any) -> None:
        error = await ended(started(self._client, owner, function, callback,
                                    self._lk, *arguments), _nothing)
        if error is not None:
            raise error

    async def __aenter__(self) -> Lock:
        await self._acquire(_task_owner(), self._wait, self._lease, must=True)
        return self

    async def __aexit__(self, raised: Any, *_: Any) -> None:
        try:
            await self._release(_task_owner())
        except asyncio.CancelledError:
            raise
        except Exception:
            if raised is None:
                raise

    def lost(self) -> asyncio.Future:
        """A future of the running task's hold: its result is None as soon as the
        lock is lost. It is cancelled by the release. NotHeld: there is no hold.

            loss = lock.lost()
            await asyncio.wait({work, loss}, return_when=FIRST_COMPLETED)
        """
        owner = _task_owner()
        fd, token = self.lost_fd(), self.token
        loss = owner.losses.get(self)
        if loss is None or loss.future.done():
            loss = owner.losses[self] = _Loss(fd, token)
        return loss.future

    # --- questions --------------------------------------------------------

    @property
    def held(self) -> bool:
        """Whether the calling thread, task or owner holds it: by the local clock,
        without asking the server."""
        return as_caller(lib.rlock_is_held, self._lk)

    @property
    def levels(self) -> int:
        """How often it has to be released yet; 0 if it is not held."""
        return as_caller(self._levels)

    def _levels(self) -> int:
        return lib.rlock_hold_count(self._lk)

    @property
    def valid_for(self) -> float:
        """Seconds for which it is surely held; 0.0 if it is not."""
        return as_caller(lib.rlock_valid_ms, self._lk) / 1000

    @property
    def token(self) -> int:
        """The fencing token of the hold, larger than every earlier one of the
        name; 0 if it is not held."""
        return as_caller(lib.rlock_token, self._lk)

    def check(self) -> None:
        """Raises Lost, or NotHeld, unless it is held: to be asked before a
        write."""
        if not self.held:
            self.lost_fd()  # NotHeld, if nothing was lost
            raise Lost(Status.LOST, f"lock {self.name!r} was lost")

    def lost_fd(self) -> int:
        """A descriptor for select and poll that is readable when the lock is lost.
        The last release closes it: never read from it, nor close it."""
        return as_caller(self._lost_fd)

    def _lost_fd(self) -> int:
        fd = lib.rlock_lost_fd(self._lk)
        if fd < 0:
            raise failure(lib.rlock_last_error().contents.status)
        return fd

    # These ask the server, and block for that.

    def locked(self) -> bool:
        """Whether anybody holds it now. Asks the server."""
        out = c.c_bool()
        check(lib.rlock_is_locked(self._lk, out))
        return out.value

    def ttl(self) -> Optional[float]:
        """Seconds until it frees itself unless it is renewed; None: no end, or it
        is free. Asks the server."""
        out = L.i64()
        check(lib.rlock_ttl(self._lk, out))
        return seconds(out.value)

    def holder(self) -> Optional[Holder]:
        """Who holds it; None: nobody. Asks the server."""
        out = L.HolderStruct()
        status = lib.rlock_holder_info(self._lk, out, c.sizeof(out))
        if status == Status.NOT_HELD:
            return None
        check(status)
        return holder_of(out)

    def force_unlock(self) -> bool:
        """Frees it, whoever holds it, who learns of it when he asks the server
        next. False: nobody held it."""
        status = lib.rlock_force_unlock(self._lk)
        if status == Status.NOT_HELD:
            return False
        check(status)
        return True


def _nothing() -> None:
    """A call that is no wait is not withdrawn."""


def _task_owner() -> Owner:
    owner = owner_of_task()
    if owner is None:
        raise invalid("only for tasks of an event loop: threads use `with`, "
                      "acquire() and release()")
    return owner


def _close_losses(owner: Owner) -> None:
    """Of the holds that are over, through whichever handle they were released.
    One that is lost has a descriptor, and no token."""
    for lock, loss in list(owner.losses.items()):
        with owner:
            token = lib.rlock_token(lock._lk)
            over = token != loss.token if token \
                else lib.rlock_lost_fd(lock._lk) < 0
        if over:
            owner.losses.pop(lock).close()


class _Loss:
    """Has the loop look at a copy of a hold's descriptor, until it is told, or
    nobody wants to know any more: asyncio.wait_for() cancels the future."""

    def __init__(self, fd: int, token: int) -> None:
        self.token = token
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future = self._loop.create_future()
        self._fd = os.dup(fd)
        self._loop.add_reader(self._fd, self._tell)
        self.future.add_done_callback(self._let_go)

    def _tell(self) -> None:
        self._let_go()
        if not self.future.done():
            self.future.set_result(None)

    def _let_go(self, _: Any = None) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._loop.remove_reader(fd)
            os.close(fd)

    def close(self) -> None:
        self._let_go()
        self.future.cancel()


class MultiLock(Lock):
    """Several locks as one, all or nothing, of any servers: include/rlock/multi.h.

        with rlock.MultiLock([a, b]): ...
    """

    def __init__(self, locks: Iterable[Lock], *,
                 timeout: Optional[float] = None,
                 lease: Optional[float] = None) -> None:
        self.locks = tuple(locks)
        if not self.locks:
            raise invalid("no lock to make one of")
        handles = (L.pointer * len(self.locks))(*(k._lk for k in self.locks))
        out = L.pointer()
        check(lib.rlock_multi_new(handles, len(handles), out))
        self._begin(out, self.locks[0]._client,
                    b", ".join(_bytes(k.name) for k in self.locks), timeout,
                    lease)


class RedLock(Lock):
    """One lock on several independent servers, held by who has it on a majority
    of them (the Redlock algorithm): include/rlock/multi.h.

        with rlock.RedLock([c1, c2, c3], "orders"): ...

    longest_lease  the longest lease that anybody uses for it, in seconds
    check_uptime   a server that has been up for less does not vote
    """

    def __init__(self, clients: Iterable[Client], name: Name, *,
                 timeout: Optional[float] = None,
                 lease: Optional[float] = None,
                 layout: Layout = Layout.HASH,
                 longest_lease: Optional[float] = None,
                 check_uptime: bool = False) -> None:
        self.clients = tuple(clients)
        if not self.clients:
            raise invalid("no client to make a lock of")
        n = len(self.clients)
        handles = (L.pointer * n)(*(k._handle for k in self.clients))
        key = _bytes(name)
        o = L.RedOptions(c.sizeof(L.RedOptions), layout,
                         milliseconds(longest_lease, 0), check_uptime)
        out = L.pointer()
        check(lib.rlock_red_new_ex(handles, n, key, len(key), o, out))
        self._begin(out, self.clients[0], name, timeout, lease)
