"""python_tasks.py [URI]: tasks of asyncio wait for a lock, and no thread does.

Twenty tasks add one to a variable, ten times each, and let others run between
reading and writing it. Without a lock steps are lost; under `async with lock`
none is. Then a lock is freed by force, and who holds it is told at once.

    pip install ./src/python
"""
import asyncio
import contextlib
import sys

import rlock

TASKS, ROUNDS = 20, 10
counter = 0


async def count(guard):
    """Each task is an owner of its own, so that they exclude each other."""
    global counter
    for _ in range(ROUNDS):
        async with guard:
            seen = counter
            await asyncio.sleep(0)  # the others' turn
            counter = seen + 1


async def run(what, guard):
    global counter
    counter = 0
    await asyncio.gather(*(count(guard) for _ in range(TASKS)))
    print(f"{what}: {counter} of {TASKS * ROUNDS} steps")
    return counter


class Nothing(contextlib.AbstractAsyncContextManager):
    async def __aexit__(self, *_):
        pass


async def lose(lock):
    """Stops its work when the lock is lost, and not when that is over."""
    work = asyncio.create_task(asyncio.sleep(3600))
    try:
        async with lock:
            loss = lock.lost()
            lock.force_unlock()  # somebody's mistake
            with contextlib.suppress(rlock.Lost):
                await lock.extend_async()
            await asyncio.wait({work, loss},
                               return_when=asyncio.FIRST_COMPLETED)
            work.cancel()
    except rlock.Lost as e:
        print("lost:", e)
        return True
    return False


async def main(client):
    lock = client.lock("example:python_tasks", timeout=30)
    try:
        lost = await run("without a lock", Nothing())
        kept = await run("with the lock", lock)
        told = await lose(lock)
    finally:
        await client.close_async()
    return lost < TASKS * ROUNDS == kept and told


if __name__ == "__main__":
    try:
        ok = asyncio.run(main(rlock.Client(*sys.argv[1:2])))
    except rlock.Error as e:
        sys.exit(f"python_tasks.py: {e}")
    sys.exit(not ok)
