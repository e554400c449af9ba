"""The gate of run.sh: draws mutants, has them judged, and tells what came of it."""
import argparse
import concurrent.futures
import fcntl
import glob
import itertools
import math
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import c_places
import check
import lua_places
import report
import same
import suites
from build import PERTURBED, Build, Failed, Mutant, target_of
from choice import Choice
from ledger import Ledger
from reach import Reach

FOLDERS = ['hold', 'op', 'red', 'wire', 'run', 'net', 'route', 'lock', 'client', 'lua']
MOST_TOUCHED, ANYWHERE = 30, 20
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Sources:
    """All places, and the texts that they are in."""

    def __init__(self, folders=FOLDERS):
        self.texts, self.places = {}, []
        for folder in folders:
            pattern = 'lua/**/*.lua' if folder == 'lua' else 'src/%s/*.c' % folder
            for path in sorted(glob.glob(os.path.join(ROOT, pattern),
                                         recursive=True)):
                self.read(os.path.relpath(path, ROOT))

    def read(self, path):
        with open(os.path.join(ROOT, path)) as f:
            self.texts[path] = f.read()
        find = lua_places.find if path.endswith('.lua') else c_places.find
        self.places += find(path, self.texts[path])


def git(*args):
    return subprocess.run(('git', '-C', ROOT) + args, check=True,
                          stdout=subprocess.PIPE).stdout.decode()


def touched_lines(since):
    """Of each file the lines that are new, or not as they were."""
    lines, path = {}, None
    if git('rev-list', '--max-count=1', '--ignore-missing', since + '^{commit}') == '':
        print('There is no %s here: no line counts as touched' % since)
        return lines
    for row in git('diff', '-U0', '--no-color', '--no-ext-diff', since, '--',
                   'src', 'lua').splitlines():
        if row.startswith('+++ '):
            path = row[6:]
        m = re.match(r'@@ -\S+ \+(\d+)(?:,(\d+))? @@', row)
        if m:
            first, n = int(m[1]), int(m[2] or 1)
            lines.setdefault(path, set()).update(range(first, first + n))
    return lines


class Trial:
    """Has places judged, some at a time, until enough are or the time is up."""

    def __init__(self, judge, texts, record, jobs):
        self.judge, self.texts, self.record = judge, texts, record
        self.jobs, self.end = jobs, math.inf
        self.mutex = threading.Lock()

    def limit(self, seconds):
        if seconds:
            self.end = time.monotonic() + seconds

    def run(self, places, enough=None):
        """The rows of those that were tried, and how many were not."""
        waiting, rows, self.active = list(reversed(places)), [], 0
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for worker in [pool.submit(self.work, waiting, rows, enough)
                           for _ in range(self.jobs)]:
                worker.result()
        left = len(waiting)
        if enough is not None:
            left = min(left, max(0, enough - count_tried(rows)))
        return rows, left

    def work(self, waiting, rows, enough):
        while True:
            with self.mutex:
                over = enough is not None and \
                    count_tried(rows) + self.active >= enough
                if not waiting or time.monotonic() > self.end:
                    return
                if over and self.active == 0:
                    return
                place = None if over else waiting.pop()
                self.active += place is not None
            if place is None:
                time.sleep(0.2) # what is under way may turn out to be none
                continue
            row = self.one(place)
            with self.mutex:
                self.active -= 1
                rows.append(row)

    def one(self, place):
        text = self.texts[place.path]
        row = self.record.known(place, text)
        if not row:
            row = self.record.judged(place, text, self.judge(place, text))
            report.tell(place, row)
        elif row['what'] == 'survived':
            report.tell(place, row)
        return row


def count_tried(rows):
    return sum(row['what'] != 'dropped' for row in rows)


class Gate:
    def __init__(self, args):
        self.args = args
        self.folder = os.path.abspath(os.environ.get('BUILD_DIR') or
                                      os.path.join(ROOT, 'build-mutants'))
        self.jobs = int(os.environ.get('JOBS') or 4)
        self.sources = Sources()
        wrong = check.wrong()
        if wrong:
            raise Failed('the finders of places: ' + wrong)
        self.rows, self.wrong = same.read(os.path.join(HERE, 'same.txt'))
        words = {p.words() for p in self.sources.places}
        for row in self.rows.values():
            if row.words not in words:
                self.wrong.append('same.txt:%d: matches nothing' % row.line)

    def prepare(self):
        os.makedirs(self.folder, exist_ok=True)
        self.lock = open(os.path.join(self.folder, 'lock'), 'w')
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failed('somebody else builds in %s' % self.folder)
        build = self.build = Build(ROOT, self.folder, os.cpu_count())
        print('Building in %s' % self.folder, flush=True)
        build.prepare()
        self.record = Ledger(self.folder, build.tests())
        self.reach = Reach(build, self.sources.texts, self.jobs)
        choice = Choice(HERE, build.programs(), self.record.times, self.reach)
        judges = suites.Suites(build, choice, self.record)

        def judge(place, text):
            mutant = Mutant(build, place, text)
            try:
                return judges.judge(mutant)
            finally:
                mutant.remove()

        self.trial = Trial(judge, self.sources.texts, self.record, self.jobs)

    def sample(self):
        """What a change has to pass."""
        lot = random.Random(git('rev-parse', 'HEAD').strip())
        lines = touched_lines(self.args.since)
        touched = [p for p in self.sources.places
                   if p.line in lines.get(p.path, ())]
        rest = sorted(set(self.sources.places) - set(touched), key=lambda p: p.id)
        lot.shuffle(touched)
        lot.shuffle(rest)
        self.prepare()
        self.trial.limit(self.args.seconds or 300)
        print('%d places on touched lines' % len(touched), flush=True)
        of_touched = self.trial.run(touched, MOST_TOUCHED)
        anywhere = self.trial.run(rest, ANYWHERE)
        return report.sample(self, of_touched, anywhere)

    def all(self):
        """By lot, of each folder in turn: what was tried when it stops is a sample."""
        of = {}
        for p in sorted(self.sources.places, key=lambda p: p.id):
            if self.args.folder in (None, p.folder):
                of.setdefault(p.folder, []).append(p)
        for places in of.values():
            random.Random(1).shuffle(places)
        places = [p for turn in itertools.zip_longest(*of.values())
                  for p in turn if p]
        self.prepare()
        if not self.args.unrecorded:
            self.reach.record_all(self.record.took)
        self.build.make(*map(target_of, self.build.programs()))
        self.trial.limit(self.args.seconds)
        rows, left = self.trial.run(places)
        return report.all(self, rows, left)

    def place(self, id_):
        for p in self.sources.places:
            if p.id == id_:
                return p
        raise Failed('there is no mutant %s' % id_)

    def again(self):
        """Whatever is known of them."""
        places = [self.place(id_) for id_ in self.args.again]
        self.prepare()
        for p in places:
            self.record.verdicts.pop(p.id, None)
        rows, _ = self.trial.run(places)
        return report.again(self, rows)

    def tree(self):
        place = self.place(self.args.id)
        to = os.path.join(self.folder, 'trees', place.id)
        shutil.rmtree(to, ignore_errors=True)
        os.makedirs(to)
        for name in ('CMakeLists.txt', 'include', 'src', 'lua', 'tests'):
            path = os.path.join(ROOT, name)
            (shutil.copytree if os.path.isdir(path) else shutil.copy)(
                path, os.path.join(to, name))
        with open(os.path.join(to, place.path), 'w') as f:
            f.write(place.apply(self.sources.texts[place.path]))
        print('%s\n%s' % (place, to))
        return 0


def read_args():
    usage = argparse.ArgumentParser(prog='run.sh')
    usage.add_argument('--since', metavar='REV', default='HEAD~1')
    usage.add_argument('--seconds', type=int, metavar='N')
    usage.add_argument('--all', action='store_true')
    usage.add_argument('--unrecorded', action='store_true')
    usage.add_argument('--folder', choices=FOLDERS)
    usage.add_argument('--id')
    usage.add_argument('--again', nargs='+', metavar='ID')
    usage.add_argument('--list', metavar='FILE')
    return usage.parse_args()


def end_with_all(*_):
    suites.stop_all()
    print('0 passed, 1 failed', flush=True)
    os._exit(143)


def main():
    args = read_args()
    os.environ.update(PERTURBED)
    # A mistake may eat memory, and a crash need leave no image.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, end_with_all)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if args.list:
        sources = Sources()
        for p in sources.places:
            if p.path == args.list:
                print(p)
        return 0
    try:
        gate = Gate(args)
        if args.id:
            return gate.tree()
        if args.again:
            return gate.again()
        return gate.all() if args.all else gate.sample()
    except Failed as e:
        print(e)
        print('0 passed, 1 failed')
        return 1


if __name__ == '__main__':
    sys.exit(main())
