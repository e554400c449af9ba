#!/usr/bin/env python3
"""checks.py DIRECTORY

Lets rlock and other libraries share locks on Redis servers of their own, and in
a cluster, and checks what each side sees of the other. Closes with "N passed, N
failed".

DIRECTORY/NAME/peer is a program that speaks for the library NAME, or
DIRECTORY/NAME/skip says why there is none. A peer is started with the ports of
its servers on 127.0.0.1 as arguments, or with "cluster" and the port of one
node, the one of rlock with a layout before them, and reads commands from its
standard input until that ends. It answers each by one line. Times are in
milliseconds:

  lock NAME WAIT LEASE  ok, or busy if it cannot be had while WAIT lasts (0: one
                        try). LEASE 0: 1500, renewed by the library itself
  unlock NAME           ok, or lost: it was not this peer's any more
  extend NAME LEASE     ok, or lost
  force NAME            frees it, whoever holds it: ok, or free
  ttl NAME              what is left of its lease; negative: it is free
  count NAME N          N times: locks, adds one to the number in the file NAME
                        of the working directory, unlocks; then ok

and those that know latches

  set NAME COUNT        ok, or busy: it is set already
  down NAME             counts it down by one: ok
  await NAME WAIT       ok, or busy: it has not opened while WAIT lasted
  left NAME             its count
  delete NAME           ok, or free: there was none

those that know semaphores

  total NAME N          there are so many permits: ok
  take NAME WAIT LEASE  takes one: ok, or busy. LEASE 0: it does not end
  give NAME             gives back what it took last: ok, or lost
  free NAME             how many are free

and the one of rlock also

  held NAME             yes, or no: lost or never had, without asking Redis
  holder NAME           hold count and holder id as stored, or free

For those that know read-write locks "read-of-NAME" and "write-of-NAME" are the sides
of the one called NAME, and for those that know fair locks "fair-of-NAME" is such a one.

All other answers are errors.
"""

import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

LONG = 30000  # a lease that ends nothing here
SHORT = 1000  # one that is to run out
WATCHDOG = 1500  # what LEASE 0 stands for
SOON = 1000  # for what takes no time of its own
FIRST = 3000  # the same in a JVM, which still has classes to load
POLL = 2500  # the same for rlock, when only its look every 2 s tells it
LIMIT = 10000  # for an answer that is not about time
START = 60000  # and for the first one: a JVM comes up, beside other work
INCREMENTS = 2000  # of a crowd


class Failure(Exception):
    pass


def now():
    return int(time.monotonic() * 1000)


def start(argv, **more):
    """Should this script be killed, the kernel ends what it has started."""
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *map(str, argv)], **more)


ports = []  # what was taken, until this process ends


def taken(port):
    """False: another test has it, in whatever language it is written."""
    s = socket.socket(socket.AF_UNIX)
    try:
        s.bind("\0rlock-test-port-%d" % port)
    except OSError:
        s.close()
        return False
    ports.append(s)
    return True


class Server:
    """A redis-server on a Unix socket and a free port."""

    def __init__(self, directory, *more):
        os.mkdir(directory)
        self.path = os.path.join(directory, "redis.sock")
        self.log = os.path.join(directory, "log")
        while True:
            # A node of a cluster takes the one 10000 higher, too.
            self.port = random.randrange(10000, 20000)
            if not (taken(self.port) and taken(self.port + 10000)):
                continue
            self.process = start(
                ["redis-server", "--bind", "127.0.0.1", "--port", self.port,
                 "--unixsocket", self.path, "--dir", directory, "--save", "",
                 "--appendonly", "no", "--logfile", self.log, *more])
            if self.answers():
                return

    def answers(self):
        """False: somebody else was quicker to take the port."""
        until = now() + LIMIT
        while self.process.poll() is None:
            try:
                # It is opened after the port.
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(self.path)
                    s.sendall(b"PING\r\n")
                    if s.recv(7) == b"+PONG\r\n":
                        return True
            except OSError:
                pass
            if now() > until:
                self.process.kill()
                break
            time.sleep(0.01)
        self.process.wait()
        with open(self.log) as log:
            text = log.read()
        if "Address already in use" not in text:
            sys.exit("redis-server does not start:\n" + text)
        return False

    def cli(self, *words):
        return subprocess.run(
            ["redis-cli", "-p", str(self.port), *words], check=True,
            stdout=subprocess.PIPE, text=True).stdout

    def stop(self):
        self.process.terminate()
        self.process.wait()


def start_cluster(scratch):
    """Three masters, each with a replica that follows it."""
    nodes = [Server(os.path.join(scratch, f"node-{i}"),
                    "--cluster-enabled", "yes",
                    "--repl-diskless-sync-delay", "0") for i in range(6)]
    nodes[0].cli("--cluster", "create",
                 *(f"127.0.0.1:{node.port}" for node in nodes),
                 "--cluster-replicas", "1", "--cluster-yes")
    until = now() + LIMIT
    for node in nodes:
        while ("cluster_state:ok" not in node.cli("cluster", "info") or
               node.cli("role").startswith("master") and
               node.cli("wait", "1", "100") == "0\n"):
            if now() > until:
                sys.exit("the cluster does not become ready")
            time.sleep(0.05)
    return nodes


class Peer:
    def __init__(self, name, argv):
        self.name = name
        self.asked = ""
        self.process = start(argv, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, bufsize=0)

    def send(self, *words):
        self.asked = " ".join(map(str, words))
        self.process.stdin.write(self.asked.encode() + b"\n")

    def fail(self, what):
        raise Failure(f"{self.name}: {self.asked}: {what}")

    def has_answered(self, limit):
        return select.select([self.process.stdout], [], [], limit / 1000)[0]

    def answer(self, limit=LIMIT):
        until = now() + limit
        line = b""
        while not line.endswith(b"\n"):
            if not self.has_answered(max(0, until - now())):
                self.fail(f"no answer after {limit} ms")
            part = os.read(self.process.stdout.fileno(), 4096)
            if not part:
                self.fail("has ended")
            line += part
        return line.decode().rstrip("\n")

    def ask(self, *words, limit=LIMIT):
        self.send(*words)
        return self.answer(limit)

    def answers(self, wanted, limit=LIMIT):
        answer = self.answer(limit)
        if answer != wanted:
            self.fail(f"{answer}, expected {wanted}")

    def expect(self, wanted, *words, limit=LIMIT):
        self.send(*words)
        self.answers(wanted, limit)

    def waits(self, name):
        """Begins to wait for a lock that is held, and finds it so."""
        # Old programs of one second are told apart by their leases only.
        self.send("lock", name, LIMIT, 2 * LONG)
        if self.has_answered(300):
            self.fail(f"{self.answer()}, expected to wait")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Side:
    """Two peers of one library."""

    def __init__(self, name, argv, traits, wakes, rounds):
        self.name = name
        self.argv = argv
        self.traits = traits.split()
        self.wakes = wakes
        self.rounds = rounds
        self.peers = []

    def start(self):
        self.peers = [Peer(self.name, self.argv) for _ in range(2)]
        self.one, self.two = self.peers
        for peer in self.peers:  # until they are up
            peer.ask("ttl", "nothing", limit=START)

    def kill_two(self):
        """Kills the second one; another takes its place."""
        self.two.kill()
        self.peers[1] = self.two = Peer(self.name, self.argv)
        self.two.ask("ttl", "nothing", limit=START)

    def stop(self):
        for peer in self.peers:
            peer.kill()


# --- The checks -------------------------------------------------------------

CHECKS = []


def check(title, needs=""):
    """For each side as a that has these traits, with the other one as b."""
    def add(function):
        CHECKS.append((title, needs, function))
        return function
    return add


def within(lowest, value, highest, what):
    if not lowest <= value <= highest:
        raise Failure(f"{what} is {value}, expected {lowest} to {highest}")


@check("a lock that {a} holds is busy for {b}")
def busy(a, b, name):
    a.one.expect("ok", "lock", name, 0, LONG)
    b.one.expect("busy", "lock", name, 0, LONG)
    b.one.expect("busy", "lock", name, 300, LONG)
    a.one.expect("ok", "unlock", name)
    b.one.expect("ok", "lock", name, 0, LONG)
    b.one.expect("ok", "unlock", name)


@check("a wait of {b} ends when {a} unlocks")
def hand_over(a, b, name):
    # Redisson derives its channel in another way when there are braces.
    for name in name, "{" + name + "}":
        a.one.expect("ok", "lock", name, 0, LONG)
        b.one.waits(name)
        a.one.expect("ok", "unlock", name)
        b.one.answers("ok", limit=b.wakes)
        b.one.expect("ok", "unlock", name)


@check("{b} sees the lease of {a}")
def lease(a, b, name):
    if int(b.one.ask("ttl", name)) >= 0:
        raise Failure("a lock that nobody took has a lease")
    a.one.expect("ok", "lock", name, 0, LONG)
    within(LONG - LIMIT, int(b.one.ask("ttl", name)), LONG + b.rounds, "it")
    a.one.expect("ok", "unlock", name)


@check("{b} gets the lock when the lease of {a} is over, and keeps it")
def expiry(a, b, name):
    began = now()
    a.one.expect("ok", "lock", name, 0, SHORT)
    b.one.expect("ok", "lock", name, LIMIT, LONG)
    within(SHORT, now() - began, SHORT + b.rounds + b.wakes, "the wait")
    a.one.expect("lost", "unlock", name)
    a.one.expect("busy", "lock", name, 0, LONG)
    b.one.expect("ok", "unlock", name)


@check("a lock that {a} renews stays busy for {b}", "renews")
def renewal(a, b, name):
    a.one.expect("ok", "lock", name, 0, 0)
    b.one.expect("busy", "lock", name, WATCHDOG + b.rounds + SHORT, LONG)
    a.one.expect("ok", "unlock", name)


@check("a lock that {a} extends stays busy for {b}", "extends")
def extension(a, b, name):
    a.one.expect("ok", "lock", name, 0, SHORT)
    a.one.expect("ok", "extend", name, LONG)
    b.one.expect("busy", "lock", name, SHORT + b.rounds + SHORT, LONG)
    a.one.expect("ok", "unlock", name)


@check("a lock that {a} nests stays busy for {b} up to the last unlock",
       "nests")
def nesting(a, b, name):
    a.one.expect("ok", "lock", name, 0, LONG)
    a.one.expect("ok", "lock", name, 0, LONG)
    b.one.expect("busy", "lock", name, 0, LONG)
    a.one.expect("ok", "unlock", name)
    b.one.expect("busy", "lock", name, 0, LONG)
    a.one.expect("ok", "unlock", name)
    b.one.expect("ok", "lock", name, 0, LONG)
    b.one.expect("ok", "unlock", name)


@check("what {b} frees by force {a} has lost, and {a} can take anew")
def force(a, b, name):
    b.one.expect("free", "force", name)
    a.one.expect("ok", "lock", name, 0, LONG)
    a.two.waits(name)
    b.one.expect("ok", "force", name)
    a.two.answers("ok", limit=POLL)
    a.one.expect("lost", "unlock", name)
    a.two.expect("ok", "unlock", name)


@check("{a} notices by itself that {b} has freed its lock", "ours")
def notice(a, b, name):
    a.one.expect("ok", "lock", name, 0, 0)
    b.one.expect("ok", "force", name)
    until = now() + WATCHDOG
    while a.one.ask("held", name) != "no":
        if now() > until:
            raise Failure("it still believes that it holds the lock")
    a.one.expect("lost", "unlock", name)


@check("{a} can tell who {b} is", "ours")
def holder(a, b, name):
    a.one.expect("free", "holder", name)
    b.one.expect("ok", "lock", name, 0, LONG)
    seen = a.one.ask("holder", name)
    if not seen.startswith("1 ") or a.two.ask("holder", name) != seen:
        raise Failure(f"the holder is \"{seen}\"")
    b.one.expect("ok", "unlock", name)
    a.one.expect("free", "holder", name)


@check("of a mixed crowd's increments none is lost", "ours")
def crowd(a, b, name):
    with open(name, "w") as counter:
        counter.write("0")
    peers = a.peers + b.peers
    for peer in peers:
        peer.send("count", name, INCREMENTS // len(peers))
    for peer in peers:
        peer.answers("ok", limit=60000)
    with open(name) as counter:
        within(INCREMENTS, int(counter.read()), INCREMENTS, "the sum")


def await_latch(peers, name):
    """Begin to wait for a latch that is closed, and find it so."""
    for peer in peers:
        peer.send("await", name, LIMIT)
    time.sleep(0.3)
    for peer in peers:
        if peer.has_answered(0):
            peer.fail(f"{peer.answer()}, expected to wait")


@check("a latch that {a} sets and counts down opens for all of {b}", "latches")
def latch(a, b, name):
    a.one.expect("ok", "set", name, 3)
    b.one.expect("busy", "set", name, 5)
    b.one.expect("3", "left", name)
    b.one.expect("busy", "await", name, 0)
    b.one.expect("ok", "down", name)
    a.two.expect("ok", "down", name)
    await_latch(b.peers, name)
    a.one.expect("ok", "down", name)
    for peer in b.peers:
        peer.answers("ok", limit=b.wakes)
    for side in a, b:
        side.one.expect("0", "left", name)
        side.one.expect("ok", "await", name, 0)
        side.one.expect("free", "delete", name)
    b.one.expect("ok", "set", name, 1)
    a.one.expect("1", "left", name)
    b.one.expect("ok", "delete", name)


@check("a latch that {b} has set, and {a} counts down, opens for both",
       "latches")
def latch_of_both(a, b, name):
    b.one.expect("ok", "set", name, 2)
    a.one.expect("ok", "down", name)
    await_latch([a.two, b.two], name)
    a.one.expect("ok", "down", name)
    a.two.answers("ok", limit=a.wakes)
    b.two.answers("ok", limit=b.wakes)


@check("who of {b} waits for a latch goes on when {a} deletes it", "latches")
def latch_deleted(a, b, name):
    a.one.expect("ok", "set", name, 3)
    await_latch(b.peers, name)
    a.one.expect("ok", "delete", name)
    for peer in b.peers:
        peer.answers("ok", limit=b.wakes)


def sides(name):
    return "read-of-" + name, "write-of-" + name


@check("while {a} reads, {b} reads, too, and does not write", "sides")
def reading(a, b, name):
    read, write = sides(name)
    a.one.expect("ok", "lock", read, 0, LONG)
    b.one.expect("ok", "lock", read, 0, LONG)
    b.two.expect("busy", "lock", write, 0, LONG)
    a.one.expect("ok", "unlock", read)
    b.two.expect("busy", "lock", write, 0, LONG)
    b.one.expect("ok", "unlock", read)
    b.two.expect("ok", "lock", write, 0, LONG)
    a.one.expect("busy", "lock", read, 0, LONG)
    a.two.expect("busy", "lock", write, 0, LONG)
    b.two.expect("ok", "unlock", write)


@check("who of {b} waits to write comes in when {a} has read", "sides")
def read_then_written(a, b, name):
    read, write = sides(name)
    a.one.expect("ok", "lock", read, 0, LONG)
    b.one.waits(write)
    a.one.expect("ok", "unlock", read)
    b.one.answers("ok", limit=b.wakes)
    b.one.expect("ok", "unlock", write)


@check("all of {b} who wait to read come in when {a} has written", "sides")
def written_then_read(a, b, name):
    read, write = sides(name)
    a.one.expect("ok", "lock", write, 0, LONG)
    for peer in b.peers:
        peer.waits(read)
    a.one.expect("ok", "unlock", write)
    for peer in b.peers:
        peer.answers("ok", limit=b.wakes)
    for peer in b.peers:
        peer.expect("ok", "unlock", read)


@check("{b} writes when the lease of {a}, who reads, is over", "sides")
def read_over(a, b, name):
    read, write = sides(name)
    began = now()
    a.one.expect("ok", "lock", read, 0, SHORT)
    b.one.expect("ok", "lock", write, LIMIT, LONG)
    within(SHORT, now() - began, SHORT + b.wakes, "the wait")
    a.one.expect("lost", "unlock", read)
    b.one.expect("ok", "unlock", write)


@check("{b} does not write while {a} renews what it reads", "sides")
def read_renewed(a, b, name):
    read, write = sides(name)
    a.one.expect("ok", "lock", read, 0, 0)
    b.one.expect("busy", "lock", write, WATCHDOG + SHORT, LONG)
    a.one.expect("ok", "unlock", read)


@check("{a} goes on reading after it has written, beside {b}", "sides")
def downgraded(a, b, name):
    read, write = sides(name)
    a.one.expect("ok", "lock", write, 0, LONG)
    a.one.expect("ok", "lock", read, 0, LONG)
    a.one.expect("ok", "unlock", write)
    b.one.expect("ok", "lock", read, 0, LONG)
    b.two.expect("busy", "lock", write, 0, LONG)
    a.one.expect("ok", "unlock", read)
    b.one.expect("ok", "unlock", read)


# Java counts levels by marks of their own; one of ours is enough.
@check("what {a} reads twice, beside {b}, is read up to the last unlock", "sides")
def read_twice(a, b, name):
    read, write = sides(name)
    for _ in range(2):
        a.one.expect("ok", "lock", read, 0, LONG)
    b.one.expect("ok", "lock", read, 0, LONG)
    b.one.expect("ok", "unlock", read)
    a.one.expect("ok", "unlock", read)
    b.two.expect("busy", "lock", write, 0, LONG)
    a.one.expect("ok", "unlock", read)
    b.two.expect("ok", "lock", write, 0, LONG)
    b.two.expect("ok", "unlock", write)


@check("of what a mixed crowd writes none is lost", "ours sides")
def crowd_writes(a, b, name):
    crowd(a, b, sides(name)[1])


@check("permits that {a} has set are shared with {b}", "permits")
def permits(a, b, name):
    a.one.expect("ok", "total", name, 3)
    b.one.expect("3", "free", name)
    b.one.expect("ok", "take", name, 0, LONG)
    a.one.expect("ok", "take", name, 0, LONG)
    b.two.expect("ok", "take", name, 0, 0)
    for side in a, b:
        side.one.expect("0", "free", name)
        side.two.expect("busy", "take", name, 0, LONG)
    b.one.expect("ok", "give", name)
    a.two.expect("1", "free", name)
    a.two.expect("ok", "take", name, 0, LONG)
    for peer in a.one, a.two, b.two:
        peer.expect("ok", "give", name)
    a.one.expect("3", "free", name)


@check("who of {b} waits for a permit gets the one that {a} gives back",
       "permits")
def permit_waited_for(a, b, name):
    a.one.expect("ok", "total", name, 1)
    a.one.expect("ok", "take", name, 0, LONG)
    b.one.send("take", name, LIMIT, LONG)
    time.sleep(0.3)
    if b.one.has_answered(0):
        b.one.fail(f"{b.one.answer()}, expected to wait")
    a.one.expect("ok", "give", name)
    b.one.answers("ok", limit=b.wakes)
    b.one.expect("ok", "give", name)
    a.one.expect("1", "free", name)


@check("a permit of {a} whose lease has run out {b} gets", "permits")
def permit_dead(a, b, name):
    a.one.expect("ok", "total", name, 2)
    a.one.expect("ok", "take", name, 0, SHORT)
    b.one.expect("ok", "take", name, 0, LONG)
    b.two.expect("ok", "take", name, LIMIT, LONG)
    a.one.expect("lost", "give", name)
    b.one.expect("ok", "give", name)
    b.two.expect("ok", "give", name)
    a.one.expect("2", "free", name)


# --- those who die -----------------------------------------------------------

def gets_of_killed(a, b, held, wanted):
    lease = 0 if "renews" in a.traits else WATCHDOG
    a.two.expect("ok", "lock", held, 0, lease)
    b.one.waits(wanted)
    a.kill_two()
    b.one.answers("ok", limit=WATCHDOG + b.rounds + b.wakes)
    b.one.expect("ok", "unlock", wanted)


@check("what {a} held when it was killed {b} gets")
def killed(a, b, name):
    gets_of_killed(a, b, name, name)


@check("{b} writes when {a} was killed while it read", "sides")
def reader_killed(a, b, name):
    gets_of_killed(a, b, *sides(name))


@check("{b} reads when {a} was killed while it wrote", "sides")
def writer_killed(a, b, name):
    read, write = sides(name)
    gets_of_killed(a, b, write, read)


# Redisson has no watchdog for them.
@check("the permit that {a} had when it was killed {b} gets", "permits")
def taker_killed(a, b, name):
    a.one.expect("ok", "total", name, 1)
    a.two.expect("ok", "take", name, 0, 0 if "ours" in a.traits else WATCHDOG)
    b.one.send("take", name, LIMIT, LONG)
    a.kill_two()
    b.one.answers("ok", limit=WATCHDOG + b.wakes)
    b.one.expect("ok", "give", name)


# --- what Redisson does that we cannot mend ------------------------------------

# Its waiters are woken by no unlock but a fair one of its own.
@check("a fair lock that {a} frees {b} gets before its lease would be over", "fair")
def fair(a, b, name):
    name = "fair-of-" + name
    a.one.expect("ok", "lock", name, 0, 3 * SHORT)
    b.one.expect("busy", "lock", name, 0, LONG)
    b.one.waits(name)
    a.one.expect("ok", "unlock", name)
    b.one.answers("ok", limit=3 * SHORT + b.wakes)
    b.one.expect("ok", "unlock", name)


# Its watchdog sets the TTL, also to less than it is.
@check("a {a} that reads and is killed cuts a longer lease of {b}, who reads, too",
       "sides java")
def cut_short(a, b, name):
    read, _ = sides(name)
    b.one.expect("ok", "lock", read, 0, LONG)
    a.two.expect("ok", "lock", read, 0, 0)
    until = now() + LIMIT
    while int(a.one.ask("ttl", read)) > WATCHDOG:
        if now() > until:
            a.one.fail("its watchdog leaves the TTL")
        time.sleep(0.02)
    a.kill_two()
    b.two.expect("ok", "lock", sides(name)[1], LIMIT, LONG)
    b.one.expect("lost", "unlock", read)
    b.two.expect("ok", "unlock", sides(name)[1])


@check("{a} reads although {b} waits to write", "sides java")
def passed(a, b, name):
    read, write = sides(name)
    a.one.expect("ok", "lock", read, 0, LONG)
    b.one.waits(write)
    a.two.expect("ok", "lock", read, 0, LONG)
    a.one.expect("ok", "unlock", read)
    if b.one.has_answered(0):
        b.one.fail(f"{b.one.answer()}, expected to wait")
    a.two.expect("ok", "unlock", read)
    b.one.answers("ok", limit=b.wakes)
    b.one.expect("ok", "unlock", write)


@check("the leases of what {a} writes twice are added up", "sides java")
def added_up(a, b, name):
    write = sides(name)[1]
    for _ in range(2):
        a.one.expect("ok", "lock", write, 0, LONG)
    within(LONG + 1, int(b.one.ask("ttl", write)), 2 * LONG, "the TTL")
    for _ in range(2):
        a.one.expect("ok", "unlock", write)


# --- All of them, for each library ------------------------------------------

class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def ok(self, title):
        self.passed += 1
        print(f"ok - {title}", flush=True)

    def not_ok(self, title, why):
        self.failed += 1
        print(f"not ok - {title}", *why.split("\n"), sep="\n# ", flush=True)

    def skip(self, title, why):
        self.skipped += 1
        print(f"ok - {title} # SKIP {why}", flush=True)

    def close(self):
        line = f"{self.passed} passed, {self.failed} failed"
        print(line + (f", {self.skipped} skipped" if self.skipped else ""))
        return 1 if self.failed or not self.passed else 0


class Suite(NamedTuple):
    library: str
    layout: str  # of rlock
    traits: str  # of the library
    note: str = ""
    wakes: int = SOON  # ours wait so long after a release of theirs, at most
    rounds: int = 0  # leases may be so much longer
    servers: int = 1
    cluster: bool = False
    only: tuple = ()  # all checks if empty


JAVA = "renews nests latches sides permits fair java"

SUITES = [
    Suite("redisson", "redisson", JAVA),
    Suite("redisson", "hash", JAVA, " without channel",
          POLL),
    Suite("redis-py", "string", "extends"),
    Suite("redsync", "string", "extends"),
    Suite("node-redlock", "string", "extends"),
    # Each side rounds up to whole seconds.
    Suite("classic", "timestamp", "extends", rounds=2000),
    Suite("redsync", "string", "extends", " on 3 servers", servers=3),
    Suite("node-redlock", "string", "extends", " on 5 servers", servers=5),
    Suite("redisson", "redisson", JAVA,
          " in a cluster", cluster=True),
    Suite("redisson", "hash", JAVA,
          " in a cluster without channel", POLL, cluster=True,
          only=(hand_over, force)),
    Suite("redis-py", "string", "extends", " in a cluster", cluster=True),
]


def run(tally, title, ours, theirs, only=()):
    running = False
    for number, (text, needs, function) in enumerate(CHECKS):
        for a, b in (ours, theirs), (theirs, ours):
            if (not set(needs.split()) <= set(a.traits) or
                    only and function not in only):
                continue
            what = f"{title}: {text.format(a=a.name, b=b.name)}"
            name = f"{title}-{number}-{a.name}".replace(" ", "-")
            try:
                if not running:
                    ours.start()
                    theirs.start()
                    running = True
                function(a, b, name)
                tally.ok(what)
            except (Failure, OSError, ValueError) as e:
                tally.not_ok(what, str(e))
                # They may be in the middle of something.
                ours.stop()
                theirs.stop()
                running = False
    if running:
        ours.stop()
        theirs.stop()


def main(directory):
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="rlock-interop.") as scratch:
        os.chdir(scratch)
        servers = [Server(os.path.join(scratch, f"redis-{i}"))
                   for i in range(max(suite.servers for suite in SUITES))]
        nodes = start_cluster(scratch)
        for suite in SUITES:
            title = suite.library + suite.note
            ours, theirs = (os.path.join(directory, name, "peer")
                            for name in ("rlock", suite.library))
            skip = os.path.join(directory, suite.library, "skip")
            where = [server.port for server in servers[:suite.servers]]
            if suite.cluster:
                where = ["cluster", nodes[0].port]
            if os.path.exists(skip):
                with open(skip) as why:
                    tally.skip(title, why.read().strip())
            elif not os.path.exists(theirs):
                tally.not_ok(title, "there is no peer")
            else:
                run(tally, title,
                    Side("rlock", [ours, suite.layout, *where],
                         "ours renews extends nests" +
                         (" latches sides permits fair" if "java" in suite.traits
                          else ""), suite.wakes, suite.rounds),
                    Side(suite.library, [theirs, *where], suite.traits,
                         FIRST if "java" in suite.traits else SOON,
                         suite.rounds),
                    suite.only)
        for server in servers + nodes:
            server.stop()
    return tally.close()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(os.path.abspath(sys.argv[1])))
