"""Which suites run for a mutant, in which order, and what counts as noticed.

The first that fails ends it. A program that fails is run again, the test alone that
failed; two of three count. It is also run without the mistake, once for all, in the
same company: if it fails then, it notices nothing.
"""
import collections
import os
import re
import select
import signal
import subprocess
import threading
import time

SIM_SEEDS = 300
# Of the programs of server and fault together, for one mutant: of their time when
# they were quickest.
MOST_SECONDS = 30
SHIMMED = ['fault/shimmed_memory', 'fault/shimmed_async']
# It compares all that a script leaves behind.
SCRIPTS = 'server/script_table'
# There the parts that have no unit tests are worked most by these.
SHIMMED_FIRST = {'run', 'route'}
FAILED_TEST = re.compile(rb'^\[FAIL\] (\w+)::(\w+)', re.M)

Outcome = collections.namedtuple('Outcome', 'failed test seconds')
Verdict = collections.namedtuple('Verdict', 'what by seconds note')


RUNNING = set()


def stop_all():
    for process in list(RUNNING):
        stop(process)


def stop(process):
    """Ends it with all that it started and that did not leave its session's group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def watch(process, end):
    """Its first failed test, and whether it has gone on beyond its end."""
    said, fd = b'', process.stdout.fileno()
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            return None, True
        chunk = os.read(fd, 65536)
        said = (said + chunk)[-200000:]
        found = FAILED_TEST.search(said)
        if found:
            return (found[1] + b'/' + found[2]).decode(), False
        if not chunk:
            return None, False


def run_program(argv, limit, cwd, env):
    """Until its end, its first failed test, or its limit."""
    began = time.monotonic()
    process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    RUNNING.add(process)
    test, late = watch(process, began + limit)
    if test or late:
        stop(process)
    process.wait()
    RUNNING.discard(process)
    process.stdout.close()
    return Outcome(bool(test) or process.returncode != 0, test,
                   time.monotonic() - began)


class Suites:
    def __init__(self, build, choice, record):
        self.build, self.choice, self.record = build, choice, record
        self.mutex = threading.Lock()
        self.locks = collections.defaultdict(threading.Lock)
        self.base = {}

    def arguments(self, name, path, test=None):
        if name == 'sim':
            return [path, '--from', '1', '--seeds', str(SIM_SEEDS), '--first']
        return [path] + (['--filter=' + test] if test else [])

    def run(self, name, path, limit, env=None, test=None):
        work = os.path.join(self.build.folder, 'run')
        os.makedirs(work, exist_ok=True)
        return run_program(self.arguments(name, path, test), limit, work, env)

    def unchanged(self, name):
        """How long it takes; None: it fails, and can notice nothing."""
        with self.mutex:
            lock = self.locks[name]
        with lock:
            if name not in self.base:
                self.base[name] = self.try_unchanged(name)
            return self.base[name]

    def try_unchanged(self, name):
        path, failed = self.build.program(name), 0
        for _ in range(3):
            outcome = self.run(name, path, 300)
            failed += outcome.failed
            if not outcome.failed:
                self.record.took(name, outcome.seconds)
                return outcome.seconds
            if failed == 2:
                break
        print('%s fails without any mistake (%s), so it notices none' %
              (name, outcome.test or 'it did not end well'), flush=True)
        return None

    def order(self, place):
        if place.folder == 'lua':
            return [SCRIPTS, 'unit', 'sim']
        first = ['unit', 'sim']
        return SHIMMED + first if place.folder in SHIMMED_FIRST else first + SHIMMED

    def judge(self, mutant):
        began = time.monotonic()
        why = mutant.compile()
        if why in ('not compiled', 'same'):
            return Verdict('dropped', why, time.monotonic() - began, '')
        by = why or self.find(mutant)
        what = 'noticed' if by else 'survived'
        note = '' if by else self.choice.note(mutant.place)
        return Verdict(what, by, time.monotonic() - began, note)

    def find(self, mutant):
        place = mutant.place
        first = self.order(place)
        for name in first:
            if self.choice.may_reach(name, place) and self.notices(mutant, name):
                return name
        left = MOST_SECONDS
        for name in self.choice.programs(place, first):
            if self.choice.seconds(name) > left:
                continue # a quicker one may still have its turn
            began = time.monotonic()
            if self.notices(mutant, name):
                return name
            # On a busy machine as many are asked as on an idle one.
            left -= min(time.monotonic() - began, self.choice.seconds(name))
            if left <= 0:
                break
        return None

    def notices(self, mutant, name):
        """That the program is well without the mistake is looked at when it fails."""
        if self.base.get(name, 0) is None:
            return False
        path, env = mutant.program(name), mutant.environment()
        limit = 20 + 5 * self.choice.seconds(name)
        first = self.run(name, path, limit, env)
        if not first.failed:
            self.record.took(name, first.seconds)
            return False
        if self.unchanged(name) is None:
            return False
        if name == 'sim':
            return True # the same seed, the same end
        failed, passed = 1, 0
        while failed < 2 and passed < 2:
            again = self.run(name, path, limit, env, first.test)
            failed += again.failed
            passed += not again.failed
        if passed:
            self.record.flaky(name, first.test, mutant.place, failed >= 2)
        return failed >= 2
