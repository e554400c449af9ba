"""The module with a library that is older than it."""
import os
import subprocess
import tempfile
import unittest

import rlock
from support import Case

# As it would be if nothing had been added since the last version (python.cmake).
OLDER = os.environ.get("RLOCK_OLDER")
COMPILER = os.environ.get("RLOCK_CC", "cc").split(";")


def compiled(folder, source):
    """A shared library of this text."""
    path = os.path.join(folder, "library.so")
    subprocess.run([*COMPILER, "-shared", "-fPIC", "-x", "c", "-", "-o", path],
                   input=source, text=True, check=True)
    return path


class WithLibrary(Case):
    library = None

    def run_with(self, library, program):
        """What the program says, with this library; its server's URI is `uri`."""
        before = os.environ["RLOCK_LIBRARY"]
        os.environ["RLOCK_LIBRARY"] = library
        try:
            return self.run_python(f"uri = {self.server.uri!r}\n{program}")
        finally:
            os.environ["RLOCK_LIBRARY"] = before

    def expect(self, library, program, said):
        status, output = self.run_with(library, program)
        self.assertEqual((output, status), (said, 0))


@unittest.skipUnless(OLDER, "$RLOCK_OLDER does not say where that library is")
class Older(WithLibrary):
    def test_what_an_older_library_has_works(self):
        self.expect(OLDER, """
import rlock
with rlock.Client(uri) as client, client.lock("a") as lock:
    lock.extend(20)
    with lock:
        print(lock.levels, lock.held, client.stats()["acquires"])
    lock.eval("return redis.call('SET', KEYS[1], 1)", keys=["b"])
print(rlock.library_version() == rlock.__version__)
""", "2 True 2\nTrue\n")
        self.assertTrue(self.server.exists("b"))

    def test_what_an_older_library_lacks_is_named_when_it_is_called(self):
        name, version = os.path.basename(OLDER), rlock.library_version()
        self.expect(OLDER, """
import rlock
with rlock.Client(uri) as client:
    try:
        client.scan()
    except rlock.NotSupported as e:
        print(e.status.name, str(e).rsplit("/", 1)[1])
""", f"ENOTSUP {name} is of version {version}, and has no rlock_scan(): "
             "a later version has\n")

    def test_a_task_goes_on_after_it(self):
        self.expect(OLDER, """
import asyncio, rlock
from rlock import _loop
async def work():
    with rlock.Client(uri) as client:
        lock = client.lock("a")
        await lock.acquire_async()
        try:
            await lock.eval_async("return 1")
        except rlock.NotSupported as e:
            print("rlock_eval_start()" in str(e), len(_loop._started))
        await lock.release_async()
asyncio.run(work())
""", "True 0\n")
        self.assertFalse(self.server.exists("a"))


class OfAnotherVersion(WithLibrary):
    PROGRAM = """
try:
    import rlock
except ImportError as e:
    print(str(e).rsplit("/", 1)[1])
"""

    def test_it_is_refused_by_one_sentence(self):
        with tempfile.TemporaryDirectory(prefix="rlock.") as folder:
            it = compiled(folder, 'char *rlock_version(void){return "0.2.0";}\n')
            self.expect(it, self.PROGRAM, "library.so is of version 0.2.0: this "
                        "module is for librlock.so.0.3\n")


if __name__ == "__main__":
    unittest.main()
