"""What the tests of the Python module share: servers, and patience."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import rlock

LIMIT = 20  # seconds for what has to come


def eventually(condition):
    """Waits until it is true, and tells whether it became so."""
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


class Server:
    """A redis-server on a Unix socket. Should the test be killed, the kernel
    ends it."""

    def __init__(self, *more):
        self.directory = tempfile.mkdtemp(prefix="rlock.")
        self.path = os.path.join(self.directory, "redis.sock")
        self.uri = f"unix://{self.path}"
        self.log = open(os.path.join(self.directory, "log"), "wb")
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "redis-server", "--port", "0",
             "--unixsocket", self.path, "--dir", self.directory, "--save", "",
             "--appendonly", "no", *more], stdout=self.log, stderr=self.log)
        if not eventually(self.answers):
            self.stop()
            raise RuntimeError("redis-server does not start")

    def answers(self):
        try:
            return self.ask("PING")[:1] in (b"+", b"-")
        except OSError:
            return False

    def ask(self, *words):
        """One command; the first bytes of its answer, as they come."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(LIMIT)
            s.connect(self.path)
            s.sendall(b"*%d\r\n" % len(words))
            for word in map(str, words):
                s.sendall(b"$%d\r\n%s\r\n" % (len(word), word.encode()))
            return s.recv(4096)

    def exists(self, name):
        return self.ask("EXISTS", name) == b":1\r\n"

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory)


class Case(unittest.TestCase):
    """A test with a server of its own, and a client of it."""

    options = {}

    def setUp(self):
        self.server = self.serve()
        self.client = self.connect(**self.options)

    def serve(self, *more):
        server = Server(*more)
        self.addCleanup(server.stop)
        return server

    def connect(self, **options):
        client = rlock.Client(self.server.uri, **options)
        self.addCleanup(client.close)
        return client

    def elsewhere(self, function):
        """What it gives on another thread."""
        got = []
        thread = threading.Thread(target=lambda: got.append(function()))
        thread.start()
        thread.join(LIMIT)
        self.assertEqual(len(got), 1, "the other thread does not end, or raises")
        return got[0]

    def run_python(self, program, *arguments):
        """Runs it in an interpreter of its own: its status, and what it says."""
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", program,
             *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=3 * LIMIT)
        return done.returncode, done.stdout.decode()
