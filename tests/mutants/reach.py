"""Which program of the tests executes which line of the library.

Recorded by a build of its own, whose counters live in a mapped file, so that a
process counts that ends by _exit() or by a kill (RLOCK_COVERAGE). What is recorded
of a file counts while the file is the same. The simulator cannot be built so.
"""
import concurrent.futures
import glob
import json
import os
import shutil
import subprocess
import tempfile
import time

from build import must
from ledger import digest

CONFIGURE = ['-DRLOCK_COVERAGE=ON', '-DRLOCK_BUILD_TESTS=ON', '-DRLOCK_TEST_PLAIN=ON',
             '-DRLOCK_BUILD_EXAMPLES=OFF', '-DRLOCK_INSTALL=OFF',
             '-DCMAKE_C_COMPILER=clang', '-DCMAKE_BUILD_TYPE=Release',
             '-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG']
LIMIT_S = 300


def executed(lcov, root):
    """Of each file the lines that have a count."""
    lines, path = {}, None
    for row in lcov.splitlines():
        if row.startswith('SF:'):
            path = os.path.relpath(row[3:], root)
        elif row.startswith('DA:'):
            line, count = row[3:].split(',')[:2]
            if int(count):
                lines.setdefault(path, []).append(int(line))
    return lines


class Reach:
    def __init__(self, build, texts, jobs):
        self.build, self.jobs = build, jobs
        self.folder = os.path.join(build.folder, 'reach')
        self.now = {path: digest(text) for path, text in texts.items()
                    if path.endswith('.c')}
        self.lines, self.of, self.tests = {}, {}, {}
        for path in glob.glob(os.path.join(self.folder, '*.json')):
            with open(path) as f:
                self.take(json.load(f))

    def own(self, name):
        """The program's own sources."""
        patterns = ['unit/*'] if name == 'unit' else [name + '.c', name + '/*']
        return self.build.tests(*patterns)

    def take(self, row):
        """Only what was recorded of a file as it is now."""
        self.of[row['program']] = row['of']
        self.tests[row['program']] = row['tests']
        for path, lines in row['lines'].items():
            if row['of'].get(path) == self.now.get(path):
                of = self.lines.setdefault(path, {})
                of[row['program']] = set(lines)

    def is_known(self, path):
        return path.endswith('.c') and all(
            self.of.get(p, {}).get(path) == self.now[path]
            for p in ['unit'] + self.build.programs())

    def programs(self, path, line):
        return {p for p, lines in self.lines.get(path, {}).items() if line in lines}

    def record_all(self, took):
        """Of those programs that have no record, or one of other sources."""
        wanted = [p for p in ['unit'] + self.build.programs()
                  if self.of.get(p) != self.now or self.tests[p] != self.own(p)]
        if not wanted:
            return
        print('Recording what %d programs execute' % len(wanted), flush=True)
        os.makedirs(self.folder, exist_ok=True)
        tree = os.path.join(self.build.folder, 'tree-reach')
        must(['cmake', '-S', self.build.source, '-B', tree] + CONFIGURE)
        must(['cmake', '--build', tree, '-j', str(self.build.jobs)])
        shm = '/dev/shm' if os.path.isdir('/dev/shm') else None
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for row in pool.map(lambda p: self.record(tree, p, shm), wanted):
                self.take(row)
                took(row['program'], row['seconds'])

    def record(self, tree, name, shm):
        path = os.path.join(tree, 'tests', 'unit/unit' if name == 'unit' else name)
        counts = tempfile.mkdtemp(prefix='rlock.', dir=shm)
        try:
            began = time.monotonic()
            env = dict(os.environ, LLVM_PROFILE_FILE=counts + '/%m%c.profraw')
            subprocess.run(['timeout', '-k', '5', str(LIMIT_S), path], env=env,
                           cwd=counts, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seconds = time.monotonic() - began
            data = os.path.join(counts, 'data')
            must(['llvm-profdata', 'merge', '-o', data] +
                 glob.glob(counts + '/*.profraw'))
            lcov = must(['llvm-cov', 'export', '-format=lcov', path,
                         '-instr-profile', data, os.path.join(self.build.source,
                                                              'src')])
        finally:
            shutil.rmtree(counts, ignore_errors=True)
        row = {'program': name, 'seconds': seconds, 'of': self.now,
               'tests': self.own(name), 'lines': executed(lcov, self.build.source)}
        with open(os.path.join(self.folder, name.replace('/', '.') + '.json'),
                  'w') as f:
            json.dump(row, f)
        return row
