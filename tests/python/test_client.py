"""Clients: what they tell, what they refuse, and how they end."""
import copy
import gc
import pickle
import unittest
import unittest.mock
import weakref

import rlock
from support import Case, eventually


class Clients(Case):
    def test_a_wrong_password_is_an_error_that_does_not_show_it(self):
        server = self.serve("--requirepass", "right")
        uri = server.uri.replace("unix://", "unix://:wr0ng@")
        with self.assertRaisesRegex(rlock.ServerError, "WRONGPASS") as raised:
            rlock.Client(uri)
        self.assertNotIn("wr0ng", str(raised.exception))
        self.assertNotIn("wr0ng", repr(raised.exception))
        with rlock.Client(server.uri.replace("unix://", "unix://:right@")) as it:
            it.ping()
        with rlock.Client(server.uri,
                          credentials=lambda: (None, "right")) as it:
            it.ping()

    def test_no_server_is_unreachable(self):
        with self.assertRaisesRegex(rlock.Unreachable, "nowhere") as raised:
            rlock.Client("unix:///nowhere/redis.sock")
        self.assertEqual(raised.exception.status, rlock.Status.EIO)
        self.assertNotEqual(raised.exception.sys_errno, 0)
        self.assertIsInstance(raised.exception, ConnectionError)
        with rlock.Client("unix:///nowhere/redis.sock", lazy=True) as client:
            with self.assertRaises(rlock.Unreachable):
                client.lock("a").acquire(timeout=0)

    def test_errors_go_through_pickle(self):
        error = rlock.Lost(rlock.Status.LOST, "gone", 5)
        same = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(same), same.status, str(same), same.sys_errno),
                         (rlock.Lost, rlock.Status.LOST, "gone", 5))

    def test_what_has_a_handle_of_the_library_is_not_copied(self):
        for it in (self.client, self.client.lock("a"), rlock.Owner("job"),
                   rlock.MultiLock([self.client.lock("a")]),
                   rlock.RedLock([self.client], "a")):
            for make in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, "cannot be copied"):
                    make(it)

    def test_a_lock_that_could_not_be_made_ends_quietly(self):
        status, said = self.run_python("""
import rlock
for kind in (rlock.Lock, rlock.MultiLock, rlock.RedLock, rlock.Owner):
    try:
        kind(none=1)
    except TypeError:
        pass
""")
        self.assertEqual((status, said), (0, ""))

    def test_bad_arguments_are_refused(self):
        for wrong in ({"turn": 2}, {"host_id": "x" * 300}, {"max_hold": -1}):
            with self.assertRaises(rlock.InvalidArgument):
                rlock.Client(self.server.uri, **wrong)
        with self.assertRaisesRegex(TypeError, "colour"):
            rlock.Client(self.server.uri, colour="red")
        for name in ("", "x" * 600, "rlock_token:a"):
            with self.assertRaises(rlock.InvalidArgument):
                self.client.lock(name)
        for wrong in (lambda: self.client.lock(None),
                      lambda: self.client.lock("a").command("SET", "k", None)):
            with self.assertRaisesRegex(TypeError, "None is no name"):
                wrong()
        for wrong in (lambda: rlock.Client(self.server.uri + "\0"),
                      lambda: self.client.lock("a").eval("return 1\0 nonsense")):
            with self.assertRaisesRegex(ValueError, "null byte"):
                wrong()
        for time in (-1, float("nan"), float("inf")):
            with self.assertRaises(ValueError):
                self.client.lock("a").acquire(timeout=time)
        for lease in (0, 0.001, -1):
            with self.assertRaises(rlock.InvalidArgument):
                self.client.lock("a", lease=lease).acquire()

    def test_names_are_bytes(self):
        name = b"\x00\xff a"
        with self.client.lock(name):
            self.assertEqual([k.name for k in self.client.scan()], [name])
        with self.client.lock("ü"), self.client.lock("ü".encode()) as lock:
            self.assertEqual(lock.levels, 2)

    def test_scan_tells_who_holds_what(self):
        with self.client.lock("a"), self.client.lock("b", lease=60):
            a, b = self.client.scan()
            self.assertEqual((a.name, b.name), (b"a", b"b"))
            self.assertTrue(50 < b.ttl <= 60)
            self.assertEqual([k.name for k in self.client.scan("[b-c]")],
                             [b"b"])
            self.assertEqual(a.holders[0].count, 1)
        self.assertEqual(list(self.client.scan()), [])
        self.assertEqual([(k.name, k.holders) for k in
                          self.client.scan("a", idle=True)], [(b"a", ())])

    def test_another_programs_key_is_no_lock(self):
        self.server.ask("SET", "a", "x")
        with self.assertRaises(rlock.WrongType):
            self.client.lock("a").acquire()

    def test_counters_count(self):
        with self.client.lock("a"):
            self.assertEqual(self.client.stats()["held_now"], 1)
        stats = self.client.stats()
        self.assertEqual((stats["acquires"], stats["releases"],
                          stats["held_now"]), (1, 1, 0))

    def test_events_are_told_and_their_errors_end_nothing(self):
        seen = []

        def told(event):
            seen.append(event)
            if event.type == rlock.EventType.RELEASED:
                raise ZeroDivisionError

        unraisable = []
        self.enter(unittest.mock.patch("sys.unraisablehook",
                                       unraisable.append))
        client = self.connect(on_event=told)
        with client.lock("a"):
            pass
        self.assertEqual([e.type.name for e in seen], ["ACQUIRED", "RELEASED"])
        self.assertEqual(seen[0].name, b"a")
        self.assertGreater(seen[0].token, 0)
        self.assertIs(unraisable[0].exc_type, ZeroDivisionError)
        unraisable.clear()

    def enter(self, context):
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def test_a_client_that_is_closed_releases_and_refuses(self):
        client = rlock.Client(self.server.uri)
        lock = client.lock("a")
        lock.acquire()
        client.close()
        client.close()
        self.assertFalse(self.server.exists("a"))
        self.assertFalse(lock.held)
        with self.assertRaises(rlock.Closed):
            lock.acquire()
        with self.assertRaises(rlock.Closed):
            client.ping()
        with self.assertRaises(rlock.Closed):
            client.lock("b")

    def test_nothing_is_kept_of_clients_that_are_closed(self):
        class Listener:
            def told(self, event):
                pass

        listener = Listener()
        gone = weakref.ref(listener)
        for _ in range(20):
            client = rlock.Client(self.server.uri, on_event=listener.told)
            with client.lock("a"):
                list(client.scan())
            client.close()
        del client, listener
        self.assertTrue(eventually(lambda: gc.collect() >= 0 and not gone()))


if __name__ == "__main__":
    unittest.main()
