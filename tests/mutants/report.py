"""What is told: each mutant that nobody noticed, the folders' scores, the verdict."""
import os
import subprocess

MOST_OF_ANYWHERE = 6
# Below so many a score says little.
ENOUGH = 50
MOST_SAME = 10


def tell(place, row):
    if row['what'] == 'dropped':
        return
    if row['what'] == 'noticed':
        print('noticed by %s: %s %s:%d: %s (%.0f s)' % (
            row['by'], row['id'], place.path, place.line, place.operator,
            row['seconds']), flush=True)
        return
    print('NOT NOTICED: %s %s:%d: %s: %s (%.0f s)\n    - %s\n    + %s%s' % (
        row['id'], place.path, place.line, place.function, place.operator,
        row['seconds'], place.before, place.after or '(nothing)',
        '\n    %s' % row['note'] if row['note'] else ''), flush=True)


def folder_of(row):
    parts = row['file'].split('/')
    return 'lua' if parts[0] == 'lua' else parts[1]


def words_of(row):
    return (row['file'], row['function'], row['operator'], row['before'],
            row['after'])


def split(gate, rows):
    """Noticed, survived, listed: of those in same.txt those that did survive."""
    noticed = [r for r in rows if r['what'] == 'noticed']
    survived = [r for r in rows if r['what'] == 'survived']
    listed = [r for r in survived if words_of(r) in gate.rows]
    for r in noticed:
        if words_of(r) in gate.rows:
            gate.wrong.append('same.txt:%d: %s is noticed, by %s' % (
                gate.rows[words_of(r)].line, r['id'], r['by']))
    survived = [r for r in survived if r not in listed]
    return noticed, survived, listed


def scores(gate, rows):
    """Of each folder: noticed, tried, listed; and a line for it."""
    result = {}
    for folder in dict.fromkeys(folder_of(r) for r in rows):
        of = [r for r in rows if folder_of(r) == folder]
        noticed, survived, listed = split(gate, of)
        tried = len(noticed) + len(survived)
        if not tried + len(listed):
            continue
        score = 100 * len(noticed) / tried if tried else 100
        result[folder] = (score, tried, len(listed))
        by_unit = sum(r['by'] == 'unit' for r in noticed)
        print('%-6s %5.1f %% of %d are noticed (%.1f %% by the unit tests), '
              '%d change nothing' % (folder, score, tried,
                                     100 * by_unit / max(1, tried), len(listed)))
    return result


def read_floors(text):
    floors = {}
    for line in text.splitlines():
        row = line.split('#')[0].split()
        if row:
            floors[row[0]] = int(row[1])
    return floors


def check_floors(gate, result):
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, 'floors.txt')) as f:
        floors = read_floors(f.read())
    before = subprocess.run(
        ['git', '-C', here, 'show', '%s:./floors.txt' % gate.args.since],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for folder, floor in read_floors(before.stdout.decode()).items():
        if floors.get(folder, 0) < floor:
            gate.wrong.append('floors.txt: %s was at %d' % (folder, floor))
    for folder, (score, tried, listed) in result.items():
        if tried + listed < ENOUGH:
            continue
        if score < floors[folder]:
            gate.wrong.append('%s: %.1f %%, the floor is %d' % (
                folder, score, floors[folder]))
        elif score >= floors[folder] + 3:
            print('the floor of %s may rise to %d' % (folder, score - 2))
        if 100 * listed > MOST_SAME * (tried + listed):
            gate.wrong.append('same.txt: more than %d %% of %s' % (
                MOST_SAME, folder))


def close(gate, passed, failed):
    # What was found more than once is wrong once.
    for line in dict.fromkeys(gate.wrong):
        print(line)
    failed += len(set(gate.wrong))
    print('%d passed, %d failed' % (passed, failed))
    return 1 if failed else 0


def sample(gate, of_touched, anywhere):
    print()
    rows = of_touched[0] + anywhere[0]
    for what, left in (('touched lines', of_touched[1]), ('anywhere', anywhere[1])):
        if left:
            print('%d from %s were not tried: the time was up' % (left, what))
    scores(gate, rows)
    check_floors(gate, {})
    noticed, survived, listed = split(gate, rows)
    on_touched = split(gate, of_touched[0])[1]
    elsewhere = split(gate, anywhere[0])[1]
    failed = len(on_touched)
    if on_touched:
        print('%d on touched lines were not noticed: a test has to, or same.txt '
              'says why none can' % len(on_touched))
    if len(elsewhere) > MOST_OF_ANYWHERE:
        failed += len(elsewhere)
        print('%d from anywhere were not noticed; %d may be' % (
            len(elsewhere), MOST_OF_ANYWHERE))
    return close(gate, len(noticed) + len(listed), failed)


def all(gate, rows, left):
    print()
    if left:
        print('%d were not tried: the time was up; the next run goes on' % left)
    check_floors(gate, scores(gate, rows))
    noticed, survived, listed = split(gate, rows)
    if survived:
        print('%d were not noticed; they are in %s' % (
            len(survived), os.path.join(gate.folder, 'ledger.jsonl')))
    return close(gate, len(noticed) + len(listed), 0)


def again(gate, rows):
    print()
    noticed, survived, listed = split(gate, rows)
    return close(gate, len(noticed) + len(listed), len(survived))
