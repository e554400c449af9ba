"""The interpreter: fork, its end, and a library that is not there."""
import os
import signal
import subprocess
import sys
import unittest

import rlock
from support import LIMIT, Case, eventually

# Holds two locks, one of them on a thread that never ends, and waits for one.
HOLDS = """
import sys, threading, rlock
def hold():
    with client.lock("b"):
        threading.Event().wait()
def wait():
    try:
        client.lock("a").acquire()
    except rlock.Closed:
        pass
client = rlock.Client(sys.argv[1], on_event=lambda event: None)
client.lock("a").acquire()
client.lock("a").acquire()
threading.Thread(target=hold, daemon=True).start()
threading.Thread(target=wait, daemon=True).start()
while client.stats()["waiting_now"] != 1 or client.stats()["held_now"] != 2:
    pass
"""


class Ends(Case):
    def freed(self):
        return not self.server.exists("a") and not self.server.exists("b")

    def test_an_interpreter_that_ends_releases_what_it_holds(self):
        for end in ("", "sys.exit(3)", "1 / 0"):
            with self.subTest(end):
                status, said = self.run_python(HOLDS + end, self.server.uri)
                self.assertEqual(status, {"": 0, "sys.exit(3)": 3, "1 / 0": 1}
                                 [end], said)
                self.assertEqual("ZeroDivisionError" in said, end == "1 / 0")
                self.assertTrue(self.freed())

    def test_an_interpreter_ends_also_when_its_server_is_gone(self):
        server = self.serve()
        status, said = self.run_python(
            HOLDS + "import os; os.kill(int(sys.argv[2]), 9)", server.uri,
            str(server.process.pid))
        self.assertEqual((status, said), (0, ""))

    def test_who_is_interrupted_while_it_waits_holds_nothing(self):
        for wait in ("with lock: pass", "lock.acquire(timeout=20)"):
            with self.subTest(wait):
                status, said = self.run_python("""
import os, signal, sys, threading, rlock
def interrupt():
    while client.stats()["waiting_now"] != 1:
        pass
    os.kill(os.getpid(), signal.SIGINT)
    with owner:
        lock.release()
client = rlock.Client(sys.argv[1])
lock, owner = client.lock("a"), rlock.Owner("other")
with owner:
    lock.acquire()
threading.Thread(target=interrupt).start()
try:
    %s
except KeyboardInterrupt:
    print(lock.levels, lock.locked())
""" % wait, self.server.uri)
                self.assertEqual((status, said), (0, "0 False\n"))

    def test_a_loop_that_ends_releases_what_its_tasks_hold(self):
        status, said = self.run_python("""
import asyncio, sys, rlock
async def hold(client):
    async with client.lock("a"):
        await asyncio.Event().wait()
async def main(client):
    tasks = [asyncio.create_task(hold(client)) for _ in range(5)]
    while client.stats()["waiting_now"] != 4:
        await asyncio.sleep(0.005)
client = rlock.Client(sys.argv[1])
asyncio.run(main(client))
""", self.server.uri)
        self.assertEqual((status, said), (0, ""))
        self.assertTrue(self.freed())

    def test_a_child_of_fork_is_refused_and_harms_nothing(self):
        lock = self.client.lock("a")
        with lock:
            child = os.fork()
            if child == 0:
                os._exit(self.as_child(lock))
            status = os.waitpid(child, 0)[1]
            self.assertEqual(os.WEXITSTATUS(status), 0)
            self.assertTrue(lock.held and self.server.exists("a"))
            self.client.ping()

    def as_child(self, lock):
        """The number of the first thing that is wrong; 0: none."""
        refused = 0
        for call in (lock.acquire, lock.release, self.client.ping,
                     lambda: self.client.lock("b")):
            try:
                call()
            except rlock.Forked as e:
                refused += "fork" in str(e)
        if refused != 4 or lock.held:
            return 1
        with rlock.Client(self.server.uri) as mine:
            if mine.lock("a").acquire(timeout=0):
                return 2
            with mine.lock("c"):
                pass
        self.client.close()
        return 0

    def test_a_child_that_ends_as_programs_do_releases_nothing(self):
        status, said = self.run_python("""
import os, sys, rlock
client = rlock.Client(sys.argv[1])
with client.lock("a") as lock:
    if os.fork() == 0:
        sys.exit(0)
    assert os.wait()[1] == 0
    lock.extend()
    assert lock.held and lock.locked()
""", self.server.uri)
        self.assertEqual((status, said), (0, ""))

    def test_without_its_library_the_module_says_what_it_needs(self):
        for where in ("/nowhere/librlock.so", "libc.so.6"):
            done = subprocess.run(
                [sys.executable, "-c", "import rlock"],
                env=dict(os.environ, RLOCK_LIBRARY=where), text=True,
                stderr=subprocess.PIPE, timeout=LIMIT)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"ImportError: .*librlock\.so\.0\.3")

    def test_a_process_that_is_killed_leaves_its_lock_to_the_lease(self):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS + "threading.Event().wait()",
             self.server.uri])
        self.assertTrue(eventually(lambda: self.server.exists("b")))
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertTrue(self.server.exists("a"))
        self.assertEqual(self.client.lock("a").holder().pid, process.pid)

    def test_the_version_is_the_librarys(self):
        self.assertRegex(rlock.library_version(), r"^0\.3\.")
        self.assertEqual(rlock.__version__.rpartition(".")[0], "0.3")


if __name__ == "__main__":
    unittest.main()
