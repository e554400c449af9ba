"""Locks of threads, and of owners that go from thread to thread."""
import concurrent.futures
import select
import threading
import time
import unittest

import rlock
from support import LIMIT, Case, eventually


class Threads(Case):
    def test_with_holds_the_lock_until_its_end(self):
        lock = self.client.lock("a")
        with lock as it:
            self.assertIs(it, lock)
            self.assertTrue(lock.held)
            self.assertGreater(lock.token, 0)
            self.assertGreater(lock.valid_for, 1)
            self.assertTrue(self.server.exists("a"))
        self.assertFalse(lock.held)
        self.assertEqual((lock.token, lock.valid_for, lock.levels), (0, 0, 0))
        self.assertFalse(self.server.exists("a"))

    def test_threads_exclude_each_other_and_lose_no_step(self):
        lock, steps = self.client.lock("a"), [0]

        def work():
            for _ in range(50):
                with lock:
                    seen = steps[0]
                    time.sleep(0)
                    steps[0] = seen + 1

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
        self.assertEqual(steps[0], 400)

    def test_who_holds_it_acquires_it_again(self):
        lock, other = self.client.lock("a"), self.client.lock("a")
        with lock:
            token = lock.token
            with other:
                self.assertEqual((lock.levels, other.token), (2, token))
            self.assertEqual(lock.levels, 1)
            self.assertFalse(self.elsewhere(lambda: lock.acquire(timeout=0)))
        self.assertTrue(self.elsewhere(lambda: lock.acquire(timeout=0)))

    def test_a_wait_ends_with_its_timeout(self):
        lock = self.client.lock("a")
        mine = self.connect().lock("a", timeout=0.05)
        with lock:
            began = time.monotonic()
            self.assertFalse(mine.acquire(timeout=0.2))
            self.assertGreaterEqual(time.monotonic() - began, 0.2)
            with self.assertRaisesRegex(rlock.Timeout, "'a'") as raised:
                with mine:
                    self.fail("two have it")
            self.assertEqual(raised.exception.status, rlock.Status.TIMEOUT)
            self.assertIsInstance(raised.exception, TimeoutError)
            with self.assertRaises(rlock.Busy):
                with self.client.lock("a", timeout=0) as again:
                    self.assertEqual(again.levels, 2)
                    self.elsewhere(self.enter_at_once)
                    raise rlock.Busy(rlock.Status.BUSY, "the other's")

    def enter_at_once(self):
        with self.assertRaises(rlock.Busy):
            self.client.lock("a", timeout=0).__enter__()

    def test_a_lease_ends_by_itself_and_is_extended(self):
        lock = self.client.lock("a", lease=60)
        lock.acquire()
        self.assertTrue(50 < lock.valid_for < 60)
        lock.extend(100)
        self.assertTrue(90 < lock.valid_for < 100)
        lock.extend(0.2)
        self.assertTrue(eventually(lambda: not self.server.exists("a")))
        with self.assertRaises(rlock.Lost):
            lock.release()

    def test_a_thread_that_is_told_to_stop_waits_no_longer(self):
        told = []

        def wait():
            try:
                self.client.lock("a").acquire()
            except rlock.Canceled as e:
                told.append(e.status)

        with self.client.lock("a"):
            waiter = threading.Thread(target=wait)
            waiter.start()
            self.assertTrue(eventually(
                lambda: self.client.stats()["waiting_now"] == 1))
            self.client.cancel()
            waiter.join(LIMIT)
        self.assertEqual(told, [rlock.Status.CANCELED])
        self.client.cancel(False)
        with self.client.lock("a"):
            pass

    def test_jobs_of_a_pool_are_owners(self):
        lock = self.client.lock("a")
        first, second = rlock.Owner("first"), rlock.Owner("second")

        def as_owner(owner, function):
            with owner:
                return function()

        with concurrent.futures.ThreadPoolExecutor(1) as one, \
                concurrent.futures.ThreadPoolExecutor(1) as another:
            def ask(pool, owner, function):
                return pool.submit(as_owner, owner, function).result(LIMIT)

            self.assertTrue(ask(one, first, lock.acquire))
            self.assertFalse(ask(one, second, lambda: lock.acquire(timeout=0)))
            self.assertTrue(ask(another, first, lambda: lock.held))
            self.assertEqual(lock.holder().owner, "first")
            ask(another, first, lock.release)
            self.assertTrue(ask(one, second, lambda: lock.acquire(timeout=0)))
            ask(one, second, lock.release)
        first.close()
        with self.assertRaises(rlock.InvalidArgument):
            first.__enter__()

    def test_a_circle_of_waits_is_told(self):
        a, b = self.client.lock("a"), self.client.lock("b")
        both = threading.Barrier(2)
        told = []

        def work(mine, other):
            with mine:
                both.wait(LIMIT)
                try:
                    with other:
                        pass
                except rlock.Deadlock as e:
                    told.append(str(e))

        thread = threading.Thread(target=work, args=(b, a))
        thread.start()
        work(a, b)
        thread.join(LIMIT)
        self.assertEqual(len(told), 1)


class Losses(Case):
    options = {"watchdog_lease": 0.6, "command_timeout": 0.3}

    def test_a_forced_lock_is_lost_at_its_release(self):
        lock = self.client.lock("a", lease=30)
        with self.assertRaisesRegex(rlock.Lost, "'a'"):
            with lock:
                self.assertTrue(self.connect().lock("a").force_unlock())
        with lock:
            pass

    def test_what_the_body_raises_comes_before_the_loss(self):
        with self.assertRaises(ZeroDivisionError):
            with self.client.lock("a", lease=30) as lock:
                lock.force_unlock()
                1 / 0

    def test_a_server_that_is_silent_loses_the_lock_in_time(self):
        events = []
        client = self.connect(on_event=events.append, **self.options)
        lock = client.lock("a")
        lock.acquire()
        fd = lock.lost_fd()
        self.server.freeze()
        self.addCleanup(self.server.thaw)
        self.assertEqual(select.select([fd], [], [], LIMIT)[0], [fd])
        self.assertFalse(lock.held)
        with self.assertRaises(rlock.Lost):
            lock.check()
        with self.assertRaises(rlock.NotHeld):
            self.client.lock("b").check()
        self.assertTrue(eventually(lambda: any(
            e.type == rlock.EventType.LOST and e.name == b"a"
            for e in list(events))))
        with self.assertRaises(rlock.Lost):
            lock.release()
        self.server.thaw()

    def test_a_write_is_refused_to_who_has_lost(self):
        lock = self.client.lock("a", lease=30)
        lock.acquire()
        lock.command("SET", "data", 1)
        lock.eval("redis.call('INCRBY', KEYS[1], ARGV[1])", ["data"], [4])
        self.assertEqual(self.server.ask("GET", "data"), b"$1\r\n5\r\n")
        lock.force_unlock()
        with self.assertRaises(rlock.Lost):
            lock.command("SET", "data", 7)
        self.assertEqual(self.server.ask("GET", "data"), b"$1\r\n5\r\n")
        with self.assertRaises(rlock.Lost):
            lock.release()
        with self.assertRaises(rlock.NotHeld):
            lock.command("SET", "data", 7)


class Several(Case):
    def test_many_locks_are_one(self):
        a, b = self.client.lock("a"), self.client.lock("b")
        lock = rlock.MultiLock([a, b], timeout=0)
        with lock:
            self.assertTrue(a.held and b.held and lock.held)
            self.assertEqual(lock.token, max(a.token, b.token))
        self.assertFalse(a.held or b.held)
        with self.connect().lock("b"):
            with self.assertRaises(rlock.Busy):
                lock.__enter__()
        self.assertFalse(self.server.exists("a"))
        with self.assertRaises(rlock.InvalidArgument):
            rlock.MultiLock([])

    def test_a_lock_of_three_servers_bears_the_end_of_one(self):
        servers = [self.server, self.serve(), self.serve()]
        clients = []
        for server in servers:
            clients.append(rlock.Client(server.uri, command_timeout=1))
            self.addCleanup(clients[-1].close, release=False)
        lock = rlock.RedLock(clients, "a", lease=30)
        with lock:
            self.assertGreaterEqual(sum(s.exists("a") for s in servers), 2)
        servers[1].freeze()
        self.addCleanup(servers[1].thaw)
        with lock:
            self.assertTrue(lock.held)
        servers[2].freeze()
        self.addCleanup(servers[2].thaw)
        with self.assertRaises(rlock.NoQuorum):
            lock.acquire(timeout=0)


if __name__ == "__main__":
    unittest.main()
