"""Locks of asyncio's tasks."""
import asyncio
import functools
import gc
import os
import time
import unittest
import weakref

import rlock
from rlock import _loop
from support import LIMIT, Case


def in_loop(test):
    """The test is a coroutine, and has a loop of its own, and a limit."""
    async def watched(self, complaints):
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: complaints.append(context))
        await asyncio.wait_for(test(self), LIMIT)

    @functools.wraps(test)
    def run(self):
        complaints = []
        asyncio.run(watched(self, complaints))
        self.assertEqual(complaints, [])
        self.assertEqual(_loop._started, {}, "calls that nobody was told of")
        self.assertEqual(len(_loop._owners), 0, "owners of tasks that are over")
    return run


class Tasks(Case):
    async def waiting(self, n):
        """Until so many wait at the client."""
        while self.client.stats()["waiting_now"] != n:
            await asyncio.sleep(0.005)

    @in_loop
    async def test_thirty_tasks_lose_no_step(self):
        lock, steps = self.client.lock("a"), 0

        async def work():
            nonlocal steps
            for _ in range(20):
                async with lock:
                    seen = steps
                    await asyncio.sleep(0)
                    steps = seen + 1

        await asyncio.gather(*(work() for _ in range(30)))
        self.assertEqual(steps, 600)

    @in_loop
    async def test_a_task_acquires_again_and_others_do_not(self):
        lock = self.client.lock("a")
        async with lock:
            token = lock.token
            async with self.client.lock("a") as again:
                self.assertEqual((again.levels, again.token), (2, token))

            async def other():
                self.assertFalse(lock.held)
                return await lock.acquire_async(timeout=0)

            self.assertFalse(await asyncio.create_task(other()))
            self.assertEqual(lock.holder().owner.partition("-")[0], "task")
        self.assertFalse(lock.held)
        self.assertFalse(self.server.exists("a"))

    @in_loop
    async def test_a_wait_ends_with_its_timeout(self):
        async def hold(held, end):
            async with self.client.lock("a"):
                held.set()
                await end.wait()

        held, end = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(hold(held, end))
        await held.wait()
        began = time.monotonic()
        self.assertFalse(await self.client.lock("a").acquire_async(timeout=0.2))
        self.assertGreaterEqual(time.monotonic() - began, 0.2)
        with self.assertRaises(rlock.Timeout):
            async with self.client.lock("a", timeout=0.05):
                self.fail("two have it")
        end.set()
        await holder

    @in_loop
    async def test_a_task_that_is_cancelled_leaves_the_queue(self):
        lock = self.client.lock("a")
        await lock.acquire_async()
        first = asyncio.create_task(self.hold(lock))
        second = asyncio.create_task(self.hold(lock))
        await self.waiting(2)
        first.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await first
        await self.waiting(1)
        await lock.release_async()
        self.assertEqual(await second, "held")
        self.assertFalse(self.server.exists("a"))

    @staticmethod
    async def hold(lock):
        async with lock:
            return "held"

    @in_loop
    async def test_what_was_granted_to_a_cancelled_task_is_released(self):
        lock = self.client.lock("a")
        for _ in range(20):
            task = asyncio.create_task(self.hold(lock))
            await asyncio.sleep(0)  # it has started, and nobody has dispatched
            time.sleep(0.002)  # the server may answer meanwhile
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertFalse(self.server.exists("a"))
        self.assertEqual(self.client.stats()["held_now"], 0)

    @in_loop
    async def test_wait_for_acquires_for_the_task_that_calls_it(self):
        lock = self.client.lock("a")
        self.assertTrue(await asyncio.wait_for(lock.acquire_async(), LIMIT))
        self.assertTrue(lock.held)
        other = asyncio.create_task(self.hold(lock))
        await self.waiting(1)
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(other), 0.05)
        await asyncio.wait_for(lock.release_async(), LIMIT)
        self.assertEqual(await other, "held")

    @in_loop
    async def test_a_wait_that_wait_for_ends_holds_nothing(self):
        lock = self.client.lock("a")

        async def impatient():
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(lock.acquire_async(), 0.1)
            self.assertFalse(lock.held)
            return "told"

        async with lock:
            self.assertEqual(await asyncio.create_task(impatient()), "told")
        self.assertFalse(self.server.exists("a"))

    @in_loop
    async def test_a_loss_is_told_at_once_and_at_the_end(self):
        client = self.connect(watchdog_lease=0.3)
        lock = client.lock("a")
        with self.assertRaises(rlock.Lost):
            async with lock:
                loss = lock.lost()
                self.assertIs(lock.lost(), loss)
                self.assertFalse(loss.done())
                lock.force_unlock()
                await loss
                self.assertFalse(lock.held)
        async with lock:
            loss = lock.lost()
        self.assertTrue(loss.cancelled())
        with self.assertRaises(rlock.NotHeld):
            lock.lost()

    @in_loop
    async def test_a_loss_is_told_while_the_server_is_silent(self):
        client = self.connect(watchdog_lease=0.6, command_timeout=0.3)
        lock = client.lock("a")
        with self.assertRaises(rlock.Lost):
            async with lock:
                self.server.freeze()
                self.addCleanup(self.server.thaw)
                await lock.lost()
                with self.assertRaises(rlock.Lost):
                    lock.check()
        self.server.thaw()

    @in_loop
    async def test_a_loss_that_nobody_waits_for_any_more_leaves_nothing(self):
        client = self.connect(watchdog_lease=0.6)
        lock = client.lock("a")
        descriptors = []
        for ends_by_loss in (False, True, False, True):
            await lock.acquire_async()
            for _ in range(3):
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(lock.lost(), 0.01)
            if ends_by_loss:
                lock.force_unlock()
                await lock.lost()
                with self.assertRaises(rlock.Lost):
                    await lock.release_async()
            else:
                await lock.release_async()
            descriptors.append(len(os.listdir("/proc/self/fd")))
        # The library keeps some from the first round on.
        self.assertEqual(descriptors[1], descriptors[3])

    @in_loop
    async def test_a_release_by_another_handle_ends_the_wait_for_a_loss(self):
        one, other = self.client.lock("a"), self.client.lock("a")
        await one.acquire_async()
        await one.acquire_async()
        loss = one.lost()
        await other.release_async()
        self.assertFalse(loss.done())
        await other.release_async()
        self.assertTrue(loss.cancelled())

    @in_loop
    async def test_what_the_body_raises_comes_before_the_loss(self):
        with self.assertRaises(ZeroDivisionError):
            async with self.client.lock("a", lease=30) as lock:
                lock.force_unlock()
                1 / 0

    @in_loop
    async def test_a_task_that_ends_leaves_what_it_held_to_its_lease(self):
        lock = self.client.lock("a", lease=0.2)

        async def forgets():
            await lock.acquire_async()
            lock.lost()

        await asyncio.create_task(forgets())
        self.assertFalse(lock.held)
        self.assertTrue(await lock.acquire_async())
        await lock.release_async()

    @in_loop
    async def test_lease_and_guarded_writes(self):
        async with self.client.lock("a", lease=60) as lock:
            await lock.extend_async(100)
            self.assertTrue(90 < lock.valid_for < 100)
            await lock.command_async("SET", "data", 1)
            await lock.eval_async("redis.call('INCR', KEYS[1])", ["data"])
        self.assertEqual(self.server.ask("GET", "data"), b"$1\r\n2\r\n")
        with self.assertRaises(rlock.NotHeld):
            await lock.command_async("SET", "data", 7)
        with self.assertRaises(rlock.NotHeld):
            await lock.release_async()

    @in_loop
    async def test_calls_that_would_block_the_loop_are_refused(self):
        lock = self.client.lock("a")
        for call in (lock.acquire, lock.release, lock.extend, lock.__enter__):
            with self.assertRaisesRegex(rlock.InvalidArgument, "async with"):
                call()
        async with lock:  # a thread of a pool is another owner
            self.assertFalse(await asyncio.get_running_loop().run_in_executor(
                None, lambda: lock.acquire(timeout=0)))

    def test_threads_are_told_what_is_for_tasks(self):
        with self.assertRaisesRegex(rlock.InvalidArgument, "tasks"):
            self.client.lock("a").acquire_async()

    @in_loop
    async def test_an_owner_does_one_thing_at_a_time(self):
        both = await asyncio.gather(
            self.client.lock("a").acquire_async(),
            self.client.lock("b").acquire_async(), return_exceptions=True)
        self.assertIs(both[0], True)
        self.assertIsInstance(both[1], rlock.InvalidArgument)
        await self.client.lock("a").release_async()

    def test_a_client_goes_from_a_closed_loop_to_the_next(self):
        for _ in range(3):
            self.assertEqual(
                asyncio.run(self.hold(self.client.lock("a"))), "held")

    @in_loop
    async def test_a_client_has_one_loop(self):
        async with self.client.lock("a"):
            pass

        def on_another_loop():
            with self.assertRaisesRegex(rlock.InvalidArgument, "event loop"):
                asyncio.run(self.hold(self.client.lock("a")))
            return True

        self.assertTrue(await asyncio.get_running_loop().run_in_executor(
            None, on_another_loop))

    @in_loop
    async def test_who_waits_is_told_that_the_client_is_closed(self):
        async with rlock.Client(self.server.uri) as client:
            lock = client.lock("a")
            await lock.acquire_async()
            waiter = asyncio.create_task(self.hold(lock))
            while client.stats()["waiting_now"] != 1:
                await asyncio.sleep(0.005)
        with self.assertRaises(rlock.Closed):
            await waiter
        self.assertFalse(self.server.exists("a"))

    @in_loop
    async def test_another_thread_may_close_the_client(self):
        client = rlock.Client(self.server.uri)
        lock = client.lock("a")
        await lock.acquire_async()
        waiters = [asyncio.create_task(self.hold(lock)) for _ in range(5)]
        while client.stats()["waiting_now"] != 5:
            await asyncio.sleep(0.005)
        await asyncio.get_running_loop().run_in_executor(None, client.close)
        for waiter in waiters:
            with self.assertRaises(rlock.Closed):
                await waiter
        with self.assertRaises(rlock.Closed):
            await lock.acquire_async()

    @in_loop
    async def test_many_locks_are_one(self):
        a, b = self.client.lock("a"), self.client.lock("b")
        async with rlock.MultiLock([b, a]) as lock:
            self.assertTrue(a.held and b.held and lock.held)
        self.assertFalse(self.server.exists("a") or self.server.exists("b"))

    def test_nothing_is_kept_of_tasks_that_are_over(self):
        class Work:
            pass

        async def work(it):
            async with self.client.lock("a") as lock:
                lock.lost()
                it.done = True

        async def crowd():
            await asyncio.gather(*(work(it) for it in everybody))

        everybody = [Work() for _ in range(50)]
        asyncio.run(crowd())
        gone = [weakref.ref(it) for it in everybody]
        everybody.clear()
        gc.collect()
        self.assertEqual([r() for r in gone if r()], [])
        self.assertEqual((len(_loop._started), len(_loop._owners)), (0, 0))


if __name__ == "__main__":
    unittest.main()
