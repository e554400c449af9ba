"""What is known of mutants, in BUILD_DIR: verdicts, times, what is flaky.

A verdict counts as long as its file is the same; that nobody notices, as long as the
tests are, too. A line is added for each, so a run that is stopped has lost nothing.
"""
import hashlib
import json
import os
import threading


def digest(text):
    return hashlib.sha1(text.encode()).hexdigest()[:12]


class Ledger:
    def __init__(self, folder, tests):
        self.tests = tests
        self.folder, self.mutex = folder, threading.Lock()
        os.makedirs(folder, exist_ok=True)
        self.verdicts = {}
        for row in self.read('ledger.jsonl'):
            self.verdicts[row['id']] = row
        self.times = {row['name']: row['seconds']
                      for row in self.read('times.jsonl')}

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name)) as f:
                return [json.loads(line) for line in f if line.endswith('}\n')]
        except FileNotFoundError:
            return []

    def add(self, name, line):
        with self.mutex, open(os.path.join(self.folder, name), 'a') as f:
            f.write(line + '\n')

    def known(self, place, text):
        row = self.verdicts.get(place.id)
        if not row or row['of'] != digest(text) or \
                row['what'] == 'survived' and row.get('tests') != self.tests:
            return None
        return row

    def judged(self, place, text, verdict):
        row = {'id': place.id, 'of': digest(text), 'tests': self.tests,
               'what': verdict.what,
               'by': verdict.by, 'seconds': round(verdict.seconds, 1),
               'note': verdict.note, 'file': place.path, 'line': place.line,
               'function': place.function, 'operator': place.operator,
               'before': place.before, 'after': place.after}
        self.verdicts[place.id] = row
        self.add('ledger.jsonl', json.dumps(row))
        return row

    def took(self, name, seconds):
        if name in self.times and self.times[name] <= seconds:
            return # the machine was busier
        self.times[name] = seconds
        self.add('times.jsonl', json.dumps(
            {'name': name, 'seconds': round(seconds, 2)}))

    def flaky(self, name, test, place, counted):
        self.add('flaky.txt', '%s %s: passed once with %s, %s' % (
            name, test or '', place.id,
            'failed twice' if counted else 'failed once'))
