"""asyncio: an owner for each task, and calls that are started and awaited."""
from __future__ import annotations

import asyncio
import ctypes as c
import itertools
import os
import re
import threading
import weakref
from asyncio.events import _get_running_loop
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Optional

from . import _library as L
from ._errors import Error, check, failure, invalid, no_copy
from ._library import lib

if TYPE_CHECKING:
    from ._client import Client


class Owner:
    """Who holds locks, if it is no thread: a job that goes from one thread of a
    pool to another, say. While a thread is inside `with owner:`, what it
    acquires and releases is the owner's, on whichever thread that is.

        owner = rlock.Owner("job-17")
        with owner, client.lock("orders"):
            ...

    One thread at a time acts as an owner; the calls of another one raise
    InvalidArgument. Not to be left by `await`: tasks have owners by themselves.

    label  is told to others, in messages and holder ids; None: a number
    """

    _ow: Optional[int] = None
    __reduce__ = no_copy

    def __init__(self, label: Optional[str] = None) -> None:
        out = L.pointer()
        check(lib.rlock_owner_new(
            label.encode(errors="replace") if label else None, out))
        self._ow = out.value
        self._former: list[Optional[int]] = []
        self.losses: dict[Any, Any] = {}  # a task's: lock, and who tells

    def __enter__(self) -> Owner:
        if self._ow is None:
            raise invalid("the owner was closed")
        self._former.append(lib.rlock_owner_set(self._ow))
        return self

    def __exit__(self, *_: Any) -> None:
        lib.rlock_owner_set(self._former.pop())

    def cancel(self) -> None:
        """Ends the wait that was started for it, and no other owner's."""
        lib.rlock_owner_cancel(self._ow)

    def close(self, free: Callable = lib.rlock_owner_free) -> None:
        """Ends the owner. What it holds is abandoned: leases run out. No thread
        may be inside of it."""
        ow, self._ow = self._ow, None
        free(ow)

    __del__ = close


def _end(task: asyncio.Task) -> None:
    owner = _owners.pop(task)
    for loss in owner.losses.values():
        loss.close()
    owner.close()


# A task's owner ends with the task.
_owners: weakref.WeakKeyDictionary[asyncio.Task, Owner] = \
    weakref.WeakKeyDictionary()


def _label(task: asyncio.Task) -> str:
    return re.sub(r"^Task-", "task-", task.get_name())


def owner_of_task() -> Optional[Owner]:
    """That of the task that runs on this thread; None: it runs none."""
    loop = _get_running_loop()
    if loop is None:
        return None
    task = asyncio.current_task(loop)
    if task is None:
        return None
    owner = _owners.get(task)
    if owner is None:
        owner = _owners[task] = Owner(_label(task))
        task.add_done_callback(_end)
    return owner


def as_caller(function: Callable, *arguments: Any) -> Any:
    """Asks the library as the running task, or as the thread. It must be a
    question that does not block."""
    owner = owner_of_task()
    if owner is None:
        return function(*arguments)
    with owner:
        return function(*arguments)


class Watch:
    """Has an event loop call the client back. The loop is the one that runs when
    the client is used by a task; another one may follow when that is closed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._fd = -1

    def begin(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return loop
        if self._loop is not None and not self._loop.is_closed():
            raise invalid("this client belongs to another event loop: give each "
                          "loop a client of its own")
        fd = lib.rlock_client_fd(self._client._handle)
        if fd < 0:
            raise failure(lib.rlock_last_error().contents.status)
        self.stop()
        # A copy, whose number stays ours when the client is closed.
        self._fd = os.dup(fd)
        self._loop = loop
        loop.add_reader(self._fd, self._dispatch)
        return loop

    def _dispatch(self) -> None:
        handle = self._client._cl
        if handle is not None:  # another thread is about to have us stopped
            lib.rlock_client_dispatch(handle)

    def stop(self) -> None:
        """From here on nobody dispatches: waits for the loop, if that runs on
        another thread."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        let_go = threading.Event()

        def end() -> None:
            loop.remove_reader(self._fd)
            os.close(self._fd)
            let_go.set()

        def end_without() -> None:
            os.close(self._fd)
            let_go.set()

        on_loop(loop, end, end_without)
        while not let_go.wait(0.1) and loop.is_running():
            pass

    def forget(self) -> None:
        """In a child of fork(), whose loop shares its selector with the parent's:
        that goes on."""
        if self._loop is not None:
            os.close(self._fd)
            self._loop = None


def on_loop(loop: asyncio.AbstractEventLoop, function: Callable,
            closed: Callable = lambda: None) -> None:
    """Calls it on the loop's thread; `closed` if there is no loop any more."""
    if loop.is_closed():
        closed()
    elif _get_running_loop() is loop or not loop.is_running():
        function()
    else:
        try:
            loop.call_soon_threadsafe(function)
        except RuntimeError:  # closed meanwhile
            closed()


# Who waits for which started call. The library has the number.
_started: dict[int, tuple] = {}
_numbers = itertools.count(1)


def _tell(number: int, status: int) -> None:
    loop, future = _started.pop(number)
    error = failure(status) if status else None

    def settle() -> None:
        if not future.done():
            future.set_result(error)

    on_loop(loop, settle)


@L.DONE
def _done(_lk: int, status: int, number: int) -> None:
    _tell(number, status)


@L.REPLIED
def _replied(_lk: int, status: int, _reply: int, number: int) -> None:
    _tell(number, status)


CALLBACKS = {L.DONE: _done, L.REPLIED: _replied}


def started(client: Client, owner: Owner, function: Callable, callback: Any,
            *arguments: Any) -> asyncio.Future:
    """Starts a call as the owner. The future's result is None, or the error."""
    loop = client._watch.begin()
    future = loop.create_future()
    number = next(_numbers)
    with owner:
        _started[number] = loop, future
        status = None
        try:
            status = function(*arguments, CALLBACKS[callback], number)
        finally:
            if status != 0:
                del _started[number]
        if status:
            raise failure(status)
    return future


async def ended(future: asyncio.Future, withdraw: Callable[[], None],
                undo: Optional[Callable[[], Coroutine]] = None) -> Any:
    """Waits for what was started. The owner can do nothing else meanwhile, so a
    task that is cancelled withdraws its wait, and stays until that is over; what
    it was granted all the same is undone."""
    canceled = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as e:
            canceled = e
            withdraw()
    error = future.result()
    if canceled is None:
        return error
    if undo is not None and error is None:
        await undo()
    raise canceled
